//! The table of interactions: what holds residues and ligands together.

mod counts;
mod pack;
mod search;

use super::cell_kind::CellKind;
use super::columns::{ColumnDecl, ColumnKind, TableName, Tolerance};
use super::constants;
use super::cutoff::Cutoff;
use super::feature::{About, Feature, SettingField};
use super::interfaces::InteractionCounts;
use super::kernels::{
    interaction_counts, interaction_degrees, interaction_rows, interface_interactions,
};
use super::layout::{ATOMS, PAIR_ROOM, REACH};
use super::recorder::FeatureRecorder;
use super::results::ResultBuffer;
use crate::error::{Error, Result};
use crate::structure::{Components, Structure, WaterBridge};
use crate::workload::Extent;
pub(super) use pack::{chemistry_of, write_frames, write_roles};

/// The kinds of interactions, in the order of their codes.
pub const INTERACTION_KINDS: [&str; 8] = [
    "hydrogen_bond",
    "salt_bridge",
    "disulfide",
    "pi_stacking_face",
    "pi_stacking_edge",
    "cation_pi",
    "hydrophobic",
    "metal_coordination",
];

/// Counts of each residue.
const COUNTS: usize = constants::INTERACTION_KINDS as usize;
const _: () = assert!(COUNTS == INTERACTION_KINDS.len());

/// The largest distance of an interaction, in A, above all that programs take (docs/METHODS.md).
const DISTANCE_MAX: f64 = 8.0;
const _: () = assert!(
    DISTANCE_MAX as u32 * 1_000 + 2 * CENTRE_MAX <= REACH,
    "a search reaches a group whose centre is farther away than its atom"
);

/// The largest distance of a water from both sides of its bridge, in A.
const WATER_BRIDGE_MAX: f64 = WaterBridge::REACH_MAX as f64 / 1000.0;

/// The largest distance of a group's centre from the atom that stands for it, in 0.001 A. A group with
/// another has atoms in wrong places, and no interaction.
const CENTRE_MAX: u32 = 3_000;

/// Rows of interactions that a structure has room for, for each unit of the axis of room: twice
/// what a protein has for each residue.
const ROWS_PER_UNIT: usize = 4;

/// Atoms of ligands and nucleic acids that have the interactions of a residue, which has about as
/// many.
const ATOMS_PER_UNIT: u32 = 8;

/// Settings of the table of interactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interactions {
    /// Whether there is a table of interactions. If not, the feature has no columns.
    pub keep: bool,
    /// The kinds that are listed, of [`INTERACTION_KINDS`].
    pub kinds: Vec<String>,
    /// The dictionary that gives ligands' atoms their roles; `None`: their geometry does. Structures that
    /// were read with their chemistry have it from [`ReadOptions::components`].
    ///
    /// [`ReadOptions::components`]: crate::structure::ReadOptions::components
    pub components: Option<Components>,
    /// Whether bridges of water are found. That is the reader's work: see [`ReadOptions::water_reach`].
    ///
    /// [`ReadOptions::water_reach`]: crate::structure::ReadOptions::water_reach
    pub waters: bool,
    /// The largest distance of a water from both sides of its bridge.
    pub water_bridge: Cutoff,
    /// The largest distance of donor and acceptor.
    pub hydrogen_bond: Cutoff,
    /// The largest distance of a hydrogen and its acceptor.
    pub hydrogen: Cutoff,
    /// The largest distance of the centres of a positive and a negative group.
    pub salt_bridge: Cutoff,
    /// The largest distance of two sulfurs.
    pub disulfide: Cutoff,
    /// The largest distance of the centres of two rings.
    pub pi_stacking: Cutoff,
    /// The largest distance of the centres of a positive group and a ring.
    pub cation_pi: Cutoff,
    /// The largest distance of the centre of one ring, or of a charge, from the axis of the other ring.
    pub ring_offset: Cutoff,
    /// The largest distance of two hydrophobic carbons.
    pub hydrophobic: Cutoff,
    /// The largest distance of a metal and an atom that binds it.
    pub metal_coordination: Cutoff,
}

