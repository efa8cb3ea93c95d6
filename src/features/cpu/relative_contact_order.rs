//! Twin of `kernels/relative_contact_order.cu`.

use super::super::layout::{CHAINS, ChainSpan};
use super::split::structures;
use crate::record::TwinLaunch;

/// Mean difference over all contacts, over the number of residues.
pub(in super::super) fn relative_contact_order(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let structures = structures(header, launch.read());
    let chains: &[ChainSpan] = bytemuck::cast_slice(launch.read::<u32>());
    let members: &[u32] = launch.read();
    let sums: &[[u64; 2]] = bytemuck::cast_slice(launch.read::<u64>());
    let orders: &mut [f32] = launch.write();
    let axis: u32 = launch.scalar();

    if axis as usize == CHAINS {
        let chains = &chains[..header[CHAINS] as usize];
        for (order, chain) in orders.iter_mut().zip(chains) {
            let own = chain.members(members).iter();
            *order = relative(own.map(|&residue| sums[residue as usize]));
        }
    } else {
        for (order, structure) in orders.iter_mut().zip(structures) {
            *order = relative(sums[structure.residues()].iter().copied());
        }
    }
}

fn relative(sums: impl ExactSizeIterator<Item = [u64; 2]>) -> f32 {
    let length = sums.len() as f64;
    let [sum, count] = sums.fold([0, 0], |all, own| [all[0] + own[0], all[1] + own[1]]);
    match count {
        0 => f32::NAN,
        _ => (sum as f64 / count as f64 / length) as f32,
    }
}
