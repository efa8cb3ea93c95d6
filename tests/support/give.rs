//! Operations that a test gives to a slot itself, without a recording.
#![allow(dead_code, reason = "each test binary uses its part")]

use tapeloop::Result;
use tapeloop::backend::{Built, DeviceSlot, GraphId, GraphSource, Node, Op, Queue};

/// The unsafe calls of a slot, for tests.
pub(crate) trait Give {
    /// [`DeviceSlot::enqueue`].
    fn give(&mut self, queue: Queue, op: &Op) -> Result<()>;
    /// [`DeviceSlot::make_graph`] of an explicit graph.
    fn give_graph(&mut self, nodes: &[Node<'_>], into: Option<GraphId>)
    -> Result<(GraphId, Built)>;
    /// [`DeviceSlot::make_graph`] of a captured graph.
    fn capture(&mut self, ops: &[&Op], into: Option<GraphId>) -> Result<(GraphId, Built)>;
    /// [`DeviceSlot::set_params`].
    fn give_params(&mut self, graph: GraphId, node: usize, op: &Op) -> Result<()>;
}

impl<L: DeviceSlot + ?Sized> Give for L {
    fn give(&mut self, queue: Queue, op: &Op) -> Result<()> {
        // SAFETY: the tests launch twins, which are safe code, and kernels with as many
        // elements as there are behind the addresses that they pass. Other addresses are
        // there to be refused by the slot.
        unsafe { self.enqueue(queue, op) }
    }

    fn give_graph(
        &mut self,
        nodes: &[Node<'_>],
        into: Option<GraphId>,
    ) -> Result<(GraphId, Built)> {
        // SAFETY: as for `give`.
        unsafe { self.make_graph(GraphSource::Explicit(nodes), into) }
    }

    fn capture(&mut self, ops: &[&Op], into: Option<GraphId>) -> Result<(GraphId, Built)> {
        // SAFETY: as for `give`.
        unsafe { self.make_graph(GraphSource::Captured(ops), into) }
    }

    fn give_params(&mut self, graph: GraphId, node: usize, op: &Op) -> Result<()> {
        // SAFETY: as for `give`.
        unsafe { self.set_params(graph, node, op) }
    }
}

/// The only graph of a slot, which any executor of the slot may have made.
pub(crate) fn only_graph(device_slot: &dyn DeviceSlot) -> GraphId {
    // SAFETY: the slot is the test's.
    let mut ids = (0..1 << 20).map(|number| unsafe { GraphId::from_number(number) });
    ids.find(|&id| device_slot.graph_ops(id).is_ok())
        .expect("the device slot has a graph")
}
