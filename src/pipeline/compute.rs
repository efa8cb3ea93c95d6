//! Stage two: waits for the slots in flight on one device, in the order in which they finish.

use super::ring::{Finished, InFlightSet, Wait};
use super::slot::{Failed, Flight, Free, Slot};
use super::sync::{Receiver, receive_within, yield_now};
use crate::backend::Backoff;
use std::time::Instant;

/// What stage one passes to stage two of a device.
pub(super) enum ToDevice<B> {
    Flight(Flight<B>),
    /// A free slot that cannot be used while the device restarts.
    Parked(Slot<Free>),
}

/// Yields finished slots of one device until no more are submitted and all have finished.
pub(super) struct Completions<B> {
    submitted: Receiver<ToDevice<B>>,
    /// Slots whose batch was not submitted.
    failed: Vec<Box<Failed<B>>>,
    pub(super) parked: Vec<Slot<Free>>,
    in_flight: InFlightSet<B>,
    wait: Wait,
    backoff: Backoff,
}

impl<B> Completions<B> {
    pub(super) fn new(submitted: Receiver<ToDevice<B>>, slots: usize, wait: Wait) -> Self {
        Completions {
            submitted,
            failed: Vec::new(),
            parked: Vec::new(),
            in_flight: InFlightSet::with_capacity(slots),
            wait,
            backoff: Backoff::new(Instant::now()),
        }
    }

    /// Receives submitted slots. Blocks if there is nothing else to wait for. False once nothing
    /// more will be submitted and all slots have finished.
    fn take_in(&mut self) -> bool {
        let is_idle = self.in_flight.is_empty() && self.failed.is_empty();
        if is_idle && self.parked.is_empty() {
            match self.submitted.recv() {
                Ok(submitted) => self.sort(submitted),
                Err(_) => return false,
            }
        }
        self.take_submitted();
        true
    }

    fn take_submitted(&mut self) {
        while let Ok(submitted) = self.submitted.try_recv() {
            self.sort(submitted);
        }
    }

    fn sort(&mut self, submitted: ToDevice<B>) {
        self.backoff.reset(Instant::now());
        match submitted {
            ToDevice::Flight(Ok(slot)) => self.in_flight.insert(slot),
            ToDevice::Flight(Err(failed)) => self.failed.push(failed),
            ToDevice::Parked(slot) => self.parked.push(slot),
        }
    }

    /// All slots that have finished, without waiting. After the device was lost, that includes all
    /// batches that were lost with it.
    pub(super) fn all_finished(&mut self) -> Vec<Finished<B>> {
        self.take_submitted();
        let mut finished: Vec<_> = self.failed.drain(..).map(Err).collect();
        finished.extend(std::iter::from_fn(|| self.in_flight.poll()));
        finished
    }

    /// Sleeps for a while, or until a slot is submitted.
    fn pause(&mut self) {
        match (self.wait, self.backoff.pause(Instant::now())) {
            (Wait::Block, Some(pause)) => {
                if let Some(submitted) = receive_within(&self.submitted, pause) {
                    self.sort(submitted);
                }
            }
            // The thread that fills slots may need this core.
            (Wait::Spin, _) | (Wait::Block, None) => yield_now(),
        }
    }

    /// The next slot that finished, or [`Next::Parked`] if there are slots in
    /// [`Completions::parked`]. `None` at the end.
    pub(super) fn next(&mut self) -> Option<Next<B>> {
        while self.take_in() {
            if !self.parked.is_empty() {
                return Some(Next::Parked);
            }
            if let Some(failed) = self.failed.pop() {
                return Some(Next::Finished(Err(failed)));
            }
            if let Some(finished) = self.in_flight.poll() {
                self.backoff.reset(Instant::now());
                return Some(Next::Finished(finished));
            }
            self.pause();
        }
        None
    }
}

/// The next event of stage two.
pub(super) enum Next<B> {
    Finished(Finished<B>),
    /// There are parked slots to give back.
    Parked,
}
