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

/// A bug of a [`Broken`] backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// None.
    None,
    /// Batches count as done at once.
    DoneTooEarly,
    /// A slot that was done once says so ever after.
    DoneEver,
    /// Every launch is of the slot's first graph.
    FirstGraph,
    /// Batches are not marked.
    NoFence,
    /// A graph built by hand lacks one edge; which of them, counted over all nodes.
    NoEdge(usize),
    /// All slots use one buffer of the first.
    Shared(BufferId),
    /// Updates of graphs do nothing.
    NoUpdate,
    /// Launches and marks wait until somebody asks, and updates overtake them.
    LateLaunch,
}

pub struct Broken {
    bug: Bug,
    watch: Arc<Watch>,
}

/// Batches on their way through all slots, by the marks.
#[derive(Default)]
pub struct Watch {
    given: AtomicUsize,
    in_flight: AtomicUsize,
    peak: AtomicUsize,
    twice: AtomicUsize,
}

impl Watch {
    /// Batches that were marked.
    pub fn given(&self) -> usize {
        self.given.load(Relaxed)
    }

    /// Those that nobody has seen done.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Relaxed)
    }

    /// The most that there were at once.
    pub fn peak(&self) -> usize {
        self.peak.load(Relaxed)
    }

    /// Those that a slot was given before the one before was seen done.
    pub fn twice(&self) -> usize {
        self.twice.load(Relaxed)
    }

    fn give(&self, busy: bool) {
        self.given.fetch_add(1, Relaxed);
        if busy {
            self.twice.fetch_add(1, Relaxed)
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
    late: Vec<Option<GraphId>>,
    watch: Arc<Watch>,
    /// A batch was marked, and nobody has seen it done.
    busy: bool,
    was_done: bool,
    first_graph: Option<GraphId>,
}

impl Broken {
    pub fn backend(inner: Arc<dyn Backend>, bug: Bug) -> Arc<dyn Backend> {
        Broken::watched(inner, bug).1
    }

    pub fn watched(inner: Arc<dyn Backend>, bug: Bug) -> (Arc<Watch>, Arc<dyn Backend>) {
        let watch = Arc::new(Watch::default());
        let broken = Broken {
            bug,
            watch: Arc::clone(&watch),
        };
        (watch, broken.around(inner))
    }
}

impl BackendHooks for Broken {
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
    fn catch_up(&mut self, inner: &mut dyn DeviceSlot) -> Result<()> {
        for late in std::mem::take(&mut self.late) {
            match late {
                Some(graph) => inner.launch_graph(graph)?,
                None => inner.fence()?,
            }
        }
        Ok(())
    }

    fn seen(&mut self) {
        if std::mem::take(&mut self.busy) {
            self.watch.in_flight.fetch_sub(1, Relaxed);
        }
    }
}

impl Drop for BrokenSlot {
    fn drop(&mut self) {
        self.seen();
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
        self.watch.give(self.busy);
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
            self.seen();
        }
        done
    }

    fn wait(&mut self, inner: &mut dyn DeviceSlot) -> Result<()> {
        self.catch_up(inner)?;
        self.seen();
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
