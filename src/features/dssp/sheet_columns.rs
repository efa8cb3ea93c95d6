//! Twin of `kernels/sheet_columns.cu`.

use super::super::columns::NULL_COUNT;
use super::super::cpu::forest::root_of;
use super::super::cpu::split::parts;
use super::super::kernels::{Twin, sheet_columns};
use super::super::layout::{BRIDGES_MAX, Bridges, StructureSpan};
use super::bonds::INCOMPLETE;
use super::ladder_bridges::{first_residue, scaled};
use super::ladder_search::GAP_MAX;
use super::sheet_number::Sheet;
use bytemuck::{Pod, Zeroable, cast_slice, cast_slice_mut};
use rayon::prelude::*;
use std::ops::Range;

/// A bridge of a residue: the partner's index in the structure, 0 for parallel and 1 for
/// antiparallel, and the number of the ladder.
type Pair = [i32; 3];

/// The columns of a residue: two bridges, its sheet, and the numbers of its N-H's and its O's bonds.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Columns {
    bridges: [Pair; 2],
    sheet: i32,
    bonds: [i32; 2],
}

/// Where the bridges of one structure's ladders are written to.
struct BridgePairs<'a> {
    bridges: &'a [Bridges],
    keys: &'a [u32],
    /// Those of the structure's residues.
    columns: &'a mut [Columns],
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
    /// The bridges of a ladder, in their order along the strand of i. Searches no further than
    /// [`GAP_MAX`] behind the last one found, within which a ladder has its next.
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

    /// Whether a first bridge was written for a residue.
    fn has_first(&self, residue: usize) -> bool {
        self.columns[residue - self.residues.start].bridges[0][0] != NULL_COUNT
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
            self.columns[residue - start].bridges[which] =
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
/// What it leaves out stays null.
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
            listed,
            columns,
            ..
        } = self;
        let structures = StructureSpan::live(header, structures);
        let sheets: &[Sheet] = cast_slice(sheets);
        let columns: &mut [Columns] = cast_slice_mut(columns);

        let residues = || structures.iter().map(StructureSpan::residues);
        let columns = parts(columns, residues());
        let tasks = residues().collect::<Vec<_>>().into_par_iter().zip(columns);
        tasks.for_each(|(residues, columns)| {
            for (residue, columns) in residues.clone().zip(columns.iter_mut()) {
                if spans[residue] != 0 {
                    let root = root_of(parents, first_residue(spans[residue]));
                    columns.sheet = sheets[root][0] as i32;
                }
                if hydrogens[residue][3] != INCOMPLETE {
                    columns.bonds = [0, 2].map(|side| {
                        let both = &energies[4 * residue + side..][..2];
                        both.iter().filter(|energy| **energy < -0.5).count() as i32
                    });
                }
            }
            let mut all = BridgePairs {
                bridges,
                keys,
                columns,
                residues: residues.clone(),
            };
            let listed = &listed[scaled(residues.clone(), BRIDGES_MAX / 2)];
            for root in residues.filter(|&residue| parents[residue] as usize == residue) {
                let [_, begin, end] = sheets[root];
                for place in begin..end {
                    all.write_ladder(listed[place as usize], place as i32 + 1);
                }
            }
        });
    }
}
