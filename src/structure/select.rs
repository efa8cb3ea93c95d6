//! From a file's atoms to structures: what is polymer, and which atoms of it.
//!
//! The rules, in the order in which they apply to each model:
//!
//! 1. *Residues.* A residue is chain, number, insertion code and component.
//!    Lines that name one again later (hydrogens at the end, altlocs sorted
//!    together) belong to it unless they repeat an atom that it has: then a
//!    number was used twice, and it is another residue.
//! 2. *Polymer.* `_entity.type` decides where the file has it. Elsewhere the
//!    component table does, and a HETATM that no MODRES record names must also
//!    be linked to its neighbour in the file (C-N, or O3'-P for nucleotides,
//!    under 2.0 A); selenomethionine need not.
//! 3. *Sites.* Residues in a row that differ in the component only, and share
//!    no altloc, are one site: only one of them is there at a time.
//! 4. *Conformer.* One a site; see [`super::conformer`].
//! 5. *Rows.* Amino acids in file order, then the atoms of everything else;
//!    see [`super::build`].
//!
//! A chain is what agrees in the author's id, the label id and the entity:
//! where one of the ids is missing, or the same everywhere, the other still
//! tells chains apart. In PDB files all lines of one chain id are one chain,
//! wherever they stand.

use std::collections::HashMap;
use std::ops::Range;

use super::ReadOptions;
use super::build::Builder;
use super::components::{self, Component, Kind};
use super::conformer::Conformers;
use super::element::HYDROGEN;
use super::model::Structure;
use super::table::{Atom, AtomTable, Entity, Run, Text8, at_line};
use crate::{Error, Result};

/// Atoms closer than this are linked, in 0.001 A.
pub(super) const LINK: i64 = 2_000;

/// Runs beyond this many atoms in a residue start another. No residue is that
/// large; it bounds the search for repeated atoms.
const RESIDUE_ATOMS: u32 = 1_000;

/// Residues beyond this many in a row with one number are not compared.
const SITE_RESIDUES: usize = 8;

/// A residue that may be polymer.
pub(super) struct Candidate {
    /// The first of its runs; [`Selector::next`] leads to the others.
    pub head: u32,
    tail: u32,
    /// Atoms in all its runs.
    atoms: u32,
    pub component: Component,
    needs_link: bool,
}

/// Reusable memory of the selection.
#[derive(Default)]
pub(super) struct Selector {
    candidates: Vec<Candidate>,
    /// By run, counted from the model's first: the next run of its residue.
    next: Vec<u32>,
    /// By chain: the highest residue number so far. What is beyond it is new.
    highest: Vec<Option<i32>>,
    /// The latest candidate of each name, filled when a number comes again.
    by_name: HashMap<Name, u32>,
    /// How many candidates `by_name` knows.
    named: usize,
    conformers: Conformers,
}

/// Chain, number, insertion code, component.
type Name = (u32, Option<i32>, u8, Text8);

const NONE: u32 = u32::MAX;

impl Selector {
    /// The structures of a file, one a model. `text` is the file, for errors.
    pub(super) fn select(
        &mut self,
        table: &mut AtomTable,
        text: &[u8],
        options: ReadOptions,
    ) -> Result<Vec<Structure>> {
        // Stable: a model whose lines are scattered keeps their order.
        if !table.runs.is_sorted_by_key(|run| run.model) {
            table.runs.sort_by_key(|run| run.model);
        }
        let table = &*table;
        let mut structures = Vec::with_capacity(table.models.len());
        let mut has_polymer = false;
        for runs in table.runs.chunk_by(|a, b| a.model == b.model) {
            self.find_candidates(table, runs);
            self.drop_unlinked(table, runs);
            self.check_numbers(text, runs)?;
            has_polymer |= self.has_heavy_atoms(table, runs);
            structures.push(self.build(table, runs, options));
        }
        if !has_polymer {
            return Err(Error::input(
                "no polymer residues: only water, ligands or unknown components",
            ));
        }
        Ok(structures)
    }

    fn has_heavy_atoms(&self, table: &AtomTable, runs: &[Run]) -> bool {
        let mut atoms = self
            .candidates
            .iter()
            .flat_map(|c| self.atoms_of(table, runs, c));
        atoms.any(|atom| atom.element != HYDROGEN)
    }

