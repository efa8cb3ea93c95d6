//! Recovery after a supervised device was lost.
//!
//! The device is restarted, and the batches that were in flight run again, one at a time. A batch
//! that loses the device again is cut in halves until the item is found that causes the loss. An
//! item is quarantined when it has lost the device twice while it ran alone.
//!
//! An item costs at most 3 + log2(items in its batch) restarts: one for the first loss, one for its
//! batch alone, one for each halving, and one for the second run of the item alone.
//!
//! A loss that no work caused ([`ErrorKind::Worker`]: the process was killed from outside) costs
//! one restart and blames no item. The batches that were lost run again as they were.

use super::batch::{Batch, Entry, ItemLocation};
use super::counters::{EngineCounters, add};
use super::download::{Outgrown, unpack};
use super::leases::BatchLeases;
use super::ring::Finished;
use super::slot::{Failed, Free, Slot};
use super::stages::Shared;
use super::upload::write;
use crate::backend::Backend;
use crate::error::{Error, ErrorKind, ErrorScope, Result};
use crate::workload::{Extent, Workload};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// What is known about some items of a batch that lost the device.
enum KnownItems {
    Nothing,
    /// All other items that were lost with them ran without a loss.
    Suspect,
    /// They ran without other items and lost the device.
    Guilty,
}

impl<W: Workload> Shared<W> {
    /// Whether a batch failed because its device was lost, and the device can be restarted.
    pub(super) fn can_restart(&self, failed: &Failed<Box<Batch<W>>>) -> bool {
        is_loss(&failed.error)
            && failed.slot.backend().is_supervised()
            && !self.is_over(failed.slot.device())
    }

    /// Whether another device can run a batch that failed with its device: the device cannot be
    /// restarted, which is neither the batch's fault nor the limit of restarts.
    pub(super) fn moves_on(&self, failed: &Failed<Box<Batch<W>>>) -> bool {
        self.is_supervised
            && failed.error.scope() >= ErrorScope::Device
            && failed.batch.settled.is_empty()
            && self.devices[failed.slot.device()].get().is_some()
            && self.counters.finished.restarts.load(Relaxed) < self.restarts_max
            && self.ended.get().is_none()
    }

    /// Restarts the device that was lost with `first`, and runs the lost batches again: `first`,
    /// and those among `more`, which returns all batches that have finished by then. Nothing may be
    /// submitted to the device meanwhile.
    pub(super) fn recover(
        &self,
        mut first: Box<Failed<Box<Batch<W>>>>,
        more: impl FnOnce() -> Vec<Finished<Box<Batch<W>>>>,
    ) -> Vec<Finished<Box<Batch<W>>>> {
        // All lost batches report the loss once the old process has ended.
        if let Err(error) = self.restart(&mut first.slot) {
            first.error = error;
        }
        let more = more();
        let mut lost = Vec::new();
        let mut finished = Vec::with_capacity(1 + more.len());
        for mut outcome in std::iter::once(Err(first)).chain(more) {
            self.note_off_device(&mut outcome);
            match outcome {
                Err(failed) if self.can_restart(&failed) => lost.push(failed),
                Err(failed) => finished.push(Err(self.fail_lost_batch(failed))),
                done => finished.push(done),
            }
        }
        // In the order in which they were submitted.
        lost.sort_by_key(|failed| failed.batch.number);
        let run_again = |failed: Box<Failed<_>>| {
            if self.can_restart(&failed) {
                self.run_again(*failed)
            } else {
                Err(self.fail_lost_batch(failed))
            }
        };
        finished.extend(lost.into_iter().map(run_again));
        finished
    }

    /// Fails a batch for good. If it was lost with a device that cannot be restarted, its error is
    /// the reason for that.
    fn fail_lost_batch(
        &self,
        mut failed: Box<Failed<Box<Batch<W>>>>,
    ) -> Box<Failed<Box<Batch<W>>>> {
        let over = self.device_error(failed.slot.device());
        if let Some(reason) = over.filter(|_| is_loss(&failed.error)) {
            // The places of the batch that met it are left out.
            failed.error = reason.clone().without_places();
        }
        self.fail_batch(failed)
    }

