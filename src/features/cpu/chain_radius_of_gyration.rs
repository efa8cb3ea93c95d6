//! Twin of `kernels/chain_radius_of_gyration.cu`.

use super::super::layout::{Atom, CHAINS, ChainSpan, ResidueSpan};
use super::radius::radius_of;
use crate::record::TwinLaunch;
use bytemuck::cast_slice;
use rayon::prelude::*;

/// Root mean square distance of a chain's atoms from their mean.
pub(in super::super) fn chain_radius_of_gyration(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let residues: &[ResidueSpan] = cast_slice(launch.read::<u32>());
    let chains: &[ChainSpan] = &cast_slice(launch.read::<u32>())[..header[CHAINS] as usize];
    let members: &[u32] = launch.read();
    let loose: &[[u32; 2]] = cast_slice(launch.read::<u32>());
    let atoms: &[Atom] = cast_slice(launch.read::<i32>());
    let radii: &mut [f32] = launch.write();

    let blocks = chains.par_iter().zip(loose).zip(radii).enumerate();
    blocks.for_each(|(own, ((chain, &[first, count]), radius))| {
        let rows = chain.members(members).iter();
        let of_rows = rows.flat_map(|&row| &atoms[residues[row as usize].atoms()]);
        let loose = atoms[first as usize..][..count as usize].iter();
        let is_own = |atom: &&Atom| atom.is_present() && atom.tag.chain() as usize == own;
        *radius = radius_of(of_rows.chain(loose.filter(is_own)));
    });
}
