//! [`Engine`]: a workload on one or more devices, with a thread for each device.

use super::build::{EngineParts, Shrunk, build};
use super::config::{EngineConfig, SubmitOptions, TrySubmitError};
use super::counters::Counters;
use super::dispatcher::Dispatcher;
use super::driver;
use super::ending::Ended;
use super::plan::MemoryPlan;
use super::recorded::record_config;
use super::reentrancy::is_inside_any;
use super::run_results::Undelivered;
use super::stages::Shared;
use super::statistics::{StageThreads, Statistics};
use super::submitting::Submitting;
use super::sync::{JoinHandle, yield_now};
use super::ticket::{Ticket, Tickets};
use super::timeline::Timeline;
use super::uniforms::{Uniforms, changes};
use super::unwinding::catch_and_log;
use crate::backend::{Backend, Choice, CudaOptions, runs_twin, select_with};
#[cfg(doc)]
use crate::error::ErrorKind;
use crate::error::{Error, Result};
use crate::record::DeviceInfo;
use crate::workload::{Completion, ResidentViews, Sink, Workload};
use arrayvec::ArrayVec;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::Arc;
use tapeloop_error::internal::{stack_bytes, thread_error};

/// How many items [`Engine::submit_many`] takes at a time, to lock the queue once for all of them. They lie
/// on the stack.
const ITEMS_AT_ONCE: usize = 64;

/// A workload running on one or more devices.
///
/// docs/ERRORS.md lists what an error of an item, a batch, a device or the engine ends.
///
/// Dropping the engine waits until all submitted items are finished, and then frees everything but
/// what results borrow ([`ReadViews::lease`](crate::workload::ReadViews::lease)); on a thread of its
/// pool it runs the pool's tasks meanwhile. If it is dropped in the code of an
/// engine, its own or another one, by an item that holds the engine for instance, it does not wait;
/// the threads end on their own.
///
/// A child process that was made by a fork has no threads of an engine: there calls fail with an error
/// that says so, and nothing of the engine is dropped.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/double.rs"));
/// # use tapeloop_engine::*;
/// # fn main() -> Result<()> {
/// // `Double` is the workload in the documentation of the trait `Workload`.
/// let engine = Engine::auto(Double::new()?, &EngineConfig::new([1 << 20]))?;
/// let items = (0..100).map(|number| vec![number as f32]);
/// for (number, done) in engine.submit_many(items)?.wait()?.into_iter().enumerate() {
///     assert_eq!(done.result?, [2.0 * number as f32]);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Engine<W: Workload> {
    /// `None` once it is dropped.
    dispatcher: Option<Arc<Dispatcher<W>>>,
    pub(super) threads: Vec<JoinHandle<()>>,
    /// Whether a shutdown was not done in time.
    pub(super) is_unfinished: bool,
    memory: MemoryPlan,
    shrunk: Vec<Shrunk>,
    device: DeviceInfo,
}

impl<W: Workload> Engine<W> {
    /// The memory that an engine with this configuration needs on `devices` devices such as `device`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a configuration that is not valid, [`ErrorKind::Usage`] for a
    /// recording that is not valid, and the errors of [`Workload::record`].
    pub fn memory_plan(
        workload: &W,
        device: &DeviceInfo,
        devices: usize,
        config: &EngineConfig,
    ) -> Result<MemoryPlan> {
        config.check()?;
        let (buckets, _) = record_config(workload, config, device)?;
        let slots = config.slots;
        Ok(MemoryPlan::of_engine(
            &buckets, slots, devices, device, config,
        ))
    }

