//! Twin of `kernels/nearest_chain.cu`.

use super::super::columns::NULL_COUNT;
use super::super::interface::{CHAIN_NEARBY, CHAIN_REACH};
use super::super::layout::{Atom, AtomTag, CHAINS_MAX, RESIDUES, ResidueSpan, StructureSpan};
use super::cells::Cells;
use super::simd::{self, first_lanes, lanes_of, load, of_chain, squared, vectors};
use super::split::{for_each_row, structures};
use crate::record::TwinLaunch;
use fearless_simd::{dispatch, prelude::*};
use rayon::prelude::*;
use std::ops::Range;

/// Squared distance and chain of an atom, which are compared together.
type Nearest = (u32, u32);
const NOTHING: Nearest = (u32::MAX, 0);

/// The nearest atom of another chain.
pub(in super::super) fn nearest_chain(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let structures = structures(header, launch.read());
    let residues: &[ResidueSpan] = bytemuck::cast_slice(launch.read::<u32>());
    let atoms: &[Atom] = bytemuck::cast_slice(launch.read::<i32>());
    let cells = Cells::take(launch);
    let ranges: &[[u32; 2]] = bytemuck::cast_slice(launch.read::<u32>());
    let distances: &mut [f32] = launch.write();
    let contacts: &mut [[i32; 2]] = bytemuck::cast_slice_mut(launch.write::<i32>());
    let cutoff: u32 = launch.scalar();

    let mut nearest = vec![NOTHING; header[RESIDUES] as usize];
    for_each_row(&mut nearest, 1, |rows, nearest| {
        dispatch!(simd::level(), simd => {
            for (own, nearest) in rows.zip(nearest) {
                let own = &residues[own];
                let structure = &structures[own.structure as usize];
                if structure.chain_count > 1 && own.atom_count > 0 {
                    *nearest = search(simd, &cells, ranges, structure, own, atoms);
                }
            }
        });
    });
    let results = distances.par_iter_mut().zip(contacts).zip(nearest);
    let results = results.zip(residues);
    results.for_each(|(((distance, contact), (d2, chain)), residue)| {
        let found = d2 < CHAIN_REACH.pow(2);
        let first = structures[residue.structure as usize].chain_start;
        (*distance, *contact) = if found {
            let is_contact = d2 < cutoff * cutoff;
            let angstrom = f64::from(d2).sqrt() * 0.001;
            (
                angstrom as f32,
                [i32::from(is_contact), (chain - first) as i32],
            )
        } else {
            (f32::NAN, [0, NULL_COUNT])
        };
    });
}

/// The nearest atom of another chain, first looked for nearby.
#[inline(always)]
fn search<S: Simd>(
    simd: S,
    cells: &Cells<'_>,
    ranges: &[[u32; 2]],
    structure: &StructureSpan,
    own: &ResidueSpan,
    atoms: &[Atom],
) -> Nearest {
    let atoms = &atoms[own.atoms()];
    let (mut low, mut high) = ([i32::MAX; 3], [i32::MIN; 3]);
    for atom in atoms {
        let point = <[i32; 3]>::from(atom.position);
        low = std::array::from_fn(|axis| low[axis].min(point[axis]));
        high = std::array::from_fn(|axis| high[axis].max(point[axis]));
    }
    let own_chain = [CHAINS_MAX - own.chain, own.chain + 1];
    let mut nearest = NOTHING;
    for reach in [CHAIN_NEARBY, CHAIN_REACH] {
        let (low, high) = (
            low.map(|c| c - reach as i32),
            high.map(|c| c + reach as i32),
        );
        for run in structure.atom_grid.runs_between(low, high) {
            let others = |range: &[u32; 2]| *range != [0, 0] && *range != own_chain;
            let Some(first) = ranges[run.clone()].iter().position(others) else {
                continue;
            };
            let last = ranges[run.clone()]
                .iter()
                .rposition(others)
                .unwrap_or(first);
            let end = cells.start[run.start + last + 1] as usize;
            let candidates = cells.start[run.start + first] as usize..end;
            nearest = nearest_of(simd, cells, candidates, atoms, nearest);
        }
        if nearest.0 < reach * reach {
            break;
        }
    }
    nearest
}

/// The nearest so far and among the candidates.
#[inline(always)]
fn nearest_of<S: Simd>(
    simd: S,
    cells: &Cells<'_>,
    candidates: Range<usize>,
    atoms: &[Atom],
    mut nearest: Nearest,
) -> Nearest {
    let own: AtomTag = atoms[0].tag;
    for (at, lanes) in vectors(simd, candidates) {
        let others = first_lanes(simd, lanes) & !of_chain(simd, cells.tag, at, lanes, own);
        if others.all_false() {
            continue;
        }
        let x = load(simd, cells.x, at, lanes);
        let y = load(simd, cells.y, at, lanes);
        let z = load(simd, cells.z, at, lanes);
        let mut d2 = S::u32s::splat(simd, u32::MAX);
        for atom in atoms {
            let point = atom.position;
            let (dx, dy, dz) = (x - point.x, y - point.y, z - point.z);
            d2 = d2.min(squared::<S>(dx, dy, dz, CHAIN_REACH as i32));
        }
        let nearer = d2.simd_le(nearest.0) & others;
        for lane in lanes_of(nearer.to_bitmask()) {
            nearest = nearest.min((d2[lane], cells.tag[at + lane].chain()));
        }
    }
    nearest
}
