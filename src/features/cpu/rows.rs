//! The residues of a chain or of a structure: `kernels/rows.cuh`.

use super::super::layout::{CHAINS, ChainSpan, StructureSpan};
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

/// What a kernel of a block a chain or a structure begins with: header, structures,
/// chains, members and a value or more a residue, then what it writes, and the axis.
pub(super) struct Blocks<'a, T> {
    structures: &'a [StructureSpan],
    chains: &'a [ChainSpan],
    members: &'a [u32],
    of_rows: &'a [T],
    out: &'a mut [f32],
    axis: usize,
    count: usize,
}

impl<'a, T: crate::record::Element> Blocks<'a, T> {
    /// Takes them from the launch.
    pub(super) fn of(launch: &mut TwinLaunch<'a>) -> Self {
        let header: &[u32] = launch.read();
        let structures = structures(header, launch.read());
        let chains = bytemuck::cast_slice(launch.read::<u32>());
        let members = launch.read();
        let of_rows = launch.read();
        let out = launch.write();
        let axis = launch.scalar::<u32>() as usize;
        Blocks {
            structures,
            chains,
            members,
            of_rows,
            out,
            axis,
            count: header[axis] as usize,
        }
    }

    /// Calls `compute` with the rows of each block, the values of all residues, and
    /// the `values` that the block writes.
    pub(super) fn for_each(
        self,
        values: usize,
        compute: impl Fn(Rows<'_>, &[T], &mut [f32]) + Send + Sync,
    ) {
        let rows = |block: usize| match self.axis {
            CHAINS => Rows {
                start: self.chains[block].member_start as usize,
                count: self.chains[block].count as usize,
                members: Some(self.members),
            },
            _ => Rows {
                start: self.structures[block].residue_start as usize,
                count: self.structures[block].residue_count as usize,
                members: None,
            },
        };
        let out = &mut self.out[..self.count * values];
        let blocks = out.par_chunks_exact_mut(values).enumerate();
        blocks.for_each(|(block, out)| compute(rows(block), self.of_rows, out));
    }
}
