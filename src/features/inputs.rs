//! What is uploaded: each only where a feature asked for it.

use crate::record::Buffer;

/// The buffers that a structure is written to.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    /// [`StructureSpan`](super::layout::StructureSpan)s.
    pub(super) structures: Option<Buffer<u32>>,
    /// [`ResidueSpan`](super::layout::ResidueSpan)s.
    pub(super) residues: Option<Buffer<u32>>,
    /// [`Tile`](super::layout::Tile)s.
    pub(super) tiles: Option<Buffer<u32>>,
    /// [`ChainSpan`](super::layout::ChainSpan)s.
    pub(super) chains: Option<Buffer<u32>>,
    /// Residues sorted by chain.
    pub(super) members: Option<Buffer<u32>>,
    /// All [`Atom`](super::layout::Atom)s.
    pub(super) atoms: Option<Buffer<i32>>,
    /// The C-alpha of each residue, an [`Atom`](super::layout::Atom).
    pub(super) ca: Option<Buffer<i32>>,
    /// The C-beta of each residue, built where it is missing; of a side chain are
    /// those that the file has.
    pub(super) cb: Option<Buffer<i32>>,
    /// The [`Backbone`](super::layout::Backbone) of each residue.
    pub(super) backbone: Option<Buffer<i32>>,
    /// The B factor of each residue's C-alpha, or its pLDDT, NaN where there is none.
    pub(super) b: Option<Buffer<f32>>,
    /// Those of all atoms.
    pub(super) atom_b: Option<Buffer<f32>>,
    /// Of each chain, where its loose atoms are: the first, and how many there are up
    /// to the last, those of other chains among them.
    pub(super) loose: Option<Buffer<u32>>,
    /// Whether each residue has one of the names.
    pub(super) selected: Option<(Buffer<u8>, Vec<String>)>,
    /// Annotations by name: a value a residue, NaN where there is none.
    pub(super) channels: Vec<(String, Buffer<f32>)>,
}
