//! The results as tables of residues, chains, structures and variants.
//!
//! Each table is a folder of parts, which are files of one format. A part ends at a fixed number of
//! inputs or of residues, and a row group at a fixed number of rows. Batches play no part in that, so
//! the same input gives the same bytes whatever the batches were.

mod annotation_column;
mod arrow_batches;
mod arrow_file;
mod column;
mod columns;
mod csv_file;
mod dictionary;
mod json_file;
mod parquet_file;
mod part_file;
mod reduction;
mod row_filter;
mod row_group;
mod schema;
mod statistics;
mod structure_rows;
mod terminal_table;
mod text_file;

use crate::error::{Context, Error, Result};
use crate::structure::Residue;
pub(crate) use arrow_batches::TableBatch;
use arrow_batches::ArrowBatches;
use arrow_file::ArrowFile;
pub(super) use columns::{ColumnSources, name_taken};
use csv_file::Csv;
use json_file::JsonLines;
use parquet_file::ParquetFile;
use arrow_schema::SchemaRef;
use crossbeam_channel::Sender;
use part_file::{CompletePart, FileSpec, PartFile, create, in_memory, publish};
use rayon::ThreadPool;
pub(super) use row_filter::RowFilter;
#[cfg(fuzzing)]
pub(super) use row_filter::gather_all;
use row_group::RowGroup;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::annotations::JoinedVariants;
use super::config::{RowKind, TABLES, TableFormat, TableSettings};
use super::core_time::CoreTime;
use super::path_text::shown;
use statistics::ValueStatistics;
pub(super) use statistics::{ColumnStatistics, notes, warnings};
pub(crate) use structure_rows::StructureRows;
use structure_rows::TextBytes;
pub(super) use terminal_table::TerminalTable;
use text_file::TextFile;

/// Maximum bytes of text in a row group. Some row groups of each table are in memory at once, and
/// an Arrow file or CSV repeats the names of a structure in each row.
const GROUP_TEXT_BYTES_MAX: usize = 32 << 20;

/// The tables' folders.
pub(crate) fn folders() -> impl Iterator<Item = &'static str> {
    TABLES.iter().map(|(_, folder)| *folder)
}

/// The folders of the tables that are written.
pub(super) fn written_folders(settings: &TableSettings) -> Vec<&'static str> {
    let chosen = folders().zip(settings.written);
    let written = chosen.filter(|(_, is_written)| *is_written);
    written.map(|(folder, _)| folder).collect()
}

/// Creates a file of a table in its format; without a path it is standard output.
fn create_part(
    path: Option<PathBuf>,
    format: TableFormat,
    spec: &FileSpec,
) -> Result<Box<dyn PartFile>> {
    match format {
        TableFormat::Parquet => create::<ParquetFile>(path, spec),
        TableFormat::Arrow => create::<ArrowFile>(path, spec),
        TableFormat::Csv => create::<TextFile<Csv>>(path, spec),
        TableFormat::Json => create::<TextFile<JsonLines>>(path, spec),
    }
}

/// The file name of a part.
pub(super) fn part_name(part: u64, format: TableFormat) -> String {
    format!("part-{part:05}.{}", format.name())
}

/// The number and the format of the part that has this file name, or this temporary one.
pub(super) fn part_of_name(name: &str) -> Option<(u64, TableFormat)> {
    let name = match name.strip_prefix('.') {
        Some(hidden) => hidden.strip_suffix(".tmp")?,
        None => name,
    };
    let (digits, ending) = name.strip_prefix("part-")?.split_once('.')?;
    let mut formats = TableFormat::ALL.into_iter();
    let format = formats.find(|format| format.name() == ending)?;
    let is_number = digits.len() >= 5 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| Some((digits.parse().ok()?, format)))?
}

/// About the most bytes that rows take while they wait for their row groups to be written: those of
/// the residues, in the row group that is being filled and in those being encoded. `columns` is the
/// number of their feature columns.
pub(super) fn rows_bytes(settings: TableSettings, columns: usize) -> u64 {
    let row = columns * size_of::<f32>() + size_of::<Residue>();
    (1 + part_file::GROUPS_ENCODING_MAX as u64) * settings.rows_per_group as u64 * row as u64
}

/// Where the rows of a table go.
#[derive(Clone)]
enum Output {
    Folder(PathBuf),
    Stdout,
    Batches(Sender<TableBatch>),
}

