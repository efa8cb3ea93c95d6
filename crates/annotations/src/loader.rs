//! Reads tables of annotations: checks their rows, finds the types of their columns, and puts the
//! rows into a store.

use super::columns::{
    Level, TableColumns, VARIANT, channel_value, check_count, check_length, identifies_rows,
};
use super::loaded::{AnnotationColumn, LoadedTables, RowLayout};
use super::row_store::{StoreLimits, StoreWriter, put_integer, put_signed, put_text};
use super::values::{AnnotationCell, Type, TypeFinder};
use super::{parquet, text};
use crate::options::WantedColumns;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tapeloop_error::internal::excerpt;
use tapeloop_error::{Context, Error, Result};
use tapeloop_files::did_you_mean;
use tapeloop_files::quietly;
use tapeloop_files::shown;
use tapeloop_inputs::structure_name;

/// Annotations that are being read.
pub(super) struct Loader<'a> {
    channels: Vec<String>,
    wanted: &'a WantedColumns,
    /// The columns so far, each with its type.
    columns: Vec<(Level, String, TypeFinder)>,
    files: Vec<PathBuf>,
    /// The files with all links resolved.
    read: HashSet<PathBuf>,
    layouts: Vec<RowLayout>,
    store: StoreWriter,
    rows: u32,
    digest: FnvDigest,
    /// Names of all columns of all tables, with their level.
    names: Vec<(Level, String)>,
}

/// A table that is being read.
pub(super) struct OpenTable {
    keys: TableColumns,
    layout: RowLayout,
    /// The columns of the channels and of the tables, as indices of a row's cells, in the order of
    /// the layout.
    channel_cells: Vec<usize>,
    column_cells: Vec<usize>,
    /// The bytes of a row, for the digest.
    bytes: Vec<u8>,
}

/// Reads the tables in `paths`, which are files and folders. All rows may have `bytes_max` bytes.
///
/// # Errors
/// Of kind `Config`: a table cannot be read, which names the line or row; no table has one of the columns; a limit
/// is exceeded. `Io`: the temporary file cannot be written.
pub(super) fn load(
    paths: &[PathBuf],
    channels: Vec<String>,
    wanted: &WantedColumns,
    bytes_max: u64,
) -> Result<LoadedTables> {
    let start = Instant::now();
    let mut loader = Loader {
        channels,
        wanted,
        columns: Vec::new(),
        files: Vec::new(),
        read: HashSet::new(),
        layouts: Vec::new(),
        store: StoreWriter::new(StoreLimits::new(bytes_max)),
        rows: 0,
        digest: FnvDigest::default(),
        names: Vec::new(),
    };
    let mut tables = Vec::new();
    for path in paths {
        let first_row = loader.rows;
        for file in files_of(path).within(|| shown(path))? {
            loader.check_once(&file).within(|| shown(&file))?;
            loader.read(&file).within(|| shown(&file))?;
            loader.files.push(file);
        }
        tables.push((path.to_owned(), first_row..loader.rows));
    }
    let place = || {
        let all: Vec<String> = paths.iter().map(|path| shown(path)).collect();
        all.join(", ")
    };
    loader.check_names().within(place)?;
    let Loader {
        channels,
        columns,
        files,
        layouts,
        store,
        rows,
        mut digest,
        ..
    } = loader;
    let columns = columns.into_iter().map(|(level, name, finder)| {
        let kind = finder.column_type().within(|| format!("column {name:?}"))?;
        Ok(AnnotationColumn { level, name, kind })
    });
    let columns = columns.collect::<Result<Vec<_>>>().within(place)?;
    // A table without rows may change the type of a column.
    digest.add(
        &columns
            .iter()
            .map(|column| column.kind as u8)
            .collect::<Vec<_>>(),
    );
    let store = store.finish().within(place)?;
    tracing::info!(
        rows,
        seconds = start.elapsed().as_secs_f32(),
        "read annotations"
    );
    Ok(LoadedTables {
        channels,
        columns,
        files,
        tables,
        layouts,
        store,
        digest: digest.0,
    })
}

impl OpenTable {
    /// The indices of the cells that are read, in ascending order.
    pub(super) fn cells(&self) -> Vec<usize> {
        let mut cells = self.keys.keys();
        cells.extend(self.channel_cells.iter().chain(&self.column_cells));
        cells.sort_unstable();
        cells.dedup();
        cells
    }
}

