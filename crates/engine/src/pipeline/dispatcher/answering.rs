//! How batches are answered.

use super::Dispatcher;
use crate::error::{Error, Result};
use crate::pipeline::batch::{Batch, Ordered};
use crate::pipeline::counters::add_since;
use crate::pipeline::run_results::Undelivered;
use crate::pipeline::unwinding::catch_and_log;
use crate::workload::{Completion, Workload};
use std::sync::atomic::Ordering::SeqCst;
use std::time::Instant;

impl<W: Workload> Dispatcher<W> {
    /// Gives the items of a batch their results, which it drains from `outputs`, one for each entry.
    /// Cancelled items have none. A run gets `failure`, the error that ended the engine, in their place.
    pub(super) fn answer(
        &self,
        mut batch: Box<Batch<W>>,
        failure: Option<Error>,
        outputs: &mut Vec<Result<W::Output>>,
    ) {
        // A replacement of resident buffers waits for the batches with earlier contents. What the answer wakes
        // may replace them.
        batch.resident = None;
        let (reply, ordered) = (batch.reply.take(), batch.ordered.take());
        let through = batch.entries.drain(..).zip(outputs.drain(..));
        let completions = through.map(|(entry, result)| {
            let item = entry.item?;
            Some(Completion { item, result })
        });
        match (reply, ordered) {
            (Some(reply), _) => reply.complete(completions),
            (None, Some(Ordered { number, results })) => {
                let start = results.maps().then(Instant::now);
                let mut completions = completions.rev().flatten();
                let sent: Result<&mut dyn Iterator<Item = _>> = match failure {
                    None => Ok(&mut completions),
                    Some(failure) => Err(failure),
                };
                results.send(number, batch.sampled, sent);
                // The completions that were not sent.
                for done in completions {
                    drop(Undelivered::new(done));
                }
                catch_and_log(|| drop(results));
                if let Some(start) = start {
                    add_since(&self.shared.counters.finished.map_ns, start);
                }
            }
            (None, None) => unreachable!("a batch is of tickets or of a run"),
        }
        self.shared.batches.give_back(batch);
        self.answered.fetch_add(1, SeqCst);
        // A change that changes nothing: either this sees that the engine closes, or `close` and
        // those whom it wakes see the batch as answered.
        if self.is_closing.fetch_or(false, SeqCst) {
            self.devices.wake_all();
        }
    }

    /// The number of batches whose items have no results yet.
    #[cfg(not(loom))]
    pub(in crate::pipeline) fn unanswered(&self) -> u64 {
        if self.check_process().is_err() {
            return 0;
        }
        let closed = self.queue.lock().closed();
        // Batches that closed since may be among the answered ones.
        closed.saturating_sub(self.answered.load(SeqCst))
    }

    /// Ends the engine, and answers the batches that have no slot with the reason.
    #[cfg(not(loom))]
    pub(in crate::pipeline) fn end_and_answer_waiting(&self, reason: Error) {
        use crate::pipeline::counters::add;
        // First, so that no item is added to the queue after it was emptied.
        self.shared.ended.end(reason.clone());
        let waiting: Vec<_> = self.queue.lock().clear().collect();
        for batch in waiting {
            let entries = batch.entries.iter();
            let mut outputs = entries.map(|entry| Err(entry.error_or(&reason))).collect();
            let rejected = batch.entries.len() - batch.taken_out as usize;
            add(&self.shared.counters.finished.items_rejected, rejected);
            self.answer(batch, Some(reason.clone()), &mut outputs);
        }
    }
}