/// All tables, or the table of residues on standard output. Dropping them before
/// [`Tables::finish`] removes the open parts.
pub(crate) struct Tables {
    /// Those that are written, in the order of [`TABLES`].
    tables: Vec<Table>,
    inputs_per_part: u64,
    residues_per_part: u64,
    pool: Arc<ThreadPool>,
    cores: CoreTime,
    /// Residues and variants of structures that have been appended since rows were gathered.
    rows_held: usize,
    rows_held_max: usize,
    part: Option<OpenPart>,
    parts_done: u64,
    /// The files of the parts that are done.
    files: PartFiles,
}

impl Tables {
    /// Creates tables in the subfolders ([`folders`]) of `folder`, which exist. `metadata` is written
    /// to every file, and `pool` encodes.
    ///
    /// # Panics
    /// If a setting is out of its range.
    pub(crate) fn new(
        folder: &Path,
        settings: TableSettings,
        columns: &ColumnSources<'_>,
        metadata: &[(&'static str, String)],
        pool: Arc<ThreadPool>,
    ) -> Self {
        let outputs = TABLES.map(|(_, subfolder)| Output::Folder(folder.join(subfolder)));
        Tables::write_to(&outputs, settings, columns, metadata, pool)
    }

    /// Creates the table of residues on standard output, in one part. The arguments are those of
    /// [`Tables::new`].
    pub(crate) fn to_stdout(
        settings: TableSettings,
        columns: &ColumnSources<'_>,
        metadata: &[(&'static str, String)],
        pool: Arc<ThreadPool>,
    ) -> Self {
        let settings = TableSettings {
            written: [true; TABLES.len()],
            ..settings.in_one_part()
        };
        Tables::write_to(&[Output::Stdout], settings, columns, metadata, pool)
    }

    /// Sends the rows of tables as record batches, in one part. The other arguments are those of
    /// [`Tables::new`].
    pub(crate) fn to_batches(
        batches: &Sender<TableBatch>,
        settings: TableSettings,
        columns: &ColumnSources<'_>,
        metadata: &[(&'static str, String)],
        pool: Arc<ThreadPool>,
    ) -> Self {
        let outputs = TABLES.map(|_| Output::Batches(batches.clone()));
        // Its texts are those of Arrow files, which each row repeats.
        let settings = TableSettings {
            format: TableFormat::Arrow,
            ..settings.in_one_part()
        };
        Tables::write_to(&outputs, settings, columns, metadata, pool)
    }

    /// The name and the schema of each table, if the rows go to record batches.
    pub(crate) fn schemas(&self) -> impl Iterator<Item = (&'static str, SchemaRef)> {
        self.tables.iter().filter_map(|table| {
            let batches = table.batches()?;
            Some((table.name(), Arc::clone(batches.schema())))
        })
    }

    /// Creates the first tables of [`TABLES`], one for each of the outputs.
    fn write_to(
        outputs: &[Output],
        settings: TableSettings,
        columns: &ColumnSources<'_>,
        metadata: &[(&'static str, String)],
        pool: Arc<ThreadPool>,
    ) -> Self {
        let cuts = [
            settings.inputs_per_part,
            settings.residues_per_part,
            settings.rows_per_group as u64,
        ];
        assert!(!cuts.contains(&0), "parts and row groups are not empty");
        let cores = CoreTime::default();
        let table = |(&(kind, _), output): (&(RowKind, &str), &Output)| {
            let files = FileSpec {
                columns: columns::columns(kind, columns, settings.has_frames).into(),
                compression: settings.compression,
                metadata: metadata.to_vec(),
                cores: cores.clone(),
            };
            Table::new(kind, output.clone(), files, settings)
        };
        Tables {
            tables: {
                let chosen = TABLES.iter().zip(outputs).zip(settings.written);
                let written = chosen.filter(|(_, is_written)| *is_written);
                written.map(|(it, _)| table(it)).collect()
            },
            inputs_per_part: settings.inputs_per_part,
            residues_per_part: settings.residues_per_part,
            pool,
            cores,
            rows_held: 0,
            rows_held_max: settings.rows_per_group,
            part: None,
            parts_done: 0,
            files: PartFiles::default(),
        }
    }

    /// Goes to the input `ordinal`, and starts a part if the open one is full. Call this for each
    /// ordinal in ascending order, rejected inputs included, and for each structure of an input.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn advance(&mut self, ordinal: u64) -> Result<()> {
        if let Some(part) = &mut self.part {
            let inputs = ordinal - part.first;
            let is_full = inputs >= self.inputs_per_part || part.residues >= self.residues_per_part;
            // The structures of an input stay together.
            if !is_full || ordinal == part.last {
                part.last = ordinal;
                return Ok(());
            }
        }
        self.finish_part()?;
        let mut tables = self.tables.iter_mut();
        tables.try_for_each(|table| table.start_part(self.parts_done))?;
        self.part = Some(OpenPart {
            first: ordinal,
            last: ordinal,
            residues: 0,
        });
        Ok(())
    }

    /// Appends a structure to the open part, without its variants, and returns it.
    ///
    /// # Errors
    /// A file cannot be written.
    ///
    /// # Panics
    /// If `advance` was not called for its ordinal.
    pub(crate) fn append(&mut self, record: StructureRows) -> Result<Arc<StructureRows>> {
        let record = Arc::new(record);
        let residues = record.structure.residues.len();
        let part = self.part.as_mut();
        part.expect("`advance` comes before rows").residues += residues as u64;
        self.append_rows(&record, residues)?;
        Ok(record)
    }

    /// Whether there is a table of variants.
    pub(super) fn have_variants(&self) -> bool {
        let mut tables = self.tables.iter();
        tables.any(|table| table.kind == RowKind::Variant)
    }

    /// Appends some variants of a structure, which was appended last.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn append_variants(
        &mut self,
        record: &StructureRows,
        variants: JoinedVariants,
    ) -> Result<()> {
        let rows = variants.residues.len();
        self.append_rows(&Arc::new(record.with_variants(variants)), rows)
    }

    /// Appends the rows of a structure or of some of its variants; `held` is their number, those
    /// without a row included.
    fn append_rows(&mut self, record: &Arc<StructureRows>, held: usize) -> Result<()> {
        self.rows_held += held;
        let mut is_flushed = false;
        for table in &mut self.tables {
            is_flushed |= table.append(record, &self.pool)?;
        }
        // A row group of residues keeps few structures. One of structures would keep all of them, as
        // would one of residues of which a condition selects few.
        if is_flushed || self.rows_held >= self.rows_held_max {
            let tables = &mut self.tables;
            let gather = |table: &mut Table| table.group.gather(&table.files.columns);
            self.cores.of(|| tables.iter_mut().for_each(gather));
            self.rows_held = 0;
        }
        Ok(())
    }

    /// The processor time of gathering and encoding, also that of later row groups.
    pub(crate) fn cores(&self) -> CoreTime {
        self.cores.clone()
    }

    /// Goes on behind the first parts, which are complete and have these files.
    ///
    /// # Errors
    /// The statistics are not those of these tables' columns.
    pub(crate) fn resume(
        &mut self,
        parts: u64,
        files: PartFiles,
        statistics: PartStatistics,
    ) -> Result<()> {
        let have = statistics.0.iter().map(Vec::len);
        if parts > 0 && !have.eq(self.tables.iter().map(|table| table.statistics.len())) {
            let error = Error::usage("the tables of the interrupted run have other columns");
            return Err(error.fix("start anew with --overwrite"));
        }
        for (table, statistics) in self.tables.iter_mut().zip(statistics.0) {
            table.statistics = statistics;
        }
        self.parts_done = parts;
        self.files = files;
        Ok(())
    }

    /// The files of the parts that are finished.
    pub(crate) fn files(&self) -> PartFiles {
        self.files.clone()
    }

    /// The statistics of all columns in the parts that are finished.
    pub(crate) fn statistics(&self) -> PartStatistics {
        PartStatistics(
            self.tables
                .iter()
                .map(|table| table.statistics.clone())
                .collect(),
        )
    }

    /// Number of parts that every table has finished.
    pub(crate) fn parts(&self) -> u64 {
        self.parts_done
    }

    fn finish_part(&mut self) -> Result<()> {
        self.rows_held = 0;
        if self.part.take().is_some() {
            let tables = self.tables.iter_mut();
            let finish = |table: &mut Table| table.finish_part(&self.pool);
            let parts: Vec<CompletePart> = tables.map(finish).collect::<Result<_>>()?;
            // The parts of all tables are on the disk before the first is renamed.
            for file in publish(parts)? {
                let bytes = file.metadata().within(|| shown(&file))?.len();
                self.files.insert(name_in_folder(&file), bytes);
            }
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
        let columns = self.tables.into_iter().flat_map(Table::into_statistics);
        Ok((self.parts_done, columns.collect()))
    }
}

/// The part that is being written.
struct OpenPart {
    /// Ordinals of its first and its latest input.
    first: u64,
    last: u64,
    /// Residues of its structures, whether they have rows or not.
    residues: u64,
}

/// The size of each file in bytes, by its name in the output folder: `residues/part-00000.parquet`.
pub(crate) type PartFiles = BTreeMap<String, u64>;

/// The name of a part's file in the output folder.
fn name_in_folder(file: &Path) -> String {
    let table = file.parent().and_then(Path::file_name);
    let names = [table, file.file_name()].map(|name| name.unwrap_or_default().to_string_lossy());
    names.join("/")
}

/// Statistics of the columns of each table.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PartStatistics(Vec<Vec<ValueStatistics>>);

impl PartStatistics {
    /// Number of tables.
    pub(crate) fn tables(&self) -> usize {
        self.0.len()
    }
}

/// One table: the rows of the next row group, and the open part.
struct Table {
    kind: RowKind,
    output: Output,
    format: TableFormat,
    files: FileSpec,
    /// The statistics of each column in all finished parts.
    statistics: Vec<ValueStatistics>,
    rows_per_group: usize,
    group_text_bytes_max: usize,
    /// The next row group.
    group: RowGroup,
    /// Upper bound of the bytes of text in its rows.
    group_text_bytes: usize,
    part: Option<Box<dyn PartFile>>,
}

impl Table {
    fn new(
        kind: RowKind,
        output: Output,
        files: FileSpec,
        settings: TableSettings,
    ) -> Self {
        Table {
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
        }
    }

    /// The name of the table and of its folder.
    fn name(&self) -> &'static str {
        let is = |(kind, _): &&(RowKind, &str)| *kind == self.kind;
        let (_, folder) = TABLES.iter().find(is).expect("each table has a folder");
        folder
    }

    /// What makes record batches of the rows, if they go there.
    fn batches(&self) -> Option<ArrowBatches> {
        match &self.output {
            Output::Batches(batches) => {
                Some(ArrowBatches::new(self.name(), &self.files, batches.clone()))
            }
            Output::Folder(_) | Output::Stdout => None,
        }
    }

    fn start_part(&mut self, part: u64) -> Result<()> {
        self.part = Some(match (self.batches(), &self.output) {
            (Some(batches), _) => in_memory(batches, &self.files),
            (None, Output::Folder(folder)) => {
                let path = folder.join(part_name(part, self.format));
                create_part(Some(path), self.format, &self.files)?
            }
            (None, _) => create_part(None, self.format, &self.files)?,
        });
        Ok(())
    }

    /// Appends a structure, and returns whether a row group ended.
    fn append(&mut self, record: &Arc<StructureRows>, pool: &ThreadPool) -> Result<bool> {
        let mut is_flushed = false;
        let mut text = record.text_bytes_max(self.kind);
        if self.format != TableFormat::Parquet {
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
                    self.flush(pool)?;
                    once = text.once;
                    is_flushed = true;
                }
            }
        }
        Ok(is_flushed)
    }

    fn flush(&mut self, pool: &ThreadPool) -> Result<()> {
        self.group_text_bytes = 0;
        let part = self.part.as_mut().expect("`start_part` comes before rows");
        part.write_group(std::mem::take(&mut self.group), pool)
    }

    fn finish_part(&mut self, pool: &ThreadPool) -> Result<CompletePart> {
        if self.group.rows() > 0 {
            self.flush(pool)?;
        }
        let part = self.part.take();
        let part = part.expect("`start_part` comes before `finish_part`");
        let part = part.finish()?;
        let columns = self.statistics.iter_mut().zip(&part.statistics);
        columns.for_each(|(statistics, of_part)| statistics.add(of_part.clone()));
        Ok(part)
    }

    /// The statistics of each column.
    fn into_statistics(self) -> Vec<ColumnStatistics> {
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

#[cfg(test)]
mod tests;
