//! One step of each stage, for whoever drives them. No threads.

use super::batch::{Batch, Batcher, Entry};
use super::download::unpack;
use super::program::Program;
use super::ring::Finished;
use super::sizes::{SizesSeen, fit_buckets};
use super::slot::{Failed, Free, InFlight, Slot};
use super::stats::{AtomicCounters, add, add_since};
use super::sync::Mutex;
use super::upload::fill;
use crate::error::{Error, ErrorKind, Result};
use crate::workload::{Extent, Workload};
use rayon::ThreadPool;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// What all stages share.
pub(super) struct Shared<W: Workload> {
    pub(super) program: Program<W>,
    pub(super) pool: Arc<ThreadPool>,
    pub(super) batch_target: Extent,
    pub(super) batch_max: Extent,
    pub(super) batch_wait: Duration,
    pub(super) counters: AtomicCounters,
    pub(super) sizes: SizesSeen,
    /// Set by the first device failure; nothing is given to the device after.
    pub(super) poison: OnceLock<Error>,
    /// Held while work is given to a device, or while a lost one is brought back.
    pub(super) turn: Mutex<()>,
    /// How often a supervised device may be started again.
    pub(super) restarts_max: u64,
}

/// A slot that a device was given, or that it was lost with.
pub(super) type Submitted<B> = Result<Slot<InFlight<B>>, Box<Failed<B>>>;

/// What became of a batch that was given a slot.
pub(super) enum Given<W: Workload> {
    /// On the device, or lost to a device that will come back.
    Submitted(Submitted<Batch<W>>),
    /// It has nothing for the device, or the device does not take it.
    Finished(Finished<Batch<W>>),
}

/// A slot with the results that were in it.
pub(super) struct Taken<W: Workload> {
    pub(super) slot: Slot<Free>,
    pub(super) batch: Batch<W>,
    /// The device's failure, if that is what ended the batch.
    pub(super) failure: Option<Error>,
}

impl<W: Workload> Shared<W> {
    pub(super) fn batcher(&self) -> Batcher<W> {
        let axes = self.program.workload.axes();
        Batcher::new(axes, self.batch_target, self.batch_max, self.batch_wait)
    }

    /// Fits the buckets to the sizes of the latest batches.
    pub(super) fn fit_buckets(&self, count: usize) -> Result<Vec<Extent>> {
        let weights = self.program.copied_bytes_per_unit();
        let seen = self.sizes.to_vec();
        let capacities = fit_buckets(&seen, self.batch_max, &weights, count);
        self.program.record_again(&capacities)?;
        Ok(capacities)
    }

    /// What an item takes of a batch; a panic is the item's error.
    pub(super) fn extent(&self, item: &W::Item) -> Result<Extent> {
        self.program.extent(item)
    }

    /// Stage one: fills a slot with a batch and gives it to the device.
    pub(super) fn give(&self, slot: Slot<Free>, batch: Batch<W>) -> Given<W> {
        if let Some(error) = self.poison.get() {
            let error = Error::new(ErrorKind::Closed, format!("the engine stopped: {error}"));
            return Given::Finished(Err(Box::new(Failed { error, batch, slot })));
        }
        if batch.items == 0 {
            return Given::Finished(Ok(slot.pass(batch)));
        }
        self.sizes.add(batch.total);
        let start = Instant::now();
        let mut filled = fill(&self.program, &self.pool, slot, batch);
        let start = add_since(&self.counters.fill_ns, start);
        filled.batch_mut().submitted_at = Some(start);
        match filled.submit() {
            Ok((slot, replay)) => {
                add_since(&self.counters.submit_ns, start);
                self.counters.add_replay(&replay);
                Given::Submitted(Ok(slot))
            }
            Err(failed) if self.comes_back(&failed) => Given::Submitted(Err(failed)),
            Err(failed) => Given::Finished(Err(failed)),
        }
    }

    /// Adds the batch to the error of one that failed for good, which ends the engine.
    pub(super) fn end(&self, mut failed: Box<Failed<Batch<W>>>) -> Box<Failed<Batch<W>>> {
        let batch = format!("batch {}", failed.batch.number);
        failed.error = failed.error.clone().within(batch);
        self.poison(&failed.error);
        failed
    }

    /// Stage two: notes what the device made of a batch, a failure for good.
    pub(super) fn seen(&self, outcome: Finished<Batch<W>>) -> Finished<Batch<W>> {
        match outcome {
            Ok(slot) => {
                if let Some(submitted_at) = slot.batch().submitted_at {
                    add_since(&self.counters.compute_ns, submitted_at);
                }
                Ok(slot)
            }
            Err(failed) => Err(self.end(failed)),
        }
    }

    /// Stage three: reads the results out, one for each entry, into `outputs`.
    pub(super) fn take_back(
        &self,
        outcome: Finished<Batch<W>>,
        outputs: &mut Vec<Result<W::Output>>,
    ) -> Taken<W> {
        let start = Instant::now();
        outputs.clear();
        let taken = match outcome {
            Ok(slot) => {
                if slot.batch().settled.is_empty() {
                    unpack(&self.program, &self.pool, &slot, slot.batch(), outputs);
                }
                let (slot, mut batch) = slot.release();
                let settled = batch.settled.drain(..);
                outputs.extend(settled.map(|output| output.expect("every entry is settled")));
                Taken {
                    slot,
                    batch,
                    failure: None,
                }
            }
            Err(failed) => {
                let Failed {
                    error,
                    mut batch,
                    slot,
                } = *failed;
                // What became of an item before stays what became of it.
                let own = |entry: &Entry<W>| entry.place.as_ref().err().unwrap_or(&error).clone();
                let mut settled = std::mem::take(&mut batch.settled).into_iter();
                let output = |entry| settled.next().flatten().unwrap_or_else(|| Err(own(entry)));
                outputs.extend(batch.entries.iter().map(output));
                Taken {
                    slot,
                    batch,
                    failure: Some(error),
                }
            }
        };
        add_since(&self.counters.unpack_ns, start);
        let done = outputs.iter().filter(|output| output.is_ok()).count();
        add(&self.counters.items_done, done);
        add(&self.counters.items_rejected, outputs.len() - done);
        taken
    }

    pub(super) fn poison(&self, error: &Error) {
        // Only the first failure is the cause; later ones follow from it.
        if self.poison.set(error.clone()).is_ok() {
            tracing::error!(%error, "the device failed; the engine takes no more work");
        }
    }
}
