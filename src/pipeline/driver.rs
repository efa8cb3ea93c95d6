//! The stages on threads, bounded channels between them. The only file that
//! starts pipeline threads.

use super::batch::{Batch, Batcher, Entry, Ordered};
use super::compute::Completions;
use super::download::unpack;
use super::engine::Wait;
use super::program::Program;
use super::ring::{Finished, Reorder};
use super::slot::{Failed, Free, InFlight, Slot};
use super::stats::{AtomicCounters, add, add_since};
use super::ticket::Reply;
use super::upload::{fill, guarded};
use crate::error::{Error, ErrorKind, Result};
use crate::workload::{Completion, Extent, Workload};
use crossbeam_channel::{Receiver, Sender, bounded, never, select_biased};
use rayon::ThreadPool;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Items that may wait for the upload stage.
const INTAKE_ITEMS_MAX: usize = 8;

/// What all stages share.
pub(super) struct Shared<W: Workload> {
    pub(super) program: Program<W>,
    pub(super) pool: Arc<ThreadPool>,
    pub(super) batcher_target: Extent,
    pub(super) batcher_max: Extent,
    pub(super) batch_wait: Duration,
    pub(super) counters: AtomicCounters,
    /// Set by the first device failure; nothing is given to the device after.
    pub(super) poison: OnceLock<Error>,
}

/// The caller's end of the first channels.
pub(super) struct Intake<W: Workload> {
    normal: Sender<Message<W>>,
    urgent: Sender<Message<W>>,
}

/// Where a run takes its results: a batch's completions, or what ended it.
type RunSender<W> = Sender<Result<Vec<Completion<W>>>>;

enum Message<W: Workload> {
    Item {
        item: W::Item,
        extent: Result<Extent>,
        reply: Reply<W>,
        deadline: Option<Instant>,
    },
    Flush,
    /// Closes the open batch; the next ones belong to a run, or to none.
    Results(Option<RunSender<W>>),
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
        let channel = if urgent { &self.urgent } else { &self.normal };
        let message = Message::Item {
            item,
            extent,
            reply,
            deadline,
        };
        channel.send(message).map_err(|_| closed())
    }

    pub(super) fn flush(&self) -> Result<()> {
        self.normal.send(Message::Flush).map_err(|_| closed())
    }

    fn results(&self, results: Option<RunSender<W>>) -> Result<()> {
        self.normal
            .send(Message::Results(results))
            .map_err(|_| closed())
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the engine has stopped")
}

/// Starts the three stages over `slots`.
pub(super) fn start<W: Workload>(
    shared: &Arc<Shared<W>>,
    slots: Vec<Slot<Free>>,
    wait: Wait,
) -> Result<(Intake<W>, Vec<JoinHandle<()>>)> {
    let count = slots.len();
    // No channel of slots needs more room than there are slots.
    let (free, free_slots) = bounded(count);
    let (submitted, submitted_slots) = bounded(count);
    let (finished, finished_slots) = bounded(count);
    for slot in slots {
        free.send(slot).expect("its receiver is here");
    }
    let (normal, normal_items) = bounded(INTAKE_ITEMS_MAX);
    let (urgent, urgent_items) = bounded(INTAKE_ITEMS_MAX);
    let upload = Upload {
        shared: Arc::clone(shared),
        normal: normal_items,
        urgent: urgent_items,
        free: free_slots,
        submitted,
        finished: finished.clone(),
        results: None,
        ordered_batches: 0,
    };
    let completions = Completions::new(submitted_slots, wait);
    let compute_shared = Arc::clone(shared);
    let compute = move || complete(&compute_shared, completions, &finished);
    let download_shared = Arc::clone(shared);
    let download = move || deliver(&download_shared, &finished_slots, &free);
    let threads = vec![
        spawn("tapeloop-upload", move || upload.run())?,
        spawn("tapeloop-compute", compute)?,
        spawn("tapeloop-unpack", download)?,
    ];
    Ok((Intake { normal, urgent }, threads))
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(Error::io)
}

