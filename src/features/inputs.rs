//! What is uploaded: each only where a feature asked for it.

use super::layout::{Atom, Backbone, ChainSpan, ResidueSpan, StructureSpan, Tile};
use crate::record::Buffer;

/// The channel that every structure has: the file's B factor of the C-alpha.
pub const B_CA: &str = "b_ca";

/// The buffers that a structure is written to.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    /// The spans of the structures.
    pub(super) structures: Option<Buffer<StructureSpan>>,
    /// The spans of the residues.
    pub(super) residues: Option<Buffer<ResidueSpan>>,
    /// The tiles of the structures.
    pub(super) tiles: Option<Buffer<Tile>>,
    /// The spans of the chains.
    pub(super) chains: Option<Buffer<ChainSpan>>,
    /// Residues sorted by chain.
    pub(super) members: Option<Buffer<u32>>,
    /// All atoms.
    pub(super) atoms: Option<Buffer<Atom>>,
    /// The C-alpha of each residue.
    pub(super) ca: Option<Buffer<Atom>>,
    /// The C-beta of each residue, built where it is missing. Its tag says that it is of a side
    /// chain where the file has it.
    pub(super) cb: Option<Buffer<Atom>>,
    /// The backbone of each residue.
    pub(super) backbone: Option<Buffer<Backbone>>,
    /// The B factor of each residue's C-alpha, or its pLDDT, NaN where there is none.
    pub(super) b: Option<Buffer<f32>>,
    /// The B factor, or pLDDT, of each atom.
    pub(super) atom_b: Option<Buffer<f32>>,
    /// Of each chain, where its loose atoms are: the first, and how many there are up
    /// to the last, those of other chains among them.
    pub(super) loose: Option<Buffer<u32>>,
    /// Whether each residue has one of the names.
    pub(super) selected: Option<(Buffer<u8>, Vec<String>)>,
    /// Annotations by name: a value a residue, NaN where there is none.
    pub(super) channels: Vec<(String, Buffer<f32>)>,
}
