//! Chooses one conformer for each site.
//!
//! A conformer is an altloc of a residue. If a site holds several residues (microheterogeneity), a
//! residue without altlocs is a conformer too. The conformer with the highest summed occupancy is
//! chosen, and the first in the file among equals. Each atom name of its residue is then taken
//! once: from the atoms without an altloc, else from the chosen conformer, else from the conformer
//! of the next highest occupancy that has it. Hydrogens and virtual sites are left out.

use super::atom_table::AtomLine;
use super::element::{HYDROGEN, VIRTUAL_SITE};
use super::residue_atoms::UnusualAtoms;
use super::text8::Text8;

/// Chooses conformers. The memory is for reuse.
#[derive(Default)]
pub(super) struct Conformers {
    /// The heavy atoms of the site, each after the number of its residue.
    atoms: Vec<(usize, AtomLine)>,
    conformers: Vec<Conformer>,
    virtual_sites: UnusualAtoms,
    /// Name, rank of the conformer, and index of atoms of the chosen residue.
    ranked: Vec<(Text8, u8, usize)>,
    chosen: Vec<AtomLine>,
}

#[derive(Clone, Copy)]
struct Conformer {
    residue: usize,
    altloc: u8,
    /// Summed occupancy, in millionths.
    occupancy: i64,
}

impl Conformers {
    /// Starts a site.
    pub(super) fn clear(&mut self) {
        self.atoms.clear();
        self.virtual_sites = UnusualAtoms::default();
    }

