//! One step of each stage, which [`Engine`](super::Engine) and [`Pipeline`](super::Pipeline) call.
//! No threads.

use super::batch::{Batch, Batcher, Entry};
use super::compute::WakeDevice;
use super::counters::{EngineCounters, add, add_between, add_since};
use super::download::{Outgrown, unpack};
use super::ending::Ending;
use super::exclusive::ExclusiveUse;
use super::leases::{BatchLeases, LeaseLimits};
use super::meter::{Meter, StartTimes};
use super::pool::SparePool;
use super::recorded::RecordedWorkload;
use super::reentrancy::EngineId;
use super::resident::Replaceable;
use super::ring::Finished;
use super::slot::{Done, Failed, Flight, Free, Slot};
use super::statistics::{StageThreads, Statistics};
use super::sync::Mutex;
use super::timeline::{Sampler, SpanKind, Timeline};
use super::upload::{BatchThreads, fill};
use crate::error::{Error, ErrorScope, Result};
use crate::workload::{Extent, Workload};
use rayon::ThreadPool;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tracing::trace_span;

/// The state that all stages share.
pub(super) struct Shared<W: Workload> {
    pub(super) engine: EngineId,
    pub(super) program: RecordedWorkload<W>,
    pub(super) pool: Arc<ThreadPool>,
    /// The threads of an engine that write and read large batches: its own, or `pool` if that computes them
    /// too. `None` for a pipeline, and if there would be one thread.
    pub(super) workers: Option<Arc<ThreadPool>>,
    pub(super) batch_target: Extent,
    pub(super) batch_max: Extent,
    pub(super) batch_wait: Duration,
    pub(super) counters: EngineCounters,
    pub(super) meter: Meter,
    /// The number of batches that were submitted to a device.
    pub(super) batches_given: AtomicU64,
    /// `None` without a timeline.
    pub(super) sampler: Option<Sampler>,
    /// Batches whose items were answered, to be filled again.
    pub(super) batches: SparePool<Box<Batch<W>>>,
    /// Vectors of results that were read.
    pub(super) outputs: SparePool<Vec<Result<W::Output>>>,
    pub(super) lease_limits: LeaseLimits,
    /// By [`Slot::device`]: the error that ended the device's use.
    pub(super) devices: Vec<OnceLock<Error>>,
    /// Held while a device is taken out of use, so that of devices which are lost at the same time
    /// only one counts as the last.
    pub(super) losing: Mutex<()>,
    /// The resident buffers that can be replaced; `None` without any.
    pub(super) replaceable: Option<Replaceable>,
    /// The error that ended the engine. No batch is submitted after it.
    pub(super) ended: Arc<Ending>,
    /// The engine's exclusive use of its supervised backends.
    pub(super) _exclusive: Vec<Option<ExclusiveUse>>,
    /// Whether lost devices can be restarted.
    pub(super) is_supervised: bool,
    /// The largest number of restarts of supervised devices.
    pub(super) restarts_max: u64,
}

/// The result of submitting a batch.
pub(super) enum SubmitOutcome<W: Workload> {
    /// The batch is on the device, or in part if it failed; or it was lost with a device that will
    /// be restarted.
    Submitted(Flight<Box<Batch<W>>>),
    /// The batch has no device work, or the device is lost for good.
    Finished(Finished<Box<Batch<W>>>),
}

/// A free slot, and the batch that was in it.
pub(super) struct Taken<W: Workload> {
    pub(super) slot: Slot<Free>,
    pub(super) batch: Box<Batch<W>>,
    /// The error that ended the engine, if the batch failed and the engine has ended.
    pub(super) failure: Option<Error>,
}

impl<W: Workload> Shared<W> {
    /// A batcher by the engine's config, with the uniforms as they were declared.
    pub(super) fn batcher(&self) -> Batcher<W> {
        let axes = self.program.axes;
        let uniforms = self.program.first_uniforms();
        Batcher::new(
            axes,
            self.batch_target,
            self.batch_max,
            self.batch_wait,
            uniforms,
        )
    }

    /// Where the time went so far.
    pub(super) fn statistics(&self, threads: StageThreads) -> Statistics {
        let mut statistics = self.meter.statistics(&self.counters.snapshot(), threads);
        let timeline = self.timeline();
        if self.program.device.backend == "cpu" {
            statistics.set_on_cpu();
        }
        for (device, over) in statistics.devices.iter_mut().zip(&self.devices) {
            device.is_lost = over.get().is_some();
        }
        statistics.device_overlap = timeline.and_then(|timeline| timeline.device_overlap());
        statistics
    }

