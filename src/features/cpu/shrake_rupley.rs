//! What `sasa` and `sasa_delta` share, as `kernels/shrake_rupley.cuh`.
//!
//! Neighbour j, at d from atom i, buries a test point u of i if u . d >= t, with
//! t = (|d|^2 + R_i^2 - R_j^2) / (2 R_i), lengths in 0.001 A. All but the last
//! division is exact in integers; what is rounded after is rounded alike on all
//! machines, and so are the counts. Areas are sums of n R^2 in integers, which do
//! not depend on the order.

use super::super::layout::{Atom, AtomTag, RADIUS_MAX, ResidueSpan, StructureSpan};
use super::cells::Cells;
use super::simd::{LANES_MAX, first_lanes, load, squared, vectors};
use super::split::structures;
use crate::record::TwinLaunch;
use bytemuck::cast_slice;
use fearless_simd::prelude::*;

/// Neighbours nearer than this come first, so that buried points are found out
/// early.
const NEAR: i32 = 4_000;

/// What the kernels read.
pub(super) struct Inputs<'a> {
    header: &'a [u32],
    structures: &'a [StructureSpan],
    residues: &'a [ResidueSpan],
    atoms: &'a [Atom],
    cells: Cells<'a>,
}

impl<'a> Inputs<'a> {
    /// Takes the arguments before what is written.
    pub(super) fn take(launch: &mut TwinLaunch<'a>) -> Self {
        let header: &[u32] = launch.read();
        Inputs {
            header,
            structures: structures(header, launch.read()),
            residues: cast_slice(launch.read::<u32>()),
            atoms: cast_slice(launch.read::<i32>()),
            cells: Cells::take(launch),
        }
    }

    /// The batch's total along an axis.
    pub(super) fn total(&self, axis: usize) -> usize {
        self.header[axis] as usize
    }
}

/// The test points and the probe.
pub(super) struct Sphere {
    x: Vec<f32>,
    y: Vec<f32>,
    z: Vec<f32>,
    count: usize,
    probe: i32,
    /// Square A for each squared 0.001 A of a point.
    scale: f64,
}

impl Sphere {
    /// Takes the arguments after what is written.
    pub(super) fn take(launch: &mut TwinLaunch<'_>, inputs: &Inputs<'_>) -> Self {
        let first = launch.scalar::<u32>() as usize;
        let count = launch.scalar::<u32>() as usize;
        let probe = launch.scalar::<u32>() as i32;
        let points: &[f32] = cast_slice(&inputs.header[first..]);
        let axis = |axis: usize| {
            let mut values = points[axis * count..][..count].to_vec();
            values.resize(count.next_multiple_of(LANES_MAX), 0.0);
            values
        };
        Sphere {
            x: axis(0),
            y: axis(1),
            z: axis(2),
            count,
            probe,
            scale: 4e-6 * std::f64::consts::PI / count as f64,
        }
    }
}

/// Half spaces that neighbours bury: u . d + t >= 0, side by side.
#[derive(Default)]
struct HalfSpaces {
    x: Vec<f32>,
    y: Vec<f32>,
    z: Vec<f32>,
    t: Vec<f32>,
    len: usize,
}

impl HalfSpaces {
    #[inline(always)]
    fn push<S: Simd>(&mut self, wanted: S::mask32s, [x, y, z, t]: [S::f32s; 4]) {
        let end = self.len + S::f32s::LEN;
        if end > self.x.len() {
            for values in [&mut self.x, &mut self.y, &mut self.z, &mut self.t] {
                values.resize(2 * end, 0.0);
            }
        }
        let place = self.len..end;
        x.compress(wanted).store_slice(&mut self.x[place.clone()]);
        y.compress(wanted).store_slice(&mut self.y[place.clone()]);
        z.compress(wanted).store_slice(&mut self.z[place.clone()]);
        t.compress(wanted).store_slice(&mut self.t[place]);
        self.len += wanted.to_bitmask().count_ones() as usize;
    }

    /// Which of the points `open` none of these buries.
    #[inline(always)]
    fn outside<S: Simd>(&self, [x, y, z]: [S::f32s; 3], mut open: S::mask32s) -> S::mask32s {
        for at in 0..self.len {
            let depth = z.mul_add_precise(self.z[at], self.t[at]);
            let depth = y.mul_add_precise(self.y[at], depth);
            let depth = x.mul_add_precise(self.x[at], depth);
            open &= depth.simd_lt(0.0);
            if open.all_false() {
                break;
            }
        }
        open
    }
}

/// A task's memory: the own chain's near and far neighbours, and the others'.
#[derive(Default)]
pub(super) struct Scratch {
    own: [HalfSpaces; 2],
    other: HalfSpaces,
}

/// A residue's areas in A^2; all NaN if it has no atom.
pub(super) struct Areas {
    /// All atoms', the side chain's, the polar atoms'.
    pub(super) model: [f32; 3],
    /// What other chains bury.
    pub(super) delta: f32,
}

