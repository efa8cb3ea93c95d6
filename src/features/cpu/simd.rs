//! The widest vectors that the machine has, chosen when the program starts. A
//! twin's inner loop is written once, for any width.

use fearless_simd::Level;
use fearless_simd::prelude::*;
use std::ops::Range;
use std::sync::OnceLock;

/// Lanes of the widest vector of 32-bit elements.
pub(super) const LANES_MAX: usize = 16;

/// What the machine has.
pub(super) fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(Level::new)
}

/// Cuts a range into vectors: where each starts, and how many lanes of it are in
/// the range.
#[inline(always)]
pub(super) fn vectors<S: Simd>(_: S, range: Range<usize>) -> impl Iterator<Item = (usize, usize)> {
    let lanes = S::i32s::LEN;
    let end = range.end;
    range
        .step_by(lanes)
        .map(move |at| (at, (end - at).min(lanes)))
}

/// The vector of values from `at` on, of which `count` are wanted; the others are
/// whatever stands there.
#[inline(always)]
pub(super) fn load<S: Simd>(simd: S, values: &[i32], at: usize, count: usize) -> S::i32s {
    match values.get(at..at + S::i32s::LEN) {
        Some(lanes) => S::i32s::from_slice(simd, lanes),
        None => {
            let mut lanes = [0; LANES_MAX];
            lanes[..count].copy_from_slice(&values[at..at + count]);
            S::i32s::from_slice(simd, &lanes[..S::i32s::LEN])
        }
    }
}

/// The first `count` lanes.
#[inline(always)]
pub(super) fn first_lanes<S: Simd>(simd: S, count: usize) -> S::mask32s {
    S::mask32s::from_bitmask(simd, (1 << count) - 1)
}

/// The squared lengths of differences of positions, exact where all three are at
/// most `reach`, and at least `reach` squared elsewhere. `reach` is at most
/// [`REACH`](super::super::layout::REACH).
#[inline(always)]
pub(super) fn squared<S: Simd>(x: S::i32s, y: S::i32s, z: S::i32s, reach: i32) -> S::u32s {
    let square = |d: S::i32s| {
        let d = d.abs().min(reach);
        d * d
    };
    (square(x) + square(y) + square(z)).bitcast()
}
