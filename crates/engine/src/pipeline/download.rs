//! Stage three: reads results out of a finished slot.

use super::batch::{Batch, Entry};
use super::leases::BatchLeases;
use super::recorded::{RecordedWorkload, catch_as_input};
use super::slot::{Done, Slot};
use super::unwinding::catch_and_log;
use super::upload::BatchThreads;
use crate::error::{Context, Error, Result};
use crate::record::BUFFERS_MAX;
use crate::workload::{BatchItem, Extent, ReadViews, Workload};
use arrayvec::ArrayVec;
use rayon::prelude::*;

/// Items whose results took more room than their extents: each with its index among the batch's
/// entries and the extent that it needs.
pub(crate) type Outgrown = Vec<(usize, Extent)>;

/// Reads the results of all items of a batch, in order, into `outputs`. Items without a location
/// keep their error. If items have outgrown their extents, the slot is used again, and no result
/// borrows it. If that cannot be found out, all items get the error.
pub(crate) fn unpack<W: Workload, B>(
    program: &RecordedWorkload<W>,
    threads: BatchThreads<'_>,
    slot: &Slot<Done<B>>,
    batch: &Batch<W>,
    outputs: &mut Vec<Result<W::Output>>,
    leases: &BatchLeases<'_>,
) -> Outgrown {
    let buffers: ArrayVec<&[u8], BUFFERS_MAX> = program
        .download_ids
        .iter()
        .map(|&id| slot.host(id))
        .collect();
    let copies = leases.as_copies();
    let (layout, start) = (&program.downloads, Extent::default());
    let views = ReadViews::new(layout, &buffers, start, batch.total, &copies);
    let outgrown = match find_outgrown(program, batch, &views) {
        Ok(outgrown) => outgrown,
        Err(error) => {
            let entries = batch.entries.iter();
            outputs.extend(entries.map(|entry| Err(entry.error_or(&error))));
            return Vec::new();
        }
    };
    let leases = if outgrown.is_empty() { leases } else { &copies };
    read_results(program, threads, &buffers, batch, outputs, leases);
    outgrown
}

/// Appends a result for each entry of a batch to `outputs`: those of [`Workload::read_batch`] if
/// the workload has that, or else of [`Workload::read`] for each item, on several threads if the
/// batch is large. An entry that was rejected keeps its error.
fn read_results<W: Workload>(
    program: &RecordedWorkload<W>,
    threads: BatchThreads<'_>,
    buffers: &[&[u8]],
    batch: &Batch<W>,
    outputs: &mut Vec<Result<W::Output>>,
    leases: &BatchLeases<'_>,
) {
    let parts = threads.parts(program.downloads.bytes(batch.total));
    let pool = (parts > 1).then_some(threads.pool);
    let views_of =
        |offset, extent| ReadViews::new(&program.downloads, buffers, offset, extent, leases);
    let views = views_of(Extent::default(), batch.total);
    let mut located = located_items(batch);
    let read_batch = || -> Result<Option<Vec<Result<W::Output>>>> {
        let (workload, buffers) = (&program.workload, &program.buffers);
        let read = workload.read_batch(buffers, &mut located, &views, pool);
        let Some(results) = read else {
            return Ok(None);
        };
        // `batch.items` counts items whose write failed too.
        let located = batch.entries.iter().filter(|entry| entry.location.is_ok());
        let (given, expected) = (results.len(), located.count());
        if given != expected {
            for result in results {
                catch_and_log(|| drop(result));
            }
            let message =
                format!("read_batch returned {given} results for a batch of {expected} items");
            return Err(Error::input(message).fix("return a result for each item"));
        }
        Ok(Some(results))
    };
    let inside = program.inside();
    let results = catch_as_input(read_batch).within(|| "read").transpose();
    if let Some(results) = results {
        let mut results = results.map(Vec::into_iter);
        outputs.extend(batch.entries.iter().map(|entry| {
            entry.location.as_ref().map_err(Clone::clone)?;
            let results = results.as_mut().map_err(|error| error.clone())?;
            results.next().expect("the number of results was checked")
        }));
        return;
    }
    let read = |entry: &Entry<W>| -> Result<W::Output> {
        let location = entry.location.clone()?;
        let views = views_of(location.offset, location.extent);
        let read = || {
            let (workload, buffers) = (&program.workload, &program.buffers);
            workload.read(buffers, entry.item(), location.offset, &views)
        };
        catch_as_input(read).within(|| "read")
    };
    if let Some(pool) = pool {
        // The pool's threads run the workload's code instead of this one.
        drop(inside);
        let of_part = batch.entries.len().div_ceil(parts);
        let entries = batch.entries.par_iter().with_min_len(of_part);
        let outputs_of = entries.map_init(|| program.inside(), |_, entry| read(entry));
        pool.install(|| outputs.par_extend(outputs_of));
    } else {
        outputs.extend(batch.entries.iter().map(read));
    }
}

/// Asks the workload which items of a batch have outgrown their extents. Returns each with its index among
/// all entries of the batch, rejected ones included, and the extent that it needs.
///
/// # Errors
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for an item that the batch does not have; those of
/// the workload.
fn find_outgrown<W: Workload>(
    program: &RecordedWorkload<W>,
    batch: &Batch<W>,
    views: &ReadViews<'_>,
) -> Result<Outgrown> {
    let _inside = program.inside();
    let found = catch_as_input(|| {
        let (workload, buffers) = (&program.workload, &program.buffers);
        workload.outgrown(buffers, &mut located_items(batch), views)
    });
    let found = found.within(|| "outgrown")?;
    if found.is_empty() {
        return Ok(found);
    }
    let entries = batch.entries.iter().enumerate();
    let indices: Vec<usize> = entries
        .filter(|(_, entry)| entry.location.is_ok())
        .map(|(index, _)| index)
        .collect();
    let of_entry = |(index, extent): (usize, Extent)| {
        let entry = indices.get(index).copied();
        let error = || {
            Error::usage(format!(
                "the workload reports that item {index} has outgrown its extent, and the batch has {} \
                 items",
                indices.len()
            ))
        };
        Ok((entry.ok_or_else(error)?, extent))
    };
    found.into_iter().map(of_entry).collect()
}

/// The items of a batch with their parts, without those that were rejected.
fn located_items<W: Workload>(batch: &Batch<W>) -> impl Iterator<Item = BatchItem<'_, W::Item>> {
    batch.entries.iter().filter_map(|entry| {
        let location = entry.location.as_ref().ok()?;
        Some(BatchItem {
            item: entry.item(),
            offset: location.offset,
            extent: location.extent,
        })
    })
}
