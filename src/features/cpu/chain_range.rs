//! Twin of `kernels/chain_range.cu`.

use super::super::layout::{Atom, CHAINS_MAX};
use super::split::{parts, structures};
use crate::record::TwinLaunch;
use rayon::prelude::*;

/// Which chains the atoms of each cell are of, from the lowest to the highest.
pub(in super::super) fn chain_range(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let structures = structures(header, launch.read());
    let _chains: &[u32] = launch.read();
    let atoms: &[Atom] = bytemuck::cast_slice(launch.read::<i32>());
    let ranges: &mut [[u32; 2]] = bytemuck::cast_slice_mut(launch.write::<u32>());

    let cells = structures
        .iter()
        .map(|structure| structure.atom_grid.cells());
    let ranges = parts(ranges, cells);
    let work = structures.par_iter().zip(ranges);
    let of_several = work.filter(|(structure, _)| structure.chain_count > 1);
    of_several.for_each(|(structure, ranges)| {
        let grid = &structure.atom_grid;
        let own = &atoms[structure.atoms()];
        for atom in own.iter().filter(|atom| atom.is_present()) {
            let chain = atom.tag.chain();
            let cell = grid.cell_of(atom.position.into()) - grid.first as usize;
            let [low, high] = &mut ranges[cell];
            *low = (CHAINS_MAX - chain).max(*low);
            *high = (chain + 1).max(*high);
        }
    });
}
