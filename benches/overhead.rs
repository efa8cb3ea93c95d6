//! What the engine itself costs for each batch.
//!
//! - `empty`: on a device that does nothing and is done at once.
//! - `cpu`: on the CPU backend, with kernels that do nothing.
//! - `device`: on this machine's device: what an update of a graph costs by each rung, and what a
//!   worker process adds to a batch.
//!
//! Batches hold one item unless the name says otherwise. Rates are batches per second, or items per
//! second where the name says items.
//!
//! ```sh
//! cargo bench -p tapeloop --no-default-features --bench overhead
//! cargo bench -p tapeloop --no-default-features --bench overhead -- empty/engine
//! cargo bench --bench overhead -- device
//! ```

use tapeloop_test_support::empty;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput};
use empty::{EmptyBackend, EmptyKernels};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tapeloop::backend::contract::Priority;
use tapeloop::backend::cpu::CpuBackend;
#[cfg(all(feature = "supervise", target_os = "linux"))]
use tapeloop::backend::worker::{self, WorkerBackend, WorkerOptions};
use tapeloop::backend::{Backend, Choice, select};
use tapeloop::pipeline::{Pipeline, Ring, TimelineConfig, Wait};
use tapeloop::record::Recorder;
use tapeloop::replay::{Buckets, Executor, Mode, Policy, Rung};
use tapeloop::workload::{Completion, Extent, Workload};
use tapeloop::{Engine, EngineConfig};

/// Batches that are timed together, where a single batch is too short to time.
const BATCHES: u32 = 4096;

/// Kernels of a batch, in a chain.
const KERNELS: usize = 4;

/// Tickets that the producer holds before it waits for the oldest.
const TICKETS: usize = 16;

/// Items that a thread submits before it waits for them, and how often it does that.
const ITEMS_OF_A_CALL: u32 = 4096;
const CALLS: u32 = 64;

type Group<'a> = BenchmarkGroup<'a, WallTime>;

fn pool() -> Arc<ThreadPool> {
    Arc::new(ThreadPoolBuilder::new().build().unwrap())
}

/// Times `batches`, which runs `at_once` of them.
fn time(group: &mut Group<'_>, name: &str, at_once: u32, mut batches: impl FnMut()) {
    group.throughput(Throughput::Elements(at_once.into()));
    group.bench_function(name, |bencher| bencher.iter(&mut batches));
}

fn replay(group: &mut Group<'_>, backend: &Arc<dyn Backend>, mode: Mode, kernels: usize) {
    let buckets = EmptyKernels::new(kernels).single(backend.device());
    let policy = Policy::new(mode);
    let buffers = buckets.largest().recording.buffers();
    let mut device_slots = backend.open_slots(buffers, 1, Priority::Normal).unwrap();
    let device_slot = &mut *device_slots[0];
    let mut executor = Executor::new(backend, device_slot, &buckets, &policy).unwrap();
    let name = format!("replay/{}/{kernels} kernels", mode.name());
    time(group, &name, 1, || {
        executor.replay(device_slot, 0, Extent::from([1])).unwrap();
        device_slot.wait().unwrap();
    });
}

fn ring(group: &mut Group<'_>, backend: &Arc<dyn Backend>, mode: Mode) {
    let buckets = EmptyKernels::new(KERNELS).single(backend.device());
    let mut ring = Ring::new(backend, &buckets, 3, &Policy::new(mode), Wait::Spin).unwrap();
    time(group, &format!("ring/{}", mode.name()), 1, || {
        let slot = ring.acquire().unwrap();
        ring.submit(slot, Extent::from([1]), ()).unwrap();
        let finished = ring.poll().unwrap();
        assert!(ring.release(finished).1.is_none());
    });
}

fn config(mode: Mode, items: u32) -> EngineConfig {
    EngineConfig {
        policy: Policy::new(mode),
        ..EngineConfig::new([items])
    }
}

fn pipeline(group: &mut Group<'_>, backend: &Arc<dyn Backend>, name: &str, config: &EngineConfig) {
    let backends = [Arc::clone(backend)];
    let mut pipeline =
        Pipeline::new(EmptyKernels::new(KERNELS), &backends, pool(), config).unwrap();
    time(group, name, 1, || {
        pipeline.submit(7).unwrap();
        pipeline.wait().unwrap().1.result.unwrap();
    });
}