impl Default for Interactions {
    /// No table; all kinds by the distances of the sources if there is one.
    fn default() -> Self {
        let tenths =
            |tenths: u32| Cutoff::from_angstrom(f64::from(tenths) / 10.0).expect("in range");
        Interactions {
            keep: false,
            kinds: INTERACTION_KINDS.map(str::to_owned).to_vec(),
            components: None,
            waters: false,
            water_bridge: tenths(41),
            hydrogen_bond: tenths(39),
            hydrogen: tenths(25),
            salt_bridge: tenths(55),
            disulfide: tenths(25),
            pi_stacking: tenths(55),
            cation_pi: tenths(60),
            ring_offset: tenths(20),
            hydrophobic: tenths(40),
            metal_coordination: tenths(30),
        }
    }
}

/// Constants of the kernels: the largest distances by kind, the offset of rings, the largest distance
/// of a hydrogen, the two reaches, and the kinds that are listed.
const LIMITS: usize = constants::LISTED_KINDS as usize + 1;

impl Interactions {
    /// Whether a kind is listed.
    fn lists(&self, kind: &str) -> bool {
        self.kinds.iter().any(|listed| listed == kind)
    }

    /// The largest distances by kind, 0 for one that is not listed; then the largest offset of
    /// rings, the largest distance of a hydrogen, how far the search of an atom goes, and that of
    /// one that stands for a group, whose centre and the other may each be [`CENTRE_MAX`] from
    /// their atoms, all in 0.001 A; then a bit for each kind that is listed, as faces and edges
    /// share a distance.
    fn limits(&self) -> [u32; LIMITS] {
        let stacking = INTERACTION_KINDS[3..5].iter().any(|kind| self.lists(kind));
        let listed = INTERACTION_KINDS.map(|kind| self.lists(kind));
        let distances = [
            (listed[0], self.hydrogen_bond),
            (listed[1], self.salt_bridge),
            (listed[2], self.disulfide),
            (stacking, self.pi_stacking),
            (stacking, self.pi_stacking),
            (listed[5], self.cation_pi),
            (listed[6], self.hydrophobic),
            (listed[7], self.metal_coordination),
        ];
        let [
            bond,
            salt,
            disulfide,
            face,
            edge,
            cation,
            hydrophobic,
            metal,
        ] = distances.map(|(is_listed, distance)| {
            if is_listed {
                distance.milli_angstrom()
            } else {
                0
            }
        });
        let of_atoms = bond.max(disulfide).max(hydrophobic).max(metal);
        let of_groups = salt.max(face).max(cation);
        let kinds = (0..)
            .zip(listed)
            .map(|(bit, listed)| u32::from(listed) << bit);
        [
            bond,
            salt,
            disulfide,
            face,
            edge,
            cation,
            hydrophobic,
            metal,
            self.ring_offset.milli_angstrom(),
            self.hydrogen.milli_angstrom(),
            of_atoms,
            of_atoms.max(of_groups + 2 * CENTRE_MAX),
            kinds.sum(),
        ]
    }
}

impl Feature for Interactions {
    fn about(&self) -> About {
        About {
            summary: "A table of hydrogen bonds, salt bridges, disulfides, stacked rings, cations above \
                      rings, hydrophobic contacts and metal bonds of any two residues or ligands; only \
                      with `interactions = true`.",
            formula: "hydrogen_bond: N or O with a hydrogen and N or O with a lone pair, d(D, A) < 3.9 A, \
                      d(H, A) < 2.5 A, angles at H and at A above 90 degrees, H at 1 A from D where it \
                      comes nearest to A; salt_bridge: centres of \
                      charged groups, d < 5.5 A; disulfide: S of two cysteines, d < 2.5 A; \
                      pi_stacking_face and pi_stacking_edge: centres of aromatic rings, d < 5.5 A, one \
                      within 2 A of the other's axis, planes at less than 30 or more than 60 degrees; \
                      cation_pi: centre of a positive group and of a ring, d < 6 A, within 2 A of the \
                      ring's axis; hydrophobic: carbons that are bonded to C and H alone, d < 4 A; \
                      metal_coordination: metal and N, O or S, d < 3 A; the table water_bridges, with \
                      `interaction.waters = true`: two N or O, 2.5 to 4.1 A from a water, at 71 to 140 degrees",
            source: "hydrogen bonds: McDonald and Thornton 1994, J Mol Biol 238:777; the others: \
                     Adasme et al. 2021, Nucleic Acids Res 49:W530",
            needs: &[],
        }
    }

