//! Twin of `kernels/cluster_number.cu`.

use super::super::columns::NULL_COUNT;
use super::super::layout::ChainSpan;
use super::cluster_join::root_of;
use super::cluster_start::NO_TREE;
use super::split::structures;
use crate::record::TwinLaunch;

/// Numbers the trees of a structure, and counts them, and those in each chain.
pub(in super::super) fn cluster_number(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let structures = structures(header, launch.read());
    let chains: &[ChainSpan] = bytemuck::cast_slice(launch.read::<u32>());
    let members: &[u32] = launch.read();
    let parents: &[u32] = launch.read();
    let numbers: &mut [u32] = launch.write();
    let stamps: &mut [u32] = launch.write();
    let clusters: &mut [i32] = launch.write();
    let in_chains: &mut [i32] = launch.write();
    let in_structures: &mut [i32] = launch.write();

    for (structure, in_structure) in structures.iter().zip(in_structures) {
        *in_structure = 0;
        for own in structure.residues() {
            clusters[own] = match parents[own] {
                NO_TREE => NULL_COUNT,
                parent if parent as usize == own => {
                    numbers[own] = *in_structure as u32;
                    *in_structure += 1;
                    numbers[own] as i32
                }
                // A root comes before the rest of its tree.
                parent => numbers[root_of(parents, 0, parent as usize)] as i32,
            };
        }
        let first = structure.chain_start;
        for chain in first..first + structure.chain_count {
            let own = chains[chain as usize].members(members).iter();
            let trees = own.filter(|&&residue| parents[residue as usize] != NO_TREE);
            let roots = trees.map(|&residue| root_of(parents, 0, residue as usize));
            // A tree is stamped by each chain that has a residue of it.
            let is_new = |root: usize| std::mem::replace(&mut stamps[root], chain + 1) != chain + 1;
            in_chains[chain as usize] = roots.map(is_new).filter(|is_new| *is_new).count() as i32;
        }
    }
}
