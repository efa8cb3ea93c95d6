//! Items whose results took more room than their extents. Each runs again by itself, in the slot that
//! it ran in.

use super::batch::{Batch, ItemLocation, beyond};
use super::counters::add;
use super::download::Outgrown;
use super::slot::{Failed, Free, Slot};
use super::stages::Shared;
use super::unwinding::catch_and_log;
use crate::error::{Error, ErrorKind, ErrorScope, Result};
use crate::workload::{Extent, Workload};

impl<W: Workload> Shared<W> {
    /// Runs items of `batch` again, each in a batch of the extent that it needs, and replaces their
    /// `outputs`. An item that no bucket holds gets an [`ErrorKind::Capacity`], and one whose device was
    /// lost meanwhile an [`ErrorKind::Closed`].
    pub(super) fn run_outgrown(
        &self,
        mut slot: Slot<Free>,
        batch: &mut Batch<W>,
        items: Outgrown,
        outputs: &mut [Result<W::Output>],
    ) -> Slot<Free> {
        if items.is_empty() {
            return slot;
        }
        for (index, extent) in items {
            add(&self.counters.finished.items_outgrown, 1);
            let excess = beyond(self.program.axes, extent, self.batch_max);
            let output = match excess {
                Some(excess) => {
                    let error =
                        Error::new(ErrorKind::Capacity, format!("the results need {excess}"));
                    Err(error
                        .fix("raise `batch` of the EngineConfig, or the largest of its `buckets`"))
                }
                None if self.device_error(slot.device()).is_some() => {
                    let message = "the device was lost before the item ran again";
                    Err(Error::new(ErrorKind::Closed, message))
                }
                None => {
                    let output;
                    (slot, output) = self.run_alone(slot, batch, index, extent);
                    output
                }
            };
            // Dropping it runs the embedder's code, which may panic.
            let first = std::mem::replace(&mut outputs[index], output);
            catch_and_log(|| drop(first));
        }
        slot
    }

    /// Runs an item again in a batch of this extent. If a supervised device is lost with it, that
    /// is restarted, and the item runs again or is quarantined, as any other.
    /// [`ErrorKind::Capacity`] if it outgrows that too.
    fn run_alone(
        &self,
        slot: Slot<Free>,
        batch: &mut Batch<W>,
        index: usize,
        extent: Extent,
    ) -> (Slot<Free>, Result<W::Output>) {
        let mut alone: Box<Batch<W>> = Box::default();
        (alone.first, alone.number) = (batch.first + index as u64, batch.number);
        (alone.total, alone.items) = (extent, 1);
        alone.uniforms.clone_from(&batch.uniforms);
        alone.resident.clone_from(&batch.resident);
        let mut entry = batch.entries.remove(index);
        entry.location = Ok(ItemLocation {
            offset: Extent::default(),
            extent,
        });
        alone.entries.push(entry);
        let ran = self.run_and_read(slot, alone);
        let (mut slot, mut alone) = (ran.slot, ran.batch);
        let output = match ran.results {
            Ok((mut outputs, again)) if again.is_empty() => {
                outputs.pop().expect("a result for the entry")
            }
            // Not a third time: a workload that asks for more each time would keep the slot for ever.
            Ok((mut outputs, _)) => {
                catch_and_log(|| drop(outputs.pop()));
                Err(Error::new(
                    ErrorKind::Capacity,
                    "the results need more room again, in a batch of the extent that the workload asked for",
                ))
            }
            Err(error) => {
                let failed = Failed {
                    error,
                    batch: alone,
                    slot,
                };
                let output;
                (slot, alone, output) = self.run_lost_alone(failed);
                output
            }
        };
        let entry = alone.entries.pop().expect("the entry was pushed above");
        batch.entries.insert(index, entry);
        (slot, output)
    }

    /// The result of an item that ran alone and failed, with its slot and its batch. Runs it again
    /// if its device was lost and can be restarted. If that cannot be, the device is taken out of
    /// use.
    fn run_lost_alone(
        &self,
        failed: Failed<Box<Batch<W>>>,
    ) -> (Slot<Free>, Box<Batch<W>>, Result<W::Output>) {
        if !self.can_restart(&failed) {
            let Failed { error, batch, slot } = failed;
            if error.scope() >= ErrorScope::Device {
                self.lose_device(slot.device(), &error);
            }
            return (slot, batch, Err(error));
        }
        match self.run_again(failed) {
            Ok(done) => {
                let (slot, mut batch) = done.release();
                let output = batch.settled.pop().flatten();
                (slot, batch, output.expect("every entry is settled"))
            }
            Err(failed) => {
                let Failed { error, batch, slot } = *failed;
                (slot, batch, Err(error))
            }
        }
    }
}
