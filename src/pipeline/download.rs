//! Stage three: reads results out of a finished slot.

use super::batch::{Batch, Entry};
use super::recorded::RecordedWorkload;
use super::slot::{Done, Slot};
use super::upload::PARALLEL_BYTES_MIN;
use crate::error::{Context, Result};
use crate::record::BUFFERS_MAX;
use crate::workload::{ReadViews, Workload};
use arrayvec::ArrayVec;
use rayon::ThreadPool;
use rayon::prelude::*;

/// Reads the results of all items of a batch, in order, into `outputs`. Items without a location
/// keep their error.
pub(crate) fn unpack<W: Workload, B>(
    program: &RecordedWorkload<W>,
    pool: &ThreadPool,
    slot: &Slot<Done<B>>,
    batch: &Batch<W>,
    outputs: &mut Vec<Result<W::Output>>,
) {
    let buffers: ArrayVec<&[u8], BUFFERS_MAX> = program
        .download_ids
        .iter()
        .map(|&id| slot.host(id))
        .collect();
    let read = |entry: &Entry<W>| -> Result<W::Output> {
        let location = entry.location.clone()?;
        let views = ReadViews::new(&program.downloads, &buffers, location.at, location.extent);
        program
            .guarded(|| {
                program
                    .workload
                    .read(&program.buffers, &entry.item, location.at, &views)
            })
            .within(|| "read")
    };
    if program.downloads.bytes(batch.total) < PARALLEL_BYTES_MIN {
        outputs.extend(batch.entries.iter().map(read));
    } else {
        let entries = &batch.entries;
        pool.install(|| outputs.par_extend(entries.par_iter().map(read)));
    }
}
