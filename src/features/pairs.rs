//! Tables with a row for each pair of residues or of atoms. How many pairs a structure has depends on
//! its data: a kernel counts the pairs of each, `pair_ends` sums them up, and another kernel lists
//! them in the structure's room. The results of a structure whose pairs exceed its room are computed again in
//! a larger one.

use super::columns::NULL_COUNT;
use super::entries::Entries;
use super::kernels::{Twin, interaction_ends, pair_ends};
use super::layout::{ATOMS, PAIR_ROOM, RESIDUES, STRUCTURES, StructureSpan};
use super::recorder::FeatureRecorder;
use super::results::ResultBuffer;
use super::table::{SharedColumns, SizedRows, Values};
use super::table_decl::TableName;
use crate::record::Buffer;
use crate::workload::{Extent, ReadViews};
use std::ops::Range;

/// The buffers of a table of pairs that the host reads.
#[derive(Clone, Debug)]
pub(super) struct PairTable {
    table: TableName,
    rows: PairsOf,
    /// The second residue or atom of each pair.
    partners: Buffer<i32>,
    /// The other columns.
    columns: Vec<ResultBuffer>,
}

/// Where the rows of each residue are.
#[derive(Clone, Copy, Debug)]
enum PairsOf {
    /// In the structure's room, `[rooms, rows_per_unit]`, up to the end of the residue or atom, by the
    /// axis of these.
    Room {
        axis: usize,
        ends: Buffer<i32>,
        rows_per_unit: usize,
    },
    /// The number of rows of each residue. From the first null on, they are unused.
    Residue(usize),
}

/// The buffers with which a kernel lists pairs in a structure's room.
#[derive(Clone, Copy)]
pub(super) struct PairLists {
    axis: usize,
    rows_per_unit: usize,
    /// The room of each structure, `[structures, 2]`: the first row, and the number of rows.
    pub(super) rooms: Buffer<u32>,
    /// For each residue or atom the end of its rows in its structure's.
    pub(super) ends: Buffer<i32>,
    /// Scratch memory, `[rooms, rows_per_unit]`.
    pub(super) unsorted: Buffer<u32>,
    /// The second residue or atom of each pair, `[rooms, rows_per_unit]`.
    pub(super) partners: Buffer<i32>,
}

