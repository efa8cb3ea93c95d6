//! Slots going round: free, filled, in flight, done, free again. No threads.

use super::slot::{Done, Failed, Filling, Free, InFlight, Progress, Slot, open_slots};
use crate::backend::{Backend, Backoff};
use crate::error::{Error, Result};
use crate::replay::{Buckets, Choices, Chosen, Policy, Replay};
use crate::workload::Extent;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::trace_span;

/// How to wait for the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// Looks at all slots in flight, over and over: lowest latency, one busy core.
    Spin,
    /// Looks at all slots in flight and sleeps in between, ever longer: for a tenth of
    /// the time since the last slot finished, 1 ms at most. Whichever slot finishes
    /// first comes out first. A wait of 50 ms takes less than 5% of a core.
    #[default]
    Block,
}

/// A slot that left the device, one way or the other.
pub type Finished<B> = Result<Slot<Done<B>>, Box<Failed<B>>>;

/// Slots for whole batches that the caller forms: acquired, filled in place,
/// submitted, polled, and released. `B` is what the caller attaches to a batch.
///
/// Nothing here starts a thread, or takes device or pinned memory once it is
/// built.
pub struct Ring<B> {
    free: Vec<Slot<Free>>,
    in_flight: InFlightSet<B>,
    buckets: Arc<Buckets>,
    /// Of each device.
    choices: Vec<Choices>,
    wait: Wait,
}

impl<B> Ring<B> {
    /// Takes the memory of `slots` slots on `backend` and makes their buckets
    /// ready.
    ///
    /// # Errors
    /// A policy whose settings do not go together, a kernel that cannot be
    /// loaded, memory that is not there.
    pub fn new(
        backend: &Arc<dyn Backend>,
        buckets: &Arc<Buckets>,
        slots: usize,
        policy: &Policy,
        wait: Wait,
    ) -> Result<Self> {
        let mut free = Vec::with_capacity(slots);
        let choices = open_slots(backend, buckets, slots, policy, 0, &mut free)?;
        Ok(Ring::of(free, buckets, vec![choices], wait))
    }

    /// A ring of open slots.
    pub(crate) fn of(
        free: Vec<Slot<Free>>,
        buckets: &Arc<Buckets>,
        choices: Vec<Choices>,
        wait: Wait,
    ) -> Self {
        Ring {
            in_flight: InFlightSet::with_capacity(free.len()),
            free,
            buckets: Arc::clone(buckets),
            choices,
            wait,
        }
    }

    /// A free slot to fill in place; `None` while all are in use, or gone.
    pub fn acquire(&mut self) -> Option<Slot<Filling>> {
        self.free.pop().map(Slot::begin)
    }

    /// Gives a filled slot to the device as a batch that spans `live`.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) if no bucket holds `live`, or
    /// what the device says; with the batch. [`Ring::release`] takes that too.
    pub fn submit(
        &mut self,
        slot: Slot<Filling>,
        live: Extent,
        batch: B,
    ) -> Result<Replay, Box<Failed<B>>> {
        self.give(slot, live, batch, false)
    }

    /// [`Ring::submit`], with timestamps: once it is done, [`Slot::timestamps`] are of this
    /// batch if [`Replay::timed`] says so. It costs some microseconds more.
    ///
    /// # Errors
    /// As [`Ring::submit`].
    pub fn submit_timed(
        &mut self,
        slot: Slot<Filling>,
        live: Extent,
        batch: B,
    ) -> Result<Replay, Box<Failed<B>>> {
        self.give(slot, live, batch, true)
    }

    fn give(
        &mut self,
        slot: Slot<Filling>,
        live: Extent,
        batch: B,
        timed: bool,
    ) -> Result<Replay, Box<Failed<B>>> {
        let filled = slot.filled(batch, live, Arc::clone(&self.buckets));
        let (slot, replay) = filled.submit(timed)?;
        self.in_flight.insert(slot);
        Ok(replay)
    }

    /// Looks at every slot in flight once, oldest first, and gives out one that
    /// has finished.
    pub fn poll(&mut self) -> Option<Finished<B>> {
        self.in_flight.poll()
    }

    /// Waits until one has finished; `None` if nothing is in flight.
    pub fn wait(&mut self) -> Option<Finished<B>> {
        self.in_flight.wait(self.wait)
    }

