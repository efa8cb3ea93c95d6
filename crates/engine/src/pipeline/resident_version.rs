//! The contents of resident buffers that a batch computes with, where a program replaces them.

use crate::backend::AllocationView;
use crate::record::BufferId;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::convert::Infallible;

/// The memory of the replaceable buffers for some batches. It lives for as long as one of them.
pub(crate) struct ResidentVersion {
    /// Counts replacements: 0 is the memory that buckets were bound to at first, as in `ResidentMemory::version`.
    /// A slot compares it to see whether its graphs have these addresses.
    pub(super) number: u64,
    /// By device.
    memory: Vec<Vec<(BufferId, AllocationView)>>,
    /// Nothing is sent: the receiver learns that this was dropped.
    _lives: Sender<Infallible>,
}

impl ResidentVersion {
    /// A version, and what ends when it is dropped. `memory` is by device.
    pub(super) fn new(
        number: u64,
        memory: Vec<Vec<(BufferId, AllocationView)>>,
    ) -> (Self, Receiver<Infallible>) {
        let (lives, ended) = bounded(0);
        let version = ResidentVersion {
            number,
            memory,
            _lives: lives,
        };
        (version, ended)
    }

    /// The memory of the buffers on a device.
    pub(super) fn memory(&self, device: usize) -> &[(BufferId, AllocationView)] {
        &self.memory[device]
    }
}
