//! Ligands, ions and glycans around residues.

use super::cell_kind::CellKind;
use super::columns::{ColumnDecl, ColumnKind, NULL_COUNT, TableName, Tolerance};
use super::constants;
use super::cpu::split::{for_row_ranges, for_row_ranges_of_two};
use super::cutoff::Cutoff;
use super::feature::{About, Feature, SettingField};
use super::grid::corners;
use super::kernels::{Cells, Twin, ligand_residues, nearest_ligand};
use super::layout::{Atom, LIGANDS, Position, RESIDUES, ResidueSpan, StructureSpan};
use super::recorder::FeatureRecorder;
use super::sasa::{
    AREA_ROTATION, AREA_TOLERANCE, Atoms, bound_areas, bound_atom_area, bound_atom_areas,
    glycan_deltas, ligand_areas,
};
use crate::error::{Error, Result};

/// The search for ligands and metals ends at this distance, in 0.001 A.
const LIGAND_REACH: u32 = constants::LIGAND_REACH as u32;

/// The words of the settings `ligands` and `ligand.agents`.
const CHOICES: &[&str; 2] = &["drop", "keep"];

/// Settings of ligands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ligands {
    /// Whether structures have ligands. If not, the feature has no columns.
    pub keep: bool,
    /// Whether agents of crystallisation are among them. They bury area, and have rows.
    pub keep_agents: bool,
    /// A pair of heavy atoms closer than this is a contact; at most 12 A.
    pub cutoff: Cutoff,
}

impl Default for Ligands {
    /// No ligands; contacts within 4.5 A.
    fn default() -> Self {
        Ligands {
            keep: false,
            keep_agents: false,
            cutoff: Cutoff::of_milli_angstrom(4_500),
        }
    }
}

impl Feature for Ligands {
    fn about(&self) -> About {
        About {
            summary: "How near ligands and metals are, and what area ligands, ions and glycans \
                      leave; only with `ligands = \"keep\"`.",
            formula: "ligand_dmin = min of d(a, b), a a heavy atom of the residue, b one of a \
                      ligand, null at 12 A and beyond, likewise metal_dmin; ligand_contacts: \
                      pairs a, b with d < R; sasa_bound: sasa with the heavy atoms of ligands, \
                      ions and glycans in the model; glycan_sasa_delta: sasa less sasa with the \
                      heavy atoms of glycans in the model",
            source: "",
            needs: &["sasa"],
        }
    }

    fn settings(&mut self) -> Vec<(&'static str, SettingField<'_>)> {
        vec![
            ("ligands", SettingField::Either(&mut self.keep, CHOICES)),
            (
                "ligand.agents",
                SettingField::Either(&mut self.keep_agents, CHOICES),
            ),
            (
                "ligand.cutoff",
                SettingField::Length(&mut self.cutoff, Cutoff::MAX_ANGSTROM),
            ),
        ]
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        if !self.keep {
            return Vec::new();
        }
        let pairs = format!(
            "Pairs of a heavy atom of the residue and one of a ligand within {} A.",
            self.cutoff.angstrom()
        );
        let distance = |name: &str, about: &str| {
            ColumnDecl::residue(name, ColumnKind::Real, "A", about.to_owned())
                .null_from(LIGAND_REACH)
                // Rounding moves both atoms by up to 0.0009 A.
                .rotation(Tolerance::absolute(0.002).but_for(5))
        };
        let columns = [
            distance(
                "ligand_dmin",
                "Distance from the residue to the nearest heavy atom of a ligand, null from 12 A \
                 on.",
            ),
            ColumnDecl::residue("ligand_contacts", ColumnKind::Count, "", pairs),
            ColumnDecl::residue(
                "ligand_comp",
                ColumnKind::LigandComponent,
                "",
                "The residue name of the nearest ligand.",
            ),
            ColumnDecl::residue(
                "ligand_seq",
                ColumnKind::LigandNumber,
                "",
                "The author's residue number of the nearest ligand.",
            )
            // The least number that a PDB file can hold.
            .null_number(-999.0),
            distance(
                "metal_dmin",
                "Distance from the residue to the nearest metal, null from 12 A on.",
            ),
            ColumnDecl::residue(
                "sasa_bound",
                ColumnKind::Real,
                "A^2",
                "Solvent-accessible area in the model with its ligands, ions and glycans.",
            )
            .reference(AREA_TOLERANCE)
            .rotation(AREA_ROTATION),
            ColumnDecl::residue(
                "glycan_sasa_delta",
                ColumnKind::Real,
                "A^2",
                "Solvent-accessible area that the model's glycans bury. Deposited glycans are \
                 stubs: a lower bound.",
            )
            .reference(AREA_TOLERANCE)
            .rotation(AREA_ROTATION),
        ];
        let idle = |column: ColumnDecl| column.idle_when("no ligand was read near a residue");
        let area = |name: &str, about: &str| {
            ColumnDecl::residue(name, ColumnKind::Real, "A^2", about.to_owned())
                .reference(AREA_TOLERANCE)
                .rotation(AREA_ROTATION)
        };
        let near = format!(
            "Residues with a heavy atom within {} A of one of the ligand's.",
            self.cutoff.angstrom()
        );
        let ligand_columns = [
            area("sasa_alone", "Solvent-accessible area of the ligand alone."),
            area(
                "sasa_buried",
                "Of it, what the rest of the model with its ligands, ions and glycans buries.",
            ),
            ColumnDecl::residue("contact_residues", ColumnKind::Count, "", near),
        ];
        let ligand_columns = ligand_columns.map(|column| column.in_table(TableName::Ligands));
        let columns = columns.map(|column| match &*column.name {
            "metal_dmin" => column.idle_when("no metal was read near a residue"),
            _ => idle(column),
        });
        let columns = columns.into_iter().chain(ligand_columns);
        columns.chain([bound_atom_area()]).collect()
    }

