//! The algorithm of Lee and Richards, which the twins of kernels of areas share, as in
//! `kernels/lee_richards.cuh`.
//!
//! Planes z = R (2 s + 1 - N) / N of slices s < N cut the sphere of an atom in circles. Each neighbour
//! buries an arc of a circle, or all of it, and the open part of the circle stands for that of the zone
//! around it, whose area is 4 pi R^2 / N.
//!
//! Angles are integers, 2^32 to a turn, and every operation before them is rounded in the same way on
//! all machines. What is open is a union of integer intervals, so it does not depend on the order of
//! the neighbours.

use super::super::layout::Atom;
use super::neighbours::Neighbours;
use super::others::Others;
use super::shrake_rupley::{Surface, angstrom2_per_point};
use fearless_simd::prelude::*;

/// The parts of a circle that areas count in: an area is a sum of open parts, as it is one of open
/// points by Shrake and Rupley. Rounding to a part is far below the error of slices.
pub(super) const PARTS: u32 = 4096;

const TURN: f32 = 4_294_967_296.0;
const TURNS_PER_RADIAN: f32 = 0.159_154_94;

/// The coefficients of arctan(t) / t for |t| <= 1 as a polynomial in t^2, the highest first; error up to
/// 2e-8: Abramowitz and Stegun 1964, 4.4.49.
const ARCTAN: [f32; 9] = [
    0.002_866_225_8,
    -0.016_165_737,
    0.042_909_615,
    -0.075_289_64,
    0.106_562_64,
    -0.142_089,
    0.199_935_51,
    -0.333_331_47,
    1.0,
];

/// The same of arccos(t) / sqrt(1 - t) for 0 <= t <= 1, in t: 4.4.46.
#[expect(
    clippy::approx_constant,
    reason = "the last is less than pi / 2, as published"
)]
const ARCCOS: [f32; 8] = [
    -0.001_262_491_1,
    0.006_670_09,
    -0.017_088_126,
    0.030_891_88,
    -0.050_174_303,
    0.088_978_99,
    -0.214_598_8,
    1.570_796_3,
];

#[inline(always)]
fn polynomial<const N: usize>(coefficients: [f32; N], x: f32) -> f32 {
    let [first, rest @ ..] = coefficients.as_slice() else {
        return 0.0;
    };
    rest.iter().fold(*first, |sum, next| sum.mul_add(x, *next))
}

/// The direction of (x, y); any if both are 0.
#[inline(always)]
fn direction(x: f32, y: f32) -> u32 {
    let (across, up) = (x.abs(), y.abs());
    let (large, small) = (across.max(up), across.min(up));
    let t = if large > 0.0 { small / large } else { 0.0 };
    let mut angle = (t * polynomial(ARCTAN, t * t) * TURNS_PER_RADIAN * TURN) as u32;
    if up > across {
        angle = (1 << 30) - angle;
    }
    if x < 0.0 {
        angle = (1 << 31) - angle;
    }
    if y < 0.0 { angle.wrapping_neg() } else { angle }
}

/// Half the width of an arc, from the cosine of that half, which is between -1 and 1; less than half a
/// turn, so that twice of it fits 32 bits.
#[inline(always)]
fn half_width(cosine: f32) -> u32 {
    let t = cosine.abs();
    let turns = (1.0 - t).sqrt() * polynomial(ARCCOS, t) * TURNS_PER_RADIAN;
    let turns = if cosine < 0.0 { 0.5 - turns } else { turns };
    (turns.min(0.499_999_97) * TURN) as u32
}

/// What a neighbour buries of the circles of an atom: in the slice at height h, with the circle's
/// radius r (both of R = 1), the arc around `direction` up to the angle whose cosine is
/// -(t + z h) / (r d), where d = 1 / inverse is the neighbour's distance from the axis.
struct Bite {
    inverse: f32,
    z: f32,
    t: f32,
    direction: u32,
}

impl Bite {
    /// That of a half space u . d + t >= 0.
    #[inline(always)]
    fn new([x, y, z, t]: [f32; 4]) -> Self {
        Bite {
            inverse: 1.0 / x.mul_add(x, y * y).sqrt(),
            z,
            t,
            direction: direction(x, y),
        }
    }
}

