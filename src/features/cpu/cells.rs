//! Sorted atoms as the twins see them.

use super::super::grid::Grid;
use super::super::layout::AtomTag;
use crate::record::TwinLaunch;
use std::ops::Range;

/// Atoms of the batch sorted by cell: `Cells` of `kernels/cells.cuh`.
pub(super) struct Cells<'a> {
    pub(super) start: &'a [u32],
    pub(super) x: &'a [i32],
    pub(super) y: &'a [i32],
    pub(super) z: &'a [i32],
    pub(super) tag: &'a [AtomTag],
    /// Which atom of the batch it was.
    pub(super) source: &'a [u32],
}

impl<'a> Cells<'a> {
    /// Takes the six arguments of a kernel that reads cells.
    pub(super) fn take(launch: &mut TwinLaunch<'a>) -> Self {
        Cells {
            start: launch.read(),
            x: launch.read(),
            y: launch.read(),
            z: launch.read(),
            tag: bytemuck::cast_slice(launch.read::<u32>()),
            source: launch.read(),
        }
    }

    /// Runs of sorted atoms that hold everything within `reach` of `point`, which
    /// must lie in the grid.
    pub(super) fn runs(
        &self,
        grid: &Grid,
        point: [i32; 3],
        reach: i32,
    ) -> impl Iterator<Item = Range<usize>> {
        let start = self.start;
        let run = move |cells: Range<usize>| start[cells.start] as usize..start[cells.end] as usize;
        grid.runs(point, reach).map(run)
    }

    /// Runs of sorted atoms that hold everything within `reach` of a box, whose
    /// corners must lie in the grid.
    pub(super) fn runs_around(
        &self,
        grid: &Grid,
        low: [i32; 3],
        high: [i32; 3],
        reach: i32,
    ) -> impl Iterator<Item = Range<usize>> {
        let start = self.start;
        let run = move |cells: Range<usize>| start[cells.start] as usize..start[cells.end] as usize;
        grid.runs_between(low.map(|c| c - reach), high.map(|c| c + reach))
            .map(run)
    }
}
