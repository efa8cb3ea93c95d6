//! SIMD vectors of the widest kind that the machine has, detected at run time. A twin's inner loop
//! is written once, for any width.

use super::super::layout::AtomTag;
use fearless_simd::Level;
use fearless_simd::prelude::*;
use std::ops::Range;
use std::sync::OnceLock;

/// Lanes of the widest vector of 32-bit elements.
pub(in super::super) const LANES_MAX: usize = 16;

/// The widest kind of vectors that the machine has.
pub(in super::super) fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(Level::new)
}

/// Cuts a range into vectors: the index of each one's first element, and the number of its lanes
/// that lie in the range.
#[inline(always)]
pub(in super::super) fn vectors<S: Simd>(
    _: S,
    range: Range<usize>,
) -> impl Iterator<Item = (usize, usize)> {
    let lanes = S::i32s::LEN;
    let end = range.end;
    range
        .step_by(lanes)
        .map(move |first| (first, (end - first).min(lanes)))
}

/// Cuts each of several ranges into vectors, as [`vectors`] does.
#[inline(always)]
pub(in super::super) fn vectors_of<S: Simd, I: Iterator<Item = Range<usize>>>(
    _: S,
    runs: I,
) -> RunVectors<I> {
    RunVectors {
        runs,
        left: 0..0,
        lanes: S::i32s::LEN,
    }
}

/// The iterator that [`vectors_of`] returns.
pub(in super::super) struct RunVectors<I> {
    runs: I,
    /// The part of the current run that has not been returned yet.
    left: Range<usize>,
    lanes: usize,
}

impl<I: Iterator<Item = Range<usize>>> Iterator for RunVectors<I> {
    type Item = (usize, usize);

    #[inline(always)]
    fn next(&mut self) -> Option<(usize, usize)> {
        while self.left.is_empty() {
            self.left = self.runs.next()?;
        }
        let first = self.left.start;
        self.left.start += self.lanes;
        Some((first, (self.left.end - first).min(self.lanes)))
    }
}

/// The vector of values from `first` on. Only the first `count` lanes are defined: the others have
/// what follows, or 0 at the end of `values`, whose last vector may be incomplete.
#[inline(always)]
pub(in super::super) fn load<S: Simd>(
    simd: S,
    values: &[i32],
    first: usize,
    count: usize,
) -> S::i32s {
    match values.get(first..first + S::i32s::LEN) {
        Some(lanes) => S::i32s::from_slice(simd, lanes),
        None => {
            let mut lanes = [0; LANES_MAX];
            lanes[..count].copy_from_slice(&values[first..first + count]);
            S::i32s::from_slice(simd, &lanes[..S::i32s::LEN])
        }
    }
}

/// A mask of the first `count` lanes.
#[inline(always)]
pub(in super::super) fn first_lanes<S: Simd>(simd: S, count: usize) -> S::mask32s {
    S::mask32s::from_bitmask(simd, (1 << count) - 1)
}

/// The squared lengths of differences of positions, exact where all three are at most `reach`, and
/// at least `reach` squared elsewhere. `reach` is at most [`REACH`](super::super::layout::REACH).
#[inline(always)]
pub(in super::super) fn squared<S: Simd>(
    x: S::i32s,
    y: S::i32s,
    z: S::i32s,
    reach: i32,
) -> S::u32s {
    let square = |d: S::i32s| {
        let d = d.abs().min(reach);
        d * d
    };
    (square(x) + square(y) + square(z)).bitcast()
}

/// A mask of the lanes, of the vector of `count` atoms from index `first` on, whose atoms are in
/// the chain of `tag`: their tags differ from it in bits below those of the chain alone.
#[inline(always)]
pub(in super::super) fn in_same_chain<S: Simd>(
    simd: S,
    tags: &[AtomTag],
    first: usize,
    count: usize,
    tag: AtomTag,
) -> S::mask32s {
    let tags: S::u32s = load(simd, bytemuck::cast_slice(tags), first, count).bitcast();
    (tags ^ tag.bits()).simd_lt(AtomTag::FIRST_CHAIN_BIT)
}

/// The indices of the set bits, which are lanes.
#[inline(always)]
pub(in super::super) fn lanes_of(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
        bits &= bits - 1;
        Some(lane)
    })
}

/// All kinds of vectors that the machine has, for tests.
#[cfg(test)]
pub(in super::super) fn levels() -> Vec<Level> {
    let best = Level::new();
    let mut levels = vec![best];
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    {
        levels.extend(best.as_avx2().map(Level::Avx2));
        levels.extend(best.as_sse4_2().map(Level::Sse4_2));
        levels.extend(best.as_sse2().map(Level::Sse2));
    }
    levels
}
