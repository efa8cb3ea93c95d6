//! Vectors of three reals.

/// The normal of a polygon, as long as twice its area.
pub(super) fn normal_of(corners: &[[f64; 3]]) -> [f64; 3] {
    let next = corners.iter().cycle().skip(1);
    let products = corners
        .iter()
        .zip(next)
        .map(|(&one, &next)| cross(one, next));
    products.fold([0.0; 3], |sum, product| {
        std::array::from_fn(|axis| sum[axis] + product[axis])
    })
}

pub(super) fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(super) fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

pub(super) fn length(a: [f64; 3]) -> f64 {
    dot(a, a).sqrt()
}

/// The vector with a length of one; zero stays zero.
pub(super) fn unit(a: [f64; 3]) -> [f64; 3] {
    let length = length(a);
    if length > 0.0 {
        a.map(|axis| axis / length)
    } else {
        a
    }
}

/// From one position to another, in the unit of both.
pub(super) fn difference(to: [i32; 3], from: [i32; 3]) -> [f64; 3] {
    [0, 1, 2].map(|axis| f64::from(to[axis]) - f64::from(from[axis]))
}

/// The cosine of the angle of two vectors; 0 if one of them is zero.
pub(super) fn cosine(a: [f64; 3], b: [f64; 3]) -> f64 {
    dot(unit(a), unit(b))
}
