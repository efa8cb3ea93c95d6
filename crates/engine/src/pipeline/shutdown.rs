//! [`Engine::shutdown`]: ends an engine and waits for that no longer than a given time.

use super::engine::Engine;
use super::reentrancy::is_inside_any;
use super::sync::JoinHandle;
use crate::backend::{Backoff, runs_twin};
use crate::error::{Error, ErrorKind};
use crate::workload::Workload;
use std::fmt;
use std::time::{Duration, Instant};

impl<W: Workload> Engine<W> {
    /// Takes no more items, waits until those that were submitted are answered, and frees everything.
    ///
    /// If that is not done after `timeout`, the items whose batches have no slot yet are answered with
    /// [`ErrorKind::Closed`], each with its ticket, and the batches that have a slot are left to the
    /// device. In the engine's own code it waits for nothing.
    ///
    /// # Errors
    /// The engine with the batches that the device still works on; in a child of the process that made it,
    /// the engine.
    pub fn shutdown(self, timeout: Duration) -> Result<(), Unfinished<W>> {
        let timeout = permitted(timeout);
        self.close();
        if !self.is_in_child() {
            self.dispatcher().close();
        }
        let unfinished = match self.join_within(timeout) {
            Ok(()) => return Ok(()),
            Err(unfinished) if unfinished.0.is_in_child() => return Err(unfinished),
            Err(unfinished) => unfinished,
        };
        let message = if timeout.is_zero() {
            "the engine was shut down without a wait".to_owned()
        } else {
            format!("the engine was shut down, and not done after {timeout:?}")
        };
        let reason = Error::new(ErrorKind::Closed, message);
        unfinished.0.dispatcher().end_and_answer_waiting(reason);
        Err(unfinished)
    }

    /// Drops the engine once its threads have ended. The error has the engine, if its threads still
    /// run after `timeout` or are those of another process.
    fn join_within(mut self, timeout: Duration) -> Result<(), Unfinished<W>> {
        let start = Instant::now();
        let (dispatcher, shared) = (self.dispatcher(), self.shared());
        let backoff = Backoff::new(start);
        let has_ended = |thread: &JoinHandle<()>| thread.is_finished();
        let is_over = || self.threads.iter().all(has_ended) && dispatcher.ends_timer();
        if !shared.ended.process().is_current() {
            return Err(Unfinished(Box::new(self)));
        }
        while !is_over() {
            let now = Instant::now();
            let left = timeout.saturating_sub(now - start);
            if left.is_zero() {
                self.is_unfinished = true;
                return Err(Unfinished(Box::new(self)));
            }
            // The device may compute on the pool, of which this thread may be the only one.
            if shared.pool.yield_now() != Some(rayon::Yield::Executed) {
                backoff.wait(now, left);
            }
        }
        self.is_unfinished = false;
        Ok(())
    }
}

/// `timeout`, or zero in the engine's own code, as the engine's threads may wait for this one.
fn permitted(timeout: Duration) -> Duration {
    if is_inside_any() || runs_twin() {
        Duration::ZERO
    } else {
        timeout
    }
}

/// An engine that [`Engine::shutdown`] did not end in time, because its device still works on batches that
/// have a slot. Dropping it waits for nothing: the engine's threads end on their own when the device
/// is done, and the tickets are answered then.
pub struct Unfinished<W: Workload>(Box<Engine<W>>);

impl<W: Workload> Unfinished<W> {
    /// The number of batches that are not answered.
    pub fn batches(&self) -> u64 {
        self.0.dispatcher().unanswered()
    }

    /// Waits once more.
    ///
    /// # Errors
    /// Itself if the device is not done after `timeout`, and in a child process.
    pub fn wait(self, timeout: Duration) -> Result<(), Unfinished<W>> {
        self.0.join_within(permitted(timeout))
    }
}

impl<W: Workload> fmt::Debug for Unfinished<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unfinished({} batches)", self.batches())
    }
}
