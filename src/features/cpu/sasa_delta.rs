//! Twin of `kernels/sasa_delta.cu`.

use super::super::layout::RESIDUES;
use super::neighbours::Neighbours;
use super::shrake_rupley::{Areas, Inputs, Sphere, areas};
use super::simd;
use super::split::for_each_row;
use crate::record::TwinLaunch;
use fearless_simd::dispatch;

/// Areas of residues in the model, and what other chains bury of them.
pub(in super::super) fn sasa_delta(launch: &mut TwinLaunch<'_>) {
    let inputs = Inputs::take(launch);
    let out: &mut [[f32; 3]] = bytemuck::cast_slice_mut(launch.write::<f32>());
    let deltas: &mut [f32] = launch.write();
    let sphere = Sphere::take(launch, &inputs);

    let count = inputs.total(RESIDUES);
    let mut rows: Vec<_> = out[..count].iter_mut().zip(&mut deltas[..count]).collect();
    for_each_row(&mut rows, 1, |own, rows| {
        let mut scratch = Neighbours::new();
        dispatch!(simd::level(), simd => {
            for (own, (out, out_delta)) in own.zip(rows) {
                let Areas { model, delta } =
                    areas::<_, true>(simd, &inputs, &sphere, own, &mut scratch);
                (**out, **out_delta) = (model, delta);
            }
        });
    });
}