    fn record(&self, r: &mut FeatureRecorder<'_>) {
        if !self.keep {
            return;
        }
        let cells = r.cells(CellKind::BoundAtoms);
        let distances = r.results::<f32>(TableName::Residues, "ligand_distances", 2);
        let contacts = r.results::<i32>(TableName::Residues, "ligand_contacts", 2);
        let args = nearest_ligand::Args {
            header: r.header(),
            structures: r.structures(),
            residues: r.residues(),
            atoms: r.bound_atoms(),
            cells,
            ligand_of: r.ligand_of(),
            distances: distances.buffer,
            contacts: contacts.buffer,
            cutoff: self.cutoff.milli_angstrom(),
        };
        r.launch_warps(RESIDUES, args);
        let areas = bound_areas(r);
        let deltas = glycan_deltas(r);
        r.column(distances, 0);
        r.column(contacts, 0);
        // Name and number of the nearest ligand, both by its index.
        r.column(contacts, 1);
        r.column(contacts, 1);
        r.column(distances, 1);
        r.column(areas, 0);
        r.column(deltas, 0);
        let areas = ligand_areas(r);
        let near = r.results::<i32>(TableName::Ligands, "ligand_residues", 1);
        let args = ligand_residues::Args {
            header: r.header(),
            structures: r.structures(),
            residues: r.residues(),
            ligands: r.ligands(),
            atoms: r.bound_atoms(),
            cells,
            residue_of: r.atom_residue(),
            counts: near.buffer,
            cutoff: self.cutoff.milli_angstrom(),
        };
        r.launch_warps(LIGANDS, args);
        (0..2).for_each(|i| r.column(areas, i));
        r.column(near, 0);
        if r.is_requested::<Atoms>() && r.settings::<Atoms>().keep {
            let areas = bound_atom_areas(r);
            r.column(areas, 0);
        }
    }

    fn check(&self) -> Result<()> {
        if self.cutoff.milli_angstrom() > LIGAND_REACH {
            return Err(Error::config("ligand.cutoff is more than 12 A"));
        }
        Ok(())
    }
}

/// Counts the residues around ligands.
impl Twin for ligand_residues::Views<'_> {
    fn run(self) {
        let structures = StructureSpan::live(self.header, self.structures);
        let counts = &mut self.counts[..self.header[LIGANDS] as usize];
        let (cells, cutoff) = (&self.cells, self.cutoff);
        for_row_ranges(counts, 1, |rows, counts| {
            let mut near = Vec::new();
            for (row, count) in rows.zip(counts) {
                let ligand = &self.ligands[row];
                let atoms = &self.atoms[ligand.atoms()];
                near.clear();
                if !atoms.is_empty() {
                    let grid = &structures[ligand.structure as usize].atom_grid;
                    let (low, high) = corners(atoms.iter().map(|atom| atom.position.into()));
                    let around = cells.runs_around(grid, low, high, cutoff as i32).flatten();
                    let found = around.filter_map(|index| {
                        let residue = self.residue_of[cells.source[index] as usize];
                        let there = Position {
                            x: cells.x[index],
                            y: cells.y[index],
                            z: cells.z[index],
                        };
                        let mut squares = atoms.iter().map(|atom| atom.position.squared_to(there));
                        let is_near = residue != 0 && squares.any(|d2| d2 < cutoff * cutoff);
                        is_near.then_some(residue)
                    });
                    near.extend(found);
                }
                near.sort_unstable();
                near.dedup();
                *count = near.len() as i32;
            }
        });
    }
}

