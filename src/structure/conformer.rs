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
    /// The heavy atoms of the site, and which of its residues they belong to.
    atoms: Vec<(usize, Atom)>,
    conformers: Vec<Conformer>,
    ranked: Vec<(Text8, u8, usize)>,
    chosen: Vec<Atom>,
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
    }

    /// Adds atoms of the site's residue number `residue`.
    pub(super) fn add<'a>(&mut self, residue: usize, atoms: impl Iterator<Item = &'a Atom>) {
        let heavy = atoms.filter(|atom| atom.element != HYDROGEN);
        self.atoms.extend(heavy.map(|atom| (residue, *atom)));
    }

    /// The residue that is chosen, and its atoms in file order. `None` where the
    /// site has none but hydrogen.
    pub(super) fn choose(&mut self) -> Option<(usize, &[Atom])> {
        self.chosen.clear();
        let &(first, _) = self.atoms.first()?;
        if self
            .atoms
            .iter()
            .all(|(residue, atom)| *residue == first && atom.altloc == 0)
        {
            self.chosen.extend(self.atoms.iter().map(|(_, atom)| atom));
            return Some((first, &self.chosen));
        }
        self.sum_occupancies();
        // The sort is stable: the first in the file stays first among equals.
        self.conformers
            .sort_by_key(|conformer| std::cmp::Reverse(conformer.occupancy));
        let residue = self.conformers.first()?.residue;
        let mut rank = [0u8; 256];
        let ours = self
            .conformers
            .iter()
            .filter(|conformer| conformer.residue == residue);
        for (conformer, place) in ours.zip((1..=u8::MAX).chain(std::iter::repeat(u8::MAX))) {
            rank[usize::from(conformer.altloc)] = place;
        }
        rank[0] = 0;
        self.ranked.clear();
        let atoms = self
            .atoms
            .iter()
            .enumerate()
            .filter(|(_, (of, _))| *of == residue);
        self.ranked
            .extend(atoms.map(|(at, (_, atom))| (atom.name, rank[usize::from(atom.altloc)], at)));
        self.ranked.sort_unstable();
        // By name, the best rank; what repeats within a rank is kept.
        let mut best = None;
        self.ranked.retain(|&(name, rank, _)| {
            if best.is_none_or(|(of, _)| of != name) {
                best = Some((name, rank));
            }
            best == Some((name, rank))
        });
        self.ranked.sort_unstable_by_key(|&(_, _, at)| at);
        self.chosen
            .extend(self.ranked.iter().map(|&(_, _, at)| self.atoms[at].1));
        Some((residue, &self.chosen))
    }

    /// Lists the conformers in file order.
    fn sum_occupancies(&mut self) {
        self.conformers.clear();
        for &(
            residue,
            Atom {
                altloc, occupancy, ..
            },
        ) in &self.atoms
        {
            let is = |known: &&mut Conformer| known.residue == residue && known.altloc == altloc;
            let occupancy = i64::from(occupancy);
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

    /// The chosen residue, and which of the site's atoms it has.
    fn choose(site: &[(usize, Atom)]) -> Option<(usize, Vec<usize>)> {
        let mut conformers = Conformers::default();
        conformers.clear();
        for (at, (residue, atom)) in site.iter().enumerate() {
            let numbered = Atom {
                xyz: [at as i32, 0, 0],
                ..*atom
            };
            conformers.add(*residue, std::iter::once(&numbered));
        }
        let (residue, atoms) = conformers.choose()?;
        Some((
            residue,
            atoms.iter().map(|atom| atom.xyz[0] as usize).collect(),
        ))
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
