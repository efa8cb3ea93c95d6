//! Stage one: writes a batch into a free slot's pinned memory, by several threads on disjoint
//! views.

use super::batch::{Batch, Entry};
use super::recorded::RecordedWorkload;
use super::slot::{Filled, Filling, Free, Slot, write_header};
use crate::error::Context;
use crate::workload::{Extent, Workload, WriteViews};
use rayon::ThreadPool;

/// Smaller batches are written and read by one thread: that takes less time than handing work to
/// another.
const PARALLEL_BYTES_MIN: usize = 1 << 16;

/// Writes the batch into the slot, which is then ready to submit.
pub(crate) fn fill<W: Workload>(
    program: &RecordedWorkload<W>,
    pool: &ThreadPool,
    slot: Slot<Free>,
    mut batch: Batch<W>,
) -> Slot<Filled<Batch<W>>> {
    let mut slot = slot.begin();
    write(program, pool, &mut slot, &mut batch, program.uniforms());
    let total = batch.total;
    slot.filled(batch, total, program.buckets())
}

/// Writes the batch and its header, with these values of the uniforms, into the slot's memory.
pub(super) fn write<W: Workload>(
    program: &RecordedWorkload<W>,
    pool: &ThreadPool,
    slot: &mut Slot<Filling>,
    batch: &mut Batch<W>,
    uniforms: impl Iterator<Item = u32>,
) {
    let mut views = slot.host_mut(program.id, batch.total, &program.upload_ids);
    if let Some(header) = program.header {
        let position = program.upload_ids.binary_search(&header);
        let bytes = views.remove(position.expect("the header is an upload"));
        let header = bytemuck::cast_slice_mut(bytes);
        write_header(header, batch.total, batch.items, uniforms);
    }
    let views = WriteViews::new(&program.uploads, views);
    let entries = &mut batch.entries[..];
    match shares_work(pool, program.uploads.bytes(batch.total)) {
        true => pool.install(|| write_entries(program, entries, views)),
        false => write_in_turn(program, entries, views),
    }
}

/// Whether a pool is faster than this thread at copying so many bytes.
pub(super) fn shares_work(pool: &ThreadPool, bytes: usize) -> bool {
    bytes >= PARALLEL_BYTES_MIN && pool.current_num_threads() > 1
}

fn write_in_turn<W: Workload>(
    program: &RecordedWorkload<W>,
    entries: &mut [Entry<W>],
    mut views: WriteViews<'_>,
) {
    for entry in entries {
        write_entry(program, entry, &mut views);
    }
}

/// Writes halves of the entries in parallel, down to one entry or [`PARALLEL_BYTES_MIN`].
fn write_entries<W: Workload>(
    program: &RecordedWorkload<W>,
    entries: &mut [Entry<W>],
    mut views: WriteViews<'_>,
) {
    let small = program.uploads.bytes(spanned(entries)) < PARALLEL_BYTES_MIN;
    if small || entries.len() == 1 {
        return write_in_turn(program, entries, views);
    }
    let (front, back) = entries.split_at_mut(entries.len() / 2);
    let front_views = views.split_off(spanned(front));
    rayon::join(
        || write_entries(program, front, front_views),
        || write_entries(program, back, views),
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

fn write_entry<W: Workload>(
    program: &RecordedWorkload<W>,
    entry: &mut Entry<W>,
    views: &mut WriteViews<'_>,
) {
    let Ok(location) = entry.location else { return };
    let mut own = views.split_off(location.extent);
    let written = program.guarded(|| {
        program.workload.write(
            &program.buffers,
            &entry.item,
            location.at,
            &mut own.reborrow(),
        )
    });
    if let Err(error) = written.within(|| "write") {
        own.zero();
        entry.location = Err(error);
    }
}
