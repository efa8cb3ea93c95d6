//! The sizes of recent batches, and buckets that fit them.

use crate::workload::Extent;
use parking_lot::Mutex;
use std::collections::VecDeque;

/// Number of recent batches whose sizes are kept.
const SIZES_MAX: usize = 1024;

/// The largest number of buckets that are fitted.
const BUCKETS_MAX: usize = 64;

/// The sizes of the latest batches.
#[derive(Default)]
pub(super) struct RecentSizes(Mutex<VecDeque<Extent>>);

impl RecentSizes {
    /// Allocates for [`SIZES_MAX`] sizes, so that [`RecentSizes::add`] never does.
    pub(super) fn new() -> Self {
        RecentSizes(Mutex::new(VecDeque::with_capacity(SIZES_MAX)))
    }

    pub(super) fn add(&self, total: Extent) {
        let mut sizes = self.0.lock();
        if sizes.len() == SIZES_MAX {
            sizes.pop_front();
        }
        sizes.push_back(total);
    }

    /// The sizes, oldest first.
    pub(super) fn to_vec(&self) -> Vec<Extent> {
        self.0.lock().iter().copied().collect()
    }
}

/// Chooses at most `count` bucket capacities, and at most 64, in which batches of the sizes `seen`
/// waste least. The last capacity is `largest`.
///
/// The waste of a batch is its bucket's capacity minus its size along each axis, times that axis'
/// weight, which is usually the bytes copied per unit. Sizes beyond `largest` are ignored.
///
/// The result is optimal for one axis. With several axes, sizes are sorted by the largest share of
/// `largest` that they take along any axis, and dynamic programming finds the best way to cut that
/// order.
pub fn fit_buckets(
    seen: &[Extent],
    largest: Extent,
    weights: &[usize],
    count: usize,
) -> Vec<Extent> {
    let mut sizes: Vec<Extent> = seen
        .iter()
        .copied()
        .filter(|size| size.fits(largest))
        .collect();
    let share = |size: &Extent| {
        let axes = size.as_slice().iter().zip(largest.as_slice());
        axes.map(|(&length, &max)| f64::from(length) / f64::from(max.max(1)))
            .fold(0.0, f64::max)
    };
    sizes.sort_by(|a, b| {
        let by_share = share(a).total_cmp(&share(b));
        by_share.then_with(|| a.as_slice().cmp(b.as_slice()))
    });
    // A bucket that ends at a size holds that size and all before it.
    let mut held = Extent::default();
    let ends: Vec<Extent> = sizes
        .iter()
        .map(|size| {
            held = held.max(*size).at_least_one(largest);
            held
        })
        .collect();
    let count = count.clamp(1, BUCKETS_MAX);
    let cuts = best_cuts(&sizes, &ends, largest, weights, count);
    let mut capacities: Vec<Extent> = cuts.into_iter().map(|cut| ends[cut]).collect();
    capacities.push(largest);
    capacities.dedup();
    capacities
}

/// The indices after which to cut, at most `count - 1`, for the least waste. Sizes after the last
/// cut go to `largest`.
fn best_cuts(
    sizes: &[Extent],
    ends: &[Extent],
    largest: Extent,
    weights: &[usize],
    count: usize,
) -> Vec<usize> {
    let weigh = |extent: Extent| -> f64 {
        let axes = extent.as_slice().iter().zip(weights);
        axes.map(|(&length, &weight)| f64::from(length) * weight as f64)
            .sum()
    };
    let mut used = vec![0.0];
    for size in sizes {
        used.push(used[used.len() - 1] + weigh(*size));
    }
    let waste = |from: usize, to: usize, capacity: Extent| {
        (to - from) as f64 * weigh(capacity) - (used[to] - used[from])
    };
    // best[to]: the least waste of the first `to` sizes, and its cuts.
    let mut best: Vec<(f64, Vec<usize>)> = vec![(f64::INFINITY, Vec::new()); sizes.len() + 1];
    best[0] = (0.0, Vec::new());
    for _ in 1..count {
        let mut next = best.clone();
        for to in 1..=sizes.len() {
            for (from, (cost, cuts)) in best[..to].iter().enumerate() {
                let cost = cost + waste(from, to, ends[to - 1]);
                if cost < next[to].0 {
                    let cuts = cuts.iter().copied().chain([to - 1]);
                    next[to] = (cost, cuts.collect());
                }
            }
        }
        best = next;
    }
    let total =
        |(from, (cost, _)): &(usize, &(f64, Vec<usize>))| cost + waste(*from, sizes.len(), largest);
    let least = best
        .iter()
        .enumerate()
        .min_by(|a, b| total(a).total_cmp(&total(b)));
    least.map(|(_, (_, cuts))| cuts.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(lengths: &[u32]) -> Vec<Extent> {
        lengths
            .iter()
            .map(|&length| Extent::from([length]))
            .collect()
    }

    #[test]
    fn buckets_end_where_sizes_gather() {
        let seen = sizes(&[10, 11, 12, 50, 51, 52, 52, 90]);
        let largest = Extent::from([100]);
        let fit = |count| fit_buckets(&seen, largest, &[4], count);
        assert_eq!(fit(1), sizes(&[100]));
        assert_eq!(fit(2), sizes(&[52, 100]));
        assert_eq!(fit(3), sizes(&[12, 52, 100]));
        assert_eq!(fit(4), sizes(&[12, 52, 90, 100]));
        assert_eq!(
            fit(50).len(),
            8,
            "no more than there are sizes, and the largest"
        );
    }

    #[test]
    fn nothing_seen_leaves_the_largest() {
        assert_eq!(fit_buckets(&[], Extent::from([7, 3]), &[1, 1], 4).len(), 1);
    }

    #[test]
    fn several_axes_nest() {
        let seen: Vec<Extent> = (1..200_u32)
            .map(|n| Extent::from([n * 37 % 100, n * 53 % 64, 0]))
            .collect();
        let largest = Extent::from([100, 64, 8]);
        let fitted = fit_buckets(&seen, largest, &[12, 4, 1], 5);
        assert!(fitted.len() > 2);
        assert!(fitted.is_sorted_by(|a, b| a.fits(*b)));
        assert!(
            fitted.iter().all(|bucket| bucket[2] > 0),
            "no axis is empty"
        );
        assert_eq!(fitted.last(), Some(&largest));
        assert!(
            seen.iter()
                .all(|size| fitted.iter().any(|bucket| size.fits(*bucket)))
        );
    }
}
