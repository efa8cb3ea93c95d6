//! Grids of cubic cells over a structure, for finding neighbours.
//!
//! The batch's list of cells has a structure's cells with x varying fastest, so that cells next to
//! each other along x are one run of the sorted atoms. The grid of a structure that would need many
//! more cells than it has atoms (because of a far-away chain) wraps: cells a multiple of `wrap`
//! apart share an index, and distances exclude the atoms that are not near.
//!
//! A search goes through the rows of a box. On a GPU it skips the cells of a row that are too far
//! away (`Runs` in `kernels/cells.cuh`), where each lane of a warp works out a row. On the CPU that
//! takes longer than to compare their atoms: by 2% to 25%, depending on the feature.

use super::constants;
use super::layout::COORDINATE_MAX;
use bytemuck::{Pod, Zeroable};
use std::ops::Range;

// Edges of cells are powers of two, so that a shift finds the cell. Searches of atoms reach 5 to 12
// A, and those of C-alphas 8 to 12 A: larger cells hold more points that are not near, and smaller
// ones make more runs, with fewer points than a vector has lanes.
/// The edge of a cell for atoms is 2^12 units of 0.001 A, which is 4.096 A.
pub(super) const ATOM_CELL_SHIFT: u32 = 12;
const _: () = assert!(
    (2 * COORDINATE_MAX) >> ATOM_CELL_SHIFT < u16::MAX as u32,
    "16 bits count the cells along an axis"
);
/// The edge of a cell for C-alphas and C-betas is 2^13 units of 0.001 A, which is 8.192 A.
pub(super) const RESIDUE_CELL_SHIFT: u32 = constants::RESIDUE_CELL_SHIFT;

/// The smallest limit on the cells of a structure, so that the grids of small structures do not
/// wrap.
pub(super) const CELLS_MIN: u32 = constants::CELLS_MIN;
/// Entries of the list of cells that a structure may need beyond one per atom: those of a small
/// structure, and the end of the last cell.
pub(super) const SLACK: u32 = CELLS_MIN + 1;

/// The grid over one structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Grid {
    /// The low corner in 0.001 A.
    pub(super) origin: [i32; 3],
    /// The index of its first cell in the batch's list.
    pub(super) first: u32,
    /// Number of cells along each axis, from the low to the high corner.
    pub(super) extent: [u16; 3],
    /// Number of cells along each axis before indices repeat; at most `extent`.
    pub(super) wrap: [u16; 3],
    /// The edge of a cell is 2^shift.
    pub(super) shift: u32,
}
const _: () = assert!(size_of::<Grid>() == 32);

impl Grid {
    /// A grid over points, with at most about `atom_count` cells, as the batch's list has room for;
    /// one cell if there is no point. `first` is not set yet.
    pub(super) fn over(
        points: impl Iterator<Item = [i32; 3]>,
        atom_count: usize,
        shift: u32,
    ) -> Self {
        let (low, high) = corners(points);
        let corners = (low[0] <= high[0]).then_some([low, high]);
        Grid::within(corners, atom_count, shift)
    }

    /// The grid that [`Grid::over`] makes for points with these low and high corners.
    pub(super) fn within(corners: Option<[[i32; 3]; 2]>, atom_count: usize, shift: u32) -> Self {
        let [low, high] = corners.unwrap_or_default();
        let extent = std::array::from_fn(|axis| (((high[axis] - low[axis]) >> shift) + 1) as u16);
        let mut wrap: [u16; 3] = extent;
        let cells_max = u64::from(Grid::cells_max(atom_count));
        while wrap.iter().map(|&n| u64::from(n)).product::<u64>() > cells_max {
            let widest = (0..3).max_by_key(|&axis| wrap[axis]).unwrap_or(0);
            wrap[widest] = wrap[widest].div_ceil(2);
        }
        Grid {
            origin: low,
            first: 0,
            extent,
            wrap,
            shift,
        }
    }

    /// The largest number of cells for a structure of `atom_count` atoms.
    pub(super) fn cells_max(atom_count: usize) -> u32 {
        CELLS_MIN.max(u32::try_from(atom_count).unwrap_or(u32::MAX))
    }

    /// The number of cells.
    pub(super) fn cell_count(&self) -> u32 {
        self.wrap.iter().map(|&n| u32::from(n)).product()
    }

    /// The indices of this structure's cells in the batch, and one more for the end of the last
    /// cell.
    pub(super) fn cells(&self) -> Range<usize> {
        let first = self.first as usize;
        first..first + self.cell_count() as usize + 1
    }

