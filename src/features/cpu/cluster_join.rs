//! Twin of `kernels/cluster_join.cu`.

use super::super::layout::{Atom, ResidueSpan, StructureSpan};
use super::cells::Cells;
use super::cluster_start::NO_TREE;
use super::simd::{self, first_lanes, lanes_of, load, squared, vectors_of};
use super::split::{parts, structures};
use crate::record::TwinLaunch;
use fearless_simd::{dispatch, prelude::*};
use rayon::prelude::*;

/// Joins the trees of residues whose C-alphas are within the radius.
pub(in super::super) fn cluster_join(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let structures = structures(header, launch.read());
    let _residues: &[ResidueSpan] = bytemuck::cast_slice(launch.read::<u32>());
    let atoms: &[Atom] = bytemuck::cast_slice(launch.read::<i32>());
    let cells = Cells::take(launch);
    let parents: &mut [u32] = launch.write();
    let radius: u32 = launch.scalar();

    let own = parts(parents, structures.iter().map(StructureSpan::residues));
    structures
        .par_iter()
        .zip(own)
        .for_each(|(structure, parents)| {
            dispatch!(simd::level(), simd => {
                join_near(simd, structure, &cells, atoms, parents, radius);
            });
        });
}

#[inline(always)]
fn join_near<S: Simd>(
    simd: S,
    structure: &StructureSpan,
    cells: &Cells<'_>,
    atoms: &[Atom],
    parents: &mut [u32],
    radius: u32,
) {
    let start = structure.residues().start;
    for own in structure.residues() {
        if parents[own - start] == NO_TREE {
            continue;
        }
        let point = atoms[own].position;
        let runs = cells.runs(&structure.residue_grid, point.into(), radius as i32);
        for (at, lanes) in vectors_of(simd, runs) {
            let dx = load(simd, cells.x, at, lanes) - point.x;
            let dy = load(simd, cells.y, at, lanes) - point.y;
            let dz = load(simd, cells.z, at, lanes) - point.z;
            let d2 = squared::<S>(dx, dy, dz, radius as i32);
            let within = d2.simd_lt(radius * radius) & first_lanes(simd, lanes);
            for lane in lanes_of(within.to_bitmask()) {
                let other = cells.source[at + lane] as usize;
                if other < own && parents[other - start] != NO_TREE {
                    let roots = [own, other].map(|residue| root_of(parents, start, residue));
                    let [a, b] = roots;
                    parents[a.max(b) - start] = a.min(b) as u32;
                }
            }
        }
    }
}

/// The root of a residue's tree; `parents` has those from residue `start` on.
pub(super) fn root_of(parents: &[u32], start: usize, mut residue: usize) -> usize {
    loop {
        let parent = parents[residue - start] as usize;
        if parent == residue {
            return residue;
        }
        residue = parent;
    }
}
