//! Twin of `kernels/contact_number.cu`.

use super::super::columns::NULL_COUNT;
use super::super::layout::{Atom, TILE};
use super::near::TileBoxes;
use super::{Own, for_each_tile, squared, tiles};
use crate::record::TwinLaunch;

/// Other residues of the structure within the cutoff.
pub(in super::super) fn contact_number(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let tiles = tiles(header, launch.read());
    let atoms: &[Atom] = bytemuck::cast_slice(launch.read::<i32>());
    let counts: &mut [i32] = launch.write();
    let cutoff2: u32 = launch.scalar();

    let boxes = TileBoxes::new(tiles, atoms);
    for_each_tile(tiles, counts, |index, tile, counts| {
        let own = Own::of(tile, atoms);
        let mut near = [0i32; TILE as usize];
        for other in boxes
            .near(index, cutoff2)
            .flat_map(|range| &atoms[range])
            .filter(|other| other.is_present())
        {
            let other = other.position;
            for (near, (x, y, z)) in near.iter_mut().zip(own.lanes()) {
                *near += i32::from(squared(x - other.x, y - other.y, z - other.z) < cutoff2);
            }
        }
        for ((count, atom), near) in counts.iter_mut().zip(&atoms[tile.range()]).zip(near) {
            // The residue itself is at distance 0.
            *count = if atom.is_present() {
                near - 1
            } else {
                NULL_COUNT
            };
        }
    });
}
