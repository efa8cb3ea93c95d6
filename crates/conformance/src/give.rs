//! Operations that a test gives to a slot itself, without a recording.

use tapeloop_engine::Result;
use tapeloop_engine::backend::contract::{Built, DeviceSlot, GraphId, GraphSource, Node, Op};

/// A copy to the device.
pub fn upload(host: u64, device: u64, bytes: usize) -> Op {
    Op::Upload {
        host,
        device,
        bytes,
    }
}

/// A copy from the device.
pub fn download(device: u64, host: u64, bytes: usize) -> Op {
    Op::Download {
        device,
        host,
        bytes,
    }
}

/// A write of one byte everywhere in a range of the device.
pub fn memset(device: u64, byte: u8, bytes: usize) -> Op {
    Op::Memset {
        device,
        byte,
        bytes,
    }
}

/// The unsafe calls of a slot, for scenarios whose operations are known to be sound.
pub trait Give {
    /// [`DeviceSlot::enqueue`].
    ///
    /// # Errors
    /// The errors of [`DeviceSlot::enqueue`].
    fn give(&mut self, op: &Op) -> Result<()>;
    /// [`DeviceSlot::make_graph`] of an explicit graph.
    ///
    /// # Errors
    /// The errors of [`DeviceSlot::make_graph`].
    fn give_graph(&mut self, nodes: &[Node<'_>], into: Option<GraphId>)
    -> Result<(GraphId, Built)>;
    /// [`DeviceSlot::make_graph`] of a captured graph.
    ///
    /// # Errors
    /// The errors of [`DeviceSlot::make_graph`].
    fn capture(&mut self, ops: &[&Op], into: Option<GraphId>) -> Result<(GraphId, Built)>;
    /// [`DeviceSlot::set_params`].
    ///
    /// # Errors
    /// The errors of [`DeviceSlot::set_params`].
    fn give_params(&mut self, graph: GraphId, node: usize, op: &Op) -> Result<()>;
}

impl<L: DeviceSlot + ?Sized> Give for L {
    fn give(&mut self, op: &Op) -> Result<()> {
        // SAFETY: the tests launch twins, which are safe code, and kernels with as many
        // elements as there are behind the addresses that they pass. Other addresses are
        // there to be refused by the slot.
        unsafe { self.enqueue(op) }
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
///
/// # Panics
/// If the slot has none.
pub fn only_graph(device_slot: &dyn DeviceSlot) -> GraphId {
    // SAFETY: the slot is the test's.
    let graph_id = |number| unsafe { GraphId::from_number(number) };
    // Numbers ascend over the process, which may have made many graphs before this one. No function returns
    // the number of an id, so the newest number is found by comparing ids. No process makes 2^40 of them.
    let newest = GraphId::unique();
    let (mut end, mut above) = (0_u64, 1 << 40);
    while end < above {
        let middle = (end + above) / 2;
        if graph_id(middle) < newest {
            end = middle + 1
        } else {
            above = middle
        }
    }
    let mut ids = (0..end).rev().map(graph_id);
    ids.find(|&id| device_slot.graph_ops(id).is_ok())
        .expect("the device slot has a graph")
}
