//! What is packed for the kernels. `kernels/layout.cuh` is the other side; both
//! assert the sizes.

use bytemuck::{Pod, Zeroable};

/// Axes of a batch, in the header's order.
pub(super) const RESIDUES: usize = 0;
pub(super) const ATOMS: usize = 1;
pub(super) const STRUCTURES: usize = 2;
pub(super) const TILES: usize = 3;
pub(super) const CHAINS: usize = 4;
pub(super) const AXES: [&str; 5] = ["residues", "atoms", "structures", "tiles", "chains"];

/// Residues of a tile, threads of its block.
pub(super) const TILE: u32 = 128;

/// All three coordinates of a position that is not there.
pub(super) const MISSING: i32 = 2_000_000_000;

/// The farthest that a coordinate is from the origin, in 0.001 A.
pub(super) const COORDINATE_MAX: u32 = 100_000_000;
const _: () = assert!(MISSING as i64 + (COORDINATE_MAX as i64) < i32::MAX as i64);

/// Differences beyond this are taken for this, so that the sum of three squares
/// fits 32 bits; cutoffs are at most this.
pub(super) const REACH: u32 = 37_000;
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

    pub(super) fn minus(self, other: Position) -> Position {
        Position {
            x: self.x - other.x,
            y: self.y - other.y,
            z: self.z - other.z,
        }
    }

    /// Exact in 64 bits for differences of real positions.
    pub(super) fn dot(self, other: Position) -> f64 {
        let product = |a: i32, b: i32| i64::from(a) * i64::from(b);
        (product(self.x, other.x) + product(self.y, other.y) + product(self.z, other.z)) as f64
    }
}

impl From<[i32; 3]> for Position {
    fn from([x, y, z]: [i32; 3]) -> Self {
        Position { x, y, z }
    }
}

/// Spans of one structure in the batch.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct StructureSpan {
    pub(super) residue_start: u32,
    pub(super) residue_count: u32,
    pub(super) atom_start: u32,
    pub(super) atom_count: u32,
}
const _: () = assert!(size_of::<StructureSpan>() == 16);

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

/// The residues of one chain, as `members[member_start..][..count]`, which count
/// from `residue_start`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct ChainSpan {
    pub(super) residue_start: u32,
    pub(super) member_start: u32,
    pub(super) count: u32,
    pub(super) unused: u32,
}
const _: () = assert!(size_of::<ChainSpan>() == 16);
