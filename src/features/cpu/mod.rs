//! The kernels' CPU twins, a file each, named as in `kernels/`. A twin does the
//! same arithmetic in the same order, and every operation in use is rounded
//! correctly on both sides, so that results are equal in every bit.

mod amide_hydrogens;
mod angles;
mod b_factor_z;
mod bonds;
mod bridge_partners;
mod ca_geometry;
mod cell_count;
mod cell_fill;
mod cell_scan;
mod cells;
mod contact_number;
mod half_sphere_exposure;
mod hydrogen_bonds;
mod ladders;
mod near;
mod radius_of_gyration;
mod secondary_structure;
mod simd;
mod split;
mod torsions;
mod weighted_contact_number;

pub(super) use amide_hydrogens::amide_hydrogens;
pub(super) use b_factor_z::b_factor_z;
pub(super) use bridge_partners::bridge_partners;
pub(super) use ca_geometry::ca_geometry;
pub(super) use cell_count::cell_count;
pub(super) use cell_fill::cell_fill;
pub(super) use cell_scan::cell_scan;
pub(super) use contact_number::contact_number;
pub(super) use half_sphere_exposure::half_sphere_exposure;
pub(super) use hydrogen_bonds::hydrogen_bonds;
pub(super) use ladders::ladders;
pub(super) use radius_of_gyration::radius_of_gyration;
pub(super) use secondary_structure::secondary_structure;
pub(super) use torsions::torsions;
pub(super) use weighted_contact_number::weighted_contact_number;

use super::grid::Grid;
use super::layout::{ATOMS, Atom, MISSING, REACH, StructureSpan, TILE, TILES, Tile};
use rayon::prelude::*;

/// The grid over a structure's atoms, or over those that are one a residue.
fn grid_of(structure: &StructureSpan, axis: u32) -> &Grid {
    match axis as usize {
        ATOMS => &structure.atom_grid,
        _ => &structure.residue_grid,
    }
}

/// A structure's part of what is one an atom, or one a residue.
fn atoms_of(structure: &StructureSpan, axis: u32) -> std::ops::Range<usize> {
    let (start, count) = match axis as usize {
        ATOMS => (structure.atom_start, structure.atom_count),
        _ => (structure.residue_start, structure.residue_count),
    };
    start as usize..(start + count) as usize
}

/// The coordinates of a tile's residues by axis, for loops that vectorise; what
/// lies beyond the tile's count is missing.
struct Own {
    x: [i32; TILE as usize],
    y: [i32; TILE as usize],
    z: [i32; TILE as usize],
}

impl Own {
    fn of(tile: &Tile, atoms: &[Atom]) -> Self {
        let mut own = Own {
            x: [MISSING; TILE as usize],
            y: [MISSING; TILE as usize],
            z: [MISSING; TILE as usize],
        };
        let present = atoms[tile.range()].iter().enumerate();
        for (lane, atom) in present.filter(|(_, atom)| atom.is_present()) {
            let position = atom.position;
            (own.x[lane], own.y[lane], own.z[lane]) = (position.x, position.y, position.z);
        }
        own
    }

    fn lanes(&self) -> impl Iterator<Item = (i32, i32, i32)> {
        let yz = self.y.iter().zip(&self.z);
        self.x.iter().zip(yz).map(|(&x, (&y, &z))| (x, y, z))
    }
}

/// The squared distance of two positions, where it is less than that of `REACH`
/// along one axis; otherwise something larger than any cutoff.
#[inline(always)]
fn squared(dx: i32, dy: i32, dz: i32) -> u32 {
    let clamped = |d: i32| d.unsigned_abs().min(REACH);
    let (x, y, z) = (clamped(dx), clamped(dy), clamped(dz));
    x * x + y * y + z * z
}

/// The batch's tiles.
fn tiles<'a>(header: &[u32], words: &'a [u32]) -> &'a [Tile] {
    &bytemuck::cast_slice(words)[..header[TILES] as usize]
}

/// Calls `compute` for every tile, in parallel, with the tile's index and its part
/// of `out`.
fn for_each_tile<T: Send>(
    tiles: &[Tile],
    out: &mut [T],
    compute: impl Fn(usize, &Tile, &mut [T]) + Send + Sync,
) {
    let mut parts = Vec::with_capacity(tiles.len());
    let mut rest = out;
    let mut start = 0;
    // Tiles of a batch ascend; those of rejected items are all zeros.
    for (index, tile) in tiles.iter().enumerate().filter(|(_, tile)| tile.count > 0) {
        let range = tile.range();
        let (_, from_tile) = rest.split_at_mut(range.start - start);
        let (part, after) = from_tile.split_at_mut(range.len());
        parts.push((index, tile, part));
        (rest, start) = (after, range.end);
    }
    parts
        .into_par_iter()
        .for_each(|(index, tile, part)| compute(index, tile, part));
}

/// The sum in the order of the kernels' `block_sum`.
fn tree_sum<const N: usize>(partial: &mut [f64; N]) -> f64 {
    let mut stride = N / 2;
    while stride > 0 {
        for lane in 0..stride {
            partial[lane] += partial[lane + stride];
        }
        stride /= 2;
    }
    partial[0]
}
