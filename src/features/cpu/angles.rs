//! Angles between exact differences of positions, as in `kernels/angles.cuh`. The code calls no
//! maths library, so that results are the same on every machine.

use super::super::layout::Position;
use super::vector::cross;
pub(in super::super) use super::vector::{Vector, difference, dot};

/// An angle as its sine and cosine, both times the same positive factor; both are 0 if there is no
/// angle.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Angle {
    pub(in super::super) sin: f64,
    pub(in super::super) cos: f64,
}

impl Angle {
    /// The dihedral of four points about the axis from the second to the third, positive clockwise
    /// along it (IUPAC-IUB 1970).
    pub(in super::super) fn dihedral([p1, p2, p3, p4]: [Position; 4]) -> Self {
        let (b1, b2, b3) = (difference(p2, p1), difference(p3, p2), difference(p4, p3));
        let (n1, n2) = (cross(b1, b2), cross(b2, b3));
        Angle {
            sin: dot(b2, b2).sqrt() * dot(b1, n2),
            cos: dot(n1, n2),
        }
    }

    /// The angle between two directions, from 0 to 180 degrees.
    pub(in super::super) fn between(a: Vector, b: Vector) -> Self {
        let normal = cross(a, b);
        Angle {
            sin: dot(normal, normal).sqrt(),
            cos: dot(a, b),
        }
    }

    /// The angle in degrees, in (-180, 180], with an error of up to 1e-9 before it is rounded to
    /// single precision; NaN if there is no angle.
    pub(in super::super) fn degrees(self) -> f32 {
        const TAN_15: f64 = 0.2679491924311227;
        const TAN_30: f64 = 0.5773502691896257;
        const DEGREES: f64 = 57.29577951308232;

        let (s, c) = (self.sin.abs(), self.cos.abs());
        let (large, small) = (s.max(c), s.min(c));
        if large.is_nan() || large <= 0.0 {
            return f32::NAN;
        }
        // atan(t) = 30 degrees + atan((t - tan 30) / (1 + t tan 30)), so that t is at most tan 15,
        // and eight terms of the series are enough: the ninth is below 1e-9 degrees.
        let (mut t, mut base) = (small / large, 0.0);
        if t > TAN_15 {
            t = (t - TAN_30) / (1.0 + t * TAN_30);
            base = 30.0;
        }
        let t2 = t * t;
        let mut sum = -1.0 / 15.0;
        sum = sum * t2 + 1.0 / 13.0;
        sum = sum * t2 - 1.0 / 11.0;
        sum = sum * t2 + 1.0 / 9.0;
        sum = sum * t2 - 1.0 / 7.0;
        sum = sum * t2 + 1.0 / 5.0;
        sum = sum * t2 - 1.0 / 3.0;
        sum = sum * t2 + 1.0;
        let mut angle = t * sum * DEGREES + base;
        angle = if s > c { 90.0 - angle } else { angle };
        angle = if self.cos < 0.0 { 180.0 - angle } else { angle };
        let rounded = if self.sin < 0.0 { -angle } else { angle } as f32;
        if rounded <= -180.0 { 180.0 } else { rounded }
    }
}

#[cfg(test)]
mod tests {
    use super::Angle;

    #[test]
    fn degrees_are_those_of_the_maths_library() {
        let step = 1e-3f64;
        for turn in -180_000..=180_000 {
            let expected = f64::from(turn) * step;
            let (sin, cos) = expected.to_radians().sin_cos();
            let found = Angle { sin, cos }.degrees();
            let expected = if turn == -180_000 { 180.0 } else { expected };
            assert!(
                (f64::from(found) - expected).abs() <= 1e-9 + expected.abs() * 6e-8,
                "{found}, expected {expected}"
            );
        }
    }

    #[test]
    fn a_half_turn_is_positive_and_no_direction_is_null() {
        let degrees = |sin, cos| Angle { sin, cos }.degrees();
        assert_eq!(degrees(0.0, -1.0), 180.0);
        assert_eq!(degrees(-0.0, -1.0), 180.0);
        assert_eq!(degrees(-1e-12, -1.0), 180.0);
        assert_eq!(degrees(-1.0, 0.0), -90.0);
        assert!(degrees(0.0, 0.0).is_nan());
        assert!(degrees(f64::NAN, 0.0).is_nan());
    }
}
