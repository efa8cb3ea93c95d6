//! The structs that the host or a kernel writes and kernels read. `kernels/layout.cuh` has the same
//! structs; both files assert the sizes.
//!
//! A batch holds structures side by side. All indices count from the batch's start. The part of an item
//! that was rejected while it was written is zeros. Spans, flags and tags of zeros are absent; a position of
//! zeros is the origin, so ask for [`ResidueSpan::PRESENT`] before a position is read.

use super::columns::NULL_COUNT;
use super::constants;
use super::grid::Grid;
use crate::structure::{AtomClass, CheckedStructure};
use bytemuck::{Pod, Zeroable};

/// The axes of a batch, in the header's order.
pub(super) const RESIDUES: usize = 0;
pub(super) const ATOMS: usize = 1;
pub(super) const STRUCTURES: usize = 2;
pub(super) const TILES: usize = 3;
pub(super) const CHAINS: usize = 4;
pub(super) const CELLS: usize = 5;
/// Units of room for rows and points whose number follows from the data, such as pairs of residues.
/// A unit has room for a fixed number of each kind.
pub(super) const PAIR_ROOM: usize = 6;
pub(super) const LIGANDS: usize = 7;
pub(super) const AXES: [&str; 8] = [
    "residues",
    "atoms",
    "structures",
    "tiles",
    "chains",
    "cells",
    "pair_room",
    "ligands",
];

/// Residues of a tile, which are the threads of its block.
pub(super) const TILE: u32 = constants::TILE;

/// All three coordinates of a missing position.
pub(super) const MISSING: i32 = constants::MISSING;

/// The largest absolute value of a coordinate, in 0.001 A.
pub(super) const COORDINATE_MAX: u32 = CheckedStructure::COORDINATE_MAX as u32;
const _: () = assert!(COORDINATE_MAX == constants::COORDINATE_MAX as u32);
const _: () = assert!(MISSING as i64 + (COORDINATE_MAX as i64) < i32::MAX as i64);

/// Larger differences of coordinates are clamped to this, so that the sum of three squares fits 32
/// bits; cutoffs are at most this. In 0.001 A.
pub(super) const REACH: u32 = constants::REACH as u32;
const _: () = assert!(3 * (REACH as u64).pow(2) <= u32::MAX as u64);

/// A position in 0.001 A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Position {
    pub(super) x: i32,
    pub(super) y: i32,
    pub(super) z: i32,
}
const _: () = assert!(size_of::<Position>() == 12);

impl Position {
    pub(super) const NONE: Position = Position {
        x: MISSING,
        y: MISSING,
        z: MISSING,
    };

    pub(super) fn is_present(self) -> bool {
        self.x != MISSING
    }

    /// The squared distance, as `squared` in `kernels/layout.cuh`: exact below the square of
    /// [`REACH`], and otherwise at least that, so that it is within no cutoff.
    pub(super) fn squared_to(self, other: Position) -> u32 {
        let differences = [self.x - other.x, self.y - other.y, self.z - other.z];
        let squares = differences.map(|d| d.unsigned_abs().min(REACH).pow(2));
        squares.iter().sum()
    }
}

impl From<Position> for [i32; 3] {
    fn from(position: Position) -> Self {
        [position.x, position.y, position.z]
    }
}

impl From<[i32; 3]> for Position {
    fn from([x, y, z]: [i32; 3]) -> Self {
        Position { x, y, z }
    }
}

/// An atom: its position and its tag; all zeros if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Atom {
    pub(super) position: Position,
    pub(super) tag: AtomTag,
}
const _: () = assert!(size_of::<Atom>() == 16);

impl Atom {
    pub(super) const NONE: Atom = Atom {
        position: Position { x: 0, y: 0, z: 0 },
        tag: AtomTag(0),
    };

    pub(super) fn is_present(&self) -> bool {
        self.tag.is_atom()
    }
}

/// The properties of an atom in 32 bits: its radius in 0.001 A less
/// [`radius_excess`](super::sasa::radius_excess) (11 bits; 0 is no atom), whether it is of a side
/// chain, whether it is polar, and its chain in the batch (19 bits). In the tag of a ligand's atom the
/// two flags tell whether it belongs to a ligand, not an ion or glycan, and whether it is a metal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub(super) struct AtomTag(u32);

