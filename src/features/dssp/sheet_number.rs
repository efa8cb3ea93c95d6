//! Twins of `kernels/sheet_join.cu` and `kernels/sheet_number.cu`.

use super::super::cpu::forest::{Forest, root_of};
use super::super::cpu::split::parts;
use super::super::kernels::{Twin, sheet_join, sheet_number};
use super::super::layout::{BRIDGES_MAX, StructureSpan};
use super::ladder_bridges::{first_residue, ladder_key};
use bytemuck::cast_slice_mut;
use rayon::prelude::*;

/// What the root of a sheet has: its number, and where its ladders begin and end in the list of the
/// structure's ladders.
pub(super) type Sheet = [u32; 3];

/// Joins the residues that ladders have bridges of: a tree is a sheet.
impl Twin for sheet_join::Views<'_> {
    fn run(self) {
        let Self {
            header,
            structures,
            keys,
            parents,
        } = self;
        let structures = StructureSpan::live(header, structures);
        let parents = parts(parents, structures.iter().map(StructureSpan::residues));
        let tasks = structures.par_iter().zip(parents);
        tasks.for_each(|(structure, parents)| {
            let residues = structure.residues();
            let mut trees = Forest {
                parents,
                start: residues.start,
            };
            for residue in residues {
                let keys = &keys[BRIDGES_MAX * residue..][..BRIDGES_MAX];
                for &key in keys.iter().filter(|&&key| key != 0) {
                    trees.join(residue, first_residue(key));
                }
            }
        });
    }
}

/// Numbers sheets from 1 by their first residues, and lists the ladders of each in their order:
/// counts the ladders of each sheet, so that the list has room for them, then writes them there.
impl Twin for sheet_number::Views<'_> {
    fn run(self) {
        let Self {
            header,
            structures,
            keys,
            parents,
            counts,
            sheets,
            listed,
        } = self;
        let sheets: &mut [Sheet] = cast_slice_mut(sheets);
        for structure in StructureSpan::live(header, structures) {
            let residues = structure.residues();
            let ladders = residues.clone().flat_map(|residue| {
                let keys = &keys[BRIDGES_MAX * residue..][..BRIDGES_MAX];
                let first_keys = (0..BRIDGES_MAX).map(move |which| ladder_key(residue, which));
                let found = first_keys.zip(keys).filter(|(first, key)| first == *key);
                found.map(move |(key, _)| (root_of(parents, residue), key))
            });
            for (root, _) in ladders.clone() {
                counts[root] += 1;
            }
            let (mut sheet, mut first) = (0, 0);
            for root in residues.clone() {
                if parents[root] as usize == root {
                    sheet += 1;
                    sheets[root] = [sheet, first, first];
                    first += counts[root];
                }
            }
            for (root, key) in ladders {
                let [_, _, place] = &mut sheets[root];
                listed[BRIDGES_MAX / 2 * residues.start + *place as usize] = key;
                *place += 1;
            }
        }
    }
}
