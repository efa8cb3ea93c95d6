//! The table of interfaces: pairs of chains whose residues are in contact.
//!
//! The partners of a residue are the other chains near it, in ascending order. Kernels list the
//! partners, count the residue's contacts with each and the area that each buries of it, and sum
//! both over the residues of the two chains of a pair.

mod pairs;
mod partners;
mod rows;

use super::cell_kind::CellKind;
use super::columns::{ColumnDecl, ColumnKind, TableName, Tolerance};
use super::dssp::amide_hydrogens;
use super::entries::{INTERFACES_PER_UNIT, PARTNERS_PER_UNIT};
use super::feature::{About, Feature, SettingField};
use super::interface_residues::{InterfaceResidues, chain_ranges};
use super::kernels::{
    interface_bonds, interface_degrees, interface_ends, interface_pairs, interface_partners,
    interface_rows,
};
use super::layout::{CHAINS, PAIR_ROOM, RESIDUES, STRUCTURES};
use super::recorder::FeatureRecorder;
use super::sasa::{PartnerBuffers, Sasa, partner_areas};
use crate::record::Buffer;
pub(super) use rows::{InteractionCounts, InterfaceBuffers, InterfaceColumns};

/// Settings of the table of interfaces. Which residues are in contact is the setting
/// [`InterfaceResidues::cutoff`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interfaces {
    /// Whether there is a table of interfaces. If not, the feature has no columns.
    pub keep: bool,
}

/// The reference counts the same test points, and rounds its sums differently.
const AREA_TOLERANCE: Tolerance = Tolerance {
    absolute: 1e-3,
    ..Tolerance::relative(1e-4)
};
/// Areas of interfaces are sums over residues, whose test points do not rotate: the errors of all
/// residues of an interface add up.
const AREA_ROTATION: Tolerance = Tolerance {
    absolute: 40.0,
    ..Tolerance::relative(0.1)
};

impl Feature for Interfaces {
    fn about(&self) -> About {
        About {
            summary: "A table of the pairs of chains that touch: areas that they bury, residues, \
                      contacts and hydrogen bonds; only with `interfaces = true`.",
            formula: "a row for chains A, B with a contact: residues of A and of B with heavy atoms \
                      d < interface_residues.cutoff; buried_area = S(A) + S(B) - S(AB), the sides' parts apart, \
                      with S the sasa of the residues of A alone, of B alone, of A and B without \
                      other chains; backbone_hydrogen_bonds: N-H of one chain to O of the other \
                      with E < -0.5 kcal/mol as in dssp, all of them, and none of side chains",
            source: "Jones and Thornton 1996, Proc Natl Acad Sci USA 93:13; areas of pairs as in \
                     Krissinel and Henrick 2007, J Mol Biol 372:774, whose interface area is half \
                     of buried_area",
            needs: &["sasa", "interface_residues"],
        }
    }

    fn settings(&mut self) -> Vec<(&'static str, SettingField<'_>)> {
        vec![("interfaces", SettingField::Flag(&mut self.keep))]
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        if !self.keep {
            return Vec::new();
        }
        let chain = |name: &str, which: &str| {
            let about = format!("The author's {which} chain of the pair.");
            ColumnDecl::residue(name, ColumnKind::Chain, "", about).rotation(Tolerance::EXACT)
        };
        let count = |name: &str, about: &str| {
            ColumnDecl::residue(name, ColumnKind::Count, "", about)
                .reference(Tolerance::EXACT)
                // Rounded positions may change contacts near the cutoff, of which a row has many.
                .rotation(Tolerance::EXACT.but_for(150))
        };
        let area = |name: &str, about: &str| {
            ColumnDecl::residue(name, ColumnKind::Real, "A^2", about)
                .reference(AREA_TOLERANCE)
                .rotation(AREA_ROTATION)
        };
        let columns = [
            chain("auth_asym_id_i", "first"),
            chain("auth_asym_id_j", "second"),
            area(
                "buried_area",
                "Solvent-accessible areas of both chains alone, less that of the pair alone.",
            ),
            area(
                "buried_area_i",
                "What the second chain buries of the first.",
            ),
            area(
                "buried_area_j",
                "What the first chain buries of the second.",
            ),
            count(
                "residues_i",
                "Residues of the first chain in contact with residues of the second.",
            ),
            count(
                "residues_j",
                "Residues of the second chain in contact with residues of the first.",
            ),
            count(
                "contacts",
                "Pairs of residues of the two chains with heavy atoms within interface_residues.cutoff.",
            ),
            count(
                "backbone_hydrogen_bonds",
                "Hydrogen bonds between the backbones of the two chains.",
            ),
        ];
        columns
            .map(|column| column.in_table(TableName::Interfaces))
            .to_vec()
    }

