//! Models that are parts of one assembly: how they are recognised, and how they are made one structure.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::assembly;
use super::atom_table::{Atom, AtomTable, Run};
use super::cells::Cells;
use super::chain_split::SAME_PLACE;
use super::checks::Check;
use super::element::is_heavy;
use super::model::Structure;
use super::residue_runs::ModelRuns;
use crate::Result;

/// How many atoms of the second model are compared with the first model.
pub(super) const COMPARED_ATOMS: usize = 100;

/// Fewer heavy atoms say nothing about how two models differ.
const COMPARED_ATOMS_MIN: usize = 10;

/// Distances within two copies of a molecule differ by less than this, in 0.001 A: coordinates are
/// rounded to 0.001 A.
const RIGID: f64 = 20.0;

/// The names of chains of models that are joined: the second chain `A` is `A-2`.
#[derive(Default)]
pub(super) struct JoinedNames {
    /// How many models before this one have each author's id, and each label id.
    before: [HashMap<Arc<str>, u32>; 2],
    /// Those of this model.
    of_model: [HashSet<Arc<str>>; 2],
}

impl JoinedNames {
    /// Starts the next model.
    pub(super) fn start_model(&mut self) {
        for (before, of_model) in self.before.iter_mut().zip(&mut self.of_model) {
            for name in of_model.drain() {
                *before.entry(name).or_insert(0) += 1;
            }
        }
    }

    /// Gives a chain of the model its name in the joined structure.
    pub(super) fn rename(&mut self, auth: &mut Arc<str>, label: &mut Option<Arc<str>>) {
        self.rename_id(0, auth);
        if let Some(label) = label {
            self.rename_id(1, label);
        }
    }

    fn rename_id(&mut self, kind: usize, name: &mut Arc<str>) {
        if !self.of_model[kind].contains(name) {
            self.of_model[kind].insert(Arc::clone(name));
        }
        if let Some(copies) = self.before[kind].get(name) {
            *name = assembly::copy_name(name, copies + 1);
        }
    }
}

/// The models of a file as one structure: residues in the order of the models, and then the atoms
/// without a row. The rest is that of the first model.
///
/// # Errors
/// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if there is no memory for the atoms.
pub(super) fn join(mut models: Vec<Structure>) -> Result<Vec<Structure>> {
    if models.len() < 2 {
        return Ok(models);
    }
    let mut names = JoinedNames::default();
    let mut accessions: Vec<Arc<str>> = Vec::new();
    let mut index: HashMap<Arc<str>, u32> = HashMap::new();
    let mut ligands = Vec::new();
    let mut molecules = 0;
    for model in &mut models {
        names.start_model();
        for chain in &mut model.chains {
            names.rename(&mut chain.auth_asym_id, &mut chain.label_asym_id);
        }
        let numbers = model.uniprot.iter().map(|accession| {
            *index.entry(Arc::clone(accession)).or_insert_with(|| {
                accessions.push(Arc::clone(accession));
                accessions.len() as u32 - 1
            })
        });
        let numbers: Vec<u32> = numbers.collect();
        let residues = model.residues.iter_mut();
        for uniprot in residues.filter_map(|residue| residue.uniprot.as_mut()) {
            uniprot.accession = numbers[uniprot.accession as usize];
        }
        let first = molecules;
        for mut ligand in std::mem::take(&mut model.ligands) {
            names.rename(&mut ligand.auth_asym_id, &mut ligand.label_asym_id);
            ligand.molecule += first;
            molecules = molecules.max(ligand.molecule + 1);
            ligands.push(ligand);
        }
    }
    let mut joined = assembly::concatenate(&models)?;
    joined.uniprot = accessions;
    joined.ligands = ligands;
    joined.plddt_scaled = models.iter().any(|model| model.plddt_scaled);
    joined.rounded_atoms = models.iter().map(|model| model.rounded_atoms).sum();
    for model in &models[1..] {
        joined.findings.extend(&model.findings);
    }
    Ok(vec![joined])
}

