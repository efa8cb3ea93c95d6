//! The list of exposed points.

use super::super::cpu::simd::{self, lanes_of};
use super::super::cpu::split::parts;
use super::super::kernels::{Cells, Points, Twin, exposed_list, exposed_spans};
use super::super::layout::{PAIR_ROOM, Position, STRUCTURES, StructureSpan};
use crate::record::Buffer;
use crate::workload::{Extent, ReadViews};
use fearless_simd::prelude::*;
use rayon::prelude::*;
use std::ops::Range;

/// The numbers of exposed points that the host reads, to give a structure more room.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct PointTotals {
    /// `[structures]`
    pub(super) totals: Buffer<i32>,
    /// The points of a unit of room.
    pub(super) per_unit: usize,
}

impl PointTotals {
    /// The extent that a structure needs for its points; `None` if its extent is large enough.
    pub(in super::super) fn outgrown(
        &self,
        views: &ReadViews<'_>,
        offset: Extent,
        extent: Extent,
    ) -> Option<Extent> {
        let points = views.get(self.totals)[offset[STRUCTURES] as usize] as usize;
        let units = u32::try_from(points.div_ceil(self.per_unit)).unwrap_or(u32::MAX);
        (units > extent[PAIR_ROOM]).then(|| extent.with(PAIR_ROOM, units))
    }
}

impl Points<'_> {
    /// The points of an atom.
    pub(super) fn range_of(&self, atom: usize) -> Range<usize> {
        let start = self.start[atom] as usize;
        start..start + self.count[atom] as usize
    }

    /// The vectors of points from `first` on, relative to their atoms. Only the first `lanes` lanes
    /// are defined.
    #[inline(always)]
    pub(super) fn load<S: Simd>(&self, simd: S, first: usize, lanes: usize) -> [S::f32s; 3] {
        // A map of the array is not inlined, and takes a third of the time.
        [
            simd::load(simd, bytemuck::cast_slice(self.x), first, lanes).bitcast(),
            simd::load(simd, bytemuck::cast_slice(self.y), first, lanes).bitcast(),
            simd::load(simd, bytemuck::cast_slice(self.z), first, lanes).bitcast(),
        ]
    }
}

impl Cells<'_> {
    /// The vectors of the differences between the sorted atoms from index `first` on and the
    /// position `from`. Only the first `lanes` lanes are defined.
    #[inline(always)]
    pub(super) fn differences<S: Simd>(
        &self,
        simd: S,
        first: usize,
        lanes: usize,
        from: Position,
    ) -> [S::f32s; 3] {
        let difference = |values: &[i32], from: i32| -> S::f32s {
            (simd::load(simd, values, first, lanes) - from).to_float()
        };
        [
            difference(self.x, from.x),
            difference(self.y, from.y),
            difference(self.z, from.z),
        ]
    }
}

/// Finds where the points of each atom start, and their number.
impl Twin for exposed_spans::Views<'_> {
    fn run(self) {
        let structures = StructureSpan::live(self.header, self.structures);
        let words = self.words as usize;
        let points_of = |atom: usize| -> u32 {
            let bits = &self.bits[atom * words..][..words];
            if self.atoms[atom].is_present() {
                bits.iter().map(|word| word.count_ones()).sum()
            } else {
                0
            }
        };
        let atoms = || structures.iter().map(StructureSpan::atoms);
        let spans = parts(self.starts, atoms()).zip(parts(self.counts, atoms()));
        let rooms: &[[u32; 2]] = bytemuck::cast_slice(self.rooms);
        let work = structures.par_iter().zip(rooms).zip(spans);
        work.zip(self.totals).for_each(
            |(((structure, &[first, room]), (starts, counts)), total)| {
                let mut sum = 0u64;
                let places = starts.iter_mut().zip(counts.iter_mut());
                for (atom, (start, count)) in structure.atoms().zip(places) {
                    // A start that does not fit has no points: `room` is less.
                    *start = first.wrapping_add(sum as u32);
                    *count = points_of(atom);
                    sum += u64::from(*count);
                }
                *total = i32::try_from(sum).unwrap_or(i32::MAX);
                if sum > u64::from(room) {
                    counts.fill(0);
                }
            },
        );
    }
}

/// The points of a structure in the batch's list. They end where its last atom's end.
pub(super) fn points_of(structure: &StructureSpan, starts: &[u32], counts: &[u32]) -> Range<usize> {
    let ranges = structure.atoms();
    let ranges = ranges.map(|atom| starts[atom] as usize..(starts[atom] + counts[atom]) as usize);
    let mut ranges = ranges.filter(|points| !points.is_empty());
    match ranges.next() {
        Some(first) => first.start..ranges.next_back().map_or(first.end, |last| last.end),
        None => 0..0,
    }
}

/// Lists the points of each atom, with each point and each atom a tree of its own.
impl Twin for exposed_list::Views<'_> {
    fn run(self) {
        let (words, count) = (self.words as usize, self.points as usize);
        let sphere: &[f32] = bytemuck::cast_slice(&self.header[self.first as usize..]);
        let sphere = [0, 1, 2].map(|axis| &sphere[axis * count..][..count]);
        let structures = StructureSpan::live(self.header, self.structures);
        let points = structures
            .iter()
            .map(|structure| points_of(structure, self.starts, self.counts));
        let points: Vec<_> = points.collect();
        let ranges = || points.iter().cloned();
        let xy = parts(self.x, ranges()).zip(parts(self.y, ranges()));
        let z = parts(self.z, ranges()).zip(parts(self.parents, ranges()));
        let bodies = parts(self.bodies, structures.iter().map(StructureSpan::atoms));
        let work = structures
            .par_iter()
            .zip(&points)
            .zip(bodies)
            .zip(xy.zip(z));
        work.for_each(|(((structure, points), bodies), ((x, y), (z, parents)))| {
            for (parent, point) in parents.iter_mut().zip(points.clone()) {
                *parent = point as u32;
            }
            for (atom, body) in structure.atoms().zip(bodies) {
                *body = atom as u32;
                // Atoms of a structure that has too little room have no points.
                if self.counts[atom] == 0 {
                    continue;
                }
                let radius = (self.atoms[atom].tag.radius_milli() + self.probe) as f32;
                let mut place = self.starts[atom] as usize - points.start;
                for (word, &bits) in self.bits[atom * words..][..words].iter().enumerate() {
                    for bit in lanes_of(u64::from(bits)) {
                        let axes = [&mut *x, &mut *y, &mut *z];
                        for (axis, sphere) in axes.into_iter().zip(sphere) {
                            axis[place] = radius * sphere[32 * word + bit];
                        }
                        place += 1;
                    }
                }
            }
        });
    }
}
