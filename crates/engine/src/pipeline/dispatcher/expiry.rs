//! Items that expire before their batch has a slot.

use super::{Dispatcher, Timer};
use crate::pipeline::ticket::Early;
use crate::workload::Workload;
use std::sync::Arc;
use std::time::Instant;

impl<W: Workload> Dispatcher<W> {
    /// Answers the items that have expired at `now` and have no slot. Returns when the next one expires.
    pub(in crate::pipeline) fn expire_due(self: &Arc<Self>, now: Instant) -> Option<Instant> {
        let mut queue = self.queue.lock();
        let expired = queue.expire(&self.shared, now);
        if !expired.emptied.is_empty() {
            self.note_room();
        }
        let expires_at = queue.expires_at();
        let next = self.next(&mut queue);
        drop(queue);
        let count = expired.answers.len() + expired.waiting;
        self.shared.counters.add_expired(count);
        self.finish_admission(expired.admitted);
        expired.answers.into_iter().for_each(Early::finish);
        for batch in expired.emptied {
            self.answer(batch, None, &mut Vec::new());
        }
        self.start_all(next);
        expires_at
    }

    /// Tells the timer that an item expires earlier than those before.
    pub(super) fn wake_timer(self: &Arc<Self>) {
        self.timer.get_or_init(|| Timer::start(self)).wake();
    }

    /// Whether the timer has ended, as it does once the engine is over.
    pub(in crate::pipeline) fn ends_timer(&self) -> bool {
        let Some(timer) = self.timer.get() else {
            return true;
        };
        timer.wake();
        timer.has_ended()
    }
}
