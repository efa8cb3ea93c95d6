//! Twin of `kernels/narrow_f16.cu`.

use super::narrow::narrow;
use crate::record::TwinLaunch;
use half::f16;

/// Reals of residues as f16: the nearest, halves to even, infinity beyond the largest; one NaN.
pub(in super::super) fn narrow_f16(launch: &mut TwinLaunch<'_>) {
    narrow(launch, |wide| match wide.is_nan() {
        true => f16::NAN,
        false => f16::from_f32(wide),
    });
}
