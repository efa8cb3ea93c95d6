//! What a replay has while it is open: its slots, its batches in flight, and their results.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use tapeloop::pipeline::{Filling, Ring, Slot};

/// An array on the device that a batch uses.
#[derive(Clone)]
pub(crate) struct Use {
    pub(crate) addresses: Range<u64>,
    pub(crate) is_written: bool,
}

impl Use {
    /// Whether both share memory that one of them writes.
    pub(crate) fn conflicts(&self, other: &Use) -> bool {
        let (own, others) = (&self.addresses, &other.addresses);
        own.start < others.end && others.start < own.end && (self.is_written || other.is_written)
    }
}

/// The bytes of each output, in the order of the buffers.
pub(crate) type Outcome = Result<Vec<Vec<u8>>, tapeloop::Error>;

/// A replay that is open.
pub(crate) struct State {
    pub(crate) ring: Ring<u64>,
    /// Slots that were taken for a batch which was then refused.
    pub(crate) spare: Vec<Slot<Filling>>,
    /// The results of batches that were not taken yet.
    pub(crate) done: HashMap<u64, Outcome>,
    /// The arrays on the device that batches in flight use.
    pub(crate) in_flight: HashMap<u64, Vec<Use>>,
    /// Slots that callers fill at the moment.
    pub(crate) filling: usize,
    /// Whether no more batches are taken, as it is being closed.
    pub(crate) is_closing: bool,
    /// Batches in flight whose `Job` was dropped.
    pub(crate) unwanted: HashSet<u64>,
    /// The number of the next batch.
    pub(crate) next: u64,
}

impl State {
    pub(crate) fn new(ring: Ring<u64>) -> Self {
        State {
            ring,
            spare: Vec::new(),
            done: HashMap::new(),
            in_flight: HashMap::new(),
            filling: 0,
            is_closing: false,
            unwanted: HashSet::new(),
            next: 0,
        }
    }
}
