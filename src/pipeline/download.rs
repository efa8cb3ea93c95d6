//! Stage three: results out of a finished slot.

use super::batch::{Batch, Entry};
use super::program::Program;
use super::slot::{Done, Slot};
use super::upload::guarded;
use crate::error::{Context, Result};
use crate::record::BUFFERS_MAX;
use crate::workload::{ReadViews, Workload};
use arrayvec::ArrayVec;
use rayon::ThreadPool;
use rayon::prelude::*;

/// Items that one thread reads before it is worth asking another.
const ITEMS_PER_TASK: usize = 8;

/// Reads every item of a batch, in order; those without a place keep their error.
pub(crate) fn unpack<W: Workload>(
    program: &Program<W>,
    pool: &ThreadPool,
    slot: &Slot<Done<Batch<W>>>,
) -> Vec<Result<W::Output>> {
    let buffers: ArrayVec<&[u8], BUFFERS_MAX> = program
        .download_ids
        .iter()
        .map(|&id| slot.host(id))
        .collect();
    let read = |entry: &Entry<W>| -> Result<W::Output> {
        let place = entry.place.clone()?;
        let views = ReadViews::new(&program.downloads, &buffers, place.at, place.extent);
        guarded(|| {
            program
                .workload
                .read(&program.buffers, &entry.item, place.at, &views)
        })
        .within(|| "read")
    };
    let entries = &slot.batch().entries;
    if entries.len() <= ITEMS_PER_TASK {
        entries.iter().map(read).collect()
    } else {
        pool.install(|| {
            entries
                .par_iter()
                .with_min_len(ITEMS_PER_TASK)
                .map(read)
                .collect()
        })
    }
}
