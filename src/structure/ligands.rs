//! The residues that are no polymer: ligands, ions and glycans.
//!
//! All residues that [`super::polymer`] leaves out, but for water and agents of crystallisation
//! ([`LEFT_OUT`]). A site has the conformer that [`super::conformer`] chooses.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use super::atom_class::AtomClass;
use super::atom_table::{Entity, Run};
use super::conformer::Conformers;
use super::element::is_metal;
use super::model::{Ligand, LigandAtom, LigandKind, Structure};
use super::residue_runs::{ModelRuns, ResidueRuns};
use super::structure_builder::is_within;
use super::text8::{Text8, text8};

/// Components that are left out: water, by the names of the wwPDB and of simulation packages, then
/// what crystallisation, cryoprotection and buffers leave behind.
#[rustfmt::skip]
const LEFT_OUT: &[&str] = &[
    "HOH", "DOD", "WAT", "H2O", "OH2", "SOL", "SPC", "TIP", "TIP2", "TIP3", "TIP4", "TIP5", "TP3",
    "TP4", "TP5", "T3P", "T4P", "HO4", "OPC",
    "144", "1PE", "2PE", "7PE", "ACT", "ACY", "AZI", "BE7", "BME", "BR", "BTB", "BU1", "BU2",
    "BU3", "CAC", "CIT", "CL", "CO3", "CXE", "DIO", "DMF", "DMS", "DTD", "DTT", "DTV", "EDO",
    "EEE", "EOH", "EPE", "FLC", "FMT", "GOL", "IMD", "IOD", "IPA", "IPH", "JEF", "LDA", "MES",
    "MLA", "MLI", "MOH", "MPD", "MPO", "MRD", "MXE", "N8E", "NH4", "NHE", "NO3", "OXL", "P33",
    "P3G", "P4C", "P4G", "P6G", "PE3", "PE4", "PE5", "PE7", "PE8", "PEG", "PEU", "PG0", "PG4",
    "PG5", "PG6", "PGE", "PGO", "PO4", "PGR", "SCN", "SO4", "SPD", "SPM", "TAM", "TAR", "TBU",
    "TLA", "TMA", "TRS", "XPE",
];

/// Atoms of a sugar and of what it is linked to are closer than this, in 0.001 A.
const SUGAR_LINK: i64 = 1_700;

/// The edge of the cells in which bonds are searched is 2^11 units of 0.001 A, more than a bond.
const CELL_SHIFT: u32 = 11;

/// Atoms of a cell that are compared. No molecule has more, and files that do are not slow.
const CELL_ATOMS_MAX: usize = 32;

/// Chooses the ligands of a model. The memory is for reuse.
#[derive(Default)]
pub(super) struct LigandSelector {
    residues: ResidueRuns<()>,
    conformers: Conformers,
}

impl LigandSelector {
    /// Prepares for the models of a file with so many chains.
    pub(super) fn start_file(&mut self, chains: usize) {
        self.residues.start_file(chains);
    }

    /// Adds the ligands of a model to its structure. `polymer` has the offsets of the runs that are
    /// polymer.
    pub(super) fn add(
        &mut self,
        model: ModelRuns,
        polymer: &HashSet<u32>,
        structure: &mut Structure,
    ) {
        let is_ligand = |run: &Run| !polymer.contains(&run.offset) && !is_left_out(run.comp);
        self.residues
            .gather(model, |run| is_ligand(run).then_some(()));
        let mut sugars = Sugars::default();
        for residue in &self.residues.residues {
            self.conformers.clear();
            let atoms = self.residues.atoms(model, residue);
            self.conformers.add(0, atoms);
            let Some((_, atoms)) = self.conformers.choose() else {
                continue;
            };
            let run = &model.runs[residue.head as usize];
            let chain = &model.table.chains[run.chain as usize];
            if is_saccharide(run.comp) {
                let at = structure.ligands.len();
                let anomeric = atoms.iter().filter(|atom| atom.name == *b"C1      ");
                sugars.add(
                    at,
                    chain.entity_type == Entity::Branched,
                    atoms.iter().map(|atom| (atom.xyz, atom.element)),
                    anomeric.map(|atom| atom.xyz),
                );
            }
            let atom = |atom: &super::atom_table::Atom| LigandAtom {
                xyz: atom.xyz,
                element: atom.element,
                class: AtomClass::unknown(atom.name, atom.element),
            };
            let atoms: Vec<LigandAtom> = atoms.iter().map(atom).collect();
            structure.ligands.push(Ligand {
                auth_asym_id: model.table.chain_names(run.chain).auth_asym_id,
                auth_seq_id: run.seq,
                ins_code: run.ins_code,
                comp_id: run.comp,
                kind: match atoms.len() {
                    1 => LigandKind::Ion,
                    _ => LigandKind::Ligand,
                },
                atoms: Arc::from(atoms),
            });
        }
        for glycan in sugars.glycans(structure) {
            structure.ligands[glycan].kind = LigandKind::Glycan;
        }
    }
}

