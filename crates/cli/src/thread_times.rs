//! How a run's single threads spend their time: each of them does a work that no other thread does.

use std::time::{Duration, Instant};
use tapeloop_bench::internal::{CpuClock, core_time};

/// The time of a thread, from its first step to its last.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ThreadTime {
    pub wall: Duration,
    /// Processor time; 0 on systems whose clock of a thread is not known.
    pub busy: Duration,
}

/// Measures the thread on which it is started and stopped.
#[derive(Debug)]
pub struct ThreadTimer {
    start: Instant,
    busy: Option<Duration>,
}

impl ThreadTimer {
    pub fn start() -> Self {
        ThreadTimer {
            start: Instant::now(),
            busy: core_time(CpuClock::This),
        }
    }

    /// The time since the start.
    pub fn stop(&self) -> ThreadTime {
        let busy = core_time(CpuClock::This).zip(self.busy);
        ThreadTime {
            wall: self.start.elapsed(),
            busy: busy.map_or(Duration::ZERO, |(now, before)| now.saturating_sub(before)),
        }
    }
}

/// The times of a run's single threads, and what they waited for. What is missing from a thread's wall
/// time are files that it read itself, and cores that were taken by others.
#[derive(Clone, Copy, Debug, Default)]
pub struct SingleThreads {
    /// Lists inputs, and opens archives and packed sets.
    pub list: ThreadTime,
    /// Its wait for the thread that submits.
    pub list_room: Duration,
    /// Passes files to the threads that read, and structures to the engine.
    pub submit: ThreadTime,
    /// Its time from one structure to the next: mostly a wait for files that are being read.
    pub submit_files: Duration,
    /// Takes results, and passes rows to the threads that encode them.
    pub results: ThreadTime,
    /// Its time on results, waits for tables included; the rest it waits for results.
    pub results_taken: Duration,
}

/// An iterator that measures the thread on which it is used, until it is dropped there.
pub struct TimedIterator<I, F: FnMut(ThreadTime, Duration)> {
    inner: I,
    timer: Option<ThreadTimer>,
    waited: Duration,
    done: F,
}

impl<I: Iterator, F: FnMut(ThreadTime, Duration)> TimedIterator<I, F> {
    /// `done` gets the thread's time, and how much of it passed in [`Iterator::next`].
    pub fn new(inner: I, done: F) -> Self {
        TimedIterator {
            inner,
            timer: None,
            waited: Duration::ZERO,
            done,
        }
    }
}

impl<I: Iterator, F: FnMut(ThreadTime, Duration)> Iterator for TimedIterator<I, F> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        self.timer.get_or_insert_with(ThreadTimer::start);
        let start = Instant::now();
        let next = self.inner.next();
        self.waited += start.elapsed();
        next
    }
}

impl<I, F: FnMut(ThreadTime, Duration)> Drop for TimedIterator<I, F> {
    fn drop(&mut self) {
        if let Some(timer) = &self.timer {
            (self.done)(timer.stop(), self.waited);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timed_iterator_tells_of_its_thread_when_it_is_dropped() {
        let mut told = Vec::new();
        drop(TimedIterator::new(0..3, |time, waited| {
            told.push((time, waited))
        }));
        assert!(told.is_empty(), "it was not used");
        let slow = (0..3).inspect(|_| std::thread::sleep(Duration::from_millis(2)));
        let timed = TimedIterator::new(slow, |time, waited| told.push((time, waited)));
        assert_eq!(timed.collect::<Vec<_>>(), [0, 1, 2]);
        let [(time, waited)] = told[..] else {
            panic!("{told:?}");
        };
        assert!(waited >= Duration::from_millis(6) && time.wall >= waited);
        assert!(time.busy <= time.wall);
    }
}
