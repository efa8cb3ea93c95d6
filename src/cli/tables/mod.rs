//! The results as Parquet tables of residues, chains and structures.
//!
//! Each table is a folder of parts, which are Parquet files. A part ends at a fixed ordinal of
//! the inputs and a row group at a fixed number of rows. Batches play no part in that, so the same
//! input gives the same bytes whatever the batches were.

mod column;
mod columns;
mod part_file;
mod schema;
mod statistics;
mod structure_rows;

use crate::error::Result;
use crate::features::{ColumnDecl, TableName};
use column::Column;
use parquet::file::properties::WriterProperties;
use part_file::{CompletePart, PartFile};
use rayon::ThreadPool;
use schema::ColumnSpec;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::config::TableSettings;
pub(super) use statistics::{ColumnStatistics, warnings};
pub(crate) use structure_rows::StructureRows;

/// Maximum bytes of text in a row group. The offsets of an Arrow array of strings end at 2 GiB.
const GROUP_TEXT_BYTES_MAX: usize = 512 << 20;

/// The tables, each with its folder.
const TABLES: [(TableName, &str); 3] = [
    (TableName::Residues, "residues"),
    (TableName::Chains, "chains"),
    (TableName::Structures, "structures"),
];

/// The tables' folders.
pub(crate) fn folders() -> impl Iterator<Item = &'static str> {
    TABLES.iter().map(|(_, folder)| *folder)
}

/// The file name of a part.
fn part_name(part: u64) -> String {
    format!("part-{part:05}.parquet")
}

/// The number of the part that has this file name, or this temporary one.
pub(super) fn part_number(name: &str) -> Option<u64> {
    let name = match name.strip_prefix('.') {
        Some(hidden) => hidden.strip_suffix(".tmp")?,
        None => name,
    };
    let digits = name.strip_prefix("part-")?.strip_suffix(".parquet")?;
    let is_number = digits.len() >= 5 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok())?
}

/// All tables. Dropping them before [`Tables::finish`] removes the open parts.
pub(crate) struct Tables {
    tables: [Table; TABLES.len()],
    inputs_per_part: u64,
    pool: Arc<ThreadPool>,
    /// The open part.
    part: Option<u64>,
    parts_done: u64,
}

impl Tables {
    /// Creates tables in the subfolders ([`folders`]) of `folder`, which exist. `features` lists
    /// the features' columns of a table, `metadata` is written to every file, and `pool` encodes.
    ///
    /// # Panics
    /// If a setting is out of its range.
    pub(crate) fn new(
        folder: &Path,
        settings: TableSettings,
        features: impl Fn(TableName) -> Vec<ColumnDecl>,
        metadata: &[(&'static str, String)],
        pool: Arc<ThreadPool>,
    ) -> Self {
        let cuts = [settings.inputs_per_part, settings.rows_per_group as u64];
        assert!(!cuts.contains(&0), "parts and row groups are not empty");
        let table = |(name, subfolder): (TableName, &str)| {
            let columns = columns::columns(name, &features(name));
            Table::new(name, folder.join(subfolder), columns, settings, metadata)
        };
        Tables {
            tables: TABLES.map(table),
            inputs_per_part: settings.inputs_per_part,
            pool,
            part: None,
            parts_done: 0,
        }
    }

    /// Goes to the input `ordinal`, and starts the part that the input belongs to. Call this once
    /// for each ordinal in ascending order, rejected inputs included.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn advance(&mut self, ordinal: u64) -> Result<()> {
        let part = ordinal / self.inputs_per_part;
        if self.part == Some(part) {
            return Ok(());
        }
        self.finish_part()?;
        let mut tables = self.tables.iter_mut();
        tables.try_for_each(|table| table.start_part(part))?;
        self.part = Some(part);
        Ok(())
    }

    /// Appends a structure to the open part.
    ///
    /// # Errors
    /// A file cannot be written.
    ///
    /// # Panics
    /// If `advance` was not called for its ordinal.
    pub(crate) fn append(&mut self, record: &StructureRows<'_>) -> Result<()> {
        let mut tables = self.tables.iter_mut();
        tables.try_for_each(|table| table.append(record, &self.pool))
    }

    /// Number of parts that every table has finished.
    pub(crate) fn parts(&self) -> u64 {
        self.parts_done
    }

    fn finish_part(&mut self) -> Result<()> {
        if self.part.take().is_some() {
            let tables = self.tables.iter_mut();
            let finish = |table: &mut Table| table.finish_part(&self.pool);
            let parts: Vec<CompletePart> = tables.map(finish).collect::<Result<_>>()?;
            // The parts of all tables are on the disk before the first is renamed.
            parts.into_iter().try_for_each(CompletePart::publish)?;
            self.parts_done += 1;
        }
        Ok(())
    }

    /// Finishes the last part, and returns the number of parts and the columns' statistics.
    /// Without any input there is one part without rows, so that a reader finds the columns.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn finish(mut self) -> Result<(u64, Vec<ColumnStatistics>)> {
        if self.part.is_none() && self.parts_done == 0 {
            self.advance(0)?;
        }
        self.finish_part()?;
        let tables = TABLES.into_iter().zip(self.tables);
        let columns = tables.flat_map(|((_, name), table)| {
            let columns = table.columns.into_iter();
            columns.map(move |column| column.into_statistics(name))
        });
        Ok((self.parts_done, columns.collect()))
    }
}

