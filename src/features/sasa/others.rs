//! The atoms that bury points of an atom in the model, but are left out of its area alone.

use super::super::layout::AtomTag;
use fearless_simd::prelude::*;
use std::ops::Range;

/// Says which atoms are the others, for vectors of neighbours' tags and indices in the batch.
pub(super) trait Others: Copy {
    /// Whether there may be any.
    const ANY: bool;

    /// Whether each neighbour of an atom with the tag `own` is one of the others.
    fn is_other<S: Simd>(self, own: AtomTag, tags: S::u32s, sources: S::u32s) -> S::mask32s;

    /// Those of the atoms `near`, with these tags and indices, that are in the model at all.
    #[inline(always)]
    fn present<S: Simd>(self, near: S::mask32s, _: S::u32s, _: S::u32s) -> S::mask32s {
        near
    }
}

/// No atoms: the area alone is that in the model.
#[derive(Clone, Copy)]
pub(super) struct NoOthers;

impl Others for NoOthers {
    const ANY: bool = false;

    #[inline(always)]
    fn is_other<S: Simd>(self, _: AtomTag, tags: S::u32s, _: S::u32s) -> S::mask32s {
        tags.simd_lt(0)
    }
}

/// No atoms, of a model that may be one chain: of the atoms only those of `chain` are present, or
/// all of them.
#[derive(Clone, Copy)]
pub(super) struct NoneOfChain {
    pub(super) chain: Option<u32>,
}

impl Others for NoneOfChain {
    const ANY: bool = false;

    #[inline(always)]
    fn is_other<S: Simd>(self, own: AtomTag, tags: S::u32s, sources: S::u32s) -> S::mask32s {
        NoOthers.is_other::<S>(own, tags, sources)
    }

    #[inline(always)]
    fn present<S: Simd>(self, near: S::mask32s, tags: S::u32s, _: S::u32s) -> S::mask32s {
        match self.chain {
            Some(chain) => near & (tags >> AtomTag::CHAIN_SHIFT).simd_eq(chain),
            None => near,
        }
    }
}

/// The atoms of other chains.
#[derive(Clone, Copy)]
pub(super) struct OtherChains;

impl Others for OtherChains {
    const ANY: bool = true;

    #[inline(always)]
    fn is_other<S: Simd>(self, own: AtomTag, tags: S::u32s, _: S::u32s) -> S::mask32s {
        (tags ^ own.bits()).simd_ge(AtomTag::FIRST_CHAIN_BIT)
    }
}

/// The atoms of one other chain, or none if that is the own one; those of further chains count as
/// absent.
#[derive(Clone, Copy)]
pub(super) struct OneChain {
    pub(super) own: u32,
    pub(super) other: u32,
}

impl Others for OneChain {
    const ANY: bool = true;

    #[inline(always)]
    fn is_other<S: Simd>(self, own: AtomTag, tags: S::u32s, sources: S::u32s) -> S::mask32s {
        OtherChains.is_other::<S>(own, tags, sources)
    }

    #[inline(always)]
    fn present<S: Simd>(self, near: S::mask32s, tags: S::u32s, _: S::u32s) -> S::mask32s {
        let chains = tags >> AtomTag::CHAIN_SHIFT;
        near & (chains.simd_eq(self.own) | chains.simd_eq(self.other))
    }
}

/// The atoms of glycans: `first` up to `end`. All atoms after them count as absent.
#[derive(Clone, Copy)]
pub(super) struct Glycans {
    first: u32,
    end: u32,
}

impl Glycans {
    pub(super) fn new(atoms: Range<u32>) -> Self {
        Glycans {
            first: atoms.start,
            end: atoms.end,
        }
    }
}

/// All atoms but the own ones: `first` and as many as `count`.
#[derive(Clone, Copy)]
pub(super) struct Rest {
    first: u32,
    count: u32,
}

impl Rest {
    pub(super) fn of(own: Range<usize>) -> Self {
        Rest {
            first: own.start as u32,
            count: own.len() as u32,
        }
    }
}

impl Others for Rest {
    const ANY: bool = true;

    #[inline(always)]
    fn is_other<S: Simd>(self, _: AtomTag, _: S::u32s, sources: S::u32s) -> S::mask32s {
        (sources - self.first).simd_ge(self.count)
    }
}

impl Others for Glycans {
    const ANY: bool = true;

    #[inline(always)]
    fn is_other<S: Simd>(self, _: AtomTag, _: S::u32s, sources: S::u32s) -> S::mask32s {
        sources.simd_ge(self.first)
    }

    #[inline(always)]
    fn present<S: Simd>(self, near: S::mask32s, _: S::u32s, sources: S::u32s) -> S::mask32s {
        near & sources.simd_lt(self.end)
    }
}