/// Stage one: forms batches, fills slots, submits them.
struct Upload<W: Workload> {
    shared: Arc<Shared<W>>,
    normal: Receiver<Message<W>>,
    urgent: Receiver<Message<W>>,
    free: Receiver<Slot<Free>>,
    submitted: Sender<Slot<InFlight<Batch<W>>>>,
    finished: Sender<Finished<Batch<W>>>,
    results: Option<RunSender<W>>,
    ordered_batches: u64,
}

enum Next<W: Workload> {
    Message(Message<W>),
    Due,
    End,
}

impl<W: Workload> Upload<W> {
    fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let axes = shared.program.workload.axes();
        let (target, max) = (shared.batcher_target, shared.batcher_max);
        let mut batcher = Batcher::new(axes, target, max, shared.batch_wait);
        loop {
            match self.next(batcher.closes_at()) {
                Next::Message(message) => self.take(&mut batcher, message),
                Next::Due => self.flush(&mut batcher),
                Next::End => break,
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
                if let Some(batch) = batcher.push(item, extent, reply, Instant::now(), deadline) {
                    self.dispatch(batch);
                }
            }
            Message::Flush => {
                // Urgent items that were submitted before come by another channel.
                while let Ok(urgent) = self.urgent.try_recv() {
                    self.take(batcher, urgent);
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
            self.dispatch(batch);
        }
    }

    fn next(&mut self, closes_at: Option<Instant>) -> Next<W> {
        // A run closes its batches by size alone, not by the clock.
        let closes_at = closes_at.filter(|_| self.results.is_none());
        loop {
            let until = |at: Instant| at.saturating_duration_since(Instant::now());
            let left = closes_at.map_or(Duration::MAX, until);
            if left.is_zero() {
                return Next::Due;
            }
            select_biased! {
                recv(self.urgent) -> message => match message {
                    Ok(message) => return Next::Message(message),
                    Err(_) => self.urgent = never(),
                },
                recv(self.normal) -> message => return match message {
                    Ok(message) => Next::Message(message),
                    // Both ends close together, and an urgent item may have come
                    // between the two looks.
                    Err(_) => self.urgent.try_recv().map_or(Next::End, Next::Message),
                },
                default(left) => return Next::Due,
            }
        }
    }

    fn dispatch(&mut self, mut batch: Batch<W>) {
        let shared = Arc::clone(&self.shared);
        let counters = &shared.counters;
        if let Some(results) = &self.results {
            batch.ordered = Some(Ordered {
                number: self.ordered_batches,
                results: results.clone(),
            });
            self.ordered_batches += 1;
        }
        let start = Instant::now();
        let slot = self
            .free
            .recv()
            .expect("slots come back while this stage runs");
        let start = add_since(&counters.stall_ns, start);
        let finished = if let Some(error) = shared.poison.get() {
            let error = Error::new(ErrorKind::Closed, format!("the engine stopped: {error}"));
            Err(Box::new(Failed { error, batch, slot }))
        } else if batch.items == 0 {
            Ok(slot.pass(batch))
        } else {
            let filled = fill(&shared.program, &shared.pool, slot, batch);
            let start = add_since(&counters.fill_ns, start);
            match filled.submit() {
                Ok((slot, replay)) => {
                    add_since(&counters.submit_ns, start);
                    add(&counters.batches, 1);
                    add(&counters.driver_calls, replay.calls);
                    self.submitted
                        .send(slot)
                        .expect("the compute stage outlives this one");
                    return;
                }
                Err(failed) => {
                    poison(&shared, &failed.error);
                    Err(failed)
                }
            }
        };
        self.finished
            .send(finished)
            .expect("the unpack stage outlives this one");
    }
}

fn poison<W: Workload>(shared: &Shared<W>, error: &Error) {
    // Only the first failure is the cause; later ones follow from it.
    if shared.poison.set(error.clone()).is_ok() {
        tracing::error!(%error, "the device failed; the engine takes no more work");
    }
}

/// Stage two.
fn complete<W: Workload>(
    shared: &Shared<W>,
    completions: Completions<Batch<W>>,
    finished: &Sender<Finished<Batch<W>>>,
) {
    for outcome in completions {
        match &outcome {
            Ok(slot) => {
                if let Some(submitted_at) = slot.batch().submitted_at {
                    add_since(&shared.counters.compute_ns, submitted_at);
                }
            }
            Err(failed) => poison(shared, &failed.error),
        }
        finished
            .send(outcome)
            .expect("the unpack stage outlives this one");
    }
}

/// Stage three: unpacks slots, those of a run in order, and frees them.
fn deliver<W: Workload>(
    shared: &Shared<W>,
    finished: &Receiver<Finished<Batch<W>>>,
    free: &Sender<Slot<Free>>,
) {
    let mut reorder = Reorder::new();
    for outcome in finished {
        let ordered = match &outcome {
            Ok(slot) => slot.batch().ordered.as_ref(),
            Err(failed) => failed.batch.ordered.as_ref(),
        };
        match ordered.map(|ordered| ordered.number) {
            None => deliver_one(shared, outcome, free),
            Some(number) => {
                reorder.insert(number, outcome);
                while let Some(next) = reorder.pop() {
                    deliver_one(shared, next, free);
                }
            }
        }
    }
}

fn deliver_one<W: Workload>(
    shared: &Shared<W>,
    outcome: Finished<Batch<W>>,
    free: &Sender<Slot<Free>>,
) {
    let counters = &shared.counters;
    let start = Instant::now();
    let (slot, batch, outputs, failure) = match outcome {
        Ok(slot) => {
            let outputs = unpack(&shared.program, &shared.pool, &slot);
            let (slot, batch) = slot.release();
            (slot, batch, outputs, None)
        }
        Err(failed) => {
            let Failed { error, batch, slot } = *failed;
            // What was wrong with an item before stays what is wrong with it.
            let own = |entry: &Entry<W>| entry.place.as_ref().err().unwrap_or(&error).clone();
            let outputs = batch.entries.iter().map(|entry| Err(own(entry))).collect();
            (slot, batch, outputs, Some(error))
        }
    };
    add_since(&counters.unpack_ns, start);
    // The upload stage may be gone when the engine is closing.
    let _ = free.send(slot);
    let done = outputs.iter().filter(|output| output.is_ok()).count();
    add(&counters.items_done, done);
    add(&counters.items_rejected, outputs.len() - done);
    let entries = batch.entries.into_iter().zip(outputs);
    let completions = entries
        .filter_map(|(entry, output)| entry.complete(output))
        .collect();
    if let Some(ordered) = batch.ordered {
        // A run that ended early has nobody left to read.
        let _ = ordered.results.send(failure.map_or(Ok(completions), Err));
    }
}

/// Tells a run's producer to stop, also when its consumer panics.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Feeds `source` to the stages from a thread of its own and hands results to
/// `accept` on this one, until the source ends, `accept` fails or the device does.
pub(super) fn run_ordered<W: Workload, S>(
    intake: &Intake<W>,
    shared: &Shared<W>,
    source: S,
    mut accept: impl FnMut(Completion<W>) -> Result<()>,
) -> Result<()>
where
    S: Iterator<Item = W::Item> + Send,
{
    let (results, completions) = bounded(1);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let produce = || -> Result<u64> {
            let mut sent = 0;
            for item in source {
                if stop.load(Relaxed) {
                    break;
                }
                let extent = guarded(|| shared.program.workload.extent(&item));
                intake.send(false, item, extent, Reply::Ordered, None)?;
                sent += 1;
            }
            Ok(sent)
        };
        // Also after a panic of the source, or the results would never end.
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
        let consumed = completions.iter().try_for_each(|batch| {
            batch?.into_iter().try_for_each(|completion| {
                accepted += 1;
                accept(completion)
            })
        });
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