    /// Rule 1, and what of rule 2 the names decide.
    fn find_candidates(&mut self, table: &AtomTable, runs: &[Run]) {
        self.candidates.clear();
        self.next.clear();
        self.next.resize(runs.len(), NONE);
        self.highest.clear();
        self.highest.resize(table.chains.len(), None);
        self.by_name.clear();
        self.named = 0;
        for (at, run) in runs.iter().enumerate() {
            let Some((component, needs_link)) = classify(table, run) else {
                continue;
            };
            let at = at as u32;
            let atoms = run.atoms.len() as u32;
            if let Some(known) = self.find(table, runs, run) {
                let known = &mut self.candidates[known as usize];
                self.next[known.tail as usize] = at;
                known.tail = at;
                known.atoms += atoms;
            } else {
                self.candidates.push(Candidate {
                    head: at,
                    tail: at,
                    atoms,
                    component,
                    needs_link,
                });
            }
            let highest = &mut self.highest[run.chain as usize];
            *highest = (*highest).max(run.seq);
        }
    }

    /// The candidate that a run goes on with.
    fn find(&mut self, table: &AtomTable, runs: &[Run], run: &Run) -> Option<u32> {
        if run.seq > self.highest[run.chain as usize] {
            return None;
        }
        let name = |run: &Run| -> Name { (run.chain, run.seq, run.ins_code, run.comp) };
        for (at, candidate) in self.candidates.iter().enumerate().skip(self.named) {
            self.by_name
                .insert(name(&runs[candidate.head as usize]), at as u32);
        }
        self.named = self.candidates.len();
        let &found = self.by_name.get(&name(run))?;
        let known = &self.candidates[found as usize];
        if known.atoms + run.atoms.len() as u32 > RESIDUE_ATOMS {
            return None;
        }
        let repeats = |atom: &Atom| {
            self.runs_of(runs, known)
                .flat_map(|run| table.atoms_of(run))
                .any(|other| (other.name, other.altloc) == (atom.name, atom.altloc))
        };
        (!table.atoms_of(run).iter().any(repeats)).then_some(found)
    }

    /// The rest of rule 2.
    fn drop_unlinked(&mut self, table: &AtomTable, runs: &[Run]) {
        if !self.candidates.iter().any(|candidate| candidate.needs_link) {
            return;
        }
        let linked: Vec<bool> = (0..self.candidates.len())
            .map(|at| !self.candidates[at].needs_link || self.is_linked(table, runs, at))
            .collect();
        let mut linked = linked.into_iter();
        self.candidates.retain(|_| linked.next().unwrap_or(false));
    }

    fn is_linked(&self, table: &AtomTable, runs: &[Run], at: usize) -> bool {
        let number = |at: usize| {
            let run = &runs[self.candidates[at].head as usize];
            (run.chain, run.seq, run.ins_code)
        };
        // The neighbours may be several too, differing in the component.
        let neighbours = |other: &usize| number(*other).0 == number(at).0;
        let before = (0..at).rev().take(SITE_RESIDUES).take_while(neighbours);
        let after = (at + 1..self.candidates.len())
            .take(SITE_RESIDUES)
            .take_while(neighbours);
        let first_number = |others: &mut dyn Iterator<Item = usize>| {
            let mut others = others
                .skip_while(|&other| number(other) == number(at))
                .peekable();
            let first = others.peek().map(|&other| number(other));
            others
                .take_while(|&other| Some(number(other)) == first)
                .collect::<Vec<_>>()
        };
        let bonds = |from: usize, to: usize| {
            [
                (&[*b"C       "][..], *b"N       "),
                (&[*b"O3'     ", *b"O3*     "], *b"P       "),
            ]
            .iter()
            .any(|(ends, start)| {
                let atoms = |at: usize| self.atoms_of(table, runs, &self.candidates[at]);
                let ends = atoms(from).filter(|atom| ends.contains(&atom.name));
                ends.into_iter().any(|end| {
                    atoms(to).any(|atom| atom.name == *start && is_within(end.xyz, atom.xyz, LINK))
                })
            })
        };
        first_number(&mut { before })
            .into_iter()
            .any(|other| bonds(other, at))
            || first_number(&mut { after })
                .into_iter()
                .any(|other| bonds(at, other))
    }

    fn check_numbers(&self, text: &[u8], runs: &[Run]) -> Result<()> {
        let heads = self
            .candidates
            .iter()
            .map(|candidate| &runs[candidate.head as usize]);
        match heads.into_iter().find(|run| run.seq.is_none()) {
            None => Ok(()),
            Some(run) => Err(at_line(
                text,
                run.offset as usize,
                "a polymer residue has no number",
            )),
        }
    }

