//! Waiting: how long a loop that polls for completions sleeps between two rounds, and receiving what
//! tasks of a pool send.

#[cfg(not(loom))]
use crossbeam_channel::RecvTimeoutError;
use crossbeam_channel::{Receiver, RecvError, TryRecvError};
use rayon::ThreadPool;
use std::time::{Duration, Instant};

/// How long the loop keeps its core after the last event: longer than a batch of small kernels takes
/// (`DECISIONS.md#measured`), as a sleep of Linux ends 50 us late by default.
const SPIN: Duration = Duration::from_micros(50);
/// A sleep is the time waited so far divided by this, so a completion is seen at most a tenth of the wait
/// late.
const SLEEP_DIVISOR: u32 = 10;
/// The longest sleep, so that the end of a long batch is not seen much later either.
const SLEEP_MAX: Duration = Duration::from_millis(1);

/// The waiting policy of a loop that polls for what nothing can wait for, such as whichever of several CUDA
/// events comes first.
///
/// For 50 us after the last event the loop spins, so that short batches are seen at
/// once. From then on it sleeps between two rounds for a tenth of the time waited so
/// far, and for 1 ms at most: a completion is seen at most a tenth of the wait late,
/// and a wait of 50 ms takes about 100 rounds.
///
/// The caller passes the time, so that tests need no clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    last_event: Instant,
}

impl Backoff {
    /// A wait that begins at `now`.
    pub(crate) fn new(now: Instant) -> Self {
        Backoff { last_event: now }
    }

    /// Starts the wait again: at `now` something finished, or new work was submitted.
    pub(crate) fn reset(&mut self, now: Instant) {
        self.last_event = now;
    }

    /// How long to sleep before the next round; `None` to spin.
    pub(crate) fn pause(&self, now: Instant) -> Option<Duration> {
        let waited = now.saturating_duration_since(self.last_event);
        (waited >= SPIN).then(|| (waited / SLEEP_DIVISOR).min(SLEEP_MAX))
    }

    /// Spins or sleeps until the next round, for `longest` at most.
    pub(crate) fn wait(&self, now: Instant, longest: Duration) {
        match self.pause(now) {
            None => std::hint::spin_loop(),
            Some(pause) => std::thread::sleep(pause.min(longest)),
        }
    }
}

/// Sleeps for `pause`, or until a message arrives, which it returns.
#[cfg(not(loom))]
pub(crate) fn receive_within<T>(receiver: &Receiver<T>, pause: Duration) -> Option<T> {
    match receiver.recv_timeout(pause) {
        Ok(message) => Some(message),
        Err(RecvTimeoutError::Timeout) => None,
        // Nothing can wake the thread any more, and its caller polls: it must not spin.
        Err(RecvTimeoutError::Disconnected) => {
            std::thread::sleep(pause);
            None
        }
    }
}

/// Work on fewer bytes than this runs on the thread that has it: handing it to another thread takes
/// longer. It is the bound for uploads that the CPU backend computes from, and for batches that are
/// written or read.
pub(crate) const HANDED_OVER_BYTES_MIN: usize = 1 << 16;

/// Receives what a task of `pool` sends. A thread of the pool runs other tasks meanwhile, as the
/// task may wait for this very thread.
///
/// # Errors
/// If the sender was dropped.
pub(crate) fn receive_helping<T>(
    receiver: &Receiver<T>,
    pool: &ThreadPool,
) -> Result<T, RecvError> {
    loop {
        match receiver.try_recv() {
            Ok(value) => return Ok(value),
            Err(TryRecvError::Empty) if pool.yield_now().is_some() => std::thread::yield_now(),
            // Nothing to run for this thread, which sleeps; or an error, which `recv` returns too.
            Err(_) => return receiver.recv(),
        }
    }
}

/// Runs tasks of `pool` until `is_over`, as the thread of an engine may wait for one of them. Does
/// nothing on a thread that is not of the pool.
#[cfg(not(loom))]
pub(crate) fn help_until(pool: &ThreadPool, is_over: impl Fn() -> bool) {
    let mut backoff = Backoff::new(Instant::now());
    while pool.current_thread_index().is_some() && !is_over() {
        match pool.yield_now() {
            Some(rayon::Yield::Executed) => backoff.reset(Instant::now()),
            _ => backoff.wait(Instant::now(), Duration::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(count: u64) -> Duration {
        Duration::from_micros(count)
    }

    #[test]
    fn spins_first_then_sleeps_a_tenth_of_the_wait_up_to_a_limit() {
        let start = Instant::now();
        let backoff = Backoff::new(start);
        for (waited, pause) in [
            (0, None),
            (49, None),
            (50, Some(5)),
            (400, Some(40)),
            (10_000, Some(1_000)),
            (60_000_000, Some(1_000)),
        ] {
            assert_eq!(
                backoff.pause(start + micros(waited)),
                pause.map(micros),
                "after {waited} us"
            );
        }
    }

    #[test]
    fn an_event_starts_the_wait_again() {
        let start = Instant::now();
        let mut backoff = Backoff::new(start);
        let event = start + micros(5_000);
        assert_eq!(backoff.pause(event), Some(micros(500)));
        backoff.reset(event);
        assert_eq!(backoff.pause(event), None);
        assert_eq!(backoff.pause(event + micros(100)), Some(micros(10)));
        // A clock that was read before the event is no wait.
        assert_eq!(backoff.pause(start), None);
    }

    #[test]
    fn a_wait_of_fifty_milliseconds_takes_few_rounds() {
        let start = Instant::now();
        let backoff = Backoff::new(start);
        let (mut now, mut rounds) = (start + SPIN, 0);
        while now < start + micros(50_000) {
            now += backoff.pause(now).expect("the spin is over");
            rounds += 1;
        }
        assert!(rounds < 120, "{rounds} rounds");
    }
}