    /// Runs a lost batch again, without the items that lose the device, and leaves the device
    /// running for the next batch. Restarts the device as often as that takes.
    pub(super) fn run_again(&self, failed: Failed<Box<Batch<W>>>) -> Finished<Box<Batch<W>>> {
        let (error, number) = (&failed.error, failed.batch.number);
        tracing::warn!(%error, batch = number, "the device was lost; the batch runs again");
        let finished = self.hunt(failed);
        let mut finished = finished.map_err(|failed| self.fail_batch(failed));
        // The next batch needs a running device.
        let device = match &finished {
            Ok(slot) => slot.device(),
            Err(failed) => failed.slot.device(),
        };
        if self.is_over(device) {
            return finished;
        }
        let restarted = match &mut finished {
            Ok(slot) => self.restart(slot),
            Err(failed) => self.restart(&mut failed.slot),
        };
        if let Err(error) = restarted {
            self.lose_device(device, &error);
        }
        finished
    }

    /// Makes sure that the device runs, and that the host may use the slot's memory.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] if the device cannot be restarted, or still works on the slot's
    /// batch. No item causes that, so it must not count as a loss.
    fn restart<S>(&self, slot: &mut Slot<S>) -> Result<()> {
        let backend = Arc::clone(slot.backend());
        restart_if_lost(&*backend, &self.counters, self.restarts_max)?;
        while !slot.take_loss() {
            // The device may have been lost again.
            if !restart_if_lost(&*backend, &self.counters, self.restarts_max)? {
                let message =
                    "the device still runs a batch that failed, so its slot cannot be used again";
                return Err(Error::new(ErrorKind::Unavailable, message));
            }
        }
        Ok(())
    }

    /// Writes a batch into a slot, runs it, and reads its results.
    pub(super) fn run_and_read(&self, slot: Slot<Free>, mut batch: Box<Batch<W>>) -> Ran<W> {
        let (program, threads) = (&self.program, self.batch_threads());
        let mut slot = slot.begin();
        write(program, threads, &mut slot, &mut batch);
        match self.run(slot.cancel(), batch) {
            Ok(done) => {
                let mut outputs = Vec::with_capacity(done.batch().entries.len());
                let leases = BatchLeases::copies(&done, &self.counters.finished);
                let outgrown = unpack(program, threads, &done, done.batch(), &mut outputs, &leases);
                let (slot, batch) = done.release();
                let results = Ok((outputs, outgrown));
                Ran {
                    slot,
                    batch,
                    results,
                }
            }
            Err(failed) => {
                let Failed { error, batch, slot } = *failed;
                let results = Err(error);
                Ran {
                    slot,
                    batch,
                    results,
                }
            }
        }
    }

    /// Runs a batch that was written into its slot, and waits for it.
    fn run(&self, slot: Slot<Free>, batch: Box<Batch<W>>) -> Finished<Box<Batch<W>>> {
        let live = batch.total;
        let filled = slot.begin().with_batch(batch, live);
        let slot = match filled.submit(false) {
            Ok((slot, replay)) => {
                self.counters.finished.add_replay(&replay);
                slot
            }
            Err(failed) if failed.error.scope() < ErrorScope::Device => failed.wait_out(),
            Err(failed) => return Err(failed),
        };
        slot.wait()
    }

