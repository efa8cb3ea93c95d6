//! Batches with their times: when the device began, and when uploads, kernels and
//! downloads were over.
//!
//! Where a graph holds the whole batch, a second one of the same commands is made
//! at the first use, with a timestamp behind each stage. Built by hand, timestamps are
//! leaves: nothing waits for them, so what ran side by side still does. In a stream,
//! and round a graph of kernels, timestamps stand between the calls.

use super::audit::check_held;
use super::executor::{Executor, Ready, Replay};
use super::give::{self, Given};
use super::graph::capture;
use super::{Build, Lowered, Scope, hazards};
use crate::backend::{DeviceSlot, GraphId, Op, Queue, TIMESTAMPS};
use crate::error::{Context, Result};
use crate::record::Recording;
use crate::workload::Extent;

/// The timestamp before everything.
pub const BEGUN: u32 = 0;
/// The timestamp after all uploads.
pub const UPLOADED: u32 = 1;
/// The timestamp after all kernels and memsets.
pub const COMPUTED: u32 = 2;
/// The timestamp after all downloads.
pub const DOWNLOADED: u32 = 3;

const _: () = assert!(DOWNLOADED as usize + 1 == TIMESTAMPS);

/// How one batch is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Times {
    /// Not at all.
    None,
    /// By timestamps among the calls.
    Calls,
    /// By another graph, which holds them.
    Graph(GraphId),
}

/// The graph with timestamps that belongs to a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TimedGraph {
    /// Nobody asked yet.
    #[default]
    Unmade,
    Made(GraphId),
    /// The device did not take it.
    Refused,
}

impl TimedGraph {
    pub(super) fn graph(self) -> Option<GraphId> {
        match self {
            TimedGraph::Made(graph) => Some(graph),
            TimedGraph::Unmade | TimedGraph::Refused => None,
        }
    }
}

impl Executor {
    /// [`Executor::replay`], with the slot's timestamps: [`BEGUN`] to [`DOWNLOADED`].
    ///
    /// Where the device refuses the graph that this takes, the batch runs without
    /// them, which is logged once and is in [`Replay::timed`].
    ///
    /// # Errors
    /// As [`Executor::replay`].
    pub fn replay_timed(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
        live: Extent,
    ) -> Result<Replay> {
        self.run(slot, bucket, live, true)
    }

    /// How to time a batch of a bucket that is ready.
    pub(super) fn times(&mut self, slot: &mut dyn DeviceSlot, bucket: usize) -> Times {
        let Some(ready) = self.ready_ref(bucket) else {
            return Times::None;
        };
        if ready.graph.is_none() || ready.batch.scope == Scope::Kernels {
            return Times::Calls;
        }
        let timed = match ready.timed {
            TimedGraph::Unmade => match self.make_timed(slot, bucket, ready) {
                Ok(graph) => TimedGraph::Made(graph),
                Err(error) => {
                    tracing::warn!(%error, bucket, "batches of this bucket are not timed");
                    TimedGraph::Refused
                }
            },
            known => known,
        };
        if let Some(ready) = self.ready_mut(bucket) {
            ready.timed = timed;
        }
        match timed {
            TimedGraph::Made(graph) => Times::Graph(graph),
            _ => Times::None,
        }
    }

    /// Makes the graph with timestamps, and audits it as the one that it stands for.
    fn make_timed(
        &self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
        ready: &Ready,
    ) -> Result<GraphId> {
        let bindings = self.bindings[bucket].as_ref();
        let bindings = bindings.expect("bound when it was made ready");
        let (recording, body) = (bindings.recording(), &ready.batch.body);
        let made = match self.policy.build {
            // In line, as everything is in a capture.
            Build::Capture => {
                capture(slot, None, |slot| take_down(slot, body)).map(|(graph, _)| graph)
            }
            Build::Explicit => build_by_hand(slot, recording, body),
        };
        let place = || "make the graph with timestamps";
        let graph = made.within(place)?;
        let audited = slot.graph_ops(graph).and_then(|mut held| {
            held.retain(|op| !matches!(op, Op::Timestamp { .. }));
            check_held(body, &held, &self.memory(&*slot, bindings))
        });
        if audited.is_err() {
            slot.drop_graph(graph);
        }
        audited.map(|()| graph).within(place)
    }

