//! The options of a [`Reader`](super::Reader).

use super::checks::CheckSet;
use super::chemistry::Components;
use super::format::Format;
use super::model::{Assembly, BFactorKind};
use super::radii::Radii;
use super::read_limits::ReadLimits;
use tapeloop_error::internal::LaterFields;

/// Which models of a file are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Models {
    /// The first.
    #[default]
    First,
    /// All, one [`Structure`](super::Structure) each.
    All,
    /// All, as one [`Structure`](super::Structure) that has the number of the first: the models of a
    /// file are the parts of an assembly. A chain whose author's id an earlier model has gets the number of
    /// the copy in both of its names, as in [`Assembly::First`]: the second `A` is `A-2`. Models in one
    /// place, as those of an ensemble, are refused.
    Joined,
}

/// Where a chain of a PDB file is split, because it holds several molecules. The parts of chain `A`
/// keep the author's id, and their label ids are `A_1`, `A_2` and so on, in file order. Residues that
/// are no polymer stay in the chain, and split nothing. Chains of other formats are never split: there,
/// the label id and the entity say what is a molecule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ChainSplit {
    /// By the rules of `docs/METHODS.md`: at another segment id, at TER, and at residue numbers that
    /// start anew. A bond between the two residues prevents it, but for segment ids in a chain without an
    /// id or with repeated numbers. [`Check::SplitChains`] counts the places. A model that holds copies
    /// of its residues in one place is rejected.
    ///
    /// [`Check::SplitChains`]: super::Check::SplitChains
    #[default]
    Auto,
    /// Nowhere: the chain id decides.
    Id,
    /// At each TER between two residues of the polymer.
    Ter,
    /// Where the segment id of a residue is not that of the residue before it.
    Segid,
    /// Where the residue number is lower than that of the residue before it, and no bond joins the two.
    Number,
}

/// What a [`Reader`](super::Reader) takes from a file. Later versions may add fields: end a literal with
/// `..ReadOptions::default()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReadOptions {
    /// Which models.
    pub models: Models,
    /// Where chains of PDB files are split.
    pub chain_split: ChainSplit,
    /// Whether the atoms of nucleotides are kept.
    pub nucleic: bool,
    /// Whether [`Structure::ligands`](super::Structure::ligands) has the residues that are no
    /// polymer. Topologies have none.
    pub ligands: bool,
    /// Whether [`Chain::sequence`](super::Chain::sequence) is read.
    pub sequences: bool,
    /// Whether [`Structure::atom_details`](super::Structure::atom_details) is filled.
    pub atom_details: bool,
    /// Whether [`Structure::chemistry`](super::Structure::chemistry) is filled, and
    /// [`Structure::atom_details`](super::Structure::atom_details) and
    /// [`Structure::loose_residues`](super::Structure::loose_residues), from which it follows.
    pub chemistry: bool,
    /// The dictionary of components that gives ligands and modified residues their chemistry, unless the
    /// file describes their components itself. What both lack has it from [`Components::frequent`], from
    /// CONECT records, or from its geometry.
    pub components: Option<Components>,
    /// The largest distance of a water from both sides of a bridge in 0.001 A, at most
    /// [`WaterBridge::REACH_MAX`](super::WaterBridge::REACH_MAX); 0 for no bridges.
    /// With [`chemistry`](Self::chemistry), [`Structure::waters`](super::Structure::waters) is filled
    /// and the bridges are found ([`Chemistry::water_bridges`](super::Chemistry::water_bridges)). Topologies have none.
    pub water_reach: u32,
    /// The radii of atoms, and which of them are polar.
    pub radii: Radii,
    /// Whether the ligands include agents of crystallisation.
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
            chain_split: ChainSplit::Auto,
            nucleic: true,
            ligands: false,
            sequences: false,
            atom_details: false,
            chemistry: false,
            components: None,
            water_reach: 0,
            radii: Radii::default(),
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