    fn record(&self, r: &mut FeatureRecorder<'_>) {
        if !self.keep {
            return;
        }
        let settings: (&InterfaceResidues, &Sasa) = (r.settings(), r.settings());
        let cutoff = settings.0.cutoff.milli_angstrom();
        let (probe, points) = (settings.1.kernel_probe(), settings.1.parts());
        let (header, structures, residues) = (r.header(), r.structures(), r.residues());
        let (atoms, cells, ranges) = (r.atoms(), r.cells(CellKind::Atoms), chain_ranges(r));
        let rooms = r.rooms();

        let degrees = r.device("interface_degrees", RESIDUES, 1);
        let args = interface_degrees::Args {
            header,
            structures,
            residues,
            atoms,
            cells,
            ranges,
            degrees,
            cutoff,
            probe,
        };
        r.launch_warps(RESIDUES, args);
        let (ends, partner_totals) = ends_of(r, RESIDUES, degrees);
        let per_partner =
            |r: &mut FeatureRecorder<'_>, name| r.device(name, PAIR_ROOM, PARTNERS_PER_UNIT);
        let (partners, contacts) = (
            per_partner(r, "interface_partners"),
            per_partner(r, "interface_contacts"),
        );
        let args = interface_partners::Args {
            header,
            structures,
            residues,
            atoms,
            cells,
            residue_of: r.atom_residue(),
            ranges,
            rooms,
            ends,
            partners,
            contacts,
            cutoff,
            probe,
        };
        r.launch_warps(RESIDUES, args);
        let all = PartnerBuffers {
            rooms,
            ends,
            partners,
        };
        let buried = partner_areas(r, all);

        let (chains, members) = (r.chains(), r.members());
        let degrees = r.device("interface_pair_degrees", CHAINS, 1);
        let args = interface_pairs::Args {
            header,
            structures,
            chains,
            members,
            rooms,
            ends,
            partners,
            contacts,
            degrees,
        };
        r.launch_blocks(CHAINS, args);
        let (row_ends, totals) = ends_of(r, CHAINS, degrees);
        // The values of a row: its two chains, and columns of three counts, three areas and one
        // count.
        let per_row = |values| values * INTERFACES_PER_UNIT;
        let table = TableName::Interfaces;
        let buffers = InterfaceBuffers {
            partner_totals,
            totals,
            pairs: r.results(table, "interface_pairs", per_row(2)).buffer,
            counts: r.results(table, "interface_counts", per_row(3)).buffer,
            areas: r.results(table, "interface_areas", per_row(3)).buffer,
            bonds: r.results(table, "interface_bonds", per_row(1)).buffer,
            row_ends,
            interactions: None,
        };
        let args = interface_rows::Args {
            header,
            structures,
            chains,
            members,
            rooms,
            ends,
            partners,
            contacts,
            buried,
            row_ends,
            pairs: buffers.pairs,
            counts: buffers.counts,
            areas: buffers.areas,
            bonds: buffers.bonds,
            points,
        };
        r.launch_blocks(CHAINS, args);
        let (hydrogens, backbone) = (amide_hydrogens(r), r.backbone());
        let args = interface_bonds::Args {
            header,
            structures,
            residues,
            ca: r.ca(),
            cells: r.cells(CellKind::Ca),
            backbone,
            hydrogens,
            rooms,
            row_ends,
            pairs: buffers.pairs,
            bonds: buffers.bonds,
        };
        r.launch_warps(RESIDUES, args);
        r.buffers.interfaces = Some(buffers);
    }
}

/// Records the launch that sums `degrees`, the numbers of entries of each residue or chain. Returns
/// the end of each one's entries among those of its structure, and each structure's total.
fn ends_of(
    r: &mut FeatureRecorder<'_>,
    axis: usize,
    degrees: Buffer<i32>,
) -> (Buffer<i32>, Buffer<i32>) {
    let of_chains = axis == CHAINS;
    let (name, name_of_totals) = if of_chains {
        ("interface_row_ends", "interface_totals")
    } else {
        ("interface_partner_ends", "interface_partner_totals")
    };
    let ends = r.device(name, axis, 1);
    let totals = r.results(TableName::Structures, name_of_totals, 1).buffer;
    let args = interface_ends::Args {
        header: r.header(),
        structures: r.structures(),
        degrees,
        ends,
        totals,
        of_chains: u32::from(of_chains),
    };
    r.launch_blocks(STRUCTURES, args);
    (ends, totals)
}