    /// Drops the graph with timestamps of a bucket, as its commands change.
    pub(super) fn drop_timed(&mut self, slot: &mut dyn DeviceSlot, bucket: usize) {
        if let Some(ready) = self.ready_mut(bucket)
            && let TimedGraph::Made(graph) = std::mem::take(&mut ready.timed)
        {
            slot.drop_graph(graph);
        }
    }
}

impl Times {
    /// Gives a timestamp to a queue, if this batch has its timestamps there.
    pub(super) fn timestamp(
        self,
        slot: &mut dyn DeviceSlot,
        queue: Queue,
        timestamp: u32,
        replay: &mut Replay,
    ) -> Result<()> {
        if self == Times::Calls {
            enqueue_timestamp(slot, queue, timestamp)?;
            replay.calls += 1;
        }
        Ok(())
    }
}

fn enqueue_timestamp(slot: &mut dyn DeviceSlot, queue: Queue, timestamp: u32) -> Result<()> {
    give::enqueue_timestamp(slot, queue, timestamp).within(|| format!("timestamp {timestamp}"))
}

/// Gives commands one after the other, and with `stamped` a timestamp after the last
/// upload, if any is among them, and one after the last kernel. Returns how many
/// calls it made.
pub(super) fn enqueue_all(
    slot: &mut dyn DeviceSlot,
    body: &[Lowered],
    stamped: bool,
    place: &str,
) -> Result<usize> {
    let mut timestamps = match stamped {
        true => timestamps_among(body),
        false => Vec::new(),
    }
    .into_iter()
    .peekable();
    let mut calls = 0;
    for at in 0..=body.len() {
        while let Some((_, timestamp)) = timestamps.next_if(|(timestamp_at, _)| *timestamp_at == at)
        {
            enqueue_timestamp(slot, Queue::Compute, timestamp)?;
            calls += 1;
        }
        if let Some(lowered) = body.get(at) {
            give::enqueue(slot, lowered.queue(), lowered)
                .within(|| format!("{place}command {}", lowered.command()))?;
            calls += 1;
        }
    }
    Ok(calls)
}

/// The timestamps between commands in a line, each with the command that it is before.
fn timestamps_among(body: &[Lowered]) -> Vec<(usize, u32)> {
    let after_uploads = after_last(body, UPLOADED);
    let after_kernels = after_last(body, COMPUTED).max(after_uploads);
    let uploads = holds_uploads(body).then_some((after_uploads, UPLOADED));
    uploads
        .into_iter()
        .chain([(after_kernels, COMPUTED)])
        .collect()
}

/// Whether the end of uploads is among these commands, or before them.
pub(super) fn holds_uploads(body: &[Lowered]) -> bool {
    after_last(body, UPLOADED) > 0
}

/// The timestamp that an operation comes before.
fn timestamp_of(op: &Op) -> u32 {
    match op {
        Op::Upload { .. } => UPLOADED,
        Op::Memset { .. } | Op::Launch { .. } => COMPUTED,
        Op::Download { .. } => DOWNLOADED,
        Op::Timestamp { timestamp } => *timestamp,
    }
}

/// The place after the last operation of a stage; the start if there is none.
fn after_last(body: &[Lowered], timestamp: u32) -> usize {
    let last = body
        .iter()
        .rposition(|lowered| timestamp_of(lowered.op()) == timestamp);
    last.map_or(0, |last| last + 1)
}

fn take_down(slot: &mut dyn DeviceSlot, body: &[Lowered]) -> Result<()> {
    enqueue_timestamp(slot, Queue::Upload, BEGUN)?;
    if !holds_uploads(body) {
        enqueue_timestamp(slot, Queue::Upload, UPLOADED)?;
    }
    enqueue_all(slot, body, true, "capture of ")?;
    enqueue_timestamp(slot, Queue::Download, DOWNLOADED)
}

