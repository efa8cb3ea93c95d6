//! Converts decimal text to integers, exactly.
//!
//! Coordinates become i32 in 0.001 A. Text with more decimals is rounded half away from zero, on its
//! decimal digits, so that no binary fraction affects the result.

use std::fmt;

/// The largest coordinate, in 0.001 A: 100,000 A. Kernels of features subtract coordinates, and the larger
/// ones of missing positions, in 32 bits.
pub(super) const LIMIT_MILLI: i32 = 100_000_000;

const SPACES: u64 = u64::from_le_bytes(*b"        ");

/// Reads fields of eight columns of the form `  -1.234`: three decimals, right-aligned. Returns
/// `None` if any field has another form, which may be a number as well.
///
/// Nearly every coordinate of every file has this form, so there is one branch for all fields and
/// none that depends on a digit or a sign.
#[inline(always)]
pub(super) fn fixed8<const N: usize>(fields: [u64; N]) -> Option<[i32; N]> {
    let mut values = [0; N];
    let mut malformed = 0;
    for (value, columns) in values.iter_mut().zip(fields) {
        let (number, bits) = fixed8_unchecked(columns);
        *value = number;
        malformed |= bits;
    }
    (malformed == 0).then_some(values)
}

/// Returns (value in 0.001 A, nonzero if malformed).
#[inline(always)]
fn fixed8_unchecked(columns: u64) -> (i32, u64) {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let digits = columns ^ u64::from_le_bytes(*b"00000000");
    // The high bit of each byte that is not a digit: 0x76 and 10 are 0x80. Carries out of bytes
    // beyond ASCII can only set more high bits.
    let other = (digits.wrapping_add(0x7676_7676_7676_7676) | digits) & HIGH;
    // All bits of each of the first four bytes that is not a digit. These bytes must come before the
    // digits and be blanks; the last of them may be a minus.
    let lead = other & 0x8080_8080;
    let blank = (lead << 1) - (lead >> 7);
    let gaps = blank & (blank + 1);
    let sign = (columns ^ SPACES) & blank;
    let minus = u64::from(b'-' ^ b' ') * ((blank >> 8) + 1);
    let bad_sign = if sign == minus { 0 } else { sign };
    // Of the last four bytes, the first must be the point and the others digits.
    let bad_point = u64::from((columns >> 32) as u8 ^ b'.') | (other >> 32 ^ 0x80);
    // Remove the point, then combine pairs of digits three times: each factor adds 10, 100 or
    // 10,000 times the higher digits, which are in the lower bytes, to those after them.
    let eight = (digits & !blank & 0xffff_ffff) << 8 | digits >> 40 << 40;
    let two = eight.wrapping_mul(10 << 8 | 1) >> 8 & 0x00ff_00ff_00ff_00ff;
    let four = two.wrapping_mul(100 << 16 | 1) >> 16 & 0x0000_ffff_0000_ffff;
    let value = (four.wrapping_mul(10_000 << 32 | 1) >> 32) as i32;
    let negative = i32::from(sign != 0);
    ((value ^ -negative) + negative, gaps | bad_sign | bad_point)
}

/// The float nearest to a number of thousandths. The error of the product is far smaller than the
/// distance of any number of thousandths to the middle between two floats.
#[inline]
pub(super) fn thousandths_to_f32(value: i32) -> f32 {
    (f64::from(value) * 0.001) as f32
}

/// The powers of ten below 2^64.
static POWERS_OF_TEN: [u64; 20] = {
    let mut powers = [1; 20];
    let mut exponent = 1;
    while exponent < powers.len() {
        powers[exponent] = 10 * powers[exponent - 1];
        exponent += 1;
    }
    powers
};

/// A number as decimal digits and a power of ten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    is_negative: bool,
    digits: u64,
    exponent: i32,
    /// Whether digits other than zero were dropped after the 19th.
    is_inexact: bool,
}

impl Decimal {
    /// The number `value` times 10^-`places`.
    #[inline]
    pub(super) fn new(value: i64, places: u8) -> Self {
        Decimal {
            is_negative: value < 0,
            digits: value.unsigned_abs(),
            exponent: -i32::from(places),
            is_inexact: false,
        }
    }

