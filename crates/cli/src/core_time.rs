//! Processor time of the kinds of work in a run, and of the whole machine.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tapeloop_bench::internal::{CpuClock, core_time};

/// The processor time that threads have spent on one kind of work. Clones share it. It stays 0 on
/// systems whose clock of a thread is not known.
#[derive(Clone, Debug, Default)]
pub struct CoreTime(Arc<AtomicU64>);

impl CoreTime {
    /// Does `work`, and adds the processor time that this thread has spent on it.
    pub fn measure<T>(&self, work: impl FnOnce() -> T) -> T {
        let start = core_time(CpuClock::This);
        let done = work();
        if let (Some(start), Some(end)) = (start, core_time(CpuClock::This)) {
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

/// The time of all cores of the machine, whatever program uses them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MachineTime {
    /// Seconds in which a core had something to do.
    pub busy: f64,
    /// Seconds of all cores.
    pub all: f64,
}

impl MachineTime {
    /// The times since the machine was started; `None` on systems other than Linux.
    pub fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// The times between `before` and this.
    pub fn since(self, before: MachineTime) -> Self {
        MachineTime {
            busy: (self.busy - before.busy).max(0.0),
            all: (self.all - before.all).max(0.0),
        }
    }

    /// Reads the first line of `/proc/stat`, whose columns proc_stat(5) describes.
    fn parse(stat: &str) -> Option<Self> {
        /// Linux counts in this unit on all architectures.
        const TICKS_PER_SECOND: f64 = 100.0;
        let mut columns = stat
            .lines()
            .next()?
            .strip_prefix("cpu ")?
            .split_whitespace();
        let mut next = || columns.next()?.parse::<f64>().ok();
        let [
            user,
            nice,
            system,
            idle,
            waiting,
            interrupts,
            soft_interrupts,
            stolen,
        ] = [(); 8].map(|()| next());
        // Time that another virtual machine had is none that this one could use.
        let busy = user? + nice? + system? + interrupts? + soft_interrupts? + stolen?;
        Some(MachineTime {
            busy: busy / TICKS_PER_SECOND,
            all: (busy + idle? + waiting?) / TICKS_PER_SECOND,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_all_cores_is_that_of_the_first_line() {
        let stat = "cpu  100 20 30 400 50 1 2 47 9 9\ncpu0 1 2 3 4 5 6 7 8 9 9\n";
        let time = MachineTime::parse(stat).unwrap();
        assert_eq!(
            time,
            MachineTime {
                busy: 2.0,
                all: 6.5
            }
        );
        assert_eq!(
            time.since(time),
            MachineTime {
                busy: 0.0,
                all: 0.0
            }
        );
        for other in ["", "cpu  1 2 3", "intr 1 2 3 4 5 6 7 8"] {
            assert_eq!(MachineTime::parse(other), None, "{other}");
        }
    }
}
