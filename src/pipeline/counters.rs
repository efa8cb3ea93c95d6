//! What the engine did, counted.

use crate::replay::Replay;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        #[derive(Debug, Default)]
        pub(crate) struct AtomicCounters { $(pub(crate) $name: AtomicU64,)* }

        /// Counts since the engine was built. Times are sums over batches, in
        /// nanoseconds; stages run beside each other, so they add up to more
        /// than the wall clock.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters { $($(#[$doc])* pub $name: u64,)* }

        impl AtomicCounters {
            /// Reads all of them.
            pub(crate) fn snapshot(&self) -> Counters {
                Counters { $($name: self.$name.load(Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Items with a result.
    items_done,
    /// Items without one: rejected by their extent, write or read, or of a batch
    /// that failed.
    items_rejected,
    /// Batches given to the device.
    batches,
    /// Batches that failed, each with all items that had no result before.
    batches_failed,
    /// Driver calls of those batches: launches or graph launches, copies, marks.
    driver_calls,
    /// Batches that found all ready.
    bucket_hits,
    /// Batches that buckets had to be made ready for, at the first use of one or
    /// after new buckets were fitted.
    bucket_misses,
    /// Buckets dropped from a slot, to make room for another or for new ones.
    bucket_evictions,
    /// Times that a supervised device was started again after it was lost, starts that
    /// failed because the new process ended included.
    restarts,
    /// Batches and parts of batches that were run again after a loss.
    reruns,
    /// Items that the device fails on, each told with its item.
    items_quarantined,
    /// Graphs that the device refused; they are tried again later.
    graphs_failed,
    /// Batches that ran in a larger bucket, as their own had no graph.
    batches_in_larger_bucket,
    /// Batches that ran as launches in place of a graph.
    batches_as_launches,
    /// Batches that ran twice and came out the same.
    verified_batches,
    /// Batches that were replayed each way first, as mode auto had to choose. What
    /// that took is in no other count.
    tried_batches,
    /// Bytes that copies moved.
    copied_bytes,
    /// Bytes among them that only fill up a bucket.
    padding_bytes,
    /// Time that closed batches waited for a free slot.
    stall_ns,
    /// Time that items were written into pinned memory.
    fill_ns,
    /// Time that batches were given to the device.
    submit_ns,
    /// Time that batches ran twice to be compared, and were waited for.
    verify_ns,
    /// Time that batches were replayed each way to choose one.
    trial_ns,
    /// Time from submission, or the trial before it, to the moment the batch was seen
    /// done.
    compute_ns,
    /// Time that results were read out.
    unpack_ns,
    /// Time that a run's results waited for whoever takes them.
    output_ns,
}

/// Adds the time since `start` to `counter`; returns now.
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

impl Counters {
    /// Time that batches were on the device for something else than their results
    /// alone. Stage one waits meanwhile.
    pub(crate) fn aside_ns(&self) -> u64 {
        self.verify_ns + self.trial_ns
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
        add(&self.tried_batches, replay.tried);
        self.trial_ns.fetch_add(replay.trial_ns, Relaxed);
        add(&self.copied_bytes, replay.copied_bytes);
        add(&self.padding_bytes, replay.padding_bytes);
    }
}

/// Adds `count` to `counter`.
pub(crate) fn add(counter: &AtomicU64, count: usize) {
    counter.fetch_add(count as u64, Relaxed);
}
