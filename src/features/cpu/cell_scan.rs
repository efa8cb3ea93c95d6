//! Twin of `kernels/cell_scan.cu`.

use super::split::{parts, structures};
use super::{atoms_of, grid_of};
use crate::record::TwinLaunch;
use rayon::prelude::*;

/// Where each cell's atoms start.
pub(in super::super) fn cell_scan(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let structures = structures(header, launch.read());
    let counts: &[u32] = launch.read();
    let start: &mut [u32] = launch.write();
    let axis: u32 = launch.scalar();

    let cells = |structure| grid_of(structure, axis).cells();
    let starts = parts(start, structures.iter().map(cells));
    structures
        .par_iter()
        .zip(starts)
        .for_each(|(structure, starts)| {
            let mut next = atoms_of(structure, axis).start as u32;
            for (start, count) in starts.iter_mut().zip(&counts[cells(structure)]) {
                *start = next;
                next += count;
            }
        });
}
