//! Twin of `kernels/cluster_start.cu`.

use super::super::layout::{Atom, RESIDUES};
use crate::record::TwinLaunch;

/// The parent of a residue that is in no tree.
pub(super) const NO_TREE: u32 = u32::MAX;

/// Each selected residue that has a C-alpha is a tree of its own.
pub(in super::super) fn cluster_start(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let selected: &[u8] = launch.read();
    let atoms: &[Atom] = bytemuck::cast_slice(launch.read::<i32>());
    let parents: &mut [u32] = launch.write();

    let rows = (0..header[RESIDUES]).zip(selected).zip(atoms).zip(parents);
    for (((own, selected), atom), parent) in rows {
        let is_node = *selected != 0 && atom.is_present();
        *parent = if is_node { own } else { NO_TREE };
    }
}
