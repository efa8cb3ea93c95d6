//! Stage one: writes a batch into a free slot's pinned memory, by several threads on disjoint
//! views.

use super::batch::{Batch, Entry, ItemLocation};
use super::recorded::{RecordedWorkload, catch_as_input};
use super::slot::{Filled, Filling, Free, Slot, write_header};
use crate::backend::HANDED_OVER_BYTES_MIN;
use crate::error::Error;
use crate::workload::{DeviceInputs, Extent, Workload, WriteParts};
use rayon::ThreadPool;

/// Items differ in size, so equal numbers of them would keep threads waiting for the last one, here for
/// about a quarter of a thread's share.
const PARTS_OF_THREAD: usize = 4;

/// The threads that write a batch together, or read it.
#[derive(Clone, Copy)]
pub(crate) struct BatchThreads<'a> {
    pub(super) pool: &'a ThreadPool,
    /// The most parts of a batch.
    pub(super) parts_max: usize,
}

impl<'a> BatchThreads<'a> {
    /// All threads of the pool, if nothing else is written or read meanwhile.
    pub(super) fn all(pool: &'a ThreadPool) -> Self {
        // One thread alone gains nothing by parts.
        let parts_max = match pool.current_num_threads() {
            1 => 1,
            threads => PARTS_OF_THREAD * threads,
        };
        BatchThreads { pool, parts_max }
    }

    /// The number of parts of a batch of `bytes` bytes, which threads write or read at the same time. A
    /// part has on average enough bytes to be worth another thread.
    pub(super) fn parts(self, bytes: usize) -> usize {
        self.parts_max.min(bytes / HANDED_OVER_BYTES_MIN).max(1)
    }
}

/// Whether another thread is worth its wake-up for writing or reading `bytes` bytes.
pub(super) fn is_large(bytes: usize) -> bool {
    bytes >= HANDED_OVER_BYTES_MIN
}

/// Writes the batch into the slot, which is then ready to submit.
pub(crate) fn fill<W: Workload>(
    program: &RecordedWorkload<W>,
    threads: BatchThreads<'_>,
    slot: Slot<Free>,
    mut batch: Box<Batch<W>>,
) -> Slot<Filled<Box<Batch<W>>>> {
    let mut slot = slot.begin();
    write(program, threads, &mut slot, &mut batch);
    let total = batch.total;
    slot.with_batch(batch, total)
}

/// Writes the batch and its header into the slot's memory, and takes the device memory of its items.
pub(super) fn write<W: Workload>(
    program: &RecordedWorkload<W>,
    threads: BatchThreads<'_>,
    slot: &mut Slot<Filling>,
    batch: &mut Batch<W>,
) {
    batch.is_written = true;
    if let Some(version) = &batch.resident {
        slot.set_resident(version);
    }
    write_uploads(program, threads, slot, batch);
    // Those of a batch that was cancelled or that failed in this slot.
    slot.clear_inputs();
    if !program.inputs.is_empty() {
        take_inputs(program, slot, batch);
    }
}

/// Writes the header and all items of a batch into the slot's host memory, on several threads if
/// there are many bytes. An item whose write fails is rejected alone.
fn write_uploads<W: Workload>(
    program: &RecordedWorkload<W>,
    threads: BatchThreads<'_>,
    slot: &mut Slot<Filling>,
    batch: &mut Batch<W>,
) {
    let mut views = slot.host_mut(program.id, batch.total, &program.upload_ids);
    if let Some(header) = program.header {
        let position = program.upload_ids.binary_search(&header);
        let bytes = views.remove(position.expect("the header is an upload"));
        let header = bytemuck::cast_slice_mut(bytes);
        write_header(header, batch.total, batch.items, &batch.uniforms);
    }
    let parts = WriteParts::new(&program.uploads, &mut views);
    let entries = &mut batch.entries[..];
    match threads.parts(program.uploads.bytes(batch.total)) {
        1 => write_in_turn(program, entries, parts),
        count => (threads.pool).install(|| write_entries(program, entries, parts, count)),
    }
}

