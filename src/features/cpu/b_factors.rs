//! Twin of `kernels/b_factors.cu`.

use super::super::layout::{CHAINS, ChainSpan, RESIDUES, ResidueSpan};
use super::split::{for_each_row, structures};
use super::tree_sum;
use crate::record::TwinLaunch;
use bytemuck::{cast_slice, cast_slice_mut};
use rayon::prelude::*;

/// Threads of the kernel's block, whose partial sums are added as a tree.
const THREADS: usize = 256;

/// The C-alpha's B factor, the mean of the residue's atoms', and the C-alpha's
/// (b - mean) / sd over the chain.
pub(in super::super) fn b_factors(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let structures = structures(header, launch.read());
    let residues: &[ResidueSpan] = cast_slice(launch.read::<u32>());
    let chains: &[ChainSpan] = &cast_slice(launch.read::<u32>())[..header[CHAINS] as usize];
    let members: &[u32] = launch.read();
    let b: &[f32] = launch.read();
    let atom_b: &[f32] = launch.read();
    let factors: &mut [[f32; 3]] = cast_slice_mut(launch.write::<f32>());

    for_each_row(&mut factors[..header[RESIDUES] as usize], 1, |rows, out| {
        for (own, factors) in rows.zip(out) {
            let residue = &residues[own];
            let is_measured = structures[residue.structure as usize].predicted == 0;
            *factors = [f32::NAN; 3];
            if is_measured {
                factors[0] = b[own];
                factors[1] = mean(&atom_b[residue.atoms()]);
            }
        }
    });
    let own = |chain: &ChainSpan| chain.members(members).iter().map(|&r| r as usize);
    let moments = |chain: &ChainSpan| moments(own(chain).map(|residue| b[residue]));
    let moments: Vec<(f64, f64)> = chains.par_iter().map(moments).collect();
    // Chains may interleave, so their results are put in place by one thread.
    for (chain, (mean, sd)) in chains.iter().zip(moments) {
        for residue in own(chain) {
            let value = factors[residue][0];
            if sd > 0.0 && !value.is_nan() {
                factors[residue][2] = ((f64::from(value) - mean) / sd) as f32;
            }
        }
    }
}

/// The mean of the values that are there.
fn mean(values: &[f32]) -> f32 {
    let (mut sum, mut count) = (0.0, 0.0);
    for value in values.iter().filter(|value| !value.is_nan()) {
        sum += f64::from(*value);
        count += 1.0;
    }
    if count > 0.0 {
        (sum / count) as f32
    } else {
        f32::NAN
    }
}

/// Mean and population standard deviation of the values that are there.
fn moments(values: impl Iterator<Item = f32> + Clone) -> (f64, f64) {
    let mut sums = [0f64; THREADS];
    let mut counts = [0f64; THREADS];
    let lanes = || {
        (0..THREADS)
            .cycle()
            .zip(values.clone())
            .filter(|(_, value)| !value.is_nan())
    };
    for (lane, value) in lanes() {
        sums[lane] += f64::from(value);
        counts[lane] += 1.0;
    }
    let count = tree_sum(&mut counts);
    let mean = tree_sum(&mut sums) / count;
    let mut squares = [0f64; THREADS];
    for (lane, value) in lanes() {
        let deviation = f64::from(value) - mean;
        squares[lane] += deviation * deviation;
    }
    (mean, (tree_sum(&mut squares) / count).sqrt())
}
