//! One slot's ready-to-run batches, one for each bucket.

use super::audit::{Audit, Memory};
use super::batch::Batch;
use super::bindings::refuse_workload;
use super::choose::{Choices, Chosen};
use super::declared::Declared;
use super::fallback::Past;
use super::give::drop_released;
use super::graph::make_graph;
use super::timed::{
    BEGUN, COMPUTED, DOWNLOADED, TimedGraph, Times, UPLOADED, enqueue_all, holds_uploads,
};
use super::verify::give_twice;
use super::{Bindings, Buckets, Mode, Policy, Updates, Way};
use crate::backend::{
    Allocation, AllocationView, Backend, DeviceSlot, DeviceSlotId, GraphId, Op, Queue, Streams,
};
use crate::error::{Context, Error, Result};
use crate::workload::Extent;
use std::sync::Arc;

/// Replays batches on one slot. Each bucket is made ready (lowered, and where a graph
/// replays it turned into one) when the executor is made or at its first batch.
pub struct Executor {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) policy: Policy,
    pub(super) updates: Updates,
    slot: DeviceSlotId,
    buckets: Arc<Buckets>,
    /// How each bucket is replayed; open until [`Mode::Auto`] has chosen.
    pub(super) ways: Vec<Option<Way>>,
    pub(super) choices: Choices,
    /// What each bucket was bound to; a bucket that is dropped keeps it.
    pub(super) bindings: Vec<Option<Bindings>>,
    ready: Vec<Option<Ready>>,
    pub(super) past: Vec<Past>,
    pub(super) declared: Declared,
    pub(super) replays: u64,
}

/// One bucket, ready to run.
pub(super) struct Ready {
    pub(super) batch: Batch,
    pub(super) graph: Option<GraphId>,
    pub(super) audit: Audit,
    pub(super) timed: TimedGraph,
    last_used: u64,
}

/// What one replay did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// Driver calls that gave work or marks, those of a trial ([`Replay::tried`])
    /// aside.
    pub calls: usize,
    /// Bytes that copies moved.
    pub copied_bytes: usize,
    /// How many of them the batch had no use for.
    pub padding_bytes: usize,
    /// Buckets that had to be made ready first.
    pub made: usize,
    /// Buckets that were dropped for them.
    pub dropped: usize,
    /// Graphs that the device refused; they are tried again later.
    pub graphs_failed: usize,
    /// 1 where the batch ran in a larger bucket, as its own has no graph.
    pub larger_bucket: usize,
    /// 1 where the batch ran as launches in place of a graph.
    pub as_launches: usize,
    /// 1 where the batch ran twice, was waited for, and came out the same.
    pub verified: usize,
    /// 1 where the batch was replayed each way first, as [`Mode::Auto`] had to choose.
    pub tried: usize,
    /// How long that took, in nanoseconds.
    pub trial_ns: u64,
    /// Whether the slot's timestamps will be of this batch.
    pub timed: bool,
}

impl Executor {
    /// An executor for `slot`, with its buckets ready if the policy says so.
    ///
    /// # Errors
    /// A policy whose settings do not go together; a kernel that cannot be
    /// loaded; what the device says of a graph, with the command it came to;
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for recordings that an engine or
    /// a packer made of a workload.
    pub fn new(
        backend: &Arc<dyn Backend>,
        slot: &mut dyn DeviceSlot,
        buckets: &Arc<Buckets>,
        policy: &Policy,
    ) -> Result<Self> {
        for bucket in buckets.as_slice() {
            refuse_workload(&bucket.recording)?;
        }
        Executor::choosing(backend, slot, buckets, policy, &Choices::default())
    }

    /// An executor that knows what others chose, and tells them what it chooses.
    ///
    /// # Errors
    /// As [`Executor::new`].
    pub(crate) fn choosing(
        backend: &Arc<dyn Backend>,
        slot: &mut dyn DeviceSlot,
        buckets: &Arc<Buckets>,
        policy: &Policy,
        choices: &Choices,
    ) -> Result<Self> {
        policy.check()?;
        if slot
            .streams()
            .is_some_and(|streams| streams != policy.streams)
        {
            let wanted = policy.streams.name();
            let message = format!("the policy has streams = \"{wanted}\", and the slot others");
            return Err(Error::usage(message).fix("open the slot with the policy's streams"));
        }
        let mut executor = Executor {
            backend: Arc::clone(backend),
            policy: *policy,
            updates: Updates::default(),
            slot: slot.id().clone(),
            buckets: Arc::clone(buckets),
            ways: Vec::new(),
            choices: choices.clone(),
            bindings: Vec::new(),
            ready: Vec::new(),
            past: Vec::new(),
            declared: Declared::default(),
            replays: 0,
        };
        executor.start_buckets(slot, buckets, true)?;
        Ok(executor)
    }

