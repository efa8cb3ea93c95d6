//! Runs the stages on threads, with bounded channels between them. The only file that starts
//! pipeline threads.

use super::batch::{Batch, Batcher, Ordered, RunBatch, RunSender, unwinding};
use super::compute::{Completions, Next, ToDevice};
use super::counters::add_since;
use super::reentrancy::{EngineId, InsideEngine};
use super::ring::{Finished, Reorder, Wait};
use super::slot::{Free, Slot};
use super::stages::{Given, Shared};
use super::sync::{
    Builder, JoinHandle, Received, Receiver, Sender, TrySendError, bounded, bounded_pair, receive,
};
use super::ticket::Reply;
use crate::backend::crate_threads;
use crate::error::{Error, ErrorKind, Result};
use crate::workload::{Completion, Extent, Workload};
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

/// The largest number of items that wait for the upload stage in each of its two channels: enough
/// that the next batch's items arrive while it fills a slot.
const INTAKE_ITEMS_MAX: usize = 64;

/// The most threads that write a batch, stage one among them.
const FILL_THREADS_MAX: usize = 4;

/// The largest number of urgent items in a row before one other item is taken.
const URGENT_ITEMS_MAX: usize = 8;

/// The caller's end of the upload stage's channels.
pub(super) struct Intake<W: Workload> {
    normal: Sender<Message<W>>,
    urgent: Sender<Message<W>>,
}

enum Message<W: Workload> {
    Item {
        item: W::Item,
        extent: Result<Extent>,
        reply: Reply<W>,
        deadline: Option<Instant>,
    },
    Flush,
    /// Closes the open batch. The next batches belong to this run, or to none.
    Results(Option<RunSender<W>>),
}

/// Why an item was not taken.
pub(super) enum NotSent<I> {
    Full(I),
    Closed(I),
}

impl<W: Workload> Intake<W> {
    pub(super) fn send(
        &self,
        urgent: bool,
        item: W::Item,
        extent: Result<Extent>,
        reply: Reply<W>,
        deadline: Option<Instant>,
    ) -> Result<()> {
        let message = Message::Item {
            item,
            extent,
            reply,
            deadline,
        };
        let sent = self.channel(urgent).send(message);
        sent.map_err(|unsent| {
            unwinding(|| drop(unsent));
            closed()
        })
    }

    /// [`Intake::send`] without waiting for room in the channel.
    pub(super) fn try_send(
        &self,
        urgent: bool,
        item: W::Item,
        extent: Result<Extent>,
        reply: Reply<W>,
        deadline: Option<Instant>,
    ) -> Result<(), NotSent<W::Item>> {
        let message = Message::Item {
            item,
            extent,
            reply,
            deadline,
        };
        let item_of = |message| match message {
            Message::Item { item, .. } => item,
            Message::Flush | Message::Results(_) => unreachable!("an item was sent"),
        };
        let sent = self.channel(urgent).try_send(message);
        sent.map_err(|error| match error {
            TrySendError::Full(message) => NotSent::Full(item_of(message)),
            TrySendError::Disconnected(message) => NotSent::Closed(item_of(message)),
        })
    }

    fn channel(&self, urgent: bool) -> &Sender<Message<W>> {
        if urgent { &self.urgent } else { &self.normal }
    }

    pub(super) fn flush(&self) -> Result<()> {
        self.normal.send(Message::Flush).map_err(|_| closed())
    }

