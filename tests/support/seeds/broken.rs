//! A backend with a bug: what an engine, or a layer under it, may get wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tapeloop::Result;
use tapeloop::backend::{
    Addresses, Allocation, Backend, BackendId, Built, DeviceInfo, DeviceSlot, DeviceSlotId,
    DriverCalls, FunctionId, GraphId, GraphSource, HostViews, Node, Op, Queue, Space, Streams,
    Timestamps,
};
use tapeloop::record::{BufferDecl, BufferId, Kernel};

/// A bug of a [`Broken`] backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// None.
    None,
    /// Batches count as done at once.
    DoneTooEarly,
    /// A device slot that was done once says so ever after.
    DoneEver,
    /// Every launch is of the device slot's first graph.
    FirstGraph,
    /// Batches are not marked.
    NoFence,
    /// Nothing waits for the queue.
    NoJoin(Queue),
    /// A graph built by hand lacks one edge; which of them, counted over all nodes.
    NoEdge(usize),
    /// All device slots use one buffer of the first.
    Shared(BufferId),
    /// Updates of graphs do nothing.
    NoUpdate,
    /// Launches and marks wait until somebody asks, and updates overtake them.
    LateLaunch,
}

pub(crate) struct Broken {
    inner: Arc<dyn Backend>,
    bug: Bug,
    watch: Arc<Watch>,
}

/// Batches on their way through all device slots, by the marks.
#[derive(Default)]
pub(crate) struct Watch {
    given: AtomicUsize,
    in_flight: AtomicUsize,
    peak: AtomicUsize,
    twice: AtomicUsize,
}

impl Watch {
    /// Batches that were marked.
    pub(crate) fn given(&self) -> usize {
        self.given.load(Relaxed)
    }

    /// Those that nobody has seen done.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Relaxed)
    }

    /// The most that there were at once.
    pub(crate) fn peak(&self) -> usize {
        self.peak.load(Relaxed)
    }

    /// Those that a device slot was given before the one before was seen done.
    pub(crate) fn twice(&self) -> usize {
        self.twice.load(Relaxed)
    }

    fn give(&self, busy: bool) {
        self.given.fetch_add(1, Relaxed);
        match busy {
            true => self.twice.fetch_add(1, Relaxed),
            false => self
                .peak
                .fetch_max(self.in_flight.fetch_add(1, Relaxed) + 1, Relaxed),
        };
    }
}

struct BrokenSlot {
    inner: Box<dyn DeviceSlot>,
    bug: Bug,
    /// The shared buffer of the first device slot.
    shared: Option<Addresses>,
    late: Vec<Option<GraphId>>,
    watch: Arc<Watch>,
    /// A batch was marked, and nobody has seen it done.
    busy: bool,
    was_done: bool,
    first_graph: Option<GraphId>,
}

impl Broken {
    pub(crate) fn backend(inner: Arc<dyn Backend>, bug: Bug) -> Arc<dyn Backend> {
        Broken::watched(inner, bug).1
    }

    pub(crate) fn watched(inner: Arc<dyn Backend>, bug: Bug) -> (Arc<Watch>, Arc<dyn Backend>) {
        let watch = Arc::new(Watch::default());
        let broken = Broken {
            inner,
            bug,
            watch: Arc::clone(&watch),
        };
        (watch, Arc::new(broken))
    }
}

// SAFETY: it passes every call on to a backend that keeps the contract, with its kernels.
unsafe impl Backend for Broken {
    fn id(&self) -> BackendId {
        self.inner.id()
    }

    fn device(&self) -> &DeviceInfo {
        self.inner.device()
    }

    fn load(&self, kernel: &Kernel) -> Result<FunctionId> {
        self.inner.load(kernel)
    }

    fn open_slots(
        &self,
        buffers: &[BufferDecl],
        device_slots: usize,
        streams: Streams,
    ) -> Result<Vec<Box<dyn DeviceSlot>>> {
        let device_slots = self.inner.open_slots(buffers, device_slots, streams)?;
        let shared = match self.bug {
            Bug::Shared(buffer) => Some(device_slots[0].addresses(buffer)),
            _ => None,
        };
        let wrap = |inner| -> Box<dyn DeviceSlot> {
            Box::new(BrokenSlot {
                inner,
                bug: self.bug,
                shared,
                late: Vec::new(),
                watch: Arc::clone(&self.watch),
                busy: false,
                was_done: false,
                first_graph: None,
            })
        };
        Ok(device_slots.into_iter().map(wrap).collect())
    }

    fn allocate(&self, space: Space, bytes: usize) -> Result<Allocation> {
        self.inner.allocate(space, bytes)
    }

    fn write(&self, from: &[u8], to: &Allocation, to_offset: usize) -> Result<()> {
        self.inner.write(from, to, to_offset)
    }

    fn read(&self, from: &Allocation, from_offset: usize, to: &mut [u8]) -> Result<()> {
        self.inner.read(from, from_offset, to)
    }

    fn copy(
        &self,
        from: &Allocation,
        from_offset: usize,
        to: &Allocation,
        to_offset: usize,
        bytes: usize,
    ) -> Result<()> {
        self.inner.copy(from, from_offset, to, to_offset, bytes)
    }