    /// The cell of a point of the structure, as an index into the batch's list.
    #[inline]
    pub(super) fn cell_of(&self, point: [i32; 3]) -> usize {
        let [x, y, z] = std::array::from_fn(|axis| {
            let cell = (point[axis] - self.origin[axis]) as u32 >> self.shift;
            wrapped(cell, u32::from(self.wrap[axis]))
        });
        let [nx, ny, _] = self.wrap.map(u32::from);
        (self.first + (z * ny + y) * nx + x) as usize
    }

    /// Whether distant cells share an index.
    pub(super) fn wraps(&self) -> bool {
        self.wrap != self.extent
    }

    /// The first and the last cell along one axis between two coordinates, of which one may be
    /// outside of the grid.
    fn axis_range(&self, axis: usize, low: i32, high: i32) -> (u32, u32) {
        let cell = |coordinate: i32| (coordinate - self.origin[axis]) >> self.shift;
        let last = i32::from(self.extent[axis]) - 1;
        (cell(low).max(0) as u32, cell(high).min(last) as u32)
    }

    /// Runs of the batch's cells that include every point within `reach` of `point`; no cell occurs
    /// twice. `point` must lie in the grid.
    pub(super) fn runs(&self, point: [i32; 3], reach: i32) -> CellRuns {
        self.runs_between(point.map(|c| c - reach), point.map(|c| c + reach))
    }

    /// Runs of the batch's cells that include every point between two corners; no cell occurs
    /// twice. The box must touch the grid.
    pub(super) fn runs_between(&self, low: [i32; 3], high: [i32; 3]) -> CellRuns {
        let wrap = self.wrap.map(u32::from);
        let [x, y, z] = std::array::from_fn(|axis| self.axis_range(axis, low[axis], high[axis]));
        let (mut from, mut to) = (wrapped(x.0, wrap[0]), wrapped(x.1, wrap[0]));
        // A row that wraps is one run of all its cells, in place of two runs.
        if x.1 - x.0 >= wrap[0] || from > to {
            (from, to) = (0, wrap[0] - 1);
        }
        let count = |range: (u32, u32), axis: usize| (range.1 - range.0 + 1).min(wrap[axis]);
        CellRuns {
            wrap,
            first: self.first + from,
            length: to - from + 1,
            low: [y.0, z.0],
            rows: count(y, 1),
            planes: count(z, 2),
            row: 0,
            plane: 0,
        }
    }
}

/// A cell's index along an axis. Grids rarely wrap, and a remainder is slow.
#[inline(always)]
fn wrapped(cell: u32, wrap: u32) -> u32 {
    if cell < wrap { cell } else { cell % wrap }
}

/// Runs of cells: what [`Grid::runs`] returns.
pub(super) struct CellRuns {
    wrap: [u32; 3],
    /// The first cell of the first row, and the cells of a run.
    first: u32,
    length: u32,
    /// The first row and plane, and how many.
    low: [u32; 2],
    rows: u32,
    planes: u32,
    /// Row and plane of the next run, counted from the first.
    row: u32,
    plane: u32,
}

impl Iterator for CellRuns {
    type Item = Range<usize>;

    /// The inner loops of twins call this for every few atoms.
    #[inline(always)]
    fn next(&mut self) -> Option<Range<usize>> {
        if self.plane == self.planes {
            return None;
        }
        let y = wrapped(self.low[0] + self.row, self.wrap[1]);
        let z = wrapped(self.low[1] + self.plane, self.wrap[2]);
        let start = (self.first + (z * self.wrap[1] + y) * self.wrap[0]) as usize;
        self.row += 1;
        if self.row == self.rows {
            (self.row, self.plane) = (0, self.plane + 1);
        }
        Some(start..start + self.length as usize)
    }
}

/// The lowest and the highest corner of the box around points; the largest and the least integers if
/// there is no point.
pub(super) fn corners(points: impl Iterator<Item = [i32; 3]>) -> ([i32; 3], [i32; 3]) {
    let (mut low, mut high) = ([i32::MAX; 3], [i32::MIN; 3]);
    for [x, y, z] in points {
        low = [low[0].min(x), low[1].min(y), low[2].min(z)];
        high = [high[0].max(x), high[1].max(y), high[2].max(z)];
    }
    (low, high)
}

#[cfg(test)]
mod tests;
