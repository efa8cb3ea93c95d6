//! The outer surface: connected components of exposed points.

use super::super::cpu::forest::Forest;
use super::super::cpu::simd;
use super::super::cpu::simd::{first_lanes, lanes_of, load, vectors, vectors_of};
use super::super::cpu::split::parts;
use super::super::kernels::{Cells, Points, Twin, join_surface, outer_surface, surface_ends};
use super::super::layout::{Atom, StructureSpan};
use super::points::points_of;
use fearless_simd::dispatch;
use fearless_simd::prelude::*;
use rayon::prelude::*;
use std::ops::Range;

/// The x of a point that is not of the outer surface. It is farther than any other.
const NOT_OUTER: f32 = 1e15;

/// Joins the trees of points that are near each other, and those of atoms whose spheres overlap.
impl Twin for join_surface::Views<'_> {
    fn run(self) {
        let structures = StructureSpan::live(self.header, self.structures);
        let point_ranges = structures
            .iter()
            .map(|structure| points_of(structure, self.points.start, self.points.count));
        let point_ranges: Vec<_> = point_ranges.collect();
        let search = SurfaceSearch {
            atoms: self.atoms,
            cells: self.cells,
            points: self.points,
            probe: self.probe,
            radius_max: self.radius_max,
            join_distance: self.apart,
            own_chain: self.own_chain != 0,
        };
        let bodies = parts(self.bodies, structures.iter().map(StructureSpan::atoms));
        let point_parents = parts(self.parents, point_ranges.iter().cloned());
        let work = structures.par_iter().zip(&point_ranges);
        let work = work.zip(bodies).zip(point_parents);
        work.for_each(|(((structure, point_range), bodies), point_parents)| {
            let mut bodies = Forest {
                parents: bodies,
                start: structure.atom_start as usize,
            };
            let mut surface = Forest {
                parents: point_parents,
                start: point_range.start,
            };
            dispatch!(simd::level(), simd => {
                for atom in structure.atoms() {
                    search.join(simd, structure, atom, &mut bodies, &mut surface);
                }
            });
        });
    }
}

/// Arguments of [`SurfaceSearch::join_near`]: whether the points are of one atom.
const ONE_ATOM: bool = true;
const TWO_ATOMS: bool = false;

/// The search for atoms whose spheres overlap, and for their points that are near. All lengths are in
/// 0.001 A.
struct SurfaceSearch<'a> {
    atoms: &'a [Atom],
    cells: Cells<'a>,
    points: Points<'a>,
    probe: u32,
    radius_max: u32,
    /// Points that are closer are joined.
    join_distance: u32,
    own_chain: bool,
}

impl SurfaceSearch<'_> {
    /// Joins an atom and its points with those of earlier atoms, and its points with each other.
    #[inline(always)]
    fn join<S: Simd>(
        &self,
        simd: S,
        structure: &StructureSpan,
        atom: usize,
        bodies: &mut Forest<'_>,
        surface: &mut Forest<'_>,
    ) {
        let Atom { position, tag } = self.atoms[atom];
        if !tag.is_atom() {
            return;
        }
        let mine = self.points.range_of(atom);
        for point in mine.clone() {
            self.join_near::<S, ONE_ATOM>(simd, point, [0.0; 3], mine.start..point, surface);
        }

        let radius = tag.radius_milli() + self.probe;
        let reach = radius + self.radius_max + self.join_distance;
        let runs = self
            .cells
            .runs(&structure.atom_grid, position.into(), reach as i32);
        let sources: &[i32] = bytemuck::cast_slice(self.cells.source);
        for (first, lanes) in vectors_of(simd, runs) {
            let [dx, dy, dz] = self.cells.differences(simd, first, lanes, position);
            let d2 = dx * dx + dy * dy + dz * dz;
            let earlier = load(simd, sources, first, lanes).simd_lt(atom as i32);
            let mut wanted =
                d2.simd_lt((reach as f32) * (reach as f32)) & earlier & first_lanes(simd, lanes);
            if self.own_chain {
                wanted &= simd::in_same_chain(simd, self.cells.tag, first, lanes, tag);
            }
            for lane in lanes_of(wanted.to_bitmask()) {
                let (other, d2) = (self.cells.source[first + lane] as usize, d2[lane]);
                let others = self.cells.tag[first + lane].radius_milli() + self.probe;
                let both = (radius + others) as f32;
                if d2 < both * both {
                    bodies.join(atom, other);
                }
                let near = (radius + others + self.join_distance) as f32;
                let theirs = self.points.range_of(other);
                if mine.is_empty() || theirs.is_empty() || d2 >= near * near {
                    continue;
                }
                let to = [dx[lane], dy[lane], dz[lane]];
                let near = (others + self.join_distance) as f32;
                self.join_points(simd, mine.clone(), theirs, to, near, surface);
            }
        }
    }

    /// Joins the points `mine` of an atom with the points `theirs` of another atom, which is at
    /// `to` from the first. Points of the first that are not within `near` of the second are
    /// skipped.
    #[inline(always)]
    fn join_points<S: Simd>(
        &self,
        simd: S,
        mine: Range<usize>,
        theirs: Range<usize>,
        to: [f32; 3],
        near: f32,
        surface: &mut Forest<'_>,
    ) {
        for (first, lanes) in vectors(simd, mine) {
            let [x, y, z] = self.points.load(simd, first, lanes);
            let (x, y, z) = (x - to[0], y - to[1], z - to[2]);
            let is_near = (x * x + y * y + z * z).simd_lt(near * near) & first_lanes(simd, lanes);
            for lane in lanes_of(is_near.to_bitmask()) {
                self.join_near::<S, TWO_ATOMS>(simd, first + lane, to, theirs.clone(), surface);
            }
        }
    }

    /// Joins a point with the points `others` that are near it. Their atom is at `to` from the
    /// point's atom, or the same atom with [`ONE_ATOM`]. Points of two atoms are joined only if the
    /// line from one to the other leaves both spheres at once, which it does not between the two
    /// sides of a thin wall.
    #[inline(always)]
    fn join_near<S: Simd, const IS_ONE_ATOM: bool>(
        &self,
        simd: S,
        point: usize,
        to: [f32; 3],
        others: Range<usize>,
        surface: &mut Forest<'_>,
    ) {
        let join_distance = self.join_distance as f32;
        let from = [
            self.points.x[point],
            self.points.y[point],
            self.points.z[point],
        ];
        for (first, lanes) in vectors(simd, others) {
            let [to_x, to_y, to_z] = self.points.load(simd, first, lanes);
            let x = to_x - (from[0] - to[0]);
            let y = to_y - (from[1] - to[1]);
            let z = to_z - (from[2] - to[2]);
            let mut wanted = (x * x + y * y + z * z).simd_lt(join_distance * join_distance)
                & first_lanes(simd, lanes);
            if !IS_ONE_ATOM {
                let from_first = x * from[0] + y * from[1] + z * from[2];
                let from_second = x * to_x + y * to_y + z * to_z;
                wanted &= from_first.simd_ge(0.0) & from_second.simd_le(0.0);
            }
            for lane in lanes_of(wanted.to_bitmask()) {
                surface.join(point, first + lane);
            }
        }
    }
}

