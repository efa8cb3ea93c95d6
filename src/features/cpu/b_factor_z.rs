//! Twin of `kernels/b_factor_z.cu`.

use super::super::layout::{CHAINS, ChainSpan};
use super::tree_sum;
use crate::record::TwinLaunch;
use rayon::prelude::*;

/// Threads of the kernel's block, whose partial sums are added as a tree.
const THREADS: usize = 128;

/// (b - mean) / sd over the residues of a chain that have a b.
pub(in super::super) fn b_factor_z(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let chains: &[ChainSpan] = bytemuck::cast_slice(launch.read::<u32>());
    let members: &[u32] = launch.read();
    let b: &[f32] = launch.read();
    let z: &mut [f32] = launch.write();

    let chains = &chains[..header[CHAINS] as usize];
    let residues = |chain: &ChainSpan| chain.members(members).iter().map(|&r| r as usize);
    let moments = |chain: &ChainSpan| moments(residues(chain).map(|residue| b[residue]));
    let moments: Vec<(f64, f64)> = chains.par_iter().map(moments).collect();
    // Chains may interleave, so their results are put in place by one thread.
    for (chain, (mean, sd)) in chains.iter().zip(moments) {
        for residue in residues(chain) {
            let defined = sd > 0.0 && !b[residue].is_nan();
            let score = (f64::from(b[residue]) - mean) / sd;
            z[residue] = if defined { score as f32 } else { f32::NAN };
        }
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
