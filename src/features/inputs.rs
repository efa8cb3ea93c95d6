//! The upload buffers. A buffer exists only if a feature asked for it.

use super::layout::{
    Atom, AtomFrame, AtomRoles, Backbone, ChainSpan, Position, ResidueSpan, StructureSpan, Tile,
};
use crate::record::Buffer;
use crate::structure::Components;

/// The channel that every structure by experiment has: the file's B factor of the C-alpha.
pub const B_CA: &str = "b_ca";

/// The channel that every predicted model has: the pLDDT of the C-alpha.
pub const PLDDT: &str = "plddt";

/// The buffers that [`super::pack`] writes a structure to.
#[derive(Debug, Default)]
pub(super) struct StructureInputs {
    /// `[structures]`
    pub(super) structures: Option<Buffer<StructureSpan>>,
    /// `[residues]`
    pub(super) residues: Option<Buffer<ResidueSpan>>,
    /// `[tiles]`
    pub(super) tiles: Option<Buffer<Tile>>,
    /// `[chains]`
    pub(super) chains: Option<Buffer<ChainSpan>>,
    /// The residues sorted by chain, `[residues]`.
    pub(super) members: Option<Buffer<u32>>,
    /// All atoms but those of ligands, `[atoms]`.
    pub(super) atoms: Option<Buffer<Atom>>,
    /// All atoms and those of ligands, `[atoms]`. Glycans come first among ligands.
    pub(super) bound_atoms: Option<Buffer<Atom>>,
    /// What each atom can be in an interaction, `[atoms]`, and its direction or its group's centre.
    /// Both include atoms of ligands.
    pub(super) roles: Option<Buffer<AtomRoles>>,
    pub(super) frames: Option<Buffer<AtomFrame>>,
    /// The dictionary for structures that were read without their chemistry.
    pub(super) components: Option<Components>,
    /// The span of each ligand, `[ligands]`.
    pub(super) ligands: Option<Buffer<ResidueSpan>>,
    /// For each atom of a ligand the index of that ligand in its structure, `[atoms]`; all bits
    /// set for other atoms.
    pub(super) ligand_of: Option<Buffer<u32>>,
    /// The C-beta that the file has of each residue, `[residues]`; missing for glycine.
    pub(super) betas: Option<Buffer<Position>>,
    /// The backbone of each residue, `[residues]`.
    pub(super) backbone: Option<Buffer<Backbone>>,
    /// The code of each atom's name, `[atoms]`; 0 if the structure has no names.
    pub(super) names: Option<Buffer<u8>>,
    /// The B factor or pLDDT of each residue's C-alpha, `[residues]`; NaN if it has none.
    pub(super) b: Option<Buffer<f32>>,
    /// The B factor or pLDDT of each atom, `[atoms]`.
    pub(super) atom_b: Option<Buffer<f32>>,
    /// The position of each residue in its chain's sequence, `[residues]`, from 1 in each chain. In
    /// chains without positions, as in `row_numbers`.
    pub(super) sequence: Option<Buffer<i32>>,
    /// The row of each residue in its structure, `[residues]`, from 1.
    pub(super) row_numbers: Option<Buffer<i32>>,
    /// For each chain the range of its loose atoms, `[chains, 2]`: the first, and the number up to
    /// the last, which includes loose atoms of other chains between them.
    pub(super) loose: Option<Buffer<u32>>,
    /// Whether each residue has one of the names, `[residues]`, and the names.
    pub(super) selected: Option<(Buffer<u8>, Vec<String>)>,
    /// For each table of pairs the room of each structure, `[structures, 2]`: the first row, and the
    /// number of rows. The second field is the number of rows of a unit of room.
    pub(super) pair_rooms: Vec<(Buffer<u32>, usize)>,
    /// Each structure's room, `[structures, 2]`: the first unit, and the number of units.
    pub(super) rooms: Option<Buffer<u32>>,
    /// Annotations by name, each `[residues]`; NaN for a missing value.
    pub(super) channels: Vec<(String, Buffer<f32>)>,
}
