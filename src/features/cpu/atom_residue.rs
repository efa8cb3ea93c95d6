//! Twin of `kernels/atom_residue.cu`.

use super::super::layout::{RESIDUES, ResidueSpan};
use super::split::parts;
use crate::record::TwinLaunch;
use rayon::prelude::*;

/// The residue that each atom is of, plus one.
pub(in super::super) fn atom_residue(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let residues: &[ResidueSpan] = bytemuck::cast_slice(launch.read::<u32>());
    let residue_of: &mut [u32] = launch.write();

    let residues = &residues[..header[RESIDUES] as usize];
    let atoms = parts(residue_of, residues.iter().map(ResidueSpan::atoms));
    let numbered = atoms.enumerate();
    numbered.for_each(|(residue, atoms)| atoms.fill(residue as u32 + 1));
}
