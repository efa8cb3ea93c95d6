//! The options of a [`Reader`](super::Reader).

use super::checks::CheckSet;
use super::format::Format;
use super::model::{Assembly, BFactorKind};
use super::read_limits::ReadLimits;
use crate::later_fields::LaterFields;

/// Which models of a file are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Models {
    /// The first.
    #[default]
    First,
    /// All, one [`Structure`](super::Structure) each.
    All,
}

/// What a [`Reader`](super::Reader) takes from a file. Later versions may add fields: end a literal with
/// `..ReadOptions::default()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReadOptions {
    /// Which models.
    pub models: Models,
    /// Whether the atoms of nucleotides are kept.
    pub nucleic: bool,
    /// Whether [`Structure::ligands`](super::Structure::ligands) has the residues that are no
    /// polymer. Topologies have none.
    pub ligands: bool,
    /// Whether [`Chain::sequence`](super::Chain::sequence) is read.
    pub sequences: bool,
    /// Whether agents of crystallisation are among them.
    pub agents: bool,
    /// What the B factors are. `None`: pLDDT if an mmCIF file's `_ma_qa_metric` names it or the title
    /// names a predictor, else temperature factors.
    pub b_factor_kind: Option<BFactorKind>,
    /// Whether to build biological assembly 1, if the file defines it.
    pub assembly: Assembly,
    /// The checks that reject a file instead of being counted.
    pub strict: CheckSet,
    /// The format of all files. `None`: each file's own, by its content and name.
    pub format: Option<Format>,
    /// How much a file may hold.
    pub limits: ReadLimits,
    #[doc(hidden)]
    pub later: LaterFields,
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions {
            models: Models::First,
            nucleic: true,
            ligands: false,
            sequences: false,
            agents: false,
            b_factor_kind: None,
            assembly: Assembly::Deposited,
            strict: CheckSet::NONE,
            format: None,
            limits: ReadLimits::default(),
            later: LaterFields::NONE,
        }
    }
}