/// The areas of one residue. Where `BY_CHAIN` is false, all chains are one.
#[inline(always)]
pub(super) fn areas<S: Simd, const BY_CHAIN: bool>(
    simd: S,
    inputs: &Inputs<'_>,
    sphere: &Sphere,
    residue: usize,
    scratch: &mut Scratch,
) -> Areas {
    let residue = &inputs.residues[residue];
    let grid = &inputs.structures[residue.structure as usize].atom_grid;
    let (mut model, mut delta) = ([0u64; 3], 0);
    for own in residue.atoms() {
        let atom = &inputs.atoms[own];
        let radius = atom.tag.radius_milli() as i32 + sphere.probe;
        let reach = radius + RADIUS_MAX as i32 + sphere.probe;
        let point = atom.position.into();
        let runs = inputs.cells.runs(grid, point, reach);
        scratch.own.iter_mut().for_each(|half| half.len = 0);
        scratch.other.len = 0;
        gather::<S, BY_CHAIN>(simd, inputs, runs, own, radius, sphere.probe, scratch);
        let (alone, open) = count(simd, sphere, scratch);
        let unit = (radius as u64).pow(2);
        let kinds = [true, atom.tag.is_side(), atom.tag.is_polar()];
        for (sum, counts) in model.iter_mut().zip(kinds) {
            *sum += if counts { unit * open } else { 0 };
        }
        delta += unit * (alone - open);
    }
    let angstrom2 = |sum: u64| match residue.atom_count {
        0 => f32::NAN,
        _ => (sum as f64 * sphere.scale) as f32,
    };
    Areas {
        model: model.map(angstrom2),
        delta: angstrom2(delta),
    }
}

/// Finds the neighbours of atom `own`.
#[inline(always)]
fn gather<S: Simd, const BY_CHAIN: bool>(
    simd: S,
    inputs: &Inputs<'_>,
    runs: impl Iterator<Item = std::ops::Range<usize>>,
    own: usize,
    radius: i32,
    probe: i32,
    scratch: &mut Scratch,
) {
    let Scratch {
        own: [near, far],
        other,
    } = scratch;
    let Atom { position, tag } = inputs.atoms[own];
    let cells = &inputs.cells;
    let (sources, tags) = (cast_slice(cells.source), cast_slice(cells.tag));
    let reach = radius + RADIUS_MAX as i32 + probe;
    let half_inverse = 1.0 / (2 * radius) as f32;
    for (at, lanes) in runs.flat_map(|run| vectors(simd, run)) {
        let dx = load(simd, cells.x, at, lanes) - position.x;
        let dy = load(simd, cells.y, at, lanes) - position.y;
        let dz = load(simd, cells.z, at, lanes) - position.z;
        let d2: S::i32s = squared::<S>(dx, dy, dz, reach).bitcast();
        let tags = load(simd, tags, at, lanes);
        let other_radius = (tags & AtomTag::RADIUS as i32) + probe;
        let both = other_radius + radius;
        let wanted = first_lanes(simd, lanes)
            & d2.simd_lt(both * both)
            & load(simd, sources, at, lanes).simd_ne(own as i32);
        let t = other_radius * other_radius - (d2 + radius * radius);
        let t: S::f32s = t.to_float::<S::f32s>() * half_inverse;
        let half_spaces = [dx.to_float(), dy.to_float(), dz.to_float(), t];
        let is_near = d2.simd_lt(NEAR * NEAR);
        if BY_CHAIN {
            let chains: S::u32s = tags.bitcast();
            let is_own = (chains >> AtomTag::CHAIN_SHIFT).simd_eq(tag.chain());
            other.push::<S>(wanted & !is_own, half_spaces);
            near.push::<S>(wanted & is_own & is_near, half_spaces);
            far.push::<S>(wanted & is_own & !is_near, half_spaces);
        } else {
            near.push::<S>(wanted & is_near, half_spaces);
            far.push::<S>(wanted & !is_near, half_spaces);
        }
    }
}

/// Points that the own chain leaves open, and all.
#[inline(always)]
fn count<S: Simd>(simd: S, sphere: &Sphere, scratch: &Scratch) -> (u64, u64) {
    let (mut alone, mut open) = (0, 0);
    for (at, lanes) in vectors(simd, 0..sphere.count) {
        let point = [&sphere.x, &sphere.y, &sphere.z];
        let point = point.map(|axis| S::f32s::from_slice(simd, &axis[at..at + S::f32s::LEN]));
        let mut left = first_lanes(simd, lanes);
        for half_spaces in &scratch.own {
            left = half_spaces.outside::<S>(point, left);
        }
        alone += u64::from(left.to_bitmask().count_ones());
        let left = scratch.other.outside::<S>(point, left);
        open += u64::from(left.to_bitmask().count_ones());
    }
    (alone, open)
}
