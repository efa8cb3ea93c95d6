//! The other atoms: they bury points of an atom in the model, and are left out where the area of
//! the atom's residue, chain or ligand alone is computed.

use super::super::layout::AtomTag;
use fearless_simd::prelude::*;
use std::ops::Range;

/// Selects the other atoms among an atom's neighbours.
pub(super) trait Others: Copy {
    /// Whether any atom can be selected.
    const ANY: bool;

    /// A mask of the neighbours, with these tags and indices in the batch, that are other atoms for
    /// an atom with the tag `tag`.
    fn is_other<S: Simd>(self, tag: AtomTag, tags: S::u32s, sources: S::u32s) -> S::mask32s;

    /// The lanes of `near` whose atoms, with these tags and indices in the batch, are in the model
    /// at all.
    #[inline(always)]
    fn present<S: Simd>(self, near: S::mask32s, _: S::u32s, _: S::u32s) -> S::mask32s {
        near
    }
}

/// Selects no atoms: the area alone is the area in the model.
#[derive(Clone, Copy)]
pub(super) struct NoOthers;

impl Others for NoOthers {
    const ANY: bool = false;

    #[inline(always)]
    fn is_other<S: Simd>(self, _: AtomTag, tags: S::u32s, _: S::u32s) -> S::mask32s {
        tags.simd_lt(0)
    }
}

/// Selects no atoms. If `chain` is given, only its atoms are in the model.
#[derive(Clone, Copy)]
pub(super) struct NoneOfChain {
    pub(super) chain: Option<u32>,
}

impl Others for NoneOfChain {
    const ANY: bool = false;

    #[inline(always)]
    fn is_other<S: Simd>(self, tag: AtomTag, tags: S::u32s, sources: S::u32s) -> S::mask32s {
        NoOthers.is_other::<S>(tag, tags, sources)
    }

    #[inline(always)]
    fn present<S: Simd>(self, near: S::mask32s, tags: S::u32s, _: S::u32s) -> S::mask32s {
        match self.chain {
            Some(chain) => near & (tags >> AtomTag::CHAIN_SHIFT).simd_eq(chain),
            None => near,
        }
    }
}

/// Selects the atoms of other chains.
#[derive(Clone, Copy)]
pub(super) struct OtherChains;

impl Others for OtherChains {
    const ANY: bool = true;

    #[inline(always)]
    fn is_other<S: Simd>(self, tag: AtomTag, tags: S::u32s, _: S::u32s) -> S::mask32s {
        (tags ^ tag.bits()).simd_ge(AtomTag::FIRST_CHAIN_BIT)
    }
}

/// Selects the atoms of chain `other`, or none if that is `own_chain`. Only the atoms of these two
/// chains are in the model.
#[derive(Clone, Copy)]
pub(super) struct OneChain {
    pub(super) own_chain: u32,
    pub(super) other: u32,
}

impl Others for OneChain {
    const ANY: bool = true;

    #[inline(always)]
    fn is_other<S: Simd>(self, tag: AtomTag, tags: S::u32s, sources: S::u32s) -> S::mask32s {
        OtherChains.is_other::<S>(tag, tags, sources)
    }

    #[inline(always)]
    fn present<S: Simd>(self, near: S::mask32s, tags: S::u32s, _: S::u32s) -> S::mask32s {
        let chains = tags >> AtomTag::CHAIN_SHIFT;
        near & (chains.simd_eq(self.own_chain) | chains.simd_eq(self.other))
    }
}

/// Selects the atoms of glycans: those from index `first` up to `end`. Later atoms are not in the
/// model.
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

/// Selects all atoms except the `count` atoms from index `first` on.
#[derive(Clone, Copy)]
pub(super) struct AllExcept {
    first: u32,
    count: u32,
}

impl AllExcept {
    pub(super) fn new(atoms: Range<usize>) -> Self {
        AllExcept {
            first: atoms.start as u32,
            count: atoms.len() as u32,
        }
    }
}

impl Others for AllExcept {
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
