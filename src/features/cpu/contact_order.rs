//! Twin of `kernels/contact_order.cu`.

use super::super::layout::{ATOMS, Atom, RESIDUES, ResidueSpan, StructureSpan};
use super::cells::Cells;
use super::simd::{self, first_lanes, load, of_chain, squared, vectors_of};
use super::split::{for_each_row_of_two, parts, structures};
use crate::record::TwinLaunch;
use fearless_simd::{dispatch, prelude::*};
use rayon::prelude::*;
use std::ops::Range;

/// Mean difference of places over a residue's contacts; sum and number of them.
pub(in super::super) fn contact_order(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let structures = structures(header, launch.read());
    let residues: &[ResidueSpan] = bytemuck::cast_slice(launch.read::<u32>());
    let atoms: &[Atom] = bytemuck::cast_slice(launch.read::<i32>());
    let cells = Cells::take(launch);
    let residue_of: &[u32] = launch.read();
    let means: &mut [f32] = launch.write();
    let sums: &mut [u64] = launch.write();
    let radius: u32 = launch.scalar();

    // The residue of each sorted atom, as `residue_of` has it.
    let mut numbers = vec![0; header[ATOMS] as usize];
    let own = parts(&mut numbers, structures.iter().map(StructureSpan::atoms));
    structures.par_iter().zip(own).for_each(|(structure, own)| {
        for (number, &source) in own.iter_mut().zip(&cells.source[structure.atoms()]) {
            *number = residue_of[source as usize] as i32;
        }
    });
    let count = header[RESIDUES] as usize;
    let outputs = ((&mut sums[..count * 2], 2), (&mut means[..count], 1));
    for_each_row_of_two(outputs.0, outputs.1, |rows, sums, means| {
        dispatch!(simd::level(), simd => {
            for ((row, sums), mean) in rows.zip(sums.chunks_exact_mut(2)).zip(means) {
                let own = &residues[row];
                let grid = &structures[own.structure as usize].atom_grid;
                let mut contacts = Contacts::default();
                for atom in &atoms[own.atoms()] {
                    let runs = cells.runs(grid, atom.position.into(), radius as i32);
                    contacts.add(simd, &cells, runs, atom, radius, &numbers, row as i32 + 1);
                }
                sums.copy_from_slice(&[contacts.sum, contacts.count]);
                *mean = contacts.mean();
            }
        });
    });
}

/// Vectors of differences, each at most 2^20, whose sums fit 32 bits.
const VECTORS_MAX: usize = 1024;

/// Contacts so far.
#[derive(Default)]
struct Contacts {
    sum: u64,
    count: u64,
}

impl Contacts {
    fn mean(&self) -> f32 {
        match self.count {
            0 => f32::NAN,
            count => (self.sum as f64 / count as f64) as f32,
        }
    }

    /// Adds those of an atom, of residue `own` in `numbers`.
    #[inline(always)]
    #[allow(clippy::too_many_arguments, reason = "an inner loop's state")]
    fn add<S: Simd>(
        &mut self,
        simd: S,
        cells: &Cells<'_>,
        runs: impl Iterator<Item = Range<usize>>,
        atom: &Atom,
        radius: u32,
        numbers: &[i32],
        own: i32,
    ) {
        let point = atom.position;
        let zero = S::i32s::splat(simd, 0);
        let mut sums = zero;
        for (step, (at, lanes)) in vectors_of(simd, runs).enumerate() {
            let dx = load(simd, cells.x, at, lanes) - point.x;
            let dy = load(simd, cells.y, at, lanes) - point.y;
            let dz = load(simd, cells.z, at, lanes) - point.z;
            let d2 = squared::<S>(dx, dy, dz, radius as i32);
            let number = load(simd, numbers, at, lanes);
            let apart = (number - own).abs();
            let within = d2.simd_lt(radius * radius) & first_lanes(simd, lanes);
            let of_row = number.simd_gt(0) & apart.simd_gt(0);
            let contacts = within & of_row & of_chain(simd, cells.tag, at, lanes, atom.tag);
            sums += contacts.select(apart, zero);
            self.count += u64::from(contacts.to_bitmask().count_ones());
            if step % VECTORS_MAX == VECTORS_MAX - 1 {
                self.add_sums::<S>(sums);
                sums = zero;
            }
        }
        self.add_sums::<S>(sums);
    }

    #[inline(always)]
    fn add_sums<S: Simd>(&mut self, sums: S::i32s) {
        let sums = sums.as_slice().iter();
        self.sum += sums.map(|&sum| u64::from(sum.unsigned_abs())).sum::<u64>();
    }
}
