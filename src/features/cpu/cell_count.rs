//! Twin of `kernels/cell_count.cu`.

use super::super::layout::Atom;
use super::split::{parts, structures};
use super::{atoms_of, grid_of};
use crate::record::TwinLaunch;
use rayon::prelude::*;

/// Atoms in each cell.
pub(in super::super) fn cell_count(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let structures = structures(header, launch.read());
    let _chains: &[u32] = launch.read();
    let atoms: &[Atom] = bytemuck::cast_slice(launch.read::<i32>());
    let counts: &mut [u32] = launch.write();
    let axis: u32 = launch.scalar();

    let cells = structures
        .iter()
        .map(|structure| grid_of(structure, axis).cells());
    let counts = parts(counts, cells);
    structures
        .par_iter()
        .zip(counts)
        .for_each(|(structure, counts)| {
            let grid = grid_of(structure, axis);
            let own = &atoms[atoms_of(structure, axis)];
            for atom in own.iter().filter(|atom| atom.is_present()) {
                counts[grid.cell_of(atom.position.into()) - grid.first as usize] += 1;
            }
        });
}
