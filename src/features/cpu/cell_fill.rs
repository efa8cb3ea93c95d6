//! Twin of `kernels/cell_fill.cu`.

use super::super::layout::Atom;
use super::split::{parts, structures};
use super::{atoms_of, grid_of};
use crate::record::TwinLaunch;
use rayon::prelude::*;

/// Puts the atoms in the order of their cells, and of the atoms within a cell.
pub(in super::super) fn cell_fill(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let structures = structures(header, launch.read());
    let _chains: &[u32] = launch.read();
    let atoms: &[Atom] = bytemuck::cast_slice(launch.read::<i32>());
    let start: &[u32] = launch.read();
    let counts: &mut [u32] = launch.write();
    let [x, y, z] = std::array::from_fn(|_| launch.write::<i32>());
    let [tag, source] = std::array::from_fn(|_| launch.write::<u32>());
    let axis: u32 = launch.scalar();

    let cells = structures
        .iter()
        .map(|structure| grid_of(structure, axis).cells());
    let counts = parts(counts, cells);
    let own = || structures.iter().map(|structure| atoms_of(structure, axis));
    let xyz = parts(x, own()).zip(parts(y, own())).zip(parts(z, own()));
    let tags = parts(tag, own()).zip(parts(source, own()));
    let places = xyz.zip(tags);
    structures.par_iter().zip(counts).zip(places).for_each(
        |((structure, counts), (((x, y), z), (tag, source)))| {
            let grid = grid_of(structure, axis);
            let range = atoms_of(structure, axis);
            // Places are given out from a cell's end.
            for (index, atom) in range.clone().zip(&atoms[range.clone()]).rev() {
                if !atom.is_present() {
                    continue;
                }
                let cell = grid.cell_of(atom.position.into());
                let count = &mut counts[cell - grid.first as usize];
                *count -= 1;
                let place = (start[cell] + *count) as usize - range.start;
                (x[place], y[place], z[place]) =
                    (atom.position.x, atom.position.y, atom.position.z);
                (tag[place], source[place]) = (atom.tag.bits(), index as u32);
            }
        },
    );
}