    fn settings(&mut self) -> Vec<(&'static str, SettingField<'_>)> {
        vec![
            ("interactions", SettingField::Flag(&mut self.keep)),
            ("interaction.kinds", SettingField::Texts(&mut self.kinds)),
            (
                "interaction.components",
                SettingField::Components(&mut self.components),
            ),
            ("interaction.waters", SettingField::Flag(&mut self.waters)),
            (
                "interaction.water_bridge",
                SettingField::Length(&mut self.water_bridge, WATER_BRIDGE_MAX),
            ),
            (
                "interaction.hydrogen_bond",
                SettingField::Length(&mut self.hydrogen_bond, DISTANCE_MAX),
            ),
            (
                "interaction.hydrogen",
                SettingField::Length(&mut self.hydrogen, DISTANCE_MAX),
            ),
            (
                "interaction.salt_bridge",
                SettingField::Length(&mut self.salt_bridge, DISTANCE_MAX),
            ),
            (
                "interaction.disulfide",
                SettingField::Length(&mut self.disulfide, DISTANCE_MAX),
            ),
            (
                "interaction.pi_stacking",
                SettingField::Length(&mut self.pi_stacking, DISTANCE_MAX),
            ),
            (
                "interaction.cation_pi",
                SettingField::Length(&mut self.cation_pi, DISTANCE_MAX),
            ),
            (
                "interaction.ring_offset",
                SettingField::Length(&mut self.ring_offset, DISTANCE_MAX),
            ),
            (
                "interaction.hydrophobic",
                SettingField::Length(&mut self.hydrophobic, DISTANCE_MAX),
            ),
            (
                "interaction.metal_coordination",
                SettingField::Length(&mut self.metal_coordination, DISTANCE_MAX),
            ),
        ]
    }

    fn check(&self) -> Result<()> {
        let unknown = self
            .kinds
            .iter()
            .find(|kind| !INTERACTION_KINDS.contains(&&***kind));
        if let Some(kind) = unknown {
            let message =
                format!("interaction.kinds has {kind:?}, which is no kind of interaction");
            let fix = format!("choose from {}", INTERACTION_KINDS.join(", "));
            return Err(Error::config(message).fix(fix));
        }
        if self.kinds.is_empty() {
            let error = Error::config("interaction.kinds is empty");
            return Err(error.fix("name a kind, or leave the key out for all of them"));
        }
        Ok(())
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        if !self.keep {
            return Vec::new();
        }
        let index = |name: &str, which: &str| {
            let about = format!(
                "The index in the structure of the {which} atom, or of the atom that stands for its \
                 group: atoms of residues come first, then those of nucleotides and caps, then those \
                 of ligands, glycans first."
            );
            ColumnDecl::residue(name, ColumnKind::Count, "", about)
        };
        let kind = ColumnKind::Text(&INTERACTION_KINDS);
        let columns = [
            index("atom_index_1", "first"),
            index("atom_index_2", "second"),
            ColumnDecl::residue("kind", kind, "", "The kind of interaction."),
            ColumnDecl::residue(
                "distance",
                ColumnKind::Real,
                "A",
                "The distance of the two atoms, or of the centres of the two groups.",
            )
            // As of contacts: only the root is rounded.
            .reference(Tolerance::relative(1e-6)),
            ColumnDecl::residue(
                "angle",
                ColumnKind::Real,
                "degrees",
                "Of a hydrogen bond the angle at the hydrogen, which is where it comes nearest to the \
                 acceptor; of stacked rings that of their planes; of a cation above a ring \
                 that of the ring's axis and the line to the cation; null for other kinds.",
            )
            .reference(Tolerance::absolute(0.001)),
        ];
        let columns = columns.map(|column| column.in_table(TableName::Interactions));
        let listed = || INTERACTION_KINDS.iter().filter(|kind| self.lists(kind));
        // Rounded positions may change rows near a limit, of which an interface has many.
        let count = |kind: &str, whose: &str, moved: u32| {
            let about = format!("Rows of the table `interactions` of the kind {kind} {whose}.");
            let column = ColumnDecl::residue(format!("n_{kind}"), ColumnKind::Count, "", about);
            let column = column.rotation(Tolerance::EXACT.but_for(moved));
            column.idle_when("no interaction of the kind was found")
        };
        let of_residues = listed().map(|kind| count(kind, "that the residue is in", 40));
        let of_interfaces = listed().map(|kind| {
            let column = count(kind, "between the two chains", 150);
            column.in_table(TableName::Interfaces)
        });
        let counts = of_residues.chain(of_interfaces);
        columns.into_iter().chain(counts).collect()
    }

