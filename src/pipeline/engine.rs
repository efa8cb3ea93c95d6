//! The engine: a workload on one or more devices.

use super::build::{Built, Shrunk, build};
use super::counters::Counters;
use super::driver::{self, Intake, NotSent};
use super::plan::MemoryPlan;
use super::recorded::record_buckets;
use super::reentrancy::{check_outside, is_inside};
use super::ring::Wait;
use super::stages::Shared;
use super::statistics::{Statistics, Threads};
use super::sync::JoinHandle;
use super::ticket::Ticket;
use super::timeline::{Timeline, TimelineConfig};
use crate::backend::{Backend, Choice, select};
use crate::error::{Error, ErrorKind, Result};
use crate::record::Scalar;
use crate::replay::{Choices, Chosen, Policy};
use crate::workload::{DeviceInfo, Extent, Sink, Workload};
use rayon::ThreadPool;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The most slots of one device.
pub const SLOTS_MAX: usize = 64;

/// Settings of an engine.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Slots of each device; 3 keep upload, compute and download busy at once.
    pub slots: usize,
    /// Graph replay or plain launches, and what belongs to that.
    pub policy: Policy,
    /// A batch closes before it exceeds this. Items that take no room, rejected ones
    /// among them, close it after 65,536 of them.
    pub batch: Extent,
    /// Capacities that batches are recorded for, smallest first; a batch runs in
    /// the first that holds it. The last bounds the largest item.
    pub buckets: Vec<Extent>,
    /// The longest that a submitted item waits for its batch to fill.
    pub batch_wait: Duration,
    /// The most device and pinned memory in bytes, if there is a budget.
    ///
    /// A plan within the budget is taken as it is or not at all. Without one, where
    /// memory is short, the engine takes fewer slots, then a smaller largest bucket,
    /// down to one slot and a bucket that holds a batch; see [`Engine::shrunk`].
    pub memory_bytes_max: Option<u64>,
    /// How to wait for the device.
    pub wait: Wait,
    /// How often a supervised device may be started again after it was lost, starts that
    /// failed because the new process ended included.
    pub restarts_max: u64,
    /// Which batches a timeline is taken of; `None` takes none, and costs nothing.
    pub timeline: Option<TimelineConfig>,
}

impl EngineConfig {
    /// Three slots, graph replay, and one bucket: the batch itself.
    pub fn new(batch: impl Into<Extent>) -> Self {
        let batch = batch.into();
        EngineConfig {
            slots: 3,
            policy: Policy::default(),
            batch,
            buckets: vec![batch],
            batch_wait: Duration::from_millis(2),
            memory_bytes_max: None,
            wait: Wait::default(),
            restarts_max: 1000,
            timeline: None,
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        if !(1..=SLOTS_MAX).contains(&self.slots) {
            return Err(Error::config(format!(
                "slots = {} is not 1 to {SLOTS_MAX}",
                self.slots
            )));
        }
        self.policy.check()?;
        self.timeline.map_or(Ok(()), |timeline| timeline.check())?;
        match self.buckets.last() {
            Some(largest) if self.batch.fits(*largest) => Ok(()),
            _ => Err(Error::config(format!(
                "no bucket holds a batch of {}",
                self.batch
            ))),
        }
    }
}

/// How one item is submitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubmitOptions {
    /// Goes before the items without it that still wait for a batch, and closes its
    /// batch at once. After eight urgent items in a row one of the others has its
    /// turn.
    pub urgent: bool,
    /// The item's batch closes at this moment at the latest, full or not.
    pub deadline: Option<Instant>,
}

impl SubmitOptions {
    fn closes_at(self) -> Option<Instant> {
        match self.urgent {
            true => Some(Instant::now()),
            false => self.deadline,
        }
    }
}

/// Why [`Engine::try_submit`] did not take an item, with the item.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TrySubmitError<I> {
    /// The intake is full: try again later.
    Full(I),
    /// The engine has stopped.
    Closed(I),
}

impl<I> TrySubmitError<I> {
    /// The item.
    pub fn into_item(self) -> I {
        match self {
            TrySubmitError::Full(item) | TrySubmitError::Closed(item) => item,
        }
    }
}

impl<I> fmt::Display for TrySubmitError<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TrySubmitError::Full(_) => "the engine's intake is full",
            TrySubmitError::Closed(_) => "the engine has stopped",
        })
    }
}

impl<I> fmt::Debug for TrySubmitError<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TrySubmitError::Full(_) => "Full",
            TrySubmitError::Closed(_) => "Closed",
        })
    }
}

