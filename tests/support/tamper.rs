//! A device that holds, or does, something else than it was given, or takes its time.
#![allow(dead_code, reason = "each test binary uses its part")]

use crate::forward::{BackendHooks, SlotHooks};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tapeloop::Result;
use tapeloop::backend::contract::{Built, DeviceSlot, FunctionId, GraphId, GraphSource, Op};
use tapeloop::backend::{Backend, Residency};
use tapeloop::record::Kernel;

/// A change of a graph's operations.
pub(crate) type Change = fn(&mut Vec<Op>);

/// What a call gives to the device: an operation, or a graph with those that it holds.
pub(crate) enum Call<'a> {
    Op(&'a Op),
    Graph(&'a [Op]),
}

/// How much longer a call takes.
pub(crate) type Price = fn(Call<'_>) -> Duration;

/// What is wrong with the device, and what it was asked. [`BackendHooks::around`] puts it around
/// a backend.
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
    /// So many launches of graphs run yet, where that ever ends; then they do nothing.
    launches_left: Mutex<Option<usize>>,
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

    /// Calls have a price from now on. Loops make none, so the device then has no loops.
    pub(crate) fn charge(&self, price: Price) {
        *self.price.lock() = Some(price);
    }

    pub(crate) fn skip_kernels(&self) {
        self.skips.store(true, Relaxed);
    }

    pub(crate) fn sleep(&self, time: Duration) {
        *self.sleep.lock() = time;
    }

    /// Launches of graphs do nothing after so many more.
    pub(crate) fn skip_launches_after(&self, launches: usize) {
        *self.launches_left.lock() = Some(launches);
    }

    /// Whether a launch of a graph does what it should.
    fn runs(&self) -> bool {
        match &mut *self.launches_left.lock() {
            None => true,
            Some(0) => false,
            Some(launches) => {
                *launches -= 1;
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

impl BackendHooks for Arc<Tamper> {
    type Slot = TamperSlot;

    fn slot(&self, _: &[Box<dyn DeviceSlot>]) -> TamperSlot {
        TamperSlot {
            tamper: Arc::clone(self),
            held: Vec::new(),
        }
    }

    fn load(&self, inner: &dyn Backend, kernel: &Kernel) -> Result<FunctionId> {
        match self.skips.load(Relaxed) {
            false => inner.load(kernel),
            true => inner.load(&kernel.clone().twin(|_| {})),
        }
    }
}

pub(crate) struct TamperSlot {
    tamper: Arc<Tamper>,
    /// The operations that each graph was given, the latest first.
    held: Vec<(GraphId, Vec<Op>)>,
}

impl TamperSlot {
    /// Makes a graph do something else than it was given.
    fn made(
        &mut self,
        inner: &mut dyn DeviceSlot,
        (graph, built): (GraphId, Built),
    ) -> Result<(GraphId, Built)> {
        let given = inner.graph_ops(graph)?;
        let mut done = given.clone();
        if let Some(change) = *self.tamper.done.lock() {
            change(&mut done);
        }
        for (node, (done, given)) in done.iter().zip(&given).enumerate() {
            if done != given {
                // SAFETY: the changed operation runs as a twin, which is safe code.
                unsafe { inner.set_params(graph, node, done) }?;
            }
        }
        if !self.held.iter().any(|(known, _)| *known == graph) {
            self.tamper.graphs.fetch_add(1, Relaxed);
        }
        self.held.insert(0, (graph, given));
        Ok((graph, built))
    }

    fn held(&self, graph: GraphId) -> &Vec<Op> {
        let held = self.held.iter().find(|(known, _)| *known == graph);
        &held.expect("made before").1
    }
}

impl SlotHooks for TamperSlot {
    unsafe fn enqueue(&mut self, inner: &mut dyn DeviceSlot, op: &Op) -> Result<()> {
        self.tamper.pay(Call::Op(op));
        // SAFETY: the caller keeps the same contract.
        unsafe { inner.enqueue(op) }
    }

    unsafe fn make_graph(
        &mut self,
        inner: &mut dyn DeviceSlot,
        source: GraphSource<'_>,
        into: Option<GraphId>,
    ) -> Result<(GraphId, Built)> {
        // SAFETY: the caller keeps the same contract.
        let made = unsafe { inner.make_graph(source, into) }?;
        self.made(inner, made)
    }

    fn graph_ops(&self, _: &dyn DeviceSlot, graph: GraphId) -> Result<Vec<Op>> {
        let mut ops = self.held(graph).clone();
        if let Some(change) = *self.tamper.held.lock() {
            change(&mut ops);
        }
        Ok(ops)
    }

    fn drop_graph(&mut self, inner: &mut dyn DeviceSlot, graph: GraphId) {
        self.tamper.graphs.fetch_sub(1, Relaxed);
        self.held.retain(|(known, _)| *known != graph);
        inner.drop_graph(graph);
    }

    fn launch_graph(&mut self, inner: &mut dyn DeviceSlot, graph: GraphId) -> Result<()> {
        self.tamper.launches.fetch_add(1, Relaxed);
        self.tamper.pay(Call::Graph(self.held(graph)));
        self.tamper.doze();
        match self.tamper.runs() {
            true => inner.launch_graph(graph),
            false => Ok(()),
        }
    }

    fn make_resident(
        &mut self,
        inner: &mut dyn DeviceSlot,
        graph: GraphId,
        residency: Residency,
    ) -> Result<bool> {
        match *self.tamper.price.lock() {
            None => inner.make_resident(graph, residency),
            Some(_) => Ok(false),
        }
    }

    fn is_done(&mut self, inner: &mut dyn DeviceSlot) -> Result<bool> {
        self.tamper.doze();
        inner.is_done()
    }
}
