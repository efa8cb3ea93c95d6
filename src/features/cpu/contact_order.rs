//! Twin of `kernels/contact_order.cu`.

use super::super::layout::{Atom, RESIDUES, ResidueSpan};
use super::cells::Cells;
use super::simd::{self, first_lanes, load, of_chain, squared, vectors};
use super::split::{for_each_row_of_two, structures};
use crate::record::TwinLaunch;
use fearless_simd::{dispatch, prelude::*};
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
                    contacts.add(simd, &cells, runs, atom, radius, |source| {
                        let number = residue_of[source as usize];
                        let other = number.checked_sub(1)? as usize;
                        Some(other.abs_diff(row) as u64).filter(|&apart| apart > 0)
                    });
                }
                sums.copy_from_slice(&[contacts.sum, contacts.count]);
                *mean = contacts.mean();
            }
        });
    });
}

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

    /// Adds those of an atom; `apart` says of another how far its residue is.
    #[inline(always)]
    fn add<S: Simd>(
        &mut self,
        simd: S,
        cells: &Cells<'_>,
        runs: impl Iterator<Item = Range<usize>>,
        atom: &Atom,
        radius: u32,
        apart: impl Fn(u32) -> Option<u64>,
    ) {
        let point = atom.position;
        for (at, lanes) in runs.flat_map(|run| vectors(simd, run)) {
            let dx = load(simd, cells.x, at, lanes) - point.x;
            let dy = load(simd, cells.y, at, lanes) - point.y;
            let dz = load(simd, cells.z, at, lanes) - point.z;
            let d2 = squared::<S>(dx, dy, dz, radius as i32);
            let within = d2.simd_lt(radius * radius) & first_lanes(simd, lanes);
            let within = within & of_chain(simd, cells.tag, at, lanes, atom.tag);
            for lane in simd::lanes_of(within.to_bitmask()) {
                if let Some(apart) = apart(cells.source[at + lane]) {
                    self.sum += apart;
                    self.count += 1;
                }
            }
        }
    }
}
