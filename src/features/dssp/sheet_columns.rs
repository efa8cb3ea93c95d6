//! Twin of `kernels/sheet_columns.cu`.

use super::super::columns::NULL_COUNT;
use super::super::cpu::forest::root_of;
use super::super::cpu::split::parts;
use super::super::kernels::{Twin, sheet_columns};
use super::super::layout::{BRIDGES_MAX, Bridges, StructureSpan};
use super::bonds::INCOMPLETE;
use super::ladder_bridges::{first_residue, scaled};
use super::ladder_search::GAP_MAX;
use bytemuck::cast_slice_mut;
use rayon::prelude::*;
use std::ops::Range;

/// A bridge of a residue: the partner's index in the structure, 0 for parallel and 1 for
/// antiparallel, and the number of the ladder.
type Pair = [i32; 3];

/// Where the bridges of one structure's ladders are written to.
struct BridgePairs<'a> {
    bridges: &'a [Bridges],
    keys: &'a [u32],
    /// The two bridges of each residue of the structure.
    pairs: &'a mut [[Pair; 2]],
    residues: Range<usize>,
}

/// A bridge of a ladder.
#[derive(Clone, Copy)]
struct Bridge {
    i: usize,
    j: usize,
    is_antiparallel: bool,
}

impl BridgePairs<'_> {
    /// The bridges of a ladder, in their order along the strand of i.
    fn bridges_of(&self, key: u32) -> Vec<Bridge> {
        let mut last = first_residue(key);
        let mut found = Vec::new();
        let mut i = last;
        while i < self.residues.end.min(last + GAP_MAX) {
            let keys = &self.keys[BRIDGES_MAX * i..][..BRIDGES_MAX];
            for (&code, _) in { self.bridges[i].0.iter() }
                .zip(keys)
                .filter(|(_, other)| **other == key)
            {
                let (j, is_antiparallel) = ((code / 2) as usize, code % 2 == 1);
                if j > i {
                    last = i;
                    found.push(Bridge {
                        i,
                        j,
                        is_antiparallel,
                    });
                }
            }
            i += 1;
        }
        found
    }

    fn has_first(&self, residue: usize) -> bool {
        self.pairs[residue - self.residues.start][0][0] != NULL_COUNT
    }

    /// Writes the bridges of a ladder. On each strand they are second bridges if a residue of the
    /// strand has a first one, and replace earlier second ones. The strand of j is written after
    /// that of i. If a bulge gives a residue j two partners, it keeps the one that DSSP writes last.
    fn write_ladder(&mut self, key: u32, number: i32) {
        let start = self.residues.start;
        let bridges = self.bridges_of(key);
        let second_of_i = usize::from(bridges.iter().any(|bridge| self.has_first(bridge.i)));
        let second_of_j = usize::from(bridges.iter().any(|bridge| self.has_first(bridge.j)));
        let mut write = |residue: usize, which: usize, partner: usize, is_antiparallel| {
            self.pairs[residue - start][which] =
                [(partner - start) as i32, i32::from(is_antiparallel), number];
        };
        for bridge in &bridges {
            write(bridge.i, second_of_i, bridge.j, bridge.is_antiparallel);
        }
        let mut before = None;
        for bridge in &bridges {
            if !bridge.is_antiparallel || before != Some(bridge.j) {
                write(bridge.j, second_of_j, bridge.i, bridge.is_antiparallel);
            }
            before = Some(bridge.j);
        }
    }
}

/// Writes the bridges of each residue, its sheet, and how many of its partners are hydrogen bonds.
impl Twin for sheet_columns::Views<'_> {
    fn run(self) {
        let Self {
            header,
            structures,
            hydrogens,
            energies,
            bridges,
            keys,
            spans,
            parents,
            sheets,
            ranges,
            listed,
            pairs,
            labels,
            ..
        } = self;
        let structures = StructureSpan::live(header, structures);
        let pairs: &mut [[Pair; 2]] = cast_slice_mut(pairs);
        let labels: &mut [[i32; 3]] = cast_slice_mut(labels);

        let residues = || structures.iter().map(StructureSpan::residues);
        let columns = parts(pairs, residues()).zip(parts(labels, residues()));
        let tasks = residues().collect::<Vec<_>>().into_par_iter().zip(columns);
        tasks.for_each(|(residues, (pairs, labels))| {
            for (residue, labels) in residues.clone().zip(labels) {
                let sheet_of = |key| sheets[root_of(parents, first_residue(key))] as i32;
                let is_complete = hydrogens[residue][3] != INCOMPLETE;
                let bonds = |side: usize| {
                    let both = &energies[4 * residue + 2 * side..][..2];
                    let count = both.iter().filter(|energy| **energy < -0.5).count();
                    if is_complete {
                        count as i32
                    } else {
                        NULL_COUNT
                    }
                };
                let key = spans[residue];
                let sheet = if key == 0 { NULL_COUNT } else { sheet_of(key) };
                *labels = [sheet, bonds(0), bonds(1)];
            }
            let mut all = BridgePairs {
                bridges,
                keys,
                pairs,
                residues: residues.clone(),
            };
            let listed = &listed[scaled(residues.clone(), BRIDGES_MAX / 2)];
            for root in residues.filter(|&residue| parents[residue] as usize == residue) {
                for place in ranges[2 * root]..ranges[2 * root + 1] {
                    all.write_ladder(listed[place as usize], place as i32 + 1);
                }
            }
        });
    }
}
