//! Finds the UniProt residue of a residue by the references of its file.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::atom_table::{AtomRun, NO_NAME, NameId, RawChain, SequenceReference};

/// The references of a file by chain and number. If several cover a residue, the first in the file
/// counts.
#[derive(Default)]
pub(super) struct UniprotReferences {
    all: Vec<SequenceReference>,
    /// Keys are the author's chain id and the entity, each [`NO_NAME`] for any.
    stretches: HashMap<[NameId; 2], Vec<Stretch>>,
}

/// Residue numbers that belong to a reference. The stretches of a key are disjoint and ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    first: i32,
    last: i32,
    /// Index of the reference.
    reference: u32,
}

/// The stretches of the keys that match a chain.
#[derive(Clone, Copy, Default)]
pub(super) struct ChainReferences<'a>([&'a [Stretch]; 4]);

impl UniprotReferences {
    /// The references by the chain and entity that they name. One whose last residue comes before
    /// its first refers to nothing, and is left out.
    pub(super) fn new(all: &[SequenceReference]) -> Self {
        let mut stretches: HashMap<_, Vec<Stretch>> = HashMap::new();
        for (index, reference) in (0..).zip(all) {
            if reference.first <= reference.last {
                let key = [reference.chain, reference.entity];
                stretches.entry(key).or_default().push(Stretch {
                    first: reference.first,
                    last: reference.last,
                    reference: index,
                });
            }
        }
        for stretches in stretches.values_mut() {
            *stretches = disjoint(std::mem::take(stretches));
        }
        UniprotReferences {
            all: all.to_vec(),
            stretches,
        }
    }

    /// The references that apply to a chain: those of all chains, of its entity, of its author
    /// name, and of both.
    pub(super) fn of_chain(&self, chain: &RawChain) -> ChainReferences<'_> {
        if self.all.is_empty() {
            return ChainReferences::default();
        }
        let keys = [
            [NO_NAME, NO_NAME],
            [NO_NAME, chain.entity],
            [chain.auth, NO_NAME],
            [chain.auth, chain.entity],
        ];
        ChainReferences(keys.map(|key| self.stretches.get(&key).map_or(&[][..], Vec::as_slice)))
    }

    /// The accession and the position of a residue by the first reference that covers it.
    #[inline]
    pub(super) fn find(&self, chain: ChainReferences, run: &AtomRun) -> Option<(u32, i32)> {
        // The references of a file all use the same kind of number.
        let number = if self.all.first()?.label_numbers {
            run.label_seq?
        } else if run.ins_code == 0 {
            run.seq?
        } else {
            return None;
        };
        let covering = chain.0.into_iter().filter_map(|stretches| {
            let index = stretches.partition_point(|stretch| stretch.last < number);
            let stretch = stretches.get(index)?;
            (stretch.first <= number).then_some(stretch.reference)
        });
        // Saturating, as the file may state any numbers.
        let reference = &self.all[covering.min()? as usize];
        let offset = number.saturating_sub(reference.first);
        let position = reference.position.saturating_add(offset);
        Some((reference.accession, position))
    }
}

/// Cuts overlapping stretches, so that each number belongs to the first reference that covers it.
/// Between two bounds in succession one reference counts: the lowest in the heap of those that are
/// open there. So many that overlap take little more than linear time.
fn disjoint(mut stretches: Vec<Stretch>) -> Vec<Stretch> {
    if let [_] = stretches[..] {
        return stretches;
    }
    let bounds = |stretch: &Stretch| [i64::from(stretch.first), i64::from(stretch.last) + 1];
    let mut cuts: Vec<i64> = stretches.iter().flat_map(bounds).collect();
    cuts.sort_unstable();
    cuts.dedup();
    stretches.sort_by_key(|stretch| stretch.first);
    let mut coming = stretches.into_iter().peekable();
    let mut open = BinaryHeap::new();
    let mut out = Vec::new();
    for cut in cuts.windows(2) {
        let (start, end) = (cut[0], cut[1]);
        while let Some(next) = coming.next_if(|next| i64::from(next.first) <= start) {
            open.push(Reverse((next.reference, next.last)));
        }
        let is_past = |&Reverse((_, last)): &Reverse<(u32, i32)>| i64::from(last) < start;
        while open.peek().is_some_and(is_past) {
            open.pop();
        }
        if let Some(&Reverse((reference, _))) = open.peek() {
            out.push(Stretch {
                first: start as i32,
                last: (end - 1) as i32,
                reference,
            });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_several_stretches_that_cover_a_number_keeps_it() {
        let spans = [(5, 9), (1, 20), (8, 30), (25, 25), (i32::MAX, i32::MAX)];
        let stretch = |(reference, (first, last))| Stretch {
            first,
            last,
            reference,
        };
        let stretches: Vec<Stretch> = (0..).zip(spans).map(stretch).collect();
        let cut = disjoint(stretches.clone());
        assert!(cut.is_sorted_by(|a, b| a.last < b.first));
        for number in (-2..40).chain([i32::MAX]) {
            let covers = |stretch: &&Stretch| (stretch.first..=stretch.last).contains(&number);
            let reference_of =
                |stretches: &[Stretch]| stretches.iter().find(covers).map(|s| s.reference);
            assert_eq!(reference_of(&cut), reference_of(&stretches), "{number}");
        }
    }
}
