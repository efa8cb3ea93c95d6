//! Twin of `kernels/radius_of_gyration.cu`.

use super::super::layout::Atom;
use super::atoms_of;
use super::radius::radius_of;
use super::split::structures;
use crate::record::TwinLaunch;
use rayon::prelude::*;

/// Root mean square distance of a structure's atoms from their mean.
pub(in super::super) fn radius_of_gyration(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let structures = structures(header, launch.read());
    let atoms: &[Atom] = bytemuck::cast_slice(launch.read::<i32>());
    let radii: &mut [f32] = launch.write();
    let axis: u32 = launch.scalar();

    structures
        .par_iter()
        .zip(radii)
        .for_each(|(structure, radius)| {
            let own = atoms[atoms_of(structure, axis)].iter();
            *radius = radius_of(own.filter(|atom| atom.is_present()));
        });
}
