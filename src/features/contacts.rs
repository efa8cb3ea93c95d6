//! The table of contacts: pairs of residues that are near.

mod search;

use super::cell_kind::CellKind;
use super::columns::{ColumnDecl, ColumnKind, TableName, Tolerance};
use super::constants;
use super::cutoff::Cutoff;
use super::feature::{About, Feature, SettingField, choice, own_chain};
use super::kernels::{
    CellBuffers, contact_degrees, contact_rows, near_residue_degrees, near_residue_rows,
    nearest_points, nearest_residues,
};
use super::layout::{Atom, REACH, RESIDUES};
use super::recorder::FeatureRecorder;
use super::results::ResultBuffer;
use crate::error::{Error, Result};
use crate::record::Buffer;

/// The largest cutoff, in A. The nearest atoms of two residues are hardly farther apart than the
/// points that are compared with it, so that distances of atoms stay below [`REACH`], in 32 bits.
const CUTOFF_MAX: u32 = 30;

/// The most neighbours of a residue.
const NEAREST_MAX: u32 = constants::NEAREST_MAX;

/// C-alphas in a cubic A of a compact protein, about 0.007, with some to spare.
const DENSITY: f64 = 0.008;

/// Heavy atoms of two residues are up to so much nearer than their C-alphas, mostly, in A.
const SIDE_CHAINS: f64 = 4.0;

/// Settings of contacts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contacts {
    /// The point of a residue that distances are measured from.
    pub point: ContactPoint,
    /// Residues that are closer than this are in contact; at most 30 A.
    pub cutoff: Cutoff,
    /// The number of nearest residues that count as contacts of each residue, at most 64; 0 to use the
    /// cutoff instead.
    pub nearest: u32,
    /// Whether both residues are of the same chain.
    pub own_chain: bool,
}

/// The point of a residue that the distances of contacts are measured from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContactPoint {
    /// There is no table of contacts.
    None,
    /// The C-alpha.
    Ca,
    /// The C-beta; an ideal one for glycine, and where it is missing.
    Cb,
    /// The heavy atom that is nearest to one of the other residue.
    Any,
}

choice!(ContactPoint: None "none", Ca "ca", Cb "cb", Any "any");

impl Default for Contacts {
    /// No contacts; 10 A and all chains if an atom is chosen.
    fn default() -> Self {
        Contacts {
            point: ContactPoint::None,
            cutoff: Cutoff::of_angstrom(10),
            nearest: 0,
            own_chain: false,
        }
    }
}

impl Contacts {
    /// How much nearer residues are than their C-alphas, mostly, in A.
    fn nearer(&self) -> f64 {
        match self.point {
            ContactPoint::Any => SIDE_CHAINS,
            _ => 0.0,
        }
    }

    /// Rows of contacts that a structure has room for, for each unit of the axis of room, of which
    /// it takes one for each residue: more than the contacts with later residues, half of all, of a
    /// compact protein. The 2 are for small cutoffs, as neighbours along the chain are 3.8 A apart.
    fn rows_per_unit(&self) -> usize {
        let radius = self.cutoff.angstrom() + self.nearer();
        let sphere = 4.0 / 3.0 * std::f64::consts::PI * radius.powi(3);
        (0.5 * DENSITY * sphere) as usize + 2
    }

    /// The distance of the first search for nearest residues, in 0.001 A. At least 4 A reach the neighbours
    /// along the chain. The results do not depend on it.
    fn first_reach(&self) -> u32 {
        // Twice as large as a full one, as half of it is empty near the surface of a compact protein, and
        // some to spare.
        let sphere = 2.5 * f64::from(self.nearest) / DENSITY;
        let radius = (sphere * 3.0 / 4.0 / std::f64::consts::PI).cbrt();
        ((radius - self.nearer()).max(4.0) * 1000.0).min(f64::from(REACH)) as u32
    }
}

