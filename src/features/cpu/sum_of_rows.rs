//! Twin of `kernels/sum_of_rows.cu`.

use super::rows::{Blocks, ROW_THREADS};
use super::tree_sum;
use crate::record::TwinLaunch;

/// The sum of the rows that have a value, or their mean.
pub(in super::super) fn sum_of_rows(launch: &mut TwinLaunch<'_>) {
    let blocks = Blocks::<f32>::of(launch);
    let stride = launch.scalar::<u32>() as usize;
    let mean = launch.scalar::<u32>() != 0;
    blocks.for_each(1, |rows, values, out| {
        let mut sums = [0f64; ROW_THREADS];
        let mut count = 0.0;
        for (lane, row) in (0..ROW_THREADS).cycle().zip(rows.iter()) {
            let value = values[stride * row];
            if !value.is_nan() {
                sums[lane] += f64::from(value);
                count += 1.0;
            }
        }
        let sum = tree_sum(&mut sums);
        out[0] = match (count > 0.0, mean) {
            (false, _) => f32::NAN,
            (true, true) => (sum / count) as f32,
            (true, false) => sum as f32,
        };
    });
}
