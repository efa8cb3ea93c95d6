//! The residues that are no polymer: ligands, ions and glycans, and apart from them water.
//!
//! Ligands are all residues that [`super::polymer`] leaves out, but for water ([`WATER`]) and, unless they are
//! kept, agents of crystallisation ([`AGENTS`]). A site has the conformer that
//! [`super::conformer`] chooses.

use std::collections::HashSet;
use std::sync::OnceLock;

use super::atom_table::{AtomLine, AtomRun};
use super::conformer::Conformers;
use super::ions;
use super::links::LinkFinder;
use super::model::{Ligand, LigandAtom, LigandKind, Structure};
use super::residue_runs::{ModelRuns, ResidueRuns};
use super::text8::{Text8, text8};

/// Water, by the names of the wwPDB and of simulation packages.
#[rustfmt::skip]
const WATER: &[&str] = &[
    "HOH", "DOD", "WAT", "H2O", "OH2", "SOL", "SPC", "TIP", "TIP2", "TIP3", "TIP4", "TIP5", "TP3",
    "TP4", "TP5", "T3P", "T4P", "HO4", "OPC", "OPC3", "SPCE", "SWM4", "SWM6", "T4E", "FB3", "FB4",
    "TIPS", "TP3M", "TP4E",
];

/// What crystallisation, cryoprotection and buffers leave behind.
#[rustfmt::skip]
const AGENTS: &[&str] = &[
    "144", "1PE", "2PE", "7PE", "ACT", "ACY", "AZI", "BE7", "BME", "BR", "BTB", "BU1", "BU2",
    "BU3", "CAC", "CIT", "CL", "CO3", "CXE", "DIO", "DMF", "DMS", "DTD", "DTT", "DTV", "EDO",
    "EEE", "EOH", "EPE", "FLC", "FMT", "GOL", "IMD", "IOD", "IPA", "IPH", "JEF", "LDA", "MES",
    "MLA", "MLI", "MOH", "MPD", "MPO", "MRD", "MXE", "N8E", "NH4", "NHE", "NO3", "OXL", "P33",
    "P3G", "P4C", "P4G", "P6G", "PE3", "PE4", "PE5", "PE7", "PE8", "PEG", "PEU", "PG0", "PG4",
    "PG5", "PG6", "PGE", "PGO", "PO4", "PGR", "SCN", "SO4", "SPD", "SPM", "TAM", "TAR", "TBU",
    "TLA", "TMA", "TRS", "XPE",
];

/// The atomic number of oxygen.
const OXYGEN: u8 = 8;

/// Chooses the ligands of a model. The memory is for reuse.
#[derive(Default)]
pub(super) struct LigandSelector {
    residues: ResidueRuns<()>,
    conformers: Conformers,
}

impl LigandSelector {
    /// Prepares for the models of a file with `chains` chains.
    pub(super) fn start_file(&mut self, chains: usize) {
        self.residues.start_file(chains);
    }

    /// Adds the ligands of a model to its structure, with agents of crystallisation if
    /// `keeps_agents`. Their radii are of the structure's set. `polymer` has the offsets of the runs that are polymer.
    pub(super) fn add(
        &mut self,
        model: ModelRuns,
        polymer: &HashSet<u32>,
        keeps_agents: bool,
        structure: &mut Structure,
    ) {
        let is_left_out = |run: &AtomRun| is_water(run.comp) || (!keeps_agents && is_agent(run));
        let is_ligand = |run: &AtomRun| !polymer.contains(&run.offset) && !is_left_out(run);
        self.residues
            .gather(model, |run| is_ligand(run).then_some(()));
        let mut links = LinkFinder::default();
        for residue in &self.residues.residues {
            self.conformers.clear();
            let atoms = self.residues.atoms(model, residue);
            self.conformers.add(0, atoms);
            let Some((_, atoms)) = self.conformers.choose() else {
                continue;
            };
            let run = &model.runs[residue.head as usize];
            links.add(model, run, is_saccharide(run.comp), atoms);
            // Its molecule is set below, when all ligands are known.
            let ligand = ligand_of(model, run, atoms, structure);
            structure.ligands.push(ligand);
        }
        let linked = links.find(model, polymer, structure);
        let found = linked.molecule.into_iter().zip(linked.is_glycan);
        for (ligand, (molecule, is_glycan)) in structure.ligands.iter_mut().zip(found) {
            ligand.molecule = molecule;
            if is_glycan {
                ligand.kind = LigandKind::Glycan;
            }
        }
    }

