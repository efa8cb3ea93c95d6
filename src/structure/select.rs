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
use super::build::{Builder, PerModel};
use super::components::{self, Component, Kind};
use super::conformer::Conformers;
use super::element::HYDROGEN;
use super::model::Structure;
use super::references::References;
use super::table::{Atom, AtomTable, Entity, Run, Text8, at_line};
use crate::{Error, Result};

/// Atoms closer than this are linked, in 0.001 A.
pub(super) const LINK: i64 = 2_000;

/// Runs beyond this many atoms in a residue start another, and links are looked
/// for among so many. No residue is that large; it bounds both searches.
pub(super) const RESIDUE_ATOMS: usize = 1_000;

/// Residues beyond this many in a row with one number are not compared.
const SITE_RESIDUES: usize = 8;

/// A residue that may be polymer.
struct Candidate {
    /// The first of its runs; [`Selector::next`] leads to the others.
    head: u32,
    tail: u32,
    /// Atoms in all its runs.
    atoms: usize,
    component: Component,
    needs_link: bool,
}

/// Reusable memory of the selection.
#[derive(Default)]
pub(super) struct Selector {
    candidates: Vec<Candidate>,
    /// By run of the model: the next run of its residue.
    next: Vec<u32>,
    /// By chain: the highest residue number so far in the model. What is beyond it is new.
    highest: PerModel<Option<i32>>,
    /// By chain and by accession of the file: its index in the structure, once used.
    chains: PerModel<u32>,
    accessions: PerModel<u32>,
    /// The latest candidate of each name, filled when a number comes again.
    by_name: HashMap<(Number, Text8), u32>,
    /// How many candidates `by_name` knows.
    named: usize,
    conformers: Conformers,
}

/// Chain, number, insertion code: a residue but for the component.
type Number = (u32, Option<i32>, u8);

const NONE: u32 = u32::MAX;