    /// Runs a batch again, and quarantines the items that lose the device.
    fn hunt(&self, mut failed: Failed<Box<Batch<W>>>) -> Finished<Box<Batch<W>>> {
        // Before `Hunt::new` settles entries: a batch with settled ones moves to no other device
        // ([`Shared::moves_on`]).
        if let Err(error) = self.restart(&mut failed.slot) {
            return Err(Box::new(Failed { error, ..failed }));
        }
        let Failed { batch, slot, .. } = failed;
        let mut hunt = Hunt::new(self, batch, slot);
        let mut open = vec![(0..hunt.placed.len(), KnownItems::Nothing)];
        while let Some((range, known)) = open.pop() {
            let length = range.len();
            let part = match known {
                KnownItems::Suspect | KnownItems::Guilty if length > 1 => {
                    range.start..range.start + length / 2
                }
                _ => range.clone(),
            };
            let rest = part.end..range.end;
            match hunt.run(part.clone()) {
                Ok(()) if rest.is_empty() => {}
                Ok(()) => open.push((rest, KnownItems::Suspect)),
                // The process was killed from outside, which says nothing of the items.
                Err(error) if is_of_worker(&error) => open.push((range, known)),
                Err(error) if is_loss(&error) => match known {
                    KnownItems::Guilty if length == 1 => hunt.quarantine(range.start, error),
                    _ => {
                        if !rest.is_empty() {
                            open.push((rest, KnownItems::Nothing));
                        }
                        open.push((part, KnownItems::Guilty));
                    }
                },
                Err(error) => return Err(hunt.give_up(error)),
            }
        }
        hunt.finish()
    }
}

/// A batch that ran and was waited for.
pub(super) struct Ran<W: Workload> {
    pub(super) slot: Slot<Free>,
    pub(super) batch: Box<Batch<W>>,
    /// The results and what has outgrown its extent, or the error of the batch.
    pub(super) results: Result<(Vec<Result<W::Output>>, Outgrown)>,
}

/// Whether this error means that the device is lost.
fn is_loss(error: &Error) -> bool {
    error.scope() == ErrorScope::Device
}

/// Restarts a lost device, and returns whether it was lost. A start that ends before the device is
/// open counts as a restart, and is tried again.
///
/// # Errors
/// [`ErrorKind::Unavailable`] if the device cannot be restarted, or all devices together were
/// `restarts_max` times.
pub(super) fn restart_if_lost(
    backend: &dyn Backend,
    counters: &EngineCounters,
    restarts_max: u64,
) -> Result<bool> {
    loop {
        let unstarted = match backend.revive() {
            Ok(false) => return Ok(false),
            Ok(true) => None,
            Err(error) if is_of_worker(&error) => Some(error),
            Err(error) => {
                let message = format!("the lost device cannot be restarted: {error}");
                return Err(Error::new(ErrorKind::Unavailable, message));
            }
        };
        // Looked at after the start: before it, it is not known whether the device was lost.
        let restarts = &counters.finished.restarts;
        if restarts.load(Relaxed) >= restarts_max {
            let message = format!("devices were restarted {restarts_max} times");
            return Err(Error::new(ErrorKind::Unavailable, message)
                .fix("see the log for what they were lost with, or raise restarts_max"));
        }
        add(restarts, 1);
        match unstarted {
            None => return Ok(true),
            Some(error) => {
                tracing::warn!(%error, "the device did not start, and is restarted")
            }
        }
    }
}

/// Whether the device was lost for a reason outside its work.
pub(super) fn is_of_worker(error: &Error) -> bool {
    error.kind() == ErrorKind::Worker
}

/// The search for the items of a batch that lose the device: it runs parts of the batch one by one.
struct Hunt<'a, W: Workload> {
    shared: &'a Shared<W>,
    /// The batch without its entries.
    batch: Box<Batch<W>>,
    /// The entries; `None` while they are in flight.
    entries: Vec<Option<Entry<W>>>,
    /// The indices of entries with a location.
    placed: Vec<usize>,
    /// `None` while entries are in flight.
    slot: Option<Slot<Free>>,
}

impl<'a, W: Workload> Hunt<'a, W> {
    /// A search through the entries of `batch` in `slot`. Entries without a location are settled
    /// with their errors already.
    fn new(shared: &'a Shared<W>, mut batch: Box<Batch<W>>, slot: Slot<Free>) -> Self {
        let entries: Vec<_> = batch.entries.drain(..).map(Some).collect();
        let is_placed =
            |entry: &Option<Entry<W>>| entry.as_ref().is_some_and(|e| e.location.is_ok());
        let placed = (0..entries.len()).filter(|&index| is_placed(&entries[index]));
        let placed = placed.collect();
        let settle = |entry: &Option<Entry<W>>| {
            let error = entry
                .as_ref()
                .and_then(|entry| entry.location.as_ref().err());
            error.map(|error| Err(error.clone()))
        };
        batch.settled = entries.iter().map(settle).collect();
        Hunt {
            shared,
            batch,
            entries,
            placed,
            slot: Some(slot),
        }
    }

