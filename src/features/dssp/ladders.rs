//! Twin of `kernels/ladders.cu`.

use super::super::cpu::split::parts;
use super::super::kernels::{Twin, ladders};
use super::super::layout::{BRIDGES_MAX, Bridges, RESIDUES, StructureSpan};
use super::bonds::{Hydrogen, IN_BRIDGE, IN_STRAND, NO_BRIDGE, bridge_to, is_joined};
use rayon::prelude::*;
use std::ops::Range;

/// Within a ladder fewer consecutive residues than this have no bridge.
const GAP_MAX: usize = 6;
/// On one of its strands a bulge advances by fewer residues than this.
const BULGE_MAX: usize = 3;
/// The bit of a residue's marks that tells whether the ladder that begins with the residue's bridge
/// 0 was joined to an earlier ladder. The bits for its other bridges follow.
const JOINED_SHIFT: usize = 8;

/// Consecutive bridges of one kind, between the residues i to i_end and j to j_end.
#[derive(Clone, Copy, Debug)]
struct Ladder {
    is_antiparallel: bool,
    i: usize,
    i_end: usize,
    j: usize,
    j_end: usize,
}

/// Finds the ladders of one structure, whose residues are `residues`.
struct Ladders<'a> {
    hydrogens: &'a [Hydrogen],
    bridges: &'a [Bridges],
    /// Marks of the structure's residues.
    marks: &'a mut [u32],
    residues: Range<usize>,
}

impl Ladders<'_> {
    fn has_bridge(&self, residue: usize, partner: usize, is_antiparallel: bool) -> bool {
        self.residues.contains(&residue)
            && self.bridges[residue]
                .0
                .contains(&bridge_to(partner, is_antiparallel))
    }

    /// The ladder that begins with bridge `which` of residue i, if its partner is a later residue.
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

    fn are_joined(&self, mut residues: Range<usize>) -> bool {
        residues.all(|residue| is_joined(self.hydrogens, residue))
    }

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

    /// Joins the first ladder that only a bulge separates from `ladder`; returns whether there is
    /// one.
    fn join_next(&mut self, ladder: &mut Ladder) -> bool {
        let near = ladder.i_end + 1..self.residues.end.min(ladder.i_end + GAP_MAX);
        let bridges = near.flat_map(|i| (0..BRIDGES_MAX).map(move |which| (i, which)));
        let next = bridges.filter_map(|(i, which)| Some((which, self.ladder_from(i, which)?)));
        let found = { next }.find(|(_, next)| self.can_join(ladder, next));
        if let Some((which, next)) = found {
            self.marks[next.i - self.residues.start] |= 1 << (JOINED_SHIFT + which);
            ladder.i_end = next.i_end;
            if ladder.is_antiparallel {
                ladder.j = next.j;
            } else {
                ladder.j_end = next.j_end;
            }
        }
        found.is_some()
    }

    /// Joins ladders in the order of their first residues, each with all ladders that it can join.
    fn mark_all(&mut self) {
        for i in self.residues.clone() {
            if self.bridges[i].0[0] == NO_BRIDGE {
                continue;
            }
            for which in 0..BRIDGES_MAX {
                let Some(mut ladder) = self.ladder_from(i, which) else {
                    continue;
                };
                while self.join_next(&mut ladder) {}
                let bits = if ladder.i_end > ladder.i {
                    IN_STRAND
                } else {
                    IN_BRIDGE
                };
                let residues = (ladder.i..=ladder.i_end).chain(ladder.j..=ladder.j_end);
                residues.for_each(|residue| self.marks[residue - self.residues.start] |= bits);
            }
        }
    }
}

