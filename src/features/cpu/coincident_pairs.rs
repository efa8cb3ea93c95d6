//! Twin of `kernels/coincident_pairs.cu`.

use super::split::structures;
use crate::record::TwinLaunch;

/// Half the sum over a structure's residues.
pub(in super::super) fn coincident_pairs(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let structures = structures(header, launch.read());
    let coincident: &[u32] = launch.read();
    let pairs: &mut [i32] = launch.write();

    for (structure, pairs) in structures.iter().zip(pairs) {
        let own = coincident[structure.residues()].iter();
        let sum: u64 = own.copied().map(u64::from).sum();
        *pairs = i32::try_from(sum / 2).unwrap_or(i32::MAX);
    }
}
