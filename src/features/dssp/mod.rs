//! Secondary structure and backbone hydrogen bonds.

mod amide_hydrogens;
mod bond_table;
mod bonds;
mod bridge_partners;
mod hydrogen_bonds;
mod ladder_bridges;
mod ladder_search;
mod ladders;
mod secondary_structure;
mod sheet_columns;
mod sheet_number;
mod sheets;

use super::cell_kind::CellKind;
use super::columns::{ColumnDecl, ColumnKind, TableName, Tolerance};
use super::feature::{About, Feature, SettingField, choice, own_chain};
use super::kernels;
use super::layout::{Bridges, RESIDUES};
use super::recorder::FeatureRecorder;
use super::results::KernelResults;
use super::summary;
use crate::record::Buffer;
pub use bond_table::HydrogenBonds;
use bonds::Hydrogen;
pub(super) use hydrogen_bonds::{Acceptors, BondInputs, Peptides};
pub use sheets::Sheets;

/// The program whose rules apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DsspVersion {
    /// DSSP 2.2.
    #[default]
    V2,
    /// DSSP 4, which also assigns polyproline helices.
    V4,
}

/// Settings of secondary structure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dssp {
    /// The program whose rules apply.
    pub version: DsspVersion,
    /// Whether only residues of the same chain are bonded; by default those of all chains are.
    pub own_chain: bool,
}

choice!(DsspVersion: V2 "2", V4 "4");

/// The texts of `ss8`, in the kernel's order.
const STATES: &[&str] = &["H", "E", "B", "G", "I", "T", "S", "P", "-"];
/// The texts of `ss3`, in the kernel's order.
const CLASSES: &[&str] = &["H", "E", "C"];

/// The amide hydrogen of each residue, which features share.
#[derive(Clone, Copy)]
struct AmideHydrogens(Buffer<Hydrogen>);

/// The amide hydrogen of each residue, `[residues]`. Records the launch that computes it at the
/// first call.
pub(super) fn amide_hydrogens(r: &mut FeatureRecorder<'_>) -> Buffer<Hydrogen> {
    if let Some(AmideHydrogens(hydrogens)) = r.shared() {
        return hydrogens;
    }
    let hydrogens = r.device("hydrogens", RESIDUES, 1);
    let args = kernels::amide_hydrogens::Args {
        header: r.header(),
        residues: r.residues(),
        backbone: r.backbone(),
        hydrogens,
    };
    r.launch_threads(RESIDUES, args);
    r.share(AmideHydrogens(hydrogens)).0
}

/// The best hydrogen bonds and the bridges of each residue, which features share.
#[derive(Clone, Copy)]
struct Patterns {
    hydrogens: Buffer<Hydrogen>,
    /// `[residues, 4]`: two acceptors of the N-H, then two donors to the O.
    partners: KernelResults<i32>,
    energies: KernelResults<f32>,
    bridges: Buffer<Bridges>,
}

/// The best hydrogen bonds and the bridges of each residue, by the settings of [`Dssp`]. Records
/// the launches that compute them at the first call.
fn patterns(r: &mut FeatureRecorder<'_>) -> Patterns {
    if let Some(patterns) = r.shared() {
        return patterns;
    }
    let (header, structures, residues) = (r.header(), r.structures(), r.residues());
    let (ca, cells, backbone) = (r.ca(), r.cells(CellKind::Ca), r.backbone());
    let hydrogens = amide_hydrogens(r);
    let bridges = r.device("bridges", RESIDUES, 1);
    // Two bonds as donor and two as acceptor.
    let (partners, energies) = if r.is_requested::<Dssp>() {
        (
            r.results(TableName::Residues, "bond_partners", 4),
            r.results(TableName::Residues, "bond_energies", 4),
        )
    } else {
        (
            r.kept_results("bond_partners", 4),
            r.kept_results("bond_energies", 4),
        )
    };
    let args = kernels::hydrogen_bonds::Args {
        header,
        structures,
        residues,
        atoms: ca,
        cells,
        backbone,
        hydrogens,
        partners: partners.buffer,
        energies: energies.buffer,
        own_chain: u32::from(r.settings::<Dssp>().own_chain),
    };
    r.launch_warps(RESIDUES, args);
    let args = kernels::bridge_partners::Args {
        header,
        structures,
        residues,
        hydrogens,
        partners: partners.buffer,
        energies: energies.buffer,
        bridges,
    };
    r.launch_threads(RESIDUES, args);
    r.share(Patterns {
        hydrogens,
        partners,
        energies,
        bridges,
    })
}