    /// Runs a range of the placed items as a batch of their own, and stores their results. Writes
    /// the items again: if the device shares the host's memory, kernels may have changed it. An
    /// item that cannot be written again gets its error as the result.
    ///
    /// # Errors
    /// That of the batch, and [`ErrorKind::Unavailable`] if the device cannot be restarted.
    fn run(&mut self, range: Range<usize>) -> Result<()> {
        let slot = self.slot.as_mut().expect("no entries are in flight");
        self.shared.restart(slot)?;
        let mut part: Box<Batch<W>> = Box::default();
        (part.first, part.number) = (self.batch.first, self.batch.number);
        part.uniforms.clone_from(&self.batch.uniforms);
        part.resident.clone_from(&self.batch.resident);
        let mut indices = Vec::with_capacity(range.len());
        for &index in &self.placed[range] {
            let entry = &mut self.entries[index];
            let Some(Ok(location)) = entry.as_mut().map(|entry| &mut entry.location) else {
                continue;
            };
            *location = ItemLocation {
                offset: part.total,
                extent: location.extent,
            };
            part.total = sum(part.total, location.extent);
            part.items += 1;
            part.entries.extend(entry.take());
            indices.push(index);
        }
        if indices.is_empty() {
            return Ok(());
        }
        let slot = self.slot.take().expect("no entries are in flight");
        add(&self.shared.counters.finished.reruns, 1);
        let mut ran = self.shared.run_and_read(slot, part);
        if let Ok((outputs, outgrown)) = &mut ran.results {
            let outgrown = std::mem::take(outgrown);
            let batch = &mut ran.batch;
            ran.slot = self.shared.run_outgrown(ran.slot, batch, outgrown, outputs);
        }
        self.slot = Some(ran.slot);
        // Before the error of the batch: the entries are back in any case.
        for (&index, entry) in indices.iter().zip(ran.batch.entries) {
            let unwritten = entry.location.as_ref().err();
            self.batch.settled[index] = unwritten.map(|error| Err(error.clone()));
            self.entries[index] = Some(entry);
        }
        let (outputs, _) = ran.results?;
        for (&index, output) in indices.iter().zip(outputs) {
            self.batch.settled[index] = Some(output);
        }
        Ok(())
    }

    /// Leaves an item out that has lost the device twice while it ran alone.
    fn quarantine(&mut self, placed: usize, error: Error) {
        let index = self.placed[placed];
        let item = self.batch.first + index as u64;
        tracing::warn!(item, %error, "an item made the device fail twice, and is rejected");
        add(&self.shared.counters.finished.items_quarantined, 1);
        let code = error.code();
        let mut left_out = Error::new(
            ErrorKind::Quarantined,
            format!("the device was lost twice while this item ran alone: {error}"),
        )
        .fix("look at the item, and at the kernels with compute-sanitizer");
        if let Some(code) = code {
            left_out = left_out.with_code(code);
        }
        self.batch.settled[index] = Some(Err(left_out));
    }

    fn into_parts(mut self) -> (Slot<Free>, Box<Batch<W>>) {
        let entries = self.entries.into_iter();
        self.batch.entries = entries
            .map(|entry| entry.expect("no entries are in flight"))
            .collect();
        (self.slot.expect("no entries are in flight"), self.batch)
    }

    fn finish(self) -> Finished<Box<Batch<W>>> {
        let (slot, batch) = self.into_parts();
        Ok(slot.pass(batch))
    }

    /// Fails the batch. Items that have a result keep it.
    fn give_up(self, error: Error) -> Box<Failed<Box<Batch<W>>>> {
        let (slot, batch) = self.into_parts();
        Box::new(Failed { error, batch, slot })
    }
}

fn sum(a: Extent, b: Extent) -> Extent {
    a.checked_add(b).expect("a part is within its batch")
}
