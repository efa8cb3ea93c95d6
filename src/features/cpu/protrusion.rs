//! Twin of `kernels/protrusion.cu`.

use super::super::layout::{Atom, Position, REACH, RESIDUES, ResidueSpan};
use super::cells::Cells;
use super::simd::{self, first_lanes, load, squared, vectors_of};
use super::split::{for_each_row, structures};
use crate::record::TwinLaunch;
use fearless_simd::{dispatch, prelude::*};
use std::ops::Range;

/// Mean and largest free over filled volume around a residue's atoms.
pub(in super::super) fn protrusion(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let structures = structures(header, launch.read());
    let residues: &[ResidueSpan] = bytemuck::cast_slice(launch.read::<u32>());
    let atoms: &[Atom] = bytemuck::cast_slice(launch.read::<i32>());
    let cells = Cells::take(launch);
    let cx: &mut [f32] = launch.write();
    let radius: u32 = launch.scalar();
    let sphere_volume: f64 = launch.scalar();
    let atom_volume: f64 = launch.scalar();

    let cx = &mut cx[..header[RESIDUES] as usize * 2];
    for_each_row(cx, 2, |rows, cx| {
        dispatch!(simd::level(), simd => {
            for (own, cx) in rows.zip(cx.chunks_exact_mut(2)) {
                let own = &residues[own];
                if own.atom_count == 0 {
                    cx.fill(f32::NAN);
                    continue;
                }
                let grid = &structures[own.structure as usize].atom_grid;
                // Else candidates are so near that no difference needs a bound.
                let bounded = grid.wraps() || radius + (1 << grid.shift) > REACH;
                let (mut sum, mut largest) = (0.0, f64::NEG_INFINITY);
                for atom in &atoms[own.atoms()] {
                    let point = atom.position;
                    let runs = cells.runs(grid, point.into(), radius as i32);
                    let near = if bounded {
                        atoms_within::<_, true>(simd, &cells, runs, point, radius)
                    } else {
                        atoms_within::<_, false>(simd, &cells, runs, point, radius)
                    };
                    let filled = f64::from(near) * atom_volume;
                    let free_to_filled = (sphere_volume - filled) / filled;
                    sum += free_to_filled;
                    largest = free_to_filled.max(largest);
                }
                let mean = sum / f64::from(own.atom_count);
                cx.copy_from_slice(&[mean as f32, largest as f32]);
            }
        });
    });
}

#[inline(always)]
fn atoms_within<S: Simd, const BOUNDED: bool>(
    simd: S,
    cells: &Cells<'_>,
    runs: impl Iterator<Item = Range<usize>>,
    point: Position,
    radius: u32,
) -> u32 {
    let mut near = 0;
    for (at, lanes) in vectors_of(simd, runs) {
        let dx = load(simd, cells.x, at, lanes) - point.x;
        let dy = load(simd, cells.y, at, lanes) - point.y;
        let dz = load(simd, cells.z, at, lanes) - point.z;
        let d2 = if BOUNDED {
            squared::<S>(dx, dy, dz, radius as i32)
        } else {
            (dx * dx + dy * dy + dz * dz).bitcast()
        };
        let within = d2.simd_lt(radius * radius) & first_lanes(simd, lanes);
        near += within.to_bitmask().count_ones();
    }
    near
}