/// A model of a file.
#[derive(Clone, Copy)]
struct Model<'a> {
    table: &'a AtomTable,
    runs: &'a [Run],
}

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
        self.highest.resize(table.chains.len());
        self.chains.resize(table.chains.len());
        self.accessions.resize(table.accessions.len());
        let references = References::new(&table.references);
        let mut structures = Vec::with_capacity(table.models.len());
        let mut has_polymer = false;
        for runs in table.runs.chunk_by(|a, b| a.model == b.model) {
            let model = Model { table, runs };
            self.find_candidates(model);
            self.drop_unlinked(model);
            let mut heads = self
                .candidates
                .iter()
                .map(|candidate| &runs[candidate.head as usize]);
            if let Some(run) = heads.find(|run| run.seq.is_none()) {
                let message = "a polymer residue has no number";
                return Err(at_line(text, run.offset as usize, message));
            }
            has_polymer |= self.has_heavy_atoms(model);
            structures.push(self.build(model, &references, options)?);
        }
        if !has_polymer {
            let message = "no polymer residues: only water, ligands or unknown components";
            return Err(Error::input(message));
        }
        Ok(structures)
    }

    fn has_heavy_atoms(&self, model: Model) -> bool {
        let mut atoms = self
            .candidates
            .iter()
            .flat_map(|candidate| self.atoms(model, candidate));
        atoms.any(|atom| atom.element != HYDROGEN)
    }

    /// Rule 1, and what of rule 2 the names decide.
    fn find_candidates(&mut self, model: Model) {
        self.candidates.clear();
        self.next.clear();
        self.next.resize(model.runs.len(), NONE);
        self.highest.clear();
        self.by_name.clear();
        self.named = 0;
        for (at, run) in (0..).zip(model.runs) {
            let Some((component, needs_link)) = classify(model.table, run) else {
                continue;
            };
            let atoms = run.atoms.len();
            if let Some(known) = self.find(model, run) {
                let known = &mut self.candidates[known as usize];
                self.next[known.tail as usize] = at;
                known.tail = at;
                known.atoms += atoms;
            } else {
                let (head, tail) = (at, at);
                self.candidates.push(Candidate {
                    head,
                    tail,
                    atoms,
                    component,
                    needs_link,
                });
            }
            let highest = self.highest.get(run.chain).flatten().max(run.seq);
            self.highest.set(run.chain, highest);
        }
    }

    /// The candidate that a run goes on with.
    fn find(&mut self, model: Model, run: &Run) -> Option<u32> {
        if run.seq > self.highest.get(run.chain).flatten() {
            return None;
        }
        for (at, candidate) in self.candidates.iter().enumerate().skip(self.named) {
            let head = &model.runs[candidate.head as usize];
            self.by_name.insert((number(head), head.comp), at as u32);
        }
        self.named = self.candidates.len();
        let &found = self.by_name.get(&(number(run), run.comp))?;
        let known = &self.candidates[found as usize];
        if known.atoms + run.atoms.len() > RESIDUE_ATOMS {
            return None;
        }
        let repeats = |atom: &Atom| {
            let is = |other: &Atom| (other.name, other.altloc) == (atom.name, atom.altloc);
            self.atoms(model, known).any(is)
        };
        (!model.table.atoms_of(run).iter().any(repeats)).then_some(found)
    }

    /// The rest of rule 2.
    fn drop_unlinked(&mut self, model: Model) {
        if !self.candidates.iter().any(|candidate| candidate.needs_link) {
            return;
        }
        let kept: Vec<bool> = (0..self.candidates.len())
            .map(|at| !self.candidates[at].needs_link || self.is_linked(model, at))
            .collect();
        let mut kept = kept.into_iter();
        self.candidates.retain(|_| kept.next().unwrap_or(false));
    }

    fn is_linked(&self, model: Model, at: usize) -> bool {
        let before = self.neighbours(model, at, (0..at).rev());
        let after = self.neighbours(model, at, at + 1..self.candidates.len());
        before.iter().any(|&other| self.is_bonded(model, other, at))
            || after.iter().any(|&other| self.is_bonded(model, at, other))
    }

    /// The candidates of the same chain at the number that follows in `order`:
    /// several where they differ in the component only.
    fn neighbours(
        &self,
        model: Model,
        at: usize,
        order: impl Iterator<Item = usize>,
    ) -> Vec<usize> {
        let number_of = |at: usize| number(&model.runs[self.candidates[at].head as usize]);
        let this = number_of(at);
        let mut others = order
            .take(SITE_RESIDUES)
            .take_while(|&other| number_of(other).0 == this.0)
            .skip_while(|&other| number_of(other) == this)
            .peekable();
        let next = others.peek().map(|&other| number_of(other));
        others
            .take_while(|&other| Some(number_of(other)) == next)
            .collect()
    }

    /// Whether the backbone goes on from one candidate to another.
    fn is_bonded(&self, model: Model, from: usize, to: usize) -> bool {
        const BONDS: [(Text8, Text8); 3] = [
            (*b"C       ", *b"N       "),
            (*b"O3'     ", *b"P       "),
            (*b"O3*     ", *b"P       "),
        ];
        let named = |at: usize, name: Text8| {
            let atoms = self.atoms(model, &self.candidates[at]).take(RESIDUE_ATOMS);
            atoms.filter(move |atom| atom.name == name)
        };
        BONDS.iter().any(|&(end, start)| {
            named(from, end).any(|a| named(to, start).any(|b| is_within(a.xyz, b.xyz, LINK)))
        })
    }

    /// Rules 3 to 5.
    fn build(
        &mut self,
        model: Model,
        references: &References,
        options: ReadOptions,
    ) -> Result<Structure> {
        let atoms = self
            .candidates
            .iter()
            .map(|candidate| candidate.atoms)
            .sum();
        let number = model.runs[0].model;
        let places = [&mut self.chains, &mut self.accessions].map(std::mem::take);
        let mut builder = Builder::new(model.table, references, number, places);
        builder.reserve(self.candidates.len(), atoms)?;
        for rows in [true, false] {
            let mut at = 0;
            while at < self.candidates.len() {
                let site = self.site(model, at);
                at = site.end;
                let wanted = match self.candidates[site.start].component.kind {
                    Kind::Amino => rows,
                    Kind::Nucleotide => !rows && options.nucleic,
                    Kind::Cap => !rows,
                };
                if wanted {
                    self.add_site(model, site, &mut builder);
                }
            }
            if rows {
                builder.end_rows();
            }
        }
        let (structure, places) = builder.finish(options.b_factor_kind);
        [self.chains, self.accessions] = places;
        Ok(structure)
    }

    /// Rule 3: the candidates that share the site of candidate `at`, the first
    /// of it.
    fn site(&self, model: Model, at: usize) -> Range<usize> {
        let number_of = |at: usize| number(&model.runs[self.candidates[at].head as usize]);
        let same_number = (at + 1..self.candidates.len())
            .take(SITE_RESIDUES)
            .take_while(|&other| number_of(other) == number_of(at))
            .count();
        let mut end = at + 1;
        if same_number > 0 {
            let mut taken = self.altlocs(model, at);
            while end <= at + same_number {
                let altlocs = self.altlocs(model, end);
                if taken
                    .iter()
                    .zip(altlocs)
                    .any(|(taken, more)| taken & more != 0)
                {
                    break;
                }
                taken
                    .iter_mut()
                    .zip(altlocs)
                    .for_each(|(taken, more)| *taken |= more);
                end += 1;
            }
        }
        at..end
    }

    /// The altlocs of a candidate, one bit each; none is one of them.
    fn altlocs(&self, model: Model, at: usize) -> [u64; 4] {
        let mut bits = [0; 4];
        for atom in self.atoms(model, &self.candidates[at]) {
            bits[usize::from(atom.altloc / 64)] |= 1 << (atom.altloc % 64);
        }
        bits
    }

    /// Rule 4.
    fn add_site(&mut self, model: Model, site: Range<usize>, builder: &mut Builder) {
        let first = &self.candidates[site.start];
        let run = &model.runs[first.head as usize];
        if site.len() == 1 && first.head == first.tail && run.plain {
            builder.add(run, first.component, model.table.atoms_of(run));
            return;
        }
        let mut conformers = std::mem::take(&mut self.conformers);
        conformers.clear();
        for (residue, candidate) in self.candidates[site.clone()].iter().enumerate() {
            conformers.add(residue, self.atoms(model, candidate));
        }
        if let Some((residue, atoms)) = conformers.choose() {
            let chosen = &self.candidates[site.start + residue];
            let run = &model.runs[chosen.head as usize];
            builder.add(run, chosen.component, atoms);
        }
        self.conformers = conformers;
    }

    fn atoms<'a>(
        &'a self,
        model: Model<'a>,
        candidate: &Candidate,
    ) -> impl Iterator<Item = &'a Atom> {
        let next = |&at: &u32| Some(self.next[at as usize]).filter(|&at| at != NONE);
        std::iter::successors(Some(candidate.head), next)
            .flat_map(move |at| model.table.atoms_of(&model.runs[at as usize]))
    }
}

fn number(run: &Run) -> Number {
    (run.chain, run.seq, run.ins_code)
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
            let given = || table.components.get(&run.comp).copied();
            let unknown = || Component {
                kind: given().or(units).unwrap_or(Kind::Cap),
                parent: *b"        ",
                aa: b'X',
                template: 0,
            };
            Some((known.unwrap_or_else(unknown), false))
        }
    }
}

/// Whether two positions are closer than `distance`, in 0.001 A. Exact.
pub(super) fn is_within(a: [i32; 3], b: [i32; 3], distance: i64) -> bool {
    let square = |axis: usize| (i64::from(a[axis]) - i64::from(b[axis])).pow(2);
    square(0) + square(1) + square(2) < distance * distance
}