/// Notes in the table's findings that the first two models look like parts of one assembly.
pub(super) fn note_assembly(table: &mut AtomTable) {
    let mut models = table.runs.chunk_by(|a, b| a.model == b.model);
    let Some(first) = models.next().map(|runs| ModelRuns { table, runs }) else {
        return;
    };
    let peeked = table.second_model.as_deref();
    let second = match peeked {
        Some(table) => Some(ModelRuns {
            table,
            runs: &table.runs,
        }),
        None => models.next().map(|runs| ModelRuns { table, runs }),
    };
    if second.is_some_and(|second| are_parts_of_assembly(first, second)) {
        let place = || "the second model".to_owned();
        table.findings.add(Check::ModelsOfAssembly, 1, place);
    }
}

impl<'a> ModelRuns<'a> {
    /// The author's chain id, number and insertion code of a run.
    fn number(&self, run: &Run) -> (Arc<str>, Option<i32>, u8) {
        let chain = &self.table.chains[run.chain as usize];
        let name = self.table.names.get(chain.auth);
        (name, run.seq, run.ins_code)
    }

    fn heavy_atoms(&self) -> impl Iterator<Item = (&'a Run, &'a Atom)> + use<'a> {
        let table = self.table;
        let atoms = self.runs.iter().flat_map(move |run| {
            let atoms = table.atoms_of(run).iter();
            atoms.map(move |atom| (run, atom))
        });
        atoms.filter(|(_, atom)| is_heavy(atom.element))
    }
}

/// Whether two models look like parts of one assembly, by the first atoms of the second: most of their
/// residues' numbers are in the first model too, they are of other components or a copy, with the same
/// distances, and no atom of the first model is in their place. The models of an ensemble are in one
/// place, or differ in their distances.
fn are_parts_of_assembly(first: ModelRuns, second: ModelRuns) -> bool {
    let compared: Vec<(&Run, &Atom)> = second.heavy_atoms().take(COMPARED_ATOMS).collect();
    if compared.len() < COMPARED_ATOMS_MIN {
        return false;
    }
    let numbers = compared.iter().map(|(run, _)| run.seq);
    let range = numbers.clone().min()..=numbers.max();
    let mut known = HashMap::new();
    for run in first
        .runs
        .iter()
        .filter(|run| range.contains(&Some(run.seq)))
    {
        known.entry(first.number(run)).or_insert(run);
    }
    let pairs = compared.iter().filter_map(|&(run, atom)| {
        let of_first = *known.get(&second.number(run))?;
        Some((of_first, run, atom))
    });
    let pairs: Vec<(&Run, &Run, &Atom)> = pairs.collect();
    if pairs.len() * 2 <= compared.len() {
        return false;
    }
    let has_other_components = pairs.iter().any(|(one, other, _)| one.comp != other.comp);
    if !has_other_components && !are_copies(first, &pairs) {
        return false;
    }
    let mut places: Cells<()> = Cells::default();
    for (_, atom) in first.heavy_atoms() {
        places.add(atom.xyz, ());
    }
    let mut near = compared
        .iter()
        .flat_map(|(_, atom)| places.near(atom.xyz, SAME_PLACE));
    near.next().is_none()
}

/// Whether atoms of a model, each after its residue in the `first` model and its own, are a copy of the
/// atoms of equal names there: their distances from the first of them are equal.
fn are_copies(first: ModelRuns, pairs: &[(&Run, &Run, &Atom)]) -> bool {
    let atoms = pairs.iter().filter_map(|(run, _, atom)| {
        let mut of_first = first.table.atoms_of(run).iter();
        let is_same = |other: &&Atom| (other.name, other.altloc) == (atom.name, atom.altloc);
        Some((of_first.find(is_same)?.xyz, atom.xyz))
    });
    let atoms: Vec<([i32; 3], [i32; 3])> = atoms.collect();
    let Some(&(one, other)) = atoms.first() else {
        return false;
    };
    atoms
        .iter()
        .all(|&(a, b)| (distance(one, a) - distance(other, b)).abs() < RIGID)
}

/// In 0.001 A.
fn distance(a: [i32; 3], b: [i32; 3]) -> f64 {
    let squares = [0, 1, 2].map(|axis| (f64::from(a[axis]) - f64::from(b[axis])).powi(2));
    squares.iter().sum::<f64>().sqrt()
}
