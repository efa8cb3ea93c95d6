//! The residues of a chain or of a structure: `kernels/rows.cuh`.

use super::super::layout::{CHAINS, ChainSpan};
use super::split::structures;
use crate::record::TwinLaunch;
use rayon::prelude::*;

/// Threads of a kernel's block, whose partial sums are added as a tree.
pub(super) const ROW_THREADS: usize = 256;

/// The rows of a chain or of a structure.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    start: usize,
    pub(super) count: usize,
    members: Option<&'a [u32]>,
}

impl<'a> Rows<'a> {
    /// As residues of the batch.
    pub(super) fn iter(self) -> impl Iterator<Item = usize> + 'a {
        let row = move |at: usize| self.members.map_or(at, |members| members[at] as usize);
        (self.start..self.start + self.count).map(row)
    }
}

/// A kernel of a block a chain or a structure, which begins with header, structures,
/// chains, members and a value or more a residue, then has what it writes, `values`
/// a block, and the axis: calls `compute` with each block's rows.
pub(super) fn for_each_block<'a, T: bytemuck::Pod + crate::record::Element>(
    launch: &mut TwinLaunch<'a>,
    values: usize,
    compute: impl Fn(Rows<'_>, &'a [T], &mut [f32]) + Send + Sync,
) {
    let header: &[u32] = launch.read();
    let structures = structures(header, launch.read());
    let chains: &[ChainSpan] = bytemuck::cast_slice(launch.read::<u32>());
    let members: &[u32] = launch.read();
    let of_rows: &[T] = launch.read();
    let out: &mut [f32] = launch.write();
    let axis = launch.scalar::<u32>() as usize;

    let rows = |block: usize| match axis {
        CHAINS => Rows {
            start: chains[block].member_start as usize,
            count: chains[block].count as usize,
            members: Some(members),
        },
        _ => Rows {
            start: structures[block].residue_start as usize,
            count: structures[block].residue_count as usize,
            members: None,
        },
    };
    let out = &mut out[..header[axis] as usize * values];
    let blocks = out.par_chunks_exact_mut(values).enumerate();
    blocks.for_each(|(block, out)| compute(rows(block), of_rows, out));
}
