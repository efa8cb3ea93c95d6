//! Gathers the runs of a model into residues.
//!
//! A residue is a chain, a number, an insertion code and a component. A later run with the same
//! four belongs to the residue (hydrogens at the end of a chain, altlocs sorted together), unless it
//! repeats an atom: then the file uses a number twice, and the run is another residue.

use std::collections::HashMap;
use std::ops::Range;

use super::atom_table::{AtomLine, AtomRun, AtomTable};
use super::text8::Text8;

/// The most atoms of a residue of several runs: a run that would exceed it starts another residue. A
/// single run may have more, of which searches look at the first so many. No residue of the wwPDB is that
/// large, and the time for searches within a residue is bounded.
pub(super) const RESIDUE_ATOMS_MAX: usize = 1_000;

/// The runs of one model of a file.
#[derive(Clone, Copy)]
pub(super) struct ModelRuns<'a> {
    pub table: &'a AtomTable,
    pub runs: &'a [AtomRun],
}

impl<'a> ModelRuns<'a> {
    /// The runs `range` of the table, which are those of a model.
    pub(super) fn new(table: &'a AtomTable, range: Range<usize>) -> Self {
        let runs = &table.runs[range];
        ModelRuns { table, runs }
    }
}

/// A residue, with `data` of the caller.
pub(super) struct GatheredResidue<T> {
    /// The first of its runs; [`ResidueRuns::next`] leads to the others.
    pub head: u32,
    tail: u32,
    /// Atoms in all its runs.
    pub atoms: usize,
    pub data: T,
}

/// The residues of a model, in the order of their first atoms. The memory is for reuse.
pub(super) struct ResidueRuns<T> {
    pub residues: Vec<GatheredResidue<T>>,
    /// For each run of the model, the next run of its residue.
    next: Vec<u32>,
    /// For each chain, the highest residue number so far: a run beyond it is a new residue.
    highest: PerModel<Option<i32>>,
    /// The latest residue of each name, filled when a number occurs again.
    by_name: HashMap<(ResidueNumber, Text8), u32>,
    /// How many residues `by_name` has been filled with.
    named: usize,
}

/// Chain, number and insertion code: a residue's name without the component.
pub(super) type ResidueNumber = (u32, Option<i32>, u8);

const NONE: u32 = u32::MAX;

impl<T> Default for ResidueRuns<T> {
    fn default() -> Self {
        ResidueRuns {
            residues: Vec::new(),
            next: Vec::new(),
            highest: PerModel::default(),
            by_name: HashMap::new(),
            named: 0,
        }
    }
}

impl<T> GatheredResidue<T> {
    /// Whether the residue is a single run.
    pub(super) fn is_one_run(&self) -> bool {
        self.head == self.tail
    }
}

impl<T> ResidueRuns<T> {
    /// Prepares for the models of a file with `chains` chains.
    pub(super) fn start_file(&mut self, chains: usize) {
        self.highest.resize(chains);
    }

    /// Gathers those runs of a model for which `data_of` returns data.
    pub(super) fn gather(&mut self, model: ModelRuns, data_of: impl Fn(&AtomRun) -> Option<T>) {
        self.residues.clear();
        self.next.clear();
        self.next.resize(model.runs.len(), NONE);
        self.highest.clear();
        self.by_name.clear();
        self.named = 0;
        for (index, run) in (0..).zip(model.runs) {
            let Some(data) = data_of(run) else {
                continue;
            };
            let atoms = run.atoms.len();
            if let Some(known) = self.find(model, run) {
                let known = &mut self.residues[known as usize];
                self.next[known.tail as usize] = index;
                known.tail = index;
                known.atoms += atoms;
            } else {
                let (head, tail) = (index, index);
                self.residues.push(GatheredResidue {
                    head,
                    tail,
                    atoms,
                    data,
                });
            }
            let highest = self.highest.get(run.chain).flatten().max(run.seq);
            self.highest.set(run.chain, highest);
        }
    }

    /// The residue that a run continues; `None` if it starts one. Most runs have a number above all
    /// before, and need no table of names.
    fn find(&mut self, model: ModelRuns, run: &AtomRun) -> Option<u32> {
        if run.seq > self.highest.get(run.chain).flatten() {
            return None;
        }
        for (index, residue) in self.residues.iter().enumerate().skip(self.named) {
            let head = &model.runs[residue.head as usize];
            let name = (number_of(head), head.comp);
            self.by_name.insert(name, index as u32);
        }
        self.named = self.residues.len();
        let &found = self.by_name.get(&(number_of(run), run.comp))?;
        let known = &self.residues[found as usize];
        if known.atoms + run.atoms.len() > RESIDUE_ATOMS_MAX {
            return None;
        }
        let repeats = |atom: &AtomLine| {
            let is = |other: &AtomLine| (other.name, other.altloc) == (atom.name, atom.altloc);
            self.atoms(model, known).any(is)
        };
        (!model.table.atoms_of(run).iter().any(repeats)).then_some(found)
    }

    /// The runs of a residue in file order.
    pub(super) fn runs<'a>(
        &'a self,
        model: ModelRuns<'a>,
        residue: &GatheredResidue<T>,
    ) -> impl Iterator<Item = &'a AtomRun> {
        let next = |&index: &u32| Some(self.next[index as usize]).filter(|&index| index != NONE);
        let runs = std::iter::successors(Some(residue.head), next);
        runs.map(move |index| &model.runs[index as usize])
    }

    /// The atoms of a residue in file order.
    pub(super) fn atoms<'a>(
        &'a self,
        model: ModelRuns<'a>,
        residue: &GatheredResidue<T>,
    ) -> impl Iterator<Item = &'a AtomLine> {
        let runs = self.runs(model, residue);
        runs.flat_map(move |run| model.table.atoms_of(run))
    }

    /// The number of a residue, which is an index into `residues`.
    pub(super) fn number(&self, model: ModelRuns, residue: usize) -> ResidueNumber {
        number_of(&model.runs[self.residues[residue].head as usize])
    }
}

fn number_of(run: &AtomRun) -> ResidueNumber {
    (run.chain, run.seq, run.ins_code)
}

/// Optional values for the chains or accessions of a file. They are cleared for each model in
/// constant time.
#[derive(Default)]
pub(super) struct PerModel<T> {
    /// The model that set a value, and the value.
    values: Vec<(u32, T)>,
    model: u32,
}

impl<T: Copy + Default> PerModel<T> {
    /// Makes room for `len` values, and clears all.
    pub(super) fn resize(&mut self, len: usize) {
        self.values.clear();
        self.values.resize(len, (0, T::default()));
        self.model = 1;
    }

    /// Makes room for `len` values, and keeps all.
    pub(super) fn grow(&mut self, len: usize) {
        self.values
            .resize(len.max(self.values.len()), (0, T::default()));
    }

    /// Clears all values.
    pub(super) fn clear(&mut self) {
        self.model += 1;
    }

    /// The value at `index`, if it is set.
    #[inline]
    pub(super) fn get(&self, index: u32) -> Option<T> {
        let (model, value) = self.values[index as usize];
        (model == self.model).then_some(value)
    }

    #[inline]
    pub(super) fn set(&mut self, index: u32, value: T) {
        self.values[index as usize] = (self.model, value);
    }
}
