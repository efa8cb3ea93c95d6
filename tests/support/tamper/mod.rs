//! A device that holds, or does, something else than it was given, or takes its time.
#![allow(dead_code, reason = "each test binary uses its part")]

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tapeloop::Result;
use tapeloop::backend::{
    Addresses, Allocation, Backend, BackendId, Built, DeviceInfo, DeviceSlot, DeviceSlotId,
    DriverCalls, FunctionId, GraphId, GraphSource, HostViews, Op, Queue, Space, Streams,
};
use tapeloop::record::{BufferDecl, BufferId, Kernel};

/// A change of a graph's operations.
pub(crate) type Change = fn(&mut Vec<Op>);

/// What a call gives to the device: an operation, or a graph with those that it holds.
pub(crate) enum Call<'a> {
    Op(&'a Op),
    Graph(&'a [Op]),
}

/// How long a call takes, beside what it takes anyway.
pub(crate) type Price = fn(Call<'_>) -> Duration;

/// What is wrong with the device, and what it was asked.
#[derive(Default)]
pub(crate) struct Tamper {
    /// What graphs hold in place of what they were given.
    held: Mutex<Option<Change>>,
    /// What they do in place of what they hold. Operations stay of their kind.
    done: Mutex<Option<Change>>,
    price: Mutex<Option<Price>>,
    /// Whether kernels do nothing.
    skips: AtomicBool,
    /// How long a launch of a graph and a look each keep their thread asleep.
    sleep: Mutex<Duration>,
    /// So many looks tell the truth yet, where that ever ends; then all is always done.
    honest_looks: Mutex<Option<usize>>,
    /// Launches of graphs.
    launches: AtomicUsize,
    /// Graphs that there are.
    graphs: AtomicUsize,
}

impl Tamper {
    pub(crate) fn hold(&self, change: Change) {
        *self.held.lock() = Some(change);
    }

    pub(crate) fn run(&self, change: Change) {
        *self.done.lock() = Some(change);
    }

    pub(crate) fn charge(&self, price: Price) {
        *self.price.lock() = Some(price);
    }

    pub(crate) fn skip_kernels(&self) {
        self.skips.store(true, Relaxed);
    }

    pub(crate) fn sleep(&self, time: Duration) {
        *self.sleep.lock() = time;
    }

    /// Says from now on that all is done, whether or not it is.
    pub(crate) fn hurry(&self) {
        self.hurry_after(0);
    }

    /// As [`Tamper::hurry`], after so many looks more.
    pub(crate) fn hurry_after(&self, looks: usize) {
        *self.honest_looks.lock() = Some(looks);
    }

    /// Whether a look tells the truth.
    fn is_honest(&self) -> bool {
        match &mut *self.honest_looks.lock() {
            None => true,
            Some(0) => false,
            Some(looks) => {
                *looks -= 1;
                true
            }
        }
    }

    fn doze(&self) {
        let time = *self.sleep.lock();
        if !time.is_zero() {
            std::thread::sleep(time);
        }
    }

    pub(crate) fn launches(&self) -> usize {
        self.launches.load(Relaxed)
    }

    pub(crate) fn graphs(&self) -> usize {
        self.graphs.load(Relaxed)
    }

    fn pay(&self, call: Call<'_>) {
        let price = *self.price.lock();
        let price = price.map_or(Duration::ZERO, |price| price(call));
        let start = Instant::now();
        while start.elapsed() < price {
            std::hint::spin_loop();
        }
    }

    pub(crate) fn clear(&self) {
        (*self.held.lock(), *self.done.lock()) = (None, None);
    }
}

pub(crate) struct Tampering {
    inner: Arc<dyn Backend>,
    tamper: Arc<Tamper>,
}

impl Tampering {
    pub(crate) fn new(inner: Arc<dyn Backend>, tamper: &Arc<Tamper>) -> Self {
        Tampering {
            inner,
            tamper: Arc::clone(tamper),
        }
    }
}

// SAFETY: it passes every call on to a backend that keeps the contract, with its kernels.
unsafe impl Backend for Tampering {
    fn id(&self) -> BackendId {
        self.inner.id()
    }

    fn device(&self) -> &DeviceInfo {
        self.inner.device()
    }

    fn load(&self, kernel: &Kernel) -> Result<FunctionId> {
        match self.tamper.skips.load(Relaxed) {
            false => self.inner.load(kernel),
            true => self.inner.load(&kernel.clone().twin(|_| {})),
        }
    }

    fn open_slots(
        &self,
        buffers: &[BufferDecl],
        device_slots: usize,
        streams: Streams,
    ) -> Result<Vec<Box<dyn DeviceSlot>>> {
        let wrap = |inner| -> Box<dyn DeviceSlot> {
            Box::new(TamperingSlot {
                inner,
                tamper: Arc::clone(&self.tamper),
                held: Vec::new(),
            })
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

struct TamperingSlot {
    inner: Box<dyn DeviceSlot>,
    tamper: Arc<Tamper>,
    /// What graphs were given, the latest first.
    held: Vec<(GraphId, Vec<Op>)>,
}

impl TamperingSlot {
    /// Makes a graph do something else than it was given.
    fn made(&mut self, made: Result<(GraphId, Built)>) -> Result<(GraphId, Built)> {
        let (graph, built) = made?;
        let given = self.inner.graph_ops(graph)?;
        let mut done = given.clone();
        if let Some(change) = *self.tamper.done.lock() {
            change(&mut done);
        }
        for (node, (done, given)) in done.iter().zip(&given).enumerate() {
            if done != given {
                // SAFETY: the changed operation runs as a twin, which is safe code.
                unsafe { self.inner.set_params(graph, node, done) }?;
            }
        }
        if !self.held.iter().any(|(known, _)| *known == graph) {
            self.tamper.graphs.fetch_add(1, Relaxed);
        }
        self.held.insert(0, (graph, given));
        Ok((graph, built))
    }
}

// SAFETY: every call goes on to a device slot that keeps the contract; what it changes of operations
// runs as twins, which are safe code.
unsafe impl DeviceSlot for TamperingSlot {
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
        self.tamper.pay(Call::Op(op));
        // SAFETY: as the caller vouches for it.
        unsafe { self.inner.enqueue(queue, op) }
    }

    fn join(&mut self, earlier: Queue, later: Queue) -> Result<()> {
        self.inner.join(earlier, later)
    }

    unsafe fn make_graph(
        &mut self,
        source: GraphSource<'_>,
        into: Option<GraphId>,
    ) -> Result<(GraphId, Built)> {
        // SAFETY: as the caller vouches for it.
        let made = unsafe { self.inner.make_graph(source, into) };
        self.made(made)
    }

    unsafe fn set_params(&mut self, graph: GraphId, node: usize, op: &Op) -> Result<()> {
        // SAFETY: as the caller vouches for it.
        unsafe { self.inner.set_params(graph, node, op) }
    }

    fn graph_ops(&self, graph: GraphId) -> Result<Vec<Op>> {
        let held = self.held.iter().find(|(known, _)| *known == graph);
        let mut ops = held.expect("made before").1.clone();
        if let Some(change) = *self.tamper.held.lock() {
            change(&mut ops);
        }
        Ok(ops)
    }

    fn drop_graph(&mut self, graph: GraphId) {
        self.tamper.graphs.fetch_sub(1, Relaxed);
        self.held.retain(|(known, _)| *known != graph);
        self.inner.drop_graph(graph);
    }

    fn launch_graph(&mut self, graph: GraphId) -> Result<()> {
        self.tamper.launches.fetch_add(1, Relaxed);
        let held = self.held.iter().find(|(known, _)| *known == graph);
        let held = held.expect("made before");
        self.tamper.pay(Call::Graph(&held.1));
        self.tamper.doze();
        self.inner.launch_graph(graph)
    }

    fn fence(&mut self) -> Result<()> {
        self.inner.fence()
    }

    fn is_done(&mut self) -> Result<bool> {
        self.tamper.doze();
        match self.tamper.is_honest() {
            true => self.inner.is_done(),
            false => Ok(true),
        }
    }

    fn wait(&mut self) -> Result<()> {
        self.inner.wait()
    }

    fn timestamps(&self) -> Result<tapeloop::backend::Timestamps> {
        self.inner.timestamps()
    }

    fn abandon(&mut self, error: &tapeloop::Error) {
        self.inner.abandon(error);
    }
}
