//! The threads of an engine: one for each device, and workers for large batches. The only
//! file that starts threads of the pipeline.

use super::batch::Batch;
use super::breaks_on_panic::BreaksOnPanic;
use super::compute::{Completions, ToDevices};
use super::config::EngineConfig;
use super::dispatcher::Dispatcher;
use super::queue::Queue;
use super::reentrancy::{EngineId, InsideEngine};
use super::run_results::{RunResults, Unconsumed};
use super::slot::{Free, Slot};
use super::stages::Shared;
use super::sync::{JoinHandle, bounded, thread};
use super::ticket::{EngineRef, TicketEngine};
use super::timeline::SpanKind;
use super::unwinding::catch_and_log;
use crate::backend::crate_threads;
use crate::error::{Error, ErrorKind, Result};
use crate::workload::{Completion, Workload};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Instant;
use tapeloop_error::internal::{self, stack_bytes, thread_error};

/// Batches of a run, for each slot, that are in a slot or wait for the consumer of results: with one that
/// waits, the slot can take the next; more would only hold memory while the consumer is slow.
const UNCONSUMED_PER_SLOT: usize = 2;

/// What an engine keeps: its dispatcher, and the completion threads to join.
type Started<W> = (Arc<Dispatcher<W>>, Vec<JoinHandle<()>>);

/// Starts the threads over `slots`. Each device has a thread, so that waiting for a device or
/// restarting it delays no other.
///
/// # Errors
/// [`thread_error`] if a thread cannot be started; those that were started end.
pub(super) fn start<W: Workload>(
    mut shared: Shared<W>,
    slots: Vec<Slot<Free>>,
    config: &EngineConfig,
) -> Result<Started<W>> {
    let count = slots.len();
    // Room for all slots and for a wake.
    let (devices, submitted): (Vec<_>, Vec<_>) =
        shared.devices.iter().map(|_| bounded(count + 1)).unzip();
    let can_be_helped = slots
        .iter()
        .all(|slot| slot.backend().computes_when_asked());
    let cores = shared.pool.current_num_threads();
    // A thread that computes a batch cannot notice that it misses its deadline.
    let computes = can_be_helped && config.policy.deadline.is_none();
    // A pool of one thread has none that could copy while this one goes on.
    shared.workers = if cores < 2 {
        None
    } else if computes {
        Some(Arc::clone(&shared.pool))
    } else if can_be_helped {
        None
    } else {
        Some(Arc::new(start_workers(cores, shared.engine)?))
    };
    let devices = Arc::new(ToDevices::new(devices));
    let dispatcher = Arc::new_cyclic(|this: &Weak<Dispatcher<W>>| {
        let inboxes = if can_be_helped {
            submitted.clone()
        } else {
            Vec::new()
        };
        let owner = EngineRef {
            engine: this.clone() as Weak<dyn TicketEngine<W>>,
            helps: can_be_helped,
        };
        let queue = Queue::new(&shared, slots, config, owner);
        Dispatcher::new(shared, queue, devices, inboxes)
    });
    let mut threads = Vec::new();
    for (device, submitted) in submitted.into_iter().enumerate() {
        let completions = Completions::new(submitted, count, config.wait);
        let run_dispatcher = Arc::clone(&dispatcher);
        let run = move || {
            crate_threads::register();
            let _inside = InsideEngine::enter(run_dispatcher.shared.engine);
            complete(&run_dispatcher, device, completions);
        };
        match thread(format!("tapeloop-device-{device}")).spawn(run) {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                // The threads before it end.
                dispatcher.close();
                return Err(thread_error(error));
            }
        }
    }
    Ok((dispatcher, threads))
}

/// Starts the engine's workers.
///
/// They always count as inside of the engine: a workload may share the writing of an item out to
/// them, and a worker waits for that.
///
/// # Errors
/// [`thread_error`] if a worker cannot be started.
fn start_workers(threads: usize, engine: EngineId) -> Result<ThreadPool> {
    let pool = ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|index| format!("tapeloop-worker-{index}"))
        .stack_size(stack_bytes())
        .start_handler(move |_| {
            crate_threads::register();
            InsideEngine::enter(engine).stay();
        })
        .build();
    pool.map_err(thread_error)
}

/// The completion thread of a device: finishes its batches, in the order in which they are done,
/// and closes the open batch when it is due.
fn complete<W: Workload>(
    dispatcher: &Arc<Dispatcher<W>>,
    device: usize,
    mut completions: Completions<Box<Batch<W>>>,
) {
    let _breaks = BreaksOnPanic::new(dispatcher);
    let shared = &dispatcher.shared;
    // When the open batch is due.
    let mut due: Option<Instant> = None;
    loop {
        if completions.take_submitted() {
            due = dispatcher.handle_wake(device);
        }
        match completions.poll() {
            Some(Err(failed)) if shared.can_restart(&failed) => {
                let finished = dispatcher.without_submissions(device, || {
                    shared.recover(failed, || completions.all_finished())
                });
                finished
                    .into_iter()
                    .for_each(|finished| dispatcher.finish(finished));
            }
            Some(finished) => dispatcher.finish(shared.note_outcome(finished)),
            None if dispatcher.is_over() => return,
            None => {
                let left = due.map(|due| due.saturating_duration_since(Instant::now()));
                match left {
                    Some(left) if left.is_zero() => due = dispatcher.close_due(Instant::now()),
                    left => completions.pause(left),
                }
            }
        }
    }
}