    /// Frees a slot for the next batch; gives back what was attached to it, and
    /// the device's failure if it had one.
    ///
    /// After a failure it waits for what of the batch the device was given. A slot
    /// that cannot be waited for is dropped, and the ring has one slot less; so bring
    /// a supervised device back first, with [`Backend::revive`].
    pub fn release(&mut self, outcome: Finished<B>) -> (B, Option<Error>) {
        match outcome {
            Ok(done) => {
                let (slot, batch) = done.release();
                self.free.push(slot);
                (batch, None)
            }
            Err(failed) => {
                let Failed { error, batch, slot } = *failed;
                self.free.extend(slot.quiet());
                (batch, Some(error))
            }
        }
    }

    /// A free slot that is usable; drops those that are not.
    pub(crate) fn take_free(
        &mut self,
        is_usable: impl Fn(&Slot<Free>) -> bool,
    ) -> Option<Slot<Free>> {
        std::iter::from_fn(|| self.free.pop()).find(is_usable)
    }

    pub(crate) fn put_free(&mut self, slot: Slot<Free>) {
        self.free.push(slot);
    }

    pub(crate) fn insert(&mut self, slot: Slot<InFlight<B>>) {
        self.in_flight.insert(slot);
    }

    /// What [`Mode::Auto`](crate::replay::Mode::Auto) chose so far, by bucket; nothing under
    /// another policy.
    pub fn chosen(&self) -> Vec<Chosen> {
        Choices::of_devices(&self.choices)
    }

    /// Batches that the device has.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }
}

/// Slots on the device, oldest first; they may finish in any order.
pub(crate) struct InFlightSet<B> {
    slots: VecDeque<Slot<InFlight<B>>>,
}

impl<B> InFlightSet<B> {
    pub(crate) fn with_capacity(slots: usize) -> Self {
        InFlightSet {
            slots: VecDeque::with_capacity(slots),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(crate) fn insert(&mut self, slot: Slot<InFlight<B>>) {
        self.slots.push_back(slot);
    }

    /// Looks at every slot once, oldest first, and gives out one that finished.
    pub(crate) fn poll(&mut self) -> Option<Finished<B>> {
        for age in 0..self.slots.len() {
            match self.slots.remove(age)?.poll() {
                Progress::Pending(slot) => self.slots.insert(age, slot),
                Progress::Done(slot) => return Some(Ok(slot)),
                Progress::Failed(failed) => return Some(Err(failed)),
            }
        }
        None
    }

    fn wait(&mut self, wait: Wait) -> Option<Finished<B>> {
        let _span = trace_span!("wait").entered();
        let backoff = Backoff::new(Instant::now());
        while !self.is_empty() {
            if let Some(finished) = self.poll() {
                return Some(finished);
            }
            match wait {
                Wait::Spin => std::hint::spin_loop(),
                Wait::Block => backoff.wait(Instant::now(), Duration::MAX),
            }
        }
        None
    }
}

/// A batch with a deadline on a supervised device is waited for: the device outlives its
/// device slots, and nothing else would give up work that does not end.
impl<B> Drop for InFlightSet<B> {
    fn drop(&mut self) {
        let is_left = |slot: &Slot<_>| slot.has_deadline() && slot.backend().is_supervised();
        self.slots.retain(is_left);
        let finished = std::iter::from_fn(|| self.wait(Wait::Block));
        // What is attached to the batches is dropped when all have finished.
        drop(finished.collect::<Vec<_>>());
    }
}

/// Restores the order of numbered things. It holds at most what is missing its
/// predecessors, so with slots as the things, at most one less than there are.
pub(crate) struct Reorder<T> {
    next: u64,
    held: Vec<(u64, T)>,
}

impl<T> Reorder<T> {
    pub(crate) fn new() -> Self {
        Reorder {
            next: 0,
            held: Vec::new(),
        }
    }

    pub(crate) fn insert(&mut self, number: u64, thing: T) {
        debug_assert!(number >= self.next, "numbers come once");
        self.held.push((number, thing));
    }

    /// The next in order, once it is there.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let position = self
            .held
            .iter()
            .position(|(number, _)| *number == self.next)?;
        self.next += 1;
        Some(self.held.swap_remove(position).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_come_out_in_the_order_of_their_numbers() {
        let mut reorder = Reorder::new();
        let mut out = Vec::new();
        for number in [2, 0, 1, 4, 3] {
            reorder.insert(number, number);
            while let Some(next) = reorder.pop() {
                out.push(next);
            }
        }
        assert_eq!(out, [0, 1, 2, 3, 4]);
    }
}
