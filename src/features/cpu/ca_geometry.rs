//! Twin of `kernels/ca_geometry.cu`.

use super::super::layout::{Atom, RESIDUES, ResidueSpan};
use super::angles::{Angle, difference};
use super::split::for_each_row;
use crate::record::TwinLaunch;

/// Dihedral and angle of the C-alpha trace.
pub(in super::super) fn ca_geometry(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let count = header[RESIDUES] as usize;
    let residues: &[ResidueSpan] = &bytemuck::cast_slice(launch.read::<u32>())[..count];
    let ca: &[Atom] = &bytemuck::cast_slice(launch.read::<i32>())[..count];
    let angles: &mut [f32] = launch.write();

    let linked = |at: usize| ResidueSpan::is_linked(residues, at);
    let position = |at: usize| ca[at].is_present().then_some(ca[at].position);
    let of = |own: usize| -> Option<(Option<f32>, f32)> {
        if !linked(own) || !linked(own + 1) {
            return None;
        }
        let (before, here, after) = (position(own - 1)?, position(own)?, position(own + 1)?);
        let angle = Angle::between(difference(before, here), difference(after, here));
        let last = linked(own + 2).then(|| position(own + 2)).flatten();
        let dihedral = last.map(|last| Angle::dihedral([before, here, after, last]).degrees());
        Some((dihedral, angle.degrees()))
    };
    for_each_row(&mut angles[..count * 2], 2, |rows, angles| {
        for (own, angles) in rows.zip(angles.chunks_exact_mut(2)) {
            let (dihedral, angle) = of(own).unwrap_or((None, f32::NAN));
            angles.copy_from_slice(&[dihedral.unwrap_or(f32::NAN), angle]);
        }
    });
}