/// With the edges of the graph that it stands for, and timestamps as leaves.
fn build_by_hand(
    slot: &mut dyn DeviceSlot,
    recording: &Recording,
    body: &[Lowered],
) -> Result<GraphId> {
    let commands: Vec<usize> = body.iter().map(Lowered::command).collect();
    let edges = hazards(recording, &commands);
    let ends = ends(body, &edges);
    // Where nodes run as they are listed, a timestamp is met when its stage is over.
    let mut listed: Vec<(Given<'_>, Vec<usize>)> = Vec::with_capacity(body.len() + TIMESTAMPS);
    let mut places = Vec::with_capacity(body.len());
    let mut commands = body.iter().zip(&edges);
    for at in 0..=body.len() {
        for (timestamp, ends) in (0..).zip(&ends) {
            if ends.iter().max().map_or(0, |last| last + 1) == at {
                let after = ends.iter().map(|&node| places[node]).collect();
                listed.push((Given::Timestamp(timestamp), after));
            }
        }
        if let Some((lowered, after)) = commands.next() {
            let after = after.iter().map(|&node| places[node]).collect();
            places.push(listed.len());
            listed.push((Given::Command(lowered), after));
        }
    }
    let built = give::build_graph(slot, &listed, None).within(|| "build the graph");
    built.map(|(graph, _)| graph)
}

/// By timestamp: the operations of its stage that none of the same stage comes after,
/// or where it has none, those of the stage before.
fn ends(body: &[Lowered], edges: &[Vec<usize>]) -> [Vec<usize>; TIMESTAMPS] {
    let stages: Vec<u32> = body
        .iter()
        .map(|lowered| timestamp_of(lowered.op()))
        .collect();
    let mut is_end = vec![true; body.len()];
    for (node, after) in edges.iter().enumerate() {
        for &earlier in after {
            is_end[earlier] &= stages[earlier] != stages[node];
        }
    }
    let mut ends: [Vec<usize>; TIMESTAMPS] = std::array::from_fn(|timestamp| {
        let all = 0..body.len();
        all.filter(|&node| is_end[node] && stages[node] as usize == timestamp)
            .collect()
    });
    for timestamp in 1..TIMESTAMPS {
        if ends[timestamp].is_empty() {
            ends[timestamp] = ends[timestamp - 1].clone();
        }
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::FunctionId;

    fn lowered(ops: &[Op]) -> Vec<Lowered> {
        let lower = |(command, op): (usize, &Op)| Lowered::of_op(command, op.clone());
        ops.iter().enumerate().map(lower).collect()
    }

    fn upload() -> Op {
        Op::Upload {
            host: 0,
            device: 0,
            bytes: 1,
        }
    }

    fn kernel() -> Op {
        Op::Launch {
            function: FunctionId(0),
            grid: [1; 3],
            block: [1; 3],
            shared_bytes: 0,
            args: Box::default(),
        }
    }

    fn download() -> Op {
        Op::Download {
            device: 0,
            host: 0,
            bytes: 1,
        }
    }

    #[test]
    fn in_a_line_timestamps_follow_the_last_of_their_stage() {
        let body = [upload(), kernel(), upload(), kernel(), download()];
        assert_eq!(
            timestamps_among(&lowered(&body)),
            [(3, UPLOADED), (4, COMPUTED)]
        );
        // The uploads are over before the body begins.
        let body = [kernel(), kernel()];
        assert_eq!(timestamps_among(&lowered(&body)), [(2, COMPUTED)]);
        let body = [kernel(), upload()];
        assert_eq!(
            timestamps_among(&lowered(&body)),
            [(2, UPLOADED), (2, COMPUTED)]
        );
    }

    #[test]
    fn a_timestamp_of_a_graph_comes_after_what_ends_its_stage() {
        // Two chains: 0 -> 2 -> 4 -> 6 and 1 -> 3 -> 5.
        let body = [
            upload(),
            upload(),
            kernel(),
            kernel(),
            kernel(),
            download(),
            download(),
        ];
        let edges = [&[][..], &[], &[0], &[1], &[2], &[3], &[4]].map(<[usize]>::to_vec);
        let expected: [&[usize]; TIMESTAMPS] = [&[], &[0, 1], &[3, 4], &[5, 6]];
        assert_eq!(ends(&lowered(&body), &edges), expected);
        // Without copies, of mapped buffers.
        let edges = [&[][..], &[0]].map(<[usize]>::to_vec);
        let expected: [&[usize]; TIMESTAMPS] = [&[], &[], &[1], &[1]];
        assert_eq!(ends(&lowered(&[kernel(), kernel()]), &edges), expected);
    }
}