impl Loader<'_> {
    /// An error of kind `Config` for a table that was read already: its variants would be there twice.
    fn check_once(&mut self, path: &Path) -> Result<()> {
        // A path that cannot be resolved fails when it is opened.
        let resolved = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if self.read.insert(resolved) {
            return Ok(());
        }
        let error = Error::config("`annotations` names this table twice");
        Err(error.fix("name a table alone, or its folder"))
    }

    /// Reads a table of any format. A panic of the Parquet reader, which a damaged file may cause,
    /// is an error of the table. [`ErrorKind::Config`](tapeloop_error::ErrorKind::Config) for a table that is
    /// wrong or cannot be read, `Io` if the temporary file of the rows cannot be written.
    fn read(&mut self, path: &Path) -> Result<()> {
        let source = path.to_string_lossy();
        let file_name = structure_name(&source);
        match AnnotationFormat::of_path(path)? {
            AnnotationFormat::Parquet if source.ends_with(".gz") => {
                let error = Error::config("a Parquet file that is packed with gzip is not read");
                Err(error.fix("unpack it with gunzip: Parquet compresses its columns itself"))
            }
            AnnotationFormat::Parquet => quietly(|| parquet::read(path, file_name, self))
                .unwrap_or_else(|panic| {
                    let text = format!(
                        "the table is damaged; its reader stopped at: {}",
                        excerpt(&panic)
                    );
                    Err(Error::config(text).fix("write the table anew"))
                }),
            AnnotationFormat::Text { separator } => text::read(path, separator, file_name, self),
        }
    }

    /// Begins a table with the columns `names`; `types` has the type of each column that states one. Returns
    /// `None` if none of its columns is read; its layout is kept all the same, as rows name their file by its
    /// index among all.
    ///
    /// # Errors
    /// Of kind `Config`: the columns do not identify rows, or have another type than in another table.
    pub(super) fn begin(
        &mut self,
        names: &[&str],
        types: &[Option<Type>],
    ) -> Result<Option<OpenTable>> {
        let keys = TableColumns::find(names)?;
        let level = keys.level;
        let mut table = OpenTable {
            layout: RowLayout {
                level,
                channels: Vec::new(),
                columns: Vec::new(),
            },
            channel_cells: Vec::new(),
            column_cells: Vec::new(),
            bytes: Vec::new(),
            keys,
        };
        for &index in &table.keys.others {
            let name = names[index];
            let named = (level, name.to_owned());
            if !self.names.contains(&named) {
                self.names.push(named);
                check_count(self.names.len(), "all tables together have")?;
            }
            let channel = self.channels.iter().position(|channel| channel == name);
            if let Some(channel) = channel.filter(|_| level == Level::Residues) {
                table.layout.channels.push(channel);
                table.channel_cells.push(index);
            }
            let is_variant = level == Level::Variants && name == VARIANT;
            let is_wanted = match self.wanted {
                WantedColumns::All => true,
                WantedColumns::Named(wanted) => wanted.iter().any(|wanted| wanted == name),
            };
            if is_wanted || is_variant && *self.wanted != WantedColumns::NONE {
                let is_it = |(known_level, known_name, _): &(Level, String, _)| {
                    *known_level == level && known_name == name
                };
                let known = self.columns.iter().position(is_it);
                let column = known.unwrap_or_else(|| {
                    let finder = TypeFinder::default();
                    self.columns.push((level, name.to_owned(), finder));
                    self.columns.len() - 1
                });
                if let Some(stated) = types.get(index).copied().flatten() {
                    let stated = self.columns[column].2.add_stated(stated);
                    stated.within(|| format!("column {name:?}"))?;
                }
                table.layout.columns.push(column);
                table.column_cells.push(index);
            }
        }
        let is_read = !table.layout.channels.is_empty() || !table.layout.columns.is_empty();
        self.digest.add_layout(&table.layout);
        self.layouts.push(table.layout.clone());
        Ok(is_read.then_some(table))
    }

    /// Adds a row of the table that is being read, which is on this line or has this number, to the store and to
    /// the digest. If the table has no column of structures, `file_name` is the row's structure.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](tapeloop_error::ErrorKind::Config): a cell does not hold what its column needs, or a
    /// limit is exceeded.
    pub(super) fn add(
        &mut self,
        table: &mut OpenTable,
        cells: &[AnnotationCell<'_>],
        file_name: &str,
        line: u64,
    ) -> Result<()> {
        let structure = table.keys.structure(cells, file_name)?;
        let key = table.keys.key(cells)?;
        let bytes = &mut table.bytes;
        bytes.clear();
        match key.model {
            None => bytes.push(0),
            Some(model) => {
                bytes.push(1);
                put_signed(bytes, model.into());
            }
        }
        if table.keys.level != Level::Structures {
            put_text(bytes, key.chain);
            put_signed(bytes, key.number.into());
            bytes.push(key.ins_code);
        }
        for (&cell, &channel) in table.channel_cells.iter().zip(&table.layout.channels) {
            let value = channel_value(cells[cell]);
            let value = value.within(|| format!("column {:?}", self.channels[channel]))?;
            bytes.extend(value.to_le_bytes());
        }
        for (&cell, &column) in table.column_cells.iter().zip(&table.layout.columns) {
            let (_, name, finder) = &mut self.columns[column];
            if let AnnotationCell::Text(text) = cells[cell] {
                check_length(text).within(|| format!("column {name:?}"))?;
                finder.add(text);
            }
            put_cell(bytes, cells[cell]);
        }
        self.digest.add(structure.as_bytes());
        self.digest.add(&[0]);
        self.digest.add(bytes);
        let file = self.files.len() as u64;
        self.store.add(structure, |to| {
            put_integer(to, file);
            put_integer(to, line);
            to.extend_from_slice(bytes);
        })?;
        self.rows += 1;
        Ok(())
    }

    /// Checks that a table has each column that the config names; an error of kind `Config` names the first that none
    /// has.
    fn check_names(&self) -> Result<()> {
        let missing = |reader: &str, name: &str, has: &dyn Fn(Level) -> bool, fix: &str| {
            let known = self.names.iter().filter(|(level, _)| has(*level));
            let known: Vec<&str> = known.map(|(_, name)| name.as_str()).collect();
            let text = if identifies_rows(name) {
                format!("{reader}: column {name:?} identifies rows, and has no values")
            } else {
                let hint = did_you_mean(name, &known);
                format!("{reader}: no table has a column {name:?}{hint}")
            };
            Error::config(text).fix(fix.to_owned())
        };
        let is_in = |name: &str, has: &dyn Fn(Level) -> bool| {
            let mut names = self.names.iter();
            names.any(|(level, known)| known == name && has(*level))
        };
        let is_residues = |level| level == Level::Residues;
        let any = |_| true;
        for name in &self.channels {
            if !is_in(name, &is_residues) && is_in(name, &any) {
                let text = format!(
                    "{CHANNEL_READERS}: the table with column {name:?} does not have a row for each residue"
                );
                return Err(Error::config(text).fix(
                    "name columns of a table with structure, chain and residue, and without variant",
                ));
            }
            if !is_in(name, &is_residues) {
                let fix = "name columns of `annotations`, or b_ca and plddt, which files have";
                return Err(missing(CHANNEL_READERS, name, &is_residues, fix));
            }
        }
        if let WantedColumns::Named(wanted) = self.wanted
            && let Some(name) = wanted.iter().find(|name| !is_in(name, &any))
        {
            let fix = "name columns of `annotations`, or \"*\" for all";
            return Err(missing("`tables.annotations`", name, &any, fix));
        }
        Ok(())
    }
}

