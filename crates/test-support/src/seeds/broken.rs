//! A backend with a bug: what an engine, or a layer under it, may get wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tapeloop_conformance::forward::{BackendHooks, SlotHooks};
use tapeloop_engine::Result;
use tapeloop_engine::backend::Backend;
use tapeloop_engine::backend::contract::{
    Addresses, Built, DeviceSlot, GraphId, GraphSource, Node, Op,
};
use tapeloop_engine::record::BufferId;

/// The bug of a [`BrokenBackend`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// No bug.
    None,
    /// Batches are reported as done at once.
    DoneTooEarly,
    /// A slot that was done once is reported as done from then on.
    DoneEver,
    /// Every launch launches the slot's first graph.
    FirstGraph,
    /// No fence follows a batch.
    NoFence,
    /// An explicit graph lacks this edge, counted over all nodes.
    NoEdge(usize),
    /// All slots use this buffer of the first slot.
    Shared(BufferId),
    /// Updates of graphs do nothing.
    NoUpdate,
    /// Launches and fences wait until the slot is asked whether it is done, and updates overtake them.
    LateLaunch,
}

/// A backend that forwards all calls, with one bug.
pub struct BrokenBackend {
    bug: Bug,
    watch: Arc<BatchCounts>,
}

/// Counts the batches of all slots by their fences.
#[derive(Default)]
pub struct BatchCounts {
    fenced: AtomicUsize,
    in_flight: AtomicUsize,
    peak: AtomicUsize,
    overlapping: AtomicUsize,
}

impl BatchCounts {
    /// Batches that were followed by a fence.
    pub fn fenced(&self) -> usize {
        self.fenced.load(Relaxed)
    }

    /// Fenced batches that have not been reported as done.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Relaxed)
    }

    /// The largest number of batches in flight at once.
    pub fn peak(&self) -> usize {
        self.peak.load(Relaxed)
    }

    /// Batches that a slot was given before its previous batch was reported as done.
    pub fn overlapping(&self) -> usize {
        self.overlapping.load(Relaxed)
    }

    /// Counts a fence, and whether the slot's batch before is in flight still: the two count as one then.
    fn count_fence(&self, busy: bool) {
        self.fenced.fetch_add(1, Relaxed);
        if busy {
            self.overlapping.fetch_add(1, Relaxed)
        } else {
            self.peak
                .fetch_max(self.in_flight.fetch_add(1, Relaxed) + 1, Relaxed)
        };
    }
}

pub struct BrokenSlot {
    bug: Bug,
    /// The shared buffer of the first slot.
    shared: Option<Addresses>,
    /// What was put off, in order: launches of graphs, and fences (`None`).
    late: Vec<Option<GraphId>>,
    watch: Arc<BatchCounts>,
    /// A batch was fenced, and has not been reported as done.
    busy: bool,
    was_done: bool,
    first_graph: Option<GraphId>,
}

impl BrokenBackend {
    pub fn backend(inner: Arc<dyn Backend>, bug: Bug) -> Arc<dyn Backend> {
        BrokenBackend::watched(inner, bug).1
    }

    /// A backend with a bug, and the counts of its batches.
    pub fn watched(inner: Arc<dyn Backend>, bug: Bug) -> (Arc<BatchCounts>, Arc<dyn Backend>) {
        let watch = Arc::new(BatchCounts::default());
        let broken = BrokenBackend {
            bug,
            watch: Arc::clone(&watch),
        };
        (watch, broken.around(inner))
    }
}

impl BackendHooks for BrokenBackend {
    type Slot = BrokenSlot;

    fn slot(&self, opened: &[Box<dyn DeviceSlot>]) -> BrokenSlot {
        let shared = match self.bug {
            Bug::Shared(buffer) => Some(opened[0].addresses(buffer)),
            _ => None,
        };
        BrokenSlot {
            bug: self.bug,
            shared,
            late: Vec::new(),
            watch: Arc::clone(&self.watch),
            busy: false,
            was_done: false,
            first_graph: None,
        }
    }
}

impl BrokenSlot {
    /// Does what was put off.
    fn catch_up(&mut self, inner: &mut dyn DeviceSlot) -> Result<()> {
        for late in std::mem::take(&mut self.late) {
            match late {
                Some(graph) => inner.launch_graph(graph)?,
                None => inner.fence()?,
            }
        }
        Ok(())
    }

