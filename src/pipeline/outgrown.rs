//! Items whose results took more room than their extents. Each runs again by itself, in the slot that
//! it ran in.

use super::batch::{Batch, Location};
use super::counters::add;
use super::download::{outgrown, unpack};
use super::slot::{Failed, Free, Slot};
use super::stages::Shared;
use super::upload::write;
use crate::error::{Error, ErrorKind, ErrorScope, Result};
use crate::record::HEADER_LEN;
use crate::workload::{Extent, Workload};

impl<W: Workload> Shared<W> {
    /// Runs items of `batch` again, each in a batch of the extent that it needs, and replaces their
    /// `outputs`. `items` has their indices among the entries.
    pub(super) fn run_outgrown(
        &self,
        mut slot: Slot<Free>,
        batch: &mut Batch<W>,
        items: Vec<(usize, Extent)>,
        outputs: &mut [Result<W::Output>],
    ) -> Slot<Free> {
        if items.is_empty() {
            return slot;
        }
        let mut filling = slot.begin();
        // The values with which the batch ran first.
        let uniforms = match self.program.header {
            None => Vec::new(),
            Some(header) => filling.header(header)[HEADER_LEN..].to_vec(),
        };
        slot = filling.cancel();
        for (index, extent) in items {
            add(&self.counters.finished.items_outgrown, 1);
            let output = match extent.first_excess(self.batch_max) {
                Some(axis) => Err(self.too_much(extent, axis)),
                None if self.over(slot.device()).is_some() => {
                    let message = "the device was lost before the item ran again";
                    Err(Error::new(ErrorKind::Closed, message))
                }
                None => {
                    let output;
                    (slot, output) = self.run_alone(slot, batch, index, extent, &uniforms);
                    output
                }
            };
            outputs[index] = output;
        }
        slot
    }

    fn too_much(&self, extent: Extent, axis: usize) -> Error {
        let name = self.program.workload.axes()[axis];
        let (length, max) = (extent[axis], self.batch_max[axis]);
        let message = format!("the results need {length} {name}, and a batch holds at most {max}");
        Error::new(ErrorKind::Capacity, message).fix("raise the largest batch")
    }

    /// Runs an item again in a batch of this extent.
    fn run_alone(
        &self,
        slot: Slot<Free>,
        batch: &mut Batch<W>,
        index: usize,
        extent: Extent,
        uniforms: &[u32],
    ) -> (Slot<Free>, Result<W::Output>) {
        let mut alone: Box<Batch<W>> = Box::default();
        (alone.first, alone.number) = (batch.first + index as u64, batch.number);
        (alone.total, alone.items) = (extent, 1);
        let mut entry = batch.entries.remove(index);
        entry.location = Ok(Location {
            at: Extent::default(),
            extent,
        });
        alone.entries.push(entry);
        let mut slot = slot.begin();
        let (program, pool) = (&self.program, &self.pool);
        write(
            program,
            pool,
            &mut slot,
            &mut alone,
            uniforms.iter().copied(),
        );
        let (slot, mut alone, output) = match self.run(slot.cancel(), alone) {
            Ok(done) => {
                let mut outputs = Vec::with_capacity(1);
                let output = match outgrown(program, &done, done.batch()) {
                    Ok(again) if again.is_empty() => {
                        unpack(program, pool, &done, done.batch(), &mut outputs);
                        outputs.pop().expect("a result for the entry")
                    }
                    Ok(_) => Err(Error::new(
                        ErrorKind::Capacity,
                        "the results need more room again in the run that had the room they asked for",
                    )),
                    Err(error) => Err(error),
                };
                let (slot, alone) = done.release();
                (slot, alone, output)
            }
            Err(failed) => {
                if failed.error.scope() >= ErrorScope::Device {
                    self.lose_device(failed.slot.device(), &failed.error);
                }
                let Failed { error, batch, slot } = *failed;
                (slot, batch, Err(error))
            }
        };
        let entry = alone.entries.pop().expect("it was pushed above");
        batch.entries.insert(index, entry);
        (slot, output)
    }
}