    pub(super) fn results(&self, results: Option<RunSender<W>>) -> Result<()> {
        self.normal
            .send(Message::Results(results))
            .map_err(|_| closed())
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the engine has stopped")
}

/// Starts the stages over `slots`: one thread for the first stage, one for the last, and one for
/// each device between them, so that waiting for a device or restarting it delays no other.
pub(super) fn start<W: Workload>(
    shared: &Arc<Shared<W>>,
    slots: Vec<Slot<Free>>,
    wait: Wait,
) -> Result<(Intake<W>, Vec<JoinHandle<()>>)> {
    let count = slots.len();
    // No channel of slots needs more room than there are slots.
    let (free, free_slots) = bounded(count);
    let (finished, finished_slots) = bounded(count);
    for slot in slots {
        let sent = free.send(slot);
        assert!(sent.is_ok(), "its receiver is here");
    }
    let mut threads = Vec::new();
    let mut submitted = Vec::new();
    for device in 0..shared.devices.len() {
        let (to_device, submitted_slots) = bounded(count);
        submitted.push(to_device);
        let compute = Compute {
            shared: Arc::clone(shared),
            device,
            completions: Completions::new(submitted_slots, count, wait),
            finished: finished.clone(),
            free: free.clone(),
        };
        let work = |_: &Shared<W>| compute.run();
        threads.push(spawn("tapeloop-compute", shared, None, work)?);
    }
    let ((normal, normal_items), (urgent, urgent_items)) = bounded_pair(INTAKE_ITEMS_MAX);
    let fill_pool = fill_pool(shared.pool.current_num_threads(), shared.engine)?;
    let upload = Upload {
        shared: Arc::clone(shared),
        pool: Arc::clone(fill_pool.as_ref().unwrap_or(&shared.pool)),
        normal: normal_items,
        urgent: urgent_items,
        urgent_in_a_row: 0,
        free: free_slots,
        submitted,
        finished,
        results: None,
        ordered_batches: 0,
    };
    let work = |_: &Shared<W>| upload.run();
    threads.push(spawn("tapeloop-upload", shared, fill_pool, work)?);
    let download = move |shared: &Shared<W>| deliver(shared, &finished_slots, &free);
    threads.push(spawn("tapeloop-unpack", shared, None, download)?);
    Ok((Intake { normal, urgent }, threads))
}

/// The pool that stage one runs in, if the engine's pool has several threads. Stage one writes
/// batches itself and its pool helps, so it waits for no thread that has yet to wake up.
///
/// All its threads count as inside of the engine: a workload may share the writing of an item out
/// to them, and stage one waits for that.
fn fill_pool(threads: usize, engine: EngineId) -> Result<Option<Arc<ThreadPool>>> {
    let threads = threads.min(FILL_THREADS_MAX);
    if threads < 2 {
        return Ok(None);
    }
    let pool = ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|index| format!("tapeloop-fill-{index}"))
        .start_handler(move |_| InsideEngine::enter(engine).stay())
        .build();
    let refused = |error: ThreadPoolBuildError| Error::new(ErrorKind::Io, error.to_string());
    pool.map(|pool| Some(Arc::new(pool))).map_err(refused)
}

/// Runs a stage on a thread, and in `pool` if there is one.
fn spawn<W: Workload>(
    name: &str,
    shared: &Arc<Shared<W>>,
    pool: Option<Arc<ThreadPool>>,
    work: impl FnOnce(&Shared<W>) + Send + 'static,
) -> Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    let stage = move || {
        crate_threads::register();
        let _inside = InsideEngine::enter(shared.engine);
        work(&shared);
    };
    let run = move || match pool {
        Some(pool) => pool.install(stage),
        None => stage(),
    };
    Builder::new()
        .name(name.to_owned())
        .spawn(run)
        .map_err(Error::io)
}

/// Stage one: forms batches, fills slots, submits them.
struct Upload<W: Workload> {
    shared: Arc<Shared<W>>,
    /// Writes large batches.
    pool: Arc<ThreadPool>,
    normal: Receiver<Message<W>>,
    urgent: Receiver<Message<W>>,
    urgent_in_a_row: usize,
    free: Receiver<Slot<Free>>,
    /// By device.
    submitted: Vec<Sender<ToDevice<Batch<W>>>>,
    finished: Sender<Finished<Batch<W>>>,
    results: Option<RunSender<W>>,
    ordered_batches: u64,
}

impl<W: Workload> Upload<W> {
    fn run(mut self) {
        let mut batcher = self.shared.batcher();
        loop {
            // A run closes its batches by size only, not by time.
            let closes_at = batcher.closes_at().filter(|_| self.results.is_none());
            let normal_first = self.urgent_in_a_row >= URGENT_ITEMS_MAX;
            match receive(&self.urgent, &self.normal, normal_first, closes_at) {
                Received::Urgent(message) => {
                    self.urgent_in_a_row += 1;
                    self.take(&mut batcher, message);
                }
                Received::Message(message) => {
                    self.urgent_in_a_row = 0;
                    self.take(&mut batcher, message);
                }
                Received::Due => self.flush(&mut batcher),
                Received::Closed => break,
            }
        }
        self.flush(&mut batcher);
    }

