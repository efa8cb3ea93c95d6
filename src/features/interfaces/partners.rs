//! The chains near each residue: the twins of `interface_degrees`, `interface_ends` and
//! `interface_partners`.

use super::super::cpu::split::{for_row_ranges, parts};
use super::super::entries::{Entries, PARTNERS_PER_UNIT};
use super::super::grid::corners;
use super::super::interface_residues::other_chain_atoms;
use super::super::kernels::{Cells, Twin, interface_degrees, interface_ends, interface_partners};
use super::super::layout::{Atom, Position, RADIUS_MAX, RESIDUES, ResidueSpan, StructureSpan};
use bytemuck::cast_slice;
use rayon::prelude::*;

/// The search for the atoms of other chains near a residue.
struct OtherChainSearch<'a> {
    structures: &'a [StructureSpan],
    residues: &'a [ResidueSpan],
    atoms: &'a [Atom],
    cells: &'a Cells<'a>,
    /// Those of [`chain_ranges`](super::super::interface_residues::chain_ranges).
    ranges: &'a [[u32; 2]],
    cutoff: u32,
    probe: u32,
}

impl OtherChainSearch<'_> {
    /// Calls `visit` for every sorted atom of another chain within `reach` of the box of residue
    /// `row`, and for some farther ones.
    fn for_each_of_other_chains(&self, row: usize, reach: u32, mut visit: impl FnMut(usize)) {
        let residue = &self.residues[row];
        let structure = &self.structures[residue.structure as usize];
        if structure.chain_count < 2 || residue.atom_count == 0 {
            return;
        }
        let atoms = &self.atoms[residue.atoms()];
        let (low, high) = corners(atoms.iter().map(|atom| atom.position.into()));
        let (low, high) = (
            low.map(|c| c - reach as i32),
            high.map(|c| c + reach as i32),
        );
        for run in structure.atom_grid.runs_between(low, high) {
            let near = other_chain_atoms(self.cells, self.ranges, residue.chain, run);
            let near = near.unwrap_or(0..0);
            near.filter(|&index| self.cells.tag[index].chain() != residue.chain)
                .for_each(&mut visit);
        }
    }

    /// The position of a sorted atom.
    fn position(&self, index: usize) -> Position {
        Position {
            x: self.cells.x[index],
            y: self.cells.y[index],
            z: self.cells.z[index],
        }
    }

    /// The other chains with an atom that is closer to one of the residue's atoms than the cutoff,
    /// or so close that it could bury area, as both radii and two probes reach, in ascending order.
    fn partners(&self, residue: usize, found: &mut Vec<u32>) {
        found.clear();
        let atoms = &self.atoms[self.residues[residue].atoms()];
        let reach = self.cutoff.max(2 * (RADIUS_MAX + self.probe));
        self.for_each_of_other_chains(residue, reach, |index| {
            let (tag, there) = (self.cells.tag[index], self.position(index));
            if found.contains(&tag.chain()) {
                return;
            }
            let radius = tag.radius_milli() + 2 * self.probe;
            let is_near = atoms.iter().any(|atom| {
                let reach = self.cutoff.max(atom.tag.radius_milli() + radius);
                atom.position.squared_to(there) < reach * reach
            });
            if is_near {
                found.push(tag.chain());
            }
        });
        found.sort_unstable();
    }

    /// The residues of other chains with an atom closer than the cutoff, each as its chain and its
    /// index. `residue_of` has the residue of each atom, plus one.
    fn contacts(&self, residue: usize, residue_of: &[u32], found: &mut Vec<[u32; 2]>) {
        found.clear();
        let atoms = &self.atoms[self.residues[residue].atoms()];
        self.for_each_of_other_chains(residue, self.cutoff, |index| {
            let other = residue_of[self.cells.source[index] as usize];
            let there = self.position(index);
            let mut squares = atoms.iter().map(|atom| atom.position.squared_to(there));
            if other != 0 && squares.any(|square| square < self.cutoff * self.cutoff) {
                found.push([self.cells.tag[index].chain(), other]);
            }
        });
        found.sort_unstable();
        found.dedup();
    }
}

/// Counts the partners of residues.
impl Twin for interface_degrees::Views<'_> {
    fn run(self) {
        let search = OtherChainSearch {
            structures: StructureSpan::live(self.header, self.structures),
            residues: self.residues,
            atoms: self.atoms,
            cells: &self.cells,
            ranges: cast_slice(self.ranges),
            cutoff: self.cutoff,
            probe: self.probe,
        };
        let degrees = &mut self.degrees[..self.header[RESIDUES] as usize];
        for_row_ranges(degrees, 1, |rows, degrees| {
            let mut partners = Vec::new();
            for (residue, degree) in rows.zip(degrees) {
                search.partners(residue, &mut partners);
                *degree = partners.len() as i32;
            }
        });
    }
}

/// Sums degrees over the residues, or the chains, of each structure: the sum up to each, and that of
/// all.
impl Twin for interface_ends::Views<'_> {
    fn run(self) {
        let structures = StructureSpan::live(self.header, self.structures);
        for (index, structure) in structures.iter().enumerate() {
            let row = match self.of_chains {
                0 => structure.residues(),
                _ => structure.chains(),
            };
            let mut sum = 0;
            for row in row {
                sum += self.degrees[row];
                self.ends[row] = sum;
            }
            self.totals[index] = sum;
        }
    }
}

/// Lists the partners of residues, and counts the contacts with each.
impl Twin for interface_partners::Views<'_> {
    fn run(self) {
        let search = OtherChainSearch {
            structures: StructureSpan::live(self.header, self.structures),
            residues: self.residues,
            atoms: self.atoms,
            cells: &self.cells,
            ranges: cast_slice(self.ranges),
            cutoff: self.cutoff,
            probe: self.probe,
        };
        let entries = Entries {
            ends: self.ends,
            rooms: self.rooms,
            per_unit: PARTNERS_PER_UNIT,
        };
        let entries = entries.all(search.structures, StructureSpan::residues);
        let places = || entries.iter().map(|(_, places)| places.clone());
        let out = parts(self.partners, places()).zip(parts(self.contacts, places()));
        // Fewer than `TASK_ROWS`: few residues have entries, and each takes two searches.
        let rows = entries.par_iter().zip(out).with_min_len(16);
        let scratch = || (Vec::new(), Vec::new());
        rows.for_each_init(
            scratch,
            |(found, near), ((residue, _), (partners, contacts))| {
                search.partners(*residue, found);
                partners.copy_from_slice(found);
                search.contacts(*residue, self.residue_of, near);
                for (partner, contacts) in partners.iter().zip(contacts) {
                    let contacts_of_partner = near.iter().filter(|[chain, _]| chain == partner);
                    *contacts = contacts_of_partner.count() as u32;
                }
            },
        );
    }
}
