//! Reals of residues in 16 bits, whichever.

use super::super::layout::RESIDUES;
use crate::record::{Element, TwinLaunch};

/// What both kernels do: `of` each value of the residues that are there.
pub(super) fn narrow<T: Element>(launch: &mut TwinLaunch<'_>, of: fn(f32) -> T) {
    let header: &[u32] = launch.read();
    let wide: &[f32] = launch.read();
    let narrow: &mut [T] = launch.write();
    let values = launch.scalar::<u32>() as usize;
    let live = header[RESIDUES] as usize * values;
    for (narrow, &wide) in narrow[..live].iter_mut().zip(&wide[..live]) {
        *narrow = of(wide);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{narrow_bf16, narrow_f16};
    use super::*;
    use crate::record::{DType, TwinArg};
    use half::{bf16, f16};

    /// All exponents with mantissas around every place of rounding, both signs, and
    /// many more at random.
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

    fn narrowed<T: Element + Default>(twin: fn(&mut TwinLaunch<'_>), wide: &[f32]) -> Vec<T> {
        let header = [wide.len() as u32 / 2];
        let mut narrow = vec![T::default(); wide.len()];
        let args = vec![
            TwinArg::Read(DType::U32, bytemuck::cast_slice(&header)),
            TwinArg::Read(DType::F32, bytemuck::cast_slice(wide)),
            TwinArg::Write(T::DTYPE, bytemuck::cast_slice_mut(&mut narrow)),
            TwinArg::Scalar(2_u32.into()),
        ];
        twin(&mut TwinLaunch::new([1, 1, 1], args));
        narrow
    }

    /// `near` is as near as its neighbours are, and even where two are.
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
        for (&wide, near) in wide.iter().zip(narrowed::<f16>(narrow_f16, &wide)) {
            if wide.is_nan() {
                assert_eq!(near.to_bits(), 0x7e00);
                continue;
            }
            assert_eq!(near.is_sign_negative(), wide.is_sign_negative());
            // The largest is 65504, and half a step beyond it infinity begins.
            if wide.abs() >= 65_520.0 {
                assert!(near.is_infinite(), "{wide:e}");
                continue;
            }
            let bits = near.to_bits();
            let neighbours = [bits.wrapping_add(1), bits.wrapping_sub(1)];
            let neighbours = neighbours.map(|bits| f16::from_bits(bits).to_f32());
            // Next to zero is the other zero's side, next to the largest infinity.
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
        for (&wide, near) in wide.iter().zip(narrowed::<bf16>(narrow_bf16, &wide)) {
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
