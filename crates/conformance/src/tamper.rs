//! A device whose graphs report or run other operations than they were made of, or that is slow.

use crate::forward::{BackendHooks, SlotHooks};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tapeloop_engine::Result;
use tapeloop_engine::backend::Backend;
use tapeloop_engine::backend::contract::{Built, DeviceSlot, FunctionId, GraphId, GraphSource, Op};
use tapeloop_engine::record::Kernel;

/// A change of a graph's operations.
pub type Change = fn(&mut Vec<Op>);

/// What is wrong with the device, and what it was asked. [`BackendHooks::around`] puts it around
/// a backend.
#[derive(Default)]
pub struct Tamper {
    /// How the operations that a graph reports differ from those that it was made of.
    reported_change: Mutex<Option<Change>>,
    /// How the operations that a graph runs differ from those that it was made of; each keeps its kind.
    run_change: Mutex<Option<Change>>,
    /// Whether kernels do nothing.
    skips: AtomicBool,
    /// How long a launch of a graph, and a question whether work is done, keep their thread asleep.
    sleep: Mutex<Duration>,
    /// The launches of graphs that still run; later ones do nothing. `None`: all run.
    launches_left: Mutex<Option<usize>>,
    /// Launches of graphs.
    launches: AtomicUsize,
}

impl Tamper {
    /// From now on, reading a graph's operations returns changed ones.
    pub fn hold(&self, change: Change) {
        *self.reported_change.lock() = Some(change);
    }

    /// Graphs that are made from now on run changed operations.
    pub fn run(&self, change: Change) {
        *self.run_change.lock() = Some(change);
    }

    /// Kernels that are loaded from now on do nothing, as far as they run as twins.
    pub fn skip_kernels(&self) {
        self.skips.store(true, Relaxed);
    }

    /// A launch of a graph, and a question whether work is done, take this long from now on.
    pub fn sleep(&self, time: Duration) {
        *self.sleep.lock() = time;
    }

    /// Launches of graphs do nothing after so many more.
    pub fn skip_launches_after(&self, launches: usize) {
        *self.launches_left.lock() = Some(launches);
    }

    /// Whether this launch of a graph does what it should. Counts it if launches are numbered.
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

    /// Sleeps as long as [`Tamper::sleep`] was told.
    fn doze(&self) {
        let time = *self.sleep.lock();
        if !time.is_zero() {
            std::thread::sleep(time);
        }
    }

    /// How many graphs were launched.
    pub fn launches(&self) -> usize {
        self.launches.load(Relaxed)
    }

    /// Takes both changes back.
    pub fn clear(&self) {
        (*self.reported_change.lock(), *self.run_change.lock()) = (None, None);
    }
}

impl BackendHooks for Arc<Tamper> {
    type Slot = TamperSlot;

    fn slot(&self, _: &[Box<dyn DeviceSlot>]) -> TamperSlot {
        TamperSlot {
            tamper: Arc::clone(self),
            made_of: Vec::new(),
        }
    }

    fn load(&self, inner: &dyn Backend, kernel: &Kernel) -> Result<FunctionId> {
        if self.skips.load(Relaxed) {
            inner.load(&kernel.clone().twin(|_| {}))
        } else {
            inner.load(kernel)
        }
    }
}

/// A slot of a device with a [`Tamper`].
pub struct TamperSlot {
    tamper: Arc<Tamper>,
    /// The operations that each graph was made of, the latest graph first.
    made_of: Vec<(GraphId, Vec<Op>)>,
}

impl TamperSlot {
    /// Notes what a graph was made of, and gives its nodes the changed operations to run.
    fn change_made(
        &mut self,
        inner: &mut dyn DeviceSlot,
        (graph, built): (GraphId, Built),
    ) -> Result<(GraphId, Built)> {
        let given = inner.graph_ops(graph)?;
        let mut done = given.clone();
        if let Some(change) = *self.tamper.run_change.lock() {
            change(&mut done);
        }
        for (node, (done, given)) in done.iter().zip(&given).enumerate() {
            if done != given {
                // SAFETY: the changed operation runs as a twin, which is safe code, or it is a kernel of a
                // scenario that was given another number.
                unsafe { inner.set_params(graph, node, done) }?;
            }
        }
        self.made_of.insert(0, (graph, given));
        Ok((graph, built))
    }

    /// The operations that the latest graph of this id was made of.
    fn made_of(&self, graph: GraphId) -> &Vec<Op> {
        let made_of = self.made_of.iter().find(|(known, _)| *known == graph);
        &made_of.expect("made before").1
    }
}

impl SlotHooks for TamperSlot {
    unsafe fn make_graph(
        &mut self,
        inner: &mut dyn DeviceSlot,
        source: GraphSource<'_>,
        into: Option<GraphId>,
    ) -> Result<(GraphId, Built)> {
        // SAFETY: the caller keeps the same contract.
        let made = unsafe { inner.make_graph(source, into) }?;
        self.change_made(inner, made)
    }

    fn graph_ops(&self, _: &dyn DeviceSlot, graph: GraphId) -> Result<Vec<Op>> {
        let mut ops = self.made_of(graph).clone();
        if let Some(change) = *self.tamper.reported_change.lock() {
            change(&mut ops);
        }
        Ok(ops)
    }

    fn drop_graph(&mut self, inner: &mut dyn DeviceSlot, graph: GraphId) {
        self.made_of.retain(|(known, _)| *known != graph);
        inner.drop_graph(graph);
    }

    fn launch_graph(&mut self, inner: &mut dyn DeviceSlot, graph: GraphId) -> Result<()> {
        self.tamper.launches.fetch_add(1, Relaxed);
        self.tamper.doze();
        if self.tamper.runs() {
            inner.launch_graph(graph)
        } else {
            Ok(())
        }
    }

    fn is_done(&mut self, inner: &mut dyn DeviceSlot) -> Result<bool> {
        self.tamper.doze();
        inner.is_done()
    }
}
