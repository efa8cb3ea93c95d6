//! The table of contacts: pairs of residues that are near.

use super::columns::{ColumnDecl, ColumnKind, TableName, Tolerance};
use super::cpu::simd;
use super::cpu::split::{for_each_row, parts};
use super::cutoff::Cutoff;
use super::feature::{About, Feature, Setting, unknown};
use super::kernels::{Twin, contact_degrees, contact_ends, contact_rows};
use super::layout::{CONTACT_ROOM, RESIDUES, STRUCTURES, StructureSpan};
use super::recorder::FeatureRecorder;
use super::results::ResultBuffer;
use super::table::Values;
use crate::error::{Error, Result};
use crate::record::Buffer;
use crate::workload::{Extent, ReadViews};
use fearless_simd::dispatch;
use rayon::prelude::*;
use std::ops::Range;

/// The largest cutoff, in A: the distances of atoms of the residues stay within 32 bits.
const CUTOFF_MAX: u32 = 30;

/// Settings of contacts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contacts {
    /// The atom of a residue that is near another residue's.
    pub point: ContactPoint,
    /// Residues whose atoms are closer than this are in contact; at most 30 A.
    pub cutoff: Cutoff,
    /// Whether both residues are of the same chain.
    pub own_chain: bool,
}

/// The atom of a residue that contacts are measured from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContactPoint {
    /// There is no table of contacts.
    None,
    /// The C-alpha.
    Ca,
    /// The C-beta; an ideal one for glycine, and where it is missing.
    Cb,
}

const POINTS: &[&str] = &["none", "ca", "cb"];

/// The names in a config of the residues that are paired.
const CHAINS: &[&str] = &["all", "own"];

impl Default for Contacts {
    /// No contacts; 10 A and all chains if an atom is chosen.
    fn default() -> Self {
        Contacts {
            point: ContactPoint::None,
            cutoff: Cutoff::of_angstrom(10),
            own_chain: false,
        }
    }
}

impl Contacts {
    /// Rows of contacts that a structure has room for, for each unit of the axis of room, of which
    /// it takes one for each residue: more than the contacts with later residues of a compact
    /// protein, which has about 0.007 C-alphas in a cubic A.
    fn rows_per_unit(&self) -> usize {
        let sphere = 4.0 / 3.0 * std::f64::consts::PI * self.cutoff.angstrom().powi(3);
        (0.5 * 0.008 * sphere) as usize + 2
    }
}

impl Feature for Contacts {
    fn about(&self) -> About {
        About {
            summary: "A table of the pairs of residues that are near; only where contacts.atom is \
                      chosen.",
            formula: "pairs i < j of residues of the model with d(i, j) < R, d the distance of \
                      their C-alphas or C-betas; min_distance: the least distance of a heavy atom \
                      of i and one of j",
            source: "",
            needs: &[],
        }
    }

    fn settings(&self) -> Vec<(&'static str, Setting)> {
        vec![
            (
                "contacts.atom",
                Setting::Choice(POINTS[self.point as usize], POINTS),
            ),
            ("contacts.cutoff", Setting::Length(self.cutoff)),
            (
                "contacts.chains",
                Setting::Choice(CHAINS[usize::from(self.own_chain)], CHAINS),
            ),
        ]
    }

    fn set(&mut self, key: &str, value: &Setting) -> Result<()> {
        match (key, value) {
            ("contacts.atom", Setting::Choice("none", _)) => self.point = ContactPoint::None,
            ("contacts.atom", Setting::Choice("ca", _)) => self.point = ContactPoint::Ca,
            ("contacts.atom", Setting::Choice("cb", _)) => self.point = ContactPoint::Cb,
            ("contacts.cutoff", Setting::Length(cutoff)) => self.cutoff = *cutoff,
            ("contacts.chains", Setting::Choice("all", _)) => self.own_chain = false,
            ("contacts.chains", Setting::Choice("own", _)) => self.own_chain = true,
            _ => return Err(unknown(key)),
        }
        Ok(())
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let what = match self.point {
            ContactPoint::None => return Vec::new(),
            ContactPoint::Ca => "C-alphas",
            ContactPoint::Cb => "C-betas, built from N, CA and C where they are missing,",
        };
        let index = |name: &str, which: &str| {
            let about = format!("res_index of the {which} residue of the pair.");
            ColumnDecl::residue(name, ColumnKind::Count, "", about)
        };
        let distance = |name: &str, about: String| {
            ColumnDecl::residue(name, ColumnKind::Real, "A", about)
                .reference(Tolerance::relative(1e-6))
        };
        let columns = [
            index("res_index_i", "first"),
            index("res_index_j", "second"),
            distance("distance", format!("The distance of the {what}.")),
            distance(
                "min_distance",
                "The least distance of a heavy atom of one residue and one of the other.".into(),
            ),
        ];
        columns
            .map(|column| column.of(TableName::Contacts))
            .to_vec()
    }