    fn driver_calls(&self) -> DriverCalls {
        self.inner.driver_calls()
    }
}

impl BrokenSlot {
    fn catch_up(&mut self) -> Result<()> {
        for late in std::mem::take(&mut self.late) {
            match late {
                Some(graph) => self.inner.launch_graph(graph)?,
                None => self.inner.fence()?,
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

// SAFETY: every call that is passed on goes to a device slot of the simulated device, where kernels
// are safe code.
unsafe impl DeviceSlot for BrokenSlot {
    fn id(&self) -> &DeviceSlotId {
        self.inner.id()
    }

    fn streams(&self) -> Option<tapeloop::backend::Streams> {
        self.inner.streams()
    }

    fn is_quiet(&self) -> bool {
        self.inner.is_quiet()
    }

    fn buffer_count(&self) -> usize {
        self.inner.buffer_count()
    }

    fn addresses(&self, buffer: BufferId) -> Addresses {
        match (self.bug, self.shared) {
            (Bug::Shared(shared), Some(addresses)) if shared.index() == buffer.index() => addresses,
            _ => self.inner.addresses(buffer),
        }
    }

    fn host(&self, buffer: BufferId) -> &[u8] {
        self.inner.host(buffer)
    }

    fn host_mut(&mut self, buffers: &[BufferId]) -> HostViews<'_> {
        self.inner.host_mut(buffers)
    }

    fn adopt(&mut self, allocation: &Allocation) -> Result<()> {
        self.inner.adopt(allocation)
    }

    fn disown(&mut self, allocation: &Allocation) {
        self.inner.disown(allocation);
    }

    unsafe fn enqueue(&mut self, queue: Queue, op: &Op) -> Result<()> {
        // SAFETY: as the caller vouches for it.
        unsafe { self.inner.enqueue(queue, op) }
    }

    fn join(&mut self, earlier: Queue, later: Queue) -> Result<()> {
        match self.bug == Bug::NoJoin(earlier) {
            true => Ok(()),
            false => self.inner.join(earlier, later),
        }
    }

    unsafe fn make_graph(
        &mut self,
        source: GraphSource<'_>,
        into: Option<GraphId>,
    ) -> Result<(GraphId, Built)> {
        if let (Bug::NoUpdate, Some(graph)) = (self.bug, into) {
            if source.is_captured() {
                // SAFETY: as the caller vouches for it.
                let (unused, _) = unsafe { self.inner.make_graph(source, None)? };
                self.inner.drop_graph(unused);
            }
            return Ok((graph, Built::Updated));
        }
        let (Bug::NoEdge(missing), GraphSource::Explicit(nodes)) = (self.bug, source) else {
            // SAFETY: as the caller vouches for it.
            return unsafe { self.inner.make_graph(source, into) };
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
        // SAFETY: as the caller vouches for it.
        unsafe { self.inner.make_graph(GraphSource::Explicit(&nodes), into) }
    }

    unsafe fn set_params(&mut self, graph: GraphId, node: usize, op: &Op) -> Result<()> {
        match self.bug == Bug::NoUpdate {
            true => Ok(()),
            // SAFETY: as the caller vouches for it.
            false => unsafe { self.inner.set_params(graph, node, op) },
        }
    }

    fn graph_ops(&self, graph: GraphId) -> Result<Vec<Op>> {
        self.inner.graph_ops(graph)
    }

    fn drop_graph(&mut self, graph: GraphId) {
        self.inner.drop_graph(graph);
    }

    fn launch_graph(&mut self, graph: GraphId) -> Result<()> {
        if self.bug == Bug::LateLaunch {
            self.late.push(Some(graph));
            return Ok(());
        }
        let graph = match self.bug {
            Bug::FirstGraph => *self.first_graph.get_or_insert(graph),
            _ => graph,
        };
        self.inner.launch_graph(graph)
    }

    fn fence(&mut self) -> Result<()> {
        self.watch.give(self.busy);
        self.busy = true;
        match self.bug {
            Bug::NoFence => Ok(()),
            Bug::LateLaunch => {
                self.late.push(None);
                Ok(())
            }
            _ => self.inner.fence(),
        }
    }

    fn is_done(&mut self) -> Result<bool> {
        self.catch_up()?;
        let done = match self.bug {
            Bug::DoneTooEarly => Ok(true),
            Bug::DoneEver if self.was_done => Ok(true),
            _ => self.inner.is_done(),
        };
        if !matches!(done, Ok(false)) {
            self.was_done = true;
            self.seen();
        }
        done
    }

    fn wait(&mut self) -> Result<()> {
        self.catch_up()?;
        self.seen();
        match self.bug {
            Bug::DoneTooEarly => Ok(()),
            Bug::DoneEver if self.was_done => Ok(()),
            _ => {
                self.was_done = true;
                self.inner.wait()
            }
        }
    }

    fn abandon(&mut self, error: &tapeloop::Error) {
        self.inner.abandon(error);
    }

    fn timestamps(&self) -> Result<Timestamps> {
        self.inner.timestamps()
    }
}
