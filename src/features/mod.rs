//! The built-in workload: per-residue features of protein structures.

mod columns;

use crate::error::Result;
use crate::structure::Structure;

pub use columns::{Column, ColumnDecl, ColumnKind, NULL_COUNT};

/// One structure on its way through the engine, or why it could not be read.
#[derive(Debug)]
pub struct Input {
    /// Where it came from: a path.
    pub source: String,
    /// The place of the source in the list of inputs, from 0.
    pub ordinal: u64,
    /// What was read there.
    pub structure: Result<Structure>,
}

/// The features of one structure.
#[derive(Debug, Clone, PartialEq)]
pub struct FeatureTable {
    /// One column for each of `Features::residue_columns`, one value for each
    /// of the structure's residues.
    pub residues: Vec<Column>,
    /// One column for each of `Features::structure_columns`, one value each.
    pub structure: Vec<Column>,
}