impl FeatureRecorder<'_> {
    /// Records the running sum of `degrees` over each structure, and makes the buffers that its pairs are
    /// listed in, of which each residue has as many as `degrees` says. A unit of room has `rows_per_unit`
    /// rows. The launch that computes `degrees` has been recorded before.
    pub(super) fn pair_lists(
        &mut self,
        name: &str,
        degrees: Buffer<i32>,
        rows_per_unit: usize,
    ) -> PairLists {
        let ends = self.ends_buffer(name, RESIDUES);
        let args = pair_ends::Args {
            header: self.header(),
            structures: self.structures(),
            degrees,
            ends,
        };
        self.launch_blocks(STRUCTURES, args);
        self.list_buffers(name, RESIDUES, ends, rows_per_unit)
    }

    /// [`Self::pair_lists`] of pairs of atoms. The launch that computes `degrees` has been recorded before.
    pub(super) fn atom_pair_lists(
        &mut self,
        name: &str,
        degrees: Buffer<i32>,
        rows_per_unit: usize,
    ) -> PairLists {
        let ends = self.ends_buffer(name, ATOMS);
        let args = interaction_ends::Args {
            header: self.header(),
            structures: self.structures(),
            degrees,
            ends,
        };
        self.launch_blocks(STRUCTURES, args);
        self.list_buffers(name, ATOMS, ends, rows_per_unit)
    }

    /// A buffer for the ends of the rows of each residue or atom.
    fn ends_buffer(&mut self, name: &str, axis: usize) -> Buffer<i32> {
        self.pair_counts(&format!("{name}_ends"), axis, 1)
    }

    /// The buffers that pairs are listed in, with those of the ends of their rows.
    fn list_buffers(
        &mut self,
        name: &str,
        axis: usize,
        ends: Buffer<i32>,
        rows_per_unit: usize,
    ) -> PairLists {
        let named = |what: &str| format!("{name}_{what}");
        PairLists {
            axis,
            rows_per_unit,
            rooms: self.pair_rooms(&named("rooms"), rows_per_unit),
            ends,
            unsorted: self.device(&named("unsorted"), PAIR_ROOM, rows_per_unit),
            partners: self.partners(name, PAIR_ROOM, rows_per_unit),
        }
    }

    /// A buffer of reals of listed pairs.
    pub(super) fn listed_reals(&mut self, lists: &PairLists, name: &str) -> Buffer<f32> {
        self.pair_reals(name, PAIR_ROOM, lists.rows_per_unit)
    }

    /// A buffer of integers of listed pairs.
    pub(super) fn listed_counts(&mut self, lists: &PairLists, name: &str) -> Buffer<i32> {
        self.pair_counts(name, PAIR_ROOM, lists.rows_per_unit)
    }

    /// A buffer of the second residues of pairs, of `elements` for each unit of `axis`.
    pub(super) fn partners(&mut self, name: &str, axis: usize, elements: usize) -> Buffer<i32> {
        self.pair_counts(&format!("{name}_partners"), axis, elements)
    }

    /// A buffer of integers of pairs, of `elements` for each unit of `axis`.
    fn pair_counts(&mut self, name: &str, axis: usize, elements: usize) -> Buffer<i32> {
        let buffer = self.recorder.download_buffer(name, axis, elements);
        self.downloads.push(ResultBuffer::Count(buffer));
        buffer
    }

    /// A buffer of reals of pairs, of `elements` for each unit of `axis`.
    pub(super) fn pair_reals(&mut self, name: &str, axis: usize, elements: usize) -> Buffer<f32> {
        let buffer = self.recorder.download_buffer(name, axis, elements);
        self.downloads.push(ResultBuffer::Real(buffer));
        buffer
    }

    /// Adds the columns of listed pairs: both residues or atoms, and the others.
    pub(super) fn add_listed_pairs(
        &mut self,
        table: TableName,
        lists: &PairLists,
        columns: Vec<ResultBuffer>,
    ) {
        let rows = PairsOf::Room {
            axis: lists.axis,
            ends: lists.ends,
            rows_per_unit: lists.rows_per_unit,
        };
        self.buffers.pairs.push(PairTable {
            table,
            rows,
            partners: lists.partners,
            columns,
        });
    }

    /// Adds the columns of pairs of which each residue has up to `count`.
    pub(super) fn add_residue_pairs(
        &mut self,
        table: TableName,
        count: usize,
        partners: Buffer<i32>,
        columns: Vec<ResultBuffer>,
    ) {
        self.buffers.pairs.push(PairTable {
            table,
            rows: PairsOf::Residue(count),
            partners,
            columns,
        });
    }
}

impl PairTable {
    /// The number of its columns.
    pub(super) fn column_count(&self) -> usize {
        2 + self.columns.len()
    }

    /// The extent that a structure needs for its pairs; `None` if its extent is large enough, as it
    /// is without residues or atoms, and if each residue has a fixed number of rows.
    pub(super) fn outgrown(
        &self,
        views: &ReadViews<'_>,
        offset: Extent,
        extent: Extent,
    ) -> Option<Extent> {
        let PairsOf::Room {
            axis,
            ends,
            rows_per_unit,
        } = self.rows
        else {
            return None;
        };
        let last = offset[axis] as usize + (extent[axis] as usize).checked_sub(1)?;
        let rows = views.get(ends)[last] as usize;
        let units = u32::try_from(rows.div_ceil(rows_per_unit)).unwrap_or(u32::MAX);
        (units > extent[PAIR_ROOM]).then(|| extent.with(PAIR_ROOM, units))
    }

    /// Reads the rows of the items, the parts of a batch by their starts and lengths, into the
    /// table's columns, and puts the range of each item's rows into `rows`.
    pub(super) fn read(
        &self,
        views: &ReadViews<'_>,
        items: &[(Extent, Extent)],
        rows: &mut [SizedRows],
        columns: &mut SharedColumns,
    ) {
        let mut pairs = Pairs {
            first: Vec::new(),
            second: Vec::new(),
            columns: self.columns.iter().map(ResultBuffer::no_values).collect(),
        };
        for (&(offset, extent), rows) in items.iter().zip(rows) {
            let start = pairs.first.len();
            self.read_item(views, offset, extent, &mut pairs);
            rows[self.table as usize] = start..pairs.first.len();
        }
        let sides = [pairs.first, pairs.second].map(Values::Count);
        columns.0[self.table as usize] = sides.into_iter().chain(pairs.columns).collect();
    }

