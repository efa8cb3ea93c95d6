//! Twin of `kernels/half_sphere_exposure.cu`.

use super::super::columns::NULL_COUNT;
use super::super::layout::{Atom, Position, RESIDUES, ResidueSpan, Tile};
use super::near::TileBoxes;
use super::{for_each_tile, squared, tiles};
use crate::record::TwinLaunch;
use std::ops::Range;

/// The normal of a residue's plane: the directions from its neighbours, and the
/// lengths that make them unit vectors.
struct Plane {
    before: Position,
    after: Position,
    before_norm: f64,
    after_norm: f64,
}

impl Plane {
    fn of(residue: usize, tile: &Tile, atoms: &[Atom], residues: &[ResidueSpan]) -> Option<Plane> {
        let (all, next) = (tile.structure_range(), residue + 1);
        let inside = residue > all.start && next < all.end;
        let is_linked = |residue: usize| residues[residue].is(ResidueSpan::LINKED);
        if !inside || !is_linked(residue) || !is_linked(next) {
            return None;
        }
        if atoms[residue - 1..=next]
            .iter()
            .any(|atom| !atom.is_present())
        {
            return None;
        }
        let own = atoms[residue].position;
        let before = own.minus(atoms[residue - 1].position);
        let after = own.minus(atoms[next].position);
        let plane = Plane {
            before,
            after,
            before_norm: before.dot(before).sqrt(),
            after_norm: after.dot(after).sqrt(),
        };
        (plane.before_norm > 0.0 && plane.after_norm > 0.0).then_some(plane)
    }

    /// Whether `d` points to the side of before / |before| + after / |after|.
    fn is_above(&self, d: Position) -> bool {
        d.dot(self.before) * self.after_norm + d.dot(self.after) * self.before_norm > 0.0
    }
}

/// C-alphas within the cutoff on either side of the residue's plane.
pub(in super::super) fn half_sphere_exposure(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let tiles = tiles(header, launch.read());
    let residues: &[ResidueSpan] = bytemuck::cast_slice(launch.read::<u32>());
    let atoms: &[Atom] = bytemuck::cast_slice(launch.read::<i32>());
    let counts: &mut [[i32; 2]] = bytemuck::cast_slice_mut(launch.write::<i32>());
    let cutoff2: u32 = launch.scalar();

    let boxes = TileBoxes::new(tiles, atoms);
    let count = |near_tiles: &[Range<usize>], tile: &Tile, residue: usize| {
        let plane = Plane::of(residue, tile, atoms, residues)?;
        let own = atoms[residue].position;
        let (mut above, mut near) = (0, 0);
        let others = near_tiles.iter().cloned();
        let others = others.flat_map(|range| &atoms[range]);
        for other in others.filter(|atom| atom.is_present()) {
            let difference = other.position.minus(own);
            if squared(difference.x, difference.y, difference.z) < cutoff2 {
                above += i32::from(plane.is_above(difference));
                near += 1;
            }
        }
        // The residue itself is near, and not above.
        Some([above, near - above - 1])
    };
    let counts = &mut counts[..header[RESIDUES] as usize];
    for_each_tile(tiles, counts, |index, tile, counts| {
        let near_tiles: Vec<_> = boxes.near(index, cutoff2).collect();
        for (counts, residue) in counts.iter_mut().zip(tile.range()) {
            *counts = count(&near_tiles, tile, residue).unwrap_or([NULL_COUNT; 2]);
        }
    });
}