/// Marks the residues of ladders of one bridge, and of ladders of more bridges with their bulges.
impl Twin for ladders::Views<'_> {
    fn run(self) {
        let Self {
            header,
            structures,
            hydrogens,
            bridges,
            marks,
        } = self;
        let count = header[RESIDUES] as usize;
        let structures = StructureSpan::live(header, structures);
        let hydrogens: &[Hydrogen] = &hydrogens[..count];

        let ranges = structures.iter().map(|structure| structure.residues());
        let marks = parts(marks, ranges.clone());
        let structures = ranges.collect::<Vec<_>>().into_par_iter().zip(marks);
        structures.for_each(|(residues, marks)| {
            let mut ladders = Ladders {
                hydrogens,
                bridges,
                marks,
                residues,
            };
            ladders.mark_all();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::bonds::{DONOR, FIRST};
    use super::*;

    /// A number below `n`, by a linear congruential generator.
    fn below(state: &mut u64, n: usize) -> usize {
        let next = state.wrapping_mul(6_364_136_223_846_793_005);
        *state = next.wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) as usize % n
    }

    fn chain(count: usize, breaks: &[usize]) -> Vec<Hydrogen> {
        let is_first = |residue: usize| residue == 0 || breaks.contains(&residue);
        let kind = |residue| if is_first(residue) { FIRST } else { DONOR };
        (0..count)
            .map(|residue| [0.0, 0.0, 0.0, kind(residue)])
            .collect()
    }

    /// Bridges (i, j, whether antiparallel) in rows, as far as there is room.
    fn rows(count: usize, pairs: &[(usize, usize, bool)]) -> Vec<Bridges> {
        let mut rows = vec![Vec::new(); count];
        for &(i, j, is_antiparallel) in pairs {
            let taken = rows[i].iter().any(|bridge| bridge / 2 == j as u32);
            if rows[i].len() < BRIDGES_MAX && rows[j].len() < BRIDGES_MAX && !taken {
                rows[i].push(bridge_to(j, is_antiparallel));
                rows[j].push(bridge_to(i, is_antiparallel));
            }
        }
        let sorted = |mut row: Vec<u32>| {
            row.sort_unstable();
            row.resize(BRIDGES_MAX, NO_BRIDGE);
            Bridges(row.try_into().unwrap())
        };
        rows.into_iter().map(sorted).collect()
    }

    fn marks(hydrogens: &[Hydrogen], bridges: &[Bridges]) -> Vec<u32> {
        let mut marks = vec![0; hydrogens.len()];
        let mut ladders = Ladders {
            hydrogens,
            bridges,
            marks: &mut marks,
            residues: 0..hydrogens.len(),
        };
        ladders.mark_all();
        marks
            .into_iter()
            .map(|mark| mark & (IN_BRIDGE | IN_STRAND))
            .collect()
    }

    /// Compares all pairs of ladders in order, as Hekkelman's programs do. Returns also the number
    /// of joins.
    fn naive(hydrogens: &[Hydrogen], bridges: &[Bridges]) -> (Vec<u32>, usize) {
        let mut ladders: Vec<(bool, Vec<usize>, Vec<usize>)> = Vec::new();
        for (i, row) in bridges.iter().enumerate() {
            for &bridge in row.0.iter().filter(|&&bridge| bridge != NO_BRIDGE) {
                let (j, is_antiparallel) = ((bridge / 2) as usize, bridge % 2 == 1);
                if j < i {
                    continue;
                }
                let grown = ladders.iter_mut().find(|(kind, is, js)| {
                    let next = if is_antiparallel {
                        js[0] == j + 1
                    } else {
                        js[js.len() - 1] + 1 == j
                    };
                    *kind == is_antiparallel && is[is.len() - 1] + 1 == i && next
                });
                match grown {
                    Some((_, is, js)) => {
                        is.push(i);
                        js.insert(if is_antiparallel { 0 } else { js.len() }, j);
                    }
                    None => ladders.push((is_antiparallel, vec![i], vec![j])),
                }
            }
        }
        let linked =
            |from: usize, to: usize| (from + 1..=to).all(|residue| is_joined(hydrogens, residue));
        let (mut a, mut joined) = (0, 0);
        while a < ladders.len() {
            let mut b = a + 1;
            while b < ladders.len() {
                let ((kind, ia, ja), (other, ib, jb)) = (&ladders[a], &ladders[b]);
                let (first, last) = if *kind { (jb, ja) } else { (ja, jb) };
                let (i_end, j_end) = (ia[ia.len() - 1], first[first.len() - 1]);
                let is_bulge = kind == other
                    && ib[0] > i_end
                    && ib[0] - i_end < 6
                    && linked(ia[0], ib[ib.len() - 1])
                    && linked(ja[0].min(jb[0]), ja[ja.len() - 1].max(jb[jb.len() - 1]))
                    && last[0] >= j_end
                    && (last[0] - j_end < 3 || last[0] - j_end < 6 && ib[0] - i_end < 3);
                if is_bulge {
                    let (kind, is, js) = ladders.remove(b);
                    ladders[a].1.extend(is);
                    let place = if kind { 0 } else { ladders[a].2.len() };
                    ladders[a].2.splice(place..place, js);
                    joined += 1;
                } else {
                    b += 1;
                }
            }
            a += 1;
        }
        let mut marks = vec![0; hydrogens.len()];
        for (_, is, js) in ladders {
            let bits = if is.len() > 1 { IN_STRAND } else { IN_BRIDGE };
            for strand in [is, js] {
                marks[strand[0]..=strand[strand.len() - 1]]
                    .iter_mut()
                    .for_each(|mark| *mark |= bits);
            }
        }
        (marks, joined)
    }

    #[test]
    fn any_bridges_make_the_ladders_of_the_sequential_rules() {
        let (mut seed, mut joined) = (1, 0);
        for round in 0..3_000 {
            let count = 12 + below(&mut seed, 90);
            let breaks: Vec<_> = (0..below(&mut seed, 3))
                .map(|_| below(&mut seed, count))
                .collect();
            let hydrogens = chain(count, &breaks);
            let mut pairs = Vec::new();
            for _ in 0..1 + below(&mut seed, 25) {
                let (i, is_antiparallel) = (below(&mut seed, count - 4), below(&mut seed, 2) == 1);
                let j = i
                    + 3
                    + below(
                        &mut seed,
                        (count - i - 3).min(if round % 2 == 0 { 12 } else { 99 }),
                    );
                for step in 0..1 + below(&mut seed, 3) {
                    let j = if is_antiparallel {
                        j.saturating_sub(step)
                    } else {
                        j + step
                    };
                    // Both residues of a bridge are linked to their neighbours.
                    let inner = |residue: usize| {
                        is_joined(&hydrogens, residue) && is_joined(&hydrogens, residue + 1)
                    };
                    if j >= i + step + 3 && inner(i + step) && inner(j) {
                        pairs.push((i + step, j, is_antiparallel));
                    }
                }
            }
            let bridges = rows(count, &pairs);
            let (expected, times) = naive(&hydrogens, &bridges);
            assert_eq!(
                marks(&hydrogens, &bridges),
                expected,
                "round {round}: {pairs:?}"
            );
            joined += times;
        }
        assert!(joined > 3_000, "{joined} were joined");
    }

    #[test]
    fn a_bulge_joins_two_bridges_and_a_break_does_not() {
        let strand_residues = |marks: &[u32]| -> Vec<usize> {
            (0..marks.len())
                .filter(|&residue| marks[residue] == IN_STRAND)
                .collect()
        };
        for (pairs, strands) in [
            // One residue more on the first strand, four on the second.
            (
                [(5, 30, true), (7, 25, true)],
                vec![5, 6, 7, 25, 26, 27, 28, 29, 30],
            ),
            (
                [(5, 25, false), (7, 30, false)],
                vec![5, 6, 7, 25, 26, 27, 28, 29, 30],
            ),
            (
                [(5, 25, false), (10, 27, false)],
                vec![5, 6, 7, 8, 9, 10, 25, 26, 27],
            ),
            // Too far apart on both strands, on the first, on the second; and ladders of two kinds.
            ([(5, 30, true), (8, 27, true)], vec![]),
            ([(5, 30, true), (11, 29, true)], vec![]),
            ([(5, 25, false), (7, 31, false)], vec![]),
            ([(5, 25, false), (7, 26, true)], vec![]),
            // The second strand would have to turn back.
            ([(5, 25, false), (7, 24, false)], vec![]),
        ] {
            let bridges = rows(40, &pairs);
            assert_eq!(
                strand_residues(&marks(&chain(40, &[]), &bridges)),
                strands,
                "{pairs:?}"
            );
            for gap in [6, 27] {
                assert_eq!(
                    strand_residues(&marks(&chain(40, &[gap]), &bridges)),
                    [0; 0],
                    "{pairs:?}"
                );
            }
        }
    }
}