/// The largest number of chains of a batch: an [`AtomTag`] has 19 bits for the chain.
pub(super) const CHAINS_MAX: u32 = 1 << 19;
const _: () = assert!(CheckedStructure::CHAINS_MAX < CHAINS_MAX as usize);

/// The largest radius in a tag, in 0.001 A, which is the largest of ProtOr.
pub(super) const RADIUS_MAX: u32 = {
    let radii = AtomClass::RADII_MILLI_ANGSTROM;
    let (mut max, mut index) = (0, 0);
    while index < radii.len() {
        max = if radii[index] > max {
            radii[index]
        } else {
            max
        };
        index += 1;
    }
    max
};
const _: () = assert!(RADIUS_MAX == constants::RADIUS_MAX as u32);

impl AtomTag {
    pub(super) const RADIUS: u32 = (1 << 11) - 1;
    const SIDE: u32 = 1 << 11;
    const POLAR: u32 = 1 << 12;
    const LIGAND: u32 = Self::SIDE;
    const METAL: u32 = Self::POLAR;
    pub(super) const CHAIN_SHIFT: u32 = 13;
    /// Tags of the same chain differ only in bits below this one.
    pub(super) const FIRST_CHAIN_BIT: u32 = 1 << Self::CHAIN_SHIFT;

    /// The tag of an atom of a residue. `radius_milli` is 1 to [`RADIUS_MAX`]: a radius of 0 stands
    /// for no atom.
    pub(super) fn new(radius_milli: u32, is_side: bool, is_polar: bool, chain: u32) -> Self {
        debug_assert!((1..=RADIUS_MAX).contains(&radius_milli) && chain < CHAINS_MAX);
        let flag = |set: bool, bit: u32| if set { bit } else { 0 };
        AtomTag(
            radius_milli
                | flag(is_side, Self::SIDE)
                | flag(is_polar, Self::POLAR)
                | chain << Self::CHAIN_SHIFT,
        )
    }

    /// The tag of an atom of a ligand, ion or glycan.
    pub(super) fn of_ligand_atom(
        radius_milli: u32,
        is_ligand: bool,
        is_metal: bool,
        chain: u32,
    ) -> Self {
        AtomTag::new(radius_milli, is_ligand, is_metal, chain)
    }

    /// This tag, which has no chain yet, with a chain of the batch.
    #[inline]
    pub(super) fn with_chain(self, chain: u32) -> Self {
        debug_assert!(self.chain() == 0 && chain < CHAINS_MAX);
        AtomTag(self.0 | chain << Self::CHAIN_SHIFT)
    }

    pub(super) fn bits(self) -> u32 {
        self.0
    }

    pub(super) fn is_atom(self) -> bool {
        self.radius_milli() != 0
    }

    pub(super) fn radius_milli(self) -> u32 {
        self.0 & Self::RADIUS
    }

    pub(super) fn is_side(self) -> bool {
        self.0 & Self::SIDE != 0
    }

    pub(super) fn is_polar(self) -> bool {
        self.0 & Self::POLAR != 0
    }

    /// Whether an atom of a ligand, ion or glycan belongs to a ligand.
    pub(super) fn is_ligand(self) -> bool {
        self.0 & Self::LIGAND != 0
    }

    /// Whether an atom of a ligand, ion or glycan is a metal.
    pub(super) fn is_metal(self) -> bool {
        self.0 & Self::METAL != 0
    }

    pub(super) fn chain(self) -> u32 {
        self.0 >> Self::CHAIN_SHIFT
    }
}

/// What an atom can be in an interaction, as the bits of [`Roles`](crate::structure::Roles); 0 for
/// none. `owner` is the index of its residue or ligand in its structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct AtomRoles {
    pub(super) owner: u32,
    pub(super) roles: u32,
}
const _: () = assert!(size_of::<AtomRoles>() == 8);

