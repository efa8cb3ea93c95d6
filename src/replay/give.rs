//! Where operations are given to a lane: the unsafe calls of [`Lane`], behind functions
//! that take nothing but what [`lower`](super::lower) made.

use super::Lowered;
use crate::backend::{Built, GraphId, Lane, Node, Op, Queue, STAMPS};
use crate::error::{Error, Result};
use crate::record::BufferId;

/// A node of a graph.
#[derive(Clone, Copy)]
pub(super) enum Given<'a> {
    /// A command.
    Command(&'a Lowered),
    /// One of the lane's stamps.
    Stamp(u32),
}

/// Stamps as operations.
static STAMP_OPS: [Op; STAMPS] = [
    Op::Stamp { stamp: 0 },
    Op::Stamp { stamp: 1 },
    Op::Stamp { stamp: 2 },
    Op::Stamp { stamp: 3 },
];

/// Refuses what was lowered for another lane.
fn check_lane(lane: &dyn Lane, lowered: &Lowered) -> Result<()> {
    match lane.id() == lowered.lane() {
        true => Ok(()),
        false => Err(Error::usage("the command was lowered for another lane")),
    }
}

/// Gives a command to a queue, or to the capture in progress.
pub(crate) fn enqueue(lane: &mut dyn Lane, queue: Queue, lowered: &Lowered) -> Result<()> {
    check_lane(lane, lowered)?;
    // SAFETY: a `Lowered` comes from `lower` alone, that is from a checked recording and
    // from bindings of this lane (checked above), and it holds the blocks that those
    // bindings name. Declared memory is held by the executor, which audits it.
    unsafe { lane.enqueue(queue, lowered.op()) }
}

/// Gives the first `bytes` bytes of a copy to a queue.
pub(super) fn enqueue_part(
    lane: &mut dyn Lane,
    queue: Queue,
    lowered: &Lowered,
    bytes: usize,
) -> Result<()> {
    check_lane(lane, lowered)?;
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
    unsafe { lane.enqueue(queue, &part) }
}

/// Gives a stamp to a queue, or to the capture in progress.
pub(super) fn enqueue_stamp(lane: &mut dyn Lane, queue: Queue, stamp: u32) -> Result<()> {
    // SAFETY: a stamp names no memory.
    unsafe { lane.enqueue(queue, &Op::Stamp { stamp }) }
}

/// Sets the first `bytes` bytes of one of the lane's own buffers to zero.
pub(super) fn enqueue_zeros(lane: &mut dyn Lane, buffer: BufferId, bytes: usize) -> Result<()> {
    let own = lane.addresses(buffer);
    let zero = Op::Memset {
        device: own.device,
        byte: 0,
        bytes: bytes.min(own.bytes),
    };
    // SAFETY: it is the lane's own memory, within the buffer's room, and kernels take
    // zeros, which is what memory of a lane starts with.
    unsafe { lane.enqueue(Queue::Compute, &zero) }
}

/// Makes a graph of nodes, each with the places of those that it runs after, or gives
/// their parameters to the graph `into`.
pub(super) fn build_graph(
    lane: &mut dyn Lane,
    given: &[(Given<'_>, Vec<usize>)],
    into: Option<GraphId>,
) -> Result<(GraphId, Built)> {
    let mut nodes = Vec::with_capacity(given.len());
    for (node, after) in given {
        let op = match *node {
            Given::Command(lowered) => {
                check_lane(lane, lowered)?;
                lowered.op()
            }
            Given::Stamp(stamp) => &STAMP_OPS[stamp as usize],
        };
        nodes.push(Node { op, after });
    }
    drop_released(lane);
    // SAFETY: as for `enqueue`. The edges are those that `hazards` derives from what the
    // commands read and write, or more.
    unsafe { lane.build_graph(&nodes, into) }
}

/// Gives one node of a graph the parameters of a command, which has the same place.
pub(super) fn set_params(
    lane: &mut dyn Lane,
    graph: GraphId,
    node: usize,
    lowered: &Lowered,
) -> Result<()> {
    check_lane(lane, lowered)?;
    // SAFETY: as for `enqueue`. The graph was made of the same recording, whose edges do
    // not follow from addresses and values.
    unsafe { lane.set_params(graph, node, lowered.op()) }
}

/// Drops graphs that were let go of without the lane at hand.
pub(super) fn drop_released(lane: &mut dyn Lane) {
    for graph in lane.id().take_released() {
        lane.drop_graph(graph);
    }
}