/// The nearest ligand and the nearest metal of a residue, and its contacts.
struct NearestLigand {
    /// The squared distance and the ligand, so that of equal distances the lower ligand is less.
    ligand: (u32, u32),
    /// The squared distance of the nearest metal.
    metal: u32,
    /// The number of contacts: pairs of atoms within the cutoff.
    pairs: u32,
}

/// The nearest ligand and the nearest metal.
impl Twin for nearest_ligand::Views<'_> {
    fn run(self) {
        let structures = StructureSpan::live(self.header, self.structures);
        let count = self.header[RESIDUES] as usize;
        let distances = &mut self.distances[..2 * count];
        let contacts = &mut self.contacts[..2 * count];
        for_row_ranges_of_two(
            (distances, 2),
            (contacts, 2),
            |rows, distances, contacts| {
                let out = distances
                    .chunks_exact_mut(2)
                    .zip(contacts.chunks_exact_mut(2));
                for (row, (distances, contacts)) in rows.zip(out) {
                    let residue = &self.residues[row];
                    let structure = &structures[residue.structure as usize];
                    let near = search(
                        &self.cells,
                        structure,
                        residue,
                        self.atoms,
                        self.ligand_of,
                        self.cutoff,
                    );
                    let reach2 = LIGAND_REACH.pow(2);
                    let angstrom = |d2: u32| {
                        if d2 < reach2 {
                            (f64::from(d2).sqrt() * 0.001) as f32
                        } else {
                            f32::NAN
                        }
                    };
                    distances.copy_from_slice(&[angstrom(near.ligand.0), angstrom(near.metal)]);
                    let ligand = if near.ligand.0 < reach2 {
                        near.ligand.1 as i32
                    } else {
                        NULL_COUNT
                    };
                    contacts.copy_from_slice(&[near.pairs as i32, ligand]);
                }
            },
        );
    }
}

/// Finds the nearest ligand and metal of a residue, and counts pairs of atoms within `cutoff`.
/// Ligands' atoms follow those of residues. Glycans, and ions that are no metal, count for neither.
fn search(
    cells: &Cells<'_>,
    structure: &StructureSpan,
    residue: &ResidueSpan,
    atoms: &[Atom],
    ligand_of: &[u32],
    cutoff: u32,
) -> NearestLigand {
    let mut nearest = NearestLigand {
        ligand: (u32::MAX, u32::MAX),
        metal: u32::MAX,
        pairs: 0,
    };
    if structure.ligand_atom_count == 0 || residue.atom_count == 0 {
        return nearest;
    }
    let atoms = &atoms[residue.atoms()];
    let (low, high) = corners(atoms.iter().map(|atom| atom.position.into()));
    let first_of_ligands = structure.atoms().end as u32;
    let reach = LIGAND_REACH as i32;
    for run in cells.runs_around(&structure.atom_grid, low, high, reach) {
        for index in run {
            let (source, tag) = (cells.source[index], cells.tag[index]);
            if source < first_of_ligands || !(tag.is_ligand() || tag.is_metal()) {
                continue;
            }
            let there = Position {
                x: cells.x[index],
                y: cells.y[index],
                z: cells.z[index],
            };
            let (mut d2, mut near) = (u32::MAX, 0);
            for atom in atoms {
                let pair = atom.position.squared_to(there);
                d2 = d2.min(pair);
                near += u32::from(pair < cutoff * cutoff);
            }
            if tag.is_ligand() {
                nearest.ligand = nearest.ligand.min((d2, ligand_of[source as usize]));
                nearest.pairs += near;
            }
            if tag.is_metal() {
                nearest.metal = nearest.metal.min(d2);
            }
        }
    }
    nearest
}
