//! The rows of all tables, as they were loaded.

use super::columns::Level;
use super::row_store::RowStore;
use super::values::Type;
use std::ops::Range;
use std::path::PathBuf;

/// The rows of all tables, and the columns that they have.
#[derive(Debug)]
pub(super) struct LoadedTables {
    /// Names of the columns that go to the kernels.
    pub(super) channels: Vec<String>,
    /// The columns that go to the tables.
    pub(super) columns: Vec<AnnotationColumn>,
    pub(super) files: Vec<PathBuf>,
    /// The files and folders that `annotations` names, each with the indices of its rows.
    pub(super) tables: Vec<(PathBuf, Range<u32>)>,
    /// The layout of the rows of each file.
    pub(super) layouts: Vec<RowLayout>,
    pub(super) store: RowStore,
    /// A hash of all rows, in the order of the tables.
    pub(super) digest: u64,
}

impl LoadedTables {
    /// Number of rows of all tables that have a column which is read.
    pub(super) fn rows(&self) -> u32 {
        self.tables.last().map_or(0, |(_, rows)| rows.end)
    }

    /// The number of the table, as `annotations` names them, that has this row.
    pub(super) fn table_of(&self, row: u32) -> usize {
        self.tables.partition_point(|(_, rows)| rows.end <= row)
    }
}

/// A column that goes to a table.
#[derive(Clone, Debug)]
pub struct AnnotationColumn {
    /// What each row of its table describes.
    pub level: Level,
    /// The name.
    pub name: String,
    /// The type of its values.
    pub kind: Type,
}

/// The values that each row of a file has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RowLayout {
    pub(super) level: Level,
    /// The channels in a row, by index.
    pub(super) channels: Vec<usize>,
    /// The columns in a row that go to the tables, by index.
    pub(super) columns: Vec<usize>,
}
