//! Atoms sorted by grid cell, so that a kernel finds the neighbours of a point in the cells around
//! it.

use super::cell_kind::{CELL_KINDS, CellKind, FLAG_BITS};
use super::cpu::simd::{first_lanes, in_same_chain, lanes_of, load, squared, vectors_of};
use super::cpu::split::parts;
use super::density;
use super::grid::Grid;
use super::kernels::{CellBuffers, Cells, Twin, cell_count, cell_fill, cell_scan};
use super::layout::{Atom, CELLS, STRUCTURES, StructureSpan};
use super::recorder::FeatureRecorder;
use crate::record::Buffer;
use fearless_simd::prelude::*;
use rayon::prelude::*;
use std::ops::Range;

/// The points of a kind, their number in each cell, and the first sorted point of each cell.
#[derive(Clone, Copy)]
struct CellCounts {
    points: Buffer<Atom>,
    counts: Buffer<u32>,
    start: Buffer<u32>,
}

/// The buffers of each kind of points that were recorded so far, which features share.
#[derive(Clone, Copy, Default)]
struct SharedCells {
    cell_counts: [Option<CellCounts>; 4],
    sorted: [Option<CellBuffers>; 4],
}

impl FeatureRecorder<'_> {
    /// Atoms sorted by cell. Records the launches that count and sort them at the first call.
    pub(super) fn cells(&mut self, kind: CellKind) -> CellBuffers {
        if let Some(sorted) = self.shared_cells().sorted[kind as usize] {
            return sorted;
        }
        let CellCounts {
            points,
            counts,
            start,
        } = self.cell_counts(kind);
        let (header, structures, chains) = (self.header(), self.structures(), self.chains());
        let (flags, axis) = (self.density(), kind.axis());
        let cells = CellBuffers {
            start,
            x: self.device(&kind.buffer("x"), axis, 1),
            y: self.device(&kind.buffer("y"), axis, 1),
            z: self.device(&kind.buffer("z"), axis, 1),
            tag: self.device(&kind.buffer("tag"), axis, 1),
            source: self.device(&kind.buffer("source"), axis, 1),
        };
        let args = cell_fill::Args {
            header,
            structures,
            chains,
            atoms: points,
            start,
            flags,
            counts,
            x: cells.x,
            y: cells.y,
            z: cells.z,
            tag: cells.tag,
            source: cells.source,
            axis: axis as u32,
            flag_shift: kind.flag_shift(),
        };
        self.launch_threads(axis, args);
        let mut all = self.shared_cells();
        all.sorted[kind as usize] = Some(cells);
        self.share(all);
        cells
    }

    fn shared_cells(&self) -> SharedCells {
        self.shared().unwrap_or_default()
    }

    /// Records the launches that count the points of a kind in each cell, and flag structures whose
    /// points are too dense, at the first call.
    fn cell_counts(&mut self, kind: CellKind) -> CellCounts {
        if let Some(cell_counts) = self.shared_cells().cell_counts[kind as usize] {
            return cell_counts;
        }
        let points = match kind {
            CellKind::Atoms => self.atoms(),
            CellKind::BoundAtoms => self.bound_atoms(),
            CellKind::Ca => self.ca(),
            CellKind::Cb => self.cb(),
        };
        if kind.is_of_residues() {
            self.residue_grids();
        }
        let (header, structures, chains) = (self.header(), self.structures(), self.chains());
        let (flags, axis) = (self.density(), kind.axis());
        let cell_counts = CellCounts {
            points,
            counts: self.zeros(&kind.buffer("counts"), CELLS, 1),
            start: self.device(&kind.buffer("start"), CELLS, 1),
        };
        let args = cell_count::Args {
            header,
            structures,
            chains,
            atoms: points,
            counts: cell_counts.counts,
            axis: axis as u32,
        };
        self.launch_threads(axis, args);
        let args = cell_scan::Args {
            header,
            structures,
            counts: cell_counts.counts,
            start: cell_counts.start,
            flags,
            axis: axis as u32,
            flag_shift: kind.flag_shift(),
        };
        self.launch_blocks(STRUCTURES, args);
        let mut all = self.shared_cells();
        all.cell_counts[kind as usize] = Some(cell_counts);
        self.share(all);
        cell_counts
    }

    /// Counts all points that features asked for, so that their density is checked even if no
    /// feature asked for their cells: a structure is rejected for its points, however they are
    /// read.
    pub(super) fn check_density(&mut self) {
        let inputs = &self.buffers.inputs;
        let asked = [
            inputs.atoms.is_some(),
            inputs.bound_atoms.is_some(),
            self.asks_ca,
            self.asks_cb,
        ];
        for (kind, is_asked) in CELL_KINDS.into_iter().zip(asked) {
            if is_asked {
                self.cell_counts(kind);
            }
        }
    }
}

/// Counts the atoms in each cell.
impl Twin for cell_count::Views<'_> {
    fn run(self) {
        let axis = self.axis;
        let structures = StructureSpan::live(self.header, self.structures);
        let cells = structures
            .iter()
            .map(|structure| structure.grid(axis).cells());
        let counts = parts(self.counts, cells);
        structures
            .par_iter()
            .zip(counts)
            .for_each(|(structure, counts)| {
                let grid = structure.grid(axis);
                let atoms = &self.atoms[structure.along(axis)];
                for atom in atoms.iter().filter(|atom| atom.is_present()) {
                    counts[grid.cell_of(atom.position.into()) - grid.first as usize] += 1;
                }
            });
    }
}

