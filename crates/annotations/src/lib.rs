//! Annotations of structures, residues and variants: values from tables that the user gives along
//! with the structures.
//!
//! `text` and `parquet` turn the rows of a table into cells, `loader` checks them and puts them into
//! a `row_store`, and `columns` decides what each row describes. `join` gives each structure its rows:
//! when the structure has been read, the channels that `smooth.channels` and the parameters of the user's
//! kernels name; when it is written, the columns that `tables.annotations` chooses.

mod columns;
mod join;
mod joined;
mod loaded;
mod loader;
mod matches;
mod options;
mod parquet;
mod parquet_headers;
mod records;
mod row_set;
mod row_store;
mod rows;
mod text;
mod values;

pub use columns::Level;
pub use joined::{Joined, JoinedValues, JoinedVariants, VariantKey, text_bytes_max};
pub use loaded::AnnotationColumn;
use loaded::LoadedTables;
pub use matches::{Matches, TableMatches, check_matched};
pub use options::{UnmatchedTables, WantedColumns};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tapeloop_error::Result;
use tapeloop_structure::Structure;
pub use values::Type;

/// Structures with more bytes of rows than this get their rows one structure at a time, so that the encoded
/// rows of few structures are in memory at once.
const TOGETHER_BYTES_MAX: u64 = 4 << 20;

/// The annotations of a run.
#[derive(Debug)]
pub struct Annotations {
    loaded: LoadedTables,
    /// Locked by the thread that gives a structure with many rows its channels.
    large: Mutex<()>,
}

impl Annotations {
    /// Reads the tables in `paths`, which are files and folders. Their columns `channels` go to the
    /// kernels, and those that are `wanted` to the tables. All rows together may have `bytes_max`
    /// bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](tapeloop_error::ErrorKind::Config): a table cannot be read, which names the line or
    /// row; no table has one of the columns; a limit is exceeded.
    /// [`ErrorKind::Io`](tapeloop_error::ErrorKind::Io): the temporary file cannot be written.
    pub fn load(
        paths: &[PathBuf],
        channels: Vec<String>,
        wanted: &WantedColumns,
        bytes_max: u64,
    ) -> Result<Self> {
        Ok(Annotations {
            loaded: loader::load(paths, channels, wanted, bytes_max)?,
            large: Mutex::default(),
        })
    }

    /// The tables that were read.
    pub fn files(&self) -> &[PathBuf] {
        &self.loaded.files
    }

    /// The columns that go to the tables, in the order of the tables of annotations.
    pub fn columns(&self) -> &[AnnotationColumn] {
        &self.loaded.columns
    }

    /// The first table that has the column `name` of this level; `None` if none has.
    pub fn file_with(&self, level: Level, name: &str) -> Option<&Path> {
        let mut columns = self.columns().iter();
        let column = columns.position(|column| column.level == level && column.name == name)?;
        let mut layouts = self.loaded.layouts.iter();
        let file = layouts.position(|layout| layout.columns.contains(&column))?;
        self.loaded.files.get(file).map(PathBuf::as_path)
    }

    /// Whether columns of variants go to the tables.
    pub fn have_variants(&self) -> bool {
        self.columns()
            .iter()
            .any(|column| column.level == Level::Variants)
    }

    /// Number of rows of all tables that have a column which is read.
    pub fn rows(&self) -> u32 {
        self.loaded.rows()
    }

    /// Gives the `models` of the structure `name` their channels, and finds the rows that match. Of several threads
    /// with structures of many rows all but one wait.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tapeloop_error::ErrorKind::Io): the rows cannot be read.
    pub fn attach(&self, name: &str, models: &mut [Structure]) -> Result<Matches> {
        let is_large = self.loaded.store.bytes_of(name) > TOGETHER_BYTES_MAX;
        let lock = || self.large.lock().unwrap_or_else(PoisonError::into_inner);
        let _one = is_large.then(lock);
        join::attach(&self.loaded, name, models)
    }

    /// What a model of the structure `name` gets in the tables of structures and of residues.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tapeloop_error::ErrorKind::Io): the rows cannot be read.
    pub fn join(&self, name: &str, structure: &Structure) -> Result<Joined> {
        join::join(&self.loaded, name, structure)
    }

    /// Passes the rows of a model of the structure `name` in the table of variants to `take`, some
    /// thousand at a time.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tapeloop_error::ErrorKind::Io): the rows cannot be read. Or the error of `take`.
    pub fn variants(
        &self,
        name: &str,
        structure: &Structure,
        take: impl FnMut(JoinedVariants) -> Result<()>,
    ) -> Result<()> {
        join::variants(&self.loaded, name, structure, take)
    }

    /// Identifies the annotations in a table's metadata: the columns, and a hash of all rows.
    pub fn provenance(&self) -> String {
        let LoadedTables {
            channels,
            columns,
            digest,
            ..
        } = &self.loaded;
        let rows = self.rows();
        let hash = format!("{digest:016x}");
        let mut text = serde_json::json!({"channels": channels, "rows": rows, "fnv1a": hash});
        if !columns.is_empty() {
            text["columns"] = columns.iter().map(|column| column.name.clone()).collect();
        }
        text.to_string()
    }
}
