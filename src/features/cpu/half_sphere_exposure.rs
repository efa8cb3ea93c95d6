//! Twin of `kernels/half_sphere_exposure.cu`.

use super::super::columns::NULL_COUNT;
use super::super::layout::{Atom, Position, RESIDUES, ResidueSpan};
use super::cells::Cells;
use super::simd::{self, first_lanes, load, squared, vectors_of};
use super::split::{for_each_row, structures};
use crate::record::TwinLaunch;
use fearless_simd::{dispatch, prelude::*};
use std::ops::Range;

/// C-alphas within the radius on either side of the residue's plane.
pub(in super::super) fn half_sphere_exposure(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let structures = structures(header, launch.read());
    let residues: &[ResidueSpan] = bytemuck::cast_slice(launch.read::<u32>());
    let atoms: &[Atom] = bytemuck::cast_slice(launch.read::<i32>());
    let cells = Cells::take(launch);
    let normals: &[f64] = launch.read();
    let counts: &mut [i32] = launch.write();
    let radius: u32 = launch.scalar();

    let counts = &mut counts[..header[RESIDUES] as usize * 2];
    for_each_row(counts, 2, |rows, counts| {
        dispatch!(simd::level(), simd => {
            for (own, counts) in rows.zip(counts.chunks_exact_mut(2)) {
                let normal = [normals[3 * own], normals[3 * own + 1], normals[3 * own + 2]];
                if !atoms[own].is_present() || normal[0].is_nan() {
                    counts.fill(NULL_COUNT);
                    continue;
                }
                let grid = &structures[residues[own].structure as usize].residue_grid;
                let point = atoms[own].position;
                let runs = cells.runs(grid, point.into(), radius as i32);
                let (near, above) = count(simd, &cells, runs, point, normal, radius);
                // The residue itself is near, and not above.
                counts.copy_from_slice(&[above, near - above - 1]);
            }
        });
    });
}

#[inline(always)]
fn count<S: Simd>(
    simd: S,
    cells: &Cells<'_>,
    runs: impl Iterator<Item = Range<usize>>,
    point: Position,
    [nx, ny, nz]: [f64; 3],
    radius: u32,
) -> (i32, i32) {
    let (mut near, mut above) = (0, 0);
    for (at, lanes) in vectors_of(simd, runs) {
        let dx = load(simd, cells.x, at, lanes) - point.x;
        let dy = load(simd, cells.y, at, lanes) - point.y;
        let dz = load(simd, cells.z, at, lanes) - point.z;
        let d2 = squared::<S>(dx, dy, dz, radius as i32);
        let within = d2.simd_lt(radius * radius) & first_lanes(simd, lanes);
        let within = within.to_bitmask();
        if within == 0 {
            continue;
        }
        // Exact within the radius.
        let [x, y, z] = [dx, dy, dz].map(|d| d.to_float::<S::f32s>().widen());
        let up = |x: S::f64s, y: S::f64s, z: S::f64s| {
            (x * nx + y * ny + z * nz).simd_gt(0.0).to_bitmask()
        };
        let up = up(x.0, y.0, z.0) | up(x.1, y.1, z.1) << S::f64s::LEN;
        near += within.count_ones() as i32;
        above += (within & up).count_ones() as i32;
    }
    (near, above)
}