    fn take(&mut self, batcher: &mut Batcher<W>, message: Message<W>) {
        match message {
            Message::Item {
                item,
                extent,
                reply,
                deadline,
            } => {
                for batch in batcher.push(item, extent, reply, Instant::now(), deadline) {
                    self.dispatch(batcher, batch);
                }
            }
            Message::Flush => {
                // Urgent items that were submitted before the flush are in the other channel, which
                // holds at most this many.
                for _ in 0..INTAKE_ITEMS_MAX {
                    match self.urgent.try_recv() {
                        Ok(urgent) => self.take(batcher, urgent),
                        Err(_) => break,
                    }
                }
                self.flush(batcher);
            }
            Message::Results(results) => {
                self.take(batcher, Message::Flush);
                self.results = results;
            }
        }
    }

    fn flush(&mut self, batcher: &mut Batcher<W>) {
        if let Some(batch) = batcher.flush() {
            self.dispatch(batcher, batch);
        }
    }

    fn dispatch(&mut self, batcher: &mut Batcher<W>, mut batch: Batch<W>) {
        batcher.recycle(self.shared.entries.take());
        if let Some(results) = &self.results {
            batch.ordered = Some(Ordered {
                number: self.ordered_batches,
                results: results.clone(),
            });
            self.ordered_batches += 1;
        }
        batch.closed_at = Some(Instant::now());
        loop {
            let slot = self.free.recv();
            let slot = slot.expect("slots come back while this stage runs");
            if !self.shared.is_usable(&slot) {
                continue;
            }
            let device = slot.device();
            let Some(turn) = self.shared.devices[device].turn.try_lock() else {
                // The device restarts: try a slot of another device, or this one later.
                self.pass(device, ToDevice::Parked(slot));
                continue;
            };
            // Locked until stage two has the batch: after a loss stage two must know all batches
            // that were lost.
            match self.shared.give(slot, batch, &self.pool) {
                Given::Submitted(flight) => self.pass(device, ToDevice::Flight(flight)),
                Given::Finished(finished) => {
                    let sent = self.finished.send(self.shared.seen(finished));
                    assert!(sent.is_ok(), "the unpack stage outlives this one");
                }
            }
            drop(turn);
            return;
        }
    }

    fn pass(&self, device: usize, to_device: ToDevice<Batch<W>>) {
        let sent = self.submitted[device].send(to_device);
        assert!(sent.is_ok(), "the later stages outlive this one");
    }
}

/// Stage two of one device.
struct Compute<W: Workload> {
    shared: Arc<Shared<W>>,
    device: usize,
    completions: Completions<Batch<W>>,
    finished: Sender<Finished<Batch<W>>>,
    free: Sender<Slot<Free>>,
}

impl<W: Workload> Compute<W> {
    fn run(mut self) {
        while let Some(next) = self.completions.next() {
            match next {
                Next::Parked => {
                    for slot in self.completions.parked.drain(..) {
                        // Stage one may have ended while the engine closes.
                        let _ = self.free.send(slot);
                    }
                }
                Next::Finished(Err(failed)) if self.shared.comes_back(&failed) => {
                    let turn = self.shared.devices[self.device].turn.lock();
                    let more = || self.completions.all_finished();
                    let finished = self.shared.bring_back(failed, more);
                    drop(turn);
                    finished.into_iter().for_each(|outcome| self.pass(outcome));
                }
                Next::Finished(outcome) => self.pass(self.shared.seen(outcome)),
            }
        }
    }

    fn pass(&self, outcome: Finished<Batch<W>>) {
        let sent = self.finished.send(outcome);
        assert!(sent.is_ok(), "the unpack stage outlives this one");
    }
}

