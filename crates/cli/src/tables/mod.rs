//! The results as tables: those of [`OutputTable::ALL`].
//!
//! Each table is a folder of parts, which are files of one format. A part ends at a fixed number of
//! inputs or of residues, and a row group at a fixed number of rows. Batches play no part in that, so
//! the same input gives the same bytes whatever the batches were.

mod annotation_column;
mod arrow_batches;
mod arrow_file;
mod atom_columns;
mod atom_owner;
mod atom_rows;
mod atom_values;
mod cell;
mod column;
mod columns;
mod coordinates;
mod csv_file;
mod dictionary;
mod interaction_columns;
mod interaction_rows;
mod ipc;
mod json_file;
mod nulls;
mod parquet_file;
mod part_file;
mod reduction;
mod row_filter;
mod row_group;
mod schema;
mod statistics;
mod structure_rows;
mod table;
mod terminal_table;
mod text_file;
mod water_bridge_columns;

pub use arrow_batches::{TableBatch, send};
use arrow_file::file_schema;
use arrow_schema::SchemaRef;
pub use cell::{Cell, decimals};
pub use columns::{ColumnSources, find_repeated_name, identifying_columns, identifying_columns_of};
pub use coordinates::Coordinates;
use crossbeam_channel::Sender;
use part_file::{CompletePart, FileSpec, publish};
use rayon::ThreadPool;
pub use row_filter::RowFilter;
#[cfg(any(fuzzing, test))]
pub use row_filter::gather_all;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tapeloop::error::{Context, Error, Result};
use tapeloop::structure::Residue;

use super::config::{OutputTable, TableFormat, TableSet, TableSettings};
use super::core_time::CoreTime;
use statistics::ValueStatistics;
pub use statistics::{ColumnStatistics, notes, warnings};
pub use structure_rows::StructureRows;
use table::{RowOutput, WrittenTable};
use tapeloop_annotations::JoinedVariants;
use tapeloop_files::shown;
pub use terminal_table::TerminalTable;

/// The tables' folders.
pub fn folders() -> impl Iterator<Item = &'static str> {
    OutputTable::ALL.into_iter().map(OutputTable::name)
}

/// The table that a run prints to standard output: that of residues, or the only one that is
/// written. `None` if there are others, and none of residues.
pub fn printed_table(written: TableSet) -> Option<OutputTable> {
    let mut tables = written.iter();
    let first = tables.next()?;
    let is_alone = tables.next().is_none();
    (first == OutputTable::RESIDUES || is_alone).then_some(first)
}

/// The file name of a part.
pub fn part_name(part: u64, format: TableFormat) -> String {
    format!("part-{part:05}.{}", format.name())
}

/// The number, of five digits or more, and the format of the part that has this file name, or this
/// temporary one.
pub fn part_of_name(name: &str) -> Option<(u64, TableFormat)> {
    let name = match name.strip_prefix('.') {
        Some(hidden) => hidden.strip_suffix(".tmp")?,
        None => name,
    };
    let (digits, ending) = name.strip_prefix("part-")?.split_once('.')?;
    let mut formats = TableFormat::ALL.into_iter();
    let format = formats.find(|format| format.name() == ending)?;
    // As many digits as `part_name` writes at least.
    let is_number = digits.len() >= 5 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| Some((digits.parse().ok()?, format)))?
}

/// Heavy atoms of a residue, on average.
const ATOMS_OF_RESIDUE: usize = 8;

/// About the most bytes that rows of a part take while they wait for their row groups to be written:
/// those of the residues and of their atoms, in the row group that is being filled and in those being encoded. `columns` is
/// the number of their feature columns, and `threads` that of the threads which encode.
pub fn rows_bytes(settings: TableSettings, columns: usize, threads: usize) -> u64 {
    let columns = columns + settings.optional.coordinates.columns().count();
    let atoms = if settings.written.contains(OutputTable::ATOMS) {
        ATOMS_OF_RESIDUE * atom_rows::ATOM_BYTES
    } else {
        0
    };
    let interactions = if settings.written.contains(OutputTable::INTERACTIONS) {
        ATOMS_OF_RESIDUE * interaction_rows::ATOM_BYTES
    } else {
        0
    };
    let row = columns * size_of::<f32>() + size_of::<Residue>() + atoms + interactions;
    (1 + part_file::groups_encoding_max(threads) as u64)
        * settings.rows_per_group as u64
        * row as u64
}

/// All tables, or one on standard output. Dropping them before
/// [`Tables::finish`] removes the open parts.
pub struct Tables {
    /// The tables that the run writes, in the order of [`OutputTable::ALL`].
    tables: Vec<WrittenTable>,
    inputs_per_part: u64,
    residues_per_part: u64,
    cores: CoreTime,
    /// Residues and variants of structures that have been appended since rows were gathered.
    rows_held: usize,
    /// With so many, all tables gather their rows.
    rows_held_max: usize,
    part: Option<OpenPart>,
    /// Whether the part before it is on its way to the disk.
    is_ending: bool,
    parts_done: u64,
    /// The files of the parts that are done.
    files: PartFiles,
}

