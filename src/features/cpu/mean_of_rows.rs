//! Twin of `kernels/mean_of_rows.cu`.

use super::rows::{ROW_THREADS, for_each_block};
use super::tree_sum;
use crate::record::TwinLaunch;

/// The mean of the rows that have a value.
pub(in super::super) fn mean_of_rows(launch: &mut TwinLaunch<'_>) {
    for_each_block(launch, 1, |rows, values: &[f32], mean| {
        let mut sums = [0f64; ROW_THREADS];
        let mut count = 0.0;
        for (lane, row) in (0..ROW_THREADS).cycle().zip(rows.iter()) {
            if !values[row].is_nan() {
                sums[lane] += f64::from(values[row]);
                count += 1.0;
            }
        }
        let sum = tree_sum(&mut sums);
        mean[0] = if count > 0.0 {
            (sum / count) as f32
        } else {
            f32::NAN
        };
    });
}
