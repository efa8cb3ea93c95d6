//! [`WrittenTable`]: the rows of one table, on their way into row groups and parts.

use super::super::config::{OutputTable, TableFormat, TableSettings};
use super::arrow_batches::{ArrowBatches, TableBatch};
use super::arrow_file::ArrowFile;
use super::csv_file::Csv;
use super::json_file::JsonLines;
use super::parquet_file::ParquetFile;
use super::part_file::{CompletePart, FileSpec, PartFile, create, in_memory};
use super::part_name;
use super::row_group::RowGroup;
use super::statistics::{ColumnStatistics, ValueStatistics};
use super::structure_rows::{StructureRows, TextBytes};
use super::text_file::TextFile;
use crossbeam_channel::Sender;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use tapeloop::error::Result;

/// Maximum bytes of text in a row group. Some row groups of each table are in memory at once, and
/// an Arrow file or CSV repeats the names of a structure in each row.
const GROUP_TEXT_BYTES_MAX: usize = 32 << 20;

/// Where the rows of a table go.
#[derive(Clone)]
pub(super) enum RowOutput {
    Folder(PathBuf),
    Stdout,
    Batches(Sender<TableBatch>),
}

/// Creates a file of a table in its format; without a path it is standard output.
fn create_part(path: Option<PathBuf>, format: TableFormat, spec: &FileSpec) -> Result<PartFile> {
    match format {
        TableFormat::Parquet => create::<ParquetFile>(path, spec),
        TableFormat::Arrow => create::<ArrowFile>(path, spec),
        TableFormat::Csv => create::<TextFile<Csv>>(path, spec),
        TableFormat::Json => create::<TextFile<JsonLines>>(path, spec),
    }
}

/// One table: the rows of the next row group, and the open part.
pub(super) struct WrittenTable {
    pub(super) kind: OutputTable,
    output: RowOutput,
    format: TableFormat,
    pub(super) files: FileSpec,
    /// The statistics of each column in all finished parts.
    pub(super) statistics: Vec<ValueStatistics>,
    rows_per_group: usize,
    pub(super) group_text_bytes_max: usize,
    /// The next row group.
    pub(super) group: RowGroup,
    /// Upper bound of the bytes of text in its rows.
    group_text_bytes: usize,
    pub(super) part: Option<PartFile>,
    /// The part before, until it is complete.
    ending: Option<PartFile>,
}

impl WrittenTable {
    /// A table without rows; [`WrittenTable::start_part`] has to come before any.
    pub(super) fn new(
        kind: OutputTable,
        output: RowOutput,
        files: FileSpec,
        settings: TableSettings,
    ) -> Self {
        WrittenTable {
            kind,
            output,
            format: settings.format,
            statistics: vec![ValueStatistics::default(); files.columns.len()],
            files,
            rows_per_group: settings.rows_per_group,
            group_text_bytes_max: GROUP_TEXT_BYTES_MAX,
            group: RowGroup::default(),
            group_text_bytes: 0,
            part: None,
            ending: None,
        }
    }

    /// The name of the table and of its folder.
    pub(super) fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// Starts a part, whose number its file has: a file with a temporary name, standard output, or
    /// batches in memory.
    pub(super) fn start_part(&mut self, part: u64) -> Result<()> {
        let files = &self.files;
        self.part = Some(match &self.output {
            RowOutput::Folder(folder) => {
                let path = folder.join(part_name(part, self.format));
                create_part(Some(path), self.format, files)?
            }
            RowOutput::Stdout => create_part(None, self.format, files)?,
            RowOutput::Batches(batches) => {
                let format = ArrowBatches::new(self.name(), files, batches.clone());
                in_memory(format, files)?
            }
        });
        Ok(())
    }

    /// Appends a structure, and returns whether a row group ended, which waits as [`PartFile::write_group`] does.
    pub(super) fn append(&mut self, record: &Arc<StructureRows>) -> Result<bool> {
        let mut is_flushed = false;
        let mut text = record.text_bytes_max(self.kind);
        let has_dictionary = match self.format {
            TableFormat::Parquet => true,
            TableFormat::Arrow => self.files.shares_texts,
            TableFormat::Csv | TableFormat::Json => false,
        };
        if !has_dictionary {
            // Without a dictionary each row has a copy of a text that all rows share.
            let each_row = text.once + text.each_row;
            text = TextBytes { once: 0, each_row };
        }
        // The texts of the structure that the row group has not.
        let mut once = text.once;
        // A structure may span row groups, which end by rows and text alone.
        for Range { mut start, end } in record.rows(self.kind) {
            while start < end {
                let room = self.rows_per_group - self.group.rows();
                let text_room = self
                    .group_text_bytes_max
                    .saturating_sub(self.group_text_bytes);
                let text_rows = text_room.saturating_sub(once) / text.each_row.max(1);
                let is_full = self.group.rows() > 0 && text_rows == 0;
                if !is_full {
                    // A row group has one row at least.
                    let rows = (end - start).min(room).min(text_rows.max(1));
                    self.group.push(record, start..start + rows);
                    self.group_text_bytes += once + rows * text.each_row;
                    once = 0;
                    start += rows;
                }
                if is_full || self.group.rows() == self.rows_per_group {
                    self.flush()?;
                    once = text.once;
                    is_flushed = true;
                }
            }
        }
        Ok(is_flushed)
    }

    /// Passes the row group to the part, and begins an empty one.
    fn flush(&mut self) -> Result<()> {
        self.group_text_bytes = 0;
        let part = self.part.as_mut().expect("`start_part` comes before rows");
        part.write_group(std::mem::take(&mut self.group))
    }

    /// Has the rest of the part written, and does not wait for it.
    pub(super) fn end_part(&mut self) -> Result<()> {
        if self.group.rows() > 0 {
            self.flush()?;
        }
        let mut part = self.part.take();
        let ending = part.as_mut();
        ending
            .expect("`start_part` comes before `end_part`")
            .finish()?;
        self.ending = part;
        Ok(())
    }

    /// Whether the part that [`WrittenTable::end_part`] has ended is on the disk, or has failed.
    pub(super) fn is_part_written(&self) -> bool {
        self.ending.as_ref().is_some_and(PartFile::has_ended)
    }

    /// Waits for the part that [`WrittenTable::end_part`] has ended.
    pub(super) fn complete_part(&mut self) -> Result<CompletePart> {
        let part = self.ending.take();
        let part = part.expect("`end_part` comes before `complete_part`");
        let part = part.complete()?;
        let columns = self.statistics.iter_mut().zip(&part.statistics);
        columns.for_each(|(statistics, of_part)| statistics.add(of_part.clone()));
        Ok(part)
    }

    /// The statistics of each column.
    pub(super) fn into_statistics(self) -> Vec<ColumnStatistics> {
        let name = self.name();
        let columns = self.files.columns.iter().zip(self.statistics);
        let named = columns.map(|(column, values)| ColumnStatistics {
            table: name,
            name: column.spec.name.clone(),
            values,
            idle_when: column.decl.as_ref().map(|decl| decl.idle_when),
        });
        named.collect()
    }
}
