//! Twin of `kernels/smooth.cu`.

use super::super::layout::{Atom, RESIDUES, ResidueSpan};
use super::cells::Cells;
use super::simd::{self, first_lanes, lanes_of, load, squared, vectors_of};
use super::split::{for_each_row, structures};
use crate::record::TwinLaunch;
use fearless_simd::{dispatch, prelude::*};
use std::ops::Range;

/// A sum of weights counts in units of one over this.
const WEIGHT_SCALE: f64 = (1u64 << 42) as f64;

/// The mean of a channel over the C-alphas within the radius.
pub(in super::super) fn smooth(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let structures = structures(header, launch.read());
    let residues: &[ResidueSpan] = bytemuck::cast_slice(launch.read::<u32>());
    let atoms: &[Atom] = bytemuck::cast_slice(launch.read::<i32>());
    let cells = Cells::take(launch);
    let values: &[f32] = launch.read();
    let means: &mut [f32] = launch.write();
    let radius: u32 = launch.scalar();
    let weighted = launch.scalar::<u32>() != 0;

    for_each_row(&mut means[..header[RESIDUES] as usize], 1, |rows, means| {
        dispatch!(simd::level(), simd => {
            let mut near = Vec::new();
            for (own, mean) in rows.zip(means) {
                if !atoms[own].is_present() {
                    *mean = f32::NAN;
                    continue;
                }
                let structure = residues[own].structure as usize;
                let grid = &structures[structure].residue_grid;
                let runs = cells.runs(grid, atoms[own].position.into(), radius as i32);
                near.clear();
                for_each_near(simd, &cells, runs, &atoms[own], radius, |source, d2| {
                    if source != own && !values[source].is_nan() {
                        near.push((values[source], d2));
                    }
                });
                *mean = mean_of(&near, weighted);
            }
        });
    });
}

/// The power of two that makes a value less than 2^42.
fn scale_of(value: f32) -> f64 {
    // Every f32 is a normal f64: its exponent stands in these bits, 1023 for 2^0.
    let exponent = f64::from(value).to_bits() >> 52;
    match exponent {
        0 => 1.0,
        _ => f64::from_bits((1023 + 41 + 1023 - exponent) << 52),
    }
}

/// The mean of values, each with its squared distance, in units that follow from the
/// largest of them.
fn mean_of(near: &[(f32, u32)], weighted: bool) -> f32 {
    let magnitudes = near.iter().map(|(value, _)| value.abs());
    let mut sums = Sums::new(scale_of(magnitudes.fold(0.0, f32::max)), weighted);
    near.iter().for_each(|&(value, d2)| sums.add(value, d2));
    sums.mean()
}

/// Calls `visit` with the residue and the squared distance of every C-alpha
/// within the radius.
#[inline(always)]
fn for_each_near<S: Simd>(
    simd: S,
    cells: &Cells<'_>,
    runs: impl Iterator<Item = Range<usize>>,
    atom: &Atom,
    radius: u32,
    mut visit: impl FnMut(usize, u32),
) {
    let point = atom.position;
    for (at, lanes) in vectors_of(simd, runs) {
        let dx = load(simd, cells.x, at, lanes) - point.x;
        let dy = load(simd, cells.y, at, lanes) - point.y;
        let dz = load(simd, cells.z, at, lanes) - point.z;
        let d2 = squared::<S>(dx, dy, dz, radius as i32);
        let within = d2.simd_lt(radius * radius) & first_lanes(simd, lanes);
        for lane in lanes_of(within.to_bitmask()) {
            visit(cells.source[at + lane] as usize, d2[lane]);
        }
    }
}

/// Sums in whole numbers, so that their order does not matter.
struct Sums {
    scale: f64,
    weighted: bool,
    sum: i64,
    weights: i64,
}

impl Sums {
    fn new(scale: f64, weighted: bool) -> Self {
        Sums {
            scale,
            weighted,
            sum: 0,
            weights: 0,
        }
    }

    #[inline(always)]
    fn add(&mut self, value: f32, d2: u32) {
        let value = f64::from(value) * self.scale;
        if !self.weighted {
            self.sum += value.round_ties_even() as i64;
            self.weights += 1;
        } else if d2 > 0 {
            let weight = 1.0 / f64::from(d2).sqrt();
            self.sum += (value * weight).round_ties_even() as i64;
            self.weights += (weight * WEIGHT_SCALE).round_ties_even() as i64;
        }
    }

    fn mean(&self) -> f32 {
        let weights = self.weights as f64;
        let divisor = if self.weighted {
            weights / WEIGHT_SCALE
        } else {
            weights
        };
        match self.weights {
            0 => f32::NAN,
            _ => (self.sum as f64 / self.scale / divisor) as f32,
        }
    }
}