impl Feature for Contacts {
    fn about(&self) -> About {
        About {
            summary: "A table of the pairs of residues that are near; only where contacts.atom is \
                      chosen.",
            formula: "pairs i < j of residues of the model with d(i, j) < R, d the distance of \
                      their C-alphas or C-betas, or with \"any\" of the nearest heavy atoms; with \
                      contacts.nearest = k rows i -> j instead, j the k residues with the least \
                      d(i, j), whatever R, of equally near ones those with the lower index first; \
                      min_distance: the least distance of a heavy atom of i and one of j",
            source: "",
            needs: &[],
        }
    }

    fn settings(&mut self) -> Vec<(&'static str, SettingField<'_>)> {
        vec![
            ("contacts.atom", SettingField::Choice(&mut self.point)),
            (
                "contacts.cutoff",
                SettingField::Length(&mut self.cutoff, Cutoff::MAX_ANGSTROM),
            ),
            (
                "contacts.nearest",
                SettingField::Integer(&mut self.nearest, 0..=i64::from(NEAREST_MAX)),
            ),
            ("contacts.chains", own_chain(&mut self.own_chain)),
        ]
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let what = match self.point {
            ContactPoint::None => return Vec::new(),
            ContactPoint::Ca => "The distance of the C-alphas.",
            ContactPoint::Cb => {
                "The distance of the C-betas, built from N, CA and C where they are missing."
            }
            ContactPoint::Any => "The distance of the nearest heavy atoms, which is min_distance.",
        };
        let index = |name: &str, about: &str| {
            let about = format!("res_index of {about}.");
            ColumnDecl::residue(name, ColumnKind::Count, "", about)
        };
        let distance = |name: &str, about: &str| {
            // Squared distances are exact, and only the root is rounded.
            ColumnDecl::residue(name, ColumnKind::Real, "A", about)
                .reference(Tolerance::relative(1e-6))
        };
        let second = match self.nearest {
            0 => "the second residue of the pair".to_owned(),
            count => format!("one of the {count} nearest residues of the first"),
        };
        let columns = [
            index("res_index_i", "the first residue of the pair"),
            index("res_index_j", &second),
            distance("distance", what),
            distance(
                "min_distance",
                "The least distance of a heavy atom of one residue and one of the other.",
            ),
        ];
        columns
            .map(|column| column.in_table(TableName::Contacts))
            .to_vec()
    }

    fn record(&self, r: &mut FeatureRecorder<'_>) {
        let (points, cells) = match self.point {
            ContactPoint::None => return,
            ContactPoint::Ca => (r.ca(), r.cells(CellKind::Ca)),
            ContactPoint::Cb => (r.cb(), r.cells(CellKind::Cb)),
            ContactPoint::Any if self.nearest > 0 => return self.record_nearest_residues(r),
            ContactPoint::Any => return self.record_near_residues(r),
        };
        if self.nearest > 0 {
            return self.record_nearest_points(r, points, cells);
        }
        let cutoff = self.cutoff.milli_angstrom();
        let own_chain = u32::from(self.own_chain);
        let degrees = r.device::<i32>("contact_degrees", RESIDUES, 1);
        let args = contact_degrees::Args {
            header: r.header(),
            structures: r.structures(),
            residues: r.residues(),
            points,
            cells,
            degrees,
            cutoff,
            own_chain,
        };
        r.launch_warps(RESIDUES, args);
        let lists = r.pair_lists("contact", degrees, self.rows_per_unit());
        let distances = r.listed_reals(&lists, "contact_distances");
        let min_distances = r.listed_reals(&lists, "contact_min_distances");
        let args = contact_rows::Args {
            header: r.header(),
            structures: r.structures(),
            residues: r.residues(),
            atoms: r.atoms(),
            points,
            cells,
            rooms: lists.rooms,
            ends: lists.ends,
            unsorted: lists.unsorted,
            partners: lists.partners,
            distances,
            min_distances,
            cutoff,
            own_chain,
        };
        r.launch_warps(RESIDUES, args);
        r.add_listed_pairs(
            TableName::Contacts,
            &lists,
            [distances, min_distances].map(ResultBuffer::Real).to_vec(),
        );
    }