/// Stage three: unpacks slots and frees them. Batches of a run are unpacked in order.
fn deliver<W: Workload>(
    shared: &Shared<W>,
    finished: &Receiver<Finished<Batch<W>>>,
    free: &Sender<Slot<Free>>,
) {
    let mut reorder = Reorder::new();
    let mut outputs = Vec::new();
    while let Ok(outcome) = finished.recv() {
        let ordered = match &outcome {
            Ok(slot) => slot.batch().ordered.as_ref(),
            Err(failed) => failed.batch.ordered.as_ref(),
        };
        match ordered.map(|ordered| ordered.number) {
            None => deliver_one(shared, outcome, &mut outputs, free),
            Some(number) => {
                reorder.insert(number, outcome);
                while let Some(next) = reorder.pop() {
                    deliver_one(shared, next, &mut outputs, free);
                }
            }
        }
    }
}

fn deliver_one<W: Workload>(
    shared: &Shared<W>,
    outcome: Finished<Batch<W>>,
    outputs: &mut Vec<Result<W::Output>>,
    free: &Sender<Slot<Free>>,
) {
    let taken = shared.take_back(outcome, outputs);
    // The upload stage may have ended while the engine closes.
    let _ = free.send(taken.slot);
    let mut entries = taken.batch.entries;
    let through = entries.drain(..).zip(outputs.drain(..));
    let completions =
        through.filter_map(|(entry, output)| unwinding(|| entry.complete(output)).flatten());
    match taken.batch.ordered {
        None => completions.for_each(drop),
        Some(ordered) => {
            let mut batch = shared.completions.take();
            batch.extend(completions.rev());
            let completions = RunBatch(batch);
            let start = Instant::now();
            // A run that ended early has dropped its receiver.
            let _ = ordered.results.send(match taken.failure {
                None => Ok(completions),
                Some(error) => Err(error),
            });
            add_since(&shared.counters.output_ns, start);
        }
    }
    shared.entries.give_back(entries);
}

/// Stops a run's producer when it is dropped, even if the consumer panics.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Feeds `source` to the stages from a new thread, and passes results to `accept` on this thread,
/// until the source ends, `accept` fails or the device fails.
pub(super) fn run_ordered<W: Workload, S>(
    intake: &Intake<W>,
    shared: &Shared<W>,
    source: S,
    mut accept: impl FnMut(Completion<W>) -> Result<()>,
) -> Result<()>
where
    S: Iterator<Item = W::Item> + Send,
{
    // Room for a batch from each slot, so that several change threads at a time.
    let (results, completions) = bounded(shared.meter.slots());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let produce = || -> Result<u64> {
            let mut sent = 0;
            for item in source {
                if stop.load(Relaxed) {
                    unwinding(|| drop(item));
                    break;
                }
                let extent = shared.extent(&item);
                intake.send(false, item, extent, Reply::Caller, None)?;
                sent += 1;
            }
            Ok(sent)
        };
        // Ends the results even if the source panics; otherwise the consumer waits for ever.
        let produce_and_end = || {
            intake.results(Some(results))?;
            let produced = catch_unwind(AssertUnwindSafe(produce));
            let ended = intake.results(None);
            let sent = produced.unwrap_or_else(|panic| resume_unwind(panic));
            ended.and(sent)
        };
        let producer = std::thread::Builder::new()
            .name("tapeloop-source".to_owned())
            .spawn_scoped(scope, produce_and_end)
            .map_err(Error::io)?;
        let stop_producer = StopOnDrop(&stop);
        let mut accepted = 0;
        let mut consumed = Ok(());
        while let (Ok(()), Ok(batch)) = (&consumed, completions.recv()) {
            consumed = batch.and_then(|mut batch| {
                while let Some(completion) = batch.pop() {
                    accepted += 1;
                    accept(completion)?;
                }
                shared.completions.give_back(std::mem::take(&mut batch.0));
                Ok(())
            });
        }
        drop(stop_producer);
        drop(completions);
        let sent = producer.join().unwrap_or_else(|panic| resume_unwind(panic));
        consumed?;
        match sent? == accepted {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Closed, "a pipeline thread panicked")),
        }
    })
}
