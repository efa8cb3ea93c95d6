//! Twin of `kernels/narrow_bf16.cu`.

use super::narrow::narrow;
use crate::record::TwinLaunch;
use half::bf16;

/// Reals of residues as bf16: the nearest, halves to even; one NaN.
pub(in super::super) fn narrow_bf16(launch: &mut TwinLaunch<'_>) {
    narrow(launch, |wide| match wide.is_nan() {
        true => bf16::NAN,
        false => bf16::from_f32(wide),
    });
}
