//! Twin of `kernels/torsions.cu`.

use super::super::layout::{Backbone, Position, RESIDUES, ResidueSpan};
use super::angles::Angle;
use super::split::for_each_row;
use crate::record::TwinLaunch;

/// Phi, psi and omega of the backbone.
pub(in super::super) fn torsions(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let count = header[RESIDUES] as usize;
    let residues: &[ResidueSpan] = &bytemuck::cast_slice(launch.read::<u32>())[..count];
    let backbone: &[Backbone] = &bytemuck::cast_slice(launch.read::<i32>())[..count];
    let angles: &mut [f32] = launch.write();

    let dihedral = |points: [Position; 4]| {
        let all = points.iter().all(|point| point.is_present());
        all.then(|| Angle::dihedral(points).degrees())
    };
    let of = |own: usize| -> [f32; 3] {
        let here = &backbone[own];
        let linked = |at: usize| ResidueSpan::is_linked(residues, at);
        let phi = linked(own)
            .then(|| dihedral([backbone[own - 1].c, here.n, here.ca, here.c]))
            .flatten();
        let (mut psi, mut omega) = (None, None);
        if linked(own + 1) {
            let next = &backbone[own + 1];
            psi = dihedral([here.n, here.ca, here.c, next.n]);
            omega = dihedral([here.ca, here.c, next.n, next.ca]);
        }
        [phi, psi, omega].map(|angle| angle.unwrap_or(f32::NAN))
    };
    for_each_row(&mut angles[..count * 3], 3, |rows, angles| {
        for (own, angles) in rows.zip(angles.chunks_exact_mut(3)) {
            angles.copy_from_slice(&of(own));
        }
    });
}
