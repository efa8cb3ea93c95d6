//! Code that the CPU twins share: SIMD vectors, geometry, trees of connected nodes, and the division
//! of work among threads.

pub(super) mod angles;
pub(super) mod forest;
pub(super) mod rows;
pub(super) mod simd;
pub(super) mod split;
pub(super) mod vector;

/// The sum of partial sums, in the order of the kernels' `block_sum`.
pub(super) fn tree_sum<const N: usize>(partial: &mut [f64; N]) -> f64 {
    let mut stride = N / 2;
    while stride > 0 {
        for lane in 0..stride {
            partial[lane] += partial[lane + stride];
        }
        stride /= 2;
    }
    partial[0]
}
