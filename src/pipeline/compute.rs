//! Stage two: slots on the device, out again in whatever order they finish.

use super::engine::SLOTS_MAX;
use super::ring::{Finished, InFlightSet, Wait};
use super::slot::Failed;
use super::stages::Flight;
use super::sync::{Receiver, yield_now};

/// Yields finished slots until no more are submitted and all have finished.
pub(crate) struct Completions<B> {
    submitted: Receiver<Flight<B>>,
    /// Never on the device.
    failed: Vec<Box<Failed<B>>>,
    in_flight: InFlightSet<B>,
    wait: Wait,
}

impl<B> Completions<B> {
    pub(super) fn new(submitted: Receiver<Flight<B>>, wait: Wait) -> Self {
        Completions {
            submitted,
            failed: Vec::new(),
            in_flight: InFlightSet::with_capacity(SLOTS_MAX),
            wait,
        }
    }

    /// Takes in what was submitted; waits for it when nothing else is there to
    /// wait for. False once there will be nothing more.
    fn take_in(&mut self) -> bool {
        if self.in_flight.is_empty() && self.failed.is_empty() {
            match self.submitted.recv() {
                Ok(submitted) => self.sort(submitted),
                Err(_) => return false,
            }
        }
        while let Ok(submitted) = self.submitted.try_recv() {
            self.sort(submitted);
        }
        true
    }

    fn sort(&mut self, submitted: Flight<B>) {
        match submitted {
            Ok(slot) => self.in_flight.insert(slot),
            Err(failed) => self.failed.push(failed),
        }
    }

    /// All that has finished by now, without waiting: after a loss of a device, at
    /// least what was lost with it.
    pub(super) fn all_finished(&mut self) -> Vec<Finished<B>> {
        while let Ok(submitted) = self.submitted.try_recv() {
            self.sort(submitted);
        }
        let mut finished: Vec<_> = self.failed.drain(..).map(Err).collect();
        finished.extend(std::iter::from_fn(|| self.in_flight.poll()));
        finished
    }
}

impl<B> Iterator for Completions<B> {
    type Item = Finished<B>;

    fn next(&mut self) -> Option<Finished<B>> {
        loop {
            if !self.take_in() {
                return None;
            }
            if let Some(failed) = self.failed.pop() {
                return Some(Err(failed));
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