    /// Records the workload, allocates all memory, makes graphs as far as [`Policy`](crate::Policy) says
    /// so, and starts a thread for each device.
    ///
    /// Small batches are written on the thread that closes them and read on the device's thread. If
    /// `pool` has several threads, a large batch is written and read by another one. On the CPU that is a thread
    /// of `pool`, which should be the one that the backend computes on: it computes the batch too. For a GPU
    /// it is one of the engine's own workers, as many as `pool` has threads; half as many as there are cores
    /// suffice ([`Engine::auto`]). Several threads share a batch if there are at least four for each slot.
    /// The engine waits for it, so other work on the pool must neither submit items, nor wait for tickets,
    /// nor run a source.
    ///
    /// # Errors
    /// - [`ErrorKind::Config`] for a configuration that is not valid.
    /// - [`ErrorKind::Usage`] for a recording that is not valid, for no backend, for backends of different
    ///   kinds, and for a supervised backend that is in use or was given twice.
    /// - [`ErrorKind::Kernel`] for a kernel that cannot be loaded.
    /// - [`ErrorKind::Capacity`] if the memory plan exceeds the budget.
    /// - [`ErrorKind::OutOfMemory`] if memory does not suffice even for the smallest plan.
    /// - The errors of [`Workload::record`] and of the device.
    pub fn new(
        workload: W,
        backends: &[Arc<dyn Backend>],
        pool: Arc<ThreadPool>,
        config: &EngineConfig,
    ) -> Result<Self> {
        let EngineParts {
            shared,
            slots,
            memory,
            shrunk,
        } = build(workload, backends, pool, config)?;
        let device = backends[0].device().clone();
        let (dispatcher, threads) = driver::start(shared, slots, config)?;
        if let Some(replaceable) = &dispatcher.shared.replaceable {
            dispatcher.set_resident(&replaceable.first());
        }
        Ok(Engine {
            dispatcher: Some(dispatcher),
            threads,
            is_unfinished: false,
            memory,
            shrunk,
            device,
        })
    }

    /// [`Engine::open`] on the GPU with the default options, or on the CPU if there is no GPU.
    ///
    /// # Errors
    /// The errors of [`Engine::open`].
    pub fn auto(workload: W, config: &EngineConfig) -> Result<Self> {
        Self::open(workload, Choice::Auto, &CudaOptions::default(), config)
    }

    /// [`Engine::new`] on the device that [`select_with`] opens. [`CudaOptions::device`] names the GPU, and
    /// [`CudaOptions::blocking_wait`] and [`EngineConfig::wait`] set how threads wait for it. The CPU gets
    /// a pool of one thread per core. On a GPU as many workers write and read items as the pool has
    /// threads: half as many as there are cores, so that threads which submit batches and wait for them
    /// have a core to wake on.
    ///
    /// # Errors
    /// The errors of [`Engine::new`], and [`ErrorKind::Unavailable`] for a GPU that cannot be used.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/double.rs"));
    /// # use tapeloop_engine::*;
    /// use tapeloop_engine::backend::{Choice, CudaOptions, DeviceChoice};
    ///
    /// # fn main() -> Result<()> {
    /// let options = CudaOptions {
    ///     device: DeviceChoice::MostFree,
    ///     ..CudaOptions::default()
    /// };
    /// // With `Choice::Auto` the CPU is taken if there is no GPU.
    /// let choice = Choice::Cpu;
    /// let engine = Engine::open(Double::new()?, choice, &options, &EngineConfig::new([100]))?;
    /// assert_eq!(engine.device().backend, "cpu");
    /// # Ok(())
    /// # }
    /// ```
    pub fn open(
        workload: W,
        choice: Choice,
        options: &CudaOptions,
        config: &EngineConfig,
    ) -> Result<Self> {
        let pool = |threads| {
            let pool = ThreadPoolBuilder::new().num_threads(threads);
            let pool = pool.stack_size(stack_bytes()).build();
            pool.map(Arc::new).map_err(thread_error)
        };
        // Rayon reads 0 as the number of cores, or that of RAYON_NUM_THREADS.
        let mut threads = pool(0)?;
        let selected = select_with(choice, &threads, options)?;
        let backend = selected.backend.device().backend;
        tracing::info!(backend, reason = selected.reason);
        if backend != "cpu" {
            // An engine with a pool of one thread has no workers.
            let all = threads.current_num_threads();
            threads = pool(all.min(2).max(all / 2))?;
        }
        Engine::new(workload, &[selected.backend], threads, config)
    }

