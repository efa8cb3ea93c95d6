//! Covalent links of residues that are no polymer.
//!
//! Two residues are linked if the file says so: LINK of PDB, `_struct_conn` of mmCIF with a type that
//! starts with `covale`. Records of a metal, of a symmetry copy, and of a residue that is not read
//! are ignored. Where records are missing, distances decide: atoms that are no metals, of two residues
//! and not of different altlocs, are linked below [`LINK`], and C1 of a saccharide is linked to N or
//! O of the polymer. Two residues with atoms closer than [`SAME_PLACE`] are alternates of each other, and
//! distances do not link them.

use std::collections::{HashMap, HashSet};

use super::atom_table::{AtomLine, AtomRun, ResidueName, StatedLink};
use super::cells::Cells;
use super::disjoint_sets::DisjointSets;
use super::element::is_metal;
use super::model::Structure;
use super::residue_runs::ModelRuns;
use super::structure_builder::{SAME_PLACE, is_within};
use super::text8::Text8;

/// Linked atoms are closer than this, in 0.001 A (docs/METHODS.md, "Ligands, ions and glycans").
const LINK: i64 = 1_700;

/// Collects the ligands of a model, and finds the links between them.
#[derive(Default)]
pub(super) struct LinkFinder {
    residues: Vec<LinkedResidue>,
    /// Atoms that are no metals.
    atoms: Cells<OrganicAtom>,
    /// The residues of atoms C1 of saccharides.
    anomeric: Cells<u32>,
}

/// A residue that is no polymer.
struct LinkedResidue {
    name: ResidueName,
    is_saccharide: bool,
    /// The names of its metals.
    metals: Vec<Text8>,
}

struct OrganicAtom {
    /// The index of its residue.
    residue: u32,
    altloc: u8,
}

/// The molecules and glycans that links join residues to.
pub(super) struct LinkedResidues {
    /// The number of each residue's molecule, from 0 in the order of their first residues.
    pub molecule: Vec<u32>,
    /// Whether each residue is a saccharide that is linked to polymer, or to such a saccharide.
    pub is_glycan: Vec<bool>,
}

/// A residue that a link names.
#[derive(Clone, Copy)]
enum LinkEnd {
    Polymer,
    Other(u32),
}

impl LinkFinder {
    /// Adds the residue of a run that is no polymer, with the atoms of its conformer.
    pub(super) fn add(
        &mut self,
        model: ModelRuns,
        run: &AtomRun,
        is_saccharide: bool,
        atoms: &[AtomLine],
    ) {
        let residue = self.residues.len() as u32;
        let (metals, organic): (Vec<&AtomLine>, Vec<&AtomLine>) =
            atoms.iter().partition(|atom| is_metal(atom.element));
        self.residues.push(LinkedResidue {
            name: name_of(model, run),
            is_saccharide,
            metals: metals.into_iter().map(|atom| atom.name).collect(),
        });
        for atom in organic {
            let altloc = atom.altloc;
            self.atoms.add(atom.xyz, OrganicAtom { residue, altloc });
            if is_saccharide && atom.name == *b"C1      " {
                self.anomeric.add(atom.xyz, residue);
            }
        }
    }

    /// Finds the links: stated ones first, then those of near atoms, then glycans. `polymer` has
    /// the offsets of the runs that are polymer, `structure` their atoms.
    pub(super) fn find(
        self,
        model: ModelRuns,
        polymer: &HashSet<u32>,
        structure: &Structure,
    ) -> LinkedResidues {
        let count = self.residues.len();
        let mut is_glycan = vec![false; count];
        let (mut molecules, mut saccharides) = (DisjointSets::new(count), DisjointSets::new(count));
        let is_saccharide = |residue: u32| self.residues[residue as usize].is_saccharide;
        let mut join = |one: u32, other: u32| {
            molecules.join(one, other);
            if is_saccharide(one) && is_saccharide(other) {
                saccharides.join(one, other);
            }
        };
        for [one, other] in self.stated(model, polymer) {
            match (one, other) {
                (LinkEnd::Other(one), LinkEnd::Other(other)) => join(one, other),
                (LinkEnd::Other(residue), LinkEnd::Polymer)
                | (LinkEnd::Polymer, LinkEnd::Other(residue)) => {
                    is_glycan[residue as usize] |= is_saccharide(residue);
                }
                (LinkEnd::Polymer, LinkEnd::Polymer) => {}
            }
        }
        let mut overlaps: HashMap<(u32, u32), bool> = HashMap::new();
        for (xyz, atom) in self.atoms.all() {
            let others = self.atoms.near(*xyz, LINK).filter(|(_, other)| {
                let altlocs = [atom.altloc, other.altloc];
                let is_together = altlocs[0] == altlocs[1] || altlocs.contains(&0);
                other.residue > atom.residue && is_together
            });
            for (place, other) in others {
                let pair = overlaps.entry((atom.residue, other.residue)).or_default();
                *pair |= is_within(*xyz, *place, SAME_PLACE);
            }
        }
        let near_pairs = overlaps.iter().filter(|(_, overlap)| !**overlap);
        near_pairs.for_each(|(&(one, other), _)| join(one, other));
        if !self.anomeric.is_empty() {
            let atoms = structure.xyz.iter().zip(&structure.element);
            let polar = atoms.filter(|(_, element)| matches!(element, 7 | 8));
            let linked = polar.flat_map(|(&xyz, _)| self.anomeric.near(xyz, LINK));
            linked.for_each(|&(_, residue)| is_glycan[residue as usize] = true);
        }
        for residue in 0..count {
            let root = saccharides.root(residue as u32);
            is_glycan[root as usize] |= is_glycan[residue];
        }
        let mut numbers = HashMap::new();
        let molecule = (0..count as u32).map(|residue| {
            let next = numbers.len() as u32;
            *numbers.entry(molecules.root(residue)).or_insert(next)
        });
        LinkedResidues {
            molecule: molecule.collect(),
            is_glycan: (0..count as u32)
                .map(|residue| is_glycan[saccharides.root(residue) as usize])
                .collect(),
        }
    }

    /// The links that the file states between residues that were read, but for those of metals.
    fn stated(
        &self,
        model: ModelRuns,
        polymer: &HashSet<u32>,
    ) -> impl Iterator<Item = [LinkEnd; 2]> {
        let mut sites = HashMap::new();
        let table = model.table;
        if !table.links.is_empty() {
            for (index, residue) in (0..).zip(&self.residues) {
                sites.entry(residue.name).or_insert(LinkEnd::Other(index));
            }
            let runs = model.runs.iter();
            for run in runs.filter(|run| polymer.contains(&run.offset)) {
                sites.insert(name_of(model, run), LinkEnd::Polymer);
            }
        }
        let site = move |&(name, atom): &(ResidueName, Text8)| {
            let site = *sites.get(&name)?;
            let is_metal = match site {
                LinkEnd::Polymer => false,
                LinkEnd::Other(index) => self.residues[index as usize].metals.contains(&atom),
            };
            (!is_metal).then_some(site)
        };
        let linked = move |[one, other]: &StatedLink| Some([site(one)?, site(other)?]);
        // The links of these residues alone, as a file may have many, and many models. One of two of these
        // residues comes twice.
        let links = self.residues.iter();
        let links = links.flat_map(|residue| table.links_of.get(&residue.name));
        let links = links.flatten().map(|&link| &table.links[link as usize]);
        links.filter_map(linked)
    }
}

fn name_of(model: ModelRuns, run: &AtomRun) -> ResidueName {
    let chain = &model.table.chains[run.chain as usize];
    (chain.auth, run.seq, run.ins_code, run.comp)
}
