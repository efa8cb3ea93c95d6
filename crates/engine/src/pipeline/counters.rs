//! Counters of what the engine did.

use crate::replay::Replay;
use crossbeam_utils::CachePadded;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        #[derive(Debug, Default)]
        pub(crate) struct AtomicCounters { $(pub(crate) $name: AtomicU64,)* }

        /// Counts since the engine was built. Times are sums over batches, in nanoseconds. Stages
        /// overlap, so their sum exceeds the wall time.
        ///
        /// ```
        /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/double.rs"));
        /// # use tapeloop_engine::*;
        /// # fn main() -> Result<()> {
        /// let engine = Engine::auto(Double::new()?, &EngineConfig::new([1 << 20]))?;
        /// engine.submit_many([vec![1.0], vec![2.0, 3.0]])?.wait()?;
        /// assert_eq!(engine.counters().items_done, 2);
        /// # Ok(())
        /// # }
        /// ```
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counters { $($(#[$doc])* pub $name: u64,)* }

        impl EngineCounters {
            /// Reads all of them.
            pub(crate) fn snapshot(&self) -> Counters {
                let (submitted, finished) = (&self.submitted, &self.finished);
                Counters { $($name: submitted.$name.load(Relaxed) + finished.$name.load(Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Items with a result.
    items_done,
    /// Items without a result: rejected by `extent`, `write` or `read`, or in a batch that failed.
    items_rejected,
    /// Items that were cancelled before their batch had a slot. They are in no other count.
    items_cancelled,
    /// Items among `items_rejected` that expired before their batch had a slot.
    items_expired,
    /// Batches given to the device.
    batches,
    /// Batches that a change of uniforms closed before they were full.
    batches_closed_by_uniforms,
    /// Batches that failed. All their items without a result failed with them.
    batches_failed,
    /// Driver calls for those batches: launches or graph launches, copies, fences.
    driver_calls,
    /// Batches whose bucket was ready.
    bucket_hits,
    /// Batches that had to make their bucket ready, at its first use or after it was dropped.
    bucket_misses,
    /// Buckets that a slot dropped to make room for others.
    bucket_evictions,
    /// Restarts of supervised devices after a loss. Starts that failed because the new process
    /// ended count too.
    restarts,
    /// Batches and parts of batches that were run again after a loss.
    reruns,
    /// Items that the device fails on. Each has an error of its own.
    items_quarantined,
    /// Items whose results took more room than their extent, and that ran again by themselves.
    items_outgrown,
    /// Results that [`ReadViews::lease`](crate::workload::ReadViews::lease) lent from a slot's memory.
    results_leased,
    /// Results that [`ReadViews::lease`](crate::workload::ReadViews::lease) copied, as too many slots
    /// were lent, or as the batch's slot cannot be lent.
    results_copied,
    /// Graphs that the device refused. They are tried again later.
    graphs_failed,
    /// Batches that ran in a larger bucket because their own had no graph.
    batches_in_larger_bucket,
    /// Batches that ran as stream launches instead of a graph.
    batches_as_launches,
    /// Batches that ran twice with equal results.
    verified_batches,
    /// Bytes copied between host and device.
    copied_bytes,
    /// Bytes among them that only pad a bucket.
    padding_bytes,
    /// Time that submissions waited for room, summed over their threads.
    room_ns,
    /// Time that closed batches waited for a free slot.
    stall_ns,
    /// Time that items were written into pinned memory.
    fill_ns,
    /// Time that batches were given to the device.
    submit_ns,
    /// Time that batches ran a second time for comparison, waits included.
    verify_ns,
    /// Time from submission until the batch was found done.
    compute_ns,
    /// Time that results were read out.
    unpack_ns,
    /// Time that [`Engine::run_mapped`](super::Engine::run_mapped) mapped results.
    map_ns,
    /// Time that the results of a run waited for its sink.
    output_ns,
}

/// Adds the time since `start` to `counter`, and returns the current time.
pub(crate) fn add_since(counter: &AtomicU64, start: Instant) -> Instant {
    let now = Instant::now();
    add_between(counter, start, now);
    now
}

/// Adds the time from `start` to `end` to `counter`.
pub(crate) fn add_between(counter: &AtomicU64, start: Instant, end: Instant) {
    let time = end.saturating_duration_since(start);
    counter.fetch_add(time.as_nanos() as u64, Relaxed);
}

/// The counters of an engine: their sums count. The threads that submit batches and those that
/// finish them have counters of their own, so that they do not write to the same cache lines.
#[derive(Default)]
pub(crate) struct EngineCounters {
    pub(crate) submitted: CachePadded<AtomicCounters>,
    pub(crate) finished: CachePadded<AtomicCounters>,
}

impl EngineCounters {
    /// Counts items that expired and were answered before their batch had a slot.
    pub(crate) fn add_expired(&self, count: usize) {
        add(&self.submitted.items_expired, count);
        add(&self.finished.items_rejected, count);
    }
}

impl AtomicCounters {
    /// Counts a batch that was given to the device.
    pub(crate) fn add_replay(&self, replay: &Replay) {
        add(&self.batches, 1);
        add(&self.driver_calls, replay.calls);
        add(&self.bucket_hits, usize::from(replay.made == 0));
        add(&self.bucket_misses, usize::from(replay.made > 0));
        add(&self.bucket_evictions, replay.dropped);
        add(&self.graphs_failed, replay.graphs_failed);
        add(&self.batches_in_larger_bucket, replay.larger_bucket);
        add(&self.batches_as_launches, replay.as_launches);
        add(&self.verified_batches, replay.verified);
        add(&self.copied_bytes, replay.copied_bytes);
        add(&self.padding_bytes, replay.padding_bytes);
    }
}

/// Adds `count` to `counter`.
pub(crate) fn add(counter: &AtomicU64, count: usize) {
    // Most counts of a batch are 0, and an atomic addition takes longer than a comparison.
    if count > 0 {
        counter.fetch_add(count as u64, Relaxed);
    }
}