/// Takes the device memory that items are copied from. Sets the parts of items that could not be written
/// to zero, which [`write_uploads`] has done with their uploads.
fn take_inputs<W: Workload>(
    program: &RecordedWorkload<W>,
    slot: &mut Slot<Filling>,
    batch: &mut Batch<W>,
) {
    let (workload, buffers) = (&program.workload, &program.buffers);
    let _inside = program.inside();
    // Items lie side by side, so a gap between two of them is where items were that have no location any more.
    let mut end = Extent::default();
    for entry in &mut batch.entries {
        let Ok(ItemLocation { offset, extent }) = entry.location else {
            continue;
        };
        zero_inputs(program, slot, end, gap(end, offset));
        // Within the capacity, so nothing wraps.
        end = offset.wrapping_add(extent);
        let taken = catch_as_input(|| {
            let mut inputs = DeviceInputs::new(&program.inputs, offset, extent, slot);
            workload.device_inputs(buffers, entry.item(), &mut inputs)?;
            inputs.first_missing().map_or(Ok(()), |missing| {
                let decl = program.buckets.largest().recording.buffer(missing);
                let name = decl.map_or("", |decl| &decl.name);
                Err(
                    Error::usage(format!("nothing was given for input buffer {name}"))
                        .fix("copy device memory to it in Workload::device_inputs"),
                )
            })
        });
        if let Err(error) = taken {
            zero_inputs(program, slot, offset, extent);
            for upload in program.uploads.buffers() {
                let (_, part) = program.uploads.part(upload, offset, extent);
                slot.upload_mut(upload)[part].fill(0);
            }
            entry.location = Err(error.within("device_inputs"));
        }
    }
    zero_inputs(program, slot, end, gap(end, batch.total));
}

/// The extent between the end of an item and the start of a later one.
fn gap(end: Extent, start: Extent) -> Extent {
    start.checked_sub(end).expect("items ascend in their batch")
}

/// Sets a part of all input buffers to zero.
fn zero_inputs<W: Workload>(
    program: &RecordedWorkload<W>,
    slot: &mut Slot<Filling>,
    offset: Extent,
    extent: Extent,
) {
    for input in program.inputs.buffers() {
        let (_, part) = program.inputs.part(input, offset, extent);
        slot.zero_input(input, part);
    }
}

/// Writes entries one after the other on this thread.
fn write_in_turn<W: Workload>(
    program: &RecordedWorkload<W>,
    entries: &mut [Entry<W>],
    mut parts: WriteParts<'_, '_>,
) {
    let (workload, buffers) = (&program.workload, &program.buffers);
    let _inside = program.inside();
    for entry in entries {
        let Ok(location) = &entry.location else {
            continue;
        };
        let written = parts.write_next(location.extent, |views| {
            catch_as_input(|| workload.write(buffers, entry.item(), location.offset, views))
        });
        if let Err(error) = written {
            entry.location = Err(error.within("write"));
        }
    }
}

/// Writes the entries in `count` parts at the same time, or one for each of fewer entries.
fn write_entries<W: Workload>(
    program: &RecordedWorkload<W>,
    entries: &mut [Entry<W>],
    mut parts: WriteParts<'_, '_>,
    count: usize,
) {
    let count = count.min(entries.len());
    if count < 2 {
        return write_in_turn(program, entries, parts);
    }
    let of_front = count / 2;
    let (front, back) = entries.split_at_mut(entries.len() * of_front / count);
    let mut front_parts = parts.split_off(sum_extents(front));
    let front_parts = WriteParts::new(&program.uploads, &mut front_parts);
    rayon::join(
        || write_entries(program, front, front_parts, of_front),
        || write_entries(program, back, parts, count - of_front),
    );
}

/// The sum of the extents of entries, without those that were rejected.
fn sum_extents<W: Workload>(entries: &[Entry<W>]) -> Extent {
    let extents = entries
        .iter()
        .filter_map(|entry| entry.location.as_ref().ok());
    extents.fold(Extent::default(), |sum, location| {
        sum.checked_add(location.extent)
            .expect("within the batch's total")
    })
}
