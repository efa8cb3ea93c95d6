//! A backend whose device slots wait for every launch and note how long it took.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tapeloop::backend::{
    Addresses, Allocation, Backend, BackendId, Built, DeviceInfo, DeviceSlot, DeviceSlotId,
    DriverCalls, FunctionId, GraphId, GraphSource, HostViews, Op, Queue, Space, Streams,
    Timestamps,
};
use tapeloop::record::{BufferDecl, BufferId, Kernel};
use tapeloop::{Error, Result};

/// What launches took so far, by kernel.
#[derive(Default)]
pub(crate) struct Launches(Mutex<BTreeMap<u32, (String, Duration)>>);

impl Launches {
    /// The kernels that were launched.
    pub(crate) fn kernels(&self) -> Vec<String> {
        let launches = self.0.lock().unwrap();
        let ran = launches.values().filter(|(_, time)| !time.is_zero());
        let mut names: Vec<String> = ran.map(|(name, _)| name.clone()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The time of all launches of a kernel.
    pub(crate) fn time(&self, kernel: &str) -> Duration {
        let launches = self.0.lock().unwrap();
        let own = launches.values().filter(|(name, _)| name == kernel);
        own.map(|(_, time)| *time).sum()
    }
}

pub(crate) struct Noting {
    inner: Arc<dyn Backend>,
    launches: Arc<Launches>,
}

impl Noting {
    pub(crate) fn new(inner: Arc<dyn Backend>, launches: &Arc<Launches>) -> Self {
        Noting {
            inner,
            launches: Arc::clone(launches),
        }
    }
}

// SAFETY: it passes every call on to a backend that keeps the contract, with its kernels.
unsafe impl Backend for Noting {
    fn id(&self) -> BackendId {
        self.inner.id()
    }

    fn device(&self) -> &DeviceInfo {
        self.inner.device()
    }

    fn load(&self, kernel: &Kernel) -> Result<FunctionId> {
        let function = self.inner.load(kernel)?;
        let mut launches = self.launches.0.lock().unwrap();
        let new = || (kernel.name().to_owned(), Duration::ZERO);
        launches.entry(function.0).or_insert_with(new);
        Ok(function)
    }

    fn open_slots(
        &self,
        buffers: &[BufferDecl],
        device_slots: usize,
        streams: Streams,
    ) -> Result<Vec<Box<dyn DeviceSlot>>> {
        let wrap = |inner| -> Box<dyn DeviceSlot> {
            let launches = Arc::clone(&self.launches);
            Box::new(NotingSlot { inner, launches })
        };
        let device_slots = self.inner.open_slots(buffers, device_slots, streams)?;
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

struct NotingSlot {
    inner: Box<dyn DeviceSlot>,
    launches: Arc<Launches>,
}

// SAFETY: every call goes on to a device slot that keeps the contract.
unsafe impl DeviceSlot for NotingSlot {
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
        self.inner.addresses(buffer)
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
        let start = Instant::now();
        // SAFETY: as the caller vouches for it.
        unsafe { self.inner.enqueue(queue, op) }?;
        self.inner.wait()?;
        if let Op::Launch { function, .. } = op {
            let mut launches = self.launches.0.lock().unwrap();
            let (_, time) = launches.get_mut(&function.0).expect("loaded before");
            *time += start.elapsed();
        }
        Ok(())
    }

    fn join(&mut self, earlier: Queue, later: Queue) -> Result<()> {
        self.inner.join(earlier, later)
    }

    unsafe fn make_graph(
        &mut self,
        _: GraphSource<'_>,
        _: Option<GraphId>,
    ) -> Result<(GraphId, Built)> {
        Err(Error::usage("launches are noted in stream mode"))
    }

    unsafe fn set_params(&mut self, graph: GraphId, node: usize, op: &Op) -> Result<()> {
        // SAFETY: as the caller vouches for it.
        unsafe { self.inner.set_params(graph, node, op) }
    }

    fn graph_ops(&self, graph: GraphId) -> Result<Vec<Op>> {
        self.inner.graph_ops(graph)
    }

    fn drop_graph(&mut self, graph: GraphId) {
        self.inner.drop_graph(graph);
    }

    fn launch_graph(&mut self, graph: GraphId) -> Result<()> {
        self.inner.launch_graph(graph)
    }

    fn fence(&mut self) -> Result<()> {
        self.inner.fence()
    }

    fn is_done(&mut self) -> Result<bool> {
        self.inner.is_done()
    }

    fn wait(&mut self) -> Result<()> {
        self.inner.wait()
    }

    fn abandon(&mut self, error: &Error) {
        self.inner.abandon(error);
    }

    fn timestamps(&self) -> Result<Timestamps> {
        self.inner.timestamps()
    }
}