    /// The number as a coordinate in 0.001 A, and whether it was rounded.
    #[inline]
    pub(super) fn coordinate(self) -> Result<(i32, bool), BadCoordinate> {
        match self.scaled(3) {
            Some((value, rounded)) if value.abs() <= LIMIT_MILLI => Ok((value, rounded)),
            _ => Err(BadCoordinate::TooFar),
        }
    }

    /// The float nearest to the number, which has at most 8 places, as columns of BinaryCIF have (`decoders`),
    /// and digits of at most 2^53, which f64 holds exactly. Rounding the quotient to f64 first changes nothing:
    /// the number is in the middle between two floats, and then so is the f64, or at least 2^-53 of its value
    /// away from it, and the f64 stays on its side.
    #[inline]
    pub(super) fn b_factor(self) -> f32 {
        debug_assert!((-8..=0).contains(&self.exponent) && self.digits <= 1 << 53);
        const POWERS: [f64; 9] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8];
        let magnitude = self.digits as f64 / POWERS[self.exponent.unsigned_abs() as usize];
        (if self.is_negative {
            -magnitude
        } else {
            magnitude
        }) as f32
    }

    /// The number as an occupancy in millionths, as [`occupancy`].
    pub(super) fn occupancy(self) -> i32 {
        self.scaled(6).map_or(i32::MAX, |(value, _)| value)
    }

    /// Reads `-12.5`, `+.5`, `1e-3` and `12.345(6)`, which has a standard uncertainty as CIF
    /// allows. Returns `None` for anything else, NaN and infinities included.
    fn parse(text: &[u8]) -> Option<Self> {
        let (is_negative, mut rest) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        let mut number = Decimal {
            is_negative,
            digits: 0,
            exponent: 0,
            is_inexact: false,
        };
        let mut seen = false;
        let mut in_fraction = false;
        while let [byte, tail @ ..] = rest {
            match byte {
                b'0'..=b'9' => {
                    seen = true;
                    number.push(byte - b'0', in_fraction);
                }
                b'.' if !in_fraction => in_fraction = true,
                _ => break,
            }
            rest = tail;
        }
        if let [b'e' | b'E', tail @ ..] = rest {
            let end = without_uncertainty(tail).len();
            let power = int(&tail[..end])?;
            // Larger powers overflow or round to zero all the same.
            number.exponent += power.clamp(-1000, 1000);
            rest = &tail[end..];
        }
        if let [b'(', uncertainty @ .., b')'] = rest
            && !uncertainty.is_empty()
            && uncertainty.iter().all(u8::is_ascii_digit)
        {
            rest = &[];
        }
        (seen && rest.is_empty()).then_some(number)
    }

    /// Appends a digit. Digits beyond 64 bits are cut off: the exponent makes up for their place,
    /// and the number is inexact if one of them is not 0.
    fn push(&mut self, digit: u8, in_fraction: bool) {
        let more = |digits: u64| digits.checked_add(u64::from(digit));
        match self.digits.checked_mul(10).and_then(more) {
            Some(digits) if !self.is_inexact => {
                self.digits = digits;
                self.exponent -= i32::from(in_fraction);
            }
            _ => {
                self.is_inexact |= digit != 0;
                self.exponent += i32::from(!in_fraction);
            }
        }
    }

    /// The number times 10^`places` as an integer, rounded half away from zero, and whether
    /// rounding changed it. `None` if it does not fit.
    fn scaled(self, places: i32) -> Option<(i32, bool)> {
        let power = self.exponent + places;
        let (magnitude, exact) = if self.digits == 0 {
            (0, true)
        } else if power >= 0 {
            let unit = *POWERS_OF_TEN.get(power as usize)?;
            (unit.checked_mul(self.digits)?, true)
        } else if let Some(&unit) = POWERS_OF_TEN.get(power.unsigned_abs() as usize) {
            let rest = self.digits % unit;
            let up = u64::from(rest >= unit - rest);
            (self.digits / unit + up, rest == 0)
        } else {
            (0, false)
        };
        let value = i32::try_from(magnitude).ok()?;
        let changed = !exact || self.is_inexact;
        Some((if self.is_negative { -value } else { value }, changed))
    }
}