    fn record(&self, r: &mut FeatureRecorder<'_>) {
        if !self.keep {
            return;
        }
        let first = r.constants("interaction_limit", self.limits().into_iter()) as u32;
        let (atoms, cells) = (r.bound_atoms(), r.cells(CellKind::BoundAtoms));
        let (roles, frames) = (r.roles(), r.frames());
        r.buffers.inputs.components = self.components;
        let degrees = r.device::<i32>("interaction_degrees", ATOMS, 1);
        let args = interaction_degrees::Args {
            header: r.header(),
            structures: r.structures(),
            chains: r.chains(),
            atoms,
            cells,
            roles,
            frames,
            degrees,
            first,
        };
        r.launch_warps(ATOMS, args);
        let lists = r.atom_pair_lists("interaction", degrees, ROWS_PER_UNIT);
        let kinds = r.listed_counts(&lists, "interaction_kinds");
        let distances = r.listed_reals(&lists, "interaction_distances");
        let angles = r.listed_reals(&lists, "interaction_angles");
        let args = interaction_rows::Args {
            header: r.header(),
            structures: r.structures(),
            chains: r.chains(),
            atoms,
            cells,
            roles,
            frames,
            rooms: lists.rooms,
            ends: lists.ends,
            unsorted: lists.unsorted,
            partners: lists.partners,
            kinds,
            distances,
            angles,
            first,
        };
        r.launch_warps(ATOMS, args);
        let columns = vec![
            ResultBuffer::Count(kinds),
            ResultBuffer::Real(distances),
            ResultBuffer::Real(angles),
        ];
        r.add_listed_pairs(TableName::Interactions, &lists, columns);
        let counts = r.zero_counts(TableName::Residues, "interaction_counts", COUNTS);
        let args = interaction_counts::Args {
            header: r.header(),
            structures: r.structures(),
            chains: r.chains(),
            atoms,
            roles,
            rooms: lists.rooms,
            ends: lists.ends,
            partners: lists.partners,
            kinds,
            counts: counts.buffer,
        };
        r.launch_threads(ATOMS, args);
        for (index, kind) in INTERACTION_KINDS.iter().enumerate() {
            if self.lists(kind) {
                r.column(counts, index);
            }
        }
        // The feature of interfaces is recorded before this one, if the run has their table.
        let Some(interfaces) = r.buffers.interfaces else {
            return;
        };
        let [row_ends, pairs] = interfaces.rows_of_chains();
        let counts = r.zero_counts(TableName::Interfaces, "interface_interactions", COUNTS);
        let args = interface_interactions::Args {
            header: r.header(),
            structures: r.structures(),
            chains: r.chains(),
            atoms,
            roles,
            rooms: lists.rooms,
            ends: lists.ends,
            partners: lists.partners,
            kinds,
            interface_rooms: r.rooms(),
            row_ends,
            pairs,
            counts: counts.buffer,
        };
        r.launch_threads(ATOMS, args);
        let counts = InteractionCounts {
            counts: counts.buffer,
            values: COUNTS,
            listed: self.limits()[constants::LISTED_KINDS as usize],
        };
        r.buffers.interfaces = Some(interfaces.with_interactions(counts));
    }
}

/// The extent of a structure with room for the interactions of atoms without a residue, whose own
/// extent has room for those of residues.
pub(super) fn with_room(extent: Extent, structure: &Structure) -> Extent {
    let of_residues = structure.atom_start.last().copied().unwrap_or(0);
    let others = (extent[ATOMS] - of_residues).div_ceil(ATOMS_PER_UNIT);
    extent.with(PAIR_ROOM, extent[PAIR_ROOM].saturating_add(others))
}