    /// The timeline so far, if there is one.
    pub(super) fn timeline(&self) -> Option<Timeline> {
        let batches = self.batches_given.load(Relaxed);
        self.sampler
            .as_ref()
            .map(|sampler| sampler.timeline(batches))
    }

    /// The extent of an item. A panic of the workload becomes the item's error.
    pub(super) fn extent(&self, item: &W::Item) -> Result<Extent> {
        self.program.extent(item)
    }

    /// The threads that write a batch together, or read it.
    ///
    /// An engine has many batches at the same time, as many as slots. A thread for each is the fastest while
    /// there are enough of them, since threads that share a batch wake up and wait for each other: with
    /// twelve slots and all threads of 32 cores at each batch, copying took four times the processor
    /// time. Half of the workers count, as the cores have other work too.
    pub(super) fn batch_threads(&self) -> BatchThreads<'_> {
        let Some(pool) = &self.workers else {
            return BatchThreads::all(&self.pool);
        };
        let parts_max = pool.current_num_threads() / (2 * self.meter.slots());
        BatchThreads { pool, parts_max }
    }

    /// Stage one: fills a slot with a batch and submits it to the device. Counts the time and tells the
    /// meter and the timeline. If the engine has ended or no item is left, the device gets nothing.
    pub(super) fn fill_and_submit(
        &self,
        slot: Slot<Free>,
        mut batch: Box<Batch<W>>,
    ) -> SubmitOutcome<W> {
        let started_at = Instant::now();
        let handed_over_at = batch.handed_over_at.take();
        let slot_at = handed_over_at.unwrap_or(started_at);
        let closed_at = batch.closed_at.unwrap_or(slot_at);
        let counters = &self.counters.submitted;
        add_between(&counters.stall_ns, closed_at, slot_at);
        if self.ended.get().is_some() {
            let error = self.ended.error();
            return SubmitOutcome::Finished(Err(Box::new(Failed { error, batch, slot })));
        }
        add(&counters.items_expired, batch.leave_out(started_at));
        if batch.items == 0 {
            return SubmitOutcome::Finished(Ok(slot.pass(batch)));
        }
        let number = self.batches_given.fetch_add(1, Relaxed);
        let sampler = self
            .sampler
            .as_ref()
            .filter(|sampler| sampler.wants(number));
        let (index, items) = (slot.index(), batch.items);
        (batch.number, batch.sampled) = (number, sampler.map(|_| (number, index)));
        let span = trace_span!("fill", batch = number, slot = index, items).entered();
        let mut filled = fill(&self.program, self.batch_threads(), slot, batch);
        drop(span);
        let filled_at = add_since(&counters.fill_ns, started_at);
        filled.batch_mut().submitted_at = Some(filled_at);
        let start = StartTimes {
            closed_at,
            slot_at,
            started_at,
            filled_at,
        };
        let span = trace_span!("submit", batch = number, slot = index, items).entered();
        let submitted = filled.submit(sampler.is_some());
        drop(span);
        match submitted {
            Ok((mut slot, replay)) => {
                // A batch that ran twice was also waited for.
                let spent = match replay.verified {
                    0 => &counters.submit_ns,
                    _ => &counters.verify_ns,
                };
                let end = add_since(spent, filled_at);
                self.meter.note_submitted(index, &start, end);
                counters.add_replay(&replay);
                if let Some(sampler) = sampler {
                    let batch_key = (number, index);
                    sampler.add(batch_key, SpanKind::Stall, closed_at, slot_at);
                    if handed_over_at.is_some() {
                        sampler.add(batch_key, SpanKind::Worker, slot_at, started_at);
                    }
                    sampler.add(batch_key, SpanKind::Fill, started_at, filled_at);
                    sampler.add(batch_key, SpanKind::Submit, filled_at, end);
                    slot.batch_mut().timed = replay.timed;
                }
                SubmitOutcome::Submitted(Ok(slot))
            }
            Err(mut failed) => {
                // The batch was not submitted.
                failed.batch.submitted_at = None;
                self.meter.note_refused(index, &start, Instant::now());
                if failed.error.scope() < ErrorScope::Device {
                    SubmitOutcome::Submitted(Ok(failed.wait_out()))
                } else if self.can_restart(&failed) {
                    SubmitOutcome::Submitted(Err(failed))
                } else {
                    SubmitOutcome::Finished(Err(failed))
                }
            }
        }
    }

    /// Fails a batch for good: adds its number to the error, and logs it. If the error concerns the
    /// device, takes the device out of use in place of logging, which may end the engine
    /// ([`Shared::lose_device`]).
    pub(super) fn fail_batch(
        &self,
        mut failed: Box<Failed<Box<Batch<W>>>>,
    ) -> Box<Failed<Box<Batch<W>>>> {
        let batch = format!("batch {}", failed.batch.number);
        failed.error = failed.error.clone().within(batch);
        if failed.error.scope() < ErrorScope::Device {
            tracing::warn!(error = %failed.error, "a batch failed")
        } else {
            self.lose_device(failed.slot.device(), &failed.error)
        }
        failed
    }

    /// Stage two: notes that a batch has left the device, and that it failed if it did.
    pub(super) fn note_outcome(
        &self,
        mut outcome: Finished<Box<Batch<W>>>,
    ) -> Finished<Box<Batch<W>>> {
        self.note_off_device(&mut outcome);
        outcome.map_err(|failed| self.fail_batch(failed))
    }

    /// Notes that a batch is no longer on the device, if it was.
    pub(super) fn note_off_device(&self, outcome: &mut Finished<Box<Batch<W>>>) {
        let (slot, batch) = match outcome {
            Ok(slot) => (slot.index(), slot.batch_mut()),
            Err(failed) => (failed.slot.index(), &mut failed.batch),
        };
        let Batch { number, items, .. } = **batch;
        let _span = trace_span!("complete", batch = number, slot, items).entered();
        if let Some(submitted_at) = batch.submitted_at {
            let now = add_since(&self.counters.finished.compute_ns, submitted_at);
            self.meter.note_batch_finished(slot, submitted_at, now);
            match outcome {
                Ok(slot) => self.sample_flight(slot, submitted_at, now),
                Err(failed) => failed.batch.submitted_at = None,
            }
        }
    }

    /// Adds the time of a batch in flight to the timeline if it samples this batch, with the
    /// device's timestamps if it was timed.
    fn sample_flight(&self, slot: &Slot<Done<Box<Batch<W>>>>, submitted_at: Instant, now: Instant) {
        let batch = slot.batch();
        let Some((sampler, batch_key)) = self.sampler.as_ref().zip(batch.sampled) else {
            return;
        };
        sampler.add(batch_key, SpanKind::Flight, submitted_at, now);
        if batch.timed {
            match slot.timestamps() {
                Ok(timestamps) => sampler.add_timestamps(batch_key, timestamps, submitted_at, now),
                // The next batch reports what is wrong with the device.
                Err(error) => tracing::debug!(%error, batch.number, "no timestamps"),
            }
        }
    }

    /// Stage three: reads the results, one for each entry, into `outputs`, and frees the slot.
    /// If `wakes` is given, results may borrow the slot, which is lent then until they are dropped.
    pub(super) fn take_back(
        &self,
        outcome: Finished<Box<Batch<W>>>,
        outputs: &mut Vec<Result<W::Output>>,
        wakes: Option<&Arc<dyn WakeDevice>>,
    ) -> Taken<W> {
        let start = Instant::now();
        outputs.clear();
        let mut taken = match outcome {
            Ok(mut slot) => {
                let Batch { number, items, .. } = **slot.batch();
                let index = slot.index();
                let _span = trace_span!("unpack", batch = number, slot = index, items).entered();
                let outgrown = if slot.batch().settled.is_empty() {
                    self.read(&mut slot, outputs, wakes)
                } else {
                    Vec::new()
                };
                let (mut slot, mut batch) = slot.release();
                // Ends the loan if no result borrows the slot.
                slot.take_back();
                let slot = self.run_outgrown(slot, &mut batch, outgrown, outputs);
                let settled = batch.settled.drain(..);
                outputs.extend(settled.map(|output| output.expect("every entry is settled")));
                Taken {
                    slot,
                    batch,
                    failure: None,
                }
            }
            Err(failed) => {
                add(&self.counters.finished.batches_failed, 1);
                let Failed {
                    error,
                    mut batch,
                    mut slot,
                } = *failed;
                slot.clear_inputs();
                // Entries that have a result keep it.
                let mut settled = std::mem::take(&mut batch.settled).into_iter();
                let output = |entry: &Entry<W>| {
                    let settled = settled.next().flatten();
                    settled.unwrap_or_else(|| Err(entry.error_or(&error)))
                };
                outputs.extend(batch.entries.iter().map(output));
                Taken {
                    slot,
                    batch,
                    failure: self.ended.get().cloned(),
                }
            }
        };
        let counters = &self.counters.finished;
        let now = add_since(&counters.unpack_ns, start);
        let handed_over_at = taken.batch.handed_over_at.take();
        let done_at = handed_over_at.unwrap_or(start);
        self.meter.note_unpacked(&taken.batch, done_at, start, now);
        if let Some((sampler, batch_key)) = self.sampler.as_ref().zip(taken.batch.sampled) {
            if let Some(handed_over_at) = handed_over_at {
                sampler.add(batch_key, SpanKind::Worker, handed_over_at, start);
            }
            sampler.add(batch_key, SpanKind::Unpack, start, now);
        }
        let done = outputs.iter().filter(|output| output.is_ok()).count();
        add(&counters.items_done, done);
        let taken_out = taken.batch.taken_out as usize;
        add(&counters.items_rejected, outputs.len() - done - taken_out);
        taken
    }

    /// Reads the results of a batch that is done. They may borrow the slot if `wakes` is given,
    /// which is woken when the loan ends; otherwise they are copies.
    fn read(
        &self,
        slot: &mut Slot<Done<Box<Batch<W>>>>,
        outputs: &mut Vec<Result<W::Output>>,
        wakes: Option<&Arc<dyn WakeDevice>>,
    ) -> Outgrown {
        let (limits, counters) = (&self.lease_limits, &self.counters.finished);
        let leases = match wakes {
            Some(wakes) => BatchLeases::of_slot(slot, limits, wakes, counters),
            None => BatchLeases::copies(slot, counters),
        };
        let threads = self.batch_threads();
        unpack(&self.program, threads, slot, slot.batch(), outputs, &leases)
    }

    /// Takes a batch that runs on another device ([`Shared::moves_on`]) out of its slot, which is dropped, as no
    /// batch is given to a lost device.
    pub(super) fn take_off(&self, failed: Failed<Box<Batch<W>>>) -> Box<Batch<W>> {
        let Failed {
            error,
            mut batch,
            slot: _,
        } = failed;
        let number = batch.number;
        tracing::warn!(%error, batch = number, "the batch runs on another device");
        add(&self.counters.finished.reruns, 1);
        (batch.closed_at, batch.handed_over_at) = (Some(Instant::now()), None);
        batch
    }

    /// Takes a device out of use. The engine ends with its last device, and with any device that is
    /// not supervised, since a fault there ends CUDA for the whole process.
    pub(super) fn lose_device(&self, device: usize, error: &Error) {
        let losing = self.losing.lock();
        let others = self.devices.iter().enumerate();
        let mut others = others.filter(|(other, _)| *other != device);
        let goes_on = self.is_supervised && others.any(|(_, other)| other.get().is_none());
        // Set before the device counts as lost, so that slots of the last device are kept.
        let has_ended = !goes_on && self.ended.set(error.clone());
        if has_ended {
            tracing::error!(%error, "the device failed; the engine takes no more work");
        }
        if self.devices[device].set(error.clone()).is_ok() && goes_on {
            tracing::error!(%error, device, "the device failed; the engine continues on the other devices");
        }
        drop(losing);
        if has_ended {
            self.ended.wake_tasks();
        }
    }

    /// Whether a device is out of use.
    pub(super) fn is_over(&self, device: usize) -> bool {
        self.device_error(device).is_some()
    }

    /// The error that took a device out of use.
    pub(super) fn device_error(&self, device: usize) -> Option<&Error> {
        self.devices[device].get().or(self.ended.get())
    }

    /// Whether a slot can be reused. Slots of a lost device are dropped while the engine continues
    /// on others. After the engine has ended, they are kept to pass errors on.
    pub(super) fn is_usable(&self, slot: &Slot<Free>) -> bool {
        self.devices[slot.device()].get().is_none() || self.ended.get().is_some()
    }
}
