//! Code that the CPU twins share: SIMD vectors, geometry, trees of connected nodes, and the division
//! of work among threads.

pub(super) mod angles;
pub(super) mod forest;
pub(super) mod rows;
pub(super) mod simd;
pub(super) mod split;
pub(super) mod vector;

/// The sum of partial sums, which it overwrites. They are added in pairs, in the order of `block_sum` in
/// `kernels/work.cuh`, so that the CPU and the GPU round alike.
pub(super) fn tree_sum<const N: usize>(partials: &mut [f64; N]) -> f64 {
    const { assert!(N.is_power_of_two()) };
    let mut stride = N / 2;
    while stride > 0 {
        for lane in 0..stride {
            partials[lane] += partials[lane + stride];
        }
        stride /= 2;
    }
    partials[0]
}