    /// Submits one item. The thread that closes a batch also writes it, if it is small, and submits
    /// it. Waits while [`EngineConfig::waiting_batches_max`] closed batches wait for a slot.
    ///
    /// # Errors
    /// - [`ErrorKind::Closed`] when the engine has ended, with the reason ([`Engine::ended`]).
    /// - [`ErrorKind::Usage`] in the engine's own code, such as [`Workload::read`], and on a thread of the
    ///   pool that computes its batches, where [`Engine::try_submit`] is allowed; and in a child of the
    ///   process that made the engine.
    ///
    /// The item is dropped then. Errors of the item itself and of its device come with the ticket.
    pub fn submit(&self, item: W::Item) -> Result<Ticket<W>> {
        self.submit_with(item, SubmitOptions::default())
    }

    /// Submits one item with options.
    ///
    /// # Errors
    /// The errors of [`Engine::submit`].
    pub fn submit_with(&self, item: W::Item, options: SubmitOptions) -> Result<Ticket<W>> {
        self.check_outside("submitting", "use try_submit")?;
        let extent = self.shared().extent(&item);
        let submitted = self.dispatcher().submit(item, extent, options, true);
        submitted.map_err(|refused| match refused {
            TrySubmitError::Closed(item, reason) => {
                catch_and_log(|| drop(item));
                reason
            }
            TrySubmitError::Full(_) => unreachable!("it waits for room"),
        })
    }

