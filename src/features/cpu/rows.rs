//! The residues of a chain or of a structure, as in `kernels/rows.cuh`.

use super::super::layout::{CHAINS, ChainSpan, StructureSpan};
use rayon::prelude::*;

/// Threads of the kernel's block; their partial sums are added as a tree.
pub(in super::super) const ROW_THREADS: usize = 256;

/// The residues of one chain or structure.
#[derive(Clone, Copy)]
pub(in super::super) struct RowSet<'a> {
    start: usize,
    count: usize,
    members: Option<&'a [u32]>,
}

impl<'a> RowSet<'a> {
    /// The residues as indices in the batch.
    pub(in super::super) fn iter(self) -> impl Iterator<Item = usize> + 'a {
        let row = move |index: usize| {
            self.members
                .map_or(index, |members| members[index] as usize)
        };
        (self.start..self.start + self.count).map(row)
    }
}

/// The chains or the structures of a batch, each with its residues.
pub(in super::super) struct RowGroups<'a> {
    pub(in super::super) header: &'a [u32],
    pub(in super::super) structures: &'a [StructureSpan],
    pub(in super::super) chains: &'a [ChainSpan],
    pub(in super::super) members: &'a [u32],
    /// [`CHAINS`] for chains; any other axis stands for structures.
    pub(in super::super) axis: u32,
}

impl RowGroups<'_> {
    /// Calls `compute` with the residues of each group and its part of `out`, which is `[groups,
    /// values]`.
    pub(in super::super) fn for_each(
        self,
        out: &mut [f32],
        values: usize,
        compute: impl Fn(RowSet<'_>, &mut [f32]) + Send + Sync,
    ) {
        let axis = self.axis as usize;
        let rows = |group: usize| match axis {
            CHAINS => RowSet {
                start: self.chains[group].member_start as usize,
                count: self.chains[group].count as usize,
                members: Some(self.members),
            },
            _ => RowSet {
                start: self.structures[group].residue_start as usize,
                count: self.structures[group].residue_count as usize,
                members: None,
            },
        };
        let out = &mut out[..self.header[axis] as usize * values];
        let groups = out.par_chunks_exact_mut(values).enumerate();
        groups.for_each(|(group, out)| compute(rows(group), out));
    }
}
