//! The streams of a slot's queues, and the progress of work in them.

use super::context::Context;
use super::stream::{Event, Stream};
use crate::backend::{ExternalEvent, Priority, Queue, Streams, no_events};
use crate::error::{Error, ErrorKind, Result};
use arrayvec::ArrayVec;
use std::sync::Arc;

const QUEUES: usize = 3;

/// One stream for all queues, or one for each.
pub(super) type StreamSet = ArrayVec<Arc<Stream>, QUEUES>;

/// New streams for one slot, or for all slots that share theirs.
pub(super) fn stream_set(
    context: &Arc<Context>,
    streams: Streams,
    priority: Priority,
) -> Result<StreamSet> {
    let count = match streams {
        Streams::PerSlot => 1,
        Streams::PerStage => QUEUES,
    };
    (0..count)
        .map(|_| Stream::of_priority(context, priority).map(Arc::new))
        .collect()
}

/// The error of a loop whose work has a priority, and what to change for it.
pub(super) fn no_priority(why: &str, change: &str) -> Error {
    let message = format!("a loop on the device has no priority, and {why}");
    Error::new(ErrorKind::Unavailable, message).fix(format!("set mode = \"graph\", or {change}"))
}

/// A slot's queues with their events.
pub(super) struct Queues {
    fence: Event,
    /// By earlier and later queue, if they are different streams.
    joins: [[Option<Event>; QUEUES]; QUEUES],
    streams: StreamSet,
    progress: Progress,
}

impl Queues {
    pub(super) fn new(
        context: &Arc<Context>,
        streams: StreamSet,
        blocking_wait: bool,
    ) -> Result<Queues> {
        let mut joins = [const { [const { None }; QUEUES] }; QUEUES];
        for (earlier, row) in joins.iter_mut().enumerate().take(streams.len()) {
            for (later, join) in row.iter_mut().enumerate().take(streams.len()) {
                if earlier != later {
                    *join = Some(Event::new(context, false)?);
                }
            }
        }
        Ok(Queues {
            fence: Event::new(context, blocking_wait)?,
            joins,
            streams,
            progress: Progress::default(),
        })
    }

    /// The index of a queue's stream.
    fn index(&self, queue: Queue) -> usize {
        (queue as usize).min(self.streams.len() - 1)
    }

    pub(super) fn stream(&self, queue: Queue) -> &Arc<Stream> {
        &self.streams[self.index(queue)]
    }

    pub(super) fn priority(&self) -> Priority {
        self.streams[0].priority()
    }

    /// Whether other slots use the same streams.
    pub(super) fn are_shared(&self) -> bool {
        self.streams.len() > 1
    }

    /// Refuses a loop where other slots use the same streams, and where it would lose the slot's
    /// priority.
    pub(super) fn check_loop(&self) -> Result<()> {
        if self.priority() == Priority::Urgent {
            return Err(no_priority(
                "the slot is for urgent batches",
                "urgent_slots = 0",
            ));
        }
        match self.are_shared() {
            false => Ok(()),
            true => Err(Error::usage("a resident graph needs a stream of its slot")
                .fix("open the slot with Streams::PerSlot")),
        }
    }

    /// The stream for an operation, which counts as submitted from now on: work that may not have
    /// started never counts as done.
    pub(super) fn give(&mut self, queue: Queue) -> &Stream {
        self.progress.give(self.index(queue));
        self.stream(queue)
    }

    pub(super) fn join(&mut self, earlier: Queue, later: Queue) -> Result<()> {
        let (from, to) = (self.index(earlier), self.index(later));
        if let Some(event) = &self.joins[from][to] {
            event.record(&self.streams[from])?;
            self.streams[to].wait_for(event)?;
            self.progress.join(from, to);
        }
        Ok(())
    }

    /// The slot's own stream, which has all its work.
    fn own_stream(&self) -> Result<&Stream> {
        match self.are_shared() {
            false => Ok(&self.streams[0]),
            true => Err(no_events("other slots use the same streams")),
        }
    }

    pub(super) fn wait_for_event(&mut self, event: &ExternalEvent) -> Result<()> {
        self.own_stream()?.wait_for_external(event)
    }

    pub(super) fn record_event(&mut self, event: &ExternalEvent) -> Result<()> {
        self.own_stream()?.record_external(event)
    }

    pub(super) fn fence(&mut self) -> Result<()> {
        let download = self.index(Queue::Download);
        self.fence.record(&self.streams[download])?;
        self.progress.fence(download);
        Ok(())
    }

    pub(super) fn is_done(&mut self) -> Result<bool> {
        let done = self.fence.is_done()?;
        if done {
            self.progress.see_fenced();
        }
        Ok(done)
    }

    pub(super) fn wait(&mut self) -> Result<()> {
        self.fence.wait()?;
        self.progress.see_fenced();
        Ok(())
    }

    /// Waits for all work, fenced or not; also for that of other slots if they share the streams.
    pub(super) fn synchronize(&mut self) -> Result<()> {
        self.streams
            .iter()
            .try_for_each(|stream| stream.synchronize())?;
        self.progress.see_all();
        Ok(())
    }

    /// Whether all work was seen done.
    pub(super) fn are_quiet(&self) -> bool {
        self.progress.done == self.progress.given
    }
}

/// The number of operations that each stream was given, and that were seen done.
#[derive(Default)]
struct Progress {
    given: [u64; QUEUES],
    /// `after[later][earlier]`: how many operations of `earlier` are ordered before the next one of
    /// `later`.
    after: [[u64; QUEUES]; QUEUES],
    /// By stream: how many operations are ordered before the last fence.
    fenced: [u64; QUEUES],
    done: [u64; QUEUES],
}

impl Progress {
    fn give(&mut self, stream: usize) {
        self.given[stream] += 1;
        self.after[stream][stream] = self.given[stream];
    }

    fn join(&mut self, earlier: usize, later: usize) {
        let known = self.after[earlier];
        raise(&mut self.after[later], known);
    }

    fn fence(&mut self, stream: usize) {
        self.fenced = self.after[stream];
    }

    fn see_fenced(&mut self) {
        raise(&mut self.done, self.fenced);
    }

    fn see_all(&mut self) {
        self.done = self.given;
        self.after = [self.given; QUEUES];
    }
}

fn raise(counts: &mut [u64; QUEUES], to: [u64; QUEUES]) {
    for (count, to) in counts.iter_mut().zip(to) {
        *count = to.max(*count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_quiet(progress: &Progress) -> bool {
        progress.done == progress.given
    }

    #[test]
    fn a_mark_speaks_of_what_its_stream_comes_after() {
        let mut progress = Progress::default();
        progress.give(0);
        progress.fence(2);
        progress.see_fenced();
        assert!(!is_quiet(&progress), "nothing orders the fence after it");
        progress.join(0, 1);
        progress.give(1);
        progress.join(1, 2);
        progress.fence(2);
        assert!(!is_quiet(&progress));
        progress.see_fenced();
        assert!(is_quiet(&progress), "joined by way of the second");
        progress.give(0);
        progress.see_fenced();
        assert!(!is_quiet(&progress), "given after the fence");
        progress.see_all();
        assert!(is_quiet(&progress));
        progress.see_fenced();
        assert!(is_quiet(&progress), "an old fence takes nothing back");
    }

    #[test]
    fn on_one_stream_a_mark_speaks_of_everything_before_it() {
        let mut progress = Progress::default();
        progress.give(0);
        progress.give(0);
        progress.fence(0);
        progress.see_fenced();
        assert!(is_quiet(&progress));
    }
}
