//! [`Ring`]: slots that are filled, submitted, waited for and freed again. No threads.

use super::config::check_slots;
use super::slot::{Done, Failed, Filling, Free, InFlight, Progress, Slot, SlotCount, open_slots};
use crate::backend::{Backend, Backoff};
use crate::error::{Error, Result};
use crate::replay::{Buckets, Policy, Replay};
use crate::workload::Extent;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::trace_span;

/// How to wait for the device.
///
/// ```
/// use tapeloop_engine::{EngineConfig, Wait};
///
/// let mut config = EngineConfig::new([1 << 20]);
/// assert_eq!(config.wait, Wait::Block);
/// config.wait = Wait::Spin;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// Polls all slots in flight without a pause: lowest latency, one busy core.
    Spin,
    /// Polls all slots in flight and sleeps between polls for a tenth of the time that the wait has taken, at
    /// most 1 ms, after 50 us without a pause. A wait of 50 ms takes less than 5% of a core.
    #[default]
    Block,
}

/// A slot that has finished, or failed.
pub type Finished<B> = Result<Slot<Done<B>>, Box<Failed<B>>>;

/// Slots for batches that the caller forms: acquire a slot, fill it in place, submit it, poll or
/// wait, and release it. `B` is what the caller attaches to a batch.
///
/// A ring starts no threads, and allocates device and pinned memory only when it is built.
pub struct Ring<B> {
    free: Vec<Slot<Free>>,
    in_flight: InFlightSet<B>,
    wait: Wait,
}

impl<B> Ring<B> {
    /// Allocates the memory of `slots` slots on `backend`, and makes their buckets ready as far as the policy
    /// says so ([`Policy::warm_up`], [`Policy::ready_max`]). [`Ring::submit`] makes the others ready, with the
    /// same errors.
    ///
    /// # Errors
    /// - [`ErrorKind::Config`](crate::ErrorKind::Config) for a policy that is not valid, and for
    ///   no slots or more than [`SLOTS_MAX`](super::SLOTS_MAX).
    /// - [`ErrorKind::Kernel`](crate::ErrorKind::Kernel) for a kernel that cannot be loaded.
    /// - [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if memory runs out.
    /// - [`ErrorKind::Device`](crate::ErrorKind::Device) if a driver call fails.
    /// - [`ErrorKind::Mismatch`](crate::ErrorKind::Mismatch) for a graph that differs from the recording.
    /// - [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) for result buffers on a supervised device.
    /// - [`ErrorKind::Usage`](crate::ErrorKind::Usage) in a child of the process that opened the backend.
    pub fn new(
        backend: &Arc<dyn Backend>,
        buckets: &Arc<Buckets>,
        slots: usize,
        policy: &Policy,
        wait: Wait,
    ) -> Result<Self> {
        check_slots(slots)?;
        let mut free = Vec::with_capacity(slots);
        let count = SlotCount {
            all: slots,
            urgent: 0,
        };
        open_slots(backend, buckets, count, policy, 0, &mut free)?;
        Ok(Ring::from_slots(free, wait))
    }

    /// A ring of slots that are open.
    pub(crate) fn from_slots(free: Vec<Slot<Free>>, wait: Wait) -> Self {
        Ring {
            in_flight: InFlightSet::with_capacity(free.len()),
            free,
            wait,
        }
    }

    /// Takes a free slot to fill in place; `None` while all slots are in use or lost, and in a child of the
    /// process that made the ring.
    pub fn acquire(&mut self) -> Option<Slot<Filling>> {
        self.free.last()?.check_process().ok()?;
        let mut slot = self.free.pop()?.begin();
        // Those of a batch that was filled and cancelled.
        slot.clear_inputs();
        Some(slot)
    }

    /// Submits a filled slot to the device as a batch of extent `live`.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) if no bucket holds `live`, or if `live` does not hold
    /// the extent in the batch's header ([`Slot::write_header`]), or the error of the device. [`Failed`]
    /// holds the batch; give it to [`Ring::release`].
    pub fn submit(
        &mut self,
        slot: Slot<Filling>,
        live: Extent,
        batch: B,
    ) -> Result<Replay, Box<Failed<B>>> {
        self.submit_filled(slot, live, batch, false)
    }

