//! The results of a run on their way to its consumer, in the order of the run's items,
//! and a limit on how many wait for it.

use super::batch::RunBatch;
use super::ring::Reorder;
use super::sync::{AtomicU64, Mutex, Receiver, Sender, bounded};
use crate::error::Result;
use crate::workload::Workload;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

/// Puts the batches of a run in order.
pub(crate) struct RunResults<W: Workload> {
    /// Holds batches whose predecessors are not done.
    reorder: Mutex<Reorder<Result<RunBatch<W>>>>,
    consumer: Sender<Result<RunBatch<W>>>,
    unconsumed: Arc<Unconsumed>,
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

impl<W: Workload> RunResults<W> {
    /// The results of a run, and the consumer's end. It is closed once the results are dropped.
    pub(super) fn new(
        unconsumed_max: usize,
    ) -> (Self, Arc<Unconsumed>, Receiver<Result<RunBatch<W>>>) {
        // Sending never waits, as there are never more.
        let (consumer, batches) = bounded(unconsumed_max);
        let unconsumed = Arc::new(Unconsumed {
            batches: AtomicU64::new(0),
            max: AtomicU64::new(unconsumed_max as u64),
        });
        let results = RunResults {
            reorder: Mutex::new(Reorder::new()),
            consumer,
            unconsumed: Arc::clone(&unconsumed),
        };
        (results, unconsumed, batches)
    }

    /// Counts a batch that is given a slot. Returns `false`, and counts nothing, if that would
    /// exceed the limit.
    pub(super) fn begin(&self) -> bool {
        let Unconsumed { batches, max } = &*self.unconsumed;
        if batches.load(SeqCst) >= max.load(SeqCst) {
            return false;
        }
        batches.fetch_add(1, SeqCst);
        true
    }

    /// Sends the batch `number` and those that waited for it. Batches without a consumer are
    /// dropped.
    pub(super) fn send(&self, number: u64, batch: Result<RunBatch<W>>) {
        let mut reorder = self.reorder.lock();
        reorder.insert(number, batch);
        while let Some(next) = reorder.pop() {
            let unsent = self.consumer.try_send(next);
            if unsent.is_err() {
                // The consumer has ended.
                drop(reorder);
                drop(unsent);
                reorder = self.reorder.lock();
            }
        }
    }
}