    fn count_done(&mut self) {
        if std::mem::take(&mut self.busy) {
            self.watch.in_flight.fetch_sub(1, Relaxed);
        }
    }
}

impl Drop for BrokenSlot {
    fn drop(&mut self) {
        self.count_done();
    }
}

impl SlotHooks for BrokenSlot {
    fn addresses(&self, inner: &dyn DeviceSlot, buffer: BufferId) -> Addresses {
        match (self.bug, self.shared) {
            (Bug::Shared(shared), Some(addresses)) if shared.index() == buffer.index() => addresses,
            _ => inner.addresses(buffer),
        }
    }

    unsafe fn make_graph(
        &mut self,
        inner: &mut dyn DeviceSlot,
        source: GraphSource<'_>,
        into: Option<GraphId>,
    ) -> Result<(GraphId, Built)> {
        if let (Bug::NoUpdate, Some(graph)) = (self.bug, into) {
            if source.is_captured() {
                // SAFETY: the caller keeps the same contract.
                let (unused, _) = unsafe { inner.make_graph(source, None)? };
                inner.drop_graph(unused);
            }
            return Ok((graph, Built::Updated));
        }
        let (Bug::NoEdge(missing), GraphSource::Explicit(nodes)) = (self.bug, source) else {
            // SAFETY: the caller keeps the same contract.
            return unsafe { inner.make_graph(source, into) };
        };
        let edges: usize = nodes.iter().map(|node| node.after.len()).sum();
        let mut before = 0;
        let cut = |node: &Node<'_>| {
            let edge = (missing % edges).checked_sub(before);
            before += node.after.len();
            let mut after = node.after.to_vec();
            if let Some(edge) = edge
                && edge < after.len()
            {
                after.remove(edge);
            }
            after
        };
        let after: Vec<Vec<usize>> = nodes.iter().map(cut).collect();
        let pairs = nodes.iter().zip(&after);
        let nodes: Vec<Node<'_>> = pairs
            .map(|(node, after)| Node { op: node.op, after })
            .collect();
        // SAFETY: the caller keeps the same contract.
        unsafe { inner.make_graph(GraphSource::Explicit(&nodes), into) }
    }

    unsafe fn set_params(
        &mut self,
        inner: &mut dyn DeviceSlot,
        graph: GraphId,
        node: usize,
        op: &Op,
    ) -> Result<()> {
        if self.bug == Bug::NoUpdate {
            return Ok(());
        }
        // SAFETY: the caller keeps the same contract.
        unsafe { inner.set_params(graph, node, op) }
    }

    fn launch_graph(&mut self, inner: &mut dyn DeviceSlot, graph: GraphId) -> Result<()> {
        if self.bug == Bug::LateLaunch {
            self.late.push(Some(graph));
            return Ok(());
        }
        let graph = match self.bug {
            Bug::FirstGraph => *self.first_graph.get_or_insert(graph),
            _ => graph,
        };
        inner.launch_graph(graph)
    }

    fn fence(&mut self, inner: &mut dyn DeviceSlot) -> Result<()> {
        self.watch.count_fence(self.busy);
        self.busy = true;
        match self.bug {
            Bug::NoFence => Ok(()),
            Bug::LateLaunch => {
                self.late.push(None);
                Ok(())
            }
            _ => inner.fence(),
        }
    }

    fn is_done(&mut self, inner: &mut dyn DeviceSlot) -> Result<bool> {
        self.catch_up(inner)?;
        let done = match self.bug {
            Bug::DoneTooEarly => Ok(true),
            Bug::DoneEver if self.was_done => Ok(true),
            _ => inner.is_done(),
        };
        if !matches!(done, Ok(false)) {
            self.was_done = true;
            self.count_done();
        }
        done
    }

    fn wait(&mut self, inner: &mut dyn DeviceSlot) -> Result<()> {
        self.catch_up(inner)?;
        self.count_done();
        match self.bug {
            Bug::DoneTooEarly => Ok(()),
            Bug::DoneEver if self.was_done => Ok(()),
            _ => {
                self.was_done = true;
                inner.wait()
            }
        }
    }
}