    /// [`Ring::submit`] with timestamps. If [`Replay::timed`] is true, [`Slot::timestamps`] returns
    /// those of this batch when it is done. Timestamps cost some microseconds, except
    /// with [`Mode::Resident`](crate::replay::Mode::Resident): a loop notes them for each batch.
    ///
    /// # Errors
    /// The errors of [`Ring::submit`].
    pub fn submit_timed(
        &mut self,
        slot: Slot<Filling>,
        live: Extent,
        batch: B,
    ) -> Result<Replay, Box<Failed<B>>> {
        self.submit_filled(slot, live, batch, true)
    }

    /// Submits a batch that the caller has written into the slot.
    fn submit_filled(
        &mut self,
        slot: Slot<Filling>,
        live: Extent,
        batch: B,
        timed: bool,
    ) -> Result<Replay, Box<Failed<B>>> {
        let filled = slot.with_batch(batch, live);
        let (slot, replay) = filled.submit(timed)?;
        self.in_flight.insert(slot);
        Ok(replay)
    }

    /// Polls every slot in flight once, oldest first, until one has finished, and returns that one.
    pub fn poll(&mut self) -> Option<Finished<B>> {
        self.in_flight.poll()
    }

    /// Waits until a slot has finished; `None` if no slot is in flight.
    pub fn wait(&mut self) -> Option<Finished<B>> {
        self.in_flight.wait(self.wait)
    }

    /// Frees a slot for the next batch. Returns what was attached to it, and its error if it
    /// failed.
    ///
    /// After a failure this waits until no part of the batch is on the device. A slot for which
    /// that is impossible is dropped, and the ring has one slot less. Restart a supervised device
    /// with [`Backend::revive`] first.
    pub fn release(&mut self, outcome: Finished<B>) -> (B, Option<Error>) {
        match outcome {
            Ok(done) => {
                let (slot, batch) = done.release();
                self.free.push(slot);
                (batch, None)
            }
            Err(failed) => {
                let Failed {
                    error,
                    batch,
                    mut slot,
                } = *failed;
                slot.clear_inputs();
                self.free.extend(slot.quiet());
                (batch, Some(error))
            }
        }
    }

    /// Takes a free slot that is usable, and drops those that are not.
    pub(crate) fn take_free(
        &mut self,
        is_usable: impl Fn(&Slot<Free>) -> bool,
    ) -> Option<Slot<Free>> {
        std::iter::from_fn(|| self.free.pop()).find(is_usable)
    }

    #[doc(hidden)]
    pub fn put_free(&mut self, slot: Slot<Free>) {
        self.free.push(slot);
    }

    pub(crate) fn insert(&mut self, slot: Slot<InFlight<B>>) {
        self.in_flight.insert(slot);
    }

    /// The number of batches in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }
}

/// Slots in flight, oldest first. They may finish in any order.
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

    /// Polls every slot once, oldest first, until one has finished, and returns that one.
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

    /// Polls until a batch has finished; `None` if none is in flight.
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

/// Waits for batches with a deadline, but for those of the CPU. A supervised device outlives its slots, and
/// nothing else would stop work that does not end; on another one a slot waits for its work when it is
/// dropped, without a deadline.
impl<B> Drop for InFlightSet<B> {
    fn drop(&mut self) {
        let is_left = |slot: &Slot<_>| {
            let is_cpu = || slot.backend().device().shares_host_memory;
            let is_waited_for = || slot.backend().is_supervised() || !is_cpu();
            slot.has_deadline() && slot.check_process().is_ok() && is_waited_for()
        };
        self.slots.retain(is_left);
        let finished = std::iter::from_fn(|| self.wait(Wait::Block));
        // Drops what is attached to the batches only when all have finished.
        drop(finished.collect::<Vec<_>>());
    }
}

/// Restores the order of numbered values. Holds only values whose predecessors are missing: for
/// slots, at most one less than there are.
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

    pub(crate) fn insert(&mut self, number: u64, value: T) {
        debug_assert!(number >= self.next, "numbers come once");
        self.held.push((number, value));
    }

    /// The next value in order, if it has been inserted.
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
    fn values_come_out_in_the_order_of_their_numbers() {
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