impl Tables {
    /// Creates tables in the subfolders ([`folders`]) of `folder`, which exist. `metadata` is written
    /// to every file, and `pool` encodes.
    ///
    /// # Panics
    /// If a part may have no inputs or residues, or a row group no rows.
    pub fn new(
        folder: &Path,
        settings: TableSettings,
        columns: &ColumnSources<'_>,
        metadata: &[(&'static str, String)],
        pool: Arc<ThreadPool>,
    ) -> Self {
        let output = |table: OutputTable| RowOutput::Folder(folder.join(table.name()));
        Tables::write_to(output, settings, columns, metadata, &pool)
    }

    /// Creates [`printed_table`] on standard output, in one part. The other arguments are those of
    /// [`Tables::new`].
    pub fn to_stdout(
        settings: TableSettings,
        columns: &ColumnSources<'_>,
        metadata: &[(&'static str, String)],
        pool: Arc<ThreadPool>,
    ) -> Self {
        let printed = printed_table(settings.written);
        let settings = TableSettings {
            written: TableSet::new(|table| Some(table) == printed),
            ..settings.in_one_part()
        };
        Tables::write_to(|_| RowOutput::Stdout, settings, columns, metadata, &pool)
    }

    /// Sends the rows of tables as record batches, in one part. The other arguments are those of
    /// [`Tables::new`].
    pub fn to_batches(
        batches: &Sender<TableBatch>,
        settings: TableSettings,
        columns: &ColumnSources<'_>,
        metadata: &[(&'static str, String)],
        pool: Arc<ThreadPool>,
    ) -> Self {
        // The batches have the schema of Arrow files.
        let settings = TableSettings {
            format: TableFormat::Arrow,
            ..settings.in_one_part()
        };
        let output = |_| RowOutput::Batches(batches.clone());
        Tables::write_to(output, settings, columns, metadata, &pool)
    }

    /// The name of each table, and the schema of its record batches.
    pub fn schemas(&self) -> impl Iterator<Item = (&'static str, SchemaRef)> {
        let tables = self.tables.iter();
        tables.map(|table| (table.name(), Arc::new(file_schema(&table.files))))
    }

    /// Creates the tables that are written, each with its output.
    fn write_to(
        output: impl Fn(OutputTable) -> RowOutput,
        settings: TableSettings,
        columns: &ColumnSources<'_>,
        metadata: &[(&'static str, String)],
        pool: &Arc<ThreadPool>,
    ) -> Self {
        let cuts = [
            settings.inputs_per_part,
            settings.residues_per_part,
            settings.rows_per_group as u64,
        ];
        assert!(!cuts.contains(&0), "parts and row groups are not empty");
        let cores = CoreTime::default();
        let new = |table: OutputTable| {
            let files = FileSpec {
                columns: columns::columns(table, columns, settings.optional).into(),
                compression: settings.compression,
                metadata: metadata.to_vec(),
                shares_texts: table.has_many_rows(),
                pool: Arc::clone(pool),
                cores: cores.clone(),
            };
            WrittenTable::new(table, output(table), files, settings)
        };
        Tables {
            tables: settings.written.iter().map(new).collect(),
            inputs_per_part: settings.inputs_per_part,
            residues_per_part: settings.residues_per_part,
            cores,
            rows_held: 0,
            rows_held_max: settings.rows_per_group,
            part: None,
            is_ending: false,
            parts_done: 0,
            files: PartFiles::default(),
        }
    }

    /// Whether the open part ends before the input `ordinal`.
    pub fn ends_before(&self, ordinal: u64) -> bool {
        self.part.as_ref().is_some_and(|part| {
            let inputs = ordinal - part.first;
            let is_full = inputs >= self.inputs_per_part || part.residues >= self.residues_per_part;
            // The structures of an input stay together.
            is_full && ordinal != part.last
        })
    }

    /// Goes to the input `ordinal`, and starts a part if the open one is full, which reaches the disk
    /// meanwhile. Waits for the part before that one. Call this for each ordinal in ascending order,
    /// rejected inputs included, and for each structure of an input.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tapeloop::ErrorKind::Io) if a file cannot be written.
    pub fn advance(&mut self, ordinal: u64) -> Result<()> {
        let ends = self.ends_before(ordinal);
        if let Some(part) = self.part.as_mut().filter(|_| !ends) {
            part.last = ordinal;
            return Ok(());
        }
        self.end_part()?;
        let part = self.parts_done + u64::from(self.is_ending);
        let mut tables = self.tables.iter_mut();
        tables.try_for_each(|table| table.start_part(part))?;
        self.part = Some(OpenPart {
            first: ordinal,
            last: ordinal,
            residues: 0,
        });
        Ok(())
    }

    /// Appends a structure to the open part, without its variants, and returns it. Waits while the pool is behind
    /// with row groups.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tapeloop::ErrorKind::Io) if a file cannot be written.
    ///
    /// # Panics
    /// If `advance` was not called for its ordinal.
    pub fn append(&mut self, record: StructureRows) -> Result<Arc<StructureRows>> {
        let record = Arc::new(record);
        let residues = record.structure.residues.len();
        let part = self.part.as_mut();
        part.expect("`advance` comes before rows").residues += residues as u64;
        self.append_rows(&record, residues)?;
        Ok(record)
    }

    /// Whether there is a table of variants.
    pub fn have_variants(&self) -> bool {
        let mut tables = self.tables.iter();
        tables.any(|table| table.kind == OutputTable::Variants)
    }

    /// Appends some variants of a structure, which was appended last. Waits as [`Tables::append`] does.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tapeloop::ErrorKind::Io) if a file cannot be written.
    pub fn append_variants(
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
            // Row groups of pairs, atoms and interactions are of so few structures that their ends are no occasion
            // to gather.
            is_flushed |= table.append(record)? && !table.kind.has_many_rows();
        }
        // A row group of residues keeps few structures. One of structures would keep all of them, as
        // would one of residues of which a condition selects few.
        if is_flushed || self.rows_held >= self.rows_held_max {
            let tables = &mut self.tables;
            let gather = |table: &mut WrittenTable| table.group.gather(&table.files.columns);
            self.cores.measure(|| tables.iter_mut().for_each(gather));
            self.rows_held = 0;
        }
        Ok(())
    }

    /// The processor time of gathering and encoding, also that of later row groups.
    pub fn cores(&self) -> CoreTime {
        self.cores.clone()
    }

    /// Goes on behind the first parts, which are complete and have these files.
    ///
    /// # Errors
    /// The statistics are not those of these tables' columns.
    pub fn resume(
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
    pub fn files(&self) -> PartFiles {
        self.files.clone()
    }

    /// The statistics of all columns in the parts that are finished.
    pub fn statistics(&self) -> PartStatistics {
        PartStatistics(
            self.tables
                .iter()
                .map(|table| table.statistics.clone())
                .collect(),
        )
    }

    /// Number of parts that every table has finished.
    pub fn parts(&self) -> u64 {
        self.parts_done
    }

    /// Ends the open part, if there is one, once the part before it is complete.
    fn end_part(&mut self) -> Result<()> {
        self.rows_held = 0;
        if self.part.take().is_some() {
            self.complete(true)?;
            self.tables
                .iter_mut()
                .try_for_each(WrittenTable::end_part)?;
            self.is_ending = true;
        }
        Ok(())
    }

    /// Gives the files of the part that has ended their names, once all of them are on the disk, and
    /// waits for that if `waits`. Returns whether a part has become complete.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tapeloop::ErrorKind::Io) if a file cannot be written.
    pub fn complete(&mut self, waits: bool) -> Result<bool> {
        let is_ready = || waits || self.tables.iter().all(WrittenTable::is_part_written);
        if !self.is_ending || !is_ready() {
            return Ok(false);
        }
        // Cleared before the work: after a failure it is not tried again, as the parts of the other tables
        // are removed.
        self.is_ending = false;
        let tables = self.tables.iter_mut();
        let parts: Vec<CompletePart> = tables
            .map(WrittenTable::complete_part)
            .collect::<Result<_>>()?;
        for file in publish(parts)? {
            let bytes = file.metadata().within(|| shown(&file))?.len();
            self.files.insert(name_in_folder(&file), bytes);
        }
        self.parts_done += 1;
        Ok(true)
    }

    /// Finishes the last part, waits until it is on the disk, and returns the number of parts and the columns'
    /// statistics.
    /// Without any input there is one part without rows, so that a reader finds the columns.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tapeloop::ErrorKind::Io) if a file cannot be written.
    pub fn finish(mut self) -> Result<(u64, Vec<ColumnStatistics>)> {
        if self.part.is_none() && self.parts_done == 0 {
            self.advance(0)?;
        }
        self.end_part()?;
        self.complete(true)?;
        let columns = self
            .tables
            .into_iter()
            .flat_map(WrittenTable::into_statistics);
        Ok((self.parts_done, columns.collect()))
    }
}

/// The part that is being written.
struct OpenPart {
    /// The ordinal of its first input.
    first: u64,
    /// The ordinal of its latest input.
    last: u64,
    /// Residues of its structures, whether they have rows or not.
    residues: u64,
}

/// The size of each file in bytes, by its name in the output folder: `residues/part-00000.parquet`.
pub type PartFiles = BTreeMap<String, u64>;

/// The name of a part's file in the output folder.
fn name_in_folder(file: &Path) -> String {
    let table = file.parent().and_then(Path::file_name);
    let names = [table, file.file_name()].map(|name| name.unwrap_or_default().to_string_lossy());
    names.join("/")
}

/// Statistics of the columns of each table.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PartStatistics(Vec<Vec<ValueStatistics>>);

impl PartStatistics {
    /// Number of tables.
    pub fn tables(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests;
