//! The table of hydrogen bonds.

use super::super::cell_kind::CellKind;
use super::super::columns::{ColumnDecl, ColumnKind, TableName, Tolerance};
use super::super::cpu::split::{TASK_ROWS, for_row_ranges, parts};
use super::super::feature::{About, Feature, SettingField};
use super::super::kernels::{Twin, bond_degrees, bond_rows};
use super::super::layout::{RESIDUES, StructureSpan};
use super::super::pairs::listed_rows;
use super::super::recorder::FeatureRecorder;
use super::super::results::ResultBuffer;
use super::amide_hydrogens;
use super::hydrogen_bonds::{Acceptors, BondInputs, Peptides};
use rayon::prelude::*;

/// Rows of bonds that a structure has room for, for each residue: more than a protein has, which is
/// about one, as N-H rarely bond to two residues.
const ROWS_PER_UNIT: usize = 2;

/// Settings of the table of hydrogen bonds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HydrogenBonds {
    /// Whether there is a table of hydrogen bonds. If not, the feature has no columns.
    pub keep: bool,
}

impl Feature for HydrogenBonds {
    fn about(&self) -> About {
        About {
            summary: "A table of the hydrogen bonds of the backbone; only with \
                      `hydrogen_bonds = true`.",
            formula: "all pairs of an N-H and a C=O of the model with E < -0.5 kcal/mol, E and \
                      what may take part as in dssp; ss8 is made of the best two of each N-H",
            source: "Kabsch and Sander 1983, Biopolymers 22:2577",
            needs: &[],
        }
    }

    fn settings(&mut self) -> Vec<(&'static str, SettingField<'_>)> {
        vec![("hydrogen_bonds", SettingField::Flag(&mut self.keep))]
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        if !self.keep {
            return Vec::new();
        }
        let index = |name: &str, atoms: &str| {
            let about = format!("res_index of the residue whose {atoms} is bonded.");
            ColumnDecl::residue(name, ColumnKind::Count, "", about)
        };
        let energy = "The energy of the bond, to 0.001 kcal/mol.";
        let columns = [
            index("res_index_donor", "N-H"),
            index("res_index_acceptor", "C=O"),
            // Single precision may round an energy to the next 0.001 kcal/mol.
            ColumnDecl::residue("energy", ColumnKind::Real, "kcal/mol", energy)
                .reference(Tolerance::absolute(0.001)),
        ];
        let columns = columns.map(|column| column.in_table(TableName::HydrogenBonds));
        columns.to_vec()
    }

    fn record(&self, r: &mut FeatureRecorder<'_>) {
        if !self.keep {
            return;
        }
        let (ca, cells, hydrogens) = (r.ca(), r.cells(CellKind::Ca), amide_hydrogens(r));
        let degrees = r.device::<i32>("bond_degrees", RESIDUES, 1);
        let args = bond_degrees::Args {
            header: r.header(),
            structures: r.structures(),
            residues: r.residues(),
            ca,
            cells,
            backbone: r.backbone(),
            hydrogens,
            degrees,
        };
        r.launch_warps(RESIDUES, args);
        let lists = r.pair_lists("listed_bond", degrees, ROWS_PER_UNIT);
        let energies = r.listed_reals(&lists, "listed_bond_energies");
        let args = bond_rows::Args {
            header: r.header(),
            structures: r.structures(),
            residues: r.residues(),
            ca,
            cells,
            backbone: r.backbone(),
            hydrogens,
            rooms: lists.rooms,
            ends: lists.ends,
            unsorted: lists.unsorted,
            acceptors: lists.partners,
            energies,
        };
        r.launch_warps(RESIDUES, args);
        r.add_listed_pairs(
            TableName::HydrogenBonds,
            &lists,
            vec![ResultBuffer::Real(energies)],
        );
    }
}

/// Counts the hydrogen bonds of each residue's N-H, those between chains included, whatever
/// `dssp.chains` is: the table tells them apart by `same_chain`.
impl Twin for bond_degrees::Views<'_> {
    fn run(self) {
        let inputs = BondInputs {
            structures: StructureSpan::live(self.header, self.structures),
            residues: self.residues,
            atoms: self.ca,
            cells: self.cells,
            peptides: Peptides {
                backbone: self.backbone,
                hydrogens: self.hydrogens,
            },
            own_chain: false,
        };
        let degrees = &mut self.degrees[..self.header[RESIDUES] as usize];
        for_row_ranges(degrees, 1, |rows, degrees| {
            let mut acceptors = Acceptors::default();
            for (residue, degree) in rows.zip(degrees) {
                *degree = acceptors.acceptors_of(&inputs, residue).len() as i32;
            }
        });
    }
}

/// Lists the acceptors of each residue's N-H in their order.
impl Twin for bond_rows::Views<'_> {
    fn run(self) {
        let inputs = BondInputs {
            structures: StructureSpan::live(self.header, self.structures),
            residues: self.residues,
            atoms: self.ca,
            cells: self.cells,
            peptides: Peptides {
                backbone: self.backbone,
                hydrogens: self.hydrogens,
            },
            own_chain: false,
        };
        let rows = listed_rows(inputs.structures, self.rooms, self.ends);
        let ranges = || rows.iter().map(|(_, range)| range.clone());
        let columns = parts(self.acceptors, ranges()).zip(parts(self.energies, ranges()));
        let residues_with_rows = rows.par_iter().zip(columns).with_min_len(TASK_ROWS);
        residues_with_rows.for_each_init(
            Acceptors::default,
            |found, (&(residue, _), (acceptors, energies))| {
                let start = inputs.structure(residue).residue_start as usize;
                let columns = acceptors.iter_mut().zip(energies);
                for (&(partner, cal), (acceptor, energy)) in
                    found.acceptors_of(&inputs, residue).iter().zip(columns)
                {
                    *acceptor = (partner - start) as i32;
                    *energy = cal as f32 / 1000.0;
                }
            },
        );
    }
}