impl<I> std::error::Error for TrySubmitError<I> {}

/// A workload running on one or more devices.
///
/// What an error of a batch, a device or the engine ends is in docs/ERRORS.md.
///
/// Dropping the last handle finishes what was submitted. Dropped in the engine's own
/// code (by an item that holds the engine, say) it does not wait for that: the
/// engine's threads end by themselves.
pub struct Engine<W: Workload> {
    shared: Arc<Shared<W>>,
    intake: Option<Intake<W>>,
    threads: Vec<JoinHandle<()>>,
    choices: Vec<Choices>,
    memory: MemoryPlan,
    shrunk: Vec<Shrunk>,
    device: DeviceInfo,
}

impl<W: Workload> Engine<W> {
    /// What an engine with this configuration will take on one such device, without
    /// taking it.
    ///
    /// # Errors
    /// What is wrong with the configuration or the recording.
    pub fn memory_plan(
        workload: &W,
        device: &DeviceInfo,
        config: &EngineConfig,
    ) -> Result<MemoryPlan> {
        config.check()?;
        let (buckets, _) = record_buckets(workload, &config.buckets, device)?;
        Ok(MemoryPlan::new(
            buckets.largest().recording.buffers(),
            config.slots,
            device.shares_host_memory,
        ))
    }

    /// Records the workload, takes all memory, captures all graphs, and starts
    /// the stages. `pool` writes and reads items; it should be the one that a
    /// CPU backend computes on. The stages wait for it, so work that others run on it
    /// must neither submit nor wait for tickets.
    ///
    /// # Errors
    /// What is wrong with the configuration or the recording, a kernel that
    /// cannot be loaded, a budget that does not hold, memory that is not there
    /// even for the least; [`ErrorKind::Usage`] for a supervised backend that an engine
    /// or a pipeline has already, or that is named twice.
    pub fn new(
        workload: W,
        backends: &[Arc<dyn Backend>],
        pool: Arc<ThreadPool>,
        config: &EngineConfig,
    ) -> Result<Self> {
        let Built {
            shared,
            slots,
            choices,
            memory,
            shrunk,
        } = build(workload, backends, pool, config)?;
        let shared = Arc::new(shared);
        let device = backends[0].device().clone();
        let (intake, threads) = driver::start(&shared, slots, config.wait)?;
        Ok(Engine {
            shared,
            intake: Some(intake),
            threads,
            choices,
            memory,
            shrunk,
            device,
        })
    }

    /// [`Engine::new`] on the GPU, or where there is none on the CPU, with a pool
    /// of one thread a core.
    ///
    /// # Errors
    /// As [`Engine::new`], and [`ErrorKind::Unavailable`] for a GPU that is there
    /// and cannot be used.
    pub fn auto(workload: W, config: &EngineConfig) -> Result<Self> {
        let pool = rayon::ThreadPoolBuilder::new().build();
        let pool = Arc::new(pool.map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?);
        let selected = select(Choice::Auto, &pool)?;
        tracing::info!(
            backend = selected.backend.device().backend,
            reason = selected.reason
        );
        Engine::new(workload, &[selected.backend], pool, config)
    }

    /// Submits one item. Blocks while the intake is full.
    ///
    /// # Errors
    /// [`ErrorKind::Closed`] when the stages have ended. [`ErrorKind::Usage`] in the
    /// engine's own code, such as [`Workload::read`], which may use
    /// [`Engine::try_submit`]; the item is dropped. What is wrong with the item
    /// itself, and a device that has failed, come with its ticket.
    pub fn submit(&self, item: W::Item) -> Result<Ticket<W>> {
        self.submit_with(item, SubmitOptions::default())
    }

    /// Submits one item with options.
    ///
    /// # Errors
    /// As [`Engine::submit`].
    pub fn submit_with(&self, item: W::Item, options: SubmitOptions) -> Result<Ticket<W>> {
        self.check_outside("to submit", "use try_submit")?;
        let extent = self.shared.extent(&item);
        let (ticket, reply) = Ticket::new(&self.shared.cells);
        let deadline = options.closes_at();
        self.intake()
            .send(options.urgent, item, extent, reply, deadline)?;
        Ok(ticket)
    }