    /// Rules 3 to 5.
    fn build(&mut self, table: &AtomTable, runs: &[Run], options: ReadOptions) -> Structure {
        let atoms: usize = self
            .candidates
            .iter()
            .map(|candidate| candidate.atoms as usize)
            .sum();
        let mut builder = Builder::new(table, runs[0].model, self.candidates.len(), atoms);
        for rows in [true, false] {
            let mut at = 0;
            while at < self.candidates.len() {
                let site = self.site(table, runs, at);
                at = site.end;
                let wanted = match self.candidates[site.start].component.kind {
                    Kind::Amino => rows,
                    Kind::Nucleotide => !rows && options.nucleic,
                    Kind::Cap => !rows,
                };
                if wanted {
                    self.add_site(table, runs, site, &mut builder);
                }
            }
            if rows {
                builder.end_rows();
            }
        }
        builder.finish()
    }

    /// The candidates that share the site of candidate `at`, the first of it.
    fn site(&self, table: &AtomTable, runs: &[Run], at: usize) -> Range<usize> {
        let number = |candidate: &Candidate| {
            let run = &runs[candidate.head as usize];
            (run.chain, run.seq, run.ins_code)
        };
        let first = number(&self.candidates[at]);
        let mut end = at + 1;
        let mut taken = None;
        while end < self.candidates.len()
            && end - at < SITE_RESIDUES
            && number(&self.candidates[end]) == first
        {
            let mut altlocs =
                taken.unwrap_or_else(|| self.altlocs(table, runs, &self.candidates[at]));
            let more = self.altlocs(table, runs, &self.candidates[end]);
            if altlocs.iter().zip(&more).any(|(a, b)| a & b != 0) {
                break;
            }
            altlocs
                .iter_mut()
                .zip(more)
                .for_each(|(all, more)| *all |= more);
            taken = Some(altlocs);
            end += 1;
        }
        at..end
    }

    /// The altlocs of a residue, one bit each.
    fn altlocs(&self, table: &AtomTable, runs: &[Run], candidate: &Candidate) -> [u64; 4] {
        let mut bits = [0; 4];
        for atom in self.atoms_of(table, runs, candidate) {
            bits[usize::from(atom.altloc / 64)] |= 1 << (atom.altloc % 64);
        }
        bits
    }

    /// Rule 4.
    fn add_site(
        &mut self,
        table: &AtomTable,
        runs: &[Run],
        site: Range<usize>,
        builder: &mut Builder,
    ) {
        let first = &self.candidates[site.start];
        let run = &runs[first.head as usize];
        if site.len() == 1 && first.head == first.tail && run.plain {
            builder.add(run, first.component, table.atoms_of(run));
            return;
        }
        let mut conformers = std::mem::take(&mut self.conformers);
        conformers.clear();
        for (residue, candidate) in self.candidates[site.clone()].iter().enumerate() {
            for run in self.runs_of(runs, candidate) {
                conformers.add(residue, table.atoms_of(run));
            }
        }
        if let Some((residue, atoms)) = conformers.choose() {
            let chosen = &self.candidates[site.start + residue];
            builder.add(&runs[chosen.head as usize], chosen.component, atoms);
        }
        self.conformers = conformers;
    }

    fn runs_of<'a>(
        &'a self,
        runs: &'a [Run],
        candidate: &Candidate,
    ) -> impl Iterator<Item = &'a Run> {
        let next = |&at: &u32| Some(self.next[at as usize]).filter(|&at| at != NONE);
        std::iter::successors(Some(candidate.head), next).map(|at| &runs[at as usize])
    }

    fn atoms_of<'a>(
        &'a self,
        table: &'a AtomTable,
        runs: &'a [Run],
        candidate: &Candidate,
    ) -> impl Iterator<Item = &'a Atom> {
        self.runs_of(runs, candidate)
            .flat_map(|run| table.atoms_of(run))
    }
}

/// Rule 2 by names: the component of a run that may be polymer, and whether it
/// must be linked to count.
fn classify(table: &AtomTable, run: &Run) -> Option<(Component, bool)> {
    let known = components::lookup(run.comp);
    match table.chains[run.chain as usize].entity_type {
        Entity::Other => None,
        Entity::Unknown => {
            known.map(|component| (component, run.hetero && run.comp != *b"MSE     "))
        }
        Entity::Polymer(units) => {
            let given = table.components.iter().find(|(comp, _)| *comp == run.comp);
            let kind = given.map(|&(_, kind)| kind).or(units).unwrap_or(Kind::Cap);
            Some((
                known.unwrap_or(Component {
                    kind,
                    parent: *b"        ",
                    aa: b'X',
                }),
                false,
            ))
        }
    }
}

/// Whether two positions are closer than `distance`, in 0.001 A. Exact.
pub(super) fn is_within(a: [i32; 3], b: [i32; 3], distance: i64) -> bool {
    let square = |axis: usize| (i64::from(a[axis]) - i64::from(b[axis])).pow(2);
    square(0) + square(1) + square(2) < distance * distance
}