/// Finds the index of each cell's first sorted atom, and flags structures whose points are too dense.
impl Twin for cell_scan::Views<'_> {
    fn run(self) {
        let (axis, flag_shift) = (self.axis, self.flag_shift);
        let structures = StructureSpan::live(self.header, self.structures);
        let cells = |structure: &StructureSpan| structure.grid(axis).cells();
        let starts = parts(self.start, structures.iter().map(cells));
        let flags = &mut self.flags[..structures.len()];
        let outputs = starts.zip(flags);
        structures
            .par_iter()
            .zip(outputs)
            .for_each(|(structure, (starts, flags))| {
                // The part of a rejected item is empty. The last element ends the last cell.
                let Some((end, starts)) = starts.split_last_mut() else {
                    return;
                };
                let range = structure.grid(axis).cells();
                let counts = &self.counts[range][..starts.len()];
                let first = structure.along(axis).start as u32;
                let found = density::flags_of(counts);
                *flags |= found << flag_shift;
                let mut next = first;
                for (start, count) in starts.iter_mut().zip(counts) {
                    *start = next;
                    next += if found == 0 { count } else { &0 };
                }
                *end = next;
            });
    }
}

/// Sorts the atoms by cell, and by index within a cell; counts fall to 0. The atoms of a structure
/// that is flagged keep their order, as some kernels read all sorted atoms; its cells are empty.
impl Twin for cell_fill::Views<'_> {
    fn run(self) {
        let (axis, atoms, start) = (self.axis, self.atoms, self.start);
        let is_flagged = |flags: u32| flags >> self.flag_shift & ((1 << FLAG_BITS) - 1) != 0;
        let structures = StructureSpan::live(self.header, self.structures);
        let cells = structures
            .iter()
            .map(|structure| structure.grid(axis).cells());
        let counts = parts(self.counts, cells);
        let ranges = || structures.iter().map(|structure| structure.along(axis));
        let xyz = parts(self.x, ranges())
            .zip(parts(self.y, ranges()))
            .zip(parts(self.z, ranges()));
        let tags = parts(self.tag, ranges()).zip(parts(self.source, ranges()));
        let outputs = xyz.zip(tags);
        let flags = &self.flags[..structures.len()];
        let inputs = structures.par_iter().zip(flags).zip(counts);
        inputs.zip(outputs).for_each(
            |(((structure, &flags), counts), (((x, y), z), (tag, source)))| {
                let is_flagged = is_flagged(flags);
                let grid = structure.grid(axis);
                let range = structure.along(axis);
                // A cell is filled from its end, as its count falls, so the last atom comes first.
                for (index, atom) in range.clone().zip(&atoms[range.clone()]).rev() {
                    if !atom.is_present() {
                        continue;
                    }
                    let place = if is_flagged {
                        index - range.start
                    } else {
                        let cell = grid.cell_of(atom.position.into());
                        let count = &mut counts[cell - grid.first as usize];
                        *count -= 1;
                        (start[cell] + *count) as usize - range.start
                    };
                    (x[place], y[place], z[place]) =
                        (atom.position.x, atom.position.y, atom.position.z);
                    (tag[place], source[place]) = (atom.tag, index as u32);
                }
            },
        );
    }
}

impl Cells<'_> {
    /// Whether no atom of the structure is in a cell, as in one that is too dense.
    pub(super) fn are_empty(&self, grid: &Grid) -> bool {
        let cells = grid.cells();
        self.start[cells.start] == self.start[cells.end - 1]
    }

    /// Runs of sorted atoms that include all atoms within `reach` of `point`, both in 0.001 A; the point must
    /// lie in the grid.
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

    /// Calls `visit` with the original index of each sorted atom that is closer to `atom` than
    /// `radius`, in 0.001 A and at most `REACH`, and of `atom` itself; with `own_chain` only for atoms of its chain.
    /// `runs` are those of [`Cells::runs`].
    #[inline(always)]
    pub(super) fn each_within<S: Simd>(
        &self,
        simd: S,
        runs: impl Iterator<Item = Range<usize>>,
        atom: &Atom,
        radius: u32,
        own_chain: bool,
        mut visit: impl FnMut(u32),
    ) {
        let point = atom.position;
        for (first, lanes) in vectors_of(simd, runs) {
            let dx = load(simd, self.x, first, lanes) - point.x;
            let dy = load(simd, self.y, first, lanes) - point.y;
            let dz = load(simd, self.z, first, lanes) - point.z;
            let d2 = squared::<S>(dx, dy, dz, radius as i32);
            let mut within = d2.simd_lt(radius * radius) & first_lanes(simd, lanes);
            if own_chain {
                within &= in_same_chain(simd, self.tag, first, lanes, atom.tag);
            }
            lanes_of(within.to_bitmask()).for_each(|lane| visit(self.source[first + lane]));
        }
    }

    /// Runs of sorted atoms that include all atoms within `reach` of a box, whose corners must lie
    /// in the grid.
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
