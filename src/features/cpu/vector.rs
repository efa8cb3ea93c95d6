//! Exact differences of positions in double precision, as in `kernels/vector.cuh`.

use super::super::layout::Position;

pub(in super::super) type Vector = [f64; 3];

/// From `from` to `to`, in 0.001 A.
pub(in super::super) fn difference(to: Position, from: Position) -> Vector {
    [to.x - from.x, to.y - from.y, to.z - from.z].map(f64::from)
}

pub(in super::super) fn dot(a: Vector, b: Vector) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(in super::super) fn cross(a: Vector, b: Vector) -> Vector {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}