    /// Adds the waters of a model to its structure.
    pub(super) fn add_waters(&mut self, model: ModelRuns, structure: &mut Structure) {
        self.residues
            .gather(model, |run| is_water(run.comp).then_some(()));
        for residue in &self.residues.residues {
            self.conformers.clear();
            self.conformers.add(0, self.residues.atoms(model, residue));
            let chosen = self.conformers.choose();
            let mut atoms = chosen.iter().flat_map(|(_, atoms)| atoms.iter());
            let Some(oxygen) = atoms.find(|atom| atom.element == OXYGEN) else {
                continue;
            };
            let run = &model.runs[residue.head as usize];
            structure.waters.push(Ligand {
                molecule: structure.waters.len() as u32,
                ..ligand_of(model, run, std::slice::from_ref(oxygen), structure)
            });
        }
    }
}

/// A residue that is no polymer, with these of its atoms, as a molecule of its own.
fn ligand_of(model: ModelRuns, run: &AtomRun, atoms: &[AtomLine], structure: &Structure) -> Ligand {
    // The polymer's pLDDT from 0 to 1 has been scaled already.
    let b_factor_scale = if structure.plddt_scaled { 100.0 } else { 1.0 };
    let radii = structure.radii;
    let atom = |atom: &AtomLine| LigandAtom {
        xyz: atom.xyz,
        element: atom.element,
        class: radii.class_of_ligand_atom(run.comp, atom.name, atom.element),
        b_factor: atom.b_factor * b_factor_scale,
        details: atom.details(),
    };
    let names = model.table.chain_names(run.chain);
    Ligand {
        auth_asym_id: names.auth_asym_id,
        label_asym_id: names.label_asym_id,
        auth_seq_id: run.seq,
        ins_code: run.ins_code,
        comp_id: run.comp,
        kind: match atoms.len() {
            _ if is_agent(run) => LigandKind::Agent,
            1 => LigandKind::Ion,
            _ => LigandKind::Ligand,
        },
        molecule: 0,
        bonds: model.table.stated_bonds.among(atoms),
        atoms: atoms.iter().map(atom).collect(),
    }
}

/// Whether a component is water.
pub(super) fn is_water(comp: Text8) -> bool {
    static NAMES: OnceLock<HashSet<Text8>> = OnceLock::new();
    NAMES.get_or_init(|| names(WATER)).contains(&comp)
}

/// Whether a residue is an agent of crystallisation. A single atom may have a simulation program's name
/// of one: CLA, which is CL.
fn is_agent(run: &AtomRun) -> bool {
    is_agent_name(run.comp)
        || (run.atoms.len() == 1 && ions::symbol(run.comp).is_some_and(is_agent_name))
}

/// Whether a component is an agent of crystallisation.
pub(super) fn is_agent_name(comp: Text8) -> bool {
    static NAMES: OnceLock<HashSet<Text8>> = OnceLock::new();
    NAMES.get_or_init(|| names(AGENTS)).contains(&comp)
}

fn names(list: &[&str]) -> HashSet<Text8> {
    list.iter().map(|name| text8(name.as_bytes())).collect()
}

/// Whether the component dictionary calls a component a saccharide. `scripts/make_components.py`
/// makes the list.
pub(super) fn is_saccharide(comp: Text8) -> bool {
    static IDS: OnceLock<HashSet<Text8>> = OnceLock::new();
    let ids = || {
        let lines = include_str!("saccharides.txt").lines();
        let ids = lines.filter(|line| !line.starts_with('#'));
        ids.map(|id| text8(id.as_bytes())).collect()
    };
    IDS.get_or_init(ids).contains(&comp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_have_the_components_that_they_should() {
        for comp in [
            "HOH", "TIP3", "GOL", "SO4", "CL", "HEM", "ZN", "NAG", "ATP", "",
        ] {
            let is = |known: &[&str]| known.contains(&comp);
            let name = text8(comp.as_bytes());
            assert_eq!(is_water(name), is(&["HOH", "TIP3"]), "{comp}");
            assert_eq!(is_agent_name(name), is(&["GOL", "SO4", "CL"]), "{comp}");
            assert!(!is_saccharide(name) || !is_agent_name(name), "{comp}");
        }
        for comp in ["NAG", "MAN", "FUC", "GLC", "SIA"] {
            assert!(is_saccharide(text8(comp.as_bytes())), "{comp}");
        }
        for comp in ["HEM", "ALA", "GOL", ""] {
            assert!(!is_saccharide(text8(comp.as_bytes())), "{comp}");
        }
    }
}