fn engine(backend: &Arc<dyn Backend>, config: &EngineConfig) -> Engine<EmptyKernels> {
    let backends = [Arc::clone(backend)];
    Engine::new(EmptyKernels::new(KERNELS), &backends, pool(), config).unwrap()
}

/// Runs a source into a sink through the engine's threads.
fn run(group: &mut Group<'_>, backend: &Arc<dyn Backend>, name: &str, config: &EngineConfig) {
    let mut engine = engine(backend, config);
    let items = config.batch[0];
    let batches = (BATCHES / items).max(64);
    let mut sink = |completion: Completion<EmptyKernels>| completion.result.map(drop);
    time(group, name, batches, || {
        engine.run(0..batches * items, &mut sink).unwrap();
    });
}

/// Submits items by ticket; the producer itself waits for the results.
fn tickets(group: &mut Group<'_>, backend: &Arc<dyn Backend>, name: &str, config: &EngineConfig) {
    let engine = engine(backend, config);
    let items = config.batch[0];
    let mut open = VecDeque::with_capacity(TICKETS);
    time(group, name, BATCHES, || {
        for item in 0..BATCHES * items {
            if open.len() == TICKETS {
                let oldest: tapeloop::Ticket<EmptyKernels> = open.pop_front().unwrap();
                oldest.wait().unwrap().result.unwrap();
            }
            open.push_back(engine.submit(item).unwrap());
        }
        engine.flush().unwrap();
        for ticket in open.drain(..) {
            ticket.wait().unwrap().result.unwrap();
        }
    });
}

/// Items on the caller's thread, in full batches.
fn pipeline_items(group: &mut Group<'_>, backend: &Arc<dyn Backend>, items: u32) {
    let backends = [Arc::clone(backend)];
    let config = config(Mode::Graph, items);
    let mut pipeline =
        Pipeline::new(EmptyKernels::new(KERNELS), &backends, pool(), &config).unwrap();
    let name = format!("pipeline/graph/items, {items} a batch");
    time(group, &name, items, || {
        for item in 0..items {
            pipeline.submit(item).unwrap();
        }
        for _ in 0..items {
            pipeline.wait().unwrap().1.result.unwrap();
        }
    });
}

/// Threads that submit items and wait for them: one by one, or [`ITEMS_OF_A_CALL`] at a time.
fn producers(group: &mut Group<'_>, backend: &Arc<dyn Backend>, threads: u32, together: bool) {
    let engine = engine(backend, &config(Mode::Graph, ITEMS_OF_A_CALL));
    let call = |first: u32| {
        let items = first..first + ITEMS_OF_A_CALL;
        if together {
            return drop(engine.submit_many(items).unwrap().wait().unwrap());
        }
        let tickets: Vec<_> = items.map(|item| engine.submit(item).unwrap()).collect();
        for ticket in tickets {
            ticket.wait().unwrap();
        }
    };
    let name = format!(
        "engine/{}/items of {threads} threads",
        if together { "submit_many" } else { "submit" },
    );
    time(group, &name, threads * CALLS * ITEMS_OF_A_CALL, || {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| (0..CALLS).for_each(call));
            }
        });
    });
}

/// An item that is submitted to an engine whose threads sleep.
fn woken(group: &mut Group<'_>, backend: &Arc<dyn Backend>) {
    let engine = engine(backend, &config(Mode::Graph, 16));
    group.throughput(Throughput::Elements(1));
    group.bench_function("engine/submit/after a millisecond of nothing", |bencher| {
        bencher.iter_custom(|items| {
            let submit = |item| {
                std::thread::sleep(Duration::from_millis(1));
                let start = Instant::now();
                engine.submit(item as u32).unwrap().wait().unwrap();
                start.elapsed()
            };
            (0..items).map(submit).sum()
        });
    });
}

fn empty(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("empty");
    let backend = EmptyBackend::shared();
    pipeline_items(&mut group, &backend, 256);
    for threads in [1, 4] {
        for together in [false, true] {
            producers(&mut group, &backend, threads, together);
        }
    }
    woken(&mut group, &backend);
    for mode in [Mode::Graph, Mode::Stream] {
        for kernels in [1, 12] {
            replay(&mut group, &backend, mode, kernels);
        }
        ring(&mut group, &backend, mode);
        let single = config(mode, 1);
        let name = |front: &str| format!("{front}/{}", mode.name());
        pipeline(&mut group, &backend, &name("pipeline"), &single);
        run(&mut group, &backend, &name("engine/run"), &single);
        tickets(&mut group, &backend, &name("engine/tickets"), &single);
    }
    for slots in [1, 8, 64] {
        let config = EngineConfig {
            slots,
            ..config(Mode::Graph, 1)
        };
        let name = format!("engine/run/graph/{slots} slots");
        run(&mut group, &backend, &name, &config);
    }
    let sampled = EngineConfig {
        timeline: Some(TimelineConfig::default()),
        ..config(Mode::Graph, 1)
    };
    pipeline(
        &mut group,
        &backend,
        "pipeline/graph/with a timeline",
        &sampled,
    );
}

