//! Tracks which work of a slot is ordered before its next fence.

use super::message::SlotCall;
use crate::backend::{Queue, Streams};

const QUEUES: usize = 3;
const ALL: u8 = (1 << QUEUES) - 1;

/// The order between a slot's queues. A fence is in the download queue, and covers work of another
/// queue only if a join orders that work before it.
pub(super) struct QueueOrder {
    /// For each queue, the set of queues whose work so far is ordered before the next work of this
    /// queue.
    after: [u8; QUEUES],
    one_stream: bool,
}

fn index(queue: Queue) -> usize {
    match queue {
        Queue::Upload => 0,
        Queue::Compute => 1,
        Queue::Download => 2,
    }
}

impl QueueOrder {
    /// The order of a slot without work.
    pub(super) fn new(streams: Streams) -> QueueOrder {
        QueueOrder {
            after: [ALL; QUEUES],
            one_stream: streams == Streams::PerSlot,
        }
    }

    /// Forgets all work: the process that had it has ended.
    pub(super) fn reset(&mut self) {
        self.after = [ALL; QUEUES];
    }

    pub(super) fn add(&mut self, step: &SlotCall) {
        match step {
            SlotCall::Op(queue, _) => self.give(*queue),
            SlotCall::Graph(_) => self.give(Queue::Compute),
            SlotCall::Join(earlier, later) => {
                self.after[index(*later)] |= self.after[index(*earlier)];
            }
        }
    }

    fn give(&mut self, queue: Queue) {
        let given = index(queue);
        for (other, after) in self.after.iter_mut().enumerate() {
            if other != given {
                *after &= !(1 << given);
            }
        }
    }

    /// Whether a fence that is set now covers all work of the slot.
    pub(super) fn fence_covers_all(&self) -> bool {
        self.one_stream || self.after[index(Queue::Download)] == ALL
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::GraphId;

    #[test]
    fn a_fence_speaks_of_what_the_download_queue_comes_after() {
        let (graph, join) = (SlotCall::Graph(GraphId(0)), SlotCall::Join);
        let mut order = QueueOrder::new(Streams::PerStage);
        assert!(order.fence_covers_all());
        order.add(&graph);
        assert!(!order.fence_covers_all(), "no join orders it");
        order.add(&join(Queue::Upload, Queue::Download));
        assert!(!order.fence_covers_all(), "another queue was joined");
        order.add(&join(Queue::Compute, Queue::Upload));
        order.add(&join(Queue::Upload, Queue::Download));
        assert!(
            order.fence_covers_all(),
            "joined by way of the upload queue"
        );
        order.add(&graph);
        assert!(!order.fence_covers_all(), "given after the join");
        order.reset();
        assert!(order.fence_covers_all());
    }

    #[test]
    fn on_one_stream_a_fence_speaks_of_everything() {
        let mut order = QueueOrder::new(Streams::PerSlot);
        order.add(&SlotCall::Graph(GraphId(0)));
        assert!(order.fence_covers_all());
    }
}