    /// Adds the atoms of residue `residue` of the site.
    pub(super) fn add<'a>(&mut self, residue: usize, atoms: impl Iterator<Item = &'a AtomLine>) {
        for atom in atoms {
            match atom.element {
                HYDROGEN => {}
                VIRTUAL_SITE => self.virtual_sites.add(atom.name),
                _ => self.atoms.push((residue, *atom)),
            }
        }
    }

    /// The virtual sites of the site.
    pub(super) fn virtual_sites(&self) -> UnusualAtoms {
        self.virtual_sites
    }

    /// Whether the site has alternate locations or several components.
    pub(super) fn has_alternates(&self) -> bool {
        let first = self.atoms.first().map(|(residue, _)| *residue);
        let mut atoms = self.atoms.iter();
        atoms.any(|(residue, atom)| Some(*residue) != first || atom.altloc != 0)
    }

    /// The chosen residue, and its chosen atoms in file order; `None` if the site has only
    /// hydrogens and virtual sites.
    pub(super) fn choose(&mut self) -> Option<(usize, &[AtomLine])> {
        self.chosen.clear();
        let &(first, _) = self.atoms.first()?;
        let is_plain = |(residue, atom): &(usize, AtomLine)| *residue == first && atom.altloc == 0;
        if self.atoms.iter().all(is_plain) {
            self.chosen.extend(self.atoms.iter().map(|(_, atom)| atom));
            return Some((first, &self.chosen));
        }
        self.sum_occupancies();
        // The sort is stable: the first in the file stays first among equals.
        let conformers = &mut self.conformers;
        conformers.sort_by_key(|conformer| std::cmp::Reverse(conformer.occupancy));
        let residue = conformers.first()?.residue;
        // Atoms without an altloc rank first, at 0.
        let mut rank_of_altloc = [0u8; 256];
        let ours = conformers
            .iter()
            .filter(|conformer| conformer.residue == residue && conformer.altloc != 0);
        // There are as many ranks as altlocs: 255.
        for (conformer, rank) in ours.zip(1..=u8::MAX) {
            rank_of_altloc[usize::from(conformer.altloc)] = rank;
        }
        self.ranked.clear();
        let atoms = self.atoms.iter().enumerate();
        let atoms = atoms.filter(|(_, (atom_residue, _))| *atom_residue == residue);
        let ranked = |(index, (_, atom)): (usize, &(usize, AtomLine))| {
            (atom.name, rank_of_altloc[usize::from(atom.altloc)], index)
        };
        self.ranked.extend(atoms.map(ranked));
        self.ranked.sort_unstable();
        // Keep the atoms of the best rank of each name, even if there are several.
        let mut best = None;
        self.ranked.retain(|&(name, rank, _)| {
            if best.is_none_or(|(best_name, _)| best_name != name) {
                best = Some((name, rank));
            }
            best == Some((name, rank))
        });
        self.ranked.sort_unstable_by_key(|&(_, _, index)| index);
        self.chosen
            .extend(self.ranked.iter().map(|&(_, _, index)| self.atoms[index].1));
        Some((residue, &self.chosen))
    }

    /// Lists the conformers of the site in file order, each with the sum of its atoms' occupancies.
    fn sum_occupancies(&mut self) {
        self.conformers.clear();
        for &(residue, atom) in &self.atoms {
            let altloc = atom.altloc;
            let is = |known: &&mut Conformer| known.residue == residue && known.altloc == altloc;
            let occupancy = i64::from(atom.occupancy);
            match self.conformers.iter_mut().find(is) {
                Some(known) => known.occupancy += occupancy,
                None => self.conformers.push(Conformer {
                    residue,
                    altloc,
                    occupancy,
                }),
            }
        }
        // Atoms without an altloc belong to all conformers of their residue.
        for index in (0..self.conformers.len()).rev() {
            let this = self.conformers[index];
            let has_altloc = |other: &Conformer| other.residue == this.residue && other.altloc != 0;
            if this.altloc == 0 && self.conformers.iter().any(has_altloc) {
                self.conformers.remove(index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text8::text8;

    fn atom(name: &str, altloc: u8, occupancy: f64, element: u8) -> AtomLine {
        AtomLine {
            occupancy: (occupancy * 1e6) as i32,
            name: text8(name.as_bytes()),
            element,
            altloc,
            ..AtomLine::default()
        }
    }

    /// The chosen residue, and the indices of its chosen atoms in the site.
    fn choose(site: &[(usize, AtomLine)]) -> Option<(usize, Vec<usize>)> {
        let mut conformers = Conformers::default();
        conformers.clear();
        for (index, (residue, atom)) in site.iter().enumerate() {
            let numbered = AtomLine {
                xyz: [index as i32, 0, 0],
                ..*atom
            };
            conformers.add(*residue, std::iter::once(&numbered));
        }
        let (residue, atoms) = conformers.choose()?;
        let indices = atoms.iter().map(|atom| atom.xyz[0] as usize);
        Some((residue, indices.collect()))
    }

    #[test]
    fn the_highest_summed_occupancy_is_chosen_with_the_atoms_without_altloc() {
        let site = [
            (0, atom("N", 0, 1.0, 7)),
            (0, atom("CA", b'A', 0.4, 6)),
            (0, atom("CA", b'B', 0.6, 6)),
            (0, atom("CB", b'A', 0.4, 6)),
            (0, atom("CB", b'B', 0.6, 6)),
        ];
        assert_eq!(choose(&site), Some((0, vec![0, 2, 4])));
    }

    #[test]
    fn the_highest_occupancy_of_one_atom_alone_chooses_nothing() {
        let site = [
            (0, atom("CA", b'A', 0.6, 6)),
            (0, atom("CA", b'B', 0.4, 6)),
            (0, atom("CB", b'A', 0.1, 6)),
            (0, atom("CB", b'B', 0.4, 6)),
        ];
        // Sums: A 0.7, B 0.8.
        assert_eq!(choose(&site), Some((0, vec![1, 3])));
    }

    #[test]
    fn of_equal_occupancies_the_first_in_the_file_is_chosen() {
        let site = [(0, atom("CA", b'B', 0.5, 6)), (0, atom("CA", b'A', 0.5, 6))];
        assert_eq!(choose(&site), Some((0, vec![0])));
    }

    #[test]
    fn atoms_that_the_chosen_conformer_lacks_come_from_the_next() {
        let site = [
            (0, atom("CA", b'A', 0.3, 6)),
            (0, atom("CA", b'B', 0.5, 6)),
            (0, atom("CB", b'A', 0.1, 6)),
            (0, atom("CB", b'C', 0.2, 6)),
        ];
        // Sums: A 0.4, B 0.5, C 0.2.
        assert_eq!(choose(&site), Some((0, vec![1, 2])));
    }

    #[test]
    fn zero_occupancy_is_kept() {
        let site = [(0, atom("CA", b'A', 0.0, 6)), (0, atom("CB", 0, 0.0, 6))];
        assert_eq!(choose(&site), Some((0, vec![0, 1])));
    }

    #[test]
    fn of_several_residues_one_is_chosen() {
        let site = [
            (0, atom("N", b'A', 0.4, 7)),
            (0, atom("CA", b'A', 0.4, 6)),
            (1, atom("N", b'B', 0.6, 7)),
            (1, atom("CA", b'B', 0.6, 6)),
            (1, atom("OG", b'C', 0.1, 8)),
        ];
        assert_eq!(
            choose(&site),
            Some((1, vec![2, 3, 4])),
            "C is another altloc of residue 1"
        );
    }

    #[test]
    fn hydrogen_does_not_count_and_is_dropped() {
        let site = [
            (0, atom("CA", b'A', 0.5, 6)),
            (0, atom("CA", b'B', 0.4, 6)),
            (0, atom("HA", b'B', 0.4, HYDROGEN)),
        ];
        assert_eq!(choose(&site), Some((0, vec![0])));
        assert_eq!(choose(&[(0, atom("HA", 0, 1.0, HYDROGEN))]), None);
    }
}
