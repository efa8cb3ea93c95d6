//! Streams of work, and the order in which it runs.

use super::access::ResolvedOp;
use super::clock::{Epoch, VectorClock};
use super::graph::Order;
use super::random::Random;
use std::collections::VecDeque;
use std::sync::Arc;

/// Work that was submitted to a stream.
pub(super) enum StreamWork {
    /// Operations.
    Run(StreamRun),
    /// A fence.
    Fence,
    /// The loop with this number, which runs until it parks. It is no piece of work itself, but
    /// gives its batches to its stream.
    Loop(u32),
    /// A kernel that never ends.
    Endless,
    /// A kernel that ends after a number of calls of the host.
    Slow(u64),
}

/// Operations that were submitted as one piece of work, and their progress.
pub(super) struct StreamRun {
    pub(super) steps: Arc<Vec<ResolvedOp>>,
    order: Order,
    /// For each operation: (parts done, parts in total). The total is set when the first part
    /// begins.
    progress: Vec<(u32, u32)>,
}

impl StreamRun {
    pub(super) fn new(steps: Arc<Vec<ResolvedOp>>, order: Order) -> Self {
        let progress = vec![(0, 0); steps.len()];
        StreamRun {
            steps,
            order,
            progress,
        }
    }

    fn is_done(&self, node: usize) -> bool {
        let (done, parts) = self.progress[node];
        parts > 0 && done == parts
    }

    /// Chooses one of the operations that can run.
    pub(super) fn choose(&self, random: &mut Random) -> usize {
        let can = |node: &usize| {
            !self.is_done(*node) && self.order.allows(*node, |earlier| self.is_done(earlier))
        };
        let all = self.progress.len();
        let start = random.below(all as u64) as usize;
        let mut from_start = (start..all).chain(0..start);
        from_start.find(can).expect("unfinished work goes on")
    }

    /// The next part of an operation and the number of its parts, which `parts` returns before the
    /// first.
    pub(super) fn next_part(&mut self, node: usize, parts: impl FnOnce() -> u32) -> (u32, u32) {
        let progress = &mut self.progress[node];
        if progress.1 == 0 {
            // A planned copy of no parts is one of one part.
            progress.1 = parts().max(1);
        }
        progress.0 += 1;
        (progress.0 - 1, progress.1)
    }

    pub(super) fn is_over(&self) -> bool {
        (0..self.progress.len()).all(|node| self.is_done(node))
    }
}

/// Work that runs in order.
#[derive(Default)]
pub(super) struct SimStream {
    pub(super) queue: VecDeque<StreamWork>,
    given: u64,
    done: u64,
    /// The work that the next piece of work runs after.
    pub(super) clock: VectorClock,
}

/// The stream whose epochs are the host's accesses; it has no work.
pub(super) const HOST: usize = 0;

/// All streams.
pub(super) struct Schedule(Vec<SimStream>);

impl Schedule {
    /// Without streams but the host's.
    pub(super) fn new() -> Self {
        Schedule(vec![SimStream::default()])
    }

    pub(super) fn open(&mut self) -> usize {
        self.0.push(SimStream::default());
        self.0.len() - 1
    }

    pub(super) fn stream(&mut self, stream: usize) -> &mut SimStream {
        &mut self.0[stream]
    }

    /// The epoch of the next piece of work.
    pub(super) fn next_epoch(&self, stream: usize) -> Epoch {
        Epoch {
            stream,
            place: self.0[stream].given + 1,
        }
    }

    /// Appends work to a stream's queue.
    pub(super) fn push_work(&mut self, stream: usize, work: StreamWork) -> Epoch {
        let epoch = self.next_epoch(stream);
        let stream = &mut self.0[stream];
        stream.given += 1;
        stream.clock.reach(epoch);
        stream.queue.push_back(work);
        epoch
    }

    /// Removes the finished work at the head of a stream.
    pub(super) fn finish(&mut self, stream: usize) {
        let stream = &mut self.0[stream];
        stream.queue.pop_front();
        stream.done += 1;
    }

    pub(super) fn is_done(&self, epoch: Epoch) -> bool {
        self.0[epoch.stream].done >= epoch.place
    }

    /// Counts a call of the host for the kernels that end after a number of calls.
    pub(super) fn pass_call(&mut self) {
        for stream in &mut self.0 {
            match stream.queue.front_mut() {
                Some(StreamWork::Slow(0)) => drop(stream.queue.pop_front()),
                Some(StreamWork::Slow(calls)) => *calls -= 1,
                _ => {}
            }
        }
    }

    /// Whether the head of a stream is a kernel that ends after a number of calls.
    pub(super) fn is_held(&self, stream: usize) -> bool {
        matches!(self.0[stream].queue.front(), Some(StreamWork::Slow(_)))
    }

    /// Chooses one of the streams that can run.
    pub(super) fn choose(&self, random: &mut Random) -> Option<usize> {
        let can = |stream: &usize| match self.0[*stream].queue.front() {
            None | Some(StreamWork::Endless | StreamWork::Slow(_)) => false,
            Some(_) => true,
        };
        let (first, all) = (HOST + 1, self.0.len());
        // `below` takes no 0; without streams none is found.
        let start = first + random.below((all - first).max(1) as u64) as usize;
        (start..all).chain(first..start).find(can)
    }

    /// Whether a stream has work.
    pub(super) fn is_busy(&self, stream: usize) -> bool {
        !self.0[stream].queue.is_empty()
    }

    /// Removes the work of a stream as if it were done.
    pub(super) fn forget_stream(&mut self, stream: usize) {
        let stream = &mut self.0[stream];
        stream.queue.clear();
        stream.done = stream.given;
    }

    /// Removes all work as if it were done.
    pub(super) fn forget(&mut self) {
        (0..self.0.len()).for_each(|stream| self.forget_stream(stream));
    }

    /// The number of pieces of work that are not done. A kernel that is held has run, and a loop is
    /// no piece of work.
    pub(super) fn pending(&self) -> usize {
        let work = self.0.iter().flat_map(|stream| &stream.queue);
        work.filter(|work| !matches!(work, StreamWork::Slow(_) | StreamWork::Loop(_)))
            .count()
    }
}
