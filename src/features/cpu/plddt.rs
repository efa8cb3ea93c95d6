//! Twin of `kernels/plddt.cu`.

use super::super::layout::{RESIDUES, ResidueSpan};
use super::split::{for_each_row, structures};
use crate::record::TwinLaunch;
use bytemuck::cast_slice;

/// The pLDDT of each residue.
pub(in super::super) fn plddt(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let structures = structures(header, launch.read());
    let residues: &[ResidueSpan] = cast_slice(launch.read::<u32>());
    let b: &[f32] = launch.read();
    let values: &mut [f32] = launch.write();

    let values = &mut values[..header[RESIDUES] as usize];
    for_each_row(values, 1, |rows, values| {
        for (own, value) in rows.zip(values) {
            let structure = &structures[residues[own].structure as usize];
            *value = if structure.predicted != 0 {
                b[own]
            } else {
                f32::NAN
            };
        }
    });
}
