//! The search for ladders, as in `kernels/ladders.cuh`.

use super::super::constants;
use super::super::layout::{BRIDGES_MAX, Bridges};
use super::bonds::{Hydrogen, NO_BRIDGE, bridge_to, is_joined};
use std::ops::Range;

/// In a ladder the next bridge is fewer residues than this after the last one, on either strand:
/// DSSP's bulges have up to four residues without a bridge.
pub(super) const GAP_MAX: usize = constants::GAP_MAX as usize;
/// On one of its strands a bulge advances by fewer residues than this: up to one has no bridge.
const BULGE_MAX: usize = constants::BULGE_MAX as usize;
/// The bit of a residue's marks that tells whether the ladder that begins with the residue's bridge
/// 0 was joined to an earlier ladder. The bits for its other bridges follow, and lower ones are
/// `IN_BRIDGE` and `IN_STRAND` of `bonds`.
const JOINED_SHIFT: usize = 8;

/// Consecutive bridges of one kind, between the residues i to i_end and j to j_end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ladder {
    pub(super) is_antiparallel: bool,
    pub(super) i: usize,
    pub(super) i_end: usize,
    pub(super) j: usize,
    pub(super) j_end: usize,
}

/// Finds the ladders of one structure, whose residues are `residues`.
pub(super) struct Ladders<'a> {
    pub(super) hydrogens: &'a [Hydrogen],
    pub(super) bridges: &'a [Bridges],
    /// Marks of the structure's residues.
    pub(super) marks: &'a mut [u32],
    pub(super) residues: Range<usize>,
}

impl Ladders<'_> {
    fn has_bridge(&self, residue: usize, partner: usize, is_antiparallel: bool) -> bool {
        self.residues.contains(&residue)
            && self.bridges[residue]
                .0
                .contains(&bridge_to(partner, is_antiparallel))
    }

    /// The run of bridges that begins with bridge `which` of residue i. `None` if there is no such
    /// bridge, its partner is an earlier residue (whose ladder it is), it was joined to an earlier
    /// ladder, or the run begins before it.
    fn ladder_from(&self, i: usize, which: usize) -> Option<Ladder> {
        let bridge = self.bridges[i].0[which];
        let (j, is_antiparallel) = ((bridge / 2) as usize, bridge % 2 == 1);
        if bridge == NO_BRIDGE
            || j < i
            || self.marks[i - self.residues.start] >> (JOINED_SHIFT + which) & 1 == 1
        {
            return None;
        }
        let before = if is_antiparallel { j + 1 } else { j - 1 };
        let begins = i == 0 || !self.has_bridge(i - 1, before, is_antiparallel);
        let (mut i_end, mut first, mut last) = (i, j, j);
        let next = |first: usize, last: usize| if is_antiparallel { first - 1 } else { last + 1 };
        while begins && self.has_bridge(i_end + 1, next(first, last), is_antiparallel) {
            i_end += 1;
            if is_antiparallel {
                first -= 1;
            } else {
                last += 1;
            }
        }
        begins.then_some(Ladder {
            is_antiparallel,
            i,
            i_end,
            j: first,
            j_end: last,
        })
    }

    /// Whether each of these residues is bonded to the one before it.
    fn are_joined(&self, mut residues: Range<usize>) -> bool {
        residues.all(|residue| is_joined(self.hydrogens, residue))
    }

    /// Whether `next` continues a ladder: both strands go on within the length of a bulge, and
    /// neither has a break in between.
    fn can_join(&self, ladder: &Ladder, next: &Ladder) -> bool {
        let (end, begin) = if ladder.is_antiparallel {
            (next.j_end, ladder.j)
        } else {
            (ladder.j_end, next.j)
        };
        let i_gap = next.i - ladder.i_end;
        let is_bulge = |j_gap| j_gap < BULGE_MAX || (j_gap < GAP_MAX && i_gap < BULGE_MAX);
        ladder.is_antiparallel == next.is_antiparallel
            && begin.checked_sub(end).is_some_and(is_bulge)
            && self.are_joined(ladder.i_end + 1..next.i + 1)
            && self.are_joined(end + 1..begin + 1)
    }

    /// Joins the first ladder that only a bulge separates from `ladder`, and marks it, so that it
    /// does not begin a ladder of its own; returns that ladder, if there is one.
    fn join_next(&mut self, ladder: &mut Ladder) -> Option<Ladder> {
        let near = ladder.i_end + 1..self.residues.end.min(ladder.i_end + GAP_MAX);
        let bridges = near.flat_map(|i| (0..BRIDGES_MAX).map(move |which| (i, which)));
        let next = bridges.filter_map(|(i, which)| Some((which, self.ladder_from(i, which)?)));
        let (which, next) = { next }.find(|(_, next)| self.can_join(ladder, next))?;
        self.marks[next.i - self.residues.start] |= 1 << (JOINED_SHIFT + which);
        ladder.i_end = next.i_end;
        if ladder.is_antiparallel {
            ladder.j = next.j;
        } else {
            ladder.j_end = next.j_end;
        }
        Some(next)
    }

    /// Joins ladders in the order of their first residues, each with all ladders that it can join.
    /// Calls `take_run` with each ladder before it is joined, and with the residue and index of the
    /// bridge that the joined ladder begins with; then `take` with the joined ladder.
    pub(super) fn join_all(
        &mut self,
        mut take_run: impl FnMut((usize, usize), &Ladder),
        mut take: impl FnMut(&mut Self, (usize, usize), &Ladder),
    ) {
        for i in self.residues.clone() {
            if self.bridges[i].0[0] == NO_BRIDGE {
                continue;
            }
            for which in 0..BRIDGES_MAX {
                let Some(mut ladder) = self.ladder_from(i, which) else {
                    continue;
                };
                take_run((i, which), &ladder);
                while let Some(run) = self.join_next(&mut ladder) {
                    take_run((i, which), &run);
                }
                take(self, (i, which), &ladder);
            }
        }
    }
}
