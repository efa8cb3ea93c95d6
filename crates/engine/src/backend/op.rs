//! Operations, and the graphs of them.

use super::FunctionId;
#[cfg(doc)]
use super::TIMESTAMPS;
use crate::error::{Error, Result};

/// One operation with everything resolved. Addresses are those of the slot's buffers or of
/// allocations that it adopted, and mean nothing to another slot.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
pub enum Op {
    /// Copies host to device.
    Upload {
        /// Host address.
        host: u64,
        /// Device address.
        device: u64,
        /// Size in bytes.
        bytes: usize,
    },
    /// Copies device to host.
    Download {
        /// Device address.
        device: u64,
        /// Host address.
        host: u64,
        /// Size in bytes.
        bytes: usize,
    },
    /// Copies within the device, in device memory that does not overlap. It is given to a slot by itself: a
    /// graph refuses it.
    Copy {
        /// Device address.
        from: u64,
        /// Device address.
        to: u64,
        /// Size in bytes.
        bytes: usize,
    },
    /// Sets every byte.
    Memset {
        /// Device address.
        device: u64,
        /// The value of each byte.
        byte: u8,
        /// Size in bytes.
        bytes: usize,
    },
    /// Runs a kernel.
    Launch {
        /// The kernel.
        function: FunctionId,
        /// Thread blocks along x, y and z.
        grid: [u32; 3],
        /// Threads of a block along x, y and z.
        block: [u32; 3],
        /// Dynamic shared memory of a block in bytes.
        shared_bytes: u32,
        /// Each parameter in little-endian words of its own, as few as it takes: an address, a
        /// value, or a struct with addresses in it. Addresses may be those of pinned host
        /// memory.
        args: Box<[u64]>,
    },
    /// Notes the time at which the device reaches it.
    Timestamp {
        /// The index of the slot's timestamp, below [`TIMESTAMPS`].
        timestamp: u32,
    },
}

/// A node of an explicit graph.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    /// What it does.
    pub op: &'a Op,
    /// The indices of the nodes that it runs after; all of them come earlier.
    pub after: &'a [usize],
}

/// The operations of a graph, and how the device is to take them.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum GraphSource<'a> {
    /// Operations that run one after the other, captured on a stream.
    Captured(&'a [&'a Op]),
    /// Nodes with the edges between them: independent nodes may run at the same time.
    Explicit(&'a [Node<'a>]),
}

impl<'a> GraphSource<'a> {
    /// The operations in their order.
    pub fn ops(self) -> impl ExactSizeIterator<Item = &'a Op> {
        let (ops, nodes): (&[&Op], &[Node<'_>]) = match self {
            GraphSource::Captured(ops) => (ops, &[]),
            GraphSource::Explicit(nodes) => (&[], nodes),
        };
        (0..ops.len() + nodes.len()).map(move |place| match ops.get(place) {
            Some(op) => *op,
            None => nodes[place].op,
        })
    }

    /// Whether the operations are to be captured.
    pub fn is_captured(self) -> bool {
        matches!(self, GraphSource::Captured(_))
    }

    /// Refuses a graph without operations or with an [`Op::Copy`], and a node that runs after itself or a
    /// later one.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage).
    pub fn check(self) -> Result<()> {
        if self.ops().len() == 0 {
            return Err(Error::usage("the graph has no operation"));
        }
        if self.ops().any(|op| matches!(op, Op::Copy { .. })) {
            return Err(no_copy_in_graph());
        }
        let GraphSource::Explicit(nodes) = self else {
            return Ok(());
        };
        let mut nodes = nodes.iter().enumerate();
        match nodes.find(|(place, node)| node.after.iter().any(|after| after >= place)) {
            None => Ok(()),
            Some((place, _)) => Err(Error::usage(format!(
                "operation {place} runs after one that does not come before it"
            ))),
        }
    }
}

/// The error of an [`Op::Copy`] in a graph.
pub(super) fn no_copy_in_graph() -> Error {
    let error = Error::usage("a graph does not copy within the device");
    error.fix("give the copy to the slot before the graph")
}

impl Op {
    /// The kind of operation with its article, as messages name it.
    #[doc(hidden)]
    pub fn kind_name(&self) -> &'static str {
        match self {
            Op::Upload { .. } => "an upload",
            Op::Download { .. } => "a download",
            Op::Copy { .. } => "a copy within the device",
            Op::Memset { .. } => "a memset",
            Op::Launch { .. } => "a launch",
            Op::Timestamp { .. } => "a timestamp",
        }
    }
}
