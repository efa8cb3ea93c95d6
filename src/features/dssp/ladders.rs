//! Twin of `kernels/ladders.cu`.

use super::super::cpu::split::parts;
use super::super::kernels::{Twin, ladders};
use super::super::layout::{RESIDUES, StructureSpan};
use super::bonds::{Hydrogen, IN_BRIDGE, IN_STRAND};
use super::ladder_search::Ladders;
use rayon::prelude::*;

impl Ladders<'_> {
    /// Marks the residues of all ladders, those in bulges too, as strand, or as bridge if the ladder is a
    /// single bridge.
    fn mark_all(&mut self) {
        self.join_all(
            |_, _| {},
            |ladders, _, ladder| {
                let bits = if ladder.i_end > ladder.i {
                    IN_STRAND
                } else {
                    IN_BRIDGE
                };
                let residues = (ladder.i..=ladder.i_end).chain(ladder.j..=ladder.j_end);
                residues
                    .for_each(|residue| ladders.marks[residue - ladders.residues.start] |= bits);
            },
        );
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
    use super::super::super::layout::{BRIDGES_MAX, Bridges};
    use super::super::bonds::{DONOR, FIRST, NO_BRIDGE, bridge_to, is_joined};
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