    /// Runs batches of other buckets from here on, over the same buffers, bound as
    /// recorded. Nothing may be in flight. Says what it made and dropped. A graph
    /// that the device refuses is left to its bucket's first batch.
    ///
    /// # Errors
    /// As [`Executor::new`].
    pub fn take_buckets(
        &mut self,
        slot: &mut dyn DeviceSlot,
        buckets: &Arc<Buckets>,
    ) -> Result<Replay> {
        let [old, new] = [&self.buckets, buckets].map(|them| &them.largest().recording);
        if old.id() != new.id() {
            refuse_workload(new)?;
        }
        self.start_buckets(slot, buckets, false)
    }

    fn start_buckets(
        &mut self,
        slot: &mut dyn DeviceSlot,
        buckets: &Arc<Buckets>,
        is_new: bool,
    ) -> Result<Replay> {
        self.check_slot(slot)?;
        drop_released(slot);
        let mut replay = Replay::default();
        for index in 0..self.ready.len() {
            replay.dropped += usize::from(self.ready[index].is_some());
            self.drop_ready(slot, index);
            if let Some(bindings) = self.bindings[index].take() {
                self.disown_unused(slot, bindings.allocations());
            }
        }
        self.buckets = Arc::clone(buckets);
        let count = buckets.as_slice().len();
        self.ready = std::iter::repeat_with(|| None).take(count).collect();
        self.bindings = vec![None; count];
        self.past = std::iter::repeat_with(Past::default).take(count).collect();
        self.ways = match self.policy.mode {
            Mode::Auto => self.choices.start(buckets),
            Mode::Graph | Mode::Stream => vec![Some(self.policy.first_way()); count],
        };
        if self.policy.warm_up {
            for index in 0..count.min(self.policy.ready_max) {
                self.warm(slot, index, is_new, &mut replay)?;
            }
        }
        Ok(replay)
    }

    /// Graphs are the slot's; to another they would be other graphs.
    pub(super) fn check_slot(&self, slot: &dyn DeviceSlot) -> Result<()> {
        match *slot.id() == self.slot {
            true => Ok(()),
            false => Err(Error::usage("the executor is of another slot")),
        }
    }

    /// The buckets that it runs.
    pub fn buckets(&self) -> &Arc<Buckets> {
        &self.buckets
    }

    /// How it replays.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The device that it replays on.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// What [`Mode::Auto`] chose so far, by bucket; nothing under another policy.
    pub fn chosen(&self) -> Vec<Chosen> {
        self.choices.to_vec()
    }

    /// How often each way of updating was taken.
    pub fn updates(&self) -> &Updates {
        &self.updates
    }

    /// Gives one batch that spans `live` to the slot, in a bucket that holds it,
    /// and marks its end.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for a bucket that is not
    /// there or does not hold `live`, and for another slot; what the device says;
    /// [`ErrorKind::Mismatch`](crate::ErrorKind::Mismatch) for a batch that was run
    /// twice ([`Policy::verify`]) and came out differently.
    /// What of the batch was given before is marked too, so that the slot's
    /// buffers can be used again once it is done.
    pub fn replay(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
        live: Extent,
    ) -> Result<Replay> {
        self.run(slot, bucket, live, false)
    }

    pub(super) fn run(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
        live: Extent,
        timed: bool,
    ) -> Result<Replay> {
        let capacity = self.buckets.as_slice().get(bucket);
        if !capacity.is_some_and(|bucket| live.fits(bucket.capacity)) {
            return Err(Error::usage(format!(
                "bucket {bucket} does not hold a batch of {live}"
            )));
        }
        // Another executor of the slot may have withdrawn an allocation that this one declared.
        for view in self.declared.views() {
            slot.adopt(view.allocation())?;
        }
        let mut replay = Replay::default();
        let bucket = self.ready_for_batch(slot, bucket, live, &mut replay)?;
        self.replays += 1;
        let per_stage = self.policy.streams == Streams::PerStage;
        let is_checked = self.is_checked(bucket);
        // What runs twice has no one time.
        let times = match timed && !is_checked {
            true => self.times(slot, bucket),
            false => Times::None,
        };
        replay.timed = times != Times::None;
        let ready = self.ready[bucket].as_mut().expect("made ready above");
        ready.last_used = self.replays;
        let given = match (is_checked, &self.bindings[bucket]) {
            (true, Some(bindings)) => {
                let backend = &*self.backend;
                give_twice(
                    backend,
                    slot,
                    ready,
                    bindings,
                    live,
                    &self.policy,
                    &mut replay,
                )
                .within(|| format!("verification in bucket {bucket}"))
            }
            _ => ready.give(slot, ready.graph, live, per_stage, times, &mut replay),
        };
        self.past[bucket].verified |= replay.verified > 0 && ready.graph.is_some();
        if given.is_err() {
            // The first failure is the one to tell.
            let _ = mark_all(slot, per_stage);
        }
        given.map(|()| replay)
    }

