//! Counts driver calls.

use super::DriverCalls;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The counter that a call adds to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// [`DriverCalls::allocations`].
    Allocation,
    /// [`DriverCalls::submissions`].
    Submission,
    /// [`DriverCalls::graph_edits`].
    GraphEdit,
    /// [`DriverCalls::polls`].
    Poll,
    /// [`DriverCalls::timings`].
    Timing,
}

/// The counters of one device, shared by its slots. One for each [`Call`].
#[derive(Debug, Default)]
pub struct CallCounters([AtomicU64; 5]);

impl CallCounters {
    /// Counts one call.
    pub fn add(&self, call: Call) {
        self.0[call as usize].fetch_add(1, Relaxed);
    }

    /// The counts so far.
    pub fn snapshot(&self) -> DriverCalls {
        let count = |call: Call| self.0[call as usize].load(Relaxed);
        DriverCalls {
            allocations: count(Call::Allocation),
            submissions: count(Call::Submission),
            graph_edits: count(Call::GraphEdit),
            polls: count(Call::Poll),
            timings: count(Call::Timing),
        }
    }
}
