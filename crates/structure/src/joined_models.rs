//! Models that are parts of one assembly: how they are recognised, and how they are made one structure.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::assembly;
use super::atom_table::{AtomLine, AtomRun, AtomTable};
use super::cells::Cells;
use super::checks::Check;
use super::element::is_heavy;
use super::model::Structure;
use super::residue_runs::{ModelRuns, RESIDUE_ATOMS_MAX};
use super::structure_builder::{SAME_PLACE, distance, is_within};
use crate::{Error, Result};

/// How many atoms of the second model are compared with the first model: a dozen residues show
/// whether it is a copy, and a reader of the first model alone does not look farther.
pub(super) const COMPARED_ATOMS: usize = 100;

/// The fewest heavy atoms of the second model that are compared; fewer show nothing.
const COMPARED_ATOMS_MIN: usize = 10;

/// Distances within two copies of a molecule differ by less than this on average, in 0.001 A. The
/// models of an ensemble differ by more, or are in one place.
const COPY_DIFFERENCE_MAX: f64 = 500.0;

/// The names of chains of models that are joined: the second chain `A` is `A-2`. Copies are counted by
/// author's ids, over all atoms of the file, so that the names do not depend on what is read of it.
pub(super) struct JoinedNames {
    /// The number of each chain's copy, by its model and author's id, unless it is the first.
    copies: HashMap<(usize, Arc<str>), u32>,
}

impl JoinedNames {
    /// The names of the chains of a file's residues, each with the index of its model and the author's
    /// id. Models come one after the other.
    pub(super) fn new<'a>(chains: impl Iterator<Item = (usize, &'a Arc<str>)> + Clone) -> Self {
        let known: HashSet<&Arc<str>> = chains.clone().map(|(_, name)| name).collect();
        // By id: the last model that has it, and the number of its copy there.
        let mut last: HashMap<&Arc<str>, (usize, u32)> = HashMap::new();
        let mut copies = HashMap::new();
        for (model, name) in chains {
            let (last_model, number) = last.entry(name).or_insert((model, 1));
            if *last_model != model {
                *last_model = model;
                *number += 1;
                // A file of an assembly may have a chain of that name already.
                while known.contains(&assembly::copy_name(name, *number)) {
                    *number += 1;
                }
                copies.insert((model, Arc::clone(name)), *number);
            }
        }
        JoinedNames { copies }
    }

    /// Gives a chain its names in the joined structure. The label id has the number of the author's id.
    pub(super) fn rename(&self, model: usize, auth: &mut Arc<str>, label: &mut Option<Arc<str>>) {
        let number = self.copies.get(&(model, Arc::clone(auth)));
        assembly::name_copy(auth, label, number.copied().unwrap_or(1));
    }
}

/// Refuses to join models that are in one place, as those of an ensemble: at least a tenth of the second
/// model's heavy atoms are within 1 A of the atom of the same residue number and name in the first. Of
/// further models none is compared. The table's runs are sorted by model.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind::Input): the models are an ensemble.
pub(super) fn refuse_ensemble(table: &AtomTable) -> Result<()> {
    let Some([first, second]) = first_models(table) else {
        return Ok(());
    };
    let runs = first.runs.iter().map(|run| (first.number(run), run));
    let known: HashMap<_, &AtomRun> = runs.collect();
    let (mut atoms, mut in_place) = (0, 0);
    for run in second.runs {
        let first_run = known.get(&second.number(run));
        let atoms_of_run = second.table.atoms_of(run).iter().take(RESIDUE_ATOMS_MAX);
        for atom in atoms_of_run.filter(|atom| is_heavy(atom.element)) {
            let place = first_run.and_then(|first_run| namesake(first, first_run, atom));
            atoms += 1;
            in_place += usize::from(place.is_some_and(|xyz| is_within(xyz, atom.xyz, SAME_PLACE)));
        }
    }
    if in_place == 0 || in_place * 10 < atoms {
        return Ok(());
    }
    let message =
        "the models lie on top of each other, like those of an NMR ensemble, and cannot be joined";
    Err(Error::input(message).fix("read each by itself with models = \"all\""))
}

/// The first two models of a table whose models come one after the other.
fn first_models(table: &AtomTable) -> Option<[ModelRuns<'_>; 2]> {
    let mut models = table.runs.chunk_by(|a, b| a.model == b.model);
    let mut next = || {
        Some(ModelRuns {
            table,
            runs: models.next()?,
        })
    };
    Some([next()?, next()?])
}

/// The position of the atom of a run that has the name and altloc of `atom`.
fn namesake(model: ModelRuns, run: &AtomRun, atom: &AtomLine) -> Option<[i32; 3]> {
    let mut atoms = model.table.atoms_of(run).iter().take(RESIDUE_ATOMS_MAX);
    let found = atoms.find(|other| (other.name, other.altloc) == (atom.name, atom.altloc));
    Some(found?.xyz)
}

