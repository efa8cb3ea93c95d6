//! Twins of the kernels that count interactions by kind.

use super::super::constants::INTERACTION_KINDS;
use super::super::cpu::split::parts;
use super::super::entries::{Entries, INTERFACES_PER_UNIT};
use super::super::kernels::{Twin, interaction_counts, interface_interactions};
use super::super::layout::{ATOMS, StructureSpan};
use rayon::prelude::*;
use std::ops::Range;

/// Counts of a residue or of an interface.
const KINDS: usize = INTERACTION_KINDS as usize;

/// The rows of interactions.
struct ListedInteractions<'a> {
    entries: Entries<'a>,
    partners: &'a [i32],
    kinds: &'a [i32],
}

impl<'a> ListedInteractions<'a> {
    /// The rows of a batch. `ends` and `rooms` are those of [`Entries`].
    fn new(ends: &'a [i32], rooms: &'a [u32], partners: &'a [i32], kinds: &'a [i32]) -> Self {
        // Rooms of pairs count rows.
        let entries = Entries {
            ends,
            rooms,
            per_unit: 1,
        };
        ListedInteractions {
            entries,
            partners,
            kinds,
        }
    }

    /// Calls `visit` with both atoms and the kind of each row of a structure, by its index.
    fn each(
        &self,
        index: usize,
        structure: &StructureSpan,
        mut visit: impl FnMut([usize; 2], usize),
    ) {
        let atoms = structure.along(ATOMS as u32);
        for atom in atoms.clone() {
            for row in self.entries.range_of(index, &atoms, atom) {
                let partner = atoms.start + self.partners[row] as usize;
                visit([atom, partner], self.kinds[row] as usize);
            }
        }
    }
}

/// Counts for each residue its interactions of each kind. Owners behind the residues are
/// nucleotides, caps and ligands, which have no row.
impl Twin for interaction_counts::Views<'_> {
    fn run(self) {
        let structures = StructureSpan::live(self.header, self.structures);
        let rows = ListedInteractions::new(self.ends, self.rooms, self.partners, self.kinds);
        let ranges = structures.iter().map(|structure| {
            let residues = structure.residues();
            residues.start * KINDS..residues.end * KINDS
        });
        let of_structures = parts(self.counts, ranges).zip(structures).enumerate();
        of_structures.for_each(|(index, (counts, structure))| {
            rows.each(index, structure, |pair, kind| {
                for atom in pair {
                    let residue = self.roles[atom].owner as usize;
                    if residue < structure.residue_count as usize {
                        counts[KINDS * residue + kind] += 1;
                    }
                }
            });
        });
    }
}

/// Counts the interactions of each kind between the two chains of each interface.
impl Twin for interface_interactions::Views<'_> {
    fn run(self) {
        let structures = StructureSpan::live(self.header, self.structures);
        let rows = ListedInteractions::new(self.ends, self.rooms, self.partners, self.kinds);
        let interfaces = Entries {
            ends: self.row_ends,
            rooms: self.interface_rooms,
            per_unit: INTERFACES_PER_UNIT,
        };
        // The interfaces of each structure that has some.
        let of_structure = |(index, structure): (usize, &StructureSpan)| {
            let all = structure.chains();
            let of_chain = |chain| interfaces.range_of(index, &all, chain);
            let found = of_chain(all.clone().next()?).start..of_chain(all.clone().last()?).end;
            (!found.is_empty()).then_some((index, found))
        };
        let found: Vec<(usize, Range<usize>)> = structures
            .iter()
            .enumerate()
            .filter_map(of_structure)
            .collect();
        let ranges = found
            .iter()
            .map(|(_, range)| range.start * KINDS..range.end * KINDS);
        let of_structures = found.par_iter().zip(parts(self.counts, ranges));
        of_structures.for_each(|(&(index, ref all), counts)| {
            let structure = &structures[index];
            let (chains, polymer) = (structure.chains(), structure.atoms());
            rows.each(index, structure, |pair, kind| {
                let [a, b] = pair.map(|atom| self.atoms[atom].tag.chain());
                // Ligands are of no chain.
                if a == b || !pair.iter().all(|atom| polymer.contains(atom)) {
                    return;
                }
                let later = (a.max(b) - structure.chain_start) as i32;
                for interface in interfaces.range_of(index, &chains, a.min(b) as usize) {
                    if self.pairs[2 * interface + 1] == later {
                        counts[KINDS * (interface - all.start) + kind] += 1;
                    }
                }
            });
        });
    }
}
