//! Twin of `kernels/half_sphere_exposure.cu`.

use super::super::columns::NULL_COUNT;
use super::super::layout::{Position, RESIDUES, Tile};
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
    fn of(residue: usize, tile: &Tile, positions: &[Position], links: &[u8]) -> Option<Plane> {
        let (all, next) = (tile.structure_range(), residue + 1);
        let inside = residue > all.start && next < all.end;
        if !inside || links[residue] == 0 || links[next] == 0 {
            return None;
        }
        if positions[residue - 1..=next]
            .iter()
            .any(|p| !p.is_present())
        {
            return None;
        }
        let before = positions[residue].minus(positions[residue - 1]);
        let after = positions[residue].minus(positions[next]);
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
    let positions: &[Position] = bytemuck::cast_slice(launch.read::<i32>());
    let links: &[u8] = launch.read();
    let up: &mut [i32] = launch.write();
    let down: &mut [i32] = launch.write();
    let cutoff2: u32 = launch.scalar();

    let boxes = TileBoxes::new(tiles, positions);
    let count = |near_tiles: &[Range<usize>], tile: &Tile, residue: usize| {
        let plane = Plane::of(residue, tile, positions, links)?;
        let own = positions[residue];
        let (mut above, mut near) = (0, 0);
        let others = near_tiles.iter().cloned();
        for other in others.flat_map(|range| &positions[range]) {
            if squared(own.x - other.x, own.y - other.y, own.z - other.z) < cutoff2 {
                above += i32::from(plane.is_above(other.minus(own)));
                near += 1;
            }
        }
        // The residue itself is near, and not above.
        Some((above, near - above - 1))
    };
    let mut both = vec![(NULL_COUNT, NULL_COUNT); header[RESIDUES] as usize];
    for_each_tile(tiles, &mut both, |index, tile, both| {
        let near_tiles: Vec<_> = boxes.near(index, cutoff2).collect();
        for (both, residue) in both.iter_mut().zip(tile.range()) {
            *both = count(&near_tiles, tile, residue).unwrap_or((NULL_COUNT, NULL_COUNT));
        }
    });
    for ((both, up), down) in both.iter().zip(up).zip(down) {
        (*up, *down) = *both;
    }
}
