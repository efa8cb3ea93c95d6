//! The buffers of interfaces that the host reads.

use super::super::entries::{INTERFACES_PER_UNIT, PARTNERS_PER_UNIT};
use super::super::layout::{PAIR_ROOM, STRUCTURES};
use super::super::table::Values;
use crate::record::Buffer;
use crate::workload::{Extent, ReadViews};
use std::ops::Range;

/// The results of interfaces.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct InterfaceBuffers {
    /// The number of partners of each structure's residues, `[structures]`.
    pub(super) partner_totals: Buffer<i32>,
    /// The number of interfaces of each structure, `[structures]`.
    pub(super) totals: Buffer<i32>,
    /// The two chains of each interface, `[interfaces, 2]`.
    pub(super) pairs: Buffer<i32>,
    /// The residues of each side, and pairs of them, `[interfaces, 3]`.
    pub(super) counts: Buffer<i32>,
    /// The areas that both sides bury together, and each, `[interfaces, 3]`.
    pub(super) areas: Buffer<f32>,
    /// The hydrogen bonds, `[interfaces]`.
    pub(super) bonds: Buffer<i32>,
    /// For each chain the end of its interfaces among those of its structure, `[chains]`.
    pub(super) row_ends: Buffer<i32>,
    /// The counts of interactions that are columns, if there are interactions.
    pub(super) interactions: Option<InteractionCounts>,
}

/// Counts of interactions by kind.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct InteractionCounts {
    /// `[interfaces, values]`
    pub(in super::super) counts: Buffer<i32>,
    /// The number of kinds.
    pub(in super::super) values: usize,
    /// A bit for each kind that is a column.
    pub(in super::super) listed: u32,
}

impl InteractionCounts {
    /// The kinds that are columns, by index.
    fn columns(&self) -> impl Iterator<Item = usize> + use<> {
        let listed = self.listed;
        (0..self.values).filter(move |kind| listed >> kind & 1 == 1)
    }
}

impl InterfaceBuffers {
    /// The number of its columns.
    pub(in super::super) fn column_count(&self) -> usize {
        let interactions = self.interactions.as_ref();
        INTERFACE_COLUMNS + interactions.map_or(0, |counts| counts.columns().count())
    }

    /// The interfaces of chains, as kernels find them: the end of each chain's, and both chains of each.
    pub(in super::super) fn rows_of_chains(&self) -> [Buffer<i32>; 2] {
        [self.row_ends, self.pairs]
    }

    /// The same buffers with counts of interactions.
    pub(in super::super) fn with_interactions(self, counts: InteractionCounts) -> Self {
        InterfaceBuffers {
            interactions: Some(counts),
            ..self
        }
    }

    /// The extent that a structure needs for its interfaces; `None` if its extent is large enough.
    pub(in super::super) fn outgrown(
        &self,
        views: &ReadViews<'_>,
        offset: Extent,
        extent: Extent,
    ) -> Option<Extent> {
        let [partners, interfaces] = self.totals_of(views, offset);
        let room = extent[PAIR_ROOM] as usize;
        // The number of interfaces is known only if the partners had room. It is at most half the
        // number of partners, as each interface has a partner on both sides, and that many units
        // hold the partners too.
        let needed = if partners > room * PARTNERS_PER_UNIT {
            partners.div_ceil(2 * INTERFACES_PER_UNIT)
        } else {
            interfaces.div_ceil(INTERFACES_PER_UNIT)
        };
        let units = u32::try_from(needed).unwrap_or(u32::MAX);
        (needed > room).then(|| extent.with(PAIR_ROOM, units))
    }

    /// Adds the rows of a structure to `columns`, and returns their range, which is empty if they
    /// have outgrown the structure's room.
    pub(in super::super) fn read(
        &self,
        views: &ReadViews<'_>,
        offset: Extent,
        extent: Extent,
        columns: &mut InterfaceColumns,
    ) -> Range<usize> {
        let start = columns.rows();
        if self.outgrown(views, offset, extent).is_some() {
            return start..start;
        }
        let [_, interfaces] = self.totals_of(views, offset);
        let first = offset[PAIR_ROOM] as usize * INTERFACES_PER_UNIT;
        let rows = first..first + interfaces;
        for (column, (buffer, stride, value)) in columns.counts.iter_mut().zip([
            (self.pairs, 2, 0),
            (self.pairs, 2, 1),
            (self.counts, 3, 0),
            (self.counts, 3, 1),
            (self.counts, 3, 2),
            (self.bonds, 1, 0),
        ]) {
            let values = views.get(buffer).chunks_exact(stride);
            column.extend(values.skip(first).take(rows.len()).map(|row| row[value]));
        }
        for (value, column) in columns.areas.iter_mut().enumerate() {
            let values = views.get(self.areas).chunks_exact(3);
            column.extend(values.skip(first).take(rows.len()).map(|row| row[value]));
        }
        if let Some(interactions) = &self.interactions {
            let kinds: Vec<usize> = interactions.columns().collect();
            columns.interactions.resize_with(kinds.len(), Vec::new);
            for (kind, column) in kinds.into_iter().zip(&mut columns.interactions) {
                let values = views
                    .get(interactions.counts)
                    .chunks_exact(interactions.values);
                column.extend(values.skip(first).take(rows.len()).map(|row| row[kind]));
            }
        }
        start..start + rows.len()
    }

    fn totals_of(&self, views: &ReadViews<'_>, offset: Extent) -> [usize; 2] {
        let structure = offset[STRUCTURES] as usize;
        [self.partner_totals, self.totals].map(|totals| views.get(totals)[structure] as usize)
    }
}

/// The numbers of columns of [`InterfaceColumns`], and of both kinds.
const COUNT_COLUMNS: usize = 6;
const AREA_COLUMNS: usize = 3;
const INTERFACE_COLUMNS: usize = COUNT_COLUMNS + AREA_COLUMNS;

/// The columns of interfaces.
#[derive(Debug, Default)]
pub(in super::super) struct InterfaceColumns {
    /// The two chains, the residues of each side, contacts and hydrogen bonds.
    counts: [Vec<i32>; COUNT_COLUMNS],
    /// The area that both sides bury together, and that of each.
    areas: [Vec<f32>; AREA_COLUMNS],
    /// Counts of interactions.
    interactions: Vec<Vec<i32>>,
}

impl InterfaceColumns {
    fn rows(&self) -> usize {
        self.areas[0].len()
    }

    /// The columns in the order of their declarations.
    pub(in super::super) fn into_values(self) -> Vec<Values> {
        let [i, j, rest @ ..] = self.counts;
        let chains = [i, j].map(Values::Count).into_iter();
        let areas = self.areas.map(Values::Real);
        let counts = rest.into_iter().chain(self.interactions);
        chains
            .chain(areas)
            .chain(counts.map(Values::Count))
            .collect()
    }
}
