//! What a benchmark runs, and what has to come out of it.

use super::record::Amounts;
use crate::error::Result;
use crate::workload::{Extent, Workload};

/// A workload that knows its items and their right outputs.
pub trait Benchmark: Send + Sync + 'static {
    /// The workload.
    type Workload: Workload<Item: Clone>;

    /// Makes it.
    ///
    /// # Errors
    /// What is wrong with its settings.
    fn workload(&self) -> Result<Self::Workload>;

    /// The capacities of a ladder of so many buckets, smallest first.
    fn ladder(&self, buckets: usize) -> Vec<Extent>;

    /// The items of one batch that fills the largest bucket to `fill`, 0 to 1. Every
    /// seed gives other items, whose outputs differ.
    fn items(&self, seed: u64, fill: f64) -> Vec<<Self::Workload as Workload>::Item>;

    /// Whether an output is what has to come of its item.
    ///
    /// # Errors
    /// [`ErrorKind::Mismatch`](crate::ErrorKind::Mismatch), with what differs.
    fn check(
        &self,
        item: &<Self::Workload as Workload>::Item,
        output: &<Self::Workload as Workload>::Output,
    ) -> Result<()>;

    /// What there is of an item; without bytes, which are those of copies.
    fn amounts(&self, item: &<Self::Workload as Workload>::Item) -> Amounts;

    /// What its items are of, where they are not made: how many there are in all.
    fn of(&self) -> String {
        String::new()
    }

    /// The request that asks another program for the same work, and the hash of what
    /// must come out of `slots` batches there; `None` where none does it.
    fn request(&self, slots: usize) -> Option<(String, u64)> {
        let _ = slots;
        None
    }
}

/// Half, a quarter and so on of a capacity, and itself: `buckets` of them.
pub(super) fn halves(largest: u32, buckets: usize) -> impl Iterator<Item = u32> {
    let sizes = (0..buckets)
        .rev()
        .map(move |power| (largest >> power).max(1));
    // Small capacities have fewer halves.
    let mut last = 0;
    sizes.filter(move |size| std::mem::replace(&mut last, *size) != *size)
}
