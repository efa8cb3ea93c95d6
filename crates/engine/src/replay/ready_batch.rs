//! A bucket's batch, ready to run: lowered, audited, and captured or built as a graph where the
//! policy asks for one.

use super::audit::{AllowedMemory, Audit};
use super::batch::LoweredBatch;
use super::declared_memory::DeclaredMemory;
use super::graph::make_graph;
use super::timed::make_timed_graph;
use super::{Bindings, Build, Mode, Policy, Replay};
use crate::backend::{Allocation, DeviceSlot, GraphId, Op};
use crate::error::{Context, Error, ErrorKind, ErrorScope, Result};
use crate::workload::Extent;

/// A batch with the graphs that replay it.
pub(super) struct ReadyBatch {
    pub(super) batch: LoweredBatch,
    /// `None` where the batch runs as single launches.
    pub(super) graph: Option<GraphId>,
    /// The mode that it was made for; [`Mode::Stream`] where launches stand in for a graph that
    /// the device refused.
    pub(super) mode: Mode,
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
pub(super) enum Submission {
    /// One launch of a graph.
    Graph(GraphId),
    /// A call for each command.
    Launches,
    /// A call for each command and each timestamp.
    TimedLaunches,
}

impl ReadyBatch {
    /// Lowers and audits a batch, and makes its graph if `mode` replays one. Before that, runs the library
    /// calls that ask for a first run outside of a capture, and waits for them.
    ///
    /// # Errors
    /// The errors of [`make_graph`]; [`ErrorKind::Mismatch`](crate::ErrorKind::Mismatch) for an
    /// address outside of `memory`.
    pub(super) fn make(
        slot: &mut dyn DeviceSlot,
        bindings: &Bindings,
        memory: &AllowedMemory<'_>,
        mode: Mode,
        policy: &Policy,
    ) -> Result<Self> {
        let batch = LoweredBatch::new(bindings);
        let audit = batch.check(memory)?;
        let graph = match mode {
            Mode::Stream => None,
            Mode::Graph | Mode::Resident => {
                batch.warm_up(slot).within(|| "warm-up")?;
                Some(make_graph(slot, memory, &batch.commands, policy.build, None)?.0)
            }
        };
        let is_resident = match graph {
            Some(graph) if mode == Mode::Resident => make_resident(slot, graph, policy)?,
            _ => false,
        };
        Ok(ReadyBatch {
            batch,
            graph,
            mode,
            is_resident,
            audit,
            timed: TimedGraph::default(),
            last_used: 0,
        })
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

    /// Whether a launch passes an address in this allocation. A scalar that happens to have such a value counts
    /// too: the batch is then made again. Copies and memsets name buffers, which never overlap an allocation.
    pub(super) fn points_into(&self, allocation: &Allocation) -> bool {
        self.batch
            .commands
            .iter()
            .any(|command| match command.op() {
                Op::Launch { args, .. } => args.iter().any(|&word| allocation.contains(word, 1)),
                _ => false,
            })
    }

    /// A submission without timestamps.
    pub(super) fn untimed_submission(&self) -> Submission {
        self.graph.map_or(Submission::Launches, Submission::Graph)
    }

    /// A submission with timestamps: between the calls, or in a graph of their own, which is made
    /// for the first timed batch; `None` if the device refused that. A loop on the device notes
    /// the times of each batch anyway.
    pub(super) fn make_timed_submission(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bindings: &Bindings,
        declared: &DeclaredMemory,
        build: Build,
    ) -> Option<Submission> {
        if self.is_resident {
            return Some(self.untimed_submission());
        }
        if self.graph.is_none() {
            return Some(Submission::TimedLaunches);
        }
        if self.timed == TimedGraph::Unmade {
            let memory = AllowedMemory::new(slot, bindings, declared);
            self.timed = match make_timed_graph(slot, &memory, &self.batch.commands, build) {
                Ok(graph) => TimedGraph::Made(graph),
                Err(error) => {
                    let capacity = bindings.recording().capacity();
                    tracing::warn!(?capacity, %error, "batches of this bucket are not timed");
                    TimedGraph::Refused
                }
            };
        }
        self.timed.graph().map(Submission::Graph)
    }

    /// Gives a batch that spans `live` and its fence to the slot, and adds to `replay` what that
    /// took.
    pub(super) fn submit(
        &self,
        slot: &mut dyn DeviceSlot,
        submission: Submission,
        live: Extent,
        replay: &mut Replay,
    ) -> Result<()> {
        // A loop on the device takes the batch and its fence without a call to the driver.
        let is_call = !(self.is_resident && matches!(submission, Submission::Graph(_)));
        match submission {
            Submission::Graph(graph) => {
                slot.launch_graph(graph).within(|| "graph launch")?;
                self.batch.count_copies(live, replay);
                replay.calls += usize::from(is_call);
            }
            Submission::Launches => self.batch.launch(slot, live, replay)?,
            Submission::TimedLaunches => self.batch.launch_timed(slot, live, replay)?,
        }
        slot.fence().within(|| "fence")?;
        replay.calls += usize::from(is_call);
        Ok(())
    }
}

/// Makes a graph resident. One that cannot be is launched by the host if the policy has a
/// fallback, and else dropped. Returns whether it is resident.
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
    // The device has no room for another loop, has a time limit for kernels, or is in a worker
    // process; or a kernel or the slot is urgent. Otherwise the driver refused it, and takes other work.
    let has_no_loop = error.kind() == ErrorKind::Unavailable;
    !policy.requires_loops() && (has_no_loop || error.scope() < ErrorScope::Device)
}