/// Joins the models of a file into one structure: residues in the order of the models, and then the atoms
/// without a row. Ligands, waters, accessions, findings and rounded atoms are those of all models, pLDDTs are
/// scaled if those of any are, and the other fields are those of the first.
///
/// # Errors
/// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if there is no memory for the atoms.
pub(super) fn join(mut models: Vec<Structure>, table: &AtomTable) -> Result<Vec<Structure>> {
    if models.len() < 2 {
        return Ok(models);
    }
    let ids: Vec<Arc<str>> = table
        .chains
        .iter()
        .map(|chain| table.names.get(chain.auth))
        .collect();
    let chains = table.runs.iter();
    let names = JoinedNames::new(chains.map(|run| (run.model as usize, &ids[run.chain as usize])));
    let mut accessions: Vec<Arc<str>> = Vec::new();
    let mut accession_numbers: HashMap<Arc<str>, u32> = HashMap::new();
    let (mut ligands, mut waters) = (Vec::new(), Vec::new());
    let mut molecules = 0;
    for (index, model) in models.iter_mut().enumerate() {
        for chain in &mut model.chains {
            names.rename(index, &mut chain.auth_asym_id, &mut chain.label_asym_id);
        }
        let numbers = model.uniprot.iter().map(|accession| {
            *accession_numbers
                .entry(Arc::clone(accession))
                .or_insert_with(|| {
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
            names.rename(index, &mut ligand.auth_asym_id, &mut ligand.label_asym_id);
            ligand.molecule += first;
            molecules = molecules.max(ligand.molecule + 1);
            ligands.push(ligand);
        }
        for mut water in std::mem::take(&mut model.waters) {
            names.rename(index, &mut water.auth_asym_id, &mut water.label_asym_id);
            waters.push(water);
        }
    }
    let mut joined = assembly::concatenate(&models)?;
    joined.uniprot = accessions;
    joined.ligands = ligands;
    joined.waters = waters;
    joined.plddt_scaled = models.iter().any(|model| model.plddt_scaled);
    joined.rounded_atoms = models.iter().map(|model| model.rounded_atoms).sum();
    for model in &models[1..] {
        joined.findings.extend(&model.findings);
    }
    Ok(vec![joined])
}

/// Notes in the table's findings if the first two models look like parts of one assembly. The table's runs
/// are sorted by model.
pub(super) fn note_assembly(table: &mut AtomTable) {
    let peeked = table.second_model.as_deref();
    let models = match peeked {
        Some(second) => Some([table, second].map(|table| ModelRuns {
            table,
            runs: &table.runs,
        })),
        None if table.models.len() > 1 => first_models(table),
        None => None,
    };
    if models.is_some_and(|[first, second]| are_parts_of_assembly(first, second)) {
        let place = || "the second model".to_owned();
        table.findings.add(Check::ModelsOfAssembly, 1, place);
    }
}

impl<'a> ModelRuns<'a> {
    /// The author's chain id, number and insertion code of a run.
    fn number(&self, run: &AtomRun) -> (Arc<str>, Option<i32>, u8) {
        let chain = &self.table.chains[run.chain as usize];
        let name = self.table.names.get(chain.auth);
        (name, run.seq, run.ins_code)
    }

    fn atoms(&self) -> impl Iterator<Item = (&'a AtomRun, &'a AtomLine)> + use<'a> {
        let table = self.table;
        self.runs.iter().flat_map(move |run| {
            let atoms = table.atoms_of(run).iter();
            atoms.map(move |atom| (run, atom))
        })
    }
}

/// Whether two models look like parts of one assembly, by the first atoms of the second: most of their
/// residues' numbers are in the first model too, they are of other components or a copy, with nearly the
/// same distances, and no atom of the first model is in their place. The models of an ensemble are in one
/// place, or differ in their distances.
fn are_parts_of_assembly(first: ModelRuns, second: ModelRuns) -> bool {
    let compared = second.atoms().take(COMPARED_ATOMS);
    let compared = compared.filter(|(_, atom)| is_heavy(atom.element));
    let compared: Vec<(&AtomRun, &AtomLine)> = compared.collect();
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
        let first_run = *known.get(&second.number(run))?;
        Some((first_run, run, atom))
    });
    let pairs: Vec<(&AtomRun, &AtomRun, &AtomLine)> = pairs.collect();
    if pairs.len() * 2 <= compared.len() {
        return false;
    }
    let has_other_components = pairs.iter().any(|(one, other, _)| one.comp != other.comp);
    if !has_other_components && !are_copies(first, &pairs) {
        return false;
    }
    let mut places: Cells<()> = Cells::default();
    compared
        .iter()
        .for_each(|(_, atom)| places.add(atom.xyz, ()));
    let mut atoms = first.atoms().filter(|(_, atom)| is_heavy(atom.element));
    !atoms.any(|(_, atom)| places.near(atom.xyz, SAME_PLACE).next().is_some())
}

/// Whether the atoms of a model are a copy of their namesakes in the `first` model: in both models, the
/// distances of all atoms from the first of them are nearly equal. Each pair has the residue in the first
/// model, the residue in the other model, and its atom.
fn are_copies(first: ModelRuns, pairs: &[(&AtomRun, &AtomRun, &AtomLine)]) -> bool {
    let atoms = pairs
        .iter()
        .filter_map(|(run, _, atom)| Some((namesake(first, run, atom)?, atom.xyz)));
    let atoms: Vec<([i32; 3], [i32; 3])> = atoms.collect();
    let Some(&(one, other)) = atoms.first() else {
        return false;
    };
    let differences = atoms
        .iter()
        .map(|&(a, b)| (distance(one, a) - distance(other, b)).abs());
    differences.sum::<f64>() < COPY_DIFFERENCE_MAX * atoms.len() as f64
}
