//! The device that a test runs on, and how much of everything is quick there.

use super::seeds::simulated::{assert_clean, device};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tapeloop_engine::backend::{Backend, cpu::CpuBackend};
use tapeloop_sim::SimBackend;

pub(crate) struct Target {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) pool: Arc<ThreadPool>,
    /// Batches of a long run.
    pub(crate) replays: u32,
    /// How often a short test is done.
    pub(crate) rounds: usize,
    /// Elements of a buffer that is large.
    pub(crate) large: usize,
    /// Whether the memory of the process stays as it is; the simulated device
    /// keeps a history.
    pub(crate) is_steady: bool,
    #[cfg(feature = "cuda")]
    card: Option<Arc<tapeloop_engine::backend::cuda::CudaBackend>>,
    sim: Option<Arc<SimBackend>>,
    _turn: MutexGuard<'static, ()>,
}

/// Tests look at the memory of the process and of the card, so each is alone.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn threads() -> Arc<ThreadPool> {
    Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap())
}

pub(crate) fn cpu() -> Target {
    let turn = turn();
    let pool = threads();
    Target {
        backend: Arc::new(CpuBackend::new(Arc::clone(&pool))),
        pool,
        replays: 5_000,
        rounds: 20,
        large: 5_000,
        is_steady: true,
        #[cfg(feature = "cuda")]
        card: None,
        sim: None,
        _turn: turn,
    }
}

pub(crate) fn simulated() -> Target {
    let (sim, backend) = device(1);
    Target {
        backend,
        replays: 1_000,
        rounds: 5,
        is_steady: false,
        sim: Some(sim),
        ..cpu()
    }
}

#[cfg(feature = "cuda")]
pub(crate) fn card() -> Target {
    let cpu = cpu();
    let card = super::gpu::cuda(&tapeloop_engine::backend::CudaOptions::default());
    let card = Arc::new(card);
    Target {
        backend: Arc::clone(&card) as Arc<dyn Backend>,
        replays: 100_000,
        rounds: 50,
        large: 5_000_000,
        card: Some(card),
        ..cpu
    }
}

/// Set where this program is a worker.
#[cfg(all(feature = "cuda", feature = "supervise", target_os = "linux"))]
pub(crate) const WORKER: &str = "TAPELOOP_TEST_WORKER";

#[cfg(all(feature = "cuda", feature = "supervise", target_os = "linux"))]
pub(crate) fn supervised_card() -> Target {
    use tapeloop_engine::backend::worker::{WorkerBackend, WorkerEnv, WorkerOptions};
    let card = card();
    let test = "on_the_supervised_card::serve_as_worker";
    let options = WorkerOptions {
        args: [test, "--exact", "--nocapture"].map(Into::into).to_vec(),
        // SAFETY: only the worker reads the variable.
        env: unsafe { WorkerEnv::default().with(WORKER, "1") },
        threads: 1,
        ..WorkerOptions::default()
    };
    let worker = WorkerBackend::open(options).unwrap();
    assert_eq!(worker.device().backend, "cuda");
    Target {
        backend: Arc::new(worker),
        ..card
    }
}

impl Target {
    /// Free bytes of the card; nothing where there is none to ask.
    pub(crate) fn free_bytes(&self) -> Option<u64> {
        #[cfg(feature = "cuda")]
        if let Some(card) = &self.card {
            return Some(card.memory_bytes().unwrap().0);
        }
        None
    }

    /// Nothing was done wrong, and nothing is kept.
    pub(crate) fn finish(self) {
        if let Some(sim) = &self.sim {
            assert_clean(sim);
        }
    }
}

/// What the process has in memory, where the system tells.
pub(crate) fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// Past the test harness, which keeps what passing tests print to itself.
pub(crate) fn say(line: &str) {
    use std::io::Write;
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}
