//! Twin of `kernels/weighted_contact_number.cu`.

use super::super::layout::{Atom, TILE};
use super::{Own, for_each_tile, tiles};
use crate::record::TwinLaunch;

/// Terms added in single precision before they go into the double sum.
const GROUP: usize = 32;

/// Sum of 1/d^2 over the other residues of the structure.
pub(in super::super) fn weighted_contact_number(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let tiles = tiles(header, launch.read());
    let atoms: &[Atom] = bytemuck::cast_slice(launch.read::<i32>());
    let sums: &mut [f32] = launch.write();

    for_each_tile(tiles, sums, |_, tile, sums| {
        let own = Own::of(tile, atoms);
        let mut total = [0f64; TILE as usize];
        for group in atoms[tile.structure_range()].chunks(GROUP) {
            let mut partial = [0f32; TILE as usize];
            for other in group.iter().filter(|other| other.is_present()) {
                let other = other.position;
                for (partial, (x, y, z)) in partial.iter_mut().zip(own.lanes()) {
                    let difference = |a: i32, b: i32| (a - b) as f32;
                    let x = difference(x, other.x);
                    let y = difference(y, other.y);
                    let z = difference(z, other.z);
                    let d2 = x * x + y * y + z * z;
                    *partial += if d2 > 0.0 { 1e6 / d2 } else { 0.0 };
                }
            }
            for (total, partial) in total.iter_mut().zip(partial) {
                *total += f64::from(partial);
            }
        }
        for ((sum, atom), total) in sums.iter_mut().zip(&atoms[tile.range()]).zip(total) {
            *sum = if atom.is_present() {
                total as f32
            } else {
                f32::NAN
            };
        }
    });
}
