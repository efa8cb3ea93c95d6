//! Twin of `kernels/contact_number.cu`.

use super::super::columns::NULL_COUNT;
use super::super::layout::{Position, TILE};
use super::near::TileBoxes;
use super::{Own, for_each_tile, squared, tiles};
use crate::record::TwinLaunch;

/// Other residues of the structure within the cutoff.
pub(in super::super) fn contact_number(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let tiles = tiles(header, launch.read());
    let positions: &[Position] = bytemuck::cast_slice(launch.read::<i32>());
    let counts: &mut [i32] = launch.write();
    let cutoff2: u32 = launch.scalar();

    let boxes = TileBoxes::new(tiles, positions);
    for_each_tile(tiles, counts, |index, tile, counts| {
        let own = Own::of(tile, positions);
        let mut near = [0i32; TILE as usize];
        for other in boxes
            .near(index, cutoff2)
            .flat_map(|range| &positions[range])
        {
            for (near, (x, y, z)) in near.iter_mut().zip(own.lanes()) {
                *near += i32::from(squared(x - other.x, y - other.y, z - other.z) < cutoff2);
            }
        }
        for ((count, position), near) in counts.iter_mut().zip(&positions[tile.range()]).zip(near) {
            // The residue itself is at distance 0.
            *count = if position.is_present() {
                near - 1
            } else {
                NULL_COUNT
            };
        }
    });
}