    /// Submits one item unless the intake is full. It never waits, and so may be called
    /// in the engine's own code too.
    ///
    /// # Errors
    /// The item, with why it was not taken.
    pub fn try_submit(
        &self,
        item: W::Item,
        options: SubmitOptions,
    ) -> Result<Ticket<W>, TrySubmitError<W::Item>> {
        let extent = self.shared.extent(&item);
        let (ticket, reply) = Ticket::new(&self.shared.cells);
        let deadline = options.closes_at();
        let sent = self
            .intake()
            .try_send(options.urgent, item, extent, reply, deadline);
        sent.map(|()| ticket).map_err(|refused| match refused {
            NotSent::Full(item) => TrySubmitError::Full(item),
            NotSent::Closed(item) => TrySubmitError::Closed(item),
        })
    }

    fn check_outside(&self, what: &str, fix: &str) -> Result<()> {
        check_outside(self.shared.engine, what, fix)
    }

    /// Closes the open batch without waiting for it to fill.
    ///
    /// # Errors
    /// [`ErrorKind::Closed`] when the engine has stopped, [`ErrorKind::Usage`] in the
    /// engine's own code.
    pub fn flush(&self) -> Result<()> {
        self.check_outside("to flush", "flush on another thread, or submit as urgent")?;
        self.intake().flush()
    }

    /// Streams a source through the engine into a sink, in the source's order,
    /// with a bounded number of items on the way.
    ///
    /// An item's own failure goes to the sink with the item, as does that of its
    /// batch. The sink must not wait for a ticket that was submitted before the run. A
    /// source that waits for the results of its own items may wait for ever, as a batch
    /// starts when it is full or when the source ends.
    ///
    /// # Errors
    /// The sink's error, what ended the engine, or [`ErrorKind::Usage`] in the engine's
    /// own code.
    pub fn run<S>(&mut self, source: S, sink: &mut impl Sink<W>) -> Result<()>
    where
        S: Iterator<Item = W::Item> + Send,
    {
        self.check_outside("to run a source", "run it on another thread")?;
        let accept = |completion| sink.accept(completion);
        driver::run_ordered(self.intake(), &self.shared, source, accept)
    }

    /// Sets a uniform of the recording for the batches that are filled from here
    /// on. Graphs stay as they are: the value travels in the header.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a name that is not there and for another type.
    pub fn set_uniform(&self, name: &str, value: impl Into<Scalar>) -> Result<()> {
        self.shared.program.set_uniform(name, value.into())
    }

    /// Replaces the buckets by at most `count` that fit the sizes of the latest
    /// batches, and returns their capacities. The largest stays, and with it the
    /// memory; each slot makes the new ones ready at its next batch.
    ///
    /// # Errors
    /// What is wrong with the recording of a new bucket; then the old ones stay.
    pub fn fit_buckets(&self, count: usize) -> Result<Vec<Extent>> {
        self.shared.fit_buckets(count)
    }

    /// The sizes of the latest batches, at most 1,024 of them, oldest first.
    pub fn sizes_seen(&self) -> Vec<Extent> {
        self.shared.sizes.to_vec()
    }

    /// What [`Mode::Auto`](crate::replay::Mode::Auto) chose so far for the
    /// buckets as they are, by device and bucket; nothing under another policy.
    pub fn chosen(&self) -> Vec<Chosen> {
        Choices::of_devices(&self.choices)
    }

    /// What the engine did so far.
    pub fn counters(&self) -> Counters {
        self.shared.counters.snapshot()
    }

    /// Where the time went so far, and which stage bounds.
    pub fn statistics(&self) -> Statistics {
        self.shared.statistics(Threads::Own)
    }

    /// The timeline so far, if the configuration asks for one.
    pub fn timeline(&self) -> Option<Timeline> {
        self.shared.timeline()
    }

    /// The memory that it took.
    pub fn memory(&self) -> &MemoryPlan {
        &self.memory
    }

    /// What it did without, as memory was short; nothing, if it has all that the
    /// configuration asks for.
    pub fn shrunk(&self) -> &[Shrunk] {
        &self.shrunk
    }

    /// The first device.
    pub fn device(&self) -> &DeviceInfo {
        &self.device
    }

    pub(super) fn intake(&self) -> &Intake<W> {
        self.intake.as_ref().expect("taken by drop only")
    }
}

impl<W: Workload> Drop for Engine<W> {
    /// Finishes what was submitted, then frees everything.
    fn drop(&mut self) {
        self.intake = None;
        if is_inside(self.shared.engine) {
            // They wait for this thread: they end by themselves once it goes on.
            self.threads.clear();
        }
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a pipeline thread panicked");
            }
        }
    }
}
