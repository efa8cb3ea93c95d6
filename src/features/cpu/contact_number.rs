//! Twin of `kernels/contact_number.cu`.

use super::super::columns::NULL_COUNT;
use super::super::contact_number::CUTOFFS_MAX;
use super::super::layout::{Atom, AtomTag, Position, RESIDUES, ResidueSpan};
use super::cells::Cells;
use super::simd::{self, first_lanes, load, of_chain, squared, vectors_of};
use super::split::{for_each_row, structures};
use crate::record::TwinLaunch;
use fearless_simd::{dispatch, prelude::*};
use std::ops::Range;

/// Other residues of the structure within each cutoff.
pub(in super::super) fn contact_number(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let structures = structures(header, launch.read());
    let residues: &[ResidueSpan] = bytemuck::cast_slice(launch.read::<u32>());
    let atoms: &[Atom] = bytemuck::cast_slice(launch.read::<i32>());
    let cells = Cells::take(launch);
    let counts: &mut [i32] = launch.write();
    let values = launch.scalar::<u32>() as usize;
    let first = launch.scalar::<u32>() as usize;
    let own_chain = launch.scalar::<u32>() != 0;

    let cutoffs = &header[first..first + values];
    let reach = cutoffs.iter().copied().max().unwrap_or(0) as i32;
    let counts = &mut counts[..header[RESIDUES] as usize * values];
    for_each_row(counts, values, |rows, counts| {
        dispatch!(simd::level(), simd => {
            for (own, counts) in rows.zip(counts.chunks_exact_mut(values)) {
                if !atoms[own].is_present() {
                    counts.fill(NULL_COUNT);
                    continue;
                }
                let grid = &structures[residues[own].structure as usize].residue_grid;
                let atom = atoms[own];
                let runs = cells.runs(grid, atom.position.into(), reach);
                let chain = own_chain.then_some(atom.tag);
                count(simd, &cells, runs, atom.position, chain, cutoffs, counts);
            }
        });
    });
}

/// `chain` is an atom's tag whose chain alone counts, if one does.
#[inline(always)]
fn count<S: Simd>(
    simd: S,
    cells: &Cells<'_>,
    runs: impl Iterator<Item = Range<usize>>,
    point: Position,
    chain: Option<AtomTag>,
    cutoffs: &[u32],
    counts: &mut [i32],
) {
    let reach = cutoffs.iter().copied().max().unwrap_or(0) as i32;
    let mut near = [0; CUTOFFS_MAX];
    for (at, lanes) in vectors_of(simd, runs) {
        let dx = load(simd, cells.x, at, lanes) - point.x;
        let dy = load(simd, cells.y, at, lanes) - point.y;
        let dz = load(simd, cells.z, at, lanes) - point.z;
        let d2 = squared::<S>(dx, dy, dz, reach);
        let mut wanted = first_lanes(simd, lanes);
        if let Some(tag) = chain {
            wanted &= of_chain(simd, cells.tag, at, lanes, tag);
        }
        for (near, cutoff) in near.iter_mut().zip(cutoffs) {
            let within = d2.simd_lt(cutoff * cutoff) & wanted;
            *near += within.to_bitmask().count_ones() as i32;
        }
    }
    for (count, near) in counts.iter_mut().zip(near) {
        // The residue itself is at distance 0.
        *count = near - 1;
    }
}