    /// Submits one item when there is room for it, and waits for that as a task of any executor. The engine
    /// takes the items of such tasks in their order as soon as there is room, also if a task does not run
    /// then. Where threads wait in [`Engine::submit`] too, both get every other place. An item that
    /// [expires](SubmitOptions::expires_at) meanwhile comes back with its ticket at that time. Dropped
    /// before it is ready, this takes the item back as [`Ticket::cancel`] does, and drops it.
    ///
    /// # Errors
    /// The errors of [`Engine::submit`], except that it may be awaited in the engine's own code.
    ///
    /// ```
    /// # use tapeloop_engine::pipeline::SubmitOptions;
    /// # use tapeloop_engine::*;
    /// # async fn one<W: Workload>(engine: &Engine<W>, item: W::Item) -> Result<W::Output> {
    /// let ticket = engine.submit_async(item, SubmitOptions::default()).await?;
    /// // If this task is dropped meanwhile, the engine need not compute the item.
    /// ticket.cancel_on_drop().await?.result
    /// # }
    /// ```
    pub fn submit_async(&self, item: W::Item, options: SubmitOptions) -> Submitting<'_, W> {
        Submitting::new(self, item, options)
    }

    /// Submits items in order, for one handle. It costs less than to submit them one by one. Waits
    /// for room as [`Engine::submit`] does.
    ///
    /// # Errors
    /// The errors of [`Engine::submit`]. The items that were not taken yet are dropped then.
    pub fn submit_many(&self, items: impl IntoIterator<Item = W::Item>) -> Result<Tickets<W>> {
        self.check_outside("submitting", "use try_submit")?;
        self.shared().ended.check()?;
        let mut tickets = Tickets::new();
        // `items` is the caller's code, which must not run while the engine's queue is locked.
        // It ends at its first `None`, also where more would follow, as with `mpsc::TryIter`.
        let mut items = items.into_iter().fuse();
        loop {
            let some = items.by_ref().take(ITEMS_AT_ONCE);
            let some = some.map(|item| {
                let extent = self.shared().extent(&item);
                (item, extent)
            });
            let some: ArrayVec<_, ITEMS_AT_ONCE> = some.collect();
            if some.is_empty() {
                return Ok(tickets);
            }
            self.dispatcher()
                .submit_many(some, |batch, index| tickets.add(batch, index))?;
        }
    }

    /// Submits one item unless [`EngineConfig::waiting_batches_max`] closed batches wait for a slot. Does
    /// not wait for room, so the engine's own code may call it.
    ///
    /// # Errors
    /// The item, with the reason why it was not taken.
    pub fn try_submit(
        &self,
        item: W::Item,
        options: SubmitOptions,
    ) -> Result<Ticket<W>, TrySubmitError<W::Item>> {
        let extent = self.shared().extent(&item);
        self.dispatcher().submit(item, extent, options, false)
    }

    pub(super) fn dispatcher(&self) -> &Arc<Dispatcher<W>> {
        self.dispatcher.as_ref().expect("only `drop` takes it")
    }

    pub(super) fn shared(&self) -> &Shared<W> {
        &self.dispatcher().shared
    }

    pub(super) fn is_in_child(&self) -> bool {
        !self.shared().ended.process().is_current()
    }

    fn check_outside(&self, call: &str, fix: &str) -> Result<()> {
        self.dispatcher().check_outside(call, fix)
    }

    /// Closes the open batch without waiting for it to fill.
    ///
    /// # Errors
    /// The errors of [`Engine::submit`].
    pub fn flush(&self) -> Result<()> {
        self.check_outside("flushing", "flush on another thread, or submit as urgent")?;
        self.dispatcher().flush()
    }

    /// Streams a source through the engine into a sink, in the order of the source, with a bounded
    /// number of items in the engine.
    ///
    /// The sink gets the errors of items and of their batches with the items. It must not wait for
    /// a ticket from before the run. A source must not wait for the results of its own items: a
    /// batch starts only when it is full or the source ends. After an error this returns when the
    /// source has given its next item or has ended, so a source that waits must end.
    ///
    /// # Errors
    /// - The sink's error, or the error that ends the engine meanwhile.
    /// - [`ErrorKind::Closed`] when the engine has ended before, or if one of its threads panicked.
    /// - [`ErrorKind::Usage`] where [`Engine::submit`] has it.
    /// - [`ErrorKind::Io`] if the thread of the source cannot be started.
    ///
    /// # Panics
    /// A panic of the source goes on in the caller.
    pub fn run<S>(&mut self, source: S, sink: &mut impl Sink<W>) -> Result<()>
    where
        S: Iterator<Item = W::Item> + Send,
    {
        self.check_run()?;
        let accept = |done: Undelivered<W>| sink.accept(done.take());
        driver::run_ordered(self.dispatcher(), source, (false, Undelivered::new), accept)
    }

    /// Like [`Engine::run`], but `accept` gets what `map` makes of each item and its result. `map` runs on
    /// the threads that read results, on several at once and in any order, so that what `accept` does
    /// on one thread can be little. It must not wait for the engine. A panic of `map` ends the run. After an
    /// error it may still run for batches that were submitted before.
    ///
    /// # Errors
    /// The errors of [`Engine::run`], and [`ErrorKind::Usage`] if `map` panicked.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/double.rs"));
    /// # use tapeloop_engine::*;
    /// # fn main() -> Result<()> {
    /// let mut engine = Engine::auto(Double::new()?, &EngineConfig::new([1 << 20]))?;
    /// let items = (0..1000).map(|number| vec![number as f32; 10]);
    /// let sum = |done: Completion<Double>| Ok(done.result?.iter().sum::<f32>());
    /// let mut lines = Vec::new();
    /// engine.run_mapped(items, sum, |sum: Result<f32>| {
    ///     lines.push(format!("{}", sum?));
    ///     Ok(())
    /// })?;
    /// assert_eq!(lines[999], "19980");
    /// # Ok(())
    /// # }
    /// ```
    pub fn run_mapped<S, T>(
        &mut self,
        source: S,
        map: impl Fn(Completion<W>) -> T + Send + Sync + 'static,
        accept: impl FnMut(T) -> Result<()>,
    ) -> Result<()>
    where
        S: Iterator<Item = W::Item> + Send,
        T: Send + 'static,
    {
        self.check_run()?;
        driver::run_ordered(self.dispatcher(), source, (true, map), accept)
    }

    fn check_run(&self) -> Result<()> {
        self.check_outside("running a source", "run it on another thread")?;
        self.shared().ended.check()
    }

    /// Sets uniforms ([`Recorder::uniform`](crate::Recorder::uniform)), all of them at once or, if `set`
    /// fails, none. Graphs do not change: the header of a batch has the values.
    ///
    /// Items that were submitted before are computed with the old values, and those that are submitted
    /// from now on with the new ones, also where an item runs again. One that waits for room has those of
    /// the time when there is room for it. To that end a change closes the open
    /// batch ([`Counters::batches_closed_by_uniforms`]); equal values close nothing. A value that differs
    /// for each item belongs in the item. `set` runs before anything changes, and may call the engine.
    ///
    /// # Errors
    /// The errors of `set`, [`ErrorKind::Closed`] when the engine has ended, and
    /// [`ErrorKind::Usage`] in a child of the process that made the engine.
    ///
    /// ```
    /// # use tapeloop_engine::*;
    /// # fn scale<W: Workload>(engine: &Engine<W>) -> Result<()> {
    /// engine.set_uniforms(|uniforms| {
    ///     uniforms.set("factor", 2.0_f32)?;
    ///     uniforms.set("summand", 1.0_f32)
    /// })
    /// # }
    /// ```
    pub fn set_uniforms(&self, set: impl FnOnce(&mut Uniforms<'_>) -> Result<()>) -> Result<()> {
        let changes = changes(self.shared().program.uniforms(), set)?;
        self.dispatcher().set_uniforms(&changes)
    }

    /// Replaces the contents of buffers that were declared with
    /// [`Recorder::replaceable_buffer`](crate::Recorder::replaceable_buffer), such as the weights of a model,
    /// while the engine computes. `write` gets zeros for each of them, takes those that it replaces, and writes
    /// them; the others keep their contents. All that it takes change together, or none if it fails.
    ///
    /// Items that were submitted before are computed with the old contents, and those that are submitted from
    /// now on with the new ones, also where an item runs again. One that waits for room has those of the time
    /// when there is room for it. To that end this closes the open batch.
    ///
    /// Each buffer has two copies on each device. The new contents are copied, on a stream of their own, to the
    /// one that no batch uses, while batches run with the other. So no batch waits, except that the first one
    /// of each bucket of a slot sets the addresses in its graph: parameters of kernels and copies are set one by
    /// one, the call of a library is captured again, and in mode resident a loop is made anew, which takes
    /// milliseconds, as does a graph with timestamps for the next batch that a timeline samples.
    /// This waits for the batches with the contents before the current ones, which have the other copy. A
    /// supervised device keeps both contents on the host too, and a batch may wait while its process copies.
    ///
    /// # Errors
    /// - The errors of `write`.
    /// - [`ErrorKind::Usage`] if no buffer can be replaced, in the engine's own code, on a thread of the pool
    ///   that computes the batches, and in a child of the process that made the engine.
    /// - [`ErrorKind::OutOfMemory`] if the host has no memory for the contents.
    /// - [`ErrorKind::Closed`] when the engine has ended, and the errors of the device.
    ///
    /// ```
    /// # use tapeloop_engine::*;
    /// # struct Model { weights: Buffer<f32> }
    /// # fn reload<W: Workload<Buffers = Model>>(engine: &Engine<W>, weights: &[f32]) -> Result<()> {
    /// engine.replace_resident(|buffers, views| {
    ///     views.take(buffers.weights).copy_from_slice(weights);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    pub fn replace_resident(
        &self,
        write: impl FnOnce(&W::Buffers, &mut ResidentViews<'_>) -> Result<()>,
    ) -> Result<()> {
        self.check_outside(
            "replacing resident buffers",
            "replace them on another thread",
        )?;
        let shared = self.shared();
        shared.ended.check()?;
        let Some(replaceable) = &shared.replaceable else {
            let error = Error::usage("the workload has no resident buffer that can be replaced");
            return Err(error.fix("declare it with Recorder::replaceable_buffer"));
        };
        replaceable.replace(
            &shared.ended,
            |device| shared.devices[device].get().is_some(),
            |views| write(&shared.program.buffers, views),
            |version| self.dispatcher().set_resident(version),
        )?;
        // What closed begins outside of the lock of replacements, as it may run the embedder's code.
        self.dispatcher().start_ready();
        Ok(())
    }

    /// Takes no more items from now on. Submissions that wait for room fail, and what was submitted before
    /// is answered, also if the engine is dropped meanwhile.
    pub fn close(&self) {
        if !self.is_in_child() {
            self.dispatcher().close_to_items();
        }
    }

    /// The error that ended the engine: its last device was lost, or any device that is not supervised; or
    /// a shutdown was not done in time. Items that were submitted before are answered, and no more are taken.
    pub fn ended(&self) -> Option<Error> {
        self.shared().ended.reason()
    }

    /// Awaits the error that ends the engine. It does not borrow the engine. After a shutdown that was not
    /// done in time, and when the engine is dropped, it is [`ErrorKind::Closed`].
    pub fn until_ended(&self) -> Ended {
        Ended::new(&self.shared().ended)
    }

    /// The counters so far.
    pub fn counters(&self) -> Counters {
        self.shared().counters.snapshot()
    }

    /// Where the time went so far, and which stage bounds.
    pub fn statistics(&self) -> Statistics {
        if self.is_in_child() {
            return Statistics::default();
        }
        let workers = self.dispatcher().workers();
        self.shared().statistics(StageThreads::Own { workers })
    }

    /// The timeline so far; `None` if [`EngineConfig::timeline`] is `None`.
    pub fn timeline(&self) -> Option<Timeline> {
        if self.is_in_child() {
            return None;
        }
        self.shared().timeline()
    }

    /// The memory that was allocated.
    pub fn memory(&self) -> &MemoryPlan {
        &self.memory
    }

    /// The reductions that were made because memory ran out; empty if the engine has all that its
    /// configuration asks for.
    pub fn shrunk(&self) -> &[Shrunk] {
        &self.shrunk
    }

    /// The first device.
    pub fn device(&self) -> &DeviceInfo {
        &self.device
    }
}