/// The buffers of a task.
#[derive(Default)]
pub(super) struct Arcs {
    own: Vec<Bite>,
    other: Vec<Bite>,
    circle: Circle,
}

/// The open arcs of a circle: start and length.
#[derive(Default)]
struct Circle {
    open: Vec<[u32; 2]>,
    next: Vec<[u32; 2]>,
}

impl Circle {
    /// Closes what bites bury, of the circle at `height` whose radius is 1 / `inverse`.
    #[inline(always)]
    fn bury(&mut self, bites: &[Bite], height: f32, inverse: f32) {
        for bite in bites {
            if self.open.is_empty() {
                return;
            }
            let cosine = -bite.z.mul_add(height, bite.t) * (bite.inverse * inverse);
            // Of a neighbour on the axis it is infinite or, if that touches the circle, no number:
            // then the whole circle is buried, or none of it.
            if cosine.is_nan() || cosine <= -1.0 {
                self.open.clear();
            } else if cosine < 1.0 {
                let half = half_width(cosine);
                self.close(bite.direction.wrapping_sub(half), 2 * half);
            }
        }
    }

    /// Closes an arc, which ends before a whole turn.
    #[inline(always)]
    fn close(&mut self, from: u32, turn: u32) {
        if turn == 0 {
            return;
        }
        self.next.clear();
        for &[start, length] in &self.open {
            // Where the arc begins and ends, counted from the open arc's start. If it goes over that
            // start, it closes the arc's beginning.
            let begin = from.wrapping_sub(start);
            let (end, goes_over) = begin.overflowing_add(turn);
            let first = if goes_over { end } else { 0 };
            let last = begin.min(length);
            if first < last {
                self.next.push([start + first, last - first]);
            }
            if !goes_over && end < length {
                self.next.push([start + end, length - end]);
            }
        }
        std::mem::swap(&mut self.open, &mut self.next);
    }

    fn open_turns(&self) -> u64 {
        self.open.iter().map(|[_, length]| u64::from(*length)).sum()
    }
}

/// The slices of an atom, and the probe.
pub(super) struct Slices {
    /// The height and 1 / the radius of each circle.
    circles: Vec<[f32; 2]>,
    probe: u32,
    angstrom2_per_unit: f64,
}

impl Slices {
    /// `count` slices; the probe's radius in 0.001 A.
    pub(super) fn new(count: u32, probe: u32) -> Self {
        let circle = |slice: u32| {
            // Of the middle of the slice, from -1 to 1.
            let height = ((2 * slice + 1) as i32 - count as i32) as f32 / count as f32;
            [height, 1.0 / (1.0 - height * height).sqrt()]
        };
        Slices {
            circles: (0..count).map(circle).collect(),
            probe,
            angstrom2_per_unit: angstrom2_per_point((PARTS * count) as usize),
        }
    }

    /// The numbers of parts of circles that `own` half spaces leave open, and that `other` ones leave open
    /// too.
    #[inline(always)]
    pub(super) fn open_parts(
        &self,
        own: impl Iterator<Item = [f32; 4]>,
        other: impl Iterator<Item = [f32; 4]>,
        arcs: &mut Arcs,
    ) -> [u64; 2] {
        let circle = &mut arcs.circle;
        arcs.own.clear();
        arcs.own.extend(own.map(Bite::new));
        arcs.other.clear();
        arcs.other.extend(other.map(Bite::new));
        let mut turns = [0; 2];
        for &[height, inverse] in &self.circles {
            circle.open.clear();
            // Without the last angle, as in the kernel.
            circle.open.push([0, u32::MAX]);
            for (turns, bites) in turns.iter_mut().zip([&arcs.own, &arcs.other]) {
                circle.bury(bites, height, inverse);
                *turns += circle.open_turns();
            }
        }
        let part = (1 << 32) / u64::from(PARTS);
        turns.map(|turns| (turns + part / 2) / part)
    }
}

impl Surface for Slices {
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
        scratch.open_arcs(simd, index, atom, self, others)
    }
}
