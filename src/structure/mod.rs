//! The protein model and its readers.
//!
//! A [`Reader`] turns a PDB or mmCIF file, plain or gzipped, into one
//! [`Structure`] a model: the heavy atoms of its polymers, one conformer a
//! residue, with one row an amino acid.
//!
//! A format is a module that fills an atom table (`table`): `pdb`, and `mmcif`
//! with `atom_site` and `cif_lexer`. What the atoms mean is decided after that,
//! in one place for all formats: `select` says what is polymer, `conformer`
//! which of several conformers is there, `build` lays the structure out with
//! what `template` knows of atom names and `references` of UniProt, and
//! `assembly` copies its chains where a biological assembly is wanted, as
//! `oper_list` or `remark350` says.
//!
//! Time and memory are linear in the file, whatever it holds, and `limits` says how much
//! a file may take.

mod assembly;
mod atom_site;
mod budget;
mod build;
mod cif_lexer;
mod class;
mod components;
mod conformer;
mod decimal;
mod element;
mod limits;
mod mmcif;
mod model;
mod oper_list;
mod pdb;
mod places;
mod reader;
mod references;
mod remark350;
mod select;
mod table;
mod template;

pub use budget::ReadBudget;
pub use class::AtomClass;
pub use limits::ReadLimits;
pub use model::{
    Assembly, BFactorKind, Chain, Channel, LooseSpan, MISSING, Residue, Structure, Truncation,
    Uniprot,
};
pub use places::{BFactorPlace, BFactorPlaces, ResiduePlaces};
pub use reader::{Format, Models, ReadOptions, Reader, text_of};