/// The thread that answers items when they expire: a completion thread may be computing a batch then.
pub(super) struct Timer(Option<std::thread::JoinHandle<()>>);

impl Timer {
    /// Starts the thread that answers items which expire. It holds the engine for a moment at a
    /// time, so that the engine can be dropped meanwhile. If the thread cannot be started, items
    /// expire when their batch gets a slot.
    pub(super) fn start<W: Workload>(dispatcher: &Arc<Dispatcher<W>>) -> Self {
        let weak = Arc::downgrade(dispatcher);
        let engine = dispatcher.shared.engine;
        let run = move || {
            crate_threads::register();
            let _inside = InsideEngine::enter(engine);
            while let Some(dispatcher) = weak.upgrade() {
                let breaks = BreaksOnPanic::new(&dispatcher);
                let due = dispatcher.expire_due(Instant::now());
                let is_over = dispatcher.is_over();
                drop(breaks);
                // Drops the workload, which is the embedder's code, if the engine was dropped meanwhile.
                catch_and_log(|| drop(dispatcher));
                match due {
                    _ if is_over => return,
                    None => std::thread::park(),
                    Some(due) => {
                        std::thread::park_timeout(due.saturating_duration_since(Instant::now()));
                    }
                }
            }
        };
        let thread = internal::thread("tapeloop-timer").spawn(run).map_err(|error| {
            tracing::warn!(%error, "items that expire are answered when their batch has a slot");
        });
        Timer(thread.ok())
    }

    /// Tells it to look again when the next item expires, and whether the engine is over.
    pub(super) fn wake(&self) {
        if let Some(thread) = &self.0 {
            thread.thread().unpark();
        }
    }

    /// Whether its thread has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.0.as_ref().is_none_or(|thread| thread.is_finished())
    }
}

/// Lets a run go on without its consumer when it is dropped, even if the consumer panics.
struct StopOnDrop<'a, W: Workload> {
    stop: &'a AtomicBool,
    unconsumed: &'a Unconsumed,
    dispatcher: &'a Arc<Dispatcher<W>>,
}

impl<W: Workload> Drop for StopOnDrop<'_, W> {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.unconsumed.lift();
        self.dispatcher.start_ready();
    }
}

/// Feeds `source` to the engine from a new thread, and passes what `map` makes of the results to
/// `accept` on this thread, until the source ends, `accept` fails or the device fails. `maps` says
/// whether `map` takes a while, so that it belongs on a worker.
///
/// # Errors
/// Those of [`Engine::run`](super::Engine::run).
pub(super) fn run_ordered<W: Workload, S, T: Send + 'static>(
    dispatcher: &Arc<Dispatcher<W>>,
    source: S,
    (maps, map): (bool, impl Fn(Completion<W>) -> T + Send + Sync + 'static),
    mut accept: impl FnMut(T) -> Result<()>,
) -> Result<()>
where
    S: Iterator<Item = W::Item> + Send,
{
    let shared = &dispatcher.shared;
    let unconsumed_max = UNCONSUMED_PER_SLOT * shared.meter.slots();
    let (results, unconsumed, completions) = RunResults::new(unconsumed_max, maps, map);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let produce = || -> Result<u64> {
            let mut sent = 0;
            for item in source {
                if stop.load(Relaxed) {
                    catch_and_log(|| drop(item));
                    break;
                }
                let extent = shared.extent(&item);
                dispatcher.submit_many([(item, extent)], |_, _| ())?;
                sent += 1;
            }
            Ok(sent)
        };
        // Ends the run even if the source panics; otherwise the consumer waits for ever.
        let produce_and_end = || {
            dispatcher.set_run(Some(Arc::new(results)));
            let produced = catch_unwind(AssertUnwindSafe(produce));
            dispatcher.set_run(None);
            produced.unwrap_or_else(|panic| resume_unwind(panic))
        };
        let producer = internal::thread("tapeloop-source")
            .spawn_scoped(scope, produce_and_end)
            .map_err(thread_error)?;
        let consumer = StopOnDrop {
            stop: &stop,
            unconsumed: &unconsumed,
            dispatcher,
        };
        let mut accepted = 0;
        let mut consumed = Ok(());
        while let (Ok(()), Ok(batch)) = (&consumed, completions.recv()) {
            unconsumed.take();
            dispatcher.start_ready();
            consumed = batch.and_then(|mut batch| {
                let sampled = shared.sampler.as_ref().zip(batch.sampled);
                let sampled =
                    sampled.map(|(sampler, batch_key)| (sampler, batch_key, Instant::now()));
                while let Some(result) = batch.pop() {
                    accepted += 1;
                    accept(result)?;
                }
                if let Some((sampler, batch_key, start)) = sampled {
                    sampler.add(batch_key, SpanKind::Take, start, Instant::now());
                }
                Ok(())
            });
        }
        // The source's thread first stops to wait for the limit, and then the channel takes no more.
        drop(consumer);
        drop(completions);
        let sent = producer.join().unwrap_or_else(|panic| resume_unwind(panic));
        consumed?;
        if sent? == accepted {
            Ok(())
        } else {
            Err(Error::new(ErrorKind::Closed, "a pipeline thread panicked"))
        }
    })
}
