//! A bucket's batch, ready to run: lowered, audited, and captured or built as a graph where the
//! policy asks for one.

use super::audit::{AllowedMemory, Audit};
use super::batch::Batch;
use super::declared_memory::DeclaredMemory;
use super::graph::make_graph;
use super::timed::{
    BEGUN, COMPUTED, DOWNLOADED, UPLOADED, enqueue_body, enqueue_timestamp, holds_uploads,
    make_timed_graph,
};
use super::{Bindings, Build, Fallback, Mode, Policy, Replay, Scope, Way};
use crate::backend::{Allocation, DeviceSlot, GraphId, Op, Queue, Streams};
use crate::error::{Context, Error, ErrorKind, ErrorScope, Result};
use crate::workload::Extent;

/// A batch with the graphs that replay it.
pub(super) struct ReadyBatch {
    pub(super) batch: Batch,
    /// `None` where the batch runs as single launches.
    pub(super) graph: Option<GraphId>,
    /// The way that the caller asked for; `graph` may be missing.
    way: Way,
    /// Whether a loop on the device replays the graph.
    pub(super) is_resident: bool,
    pub(super) audit: Audit,
    timed: TimedGraph,
    /// The number of the replay that used this last.
    pub(super) last_used: u64,
}

/// The graph that does the same as [`ReadyBatch::graph`] and takes timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TimedGraph {
    /// No batch was timed yet.
    #[default]
    Unmade,
    Made(GraphId),
    /// The device refused it.
    Refused,
}

impl TimedGraph {
    fn graph(self) -> Option<GraphId> {
        match self {
            TimedGraph::Made(graph) => Some(graph),
            TimedGraph::Unmade | TimedGraph::Refused => None,
        }
    }
}

/// How one batch goes to the device.
#[derive(Clone, Copy)]
pub(super) struct Submission {
    /// The graph that does the body's work; `None` to launch its commands one by one.
    pub(super) graph: Option<GraphId>,
    /// What the batch spans.
    pub(super) live: Extent,
    pub(super) streams: Streams,
    /// Whether timestamps go between the calls.
    pub(super) has_timestamps: bool,
}

impl Submission {
    fn timestamp(
        self,
        slot: &mut dyn DeviceSlot,
        queue: Queue,
        timestamp: u32,
        replay: &mut Replay,
    ) -> Result<()> {
        if self.has_timestamps {
            enqueue_timestamp(slot, queue, timestamp)?;
            replay.calls += 1;
        }
        Ok(())
    }
}

impl ReadyBatch {
    /// Lowers and audits a batch, and makes its graph if `way` replays one.
    ///
    /// # Errors
    /// As [`make_graph`]; [`ErrorKind::Mismatch`](crate::ErrorKind::Mismatch) for an address
    /// outside of `memory`.
    pub(super) fn make(
        slot: &mut dyn DeviceSlot,
        bindings: &Bindings,
        memory: &AllowedMemory<'_>,
        way: Way,
        policy: &Policy,
    ) -> Result<Self> {
        let batch = Batch::new(bindings, way.scope);
        let audit = batch.check(memory)?;
        let make =
            |slot: &mut dyn DeviceSlot| make_graph(slot, memory, &batch.body, policy.build, None);
        let mut is_resident = false;
        let graph = match way.mode {
            Mode::Graph => Some(make(slot)?.0),
            Mode::Resident => {
                let (graph, _) = make(slot)?;
                is_resident = make_resident(slot, graph, policy)?;
                Some(graph)
            }
            Mode::Stream | Mode::Auto => None,
        };
        Ok(ReadyBatch {
            batch,
            graph,
            way,
            is_resident,
            audit,
            timed: TimedGraph::default(),
            last_used: 0,
        })
    }

    /// Whether it is replayed in this way.
    pub(super) fn is_of(&self, way: Way) -> bool {
        self.way == way
    }

    /// Its graphs in the slot.
    pub(super) fn graphs(&self) -> impl Iterator<Item = GraphId> {
        self.graph.into_iter().chain(self.timed.graph())
    }

    /// Drops its graphs.
    pub(super) fn discard(self, slot: &mut dyn DeviceSlot) {
        self.graphs().for_each(|graph| slot.drop_graph(graph));
    }

    /// Drops the graph with timestamps, whose commands are about to change.
    pub(super) fn discard_timed(&mut self, slot: &mut dyn DeviceSlot) {
        if let Some(graph) = std::mem::take(&mut self.timed).graph() {
            slot.drop_graph(graph);
        }
    }

    /// Whether a launch passes an address in this allocation.
    pub(super) fn points_into(&self, allocation: &Allocation) -> bool {
        self.batch.body.iter().any(|lowered| match lowered.op() {
            Op::Launch { args, .. } => args.iter().any(|&word| allocation.contains(word, 1)),
            _ => false,
        })
    }

    /// A submission of a batch that spans `live`, without timestamps.
    pub(super) fn untimed(&self, live: Extent, streams: Streams) -> Submission {
        Submission {
            graph: self.graph,
            live,
            streams,
            has_timestamps: false,
        }
    }