    /// Marks the end of whatever the slot was given.
    pub(crate) fn mark(&self, slot: &mut dyn DeviceSlot) -> Result<()> {
        mark_all(slot, self.policy.streams == Streams::PerStage).map(|_| ())
    }

    pub(super) fn check_bucket(&self, slot: &dyn DeviceSlot, bucket: usize) -> Result<()> {
        self.check_slot(slot)?;
        match bucket < self.ready.len() {
            true => Ok(()),
            false => Err(Error::usage(format!("there is no bucket {bucket}"))),
        }
    }

    /// Drops a bucket where one more would be too many. Returns how many it dropped.
    pub(super) fn make_room(&mut self, slot: &mut dyn DeviceSlot) -> usize {
        let kept = self.ready.iter().flatten().count();
        if kept < self.policy.ready_max {
            return 0;
        }
        let used = |index: &usize| self.ready[*index].as_ref().map(|ready| ready.last_used);
        let held = (0..self.ready.len()).filter(|index| used(index).is_some());
        let oldest = held.min_by_key(used).expect("at least one is kept");
        self.drop_ready(slot, oldest);
        1
    }

    pub(super) fn ready_ref(&self, bucket: usize) -> Option<&Ready> {
        self.ready[bucket].as_ref()
    }

    pub(super) fn ready_mut(&mut self, bucket: usize) -> Option<&mut Ready> {
        self.ready[bucket].as_mut()
    }

    /// Makes a bucket ready to be replayed in this way.
    pub(super) fn prepare(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
        way: Way,
    ) -> Result<()> {
        self.bind(slot, bucket)?;
        self.ready[bucket] = Some(self.make(slot, bucket, way)?);
        Ok(())
    }

    /// Binds a bucket as recorded, unless it is bound.
    pub(super) fn bind(&mut self, slot: &mut dyn DeviceSlot, bucket: usize) -> Result<()> {
        if self.bindings[bucket].is_none() {
            let recording = &self.buckets.as_slice()[bucket].recording;
            let bindings = Bindings::over(recording, &*self.backend, slot, &self.policy);
            self.bindings[bucket] = Some(bindings.within(|| format!("bucket {bucket}"))?);
        }
        Ok(())
    }

    /// A bucket that is bound, ready to be replayed in this way.
    pub(super) fn make(&self, slot: &mut dyn DeviceSlot, bucket: usize, way: Way) -> Result<Ready> {
        let place = || format!("bucket {bucket}");
        let bindings = self.bindings[bucket].as_ref();
        let bindings = bindings.expect("bound by the caller");
        let batch = Batch::new(bindings, way.scope);
        let memory = self.memory(slot, bindings);
        let audit = batch.check(&memory).within(place)?;
        let graph = match way.mode {
            Mode::Graph => {
                let build = self.policy.build;
                let made = make_graph(slot, &memory, &batch.body, build, None);
                Some(made.within(place)?.0)
            }
            _ => None,
        };
        Ok(Ready {
            batch,
            graph,
            audit,
            timed: TimedGraph::default(),
            last_used: self.replays,
        })
    }

    /// What the operations of a bucket with these bindings may use.
    pub(super) fn memory<'a>(
        &'a self,
        slot: &dyn DeviceSlot,
        bindings: &'a Bindings,
    ) -> Memory<'a> {
        let recording = bindings.recording();
        let own = recording.buffers_by_id();
        Memory {
            recording,
            own: own.map(|(id, _)| slot.addresses(id)).collect(),
            bound: bindings.views().collect(),
            declared: &self.declared,
        }
    }

    /// What was audited of a bucket, if it is ready.
    pub fn audit(&self, bucket: usize) -> Option<&Audit> {
        Some(&self.ready.get(bucket)?.as_ref()?.audit)
    }

    pub(super) fn drop_ready(&mut self, slot: &mut dyn DeviceSlot, bucket: usize) {
        self.drop_timed(slot, bucket);
        if let Some(ready) = self.ready[bucket].take() {
            ready.discard(slot);
        }
    }

    pub(super) fn set_ready(&mut self, bucket: usize, ready: Ready) {
        self.ready[bucket] = Some(ready);
    }

    /// Takes the slot's right to those of `allocations` that no bucket uses.
    pub(super) fn disown_unused<'a>(
        &mut self,
        slot: &mut dyn DeviceSlot,
        allocations: impl Iterator<Item = &'a Allocation>,
    ) {
        for allocation in allocations {
            let bound = self
                .bindings
                .iter()
                .flatten()
                .flat_map(Bindings::allocations);
            let declared = self.declared.views().iter().map(AllocationView::allocation);
            if !bound.chain(declared).any(|used| used.is(allocation)) {
                slot.disown(allocation);
                self.declared.let_go(allocation);
            }
        }
    }
}

