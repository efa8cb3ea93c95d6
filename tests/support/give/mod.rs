//! Operations that a test gives to a lane itself, without a recording.
#![allow(dead_code, reason = "each test binary uses its part")]

use tapeloop::Result;
use tapeloop::backend::{Built, GraphId, Lane, Node, Op, Queue};

/// The unsafe calls of a lane, for tests.
pub(crate) trait Give {
    /// [`Lane::enqueue`].
    fn give(&mut self, queue: Queue, op: &Op) -> Result<()>;
    /// [`Lane::build_graph`].
    fn give_graph(&mut self, nodes: &[Node<'_>], into: Option<GraphId>)
    -> Result<(GraphId, Built)>;
    /// [`Lane::set_params`].
    fn give_params(&mut self, graph: GraphId, node: usize, op: &Op) -> Result<()>;
}

impl<L: Lane + ?Sized> Give for L {
    fn give(&mut self, queue: Queue, op: &Op) -> Result<()> {
        // SAFETY: the tests launch twins, which are safe code, and kernels with as many
        // elements as there are behind the addresses that they pass. Other addresses are
        // there to be refused by the lane.
        unsafe { self.enqueue(queue, op) }
    }

    fn give_graph(
        &mut self,
        nodes: &[Node<'_>],
        into: Option<GraphId>,
    ) -> Result<(GraphId, Built)> {
        // SAFETY: as for `give`.
        unsafe { self.build_graph(nodes, into) }
    }

    fn give_params(&mut self, graph: GraphId, node: usize, op: &Op) -> Result<()> {
        // SAFETY: as for `give`.
        unsafe { self.set_params(graph, node, op) }
    }
}

/// The only graph of a lane, which any executor of the lane may have made.
pub(crate) fn only_graph(lane: &dyn Lane) -> GraphId {
    // SAFETY: the lane is the test's.
    let mut ids = (0..1 << 20).map(|number| unsafe { GraphId::from_number(number) });
    ids.find(|&id| lane.graph_ops(id).is_ok())
        .expect("the lane has a graph")
}