    /// The same submission with timestamps: between the calls, or in a graph of their own where
    /// one graph holds the whole batch. Makes that graph for the first timed batch; `None` if
    /// the device refused it. A loop on the device notes the times of each batch anyway.
    pub(super) fn timed(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bindings: &Bindings,
        declared: &DeclaredMemory,
        build: Build,
        untimed: Submission,
    ) -> Option<Submission> {
        if self.is_resident {
            return Some(untimed);
        }
        if self.graph.is_none() || self.batch.scope == Scope::Kernels {
            return Some(Submission {
                has_timestamps: true,
                ..untimed
            });
        }
        if self.timed == TimedGraph::Unmade {
            let memory = AllowedMemory::new(slot, bindings, declared);
            self.timed = match make_timed_graph(slot, &memory, &self.batch.body, build) {
                Ok(graph) => TimedGraph::Made(graph),
                Err(error) => {
                    let capacity = bindings.recording().capacity();
                    tracing::warn!(?capacity, %error, "batches of this bucket are not timed");
                    TimedGraph::Refused
                }
            };
        }
        let graph = Some(self.timed.graph()?);
        Some(Submission { graph, ..untimed })
    }

    /// Gives a batch and its fence to the slot, and adds to `replay` what that took.
    pub(super) fn submit(
        &self,
        slot: &mut dyn DeviceSlot,
        submission: Submission,
        replay: &mut Replay,
    ) -> Result<()> {
        let live = submission.live;
        let per_stage = submission.streams == Streams::PerStage;
        if per_stage && !slot.is_quiet() {
            // Work that is in flight still uses the buffers.
            join_stages(slot)
                .and_then(|()| slot.join(Queue::Download, Queue::Upload))
                .within(|| "wait for the batch before")?;
            replay.calls += 6;
        }
        submission.timestamp(slot, Queue::Upload, BEGUN, replay)?;
        for copy in &self.batch.before {
            copy.enqueue(slot, Queue::Upload, live, replay)?;
        }
        if !holds_uploads(&self.batch.body) {
            submission.timestamp(slot, Queue::Upload, UPLOADED, replay)?;
        }
        if per_stage {
            let joined = slot.join(Queue::Upload, Queue::Compute);
            joined.within(|| "wait for uploads")?;
            replay.calls += 2;
        }
        self.submit_body(slot, submission, replay)?;
        for copy in &self.batch.inside {
            replay.copied_bytes += copy.bytes;
            replay.padding_bytes += copy.bytes - copy.live_bytes(live);
        }
        if per_stage {
            let joined = slot.join(Queue::Compute, Queue::Download);
            joined.within(|| "wait for kernels")?;
            replay.calls += 2;
        }
        for copy in &self.batch.after {
            copy.enqueue(slot, Queue::Download, live, replay)?;
        }
        submission.timestamp(slot, Queue::Download, DOWNLOADED, replay)?;
        slot.fence().within(|| "fence")?;
        replay.calls += usize::from(!self.rings(submission));
        Ok(())
    }

    /// Whether a loop on the device takes the batch, without a call to the driver.
    fn rings(&self, submission: Submission) -> bool {
        self.is_resident && submission.graph == self.graph
    }

    /// Gives the graph to the slot, or the commands that it would hold.
    fn submit_body(
        &self,
        slot: &mut dyn DeviceSlot,
        submission: Submission,
        replay: &mut Replay,
    ) -> Result<()> {
        let Some(graph) = submission.graph else {
            replay.calls += enqueue_body(slot, &self.batch.body, submission.has_timestamps)?;
            return Ok(());
        };
        slot.launch_graph(graph).within(|| "graph launch")?;
        replay.calls += usize::from(!self.rings(submission));
        submission.timestamp(slot, Queue::Compute, COMPUTED, replay)
    }
}

/// Makes a graph resident. One that cannot be is launched by the host if the policy has a fallback
/// or chooses the mode itself, and else dropped. Returns whether it is resident.
pub(super) fn make_resident(
    slot: &mut dyn DeviceSlot,
    graph: GraphId,
    policy: &Policy,
) -> Result<bool> {
    match slot.make_resident(graph, policy.residency) {
        Ok(is_resident) => Ok(is_resident),
        Err(error) if may_launch(policy, &error) => {
            tracing::warn!(%error, "the graph cannot be resident; the host launches it");
            Ok(false)
        }
        Err(error) => {
            slot.drop_graph(graph);
            Err(error.within("make the graph resident"))
        }
    }
}

/// Whether the host launches a graph that cannot be resident because of `error`.
fn may_launch(policy: &Policy, error: &Error) -> bool {
    let is_allowed = policy.fallback == Fallback::Launches || policy.mode == Mode::Auto;
    // The device has no room for another loop, or has a time limit for kernels; or a kernel is urgent.
    let has_no_loop = error.kind() == ErrorKind::Unavailable;
    is_allowed && (has_no_loop || error.scope() < ErrorScope::Device)
}

/// Sets a fence behind all work of the slot, on whichever queue. Returns the driver calls that
/// took.
pub(super) fn fence_all(slot: &mut dyn DeviceSlot, streams: Streams) -> Result<usize> {
    match streams {
        Streams::PerSlot => slot.fence().map(|()| 1),
        Streams::PerStage => {
            join_stages(slot)?;
            slot.fence().map(|()| 5)
        }
    }
}

/// Makes the download queue wait for all work that the slot was given.
fn join_stages(slot: &mut dyn DeviceSlot) -> Result<()> {
    slot.join(Queue::Upload, Queue::Compute)?;
    slot.join(Queue::Compute, Queue::Download)
}
