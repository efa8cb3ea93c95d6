//! The rows of the next row group, in the order of the table.

use super::column::TableColumn;
use super::structure_rows::{RowRange, StructureRows};
use arrow_array::ArrayRef;
use std::ops::Range;
use std::sync::Arc;

/// The most rows of an array, so that it is still in the processor's cache when it is encoded.
const ARRAY_ROWS_MAX: usize = 1 << 14;

/// A row group.
#[derive(Default)]
pub(super) struct RowGroup {
    slices: Vec<RowSlice>,
    rows: usize,
}

/// Consecutive rows.
enum RowSlice {
    /// Rows of structures, and the number of rows in all of them.
    Ranges(Vec<RowRange>, usize),
    /// As an array of each column.
    Arrays(Vec<ArrayRef>),
}

impl RowGroup {
    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Number of ranges of structures that are kept until their rows are gathered.
    #[cfg(test)]
    pub(super) fn structures(&self) -> usize {
        let ranges = |slice: &RowSlice| match slice {
            RowSlice::Ranges(ranges, _) => ranges.len(),
            RowSlice::Arrays(_) => 0,
        };
        self.slices.iter().map(ranges).sum()
    }

    /// Appends some rows of a structure.
    pub(super) fn push(&mut self, record: &Arc<StructureRows>, rows: Range<usize>) {
        self.rows += rows.len();
        let mut start = rows.start;
        while start < rows.end {
            if !matches!(self.slices.last(), Some(RowSlice::Ranges(_, count)) if *count < ARRAY_ROWS_MAX)
            {
                self.slices.push(RowSlice::Ranges(Vec::new(), 0));
            }
            if let Some(RowSlice::Ranges(ranges, count)) = self.slices.last_mut() {
                let end = rows.end.min(start + ARRAY_ROWS_MAX - *count);
                ranges.push(RowRange {
                    record: Arc::clone(record),
                    rows: start..end,
                });
                *count += end - start;
                start = end;
            }
        }
    }

    /// Gathers all rows, so that the memory of their structures is free.
    pub(super) fn gather(&mut self, columns: &[TableColumn]) {
        for slice in &mut self.slices {
            if let RowSlice::Ranges(ranges, _) = slice {
                let arrays = columns.iter().map(|column| column.gather(ranges));
                *slice = RowSlice::Arrays(arrays.collect());
            }
        }
    }

    /// The arrays of a column, which is the one at `index` of the table: one for each slice.
    pub(super) fn arrays(
        &self,
        column: &TableColumn,
        index: usize,
    ) -> impl Iterator<Item = ArrayRef> {
        self.slices
            .iter()
            .map(move |slice| slice.array(column, index))
    }

    /// Number of slices. Each has as many rows as an array may have, or fewer.
    pub(super) fn slices(&self) -> usize {
        self.slices.len()
    }

    /// The arrays of all columns in one slice.
    pub(super) fn slice(&self, slice: usize, columns: &[TableColumn]) -> Vec<ArrayRef> {
        let columns = columns.iter().enumerate();
        let array = |(index, column)| self.slices[slice].array(column, index);
        columns.map(array).collect()
    }
}

impl RowSlice {
    /// The array of a column, which is the one at `index` of the table.
    fn array(&self, column: &TableColumn, index: usize) -> ArrayRef {
        match self {
            RowSlice::Ranges(ranges, _) => column.gather(ranges),
            RowSlice::Arrays(arrays) => Arc::clone(&arrays[index]),
        }
    }
}
