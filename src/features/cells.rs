//! Atoms sorted by grid cell, so that a kernel finds the neighbours of a point in the cells around
//! it.

use super::cpu::simd::{first_lanes, lanes_of, load, of_chain, squared, vectors_of};
use super::cpu::split::parts;
use super::grid::Grid;
use super::kernels::{CellBuffers, Cells, Twin, cell_count, cell_fill, cell_scan};
use super::layout::{ATOMS, Atom, CELLS, RESIDUES, STRUCTURES, StructureSpan};
use super::recorder::FeatureRecorder;
use crate::record::Buffer;
use fearless_simd::prelude::*;
use rayon::prelude::*;
use std::ops::Range;

/// The sorted atoms of all kinds, which features share.
#[derive(Clone, Copy)]
struct AtomCells(CellBuffers);
#[derive(Clone, Copy)]
struct CaCells(CellBuffers);
#[derive(Clone, Copy)]
struct CbCells(CellBuffers);
#[derive(Clone, Copy)]
struct BoundCells(CellBuffers);

impl FeatureRecorder<'_> {
    /// All atoms, by cell of their structure's `atom_grid`.
    pub(super) fn atom_cells(&mut self) -> CellBuffers {
        if let Some(AtomCells(cells)) = self.shared() {
            return cells;
        }
        let atoms = self.atoms();
        let cells = self.sort("atom", atoms, ATOMS);
        self.share(AtomCells(cells)).0
    }

    /// All atoms and those of ligands, by cell of their structure's `atom_grid`.
    pub(super) fn bound_cells(&mut self) -> CellBuffers {
        if let Some(BoundCells(cells)) = self.shared() {
            return cells;
        }
        let atoms = self.bound_atoms();
        let cells = self.sort("bound", atoms, ATOMS);
        self.share(BoundCells(cells)).0
    }

    /// C-alphas, by cell of their structure's `residue_grid`.
    pub(super) fn ca_cells(&mut self) -> CellBuffers {
        if let Some(CaCells(cells)) = self.shared() {
            return cells;
        }
        let ca = self.ca();
        let cells = self.sort("ca", ca, RESIDUES);
        self.share(CaCells(cells)).0
    }

    /// C-betas, by cell of their structure's `residue_grid`.
    pub(super) fn cb_cells(&mut self) -> CellBuffers {
        if let Some(CbCells(cells)) = self.shared() {
            return cells;
        }
        let cb = self.cb();
        let cells = self.sort("cb", cb, RESIDUES);
        self.share(CbCells(cells)).0
    }

    fn sort(&mut self, name: &str, atoms: Buffer<Atom>, axis: usize) -> CellBuffers {
        let (header, structures, chains) = (self.header(), self.structures(), self.chains());
        let named = |part: &str| format!("{name}_cell_{part}");
        let counts = self.zeros(&named("counts"), CELLS, 1);
        let cells = CellBuffers {
            start: self.device(&named("start"), CELLS, 1),
            x: self.device(&named("x"), axis, 1),
            y: self.device(&named("y"), axis, 1),
            z: self.device(&named("z"), axis, 1),
            tag: self.device(&named("tag"), axis, 1),
            source: self.device(&named("source"), axis, 1),
        };
        let of_axis = axis as u32;
        let args = cell_count::Args {
            header,
            structures,
            chains,
            atoms,
            counts,
            axis: of_axis,
        };
        self.launch_threads(axis, args);
        let args = cell_scan::Args {
            header,
            structures,
            counts,
            start: cells.start,
            axis: of_axis,
        };
        self.launch_blocks(STRUCTURES, args);
        let args = cell_fill::Args {
            header,
            structures,
            chains,
            atoms,
            start: cells.start,
            counts,
            x: cells.x,
            y: cells.y,
            z: cells.z,
            tag: cells.tag,
            source: cells.source,
            axis: of_axis,
        };
        self.launch_threads(axis, args);
        cells
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
                let own = &self.atoms[structure.along(axis)];
                for atom in own.iter().filter(|atom| atom.is_present()) {
                    counts[grid.cell_of(atom.position.into()) - grid.first as usize] += 1;
                }
            });
    }
}

/// Finds the index of each cell's first sorted atom.
impl Twin for cell_scan::Views<'_> {
    fn run(self) {
        let axis = self.axis;
        let structures = StructureSpan::live(self.header, self.structures);
        let cells = |structure: &StructureSpan| structure.grid(axis).cells();
        let starts = parts(self.start, structures.iter().map(cells));
        structures
            .par_iter()
            .zip(starts)
            .for_each(|(structure, starts)| {
                let mut next = structure.along(axis).start as u32;
                for (start, count) in starts.iter_mut().zip(&self.counts[cells(structure)]) {
                    *start = next;
                    next += count;
                }
            });
    }
}

/// Sorts the atoms by cell, and by index within a cell.
impl Twin for cell_fill::Views<'_> {
    fn run(self) {
        let (axis, atoms, start) = (self.axis, self.atoms, self.start);
        let structures = StructureSpan::live(self.header, self.structures);
        let cells = structures
            .iter()
            .map(|structure| structure.grid(axis).cells());
        let counts = parts(self.counts, cells);
        let own = || structures.iter().map(|structure| structure.along(axis));
        let xyz = parts(self.x, own())
            .zip(parts(self.y, own()))
            .zip(parts(self.z, own()));
        let tags = parts(self.tag, own()).zip(parts(self.source, own()));
        let outputs = xyz.zip(tags);
        structures.par_iter().zip(counts).zip(outputs).for_each(
            |((structure, counts), (((x, y), z), (tag, source)))| {
                let grid = structure.grid(axis);
                let range = structure.along(axis);
                // A cell is filled from its end.
                for (index, atom) in range.clone().zip(&atoms[range.clone()]).rev() {
                    if !atom.is_present() {
                        continue;
                    }
                    let cell = grid.cell_of(atom.position.into());
                    let count = &mut counts[cell - grid.first as usize];
                    *count -= 1;
                    let at = (start[cell] + *count) as usize - range.start;
                    (x[at], y[at], z[at]) = (atom.position.x, atom.position.y, atom.position.z);
                    (tag[at], source[at]) = (atom.tag, index as u32);
                }
            },
        );
    }
}

impl Cells<'_> {
    /// Runs of sorted atoms that include all atoms within `reach` of `point`, which must lie in the
    /// grid.
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

    /// Calls `take` with the original index of each sorted atom that is closer to an atom than
    /// `radius`, itself included; only of those of its chain if `own_chain`. `runs` are those of
    /// [`Cells::runs`].
    #[inline(always)]
    pub(super) fn each_within<S: Simd>(
        &self,
        simd: S,
        runs: impl Iterator<Item = Range<usize>>,
        atom: &Atom,
        radius: u32,
        own_chain: bool,
        mut take: impl FnMut(u32),
    ) {
        let point = atom.position;
        for (at, lanes) in vectors_of(simd, runs) {
            let dx = load(simd, self.x, at, lanes) - point.x;
            let dy = load(simd, self.y, at, lanes) - point.y;
            let dz = load(simd, self.z, at, lanes) - point.z;
            let d2 = squared::<S>(dx, dy, dz, radius as i32);
            let mut within = d2.simd_lt(radius * radius) & first_lanes(simd, lanes);
            if own_chain {
                within &= of_chain(simd, self.tag, at, lanes, atom.tag);
            }
            lanes_of(within.to_bitmask()).for_each(|lane| take(self.source[at + lane]));
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
