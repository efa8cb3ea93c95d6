//! The streams that a slot's queues are, and what is known of the work in them.

use super::context::Context;
use super::stream::{Event, Stream};
use crate::backend::{Queue, Streams};
use crate::error::Result;
use arrayvec::ArrayVec;
use std::sync::Arc;

const QUEUES: usize = 3;

/// One stream for all queues, or one for each.
pub(super) type StreamSet = ArrayVec<Arc<Stream>, QUEUES>;

/// New streams for one slot, or for all slots that share theirs.
pub(super) fn stream_set(context: &Arc<Context>, streams: Streams) -> Result<StreamSet> {
    let count = match streams {
        Streams::PerSlot => 1,
        Streams::PerStage => QUEUES,
    };
    (0..count)
        .map(|_| Stream::new(context).map(Arc::new))
        .collect()
}

/// A slot's queues with its marks in them.
pub(super) struct Queues {
    mark: Event,
    /// By the earlier and the later queue, where they are two streams.
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
            mark: Event::new(context, blocking_wait)?,
            joins,
            streams,
            progress: Progress::default(),
        })
    }

    /// The place of a queue's stream.
    fn index(&self, queue: Queue) -> usize {
        (queue as usize).min(self.streams.len() - 1)
    }

    pub(super) fn stream(&self, queue: Queue) -> &Arc<Stream> {
        &self.streams[self.index(queue)]
    }

    /// Whether other slots give work to the same streams.
    pub(super) fn are_shared(&self) -> bool {
        self.streams.len() > 1
    }

    /// The stream for a piece of work, which counts as given from here on: work
    /// of which it is not known whether it started never counts as done.
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

    pub(super) fn fence(&mut self) -> Result<()> {
        let download = self.index(Queue::Download);
        self.mark.record(&self.streams[download])?;
        self.progress.mark(download);
        Ok(())
    }

    pub(super) fn is_done(&mut self) -> Result<bool> {
        let done = self.mark.is_done()?;
        if done {
            self.progress.see_marked();
        }
        Ok(done)
    }

    pub(super) fn wait(&mut self) -> Result<()> {
        self.mark.wait()?;
        self.progress.see_marked();
        Ok(())
    }

    /// Waits for all work, marked or not; of other slots too where they share
    /// the streams.
    pub(super) fn synchronize(&mut self) -> Result<()> {
        self.streams
            .iter()
            .try_for_each(|stream| stream.synchronize())?;
        self.progress.see_all();
        Ok(())
    }

    /// Whether all that was given is seen done.
    pub(super) fn are_quiet(&self) -> bool {
        self.progress.done == self.progress.given
    }
}

/// How much work each stream was given, and how much of it was seen done.
#[derive(Default)]
struct Progress {
    given: [u64; QUEUES],
    /// `after[later][earlier]`: how much of what `earlier` was given is done
    /// before what `later` is given from now on.
    after: [[u64; QUEUES]; QUEUES],
    /// How much was done before the last mark.
    marked: [u64; QUEUES],
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

    fn mark(&mut self, stream: usize) {
        self.marked = self.after[stream];
    }

    fn see_marked(&mut self) {
        raise(&mut self.done, self.marked);
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
        progress.mark(2);
        progress.see_marked();
        assert!(!is_quiet(&progress), "nothing orders the mark after it");
        progress.join(0, 1);
        progress.give(1);
        progress.join(1, 2);
        progress.mark(2);
        assert!(!is_quiet(&progress));
        progress.see_marked();
        assert!(is_quiet(&progress), "joined by way of the second");
        progress.give(0);
        progress.see_marked();
        assert!(!is_quiet(&progress), "given after the mark");
        progress.see_all();
        assert!(is_quiet(&progress));
        progress.see_marked();
        assert!(is_quiet(&progress), "an old mark takes nothing back");
    }

    #[test]
    fn on_one_stream_a_mark_speaks_of_everything_before_it() {
        let mut progress = Progress::default();
        progress.give(0);
        progress.give(0);
        progress.mark(0);
        progress.see_marked();
        assert!(is_quiet(&progress));
    }
}
