//! Pairs of chains in contact: the twins of `interface_pairs`, `interface_rows` and
//! `interface_bonds`.

use super::super::cpu::split::{for_row_ranges, parts};
use super::super::dssp::{Acceptors, BondInputs, Peptides};
use super::super::entries::{Entries, INTERFACES_PER_UNIT, PARTNERS_PER_UNIT};
use super::super::kernels::{Twin, interface_bonds, interface_pairs, interface_rows};
use super::super::layout::{CHAINS, ChainSpan, StructureSpan};
use super::super::sasa::angstrom2_per_point;
use bytemuck::cast_slice_mut;
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::ops::Range;

/// The partners of the residues of chains.
struct ChainPartners<'a> {
    structures: &'a [StructureSpan],
    chains: &'a [ChainSpan],
    members: &'a [u32],
    entries: Entries<'a>,
    partners: &'a [u32],
    contacts: &'a [u32],
}

impl ChainPartners<'_> {
    /// The places of the partners of a chain's residues.
    fn places(&self, chain: usize) -> impl Iterator<Item = usize> {
        let chain = &self.chains[chain];
        let structure = chain.structure as usize;
        let residues = self.structures[structure].residues();
        let members = chain.members(self.members).iter();
        members.flat_map(move |&residue| {
            self.entries
                .range_of(structure, &residues, residue as usize)
        })
    }

    /// The later chains that a chain is in contact with, in ascending order.
    fn later_contacts(&self, chain: usize) -> BTreeSet<u32> {
        let in_contact = self.places(chain).filter(|&place| self.contacts[place] > 0);
        let partners = in_contact.map(|place| self.partners[place]);
        partners
            .filter(|&partner| partner as usize > chain)
            .collect()
    }
}

/// Counts the later chains that each chain is in contact with.
impl Twin for interface_pairs::Views<'_> {
    fn run(self) {
        let all = ChainPartners {
            structures: StructureSpan::live(self.header, self.structures),
            chains: self.chains,
            members: self.members,
            entries: Entries {
                ends: self.ends,
                rooms: self.rooms,
                per_unit: PARTNERS_PER_UNIT,
            },
            partners: self.partners,
            contacts: self.contacts,
        };
        let degrees = &mut self.degrees[..self.header[CHAINS] as usize];
        for_row_ranges(degrees, 1, |rows, degrees| {
            for (chain, degree) in rows.zip(degrees) {
                *degree = all.later_contacts(chain).len() as i32;
            }
        });
    }
}

/// Sums the contacts and the buried areas of the residues of two chains in contact.
impl Twin for interface_rows::Views<'_> {
    fn run(self) {
        let structures = StructureSpan::live(self.header, self.structures);
        let all = ChainPartners {
            structures,
            chains: self.chains,
            members: self.members,
            entries: Entries {
                ends: self.ends,
                rooms: self.rooms,
                per_unit: PARTNERS_PER_UNIT,
            },
            partners: self.partners,
            contacts: self.contacts,
        };
        let scale = angstrom2_per_point(self.points as usize);
        let rows = Entries {
            ends: self.row_ends,
            rooms: self.rooms,
            per_unit: INTERFACES_PER_UNIT,
        };
        let owners = rows.all(structures, StructureSpan::chains);
        let places = || owners.iter().map(|(_, rows)| rows.clone());
        let pairs: &mut [[i32; 2]] = cast_slice_mut(self.pairs);
        let counts: &mut [[i32; 3]] = cast_slice_mut(self.counts);
        let areas: &mut [[f32; 3]] = cast_slice_mut(self.areas);
        let out = parts(pairs, places()).zip(parts(counts, places()));
        let out = out.zip(parts(areas, places()).zip(parts(self.bonds, places())));
        let work = owners.par_iter().zip(out);
        work.for_each(|((chain, _), ((pairs, counts), (areas, bonds)))| {
            let first = structures[self.chains[*chain].structure as usize].chain_start;
            // The chain's residues in contact with the partner, the contacts, and the sum of test
            // points that the partner buries.
            let side = |chain: usize, partner: usize| {
                let is_partner = |place: &usize| self.partners[*place] as usize == partner;
                let places = all.places(chain).filter(is_partner);
                places.fold((0, 0, 0), |(residues, contacts, buried), place| {
                    let count = self.contacts[place];
                    let residues = residues + i32::from(count > 0);
                    (
                        residues,
                        contacts + count as i32,
                        buried + self.buried[place],
                    )
                })
            };
            bonds.fill(0);
            let rows = pairs.iter_mut().zip(counts).zip(areas);
            for (other, ((pair, count), area)) in all.later_contacts(*chain).into_iter().zip(rows) {
                let (residues_i, contacts, buried_i) = side(*chain, other as usize);
                let (residues_j, _, buried_j) = side(other as usize, *chain);
                *pair = [*chain as u32 - first, other - first].map(|chain| chain as i32);
                *count = [residues_i, residues_j, contacts];
                *area = [buried_i + buried_j, buried_i, buried_j]
                    .map(|sum: u64| (sum as f64 * scale) as f32);
            }
        });
    }
}

/// Counts the hydrogen bonds between the backbones of the chains of each row.
impl Twin for interface_bonds::Views<'_> {
    fn run(self) {
        let structures = StructureSpan::live(self.header, self.structures);
        let rows = Entries {
            ends: self.row_ends,
            rooms: self.rooms,
            per_unit: INTERFACES_PER_UNIT,
        };
        let inputs = BondInputs {
            structures,
            residues: self.residues,
            atoms: self.ca,
            cells: self.cells,
            peptides: Peptides {
                backbone: self.backbone,
                hydrogens: self.hydrogens,
            },
            own_chain: false,
        };
        // The rows of each structure that has rows.
        let rows_of = |(index, structure): (usize, &StructureSpan)| {
            let all = structure.chains();
            let rows = |chain| rows.range_of(index, &all, chain);
            let rows = rows(all.clone().next()?).start..rows(all.clone().last()?).end;
            (!rows.is_empty()).then_some((index, rows))
        };
        let found: Vec<(usize, Range<usize>)> =
            structures.iter().enumerate().filter_map(rows_of).collect();
        let bonds = parts(self.bonds, found.iter().map(|(_, rows)| rows.clone()));
        found
            .par_iter()
            .zip(bonds)
            .for_each(|((index, all), bonds)| {
                let structure = &structures[*index];
                let chains = structure.chains();
                let mut acceptors = Acceptors::default();
                for residue in structure.residues() {
                    let own_chain = self.residues[residue].chain;
                    for &(acceptor, _) in acceptors.acceptors_of(&inputs, residue) {
                        let chain = self.residues[acceptor].chain;
                        if chain == own_chain {
                            continue;
                        }
                        let later = (own_chain.max(chain) - structure.chain_start) as i32;
                        for row in rows.range_of(*index, &chains, own_chain.min(chain) as usize) {
                            bonds[row - all.start] += i32::from(self.pairs[2 * row + 1] == later);
                        }
                    }
                }
            });
    }
}