fn cpu(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("cpu");
    let inline: Arc<dyn Backend> = Arc::new(CpuBackend::inline());
    for mode in [Mode::Graph, Mode::Stream] {
        replay(&mut group, &inline, mode, KERNELS);
        let name = format!("pipeline/{}", mode.name());
        pipeline(&mut group, &inline, &name, &config(mode, 1));
    }
    let pooled: Arc<dyn Backend> = Arc::new(CpuBackend::new(pool()));
    for items in [1, 16, 256] {
        let name = format!("engine/run/graph/{items} items a batch");
        run(&mut group, &pooled, &name, &config(Mode::Graph, items));
    }
    woken(&mut group, &pooled);
    tickets(
        &mut group,
        &pooled,
        "engine/tickets/graph",
        &config(Mode::Graph, 1),
    );
    producers(&mut group, &pooled, 4, false);
}

/// On this machine's own device.
fn device(criterion: &mut Criterion) {
    let selected = select(Choice::Auto, &pool()).unwrap();
    eprintln!(
        "device: {} ({})",
        selected.backend.device().name,
        selected.reason
    );
    let mut group = criterion.benchmark_group("device");
    update(&mut group, &selected.backend);
    for mode in [Mode::Graph, Mode::Resident] {
        let config = EngineConfig {
            slots: 1,
            wait: Wait::Spin,
            ..config(mode, 1)
        };
        let name = format!("pipeline/{}/this process", mode.name());
        pipeline(&mut group, &selected.backend, &name, &config);
        // A device in a worker process has no loops.
        #[cfg(all(feature = "supervise", target_os = "linux"))]
        if mode == Mode::Graph {
            pipeline(&mut group, &in_worker(), "pipeline/graph/a worker", &config);
        }
    }
}

/// Shortens the upload of a graph of 12 kernels and lengthens it again, by each rung of the update
/// ladder.
fn update(group: &mut Group<'_>, backend: &Arc<dyn Backend>) {
    let mut recorder = Recorder::new(&[4096]);
    let (x, _) = EmptyKernels::new(12)
        .record(&mut recorder, backend.device())
        .unwrap();
    let buckets = Arc::new(Buckets::single(recorder.finish().unwrap()));
    let buffers = buckets.largest().recording.buffers();
    let policy = Policy::default();
    let mut slots = backend.open_slots(buffers, 1, Priority::Normal).unwrap();
    let slot = &mut *slots[0];
    let mut executor = Executor::new(backend, slot, &buckets, &policy).unwrap();
    let whole = executor.bindings(slot, 0).unwrap().clone();
    let mut half = whole.clone();
    half.set_copy_len(x, 2048).unwrap();
    for rung in [Rung::Params, Rung::Update, Rung::Instantiate] {
        let name = format!("update/{}", format!("{rung:?}").to_lowercase());
        time(group, &name, 2, || {
            for bindings in [&half, &whole] {
                executor
                    .update_from(slot, 0, bindings.clone(), rung)
                    .unwrap();
            }
        });
    }
}

/// The argument that makes this program a worker.
#[cfg(all(feature = "supervise", target_os = "linux"))]
const WORKER: &str = "worker";

/// The same device, in a process of its own.
#[cfg(all(feature = "supervise", target_os = "linux"))]
fn in_worker() -> Arc<dyn Backend> {
    let options = WorkerOptions {
        args: vec![WORKER.into()],
        ..WorkerOptions::default()
    };
    Arc::new(WorkerBackend::open(options).unwrap())
}

fn main() {
    #[cfg(all(feature = "supervise", target_os = "linux"))]
    if std::env::args().nth(1).as_deref() == Some(WORKER) {
        // SAFETY: this program started itself with the argument for it.
        return unsafe { worker::serve(&[("nothing", empty::nothing)]) }.unwrap();
    }
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    empty(&mut criterion);
    cpu(&mut criterion);
    device(&mut criterion);
    criterion.final_summary();
}
