//! [`Packer`]: batches of a workload's items for a ring.

use super::batch::{Batch, Batcher, Entry};
use super::config::SubmitOptions;
use super::counters::AtomicCounters;
use super::download::unpack;
use super::leases::BatchLeases;
use super::recorded::{RecordedWorkload, record_buckets};
use super::reentrancy::EngineId;
use super::slot::{Done, Filling, Slot};
use super::uniforms::{Uniforms, apply, changes};
use super::upload::{BatchThreads, write};
use crate::backend::Backend;
use crate::backend::fork::Process;
use crate::error::{Error, ErrorKind, Result};
use crate::replay::Buckets;
use crate::workload::{Extent, Workload};
use parking_lot::Mutex;
use rayon::ThreadPool;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What the errors of a child process call it.
const PACKER: &str = "the packer";

/// Packs a workload's items into slots of a [`Ring`](super::Ring), and reads their results. The
/// caller can submit a packed slot any number of times, unless the workload's kernels change what
/// it uploads: on the CPU backend the host's memory is then changed too.
pub struct Packer<W: Workload> {
    program: RecordedWorkload<W>,
    process: Process,
    /// The bits of the uniforms for the next batch.
    uniforms: Mutex<Vec<u32>>,
    pool: Arc<ThreadPool>,
}

/// The items of a packed batch. The ring carries them with the slot.
pub struct Packed<W: Workload>(Box<Batch<W>>);

impl<W: Workload> Packed<W> {
    /// The extent of the batch.
    pub fn extent(&self) -> Extent {
        self.0.total
    }

    /// The items, in order.
    pub fn items(&self) -> impl Iterator<Item = &W::Item> {
        self.0.entries.iter().map(Entry::item)
    }
}

impl<W: Workload> Packer<W> {
    /// Records the workload for each of `buckets`, smallest first. `pool` packs and reads.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) or
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for buckets or a recording that are not valid,
    /// and the errors of [`Workload::record`].
    pub fn new(
        workload: W,
        buckets: &[Extent],
        backend: &Arc<dyn Backend>,
        pool: Arc<ThreadPool>,
    ) -> Result<Self> {
        let device = backend.device();
        let (buckets, buffers) = record_buckets(&workload, buckets, device)?;
        let (buckets, id) = (Arc::new(buckets), EngineId::new());
        let program = RecordedWorkload::new(workload, buckets, buffers, device, id);
        Ok(Packer {
            process: Process::current(),
            uniforms: Mutex::new(program.first_uniforms()),
            program,
            pool,
        })
    }

    /// Sets uniforms ([`Recorder::uniform`](crate::Recorder::uniform)), all of them at once or, if `set`
    /// fails, none. Batches that are packed from now on have the new values.
    ///
    /// # Errors
    /// The errors of `set`, and [`ErrorKind::Usage`](crate::ErrorKind::Usage) in a child of the process that
    /// made the packer.
    pub fn set_uniforms(&self, set: impl FnOnce(&mut Uniforms<'_>) -> Result<()>) -> Result<()> {
        self.process.check(PACKER)?;
        let changes = changes(self.program.uniforms(), set)?;
        apply(&changes, &mut self.uniforms.lock());
        Ok(())
    }

    /// The buckets for the ring.
    pub fn buckets(&self) -> Arc<Buckets> {
        Arc::clone(&self.program.buckets)
    }

    /// Writes the items into the slot, one after the other. [`Packer::read`] returns the errors of
    /// items that the workload rejects.
    ///
    /// # Errors
    /// The items with [`ErrorKind::Usage`](crate::ErrorKind::Usage) if there are none, if they make more than
    /// one batch (an item that no bucket holds ends its batch), if the slot's ring does not use this
    /// packer's buckets, and in a child of the process that made the packer.
    pub fn pack(
        &self,
        slot: &mut Slot<Filling>,
        items: Vec<W::Item>,
    ) -> std::result::Result<Packed<W>, (Error, Vec<W::Item>)> {
        if let Err(forked) = self.process.check(PACKER) {
            return Err((forked, items));
        }
        if !slot.is_of(self.program.id) {
            let error = Error::usage("the slot's ring does not use this packer's buckets");
            let error = error.fix("open the ring with Packer::buckets of this packer");
            return Err((error, items));
        }
        // A ring may use only some of the packer's buckets.
        let capacity = slot.capacity();
        let axes = self.program.axes;
        let uniforms = self.uniforms.lock().clone();
        // It closes by size alone.
        let mut batcher = Batcher::<W>::new(axes, capacity, capacity, Duration::MAX, uniforms);
        let now = Instant::now();
        let mut batches: Vec<Box<Batch<W>>> = Vec::new();
        for item in items {
            let extent = self.program.extent(&item);
            batches.extend(batcher.push(item, extent, now, &SubmitOptions::default()));
        }
        batches.extend(batcher.flush());
        if batches.len() != 1 {
            let message = format!("the items make {} batches", batches.len());
            let entries = batches.into_iter().flat_map(|batch| batch.entries);
            let error = Error::usage(message)
                .fix("pack at least one, and fewer, or make the largest bucket larger");
            return Err((error, entries.filter_map(|entry| entry.item).collect()));
        }
        let mut batch = batches.remove(0);
        write(
            &self.program,
            BatchThreads::all(&self.pool),
            slot,
            &mut batch,
        );
        Ok(Packed(batch))
    }

    /// The results of the slot's items, in order. An item that has outgrown its extent has
    /// [`ErrorKind::Capacity`]; in a child of the packer's process all have [`ErrorKind::Usage`].
    ///
    /// # Panics
    /// If the slot's ring does not use this packer's buckets.
    pub fn read(&self, slot: &Slot<Done<Packed<W>>>) -> Vec<Result<W::Output>> {
        let mut outputs = Vec::new();
        if let Err(forked) = self.process.check(PACKER) {
            let entries = slot.batch().0.entries.iter();
            return entries.map(|_| Err(forked.clone())).collect();
        }
        // A packer reports no counts.
        let counters = AtomicCounters::default();
        let leases = BatchLeases::copies(slot, &counters);
        let (program, batch) = (&self.program, &slot.batch().0);
        let threads = BatchThreads::all(&self.pool);
        for (item, extent) in unpack(program, threads, slot, batch, &mut outputs, &leases) {
            let message = format!("the results need a batch of {extent}");
            let error = Error::new(ErrorKind::Capacity, message);
            outputs[item] = Err(error.fix("give the item a larger extent"));
        }
        outputs
    }
}