    /// Adds the rows of an item. Adds none if they have outgrown the item's room.
    fn read_item(&self, views: &ReadViews<'_>, offset: Extent, extent: Extent, pairs: &mut Pairs) {
        let units = |axis: usize| offset[axis] as usize..(offset[axis] + extent[axis]) as usize;
        match self.rows {
            PairsOf::Room {
                axis,
                ends,
                rows_per_unit,
            } => {
                let ends = &views.get(ends)[units(axis)];
                let rows = ends.last().map_or(0, |&end| end as usize);
                if rows > extent[PAIR_ROOM] as usize * rows_per_unit {
                    return;
                }
                let mut before = 0;
                for (unit, &end) in (0..).zip(ends) {
                    let count = (end - before) as usize;
                    pairs.first.extend(std::iter::repeat_n(unit, count));
                    before = end;
                }
                let first = offset[PAIR_ROOM] as usize * rows_per_unit;
                self.read_rows(views, first..first + rows, pairs);
            }
            PairsOf::Residue(count) => {
                let partners = views.get(self.partners);
                for (residue, row) in (0..).zip(units(RESIDUES)) {
                    let rows = &partners[row * count..][..count];
                    let found = rows.iter().take_while(|&&partner| partner != NULL_COUNT);
                    let found = found.count();
                    pairs.first.extend(std::iter::repeat_n(residue, found));
                    self.read_rows(views, row * count..row * count + found, pairs);
                }
            }
        }
    }

    /// Adds these rows of all buffers.
    fn read_rows(&self, views: &ReadViews<'_>, rows: Range<usize>, pairs: &mut Pairs) {
        let partners = &views.get(self.partners)[rows.clone()];
        pairs.second.extend_from_slice(partners);
        for (buffer, values) in self.columns.iter().zip(&mut pairs.columns) {
            buffer.add_to(views, rows.clone(), values);
        }
    }
}

/// The columns of a table of pairs.
struct Pairs {
    first: Vec<i32>,
    second: Vec<i32>,
    columns: Vec<Values>,
}

/// Sums the degrees of these residues or atoms, up to and including each of them.
fn sum_degrees(units: Range<usize>, degrees: &[i32], ends: &mut [i32]) {
    let mut sum = 0;
    for unit in units {
        sum += degrees[unit];
        ends[unit] = sum;
    }
}

/// Sums the numbers of pairs over the residues of each structure.
impl Twin for pair_ends::Views<'_> {
    fn run(self) {
        let structures = StructureSpan::live(self.header, self.structures);
        for structure in structures {
            sum_degrees(structure.residues(), self.degrees, self.ends);
        }
    }
}

/// Sums the numbers of interactions over the atoms of each structure.
impl Twin for interaction_ends::Views<'_> {
    fn run(self) {
        let structures = StructureSpan::live(self.header, self.structures);
        for structure in structures {
            sum_degrees(structure.along(ATOMS as u32), self.degrees, self.ends);
        }
    }
}

/// Each residue that has rows in its structure's room, with their range. Leaves out structures
/// whose rows have outgrown their room.
pub(super) fn listed_rows(
    structures: &[StructureSpan],
    rooms: &[u32],
    ends: &[i32],
) -> Vec<(usize, Range<usize>)> {
    listed_rows_of(structures, rooms, ends, StructureSpan::residues)
}

/// [`listed_rows`] of the residues or atoms that `units` returns for a structure.
pub(super) fn listed_rows_of(
    structures: &[StructureSpan],
    rooms: &[u32],
    ends: &[i32],
    units: fn(&StructureSpan) -> Range<usize>,
) -> Vec<(usize, Range<usize>)> {
    // Rooms of pairs count rows.
    let rows = Entries {
        ends,
        rooms,
        per_unit: 1,
    };
    rows.all(structures, units)
}