impl<W: Workload> Drop for Engine<W> {
    /// Waits until all submitted items are finished, then frees everything. In a child of the process
    /// that made the engine it does nothing, as the threads and the memory are the parent's.
    fn drop(&mut self) {
        let Some(dispatcher) = self.dispatcher.take() else {
            return;
        };
        if !dispatcher.shared.ended.process().is_current() {
            std::mem::forget((dispatcher, std::mem::take(&mut self.threads)));
            return;
        }
        catch_and_log(|| dispatcher.close());
        if self.is_unfinished || is_inside_any() || runs_twin() {
            // The threads may wait for this one, and end on their own once it continues. Those of
            // another engine wait for it if they drop that engine at the same time.
            self.threads.clear();
            dispatcher.ends_timer();
        }
        let waits = !self.threads.is_empty();
        for thread in self.threads.drain(..) {
            // The device may compute on the pool, of which this thread may be the only one.
            #[cfg(not(loom))]
            crate::backend::help_until(&dispatcher.shared.pool, || thread.is_finished());
            if thread.join().is_err() {
                tracing::error!("a pipeline thread panicked");
            }
        }
        if waits {
            while !dispatcher.ends_timer() {
                yield_now();
            }
            // Waits until tasks of workers, and threads that helped, have dropped it.
            #[cfg(not(loom))]
            crate::backend::help_until(&dispatcher.shared.pool, || {
                Arc::strong_count(&dispatcher) == 1
            });
            while Arc::strong_count(&dispatcher) > 1 {
                yield_now();
            }
        }
        // Drops the workload, which is the embedder's code.
        catch_and_log(|| drop(dispatcher));
    }
}
