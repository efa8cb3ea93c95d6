//! What slots are given.

use super::FunctionId;
#[cfg(doc)]
use super::TIMESTAMPS;

/// The stage that an operation belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
pub enum Queue {
    /// Copies to the device.
    Upload,
    /// Kernels, memsets and graphs.
    Compute,
    /// Copies to the host, and the marks of batches.
    Download,
}

/// One operation with everything resolved. Addresses are the slot's own, or
/// those of blocks that it adopted, and mean nothing elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
pub enum Op {
    /// Copies host to device.
    Upload {
        /// Host address.
        host: u64,
        /// Device address.
        device: u64,
        /// Size.
        bytes: usize,
    },
    /// Copies device to host.
    Download {
        /// Device address.
        device: u64,
        /// Host address.
        host: u64,
        /// Size.
        bytes: usize,
    },
    /// Sets every byte.
    Memset {
        /// Device address.
        device: u64,
        /// Value.
        byte: u8,
        /// Size.
        bytes: usize,
    },
    /// Runs a kernel.
    Launch {
        /// The kernel.
        function: FunctionId,
        /// Blocks.
        grid: [u32; 3],
        /// Threads a block.
        block: [u32; 3],
        /// Dynamic shared memory a block, in bytes.
        shared_bytes: u32,
        /// Each parameter in little-endian words of its own, as few as it takes: an
        /// address, a value, or a struct with addresses in it. Kernels take host
        /// addresses of pinned memory too.
        args: Box<[u64]>,
    },
    /// Notes the time when the device comes to it.
    Timestamp {
        /// Which of the slot's, below [`TIMESTAMPS`].
        timestamp: u32,
    },
}

/// A node of a graph that is built by hand.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    /// What it does.
    pub op: &'a Op,
    /// The nodes that it runs after, by their place; all of them come earlier.
    pub after: &'a [usize],
}