/// Why text is not a coordinate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadCoordinate {
    /// The text is not a finite number.
    NotANumber,
    /// The magnitude of the number exceeds [`LIMIT_MILLI`].
    TooFar,
}

impl fmt::Display for BadCoordinate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadCoordinate::NotANumber => f.write_str("is not a number"),
            BadCoordinate::TooFar => write!(f, "is beyond {} A", LIMIT_MILLI / 1000),
        }
    }
}

/// A coordinate in 0.001 A, and whether it was rounded.
pub(super) fn coordinate(text: &[u8]) -> Result<(i32, bool), BadCoordinate> {
    let number = Decimal::parse(text).ok_or(BadCoordinate::NotANumber)?;
    number.coordinate()
}

/// Three coordinates in 0.001 A, and whether one was rounded. The error names the axis.
pub(super) fn coordinates(texts: [&[u8]; 3]) -> Result<([i32; 3], bool), (usize, BadCoordinate)> {
    let (mut xyz, mut any_rounded) = ([0; 3], false);
    for (axis, text) in texts.into_iter().enumerate() {
        let (value, rounded) = coordinate(text).map_err(|bad| (axis, bad))?;
        xyz[axis] = value;
        any_rounded |= rounded;
    }
    Ok((xyz, any_rounded))
}

/// An occupancy in millionths; 1 if the text is not a finite number. An occupancy that does not
/// fit becomes the largest that does, because occupancies are only compared.
pub(super) fn occupancy(text: &[u8]) -> i32 {
    match Decimal::parse(text) {
        Some(number) => number.occupancy(),
        None => OCCUPANCY_ONE,
    }
}

/// The occupancy 1.
pub(super) const OCCUPANCY_ONE: i32 = 1_000_000;

/// A B factor; NaN if the text is not a number that is finite as a float.
pub(super) fn b_factor(text: &[u8]) -> f32 {
    let Some(number) = Decimal::parse(text) else {
        return f32::NAN;
    };
    // Up to 2^24 and 10^10 both operands are exact in f32, so the quotient is the float nearest to
    // the text.
    if number.digits < 1 << 24 && (-10..=0).contains(&number.exponent) && !number.is_inexact {
        let value = number.digits as f32 / 10f32.powi(-number.exponent);
        return if number.is_negative { -value } else { value };
    }
    let text = std::str::from_utf8(without_uncertainty(text)).ok();
    let value = text.and_then(|text| text.parse::<f32>().ok());
    value.filter(|value| value.is_finite()).unwrap_or(f32::NAN)
}

/// The text of a number before the `(` of its standard uncertainty.
fn without_uncertainty(text: &[u8]) -> &[u8] {
    text.split(|&byte| byte == b'(').next().unwrap_or_default()
}