    fn check(&self) -> Result<()> {
        if self.cutoff > Cutoff::of_angstrom(CUTOFF_MAX) {
            let cutoff = self.cutoff.angstrom();
            let message = format!("contacts.cutoff of {cutoff} A is above {CUTOFF_MAX} A");
            return Err(Error::config(message));
        }
        Ok(())
    }
}

impl Contacts {
    /// Records the pairs whose nearest heavy atoms are within the cutoff.
    fn record_near_residues(&self, r: &mut FeatureRecorder<'_>) {
        let cutoff = self.cutoff.milli_angstrom();
        let own_chain = u32::from(self.own_chain);
        let (atoms, cells, residue_of) = (r.atoms(), r.cells(CellKind::Atoms), r.atom_residue());
        let degrees = r.device::<i32>("contact_degrees", RESIDUES, 1);
        let args = near_residue_degrees::Args {
            header: r.header(),
            structures: r.structures(),
            residues: r.residues(),
            atoms,
            cells,
            residue_of,
            degrees,
            cutoff,
            own_chain,
        };
        r.launch_warps(RESIDUES, args);
        let lists = r.pair_lists("contact", degrees, self.rows_per_unit());
        let min_distances = r.listed_reals(&lists, "contact_min_distances");
        let args = near_residue_rows::Args {
            header: r.header(),
            structures: r.structures(),
            residues: r.residues(),
            atoms,
            cells,
            residue_of,
            rooms: lists.rooms,
            ends: lists.ends,
            unsorted: lists.unsorted,
            partners: lists.partners,
            min_distances,
            cutoff,
            own_chain,
        };
        r.launch_warps(RESIDUES, args);
        r.add_listed_pairs(
            TableName::Contacts,
            &lists,
            // By heavy atoms, `distance` is the shortest distance too.
            vec![ResultBuffer::Real(min_distances); 2],
        );
    }

    /// Records the nearest residues of each, by points. Each residue has `nearest` rows, so no room
    /// has to be counted first.
    fn record_nearest_points(
        &self,
        r: &mut FeatureRecorder<'_>,
        points: Buffer<Atom>,
        cells: CellBuffers,
    ) {
        let count = self.nearest as usize;
        let partners = r.partners("contact", RESIDUES, count);
        let distances = r.pair_reals("contact_distances", RESIDUES, count);
        let min_distances = r.pair_reals("contact_min_distances", RESIDUES, count);
        let args = nearest_points::Args {
            header: r.header(),
            structures: r.structures(),
            residues: r.residues(),
            atoms: r.atoms(),
            points,
            cells,
            partners,
            distances,
            min_distances,
            count: self.nearest,
            reach: self.first_reach(),
            own_chain: u32::from(self.own_chain),
        };
        r.launch_warps(RESIDUES, args);
        let reals = [distances, min_distances].map(ResultBuffer::Real).to_vec();
        r.add_residue_pairs(TableName::Contacts, count, partners, reals);
    }

    /// Records the nearest residues of each, by heavy atoms, in `nearest` rows of each residue.
    fn record_nearest_residues(&self, r: &mut FeatureRecorder<'_>) {
        let count = self.nearest as usize;
        let partners = r.partners("contact", RESIDUES, count);
        let min_distances = r.pair_reals("contact_min_distances", RESIDUES, count);
        let args = nearest_residues::Args {
            header: r.header(),
            structures: r.structures(),
            residues: r.residues(),
            atoms: r.atoms(),
            cells: r.cells(CellKind::Atoms),
            residue_of: r.atom_residue(),
            partners,
            min_distances,
            count: self.nearest,
            reach: self.first_reach(),
            own_chain: u32::from(self.own_chain),
        };
        r.launch_warps(RESIDUES, args);
        // By heavy atoms, `distance` is the shortest distance too.
        let reals = vec![ResultBuffer::Real(min_distances); 2];
        r.add_residue_pairs(TableName::Contacts, count, partners, reals);
    }
}
