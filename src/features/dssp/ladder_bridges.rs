//! Twin of `kernels/ladder_bridges.cu`, and keys of ladders, as in `kernels/sheets.cuh`.

use super::super::cpu::forest::NO_TREE;
use super::super::cpu::split::parts;
use super::super::kernels::{Twin, ladder_bridges};
use super::super::layout::{BRIDGES_MAX, Bridges, RESIDUES, StructureSpan};
use super::bonds::{Hydrogen, NO_BRIDGE, bridge_to};
use super::ladder_search::{Ladder, Ladders};
use rayon::prelude::*;
use std::ops::Range;

/// The key of the ladder that begins with bridge `which` of a residue; 0 stands for no ladder. The
/// order of keys is the order of ladders.
pub(super) fn ladder_key(residue: usize, which: usize) -> u32 {
    (1 + BRIDGES_MAX * residue + which) as u32
}

/// The residue of a ladder's first bridge.
pub(super) fn first_residue(key: u32) -> usize {
    (key as usize - 1) / BRIDGES_MAX
}

/// The places of residues in a buffer with `values` for each.
pub(super) fn scaled(residues: Range<usize>, values: usize) -> Range<usize> {
    values * residues.start..values * residues.end
}

/// Writes the key of its ladder for each bridge, and the largest key of the ladders that each residue
/// is in.
impl Twin for ladder_bridges::Views<'_> {
    fn run(self) {
        let Self {
            header,
            structures,
            hydrogens,
            bridges,
            keys,
            spans,
            parents,
        } = self;
        let hydrogens: &[Hydrogen] = &hydrogens[..header[RESIDUES] as usize];
        let structures = StructureSpan::live(header, structures);

        let ranges = || structures.iter().map(StructureSpan::residues);
        let keys = parts(keys, ranges().map(|range| scaled(range, BRIDGES_MAX)));
        let columns = keys
            .zip(parts(spans, ranges()))
            .zip(parts(parents, ranges()));
        let tasks = ranges().collect::<Vec<_>>().into_par_iter().zip(columns);
        tasks.for_each(|(residues, ((keys, spans), parents))| {
            let start = residues.start;
            for (residue, parent) in residues.clone().zip(parents) {
                let is_node = bridges[residue].0[0] != NO_BRIDGE;
                *parent = if is_node { residue as u32 } else { NO_TREE };
            }
            let mut ladders = Ladders {
                hydrogens,
                bridges,
                marks: &mut vec![0; residues.len()],
                residues,
            };
            ladders.join_all(
                |(i, which), run| add_run(run, bridges, keys, start, ladder_key(i, which)),
                |_, (i, which), ladder| {
                    for residue in (ladder.i..=ladder.i_end).chain(ladder.j..=ladder.j_end) {
                        let span = &mut spans[residue - start];
                        *span = (*span).max(ladder_key(i, which));
                    }
                },
            );
        });
    }
}

/// Writes the key of a ladder for the bridges of one of its runs, for both residues of each. Row 0 of
/// `keys` is that of residue `start`.
fn add_run(run: &Ladder, bridges: &[Bridges], keys: &mut [u32], start: usize, key: u32) {
    for step in 0..=run.i_end - run.i {
        let i = run.i + step;
        let j = if run.is_antiparallel {
            run.j_end - step
        } else {
            run.j + step
        };
        for (residue, partner) in [(i, j), (j, i)] {
            let bridge = bridge_to(partner, run.is_antiparallel);
            let found = bridges[residue].0.iter().position(|&code| code == bridge);
            let which = found.expect("both residues of a bridge have it");
            keys[BRIDGES_MAX * (residue - start) + which] = key;
        }
    }
}