/// Whether a component is water or an agent of crystallisation.
fn is_left_out(comp: Text8) -> bool {
    static NAMES: OnceLock<HashSet<Text8>> = OnceLock::new();
    let names = || LEFT_OUT.iter().map(|name| text8(name.as_bytes())).collect();
    NAMES.get_or_init(names).contains(&comp)
}

/// Whether the component dictionary calls a component a saccharide. `scripts/make_components.py`
/// makes the list.
fn is_saccharide(comp: Text8) -> bool {
    static IDS: OnceLock<HashSet<Text8>> = OnceLock::new();
    let ids = || {
        let lines = include_str!("saccharides.txt").lines();
        let ids = lines.filter(|line| !line.starts_with('#'));
        ids.map(|id| text8(id.as_bytes())).collect()
    };
    IDS.get_or_init(ids).contains(&comp)
}

/// The saccharides of a model.
#[derive(Default)]
struct Sugars {
    /// Their index among the ligands, and whether their entity is branched.
    sugars: Vec<(usize, bool)>,
    /// By cell, atoms each with the index of its sugar.
    atoms: HashMap<[i32; 3], Vec<(u32, [i32; 3])>>,
    /// By cell, atoms C1 each with the index of its sugar.
    anomeric: HashMap<[i32; 3], Vec<(u32, [i32; 3])>>,
}

impl Sugars {
    fn add(
        &mut self,
        ligand: usize,
        is_branched: bool,
        atoms: impl Iterator<Item = ([i32; 3], u8)>,
        anomeric: impl Iterator<Item = [i32; 3]>,
    ) {
        let sugar = self.sugars.len() as u32;
        self.sugars.push((ligand, is_branched));
        let put = |cells: &mut HashMap<_, Vec<_>>, xyz: [i32; 3]| {
            let cell = cells.entry(cell_of(xyz)).or_default();
            if cell.len() < CELL_ATOMS_MAX {
                cell.push((sugar, xyz));
            }
        };
        let organic = atoms.filter(|(_, element)| !is_metal(*element));
        organic.for_each(|(xyz, _)| put(&mut self.atoms, xyz));
        anomeric.for_each(|xyz| put(&mut self.anomeric, xyz));
    }

    /// The ligands that are glycans: sugars of branched entities, those whose C1 is linked to N or
    /// O of the polymer, and the sugars that are linked to these.
    fn glycans(&self, structure: &Structure) -> Vec<usize> {
        let mut is_glycan: Vec<bool> = self.sugars.iter().map(|&(_, branched)| branched).collect();
        if !self.anomeric.is_empty() {
            let atoms = structure.xyz.iter().zip(&structure.element);
            let polar = atoms.filter(|(_, element)| matches!(element, 7 | 8));
            for (&xyz, _) in polar {
                linked(&self.anomeric, xyz).for_each(|sugar| is_glycan[sugar as usize] = true);
            }
        }
        let mut bonds: HashMap<u32, HashSet<u32>> = HashMap::new();
        for &(sugar, xyz) in self.atoms.values().flatten() {
            let others = linked(&self.atoms, xyz).filter(|&other| other != sugar);
            bonds.entry(sugar).or_default().extend(others);
        }
        let mut next: Vec<u32> = (0..self.sugars.len() as u32)
            .filter(|&sugar| is_glycan[sugar as usize])
            .collect();
        while let Some(sugar) = next.pop() {
            for &other in bonds.get(&sugar).into_iter().flatten() {
                if !std::mem::replace(&mut is_glycan[other as usize], true) {
                    next.push(other);
                }
            }
        }
        let sugars = self.sugars.iter().zip(is_glycan);
        let glycans = sugars.filter(|(_, is_glycan)| *is_glycan);
        glycans.map(|(&(ligand, _), _)| ligand).collect()
    }
}

fn cell_of(xyz: [i32; 3]) -> [i32; 3] {
    xyz.map(|milli| milli >> CELL_SHIFT)
}

/// The sugars with an atom within a bond of `xyz`.
fn linked(
    cells: &HashMap<[i32; 3], Vec<(u32, [i32; 3])>>,
    xyz: [i32; 3],
) -> impl Iterator<Item = u32> + '_ {
    let [x, y, z] = cell_of(xyz);
    let around = (0..27).map(move |at| [x + at % 3 - 1, y + at / 3 % 3 - 1, z + at / 9 - 1]);
    let atoms = around.filter_map(|cell| cells.get(&cell)).flatten();
    let near = atoms.filter(move |(_, other)| is_within(xyz, *other, SUGAR_LINK));
    near.map(|&(sugar, _)| sugar)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_have_the_components_that_they_should() {
        for comp in ["HOH", "TIP3", "GOL", "SO4", "CL"] {
            assert!(is_left_out(text8(comp.as_bytes())), "{comp}");
        }
        for comp in ["HEM", "ZN", "NAG", "ATP", ""] {
            assert!(!is_left_out(text8(comp.as_bytes())), "{comp}");
        }
        for comp in ["NAG", "MAN", "FUC", "GLC", "SIA"] {
            assert!(is_saccharide(text8(comp.as_bytes())), "{comp}");
        }
        for comp in ["HEM", "ALA", "GOL", ""] {
            assert!(!is_saccharide(text8(comp.as_bytes())), "{comp}");
        }
    }
}
