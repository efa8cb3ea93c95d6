//! What the engine did, counted.

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
    /// Items rejected by their extent, write or read.
    items_rejected,
    /// Batches that crossed the device.
    batches,
    /// Driver calls of those batches: launches or graph launches, copies, marks.
    driver_calls,
    /// Time that the upload stage waited for a free slot.
    stall_ns,
    /// Time that items were written into pinned memory.
    fill_ns,
    /// Time that batches were given to the device.
    submit_ns,
    /// Time from submission to the moment the batch was seen done.
    compute_ns,
    /// Time that results were read out.
    unpack_ns,
}

/// Adds the time since `start` to `counter`; returns now.
pub(crate) fn add_since(counter: &AtomicU64, start: Instant) -> Instant {
    let now = Instant::now();
    counter.fetch_add((now - start).as_nanos() as u64, Relaxed);
    now
}

/// Adds `count` to `counter`.
pub(crate) fn add(counter: &AtomicU64, count: usize) {
    counter.fetch_add(count as u64, Relaxed);
}
