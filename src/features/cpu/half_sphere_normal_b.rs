//! Twin of `kernels/half_sphere_normal_b.cu`.

use super::super::layout::{Atom, Backbone, RESIDUES, ResidueSpan};
use super::split::for_each_row;
use super::vector::{Vector, cross, difference, dot};
use crate::record::TwinLaunch;

/// The sine of -120 degrees.
const SINE: f64 = -0.8660254037844386;

/// The direction from C-alpha to C-beta.
pub(in super::super) fn half_sphere_normal_b(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let residues: &[ResidueSpan] = bytemuck::cast_slice(launch.read::<u32>());
    let backbones: &[Backbone] = bytemuck::cast_slice(launch.read::<i32>());
    let betas: &[Atom] = bytemuck::cast_slice(launch.read::<i32>());
    let normals: &mut [f64] = launch.write();

    let normal = |own: usize| -> Option<Vector> {
        let backbone = &backbones[own];
        if !residues[own].is(ResidueSpan::PRESENT) || !backbone.ca.is_present() {
            return None;
        }
        let up = if residues[own].aa == b'G' {
            turned(backbone)?
        } else {
            // Of a side chain are those that the file has.
            let beta = Some(&betas[own]).filter(|beta| beta.is_present() && beta.tag.is_side())?;
            difference(beta.position, backbone.ca)
        };
        (dot(up, up) > 0.0).then_some(up)
    };
    let normals = &mut normals[..header[RESIDUES] as usize * 3];
    for_each_row(normals, 3, |rows, normals| {
        for (own, out) in rows.zip(normals.chunks_exact_mut(3)) {
            out.copy_from_slice(&normal(own).unwrap_or([f64::NAN; 3]));
        }
    });
}

/// N turned by -120 degrees about the axis from C-alpha to C, seen from C-alpha.
fn turned(backbone: &Backbone) -> Option<Vector> {
    if !backbone.n.is_present() || !backbone.c.is_present() {
        return None;
    }
    let n = difference(backbone.n, backbone.ca);
    let axis = difference(backbone.c, backbone.ca);
    let square = dot(axis, axis);
    let across = SINE / square.sqrt();
    let along = 1.5 * dot(axis, n) / square;
    let turn = cross(axis, n);
    let turned = |i: usize| -0.5 * n[i] + across * turn[i] + along * axis[i];
    (square > 0.0).then(|| std::array::from_fn(turned))
}
