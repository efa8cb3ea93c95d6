//! The protein model and its readers.
//!
//! A [`Reader`] turns a file, plain or compressed, into one [`Structure`] for each model: the heavy
//! atoms of the polymers, one conformer for each residue, and one row for each amino acid.
//!
//! The reader of a format (`formats`) fills an atom table (`atom_table`). It knows nothing of
//! polymers, conformers or links, which are decided afterwards, in one place for all formats:
//! `residue_runs` gathers atoms into residues, `polymer` decides which residues are polymer,
//! `conformer` chooses among conformers, and `structure_builder` builds the structure with what
//! `residue_template` and `residue_atoms` know of atom names and `references` of UniProt. `assembly` copies the chains
//! if a biological assembly is wanted. `topology` gives a structure the
//! coordinates of a trajectory's frames.
//!
//! Time and memory are linear in the size of the file, whatever it contains, and `read_limits`
//! bounds what a file may hold.

mod assembly;
mod atom_class;
mod atom_name;
mod atom_table;
mod b_factor_fields;
mod cells;
mod chain_choice;
mod chain_split;
mod checked_structure;
mod checks;
mod chemistry;
mod component_text;
mod components;
mod compression;
mod conformer;
mod decimal;
mod disjoint_sets;
mod element;
mod entry_header;
mod format;
mod formats;
mod gzip;
mod input;
mod ions;
mod joined_models;
mod ligands;
mod links;
mod membership;
mod model;
mod polymer;
mod radii;
mod read_budget;
mod read_limits;
mod read_options;
mod reader;
mod references;
mod residue_atoms;
mod residue_runs;
mod residue_template;
mod sequence;
mod stated_bonds;
mod structure_builder;
mod text;
mod text8;
mod topology;
mod zstd;

pub use atom_class::AtomClass;
pub use atom_name::AtomName;
pub use atom_table::BFactorField;
pub use b_factor_fields::{BFactorFields, ResidueBFactors};
pub use checked_structure::CheckedStructure;
pub use checks::{Check, CheckSet, Finding, Findings};
pub use chemistry::{Chemistry, ChemistrySource, Components, Roles, WaterBridge};
pub use format::Format;
pub use input::Input;
pub use model::{
    Assembly, AtomDetails, BFactorKind, Chain, Channel, Frame, Ligand, LigandAtom, LigandKind,
    LooseResidue, LooseSpan, MISSING, Residue, ResidueFlags, SequenceResidue, Structure,
    Truncation, Uniprot,
};
pub use radii::Radii;
pub use read_budget::ReadBudget;
pub use read_limits::ReadLimits;
pub use read_options::{ChainSplit, Models, ReadOptions};
pub use reader::{Reader, text_of};
pub use tapeloop_error as error;
pub use tapeloop_error::{Error, ErrorKind, ErrorScope, Result};
pub use topology::Topology;

/// What the other crates of tapeloop use. It may change with every version.
#[doc(hidden)]
pub mod internal {
    pub use crate::chain_choice::distinct_chain_names;
    pub use crate::compression::Compression;
    pub use crate::element::symbol as element_symbol;
    pub use crate::entry_header::header_text;
    pub use crate::radii::has_listed_none_so_far;
    pub use crate::read_budget::BudgetShare;
    pub use crate::read_limits::check as check_limit;
    pub use crate::sequence::UnobservedResidue;
}