/// The float nearest to a number; `None` if the text is not one.
pub(super) fn float(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// An integer with an optional sign; `None` if the text is not one or it does not fit.
#[inline]
pub(super) fn int(text: &[u8]) -> Option<i32> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        _ => (false, text),
    };
    // More than ten digits do not fit in 32 bits, and ten fit in 64.
    if digits.is_empty() || digits.len() > 10 {
        return None;
    }
    let mut value = 0i64;
    for &byte in digits {
        if !byte.is_ascii_digit() {
            return None;
        }
        value = value * 10 + i64::from(byte - b'0');
    }
    i32::try_from(if is_negative { -value } else { value }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(text: &[u8; 8]) -> Option<i32> {
        fixed8([u64::from_le_bytes(*text)]).map(|[value]| value)
    }

    #[test]
    fn fixed_columns() {
        assert_eq!(fixed(b"  72.093"), Some(72_093));
        assert_eq!(fixed(b"-123.456"), Some(-123_456));
        assert_eq!(fixed(b"9999.999"), Some(9_999_999));
        assert_eq!(fixed(b"   0.001"), Some(1));
        assert_eq!(fixed(b"  -0.000"), Some(0));
        assert_eq!(fixed(b"   -.123"), Some(-123));
        assert_eq!(fixed(b"0000.000"), Some(0));
    }

    #[test]
    fn fixed_columns_refuse_any_other_form() {
        for text in [
            b"  +1.234",
            b" - 1.234",
            b"1 23.456",
            b"  1.2345",
            b"     nan",
            b"--12.345",
            b"  12.34 ",
            b"  12.3x5",
            b"        ",
            b"-1-2.345",
            b"\xb1 12.345",
        ] {
            assert_eq!(fixed(text), None, "{:?}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn fixed_columns_agree_with_the_general_parser_on_every_value() {
        for value in (-999_999..=9_999_999).step_by(37) {
            let text = format!("{:8.3}", f64::from(value) / 1000.0);
            let columns: [u8; 8] = text.as_bytes().try_into().unwrap();
            assert_eq!(fixed(&columns), Some(value), "{text}");
            assert_eq!(
                coordinate(text.trim().as_bytes()),
                Ok((value, false)),
                "{text}"
            );
        }
    }

    #[test]
    fn rounding_is_half_away_from_zero_on_the_digits() {
        for (text, value, rounded) in [
            ("1.0005", 1001, true),
            ("-1.0005", -1001, true),
            ("1.00049999999999999999999", 1000, true),
            ("2.67500", 2675, false),
            ("0.0005", 1, true),
            ("1.2345e1", 12345, false),
            ("1234567e-5", 12346, true),
            ("5e-4", 1, true),
            ("4e-400", 0, true),
            ("12.345(6)", 12345, false),
            (".5", 500, false),
            ("7.", 7000, false),
            ("+003.1", 3100, false),
        ] {
            assert_eq!(coordinate(text.as_bytes()), Ok((value, rounded)), "{text}");
        }
    }

    #[test]
    fn text_that_is_not_a_coordinate() {
        for text in [
            "", "-", ".", "nan", "inf", "1.2.3", "1e", "12(3", "1()", "0x1", "1,5", "1 2",
        ] {
            assert_eq!(
                coordinate(text.as_bytes()),
                Err(BadCoordinate::NotANumber),
                "{text}"
            );
        }
        for text in ["100000.001", "-1e6", "1e300", "99999999999999999999999"] {
            assert_eq!(
                coordinate(text.as_bytes()),
                Err(BadCoordinate::TooFar),
                "{text}"
            );
        }
        assert_eq!(coordinate(b"-100000"), Ok((-LIMIT_MILLI, false)));
    }

    #[test]
    fn b_factors_are_the_nearest_float() {
        for text in [
            "71.88279",
            "0.1",
            "16777217",
            "-3.5",
            "1e2",
            "123456.789012",
        ] {
            assert_eq!(
                b_factor(text.as_bytes()),
                text.parse::<f32>().unwrap(),
                "{text}"
            );
        }
        for text in [
            "inf",
            "?",
            "1e39",
            "-1.e+99",
            "999999999999999999999999999999999999999999",
        ] {
            assert!(b_factor(text.as_bytes()).is_nan(), "{text}");
        }
        assert_eq!(b_factor(b"3e38"), 3e38);
    }

    #[test]
    fn thousandths_become_the_nearest_float() {
        for value in (-999_999..=9_999_999).step_by(101) {
            assert_eq!(thousandths_to_f32(value), value as f32 / 1000.0, "{value}");
        }
    }

    #[test]
    fn occupancies_in_millionths() {
        assert_eq!(occupancy(b"0.333"), 333_000);
        assert_eq!(occupancy(b"inf"), OCCUPANCY_ONE);
        assert_eq!(occupancy(b"1e9"), i32::MAX);
    }

    #[test]
    fn integers() {
        assert_eq!(int(b"-12"), Some(-12));
        assert_eq!(int(b"2147483647"), Some(i32::MAX));
        for text in ["", "-", "2147483648", "1a", "12345678901"] {
            assert_eq!(int(text.as_bytes()), None, "{text}");
        }
    }
}
