//! Twin of `kernels/half_sphere_normal_a.cu`.

use super::super::layout::{Atom, RESIDUES, ResidueSpan};
use super::split::{for_each_row, structures};
use super::vector::{Vector, difference, dot};
use crate::record::TwinLaunch;

/// The direction that two neighbours' C-alphas give.
pub(in super::super) fn half_sphere_normal_a(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let structures = structures(header, launch.read());
    let residues: &[ResidueSpan] = bytemuck::cast_slice(launch.read::<u32>());
    let atoms: &[Atom] = bytemuck::cast_slice(launch.read::<i32>());
    let normals: &mut [f64] = launch.write();

    let normal = |own: usize| -> Option<Vector> {
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
            [0, 2].map(|other| difference(around[1].position, around[other].position));
        let before_norm = dot(before, before).sqrt();
        let after_norm = dot(after, after).sqrt();
        let sum = |axis: usize| before[axis] * after_norm + after[axis] * before_norm;
        (before_norm > 0.0 && after_norm > 0.0).then(|| std::array::from_fn(sum))
    };
    let normals = &mut normals[..header[RESIDUES] as usize * 3];
    for_each_row(normals, 3, |rows, normals| {
        for (own, out) in rows.zip(normals.chunks_exact_mut(3)) {
            out.copy_from_slice(&normal(own).unwrap_or([f64::NAN; 3]));
        }
    });
}
