//! Entries of residues or chains in buffers of data-dependent length, as in
//! `kernels/interfaces.cuh`. A structure has room for some entries for each of its units of room.

use super::constants;
use super::layout::StructureSpan;
use std::ops::Range;

/// Partners of residues that a unit of room holds.
pub(super) const PARTNERS_PER_UNIT: usize = constants::PARTNERS_PER_UNIT as usize;
/// Interfaces that a unit of room holds.
pub(super) const INTERFACES_PER_UNIT: usize = constants::INTERFACES_PER_UNIT as usize;

/// The entries of each residue, or of each chain, of a batch.
#[derive(Clone, Copy)]
pub(super) struct Entries<'a> {
    /// Where the entries of each residue or chain end, counted from its structure's first.
    pub(super) ends: &'a [i32],
    /// The first unit of room of each structure, and their number, `[structures, 2]`.
    pub(super) rooms: &'a [u32],
    /// Entries that a unit of room holds.
    pub(super) per_unit: usize,
}

impl Entries<'_> {
    /// The range of the entries of residue or chain `row`. `structure` is the index of its
    /// structure, and `all` the range of that structure's residues or chains. Empty if the
    /// structure's entries exceed its room.
    pub(super) fn range_of(
        &self,
        structure: usize,
        all: &Range<usize>,
        row: usize,
    ) -> Range<usize> {
        let [start, room] = [0, 1].map(|i| self.rooms[2 * structure + i] as usize * self.per_unit);
        let total = all
            .clone()
            .last()
            .map_or(0, |last| self.ends[last] as usize);
        if total > room {
            return start..start;
        }
        let before = if row > all.start {
            self.ends[row - 1] as usize
        } else {
            0
        };
        start + before..start + self.ends[row] as usize
    }

    /// Each residue or chain that has entries, with their range. `of_structure` returns the range
    /// of a structure's residues or chains.
    pub(super) fn all(
        &self,
        structures: &[StructureSpan],
        of_structure: fn(&StructureSpan) -> Range<usize>,
    ) -> Vec<(usize, Range<usize>)> {
        let mut found = Vec::new();
        for (index, structure) in structures.iter().enumerate() {
            let all = of_structure(structure);
            let entries = all
                .clone()
                .map(|row| (row, self.range_of(index, &all, row)));
            found.extend(entries.filter(|(_, entries)| !entries.is_empty()));
        }
        found
    }
}
