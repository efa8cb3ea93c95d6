//! Division of a twin's output into parts that threads write in parallel.

use rayon::prelude::*;
use std::ops::Range;

/// The parts of `whole` at `ranges`, which ascend. A range that does not ascend belongs to a
/// rejected item, and its part is empty.
pub(in super::super) fn parts<T: Send>(
    whole: &mut [T],
    ranges: impl Iterator<Item = Range<usize>>,
) -> rayon::vec::IntoIter<&mut [T]> {
    let mut rest = whole;
    let mut start = 0;
    let part = |range: Range<usize>| {
        if range.start < start {
            return &mut [][..];
        }
        let (_, part_and_after) = std::mem::take(&mut rest).split_at_mut(range.start - start);
        let (part, after) = part_and_after.split_at_mut(range.len());
        (rest, start) = (after, range.end);
        part
    };
    let parts: Vec<&mut [T]> = ranges.map(part).collect();
    parts.into_par_iter()
}

/// Rows of a thread's task: few enough to keep all threads busy, and enough to outweigh the cost of
/// a task.
pub(in super::super) const TASK_ROWS: usize = 64;

/// Calls `compute` in parallel with ranges of at most [`TASK_ROWS`] rows, and with their parts of `out`, which is
/// `[rows, values_per_row]`.
pub(in super::super) fn for_row_ranges<T: Send>(
    out: &mut [T],
    values_per_row: usize,
    compute: impl Fn(Range<usize>, &mut [T]) + Send + Sync,
) {
    let tasks = out.par_chunks_mut(TASK_ROWS * values_per_row).enumerate();
    tasks.for_each(|(task, part)| {
        let start = task * TASK_ROWS;
        compute(start..start + part.len() / values_per_row, part);
    });
}

/// Like [`for_row_ranges`], with two outputs, each with its values per row.
pub(in super::super) fn for_row_ranges_of_two<T: Send, U: Send>(
    (first, first_per_row): (&mut [T], usize),
    (second, second_per_row): (&mut [U], usize),
    compute: impl Fn(Range<usize>, &mut [T], &mut [U]) + Send + Sync,
) {
    let first = first.par_chunks_mut(TASK_ROWS * first_per_row);
    let second = second.par_chunks_mut(TASK_ROWS * second_per_row);
    let tasks = first.zip(second).enumerate();
    tasks.for_each(|(task, (first, second))| {
        let start = task * TASK_ROWS;
        compute(start..start + first.len() / first_per_row, first, second);
    });
}