/// Finds the point of each body with the largest x, and of those the first: the largest key, which
/// is x above the structure's lowest atom, and the complement of the point's index.
impl Twin for surface_ends::Views<'_> {
    fn run(self) {
        let structures = StructureSpan::live(self.header, self.structures);
        let bodies = parts(self.bodies, structures.iter().map(StructureSpan::atoms));
        let ends: &mut [[u32; 2]] = bytemuck::cast_slice_mut(self.ends);
        let ends = parts(ends, structures.iter().map(StructureSpan::atoms));
        let work = structures.par_iter().zip(bodies).zip(ends);
        work.for_each(|((structure, bodies), ends)| {
            let start = structure.atom_start as usize;
            let mut bodies = Forest {
                parents: bodies,
                start,
            };
            for atom in structure.atoms() {
                let points = self.points.range_of(atom);
                if !self.atoms[atom].is_present() || points.is_empty() {
                    continue;
                }
                let x = self.atoms[atom].position.x - structure.atom_grid.origin[0];
                // No point is so far from its atom, so the sum is not negative.
                let corner = x + (1 << 16);
                let key = |point: usize| {
                    [
                        !(point as u32),
                        (corner + self.points.x[point] as i32) as u32,
                    ]
                };
                let end = &mut ends[bodies.root(atom) - start];
                for key in points.map(key) {
                    if (key[1], key[0]) > (end[1], end[0]) {
                        *end = key;
                    }
                }
            }
        });
    }
}

/// Marks the points that are not of the outer surface of their body, the tree of points that has
/// the end of the body. An atom with no other points gets none, so that searches skip it.
impl Twin for outer_surface::Views<'_> {
    fn run(self) {
        let structures = StructureSpan::live(self.header, self.structures);
        let atoms = || structures.iter().map(StructureSpan::atoms);
        let points: Vec<_> = structures
            .iter()
            .map(|structure| points_of(structure, self.starts, self.counts))
            .collect();
        let counts = parts(self.counts, atoms()).zip(parts(self.bodies, atoms()));
        let x = parts(self.x, points.iter().cloned());
        let parents = parts(self.parents, points.iter().cloned());
        let work = structures.par_iter().zip(&points).zip(counts);
        let work = work.zip(x.zip(parents));
        let ends: &[[u32; 2]] = bytemuck::cast_slice(self.ends);
        work.for_each(|(((structure, points), (counts, bodies)), (x, parents))| {
            let start = structure.atom_start as usize;
            let mut bodies = Forest {
                parents: bodies,
                start,
            };
            let mut surface = Forest {
                parents,
                start: points.start,
            };
            for (atom, count) in structure.atoms().zip(counts) {
                if !self.atoms[atom].is_present() || *count == 0 {
                    continue;
                }
                let last = !ends[bodies.root(atom)][0] as usize;
                let outer = surface.root(last);
                let mine = self.starts[atom] as usize..(self.starts[atom] + *count) as usize;
                let mut any = false;
                for point in mine {
                    let is_outer = surface.root(point) == outer;
                    any |= is_outer;
                    if !is_outer {
                        x[point - points.start] = NOT_OUTER;
                    }
                }
                if !any {
                    *count = 0;
                }
            }
        });
    }
}
