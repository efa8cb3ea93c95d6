//! The results of a run on their way to its consumer, in the order of the run's items,
//! and a limit on how many wait for it.

use super::pool::SparePool;
use super::ring::Reorder;
use super::sync::{AtomicU64, Mutex, Receiver, Sender, bounded};
use super::unwinding::catch_and_log;
use crate::error::{Error, ErrorKind, Result};
use crate::workload::{Completion, Workload};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use tapeloop_error::internal::catch;

/// Where the batches of a run go.
pub(crate) trait RunSink<W: Workload>: Send + Sync {
    /// Counts a batch that is given a slot. Returns `false`, and counts nothing, if that would
    /// exceed the limit. Called under the lock of the engine's queue, so one batch at a time.
    fn begin(&self) -> bool;

    /// Whether sending a batch is work that takes a while.
    fn maps(&self) -> bool;

    /// Sends the batch `number` and those that waited for it. `completions` are those of the batch,
    /// the last first, or the error that ended the engine; `sampled` is the batch's.
    fn send(
        &self,
        number: u64,
        sampled: Option<(u64, usize)>,
        completions: Result<&mut dyn Iterator<Item = Completion<W>>>,
    );
}

/// What a run made of a batch's completions. Dropped one by one, since dropping one runs the embedder's
/// code and may panic.
pub(super) struct RunBatch<T> {
    /// In the reverse order of the items.
    results: Vec<T>,
    /// The batch's number and its slot, if the timeline samples it.
    pub(super) sampled: Option<(u64, usize)>,
    spare: Arc<SparePool<Vec<T>>>,
}

impl<T> RunBatch<T> {
    /// The next result, in the order of the items.
    pub(super) fn pop(&mut self) -> Option<T> {
        self.results.pop()
    }
}

impl<T> Drop for RunBatch<T> {
    fn drop(&mut self) {
        while let Some(result) = self.pop() {
            catch_and_log(|| drop(result));
        }
        self.spare.give_back(std::mem::take(&mut self.results));
    }
}

/// A completion that is dropped with care: dropping the item and dropping the result run the
/// embedder's code, and either may panic.
pub(super) struct Undelivered<W: Workload>(Option<Completion<W>>);

impl<W: Workload> Undelivered<W> {
    pub(super) fn new(done: Completion<W>) -> Self {
        Undelivered(Some(done))
    }

    pub(super) fn take(mut self) -> Completion<W> {
        self.0.take().expect("the completion is taken once")
    }
}

impl<W: Workload> Drop for Undelivered<W> {
    fn drop(&mut self) {
        if let Some(Completion { item, result }) = self.0.take() {
            catch_and_log(|| drop(item));
            catch_and_log(|| drop(result));
        }
    }
}

/// Makes of the completions of a run what its consumer takes, and puts the batches in order.
pub(crate) struct RunResults<T, M> {
    map: M,
    maps: bool,
    /// Holds batches whose predecessors are not done.
    reorder: Mutex<Reorder<Result<RunBatch<T>>>>,
    consumer: Sender<Result<RunBatch<T>>>,
    unconsumed: Arc<Unconsumed>,
    /// Vectors of batches that were taken.
    spare: Arc<SparePool<Vec<T>>>,
}

/// The number of a run's batches that are in a slot or wait for the consumer, and its limit.
pub(super) struct Unconsumed {
    batches: AtomicU64,
    max: AtomicU64,
}

impl Unconsumed {
    /// Counts a batch that the consumer took.
    pub(super) fn take(&self) {
        self.batches.fetch_sub(1, SeqCst);
    }

    /// Lifts the limit, because the consumer takes no more batches.
    pub(super) fn lift(&self) {
        self.max.store(u64::MAX, SeqCst);
    }
}

impl<T, M> RunResults<T, M> {
    /// The results of a run, and the consumer's end, which is closed once the results are dropped.
    /// `maps` says whether `map` takes a while.
    pub(super) fn new(
        unconsumed_max: usize,
        maps: bool,
        map: M,
    ) -> (Self, Arc<Unconsumed>, Receiver<Result<RunBatch<T>>>) {
        // Sending never waits, as there are never more.
        let (consumer, batches) = bounded(unconsumed_max);
        let unconsumed = Arc::new(Unconsumed {
            batches: AtomicU64::new(0),
            max: AtomicU64::new(unconsumed_max as u64),
        });
        let results = RunResults {
            map,
            maps,
            reorder: Mutex::new(Reorder::new()),
            consumer,
            unconsumed: Arc::clone(&unconsumed),
            spare: Arc::default(),
        };
        (results, unconsumed, batches)
    }
}

impl<W: Workload, T: Send, M> RunSink<W> for RunResults<T, M>
where
    M: Fn(Completion<W>) -> T + Send + Sync,
{
    fn begin(&self) -> bool {
        let Unconsumed { batches, max } = &*self.unconsumed;
        if batches.load(SeqCst) >= max.load(SeqCst) {
            return false;
        }
        batches.fetch_add(1, SeqCst);
        true
    }

    fn maps(&self) -> bool {
        self.maps
    }

    fn send(
        &self,
        number: u64,
        sampled: Option<(u64, usize)>,
        completions: Result<&mut dyn Iterator<Item = Completion<W>>>,
    ) {
        let batch = completions.and_then(|completions| {
            let mut batch = RunBatch {
                results: self.spare.take().unwrap_or_default(),
                sampled,
                spare: Arc::clone(&self.spare),
            };
            let mapped = catch(|| batch.results.extend(completions.map(&self.map)));
            mapped.map_err(|panic| {
                let message = format!("the `map` function of `run_mapped` panicked: {panic}");
                Error::new(ErrorKind::Usage, message)
            })?;
            Ok(batch)
        });
        // Batches without a consumer are dropped.
        let mut reorder = self.reorder.lock();
        reorder.insert(number, batch);
        while let Some(next) = reorder.pop() {
            let unsent = self.consumer.try_send(next);
            if unsent.is_err() {
                // The consumer has ended. Dropping results runs the embedder's code, so without the lock.
                drop(reorder);
                drop(unsent);
                reorder = self.reorder.lock();
            }
        }
    }
}