/// The direction from the atoms that are bonded to a donor or acceptor to it, or the normal of a ring,
/// as a vector of length 2^14; zero if there is none. `centre` leads from an atom that stands for a
/// group to the group's centre, in 0.001 A; its fourth element is unused. That of a direction is 1 if two or
/// more atoms are bonded to the donor or acceptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct AtomFrame {
    pub(super) centre: [i16; 4],
    pub(super) direction: [i16; 4],
}
const _: () = assert!(size_of::<AtomFrame>() == 16);

/// The backbone of a residue; each atom may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Backbone {
    pub(super) n: Position,
    pub(super) ca: Position,
    pub(super) c: Position,
    pub(super) o: Position,
}
const _: () = assert!(size_of::<Backbone>() == 48);

/// The side chain of a residue; each atom may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct SideChain {
    pub(super) beta: Position,
    /// The atoms that define chi1 to chi5, with N, C-alpha and C-beta.
    pub(super) chain: [Position; 5],
    /// A bit for each chi that has a bin, chi1's the lowest.
    pub(super) bins: u32,
    /// The chi that half a turn changes in the names of atoms alone; [`NULL_COUNT`] if there is
    /// none.
    pub(super) symmetric: i32,
    /// The number of missing atoms; [`NULL_COUNT`] for other residues than standard ones.
    pub(super) missing: i32,
    pub(super) unused: u32,
}
const _: () = assert!(size_of::<SideChain>() == 88);

impl SideChain {
    pub(super) const NONE: SideChain = SideChain {
        beta: Position::NONE,
        chain: [Position::NONE; 5],
        bins: 0,
        symmetric: NULL_COUNT,
        missing: NULL_COUNT,
        unused: 0,
    };
}

/// One residue of the batch.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct ResidueSpan {
    pub(super) structure: u32,
    pub(super) chain: u32,
    pub(super) atom_start: u32,
    pub(super) atom_count: u16,
    /// One-letter code of the standard parent; `X` if it has none.
    pub(super) aa: u8,
    pub(super) flags: u8,
}
const _: () = assert!(size_of::<ResidueSpan>() == 16);

impl ResidueSpan {
    /// The residue or ligand was written. Only the rows of a rejected structure, which are zeros, lack it.
    pub(super) const PRESENT: u8 = constants::PRESENT;
    /// It is linked to the residue before it. The first residue of a structure may have the flag too; see
    /// [`Self::is_linked`].
    pub(super) const LINKED: u8 = constants::LINKED;
    /// It is one of the twenty standard amino acids, or selenomethionine.
    pub(super) const STANDARD: u8 = constants::STANDARD;
    /// Its atoms have names.
    pub(super) const NAMED: u8 = constants::NAMED;

    pub(super) fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Whether `residues`, the live ones of the batch, have one at `index`, and it is linked to the one before
    /// it in its structure. The structures are compared because that of an embedder may link its first residue
    /// to nothing, which [`CheckedStructure`](crate::structure::CheckedStructure) lets pass.
    pub(super) fn is_linked(residues: &[ResidueSpan], index: usize) -> bool {
        let pair = index
            .checked_sub(1)
            .and_then(|before| residues.get(before..=index));
        pair.is_some_and(|pair| {
            pair[1].is(ResidueSpan::LINKED) && pair[0].structure == pair[1].structure
        })
    }

    /// Its atoms in the batch.
    pub(super) fn atoms(&self) -> std::ops::Range<usize> {
        let start = self.atom_start as usize;
        start..start + usize::from(self.atom_count)
    }
}

/// One structure of the batch: its spans, and the grids over its atoms and over its C-alphas and
/// C-betas.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct StructureSpan {
    pub(super) residue_start: u32,
    pub(super) residue_count: u32,
    pub(super) atom_start: u32,
    pub(super) atom_count: u32,
    pub(super) chain_start: u32,
    pub(super) chain_count: u32,
    /// Not 0 if the B factors are pLDDT.
    pub(super) predicted: u32,
    pub(super) tile_start: u32,
    /// Atoms of ligands, which follow the others along the axis of atoms. Only the buffer of bound
    /// atoms has them; in other buffers they are absent.
    pub(super) ligand_atom_count: u32,
    /// Atoms of glycans, which are the first of the ligands' atoms.
    pub(super) glycan_atom_count: u32,
    pub(super) ligand_start: u32,
    pub(super) ligand_count: u32,
    /// Includes the atoms of ligands.
    pub(super) atom_grid: Grid,
    /// Uploaded as zeros; the launch of `FeatureRecorder::residue_grids` computes it.
    pub(super) residue_grid: Grid,
}
const _: () = assert!(size_of::<StructureSpan>() == 112);

