//! Entries of residues or chains in buffers of data-dependent length, as in
//! `kernels/interfaces.cuh`. A structure has room for some entries for each of its units of room.

use super::layout::StructureSpan;
use std::ops::Range;

/// Partners of residues for each unit of room, and interfaces.
pub(super) const PARTNERS_PER_UNIT: usize = 4;
pub(super) const INTERFACES_PER_UNIT: usize = 1;

/// The entries of each residue, or of each chain, of a batch.
#[derive(Clone, Copy)]
pub(super) struct Entries<'a> {
    /// Where the entries of each residue or chain end, counted from its structure's first.
    pub(super) ends: &'a [i32],
    /// The first unit of room of each structure, and their number, `[structures, 2]`.
    pub(super) rooms: &'a [u32],
    pub(super) per_unit: usize,
}

impl Entries<'_> {
    /// The entries of residue or chain `own` of the structure with this index, of which `all` are
    /// the residues or chains. None if the structure's entries exceed its room.
    pub(super) fn of(&self, structure: usize, all: &Range<usize>, own: usize) -> Range<usize> {
        let [start, room] =
            [0, 1].map(|at| self.rooms[2 * structure + at] as usize * self.per_unit);
        let total = all
            .clone()
            .last()
            .map_or(0, |last| self.ends[last] as usize);
        if total > room {
            return start..start;
        }
        let before = if own > all.start {
            self.ends[own - 1] as usize
        } else {
            0
        };
        start + before..start + self.ends[own] as usize
    }

    /// The residues or chains of all structures that have entries, each with these. `of_structure`
    /// gives those of a structure.
    pub(super) fn all(
        &self,
        structures: &[StructureSpan],
        of_structure: fn(&StructureSpan) -> Range<usize>,
    ) -> Vec<(usize, Range<usize>)> {
        let mut found = Vec::new();
        for (index, structure) in structures.iter().enumerate() {
            let all = of_structure(structure);
            let entries = all.clone().map(|own| (own, self.of(index, &all, own)));
            found.extend(entries.filter(|(_, entries)| !entries.is_empty()));
        }
        found
    }
}
