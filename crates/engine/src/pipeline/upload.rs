//! Stage one: writes a batch into a free slot's pinned memory, by several threads on disjoint
//! views.

use super::batch::{Batch, Entry};
use super::recorded::{RecordedWorkload, guarded};
use super::slot::{Filled, Filling, Free, Slot, write_header};
use crate::workload::{Extent, Workload, WriteParts};
use rayon::ThreadPool;

/// Smaller batches are written and read by one thread: that takes less time than handing work to
/// another.
const PARALLEL_BYTES_MIN: usize = 1 << 16;

/// Writes the batch into the slot, which is then ready to submit.
pub(crate) fn fill<W: Workload>(
    program: &RecordedWorkload<W>,
    pool: &ThreadPool,
    slot: Slot<Free>,
    mut batch: Box<Batch<W>>,
) -> Slot<Filled<Box<Batch<W>>>> {
    let mut slot = slot.begin();
    write(program, pool, &mut slot, &mut batch);
    let total = batch.total;
    slot.filled(batch, total)
}

/// Writes the batch and its header into the slot's memory.
pub(super) fn write<W: Workload>(
    program: &RecordedWorkload<W>,
    pool: &ThreadPool,
    slot: &mut Slot<Filling>,
    batch: &mut Batch<W>,
) {
    batch.is_written = true;
    let mut views = slot.host_mut(program.id, batch.total, &program.upload_ids);
    if let Some(header) = program.header {
        let position = program.upload_ids.binary_search(&header);
        let bytes = views.remove(position.expect("the header is an upload"));
        let header = bytemuck::cast_slice_mut(bytes);
        write_header(header, batch.total, batch.items, &batch.uniforms);
    }
    let parts = WriteParts::new(&program.uploads, &mut views);
    let entries = &mut batch.entries[..];
    match shares_work(pool, program.uploads.bytes(batch.total)) {
        true => pool.install(|| write_entries(program, entries, parts)),
        false => write_in_turn(program, entries, parts),
    }
}

/// Whether a pool is faster than this thread at copying so many bytes.
pub(super) fn shares_work(pool: &ThreadPool, bytes: usize) -> bool {
    bytes >= PARALLEL_BYTES_MIN && pool.current_num_threads() > 1
}

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
            guarded(|| workload.write(buffers, entry.item(), location.at, views))
        });
        if let Err(error) = written {
            entry.location = Err(error.within("write"));
        }
    }
}

/// Writes halves of the entries in parallel, down to one entry or [`PARALLEL_BYTES_MIN`].
fn write_entries<W: Workload>(
    program: &RecordedWorkload<W>,
    entries: &mut [Entry<W>],
    mut parts: WriteParts<'_, '_>,
) {
    let small = program.uploads.bytes(spanned(entries)) < PARALLEL_BYTES_MIN;
    if small || entries.len() == 1 {
        return write_in_turn(program, entries, parts);
    }
    let (front, back) = entries.split_at_mut(entries.len() / 2);
    let mut front_parts = parts.split_off(spanned(front));
    let front_parts = WriteParts::new(&program.uploads, &mut front_parts);
    rayon::join(
        || write_entries(program, front, front_parts),
        || write_entries(program, back, parts),
    );
}

fn spanned<W: Workload>(entries: &[Entry<W>]) -> Extent {
    let extents = entries
        .iter()
        .filter_map(|entry| entry.location.as_ref().ok());
    extents.fold(Extent::default(), |sum, location| {
        sum.checked_add(location.extent)
            .expect("within the batch's total")
    })
}