impl StructureSpan {
    /// The structures in the batch; the buffer may be longer.
    pub(super) fn live<'a>(header: &[u32], all: &'a [StructureSpan]) -> &'a [StructureSpan] {
        &all[..header[STRUCTURES] as usize]
    }

    /// The grid over its atoms, or over its C-alphas and C-betas, by axis.
    pub(super) fn grid(&self, axis: u32) -> &Grid {
        match axis as usize {
            ATOMS => &self.atom_grid,
            _ => &self.residue_grid,
        }
    }

    /// Its part of the batch along the axis of atoms, which includes those of ligands, or along
    /// that of residues.
    pub(super) fn along(&self, axis: u32) -> std::ops::Range<usize> {
        match axis as usize {
            ATOMS => self.atoms().start..self.atoms().end + self.ligand_atom_count as usize,
            _ => self.residues(),
        }
    }

    /// Its residues in the batch.
    pub(super) fn residues(&self) -> std::ops::Range<usize> {
        let start = self.residue_start as usize;
        start..start + self.residue_count as usize
    }

    /// Its chains in the batch.
    pub(super) fn chains(&self) -> std::ops::Range<usize> {
        let start = self.chain_start as usize;
        start..start + self.chain_count as usize
    }

    /// The atoms of its glycans in the batch.
    pub(super) fn glycan_atoms(&self) -> std::ops::Range<u32> {
        let start = self.atom_start + self.atom_count;
        start..start + self.glycan_atom_count
    }

    /// Its atoms in the batch, without those of ligands.
    pub(super) fn atoms(&self) -> std::ops::Range<usize> {
        let start = self.atom_start as usize;
        start..start + self.atom_count as usize
    }
}

/// Up to [`TILE`] residues of one structure: `first` counts from `residue_start`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Tile {
    pub(super) residue_start: u32,
    pub(super) residue_count: u32,
    pub(super) first: u32,
    pub(super) count: u32,
}
const _: () = assert!(size_of::<Tile>() == 16);

impl Tile {
    /// The tiles in the batch; the buffer may be longer.
    pub(super) fn live<'a>(header: &[u32], all: &'a [Tile]) -> &'a [Tile] {
        &all[..header[TILES] as usize]
    }

    /// The tile's residues in the batch.
    pub(super) fn range(&self) -> std::ops::Range<usize> {
        let start = (self.residue_start + self.first) as usize;
        start..start + self.count as usize
    }

    /// The whole structure's residues in the batch.
    pub(super) fn structure_range(&self) -> std::ops::Range<usize> {
        let start = self.residue_start as usize;
        start..start + self.residue_count as usize
    }
}

/// The residues of one chain, as `members[member_start..][..count]`: residues of the batch, in the
/// chain's order.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct ChainSpan {
    pub(super) structure: u32,
    pub(super) member_start: u32,
    pub(super) count: u32,
    pub(super) unused: u32,
}
const _: () = assert!(size_of::<ChainSpan>() == 16);

impl ChainSpan {
    /// Its residues, taken from the batch's `members`.
    pub(super) fn members<'a>(&self, members: &'a [u32]) -> &'a [u32] {
        &members[self.member_start as usize..][..self.count as usize]
    }
}

/// The largest number of bridges of a residue: each needs a bond of its own N-H or of the next
/// residue's. Both have two bonds, and each bond may take part in two patterns.
pub(super) const BRIDGES_MAX: usize = constants::BRIDGES_MAX as usize;

/// The bridges of one residue, sorted by partner: twice the partner's index in the batch, plus one
/// if the strands are antiparallel; all bits set after the last.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(transparent)]
pub(super) struct Bridges(pub(super) [u32; BRIDGES_MAX]);
