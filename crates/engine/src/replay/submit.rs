//! Gives lowered commands to a slot: the unsafe calls of [`DeviceSlot`], behind functions that
//! take nothing but what [`lower`](super::lower) made.

use super::{Build, Lowered};
use crate::backend::{
    AllocationView, Built, DeviceSlot, GraphId, GraphSource, Node, Op, TIMESTAMPS,
};
use crate::error::{Context, Error, Result};
use crate::record::BufferId;

/// What a node of a graph does.
#[derive(Clone, Copy)]
pub(super) enum NodeSource<'a> {
    /// A command.
    Command(&'a Lowered),
    /// Takes one of the slot's timestamps.
    Timestamp(u32),
}

/// Timestamps as operations.
static TIMESTAMP_OPS: [Op; TIMESTAMPS] = [
    Op::Timestamp { timestamp: 0 },
    Op::Timestamp { timestamp: 1 },
    Op::Timestamp { timestamp: 2 },
    Op::Timestamp { timestamp: 3 },
];

/// Refuses a command that was lowered for another slot.
///
/// # Errors
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage).
fn check_slot(slot: &dyn DeviceSlot, lowered: &Lowered) -> Result<()> {
    if slot.id() == lowered.slot() {
        Ok(())
    } else {
        Err(Error::usage("the command was lowered for another slot"))
    }
}

/// Gives a command to a slot.
pub(super) fn enqueue(slot: &mut dyn DeviceSlot, lowered: &Lowered) -> Result<()> {
    check_slot(slot, lowered)?;
    // SAFETY: a `Lowered` comes from `lower` alone, that is from a checked recording and
    // from bindings of this slot (checked above), and it holds the allocations that those
    // bindings name. Declared memory is held by the executor, which audits it.
    unsafe { slot.enqueue(lowered.op()) }
}

/// Gives the first `bytes` bytes of a copy to a slot.
///
/// # Errors
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for another operation than an upload or a
/// download.
pub(super) fn enqueue_part(
    slot: &mut dyn DeviceSlot,
    lowered: &Lowered,
    bytes: usize,
) -> Result<()> {
    check_slot(slot, lowered)?;
    let part = match *lowered.op() {
        Op::Upload {
            host,
            device,
            bytes: all,
        } => Op::Upload {
            host,
            device,
            bytes: bytes.min(all),
        },
        Op::Download {
            device,
            host,
            bytes: all,
        } => Op::Download {
            device,
            host,
            bytes: bytes.min(all),
        },
        _ => return Err(Error::usage("only a copy has a part")),
    };
    // SAFETY: as for `enqueue`; what is left of the copy lies within what was lowered.
    unsafe { slot.enqueue(&part) }
}

/// Gives a timestamp to a slot.
pub(super) fn enqueue_timestamp(slot: &mut dyn DeviceSlot, timestamp: u32) -> Result<()> {
    // SAFETY: a timestamp names no memory.
    unsafe { slot.enqueue(&Op::Timestamp { timestamp }) }
}

/// Copies device memory that the slot has adopted to one of its own buffers, from byte `start` on.
pub(crate) fn enqueue_copy(
    slot: &mut dyn DeviceSlot,
    from: &AllocationView,
    to: BufferId,
    start: usize,
) -> Result<()> {
    let (addresses, bytes) = (slot.addresses(to), from.bytes());
    assert!(
        start + bytes <= addresses.bytes,
        "a copy of {bytes} bytes to byte {start} of {}",
        addresses.bytes
    );
    let copy = Op::Copy {
        from: from.address(),
        to: addresses.device + start as u64,
        bytes,
    };
    // SAFETY: it writes the slot's own memory, within the buffer. Kernels stay within memory whatever
    // the contents of a buffer that items fill.
    unsafe { slot.enqueue(&copy) }
}

/// Sets `bytes` bytes of one of the slot's own buffers to zero, from byte `start` on.
pub(crate) fn enqueue_zeros(
    slot: &mut dyn DeviceSlot,
    buffer: BufferId,
    start: usize,
    bytes: usize,
) -> Result<()> {
    let addresses = slot.addresses(buffer);
    let zero = Op::Memset {
        device: addresses.device + start as u64,
        byte: 0,
        bytes: bytes.min(addresses.bytes.saturating_sub(start)),
    };
    // SAFETY: it is the slot's own memory, within the buffer's room, and kernels take
    // zeros, which is what memory of a slot starts with.
    unsafe { slot.enqueue(&zero) }
}

/// Makes a graph of nodes, or gives their parameters to the graph `into`. Each node comes with
/// the places of those that it runs after, which a captured graph takes from the order alone.
pub(super) fn make_graph(
    slot: &mut dyn DeviceSlot,
    nodes: &[(NodeSource<'_>, Vec<usize>)],
    build: Build,
    into: Option<GraphId>,
) -> Result<(GraphId, Built)> {
    let mut listed = Vec::with_capacity(nodes.len());
    for (source, after) in nodes {
        let op = match *source {
            NodeSource::Command(lowered) => {
                check_slot(slot, lowered)?;
                lowered.op()
            }
            NodeSource::Timestamp(timestamp) => &TIMESTAMP_OPS[timestamp as usize],
        };
        listed.push(Node { op, after });
    }
    drop_released(slot);
    let ops: Vec<&Op>;
    let (source, place) = match build {
        Build::Capture => {
            ops = listed.iter().map(|node| node.op).collect();
            (GraphSource::Captured(&ops), "capture the graph")
        }
        Build::Explicit => (GraphSource::Explicit(&listed), "build the graph"),
    };
    // SAFETY: as for `enqueue`. The edges are those that `hazards` derives from what the
    // commands read and write, or more.
    unsafe { slot.make_graph(source, into) }.within(|| place)
}

/// Gives one node of a graph the parameters of a command at the same place.
pub(super) fn set_params(
    slot: &mut dyn DeviceSlot,
    graph: GraphId,
    node: usize,
    lowered: &Lowered,
) -> Result<()> {
    check_slot(slot, lowered)?;
    // SAFETY: as for `enqueue`. The graph was made of the same recording, whose edges do
    // not follow from addresses and values.
    unsafe { slot.set_params(graph, node, lowered.op()) }
}

/// Drops the graphs of executors that were dropped before.
pub(super) fn drop_released(slot: &mut dyn DeviceSlot) {
    for graph in slot.id().take_released() {
        slot.drop_graph(graph);
    }
}
