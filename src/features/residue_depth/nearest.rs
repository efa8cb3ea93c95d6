//! The nearest point of the outer surface.

use super::super::cpu::simd::{self, first_lanes, lanes_of, vectors, vectors_of};
use super::super::cpu::split::for_row_ranges;
use super::super::kernels::{Cells, Points, Twin, residue_depth};
use super::super::layout::{Atom, AtomTag, REACH, RESIDUES, StructureSpan};
use fearless_simd::dispatch;
use fearless_simd::prelude::*;

/// For each residue the mean depth of its atoms, and that of its C-alpha.
impl Twin for residue_depth::Views<'_> {
    fn run(self) {
        let count = self.header[RESIDUES] as usize;
        let depths: &mut [[f32; 2]] = bytemuck::cast_slice_mut(self.depths);
        for_row_ranges(&mut depths[..count], 1, |rows, depths| {
            dispatch!(simd::level(), simd => {
                for (row, depths) in rows.zip(depths) {
                    let residue = &self.residues[row];
                    let nearest = NearestPoint {
                        cells: self.cells,
                        points: self.points,
                        structure: &self.structures[residue.structure as usize],
                        atoms: self.atoms,
                        probe: self.probe,
                        radius_max: self.radius_max,
                        own_chain: self.own_chain != 0,
                    };
                    let alpha = &self.ca[row];
                    let (mut sum, mut alpha_depth) = (0.0, f32::NAN);
                    for source in residue.atoms() {
                        let atom = &self.atoms[source];
                        // No exposed point lies inside the atom's sphere, so if the atom has points, the
                        // nearest is one of its own, at the sphere's radius.
                        let distance = match self.points.count[source] {
                            0 => f64::from(nearest.squared_from(simd, atom, self.reach)).sqrt(),
                            _ => f64::from(atom.tag.radius_milli() + self.probe),
                        };
                        let depth = (distance - f64::from(self.probe)) * 0.001;
                        sum += depth;
                        if alpha.is_present() && alpha.position == atom.position {
                            alpha_depth = depth as f32;
                        }
                    }
                    let mean = sum / f64::from(residue.atom_count);
                    // Infinite where there is no surface.
                    let is_finite = residue.atom_count > 0 && mean < 1e30;
                    *depths = if is_finite { [mean as f32, alpha_depth] } else { [f32::NAN; 2] };
                }
            });
        });
    }
}

/// The search for the nearest point, as in `kernels/residue_depth.cu`.
struct NearestPoint<'a> {
    cells: Cells<'a>,
    points: Points<'a>,
    structure: &'a StructureSpan,
    atoms: &'a [Atom],
    /// The radius of the probe, in 0.001 A.
    probe: u32,
    /// The largest radius of an atom plus that of the probe, in 0.001 A.
    radius_max: u32,
    /// Whether only points of the atom's own chain count.
    own_chain: bool,
}

impl NearestPoint<'_> {
    /// The squared distance of `atom` from the nearest point, in (0.001 A)^2; infinite if there is none.
    /// It first searches the points of the atoms within `reach`.
    #[inline(always)]
    fn squared_from<S: Simd>(&self, simd: S, atom: &Atom, mut reach: u32) -> f32 {
        let mut nearest_squared = f32::INFINITY;
        if self.cells.are_empty(&self.structure.atom_grid) {
            return nearest_squared;
        }
        loop {
            let point = atom.position;
            let grid = &self.structure.atom_grid;
            let runs = self.cells.runs(grid, point.into(), reach as i32);
            for (first, lanes) in vectors_of(simd, runs) {
                let [dx, dy, dz] = self.cells.differences(simd, first, lanes, point);
                let d2 = dx * dx + dy * dy + dz * dz;
                let distance_max = self.search_distance(nearest_squared, self.radius_max);
                let near = d2.simd_lt(distance_max * distance_max) & first_lanes(simd, lanes);
                for lane in lanes_of(near.to_bitmask()) {
                    let source = self.cells.source[first + lane] as usize;
                    let offset = [dx[lane], dy[lane], dz[lane]];
                    let tags = [atom.tag, self.cells.tag[first + lane]];
                    self.lower_to_points_of(
                        simd,
                        tags,
                        source,
                        offset,
                        d2[lane],
                        &mut nearest_squared,
                    );
                }
            }
            // A nearer point would belong to an atom within this distance.
            let needed = self.search_distance(nearest_squared, self.radius_max);
            if needed <= reach as f32 {
                return nearest_squared;
            }
            if reach == REACH {
                break;
            }
            reach = if needed < REACH as f32 {
                needed as u32 + 1
            } else {
                (2 * reach).min(REACH)
            };
        }
        // The nearest point is farther than a search in cells reaches, so all atoms are tested.
        let from = atom.position;
        for source in self.structure.atoms() {
            let other = &self.atoms[source];
            if other.is_present() {
                let [x, y, z] = [
                    (other.position.x - from.x) as f32,
                    (other.position.y - from.y) as f32,
                    (other.position.z - from.z) as f32,
                ];
                let d2 = x * x + y * y + z * z;
                let tags = [atom.tag, other.tag];
                self.lower_to_points_of(simd, tags, source, [x, y, z], d2, &mut nearest_squared);
            }
        }
        nearest_squared
    }

    /// The distance below which an atom whose points are within `radius` of it may have one that is nearer
    /// than the square root of `nearest_squared`. Adds 1 for rounding errors.
    fn search_distance(&self, nearest_squared: f32, radius: u32) -> f32 {
        nearest_squared.sqrt() + radius as f32 + 1.0
    }

    /// Lowers `nearest_squared` to the squared distance of the nearest point of atom `source`, if that is
    /// less. The tags are those of the atom whose depth is computed and of `source`; `offset` is the vector
    /// from the first to the second, and `d2` its squared length.
    #[inline(always)]
    fn lower_to_points_of<S: Simd>(
        &self,
        simd: S,
        [own_tag, tag]: [AtomTag; 2],
        source: usize,
        offset: [f32; 3],
        d2: f32,
        nearest_squared: &mut f32,
    ) {
        let points = self.points.range_of(source);
        let distance_max = self.search_distance(*nearest_squared, tag.radius_milli() + self.probe);
        if points.is_empty()
            || (self.own_chain && own_tag.chain() != tag.chain())
            || d2 >= distance_max * distance_max
        {
            return;
        }
        let mut nearest = S::f32s::splat(simd, f32::INFINITY);
        for (first, lanes) in vectors(simd, points) {
            let [x, y, z] = self.points.load(simd, first, lanes);
            let (x, y, z) = (x + offset[0], y + offset[1], z + offset[2]);
            let squares = x * x + y * y + z * z;
            let in_range = first_lanes(simd, lanes);
            nearest = nearest.min(in_range.select(squares, S::f32s::splat(simd, f32::INFINITY)));
        }
        let nearer = nearest.simd_lt(*nearest_squared);
        for lane in lanes_of(nearer.to_bitmask()) {
            *nearest_squared = nearest_squared.min(nearest[lane]);
        }
    }
}