    fn record(&self, r: &mut FeatureRecorder<'_>) {
        let (points, cells) = match self.point {
            ContactPoint::None => return,
            ContactPoint::Ca => (r.ca(), r.ca_cells()),
            ContactPoint::Cb => (r.cb(), r.cb_cells()),
        };
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
        let rows_per_unit = self.rows_per_unit();
        let buffers = ContactBuffers {
            rows_per_unit,
            ends: r.downloaded("contact_ends", RESIDUES, 1),
            partners: r.downloaded("contact_partners", CONTACT_ROOM, rows_per_unit),
            squares: r.downloaded("contact_squares", CONTACT_ROOM, rows_per_unit),
            least_squares: r.downloaded("contact_least_squares", CONTACT_ROOM, rows_per_unit),
        };
        let args = contact_ends::Args {
            header: r.header(),
            structures: r.structures(),
            degrees,
            ends: buffers.ends,
        };
        r.launch_blocks(STRUCTURES, args);
        let args = contact_rows::Args {
            header: r.header(),
            structures: r.structures(),
            residues: r.residues(),
            atoms: r.atoms(),
            points,
            cells,
            rooms: r.contact_rooms(rows_per_unit),
            ends: buffers.ends,
            unsorted: r.device("contact_unsorted", CONTACT_ROOM, rows_per_unit),
            partners: buffers.partners,
            squares: buffers.squares,
            least_squares: buffers.least_squares,
            cutoff,
            own_chain,
        };
        r.launch_warps(RESIDUES, args);
        r.buffers.contacts = Some(buffers);
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

impl FeatureRecorder<'_> {
    fn downloaded(&mut self, name: &str, axis: usize, elements: usize) -> Buffer<i32> {
        let buffer = self.recorder.download_buffer(name, axis, elements);
        self.downloads.push(ResultBuffer::Count(buffer));
        buffer
    }
}

/// What the host reads of contacts.
#[derive(Clone, Copy, Debug)]
pub(super) struct ContactBuffers {
    rows_per_unit: usize,
    /// For each residue the end of its rows in its structure's, `[residues]`.
    ends: Buffer<i32>,
    /// The second residue of each pair, and the squared distances, `[rooms, rows_per_unit]`.
    partners: Buffer<i32>,
    squares: Buffer<i32>,
    least_squares: Buffer<i32>,
}

impl ContactBuffers {
    /// The extent that a structure needs for its contacts, if it is larger than its own.
    pub(super) fn outgrown(
        &self,
        views: &ReadViews<'_>,
        at: Extent,
        extent: Extent,
    ) -> Option<Extent> {
        let last = at[RESIDUES] as usize + (extent[RESIDUES] as usize).checked_sub(1)?;
        let rows = views.get(self.ends)[last] as usize;
        let units = u32::try_from(rows.div_ceil(self.rows_per_unit)).unwrap_or(u32::MAX);
        (units > extent[CONTACT_ROOM]).then(|| extent.with(CONTACT_ROOM, units))
    }

