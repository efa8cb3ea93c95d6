//! Twin of `kernels/sasa.cu`.

use super::super::layout::RESIDUES;
use super::neighbours::Neighbours;
use super::shrake_rupley::{Inputs, Sphere, areas};
use super::simd;
use super::split::for_each_row;
use crate::record::TwinLaunch;
use fearless_simd::dispatch;

/// Areas of residues in the model.
pub(in super::super) fn sasa(launch: &mut TwinLaunch<'_>) {
    let inputs = Inputs::take(launch);
    let out: &mut [[f32; 3]] = bytemuck::cast_slice_mut(launch.write::<f32>());
    let sphere = Sphere::take(launch, &inputs);

    let out = &mut out[..inputs.total(RESIDUES)];
    for_each_row(out, 1, |rows, out| {
        let mut scratch = Neighbours::new();
        dispatch!(simd::level(), simd => {
            for (own, out) in rows.zip(out) {
                *out = areas::<_, false>(simd, &inputs, &sphere, own, &mut scratch).model;
            }
        });
    });
}
