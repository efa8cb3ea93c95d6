//! [`Benchmark`]: a workload with items and their expected outputs.

use super::record::Amounts;
use tapeloop_engine::error::Result;
use tapeloop_engine::workload::{Extent, Workload};

/// A workload with items and their expected outputs.
pub trait Benchmark: Send + Sync + 'static {
    /// The workload.
    type Workload: Workload<Item: Clone>;

    /// Makes the workload.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](tapeloop_engine::ErrorKind::Config) for settings that are not valid.
    fn workload(&self) -> Result<Self::Workload>;

    /// The capacities of `buckets` buckets, smallest first.
    fn ladder(&self, buckets: usize) -> Vec<Extent>;

    /// The items of one batch, at least one, that fills the share `fill` of the largest bucket, 0 to 1.
    /// Different seeds give items with different outputs.
    fn items(&self, seed: u64, fill: f64) -> Vec<<Self::Workload as Workload>::Item>;

    /// Compares an output with the expected one.
    ///
    /// # Errors
    /// [`ErrorKind::Mismatch`](tapeloop_engine::ErrorKind::Mismatch) if they differ.
    fn check(
        &self,
        item: &<Self::Workload as Workload>::Item,
        output: &<Self::Workload as Workload>::Output,
    ) -> Result<()>;

    /// The amounts of an item, without bytes.
    fn amounts(&self, item: &<Self::Workload as Workload>::Item) -> Amounts;

    /// A description of the input, such as the number of structures; empty for synthetic items.
    fn describe(&self) -> String {
        String::new()
    }

    /// The request for another program to do the same work, and the hash of the expected outputs of
    /// `slots` batches; `None` if other programs do not do this work.
    fn request(&self, slots: usize) -> Option<(String, u64)> {
        let _ = slots;
        None
    }
}

/// `buckets` sizes, smallest first: the largest, its half, its quarter and so on.
pub fn halves(largest: u32, buckets: usize) -> impl Iterator<Item = u32> {
    // A `u32` can be halved at most this many times.
    let sizes = (0..buckets.min(u32::BITS as usize))
        .rev()
        .map(move |power| (largest >> power).max(1));
    // Small sizes have fewer distinct halves.
    let mut last = 0;
    sizes.filter(move |size| std::mem::replace(&mut last, *size) != *size)
}
