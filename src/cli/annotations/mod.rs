//! Annotations of structures, residues and variants: values from tables that the user gives along
//! with the structures.
//!
//! `text` and `parquet` turn the rows of a table into cells, `loader` checks them and puts them into
//! a `row_store`, and `columns` says what they describe. Each structure gets its own rows after it
//! has been read (`join`): the channels that `smooth.channels` names go to the kernels, and the
//! columns that `tables.annotations` chooses to the tables.

mod columns;
mod join;
mod joined;
mod loaded;
mod loader;
mod matches;
mod parquet;
mod records;
mod row_store;
mod rows;
mod text;
mod values;

use super::config::Wanted;
use crate::error::Result;
use crate::structure::Structure;
pub(super) use columns::Level;
use join::join;
pub(super) use joined::{Joined, JoinedColumn, JoinedValues, VariantKey, text_bytes_max};
pub(super) use loaded::AnnotationColumn;
use loaded::Loaded;
pub(super) use matches::Matches;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
pub(super) use values::Type;

/// The annotations of a run.
#[derive(Debug)]
pub(super) struct Annotations {
    loaded: Loaded,
    /// What the structures that have been read bring to the tables, by the ordinal of their input
    /// and in the order of its models.
    joined: Mutex<BTreeMap<u64, VecDeque<Joined>>>,
}

impl Annotations {
    /// Reads the tables in `paths`, which are files and folders. Their columns `channels` go to the
    /// kernels, and those that are `wanted` to the tables. All rows together may have `bytes_max`
    /// bytes.
    ///
    /// # Errors
    /// A table cannot be read, which names the line or row; no table has one of the columns; a limit
    /// is exceeded.
    pub(super) fn load(
        paths: &[PathBuf],
        channels: Vec<String>,
        wanted: &Wanted,
        bytes_max: u64,
    ) -> Result<Self> {
        Ok(Annotations {
            loaded: loader::load(paths, channels, wanted, bytes_max)?,
            joined: Mutex::default(),
        })
    }

    /// The tables that were read.
    pub(super) fn files(&self) -> &[PathBuf] {
        &self.loaded.files
    }

    /// The columns that go to the tables, in the order of the tables of annotations.
    pub(super) fn columns(&self) -> &[AnnotationColumn] {
        &self.loaded.columns
    }

    /// Whether a table has variants.
    pub(super) fn have_variants(&self) -> bool {
        self.columns().iter().any(|it| it.level == Level::Variants)
    }

    /// Number of rows of all tables.
    pub(super) fn rows(&self) -> u64 {
        self.loaded.rows
    }

    /// Gives the `models` of the structure `name`, which is the input `ordinal`, their channels, and
    /// keeps what goes to the tables for [`Annotations::take_joined`].
    ///
    /// # Errors
    /// The rows cannot be read.
    pub(super) fn attach(
        &self,
        ordinal: u64,
        name: &str,
        models: &mut [Structure],
    ) -> Result<Matches> {
        let (joined, matches) = join(&self.loaded, name, models)?;
        if !self.columns().is_empty() {
            self.locked().insert(ordinal, joined.into());
        }
        Ok(matches)
    }

    /// What the next model of an input brings to the tables.
    pub(super) fn take_joined(&self, ordinal: u64) -> Joined {
        let mut all = self.locked();
        let Some(models) = all.get_mut(&ordinal) else {
            return Joined::default();
        };
        let next = models.pop_front();
        if models.is_empty() {
            all.remove(&ordinal);
        }
        next.unwrap_or_default()
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<u64, VecDeque<Joined>>> {
        self.joined.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Identifies the annotations in a table's metadata: the columns, and a hash of all rows.
    pub(super) fn provenance(&self) -> String {
        let Loaded {
            channels,
            columns,
            rows,
            digest,
            ..
        } = &self.loaded;
        let hash = format!("{digest:016x}");
        let mut text = serde_json::json!({"channels": channels, "rows": rows, "fnv1a": hash});
        if !columns.is_empty() {
            text["columns"] = columns.iter().map(|column| column.name.clone()).collect();
        }
        text.to_string()
    }
}
