//! Twin of `kernels/half_sphere_normal_a.cu`.

use super::super::layout::{Atom, RESIDUES, ResidueSpan, Vector};
use super::split::{for_each_row, structures};
use crate::record::TwinLaunch;

/// The direction that two neighbours' C-alphas give.
pub(in super::super) fn half_sphere_normal_a(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let structures = structures(header, launch.read());
    let residues: &[ResidueSpan] = bytemuck::cast_slice(launch.read::<u32>());
    let atoms: &[Atom] = bytemuck::cast_slice(launch.read::<i32>());
    let normals: &mut [f64] = launch.write();

    let normal = |own: usize| -> Option<[f64; 3]> {
        let all = structures[residues[own].structure as usize].residues();
        let inside = own > all.start && own + 1 < all.end;
        let is_linked = |residue: usize| residues[residue].is(ResidueSpan::LINKED);
        if !inside || !is_linked(own) || !is_linked(own + 1) {
            return None;
        }
        let around = &atoms[own - 1..=own + 1];
        if !around.iter().all(Atom::is_present) {
            return None;
        }
        let [before, after] =
            [0, 2].map(|other| Vector::between(around[other].position, around[1].position));
        let before_norm = before.dot(before).sqrt();
        let after_norm = after.dot(after).sqrt();
        let sum = |before: f64, after: f64| before * after_norm + after * before_norm;
        (before_norm > 0.0 && after_norm > 0.0).then(|| {
            [
                sum(before.x, after.x),
                sum(before.y, after.y),
                sum(before.z, after.z),
            ]
        })
    };
    let normals = &mut normals[..header[RESIDUES] as usize * 3];
    for_each_row(normals, 3, |rows, normals| {
        for (own, out) in rows.zip(normals.chunks_exact_mut(3)) {
            out.copy_from_slice(&normal(own).unwrap_or([f64::NAN; 3]));
        }
    });
}
