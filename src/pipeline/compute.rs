//! Stage two: slots on the device, out again in whatever order they finish.

use super::engine::SLOTS_MAX;
use super::ring::{Finished, InFlightSet, Wait};
use super::slot::{InFlight, Slot};
use super::sync::{Receiver, yield_now};

/// Yields finished slots until no more are submitted and all have finished.
pub(crate) struct Completions<B> {
    submitted: Receiver<Slot<InFlight<B>>>,
    in_flight: InFlightSet<B>,
    wait: Wait,
}

impl<B> Completions<B> {
    pub(super) fn new(submitted: Receiver<Slot<InFlight<B>>>, wait: Wait) -> Self {
        Completions {
            submitted,
            in_flight: InFlightSet::with_capacity(SLOTS_MAX),
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
        while let Ok(slot) = self.submitted.try_recv() {
            self.in_flight.insert(slot);
        }
        true
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
                Wait::Spin => yield_now(),
            }
        }
    }
}
