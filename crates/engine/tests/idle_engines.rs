//! Idle engines take no processor time and a thread each, on a device that does nothing. The only test of its
//! process, since it counts all threads.
#![cfg(unix)]

use rayon::{ThreadPool, ThreadPoolBuilder};
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::time::Duration;
use tapeloop_engine::{Engine, EngineConfig};
use tapeloop_test_support::empty::{EmptyBackend, EmptyKernels};

const ENGINES: usize = 48;

fn engine(pool: &Arc<ThreadPool>) -> Engine<EmptyKernels> {
    let config = EngineConfig::new([1]);
    let backends = [EmptyBackend::shared()];
    Engine::new(EmptyKernels::new(4), &backends, Arc::clone(pool), &config).unwrap()
}

/// The number of threads of this process; 0 where the system does not list them.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

/// Processor time of the process so far.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn idle_engines_take_a_thread_each_and_no_processor_time() {
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    let before = threads();
    let engines: Vec<Engine<EmptyKernels>> = (0..ENGINES).map(|_| engine(&pool)).collect();
    if before > 0 {
        assert_eq!(threads() - before, ENGINES);
    }
    for engine in &engines {
        engine.submit(7).unwrap().wait().unwrap().result.unwrap();
    }
    // Their threads spin for a while after the last event, then sleep.
    std::thread::sleep(Duration::from_millis(100));
    let before = processor_time();
    std::thread::sleep(Duration::from_secs(1));
    let taken = processor_time() - before;
    // A thread that wakes every millisecond takes more than that.
    assert!(taken < Duration::from_millis(5), "{taken:?} in a second");
}