/// One table: the rows of the next row group, and the open part.
struct Table {
    name: TableName,
    folder: PathBuf,
    columns: Vec<Column>,
    specs: Vec<ColumnSpec>,
    properties: Arc<WriterProperties>,
    rows_per_group: usize,
    rows_gathered: usize,
    group_text_bytes_max: usize,
    /// Upper bound of the bytes of text in the gathered rows.
    text_bytes_gathered: usize,
    part: Option<PartFile>,
}

impl Table {
    fn new(
        name: TableName,
        folder: PathBuf,
        columns: Vec<Column>,
        settings: TableSettings,
        metadata: &[(&'static str, String)],
    ) -> Self {
        let specs: Vec<ColumnSpec> = columns.iter().map(|column| column.spec.clone()).collect();
        let properties = schema::properties(&specs, settings.compression_level, metadata);
        Table {
            name,
            folder,
            columns,
            specs,
            properties: Arc::new(properties),
            rows_per_group: settings.rows_per_group,
            rows_gathered: 0,
            group_text_bytes_max: GROUP_TEXT_BYTES_MAX,
            text_bytes_gathered: 0,
            part: None,
        }
    }

    fn start_part(&mut self, part: u64) -> Result<()> {
        let path = self.folder.join(part_name(part));
        let properties = Arc::clone(&self.properties);
        self.part = Some(PartFile::create(path, &self.specs, properties)?);
        Ok(())
    }

    fn append(&mut self, record: &StructureRows<'_>, pool: &ThreadPool) -> Result<()> {
        let count = record.row_count(self.name);
        let mut start = 0;
        let text = record.text_bytes_max(self.name);
        // A structure may span row groups, which end by rows and text alone.
        while start < count {
            let room = self.rows_per_group - self.rows_gathered;
            let text_room = self
                .group_text_bytes_max
                .saturating_sub(self.text_bytes_gathered);
            let text_rows = text_room.saturating_sub(text.once) / text.each_row.max(1);
            if text_rows == 0 && self.rows_gathered > 0 {
                self.flush(pool)?;
                continue;
            }
            // A row group has one row at least.
            let rows = (count - start).min(room).min(text_rows.max(1));
            for column in &mut self.columns {
                column.append(record, start..start + rows);
            }
            self.rows_gathered += rows;
            self.text_bytes_gathered += text.once + rows * text.each_row;
            start += rows;
            if self.rows_gathered == self.rows_per_group {
                self.flush(pool)?;
            }
        }
        Ok(())
    }

    fn flush(&mut self, pool: &ThreadPool) -> Result<()> {
        self.rows_gathered = 0;
        self.text_bytes_gathered = 0;
        let part = self.part.as_mut().expect("`start_part` comes before rows");
        let arrays = self.columns.iter_mut().map(Column::take).collect();
        part.write_group(arrays, pool)
    }

    fn finish_part(&mut self, pool: &ThreadPool) -> Result<CompletePart> {
        if self.rows_gathered > 0 {
            self.flush(pool)?;
        }
        self.part
            .take()
            .expect("`start_part` comes before `finish_part`")
            .finish()
    }
}

#[cfg(test)]
mod tests;