/// What names a channel, in messages: the config tells which of the two, and not the loader.
const CHANNEL_READERS: &str = "`smooth.channels` or a parameter of a kernel";

// The tags of cells.
const NULL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const INTEGER: u8 = 3;
const REAL: u8 = 4;
const TEXT: u8 = 5;

/// Appends a cell: a tag, then its value. [`take_cell`] reads it back.
fn put_cell(to: &mut Vec<u8>, cell: AnnotationCell<'_>) {
    match cell {
        AnnotationCell::Null => to.push(NULL),
        AnnotationCell::Flag(false) => to.push(FALSE),
        AnnotationCell::Flag(true) => to.push(TRUE),
        AnnotationCell::Integer(integer) => {
            to.push(INTEGER);
            put_signed(to, integer);
        }
        AnnotationCell::Real(real) => {
            to.push(REAL);
            to.extend(real.to_le_bytes());
        }
        AnnotationCell::Text(text) => {
            to.push(TEXT);
            put_text(to, text);
        }
    }
}

/// Removes from the start of `from` a cell that [`put_cell`] has written; `None` if there is none.
pub(super) fn take_cell<'a>(from: &mut &'a [u8]) -> Option<AnnotationCell<'a>> {
    let (&tag, rest) = from.split_first()?;
    *from = rest;
    Some(match tag {
        NULL => AnnotationCell::Null,
        FALSE => AnnotationCell::Flag(false),
        TRUE => AnnotationCell::Flag(true),
        INTEGER => AnnotationCell::Integer(super::row_store::take_signed(from)?),
        REAL => AnnotationCell::Real(f64::from_le_bytes(take_bytes(from)?)),
        TEXT => AnnotationCell::Text(super::row_store::take_text(from)?),
        _ => return None,
    })
}

