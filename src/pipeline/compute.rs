//! Stage two: slots on the device, out again in whatever order they finish.

use super::engine::Wait;
use super::ring::{Finished, InFlightSet};
use super::slot::{InFlight, Slot};
use crossbeam_channel::{Receiver, TryRecvError};

/// Yields finished slots until no more are submitted and all have finished.
pub(crate) struct Completions<B> {
    submitted: Receiver<Slot<InFlight<B>>>,
    in_flight: InFlightSet<B>,
    wait: Wait,
}

impl<B> Completions<B> {
    pub(crate) fn new(submitted: Receiver<Slot<InFlight<B>>>, wait: Wait) -> Self {
        Completions {
            submitted,
            in_flight: InFlightSet::new(),
            wait,
        }
    }

    /// Takes in what was submitted; waits for it when nothing else is there to
    /// wait for. False once there will be nothing more.
    fn take_in(&mut self) -> bool {
        if self.in_flight.is_empty() {
            match self.submitted.recv() {
                Ok(slot) => self.in_flight.insert(slot),
                Err(_) => return false,
            }
        }
        loop {
            match self.submitted.try_recv() {
                Ok(slot) => self.in_flight.insert(slot),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return true,
            }
        }
    }
}

impl<B> Iterator for Completions<B> {
    type Item = Finished<B>;

    fn next(&mut self) -> Option<Finished<B>> {
        loop {
            if !self.take_in() {
                return None;
            }
            if let Some(finished) = self.in_flight.poll() {
                return Some(finished);
            }
            match self.wait {
                Wait::Block => return self.in_flight.wait_oldest(),
                // Another thread of this core may be the one that fills slots.
                Wait::Spin => std::thread::yield_now(),
            }
        }
    }
}