/// The slot is not at hand here, and takes the graphs at its next executor's first
/// call, or when that makes a graph.
impl Drop for Executor {
    fn drop(&mut self) {
        let ready = self.ready.iter().flatten();
        self.slot.release(ready.flat_map(Ready::graphs));
    }
}

impl Ready {
    /// The graphs that it has in the slot.
    fn graphs(&self) -> impl Iterator<Item = GraphId> {
        self.graph.into_iter().chain(self.timed.graph())
    }

    /// Whether it is replayed in this way.
    pub(super) fn is_of(&self, way: Way) -> bool {
        (self.batch.scope, self.graph.is_some()) == (way.scope, way.mode == Mode::Graph)
    }

    /// Drops its graph.
    pub(super) fn discard(self, slot: &mut dyn DeviceSlot) {
        if let Some(graph) = self.graph {
            slot.drop_graph(graph);
        }
    }

    /// Whether a launch is given an address in an allocation.
    pub(super) fn points_into(&self, allocation: &Allocation) -> bool {
        let args = self
            .batch
            .body
            .iter()
            .flat_map(|lowered| match lowered.op() {
                Op::Launch { args, .. } => &args[..],
                _ => &[],
            });
        args.into_iter().any(|&word| allocation.contains(word, 1))
    }

    /// Gives a batch to the slot, with its body as a graph or as launches.
    pub(super) fn give(
        &self,
        slot: &mut dyn DeviceSlot,
        graph: Option<GraphId>,
        live: Extent,
        per_stage: bool,
        times: Times,
        replay: &mut Replay,
    ) -> Result<()> {
        if per_stage && !slot.is_quiet() {
            // What was given before still uses the buffers, whatever it was.
            let joined = join_stages(slot);
            let joined = joined.and_then(|()| slot.join(Queue::Download, Queue::Upload));
            joined.within(|| "wait for the batch before")?;
            replay.calls += 6;
        }
        times.timestamp(slot, Queue::Upload, BEGUN, replay)?;
        for copy in &self.batch.before {
            copy.enqueue(slot, Queue::Upload, live, replay)?;
        }
        if !holds_uploads(&self.batch.body) {
            times.timestamp(slot, Queue::Upload, UPLOADED, replay)?;
        }
        if per_stage {
            slot.join(Queue::Upload, Queue::Compute)
                .within(|| "wait for uploads")?;
            replay.calls += 2;
        }
        self.give_body(slot, graph, times, replay)?;
        for copy in &self.batch.inside {
            replay.copied_bytes += copy.bytes;
            replay.padding_bytes += copy.bytes - copy.live_bytes(live);
        }
        if per_stage {
            slot.join(Queue::Compute, Queue::Download)
                .within(|| "wait for kernels")?;
            replay.calls += 2;
        }
        for copy in &self.batch.after {
            copy.enqueue(slot, Queue::Download, live, replay)?;
        }
        times.timestamp(slot, Queue::Download, DOWNLOADED, replay)?;
        slot.fence().within(|| "fence")?;
        replay.calls += 1;
        Ok(())
    }

    /// Gives what is between the copies of live sizes.
    fn give_body(
        &self,
        slot: &mut dyn DeviceSlot,
        graph: Option<GraphId>,
        times: Times,
        replay: &mut Replay,
    ) -> Result<()> {
        let Some(graph) = graph else {
            let stamped = times == Times::Calls;
            replay.calls += enqueue_all(slot, &self.batch.body, stamped, "")?;
            return Ok(());
        };
        let graph = match times {
            Times::Graph(timed) => timed,
            Times::None | Times::Calls => graph,
        };
        slot.launch_graph(graph).within(|| "graph launch")?;
        replay.calls += 1;
        times.timestamp(slot, Queue::Compute, COMPUTED, replay)
    }
}

/// Marks whatever the slot was given, on whichever queue. Returns the calls that it
/// took.
pub(super) fn mark_all(slot: &mut dyn DeviceSlot, per_stage: bool) -> Result<usize> {
    if per_stage {
        join_stages(slot)?;
    }
    slot.fence()?;
    Ok(if per_stage { 5 } else { 1 })
}

/// Makes the download queue wait for all that the slot was given before.
fn join_stages(slot: &mut dyn DeviceSlot) -> Result<()> {
    slot.join(Queue::Upload, Queue::Compute)?;
    slot.join(Queue::Compute, Queue::Download)
}
