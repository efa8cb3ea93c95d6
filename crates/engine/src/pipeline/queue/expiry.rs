//! Items that expire before their batch has a slot.

use super::{Admitted, NORMAL, Queue, Shared, URGENT};
use crate::pipeline::batch::{Batch, expiry_error};
use crate::pipeline::ticket::Early;
use crate::workload::{Completion, Workload};
use std::time::Instant;

/// What expired, for a thread that holds no lock of the engine.
pub(in crate::pipeline) struct ExpiredItems<W: Workload> {
    pub(in crate::pipeline) answers: Vec<Early<W>>,
    /// Batches that have no item left.
    #[expect(clippy::vec_box, reason = "a box is what a closed batch travels as")]
    pub(in crate::pipeline) emptied: Vec<Box<Batch<W>>>,
    /// Items that waited for room.
    pub(in crate::pipeline) waiting: usize,
    pub(in crate::pipeline) admitted: Admitted<W>,
}

impl<W: Workload> Default for ExpiredItems<W> {
    fn default() -> Self {
        ExpiredItems {
            answers: Vec::new(),
            emptied: Vec::new(),
            waiting: 0,
            admitted: Admitted::default(),
        }
    }
}

impl<W: Workload> Queue<W> {
    /// When to call [`Queue::expire`] next.
    pub(in crate::pipeline) fn expires_at(&self) -> Option<Instant> {
        self.expires_at
    }

    /// Answers the items that have expired at `now` and have had no slot. Takes batches out that are empty then.
    pub(in crate::pipeline) fn expire(
        &mut self,
        shared: &Shared<W>,
        now: Instant,
    ) -> ExpiredItems<W> {
        let mut expired = ExpiredItems::default();
        if self.expires_at.is_none_or(|time| time > now) {
            return expired;
        }
        let mut first = None;
        let mut look_at = |batch: &mut Batch<W>| {
            // Apart from the batch, which `expire` borrows.
            let mut reply = batch.reply.take();
            batch.expire(now, |index, item| {
                let reply = reply.as_mut().expect("an item of a run does not expire");
                let result = Err(expiry_error());
                let early = reply.answer_early(index, Completion { item, result });
                expired.answers.push(early);
            });
            batch.reply = reply;
            first = [first, batch.expires_at()].into_iter().flatten().min();
        };
        self.batchers
            .iter_mut()
            .for_each(|batcher| look_at(batcher.open()));
        for closed in [&mut self.urgent, &mut self.normal] {
            closed.iter_mut().for_each(|batch| look_at(batch));
        }
        let (count, first_waiting) = self.expire_waiting(now, &mut expired.admitted);
        expired.waiting = count;
        self.expires_at = [first, first_waiting].into_iter().flatten().min();
        for closed in [&mut self.urgent, &mut self.normal] {
            while let Some(place) = closed.iter().position(|batch| batch.is_emptied()) {
                expired.emptied.extend(closed.remove(place));
            }
        }
        for place in [NORMAL, URGENT] {
            let open = self.batchers[place].open();
            if !open.entries.is_empty() && open.is_emptied() {
                expired.emptied.extend(self.take_open(shared, place));
            }
        }
        expired
    }

    /// Notes that an item without a slot expires then. Returns whether it is the first to do so.
    pub(super) fn note_expiry(&mut self, expires_at: Option<Instant>) -> bool {
        let is_first =
            expires_at.is_some_and(|time| self.expires_at.is_none_or(|first| time < first));
        if is_first {
            self.expires_at = expires_at;
        }
        is_first
    }
}
