//! Twin of `kernels/b_factor_z.cu`.

use super::super::layout::{CHAINS, ChainSpan};
use super::tree_sum;
use crate::record::TwinLaunch;

/// Threads of the kernel's block, whose partial sums are added as a tree.
const THREADS: usize = 128;

/// (b - mean) / sd over the residues of a chain that have a b.
pub(in super::super) fn b_factor_z(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let chains: &[ChainSpan] = bytemuck::cast_slice(launch.read::<u32>());
    let members: &[u32] = launch.read();
    let b: &[f32] = launch.read();
    let z: &mut [f32] = launch.write();

    for chain in &chains[..header[CHAINS] as usize] {
        let start = chain.residue_start as usize;
        let own = &members[chain.member_start as usize..][..chain.count as usize];
        let value = |m: u32| b[start + m as usize];
        let mut sums = [0f64; THREADS];
        let mut counts = [0f64; THREADS];
        for (lane, &m) in (0..THREADS).cycle().zip(own) {
            if !value(m).is_nan() {
                sums[lane] += f64::from(value(m));
                counts[lane] += 1.0;
            }
        }
        let count = tree_sum(&mut counts);
        let mean = tree_sum(&mut sums) / count;
        let mut squares = [0f64; THREADS];
        for (lane, &m) in (0..THREADS).cycle().zip(own) {
            let deviation = f64::from(value(m)) - mean;
            if !value(m).is_nan() {
                squares[lane] += deviation * deviation;
            }
        }
        let sd = (tree_sum(&mut squares) / count).sqrt();
        for &m in own {
            let deviation = f64::from(value(m)) - mean;
            let defined = sd > 0.0 && !value(m).is_nan();
            z[start + m as usize] = if defined {
                (deviation / sd) as f32
            } else {
                f32::NAN
            };
        }
    }
}