    /// Adds the rows of a structure to `columns`, and returns where they are. None if they have
    /// outgrown its room.
    pub(super) fn read(
        &self,
        views: &ReadViews<'_>,
        at: Extent,
        extent: Extent,
        columns: &mut ContactColumns,
    ) -> Range<usize> {
        let start = columns.first.len();
        let residues = at[RESIDUES] as usize..(at[RESIDUES] + extent[RESIDUES]) as usize;
        let ends = &views.get(self.ends)[residues];
        let rows = ends.last().map_or(0, |&end| end as usize);
        if rows > extent[CONTACT_ROOM] as usize * self.rows_per_unit {
            return start..start;
        }
        let first = at[CONTACT_ROOM] as usize * self.rows_per_unit;
        let own = first..first + rows;
        let mut before = 0;
        for (residue, &end) in (0..).zip(ends) {
            let count = (end - before) as usize;
            columns.first.extend(std::iter::repeat_n(residue, count));
            before = end;
        }
        columns
            .second
            .extend_from_slice(&views.get(self.partners)[own.clone()]);
        for (squares, distances) in [
            (self.squares, &mut columns.distance),
            (self.least_squares, &mut columns.min_distance),
        ] {
            let squares = &views.get(squares)[own.clone()];
            distances.extend(squares.iter().map(|&square| angstrom(square)));
        }
        start..start + rows
    }
}

/// The distance in A whose square is `square`, in (0.001 A)^2.
fn angstrom(square: i32) -> f32 {
    (f64::from(square).sqrt() / 1000.0) as f32
}

/// The number of columns of contacts.
pub(super) const CONTACT_COLUMNS: usize = 4;

/// The columns of contacts, in the order of [`Feature::columns`].
#[derive(Debug, Default)]
pub(super) struct ContactColumns {
    first: Vec<i32>,
    second: Vec<i32>,
    distance: Vec<f32>,
    min_distance: Vec<f32>,
}

impl ContactColumns {
    pub(super) fn into_values(self) -> Vec<Values> {
        vec![
            Values::Count(self.first),
            Values::Count(self.second),
            Values::Real(self.distance),
            Values::Real(self.min_distance),
        ]
    }
}

/// Counts for each residue its contacts with later residues.
impl Twin for contact_degrees::Views<'_> {
    fn run(self) {
        let Self {
            header,
            structures,
            residues,
            points,
            cells,
            degrees,
            cutoff,
            own_chain,
        } = self;
        let structures = StructureSpan::live(header, structures);
        let degrees = &mut degrees[..header[RESIDUES] as usize];
        for_each_row(degrees, 1, |rows, degrees| {
            dispatch!(simd::level(), simd => {
                for (own, degree) in rows.zip(degrees) {
                    *degree = 0;
                    let point = &points[own];
                    if point.is_present() {
                        let grid = &structures[residues[own].structure as usize].residue_grid;
                        let runs = cells.runs(grid, point.position.into(), cutoff as i32);
                        let count = |other: u32| *degree += i32::from(other as usize > own);
                        cells.each_within(simd, runs, point, cutoff, own_chain != 0, count);
                    }
                }
            });
        });
    }
}

/// Sums the numbers of contacts over the residues of each structure.
impl Twin for contact_ends::Views<'_> {
    fn run(self) {
        let structures = StructureSpan::live(self.header, self.structures);
        for structure in structures {
            let mut sum = 0;
            for own in structure.residues() {
                sum += self.degrees[own];
                self.ends[own] = sum;
            }
        }
    }
}

/// Lists the contacts of each residue with later residues, in their order.
impl Twin for contact_rows::Views<'_> {
    fn run(self) {
        let Self {
            header,
            structures,
            residues,
            atoms,
            points,
            cells,
            rooms,
            ends,
            partners,
            squares,
            least_squares,
            cutoff,
            own_chain,
            ..
        } = self;
        let structures = StructureSpan::live(header, structures);
        // The residues, and the rows of each; none if its structure's have outgrown their room.
        let own = || structures.iter().map(StructureSpan::residues);
        let ranges = || {
            own().zip(rooms.chunks_exact(2)).flat_map(|(own, room)| {
                let [first, room] = [room[0] as usize, room[1] as usize];
                let (start, last) = (own.start, own.clone().last());
                let fits = last.is_none_or(|last| ends[last] as usize <= room);
                own.map(move |residue| {
                    let before = if residue == start {
                        0
                    } else {
                        ends[residue - 1]
                    };
                    let rows =
                        [before, ends[residue]].map(|end| if fits { end as usize } else { 0 });
                    first + rows[0]..first + rows[1]
                })
            })
        };
        let owners: Vec<usize> = own().flatten().collect();
        let rows = parts(partners, ranges())
            .zip(parts(squares, ranges()))
            .zip(parts(least_squares, ranges()));
        let owners = owners.into_par_iter();
        let of_residues = owners.zip(rows).with_min_len(64);
        of_residues.for_each_init(Vec::new, |found, (own, ((partners, squares), least))| {
            if partners.is_empty() {
                return;
            }
            let (point, residue) = (&points[own], &residues[own]);
            let structure = &structures[residue.structure as usize];
            found.clear();
            dispatch!(simd::level(), simd => {
                let grid = &structure.residue_grid;
                let runs = cells.runs(grid, point.position.into(), cutoff as i32);
                let later = |other: u32| {
                    if other as usize > own {
                        found.push(other);
                    }
                };
                cells.each_within(simd, runs, point, cutoff, own_chain != 0, later);
            });
            found.sort_unstable();
            let columns = partners.iter_mut().zip(squares).zip(least);
            for (&other, ((partner, square), least)) in found.iter().zip(columns) {
                let there = &points[other as usize];
                *partner = (other - structure.residue_start) as i32;
                *square = point.position.squared_to(there.position) as i32;
                let pairs = atoms[residue.atoms()].iter().flat_map(|one| {
                    let others = atoms[residues[other as usize].atoms()].iter();
                    others.map(|two| one.position.squared_to(two.position))
                });
                *least = pairs.min().unwrap_or(i32::MAX as u32).min(i32::MAX as u32) as i32;
            }
        });
    }
}
