//! One conformer a site.
//!
//! A conformer is an altloc of a residue; where a site holds several residues
//! (microheterogeneity), one without altlocs is a conformer too. The one with
//! the highest summed occupancy wins, the first in the file among equals. Of
//! its residue, every atom name is then taken once: from the atoms without an
//! altloc, else from the winner, else from the next best that has it.

use super::element::HYDROGEN;
use super::table::{Atom, Text8};

/// Reusable memory of the choice.
#[derive(Default)]
pub(super) struct Conformers {
    /// Heavy atoms of the site: which of its residues, and the atom's index.
    atoms: Vec<(u32, u32)>,
    conformers: Vec<Conformer>,
    ranked: Vec<(Text8, u8, u32)>,
    chosen: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Conformer {
    residue: u32,
    altloc: u8,
    /// Summed occupancy, in millionths.
    occupancy: i64,
}

impl Conformers {
    /// Starts a site.
    pub(super) fn clear(&mut self) {
        self.atoms.clear();
    }

    /// Adds the atoms `first..` of the site's residue number `residue`.
    pub(super) fn add(&mut self, residue: u32, first: u32, atoms: &[Atom]) {
        let heavy = (first..)
            .zip(atoms)
            .filter(|(_, atom)| atom.element != HYDROGEN);
        self.atoms.extend(heavy.map(|(index, _)| (residue, index)));
    }

    /// The residue that is chosen, and the indices of its atoms in file order.
    /// `all` are the file's atoms. `None` where the site has none but hydrogen.
    pub(super) fn choose(&mut self, all: &[Atom]) -> Option<(u32, &[u32])> {
        self.sum_occupancies(all);
        // The sort is stable: the first in the file stays first among equals.
        self.conformers
            .sort_by_key(|conformer| std::cmp::Reverse(conformer.occupancy));
        let residue = self.conformers.first()?.residue;
        let mut rank = [0u8; 256];
        let ours = self
            .conformers
            .iter()
            .filter(|conformer| conformer.residue == residue);
        for (at, conformer) in ours.enumerate() {
            rank[usize::from(conformer.altloc)] = (at + 1).min(255) as u8;
        }
        rank[0] = 0;
        self.ranked.clear();
        let atoms = self.atoms.iter().filter(|(of, _)| *of == residue);
        self.ranked.extend(atoms.map(|&(_, index)| {
            let atom = &all[index as usize];
            (atom.name, rank[usize::from(atom.altloc)], index)
        }));
        self.ranked.sort_unstable();
        self.chosen.clear();
        for same_name in self.ranked.chunk_by(|a, b| a.0 == b.0) {
            let best = same_name.iter().take_while(|atom| atom.1 == same_name[0].1);
            self.chosen.extend(best.map(|&(_, _, index)| index));
        }
        self.chosen.sort_unstable();
        Some((residue, &self.chosen))
    }

    /// Lists the conformers in file order.
    fn sum_occupancies(&mut self, all: &[Atom]) {
        self.conformers.clear();
        for &(residue, index) in &self.atoms {
            let Atom {
                altloc, occupancy, ..
            } = all[index as usize];
            let is = |known: &&mut Conformer| known.residue == residue && known.altloc == altloc;
            match self.conformers.iter_mut().find(is) {
                Some(known) => known.occupancy += i64::from(occupancy),
                None => self.conformers.push(Conformer {
                    residue,
                    altloc,
                    occupancy: i64::from(occupancy),
                }),
            }
        }
        // Atoms without an altloc belong to all conformers of their residue.
        for at in (0..self.conformers.len()).rev() {
            let Conformer {
                residue, altloc, ..
            } = self.conformers[at];
            let has_altlocs = |other: &Conformer| other.residue == residue && other.altloc != 0;
            if altloc == 0 && self.conformers.iter().any(has_altlocs) {
                self.conformers.remove(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::table::text8;

    fn atom(name: &str, altloc: u8, occupancy: f64, element: u8) -> Atom {
        Atom {
            xyz: [0; 3],
            b_factor: 0.0,
            occupancy: (occupancy * 1e6) as i32,
            name: text8(name.as_bytes()),
            element,
            altloc,
            rounded: false,
        }
    }

    fn choose(site: &[(u32, Atom)]) -> Option<(u32, Vec<u32>)> {
        let all: Vec<Atom> = site.iter().map(|(_, atom)| *atom).collect();
        let mut conformers = Conformers::default();
        conformers.clear();
        for (index, (residue, atom)) in site.iter().enumerate() {
            conformers.add(*residue, index as u32, std::slice::from_ref(atom));
        }
        conformers
            .choose(&all)
            .map(|(residue, atoms)| (residue, atoms.to_vec()))
    }

    #[test]
    fn the_highest_summed_occupancy_wins_with_the_blank_atoms() {
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
    fn equals_go_to_the_first_in_the_file() {
        let site = [(0, atom("CA", b'B', 0.5, 6)), (0, atom("CA", b'A', 0.5, 6))];
        assert_eq!(choose(&site), Some((0, vec![0])));
    }

    #[test]
    fn atoms_that_the_winner_lacks_come_from_the_next() {
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
    fn of_several_residues_one_is_there() {
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
    fn hydrogen_neither_counts_nor_stays() {
        let site = [
            (0, atom("CA", b'A', 0.5, 6)),
            (0, atom("CA", b'B', 0.4, 6)),
            (0, atom("HA", b'B', 0.4, HYDROGEN)),
        ];
        assert_eq!(choose(&site), Some((0, vec![0])));
        assert_eq!(choose(&[(0, atom("HA", 0, 1.0, HYDROGEN))]), None);
    }
}