/// Removes `N` bytes from the start of `from`; `None` if there are fewer.
pub(super) fn take_bytes<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(*bytes)
}

/// The format of a table.
#[derive(Clone, Copy, Debug)]
enum AnnotationFormat {
    Parquet,
    Text { separator: u8 },
}

impl AnnotationFormat {
    /// The format by the ending of the name; an error of kind `Config` for another ending.
    fn of_path(path: &Path) -> Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        match name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("parquet") => Ok(AnnotationFormat::Parquet),
            Some("tsv") => Ok(AnnotationFormat::Text { separator: b'\t' }),
            Some("csv") => Ok(AnnotationFormat::Text { separator: b',' }),
            Some("arrow") => Err(Error::config("annotations are not read from Arrow files")
                .fix("write the table as Parquet or CSV; for a run set tables.format")),
            _ => Err(Error::config("the file's ending is not that of a table")
                .fix("name it .tsv, .csv, either with .gz, or .parquet")),
        }
    }
}

/// The file, or the tables in the folder, sorted by name. An error of kind `Config` if there are none, or the path
/// cannot be read.
fn files_of(path: &Path) -> Result<Vec<PathBuf>> {
    let from_io = |error: std::io::Error| {
        Error::config(error.to_string()).fix("give `annotations` a table, or a folder of tables")
    };
    if !path.metadata().map_err(from_io)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in path.read_dir().map_err(from_io)? {
        let file = entry.map_err(from_io)?.path();
        let is_hidden = file
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !is_hidden && file.is_file() && AnnotationFormat::of_path(&file).is_ok() {
            files.push(file);
        }
    }
    if files.is_empty() {
        return Err(Error::config("the folder has no table").fix(
            "tables are named .tsv, .csv, either with .gz, or .parquet; Arrow files are not read",
        ));
    }
    files.sort();
    Ok(files)
}

/// FNV-1a, 64 bits: tells tables of one run from those of another, and need not withstand forgery.
#[derive(Clone, Copy, Debug)]
struct FnvDigest(u64);

impl Default for FnvDigest {
    fn default() -> Self {
        FnvDigest(0xcbf2_9ce4_8422_2325)
    }
}

impl FnvDigest {
    /// Adds the columns that the bytes of a table's rows belong to.
    fn add_layout(&mut self, layout: &RowLayout) {
        self.add(&[layout.level as u8]);
        for indices in [&layout.channels, &layout.columns] {
            self.add(&(indices.len() as u64).to_le_bytes());
            indices
                .iter()
                .for_each(|&index| self.add(&(index as u64).to_le_bytes()));
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(tables: &[String], channels: &[&str]) -> String {
        let folder = tempfile::tempdir().unwrap();
        for (number, text) in tables.iter().enumerate() {
            std::fs::write(folder.path().join(format!("{number}.csv")), text).unwrap();
        }
        let channels = channels.iter().map(|&name| name.to_owned()).collect();
        let paths = [folder.path().to_owned()];
        let loaded = load(&paths, channels, &WantedColumns::All, 1 << 20);
        loaded.err().unwrap().to_string()
    }

    #[test]
    fn columns_of_all_tables_together_are_not_said_to_be_of_one() {
        let table = |first: usize| {
            let names: Vec<String> = (first..first + 600)
                .map(|name| format!("c{name}"))
                .collect();
            format!("structure,{}\n", names.join(","))
        };
        let error = error_of(&[table(0), table(600)], &[]);
        assert!(
            error.contains("all tables together have at least 1001 columns"),
            "{error}"
        );
    }

    #[test]
    fn a_missing_channel_may_be_one_of_a_kernel() {
        let table = "structure,chain,residue,x\n1ubi,A,1,2\n".to_owned();
        let error = error_of(&[table], &["y"]);
        assert!(
            error.contains("a parameter of a kernel: no table has a column \"y\""),
            "{error}"
        );
    }
}
