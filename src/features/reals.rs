//! The floating-point type of downloaded columns.

use super::columns::{ColumnDecl, ColumnKind, TableName};
use super::kernels::{Twin, narrow_bf16, narrow_f16};
use super::layout::RESIDUES;
use half::{bf16, f16};

/// The floating-point type that real columns of residues are downloaded as. Everything is computed
/// in f32. The 16-bit types halve the download: the device rounds the values at the end, to
/// nearest, ties to even. Columns of chains and structures stay f32. NaN, which is null, stays NaN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reals {
    /// Single precision, as computed.
    #[default]
    F32,
    /// Half precision: 11 significant bits, up to 65504; larger values become infinity. The
    /// relative error is at most 2^-11, and below 2^-14 the absolute error at most 2^-25.
    F16,
    /// bfloat16: 8 significant bits, with the range of f32. The relative error is at most 2^-8, and
    /// below 2^-126 the absolute error at most 2^-134.
    Bf16,
}

impl Reals {
    /// All variants, with their names in a config.
    pub const NAMES: [(&'static str, Reals); 3] = [
        ("f32", Reals::F32),
        ("f16", Reals::F16),
        ("bf16", Reals::Bf16),
    ];

    /// The name in a config.
    pub fn name(self) -> &'static str {
        let all = Reals::NAMES.into_iter();
        let mut names = all.filter(|(_, reals)| *reals == self);
        names.next().expect("every one has a name").0
    }

    /// The declaration of a column as it is downloaded.
    pub(super) fn stored(self, mut column: ColumnDecl) -> ColumnDecl {
        let is_narrow = column.table == TableName::Residues && column.kind == ColumnKind::Real;
        if is_narrow && self == Reals::F16 {
            column.kind = ColumnKind::Half;
        }
        column
    }
}

/// Rounds to f16: to nearest, ties to even; every NaN becomes the same one.
impl Twin for narrow_f16::Views<'_> {
    fn run(self) {
        let live = self.header[RESIDUES] as usize * self.values as usize;
        for (narrow, &wide) in self.narrow[..live].iter_mut().zip(self.wide) {
            *narrow = if wide.is_nan() {
                f16::NAN
            } else {
                f16::from_f32(wide)
            };
        }
    }
}

/// Rounds to bf16: to nearest, ties to even; every NaN becomes the same one.
impl Twin for narrow_bf16::Views<'_> {
    fn run(self) {
        let live = self.header[RESIDUES] as usize * self.values as usize;
        for (narrow, &wide) in self.narrow[..live].iter_mut().zip(self.wide) {
            *narrow = if wide.is_nan() {
                bf16::NAN
            } else {
                bf16::from_f32(wide)
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of all exponents and both signs, with mantissas around every rounding boundary, and
    /// many random values.
    fn patterns() -> Vec<f32> {
        let edges = (0..16).flat_map(|bit| [1_u32 << bit, (1 << bit) - 1, (1 << bit) + 1]);
        let edges: Vec<u32> = edges.chain([0x7f_ffff, 0x7f_8000, 0x7f_f000]).collect();
        let exponents = 0..=255_u32;
        let mut bits: Vec<u32> = exponents
            .flat_map(|exponent| {
                let upper = [0, 1 << 16, 3 << 13, 1 << 22];
                let around = edges.iter().flat_map(move |edge| upper.map(|u| edge ^ u));
                around.map(move |mantissa| exponent << 23 | mantissa & 0x7f_ffff)
            })
            .collect();
        let mut state = 9_u32;
        bits.extend((0..1_000_000).map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state
        }));
        let signed = bits.into_iter().flat_map(|bits| [bits, bits ^ 1 << 31]);
        signed.map(f32::from_bits).collect()
    }

    /// The output of the twin of `$kernel` for `$wide`, with two values per residue.
    macro_rules! narrowed {
        ($kernel:ident, $wide:expr) => {{
            let wide: &[f32] = $wide;
            let mut narrow = vec![Default::default(); wide.len()];
            let views = $kernel::Views {
                header: &[wide.len() as u32 / 2],
                wide,
                narrow: &mut narrow,
                values: 2,
            };
            views.run();
            narrow
        }};
    }

    /// Asserts that `near` is the nearest value to `wide`, and the even one of two equally near.
    fn assert_nearest(wide: f32, near: f32, is_even: bool, neighbours: [f32; 2]) {
        let distance = |to: f32| (f64::from(to) - f64::from(wide)).abs();
        for other in neighbours.map(distance) {
            assert!(distance(near) <= other, "{wide:e} became {near:e}");
            assert!(distance(near) < other || is_even, "{wide:e} is between two");
        }
    }

    #[test]
    fn f16_is_the_nearest_and_within_its_bound() {
        let wide = patterns();
        for (&wide, near) in wide.iter().zip(narrowed!(narrow_f16, &wide)) {
            if wide.is_nan() {
                assert_eq!(near.to_bits(), 0x7e00);
                continue;
            }
            assert_eq!(near.is_sign_negative(), wide.is_sign_negative());
            // The largest f16 is 65504; values from half a step above it on round to infinity.
            if wide.abs() >= 65_520.0 {
                assert!(near.is_infinite(), "{wide:e}");
                continue;
            }
            let bits = near.to_bits();
            let neighbours = [bits.wrapping_add(1), bits.wrapping_sub(1)];
            let neighbours = neighbours.map(|bits| f16::from_bits(bits).to_f32());
            // Zero and the largest value have no two finite neighbours.
            if bits & 0x7fff != 0 && bits & 0x7fff != 0x7bff {
                assert_nearest(wide, near.to_f32(), bits & 1 == 0, neighbours);
            }
            let error = (f64::from(near.to_f32()) - f64::from(wide)).abs();
            let bound = match f64::from(wide.abs()) {
                normal if normal >= 2f64.powi(-14) => normal * 2f64.powi(-11),
                _ => 2f64.powi(-25),
            };
            assert!(error <= bound, "{wide:e}: {error:e}");
        }
    }

    #[test]
    fn bf16_is_the_nearest_and_within_its_bound() {
        let wide = patterns();
        for (&wide, near) in wide.iter().zip(narrowed!(narrow_bf16, &wide)) {
            if wide.is_nan() {
                assert_eq!(near.to_bits(), 0x7fc0);
                continue;
            }
            assert_eq!(near.is_sign_negative(), wide.is_sign_negative());
            let bits = near.to_bits();
            if near.is_infinite() {
                assert!(wide.to_bits() & 0x7fff_ffff >= 0x7f7f_8000, "{wide:e}");
                continue;
            }
            let neighbours = [bits.wrapping_add(1), bits.wrapping_sub(1)];
            let neighbours = neighbours.map(|bits| bf16::from_bits(bits).to_f32());
            if bits & 0x7fff != 0 && bits & 0x7fff != 0x7f7f {
                assert_nearest(wide, near.to_f32(), bits & 1 == 0, neighbours);
            }
            let error = (f64::from(near.to_f32()) - f64::from(wide)).abs();
            let bound = match f64::from(wide.abs()) {
                normal if normal >= 2f64.powi(-126) => normal * 2f64.powi(-8),
                _ => 2f64.powi(-134),
            };
            assert!(error <= bound, "{wide:e}: {error:e}");
        }
    }
}