impl Feature for Dssp {
    fn about(&self) -> About {
        About {
            summary: "Secondary structure by patterns of backbone hydrogen bonds, and the best \
                      partners for such bonds.",
            formula: "E = 27.888 kcal/mol A (1/ON + 1/CH - 1/OH - 1/CN), with H 1 A from N \
                      against the C=O before, to 0.001 kcal/mol; a bond if E < -0.5, which ss8 \
                      is made of; hb_* are the partners with the lowest E < 0, which need not be \
                      bonds; none for N-H of proline or after a break, or of C-alphas 9 A apart; \
                      I replaces H, then H, E, B, G, T, S in this order; null where N, CA, C or O \
                      is missing",
            source: match self.version {
                DsspVersion::V2 => "Kabsch and Sander 1983, Biopolymers 22:2577",
                DsspVersion::V4 => {
                    "Kabsch and Sander 1983, Biopolymers 22:2577; Hekkelman et al. 2025, Protein Sci \
                     34:e70208"
                }
            },
            needs: &[],
        }
    }

    fn settings(&mut self) -> Vec<(&'static str, SettingField<'_>)> {
        vec![
            ("dssp.version", SettingField::Choice(&mut self.version)),
            ("dssp.chains", own_chain(&mut self.own_chain)),
        ]
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let text = |name: &str, texts, about: &str| {
            // MDTraj does not round energies before it compares them with -0.5 kcal/mol, which
            // changes at most 1.2 rows per thousand of a file.
            ColumnDecl::residue(name, ColumnKind::Text(texts), "", about)
                .reference(Tolerance::EXACT.but_for(2))
        };
        let mut columns = vec![
            text(
                "ss8",
                STATES,
                "Secondary structure: H, G and I helices of 4, 3 and 5 residues a turn, E strand, \
                 B lone bridge, T turn, S bend, P polyproline helix (version 4 alone), - none.",
            ),
            text(
                "ss3",
                CLASSES,
                "H of ss8's H, G and I, E of its E and B, C of the rest.",
            ),
        ];
        for (name, what) in [
            ("hb_nho1", "best acceptor of the residue's N-H"),
            ("hb_nho2", "second best acceptor of the residue's N-H"),
            ("hb_ohn1", "best donor to the residue's O"),
            ("hb_ohn2", "second best donor to the residue's O"),
        ] {
            let about = format!(
                "The {what}, by its res_index; a hydrogen bond if the energy is below -0.5."
            );
            // Of two partners with equal rounded energies the lower index is first; a bond whose
            // energy rounds to 0 is none.
            columns.push(
                ColumnDecl::residue(name, ColumnKind::Count, "", about)
                    .reference(Tolerance::EXACT.but_for(25)),
            );
            let about = format!("Energy with the {what}; below -0.5 a hydrogen bond.");
            let name = format!("{name}_energy");
            // mkdssp prints one decimal. Rounding moves an atom by up to 0.0009 A.
            columns.push(
                ColumnDecl::residue(name, ColumnKind::Real, "kcal/mol", about)
                    .reference(Tolerance::absolute(0.1))
                    .rotation(Tolerance::absolute(0.02).but_for(5)),
            );
        }
        for (table, part) in [
            (TableName::Chains, "chain"),
            (TableName::Structures, "structure"),
        ] {
            for (name, class) in [("helix", "H"), ("strand", "E"), ("coil", "C")] {
                let about = format!("Share of {class} in the {part}'s ss3.");
                let name = format!("{name}_fraction");
                // The state of one residue in the shortest chain.
                let column = ColumnDecl::residue(name, ColumnKind::Real, "", about)
                    .reference(Tolerance::absolute(0.02))
                    .rotation(Tolerance::absolute(0.02));
                columns.push(column.in_table(table));
            }
        }
        columns
    }

    fn record(&self, r: &mut FeatureRecorder<'_>) {
        let states = r.results::<i32>(TableName::Residues, "secondary_structure", 2);
        let Patterns {
            hydrogens,
            partners,
            energies,
            bridges,
        } = patterns(r);
        let (header, structures) = (r.header(), r.structures());
        let marks = r.zeros("ladder_marks", RESIDUES, 1);
        let args = kernels::ladders::Args {
            header,
            structures,
            hydrogens,
            bridges,
            marks,
        };
        r.launch_threads(RESIDUES, args);
        let args = kernels::secondary_structure::Args {
            header,
            structures,
            residues: r.residues(),
            backbone: r.backbone(),
            hydrogens,
            partners: partners.buffer,
            energies: energies.buffer,
            marks,
            states: states.buffer,
            has_polyproline: u32::from(self.version == DsspVersion::V4),
        };
        r.launch_threads(RESIDUES, args);
        r.column(states, 0);
        r.column(states, 1);
        for which in 0..4 {
            r.column(partners, which);
            r.column(energies, which);
        }
        summary::fractions(r, "class_fractions", states);
    }
}
