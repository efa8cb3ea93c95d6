//! Processor time of the kinds of work in a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tapeloop_bench::internal::{Threads, core_time};

/// The processor time that threads have spent on one kind of work. Clones share it. It stays 0 on
/// systems whose clock of a thread is not known.
#[derive(Clone, Debug, Default)]
pub struct CoreTime(Arc<AtomicU64>);

impl CoreTime {
    /// Does `work`, and adds the processor time that this thread has spent on it.
    pub fn measure<T>(&self, work: impl FnOnce() -> T) -> T {
        let start = core_time(Threads::This);
        let done = work();
        if let (Some(start), Some(end)) = (start, core_time(Threads::This)) {
            let spent = end.saturating_sub(start).as_nanos() as u64;
            self.0.fetch_add(spent, Relaxed);
        }
        done
    }

    /// All of it so far.
    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.0.load(Relaxed))
    }
}
