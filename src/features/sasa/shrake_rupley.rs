//! The Shrake-Rupley algorithm, which the twins of kernels of areas share, as in
//! `kernels/shrake_rupley.cuh`.
//!
//! Neighbour j, at d from atom i, buries a test point u of i if u . d >= t, where t = (|d|^2 +
//! R_i^2 - R_j^2) / (2 R_i), with lengths in 0.001 A. d is exact, and every other operation is
//! rounded in the same way on all machines, so the counts are the same. Atoms beyond R_i + R_j bury
//! nothing, so testing more or fewer of them changes no count. Of several atoms of equal radius and
//! position only the first has open points. Areas are sums of n R^2 in integers, which do not
//! depend on the order of the terms.

use super::super::cpu::simd::LANES_MAX;
use super::super::kernels::Cells;
use super::super::layout::{Atom, RADIUS_MAX, ResidueSpan, StructureSpan};
use super::neighbours::{AtomGroup, BLOCK, Neighbours};
use super::others::Others;
use bytemuck::cast_slice;
use fearless_simd::prelude::*;

/// The longest edge of the box around a group of atoms, in 0.001 A. The neighbours of a group are
/// searched together: a larger box holds more residues whole, and more atoms that are near to few
/// of its atoms. The results do not depend on it, and kernels have another.
pub(super) const GROUP_EDGE: i32 = 6_000;

/// The kernels' inputs. Buffers may be longer than the batch.
pub(super) struct AreaInputs<'a> {
    pub(super) structures: &'a [StructureSpan],
    pub(super) residues: &'a [ResidueSpan],
    pub(super) atoms: &'a [Atom],
    pub(super) cells: Cells<'a>,
}

/// The test points of an atom, and the probe.
pub(super) struct Sphere {
    /// The points by axis, padded with zeros to a whole number of blocks.
    pub(super) axes: [Vec<f32>; 3],
    /// Number of points.
    pub(super) count: usize,
    /// The probe's radius in 0.001 A.
    pub(super) probe: u32,
    /// Area in A^2 for each point and each squared unit of 0.001 A.
    angstrom2_per_unit: f64,
}

/// The area in A^2 of one of `points` test points, or parts of a sphere, for a squared radius of one unit of
/// 0.001 A.
pub(in crate::features) fn angstrom2_per_point(points: usize) -> f64 {
    4e-6 * std::f64::consts::PI / points as f64
}

/// How the open part of an atom's sphere is found, and the unit of areas.
pub(super) trait Surface {
    /// The probe's radius in 0.001 A. For radii of `sasa.radii` beyond [`RADIUS_MAX`], whose excess the
    /// atoms' tags lack, it has that excess too.
    fn probe(&self) -> u32;

    /// The area in A^2 of one part of a sphere whose radius is 0.001 A.
    fn angstrom2_per_unit(&self) -> f64;

    /// Returns how many parts of an atom's sphere are open: without the other atoms, and in the model.
    /// `index` is the atom's index in the batch. `scratch` was filled by [`Neighbours::gather`] for a group of
    /// atoms that this atom is in, with this surface and these others.
    fn open<S: Simd, O: Others>(
        &self,
        simd: S,
        index: usize,
        atom: &Atom,
        others: O,
        scratch: &mut Neighbours,
    ) -> [u64; 2];

    /// The largest radius of an atom plus the probe.
    fn radius_max(&self) -> u32 {
        RADIUS_MAX + self.probe()
    }

    /// The area in A^2 of a sum of parts, each with the square of its atom's radius and the probe.
    fn angstrom2(&self, sum: u64) -> f32 {
        (sum as f64 * self.angstrom2_per_unit()) as f32
    }
}

impl Surface for Sphere {
    fn probe(&self) -> u32 {
        self.probe
    }

    fn angstrom2_per_unit(&self) -> f64 {
        self.angstrom2_per_unit
    }

    #[inline(always)]
    fn open<S: Simd, O: Others>(
        &self,
        simd: S,
        index: usize,
        atom: &Atom,
        others: O,
        scratch: &mut Neighbours,
    ) -> [u64; 2] {
        scratch.open_points(simd, index, atom, self, others)
    }
}

impl Sphere {
    /// The `count` points in the header from index `first` on; the probe's radius in 0.001 A.
    pub(super) fn in_header(header: &[u32], first: u32, count: u32, probe: u32) -> Self {
        let points = &header[first as usize..][..3 * count as usize];
        Sphere::new(cast_slice(points), probe)
    }

    /// Points as `[3, count]`, one axis after the other; the probe's radius in 0.001 A.
    fn new(points: &[f32], probe: u32) -> Self {
        let count = points.len() / 3;
        let axis = |axis: usize| {
            let mut values = points[axis * count..][..count].to_vec();
            values.resize(count.next_multiple_of(BLOCK * LANES_MAX), 0.0);
            values
        };
        Sphere {
            axes: std::array::from_fn(axis),
            count,
            probe,
            angstrom2_per_unit: angstrom2_per_point(count),
        }
    }
}

/// A residue's areas in A^2; NaN if it has no atoms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Areas {
    /// The areas of all atoms, of the side chain and of the polar atoms in the model.
    pub(super) model: [f32; 3],
    /// The area of all atoms in the model without the [`Others`].
    pub(super) alone: f32,
    /// The area that the [`Others`] bury.
    pub(super) delta: f32,
}

/// The areas of one residue.
#[inline(always)]
pub(super) fn areas_of<S: Simd, O: Others>(
    simd: S,
    inputs: &AreaInputs<'_>,
    surface: &impl Surface,
    residue: usize,
    others: O,
    scratch: &mut Neighbours,
) -> Areas {
    if inputs.residues[residue].atom_count == 0 {
        return Areas {
            model: [f32::NAN; 3],
            alone: f32::NAN,
            delta: f32::NAN,
        };
    }
    let (model, delta) = sums_of(simd, inputs, surface, residue, others, scratch);
    Areas {
        model: model.map(|sum| surface.angstrom2(sum)),
        alone: surface.angstrom2(model[0] + delta),
        delta: surface.angstrom2(delta),
    }
}

/// The areas of one residue in the model, and the area that the other atoms bury, as sums of parts of spheres,
/// each with the square of its atom's radius and the probe.
#[inline(always)]
pub(super) fn sums_of<S: Simd, O: Others>(
    simd: S,
    inputs: &AreaInputs<'_>,
    surface: &impl Surface,
    residue: usize,
    others: O,
    scratch: &mut Neighbours,
) -> ([u64; 3], u64) {
    let residue = &inputs.residues[residue];
    let grid = &inputs.structures[residue.structure as usize].atom_grid;
    let (mut model, mut delta) = ([0u64; 3], 0);
    let mut rest = residue.atoms();
    while !rest.is_empty() {
        let group = AtomGroup::first_of(&inputs.atoms[rest.clone()], GROUP_EDGE);
        scratch.gather(simd, &inputs.cells, grid, &group, surface, others);
        for index in rest.start..rest.start + group.len {
            let atom = &inputs.atoms[index];
            let [alone, open] = surface.open(simd, index, atom, others, scratch);
            let unit = u64::from(atom.tag.radius_milli() + surface.probe()).pow(2);
            let counts = [true, atom.tag.is_side(), atom.tag.is_polar()];
            for (sum, counts) in model.iter_mut().zip(counts) {
                *sum += if counts { unit * open } else { 0 };
            }
            delta += unit * (alone - open);
        }
        rest.start += group.len;
    }
    (model, delta)
}

#[cfg(test)]
mod tests;
