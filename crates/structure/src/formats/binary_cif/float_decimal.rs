//! The decimals that floats stand for.

use crate::decimal::Decimal;

/// The shortest decimal that is nearest to a float, if it has three to six places. Up to the bound
/// floats are less than a unit of the last place apart, so there is no other.
pub(super) fn decimal_of_single(value: f32) -> Option<Decimal> {
    let (mut unit, mut bound) = (1e3, 8192.0);
    for places in 3..=6 {
        if value.is_nan() || value.abs() >= bound {
            return None;
        }
        let digits = nearest(f64::from(value) * unit);
        if (digits as f64 / unit) as f32 == value {
            return Some(Decimal::new(digits, places));
        }
        (unit, bound) = (unit * 10.0, bound / 10.0);
    }
    None
}

/// The decimal of six places that is nearest to a float, if they are as near as rounding errors of
/// a program that computed the float from the decimal's digits: a few units in the last place.
/// Values from 10^6 on are neither coordinates nor occupancies.
pub(super) fn decimal_of_double(value: f64) -> Option<Decimal> {
    const UNIT: f64 = 1e6;
    let digits = nearest(value * UNIT);
    let error = (digits as f64 / UNIT - value).abs();
    let is_near = value.abs() < 1e6 && error <= 4.0 * f64::EPSILON * value.abs();
    is_near.then(|| Decimal::new(digits, 6))
}

/// The nearest integer, halves away from zero.
fn nearest(value: f64) -> i64 {
    (value + 0.5f64.copysign(value)) as i64
}
