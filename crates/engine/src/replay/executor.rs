//! Replays batches of several sizes on one slot.

use super::audit::{AllowedMemory, Audit};
use super::batch::LoweredBatch;
use super::bindings::refuse_workload;
use super::declared_memory::check_apart;
use super::dot::Title;
use super::graph_retry::is_of_graph;
use super::ready_batch::ReadyBatch;
use super::ready_buckets::{BucketState, ReadyBuckets};
use super::shadow_check::{run_twice, runs_once};
use super::{Bindings, Buckets, Build, Policy, Replay, Rung, Updates, Verify, dot, stage_drawing};
use crate::backend::{Allocation, AllocationView, Backend, DeviceSlot, Op};
use crate::error::{Context, Error, Result};
use crate::record::{BufferId, View};
use crate::workload::Extent;
use std::sync::Arc;

/// Replays batches on one slot. Each bucket is made ready when the executor is made or at its
/// first batch: its commands are lowered and audited, and made into a graph if the policy replays
/// one.
///
/// # Errors
/// What a slot or a backend reports comes through with its kind: see [`DeviceSlot`]. A method's
/// own section names the errors that it adds.
///
/// # Examples
/// ```
/// # fn main() -> tapeloop_engine::Result<()> {
/// use std::sync::Arc;
/// use tapeloop_engine::backend::{contract::Priority, cpu::CpuBackend};
/// use tapeloop_engine::replay::{Buckets, Policy};
/// use tapeloop_engine::{Backend, Executor, Extent, Kernel, Recorder};
///
/// let sevens = Kernel::new("sevens").writes::<u8>("y");
/// let sevens = sevens.twin(|launch| launch.write::<u8>().fill(7));
/// let mut recorder = Recorder::new(&[100]);
/// let y = recorder.download_buffer::<u8>("y", 0, 1);
/// recorder.launch(&sevens, 1, &[y.into()]);
/// recorder.download(y);
/// let recording = recorder.finish()?;
///
/// let backend: Arc<dyn Backend> = Arc::new(CpuBackend::inline());
/// let mut opened = backend.open_slots(recording.buffers(), 1, Priority::Normal)?;
/// let slot = &mut *opened[0];
/// let buckets = Arc::new(Buckets::single(recording));
/// let mut executor = Executor::new(&backend, slot, &buckets, &Policy::default())?;
/// executor.replay(slot, 0, Extent::from([100]))?;
/// slot.wait()?;
/// assert_eq!(slot.host(y.id()), [7; 100]);
/// # Ok(())
/// # }
/// ```
pub struct Executor {
    buckets: ReadyBuckets,
    updates: Updates,
}

impl Executor {
    /// An executor for `slot`, with its buckets ready if the policy says so.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for a policy with a value out of range;
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for recordings that an engine or a packer made
    /// of a workload; [`ErrorKind::Mismatch`](crate::ErrorKind::Mismatch) for a graph that differs
    /// from the recording; as [`Bindings::new`] and [`DeviceSlot::make_graph`].
    pub fn new(
        backend: &Arc<dyn Backend>,
        slot: &mut dyn DeviceSlot,
        buckets: &Arc<Buckets>,
        policy: &Policy,
    ) -> Result<Self> {
        for bucket in buckets.as_slice() {
            refuse_workload(&bucket.recording)?;
        }
        Executor::of_any(backend, slot, buckets, policy)
    }

    /// [`Executor::new`], which also accepts recordings of workloads.
    ///
    /// # Errors
    /// The errors of [`Executor::new`].
    pub(crate) fn of_any(
        backend: &Arc<dyn Backend>,
        slot: &mut dyn DeviceSlot,
        buckets: &Arc<Buckets>,
        policy: &Policy,
    ) -> Result<Self> {
        policy.check()?;
        backend.id().check_process()?;
        Ok(Executor {
            buckets: ReadyBuckets::new(backend, slot, buckets, policy)?,
            updates: Updates::default(),
        })
    }

    /// The buckets that it runs.
    pub fn buckets(&self) -> &Arc<Buckets> {
        &self.buckets.buckets
    }

    /// How it replays.
    pub fn policy(&self) -> &Policy {
        &self.buckets.policy
    }

    /// The device that it replays on.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.buckets.backend
    }

    /// How often each way of updating was taken.
    pub fn updates(&self) -> &Updates {
        &self.updates
    }

    /// The audit of a bucket; `None` unless it is ready.
    pub fn audit(&self, bucket: usize) -> Option<&Audit> {
        let state = self.buckets.states.get(bucket)?;
        Some(&state.ready.as_ref()?.audit)
    }

    /// Gives one batch that spans `live` to the slot, and a fence behind it. It runs in `bucket`,
    /// or in a larger one if the device refuses the graph. Waits for the device only for a batch that runs
    /// twice ([`Policy::verify`]), and for the first run of a library call that is then captured.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for a bucket that does not exist or does not
    /// hold `live`, and for another slot; [`ErrorKind::Mismatch`](crate::ErrorKind::Mismatch) if
    /// the batch was run twice ([`Policy::verify`]) with different results; as
    /// [`Executor::new`], [`DeviceSlot::enqueue`] and [`DeviceSlot::launch_graph`]. The part of
    /// the batch that was submitted before an error has a fence too, so that the slot's buffers
    /// can be used again once [`DeviceSlot::wait`] returns.
    pub fn replay(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
        live: Extent,
    ) -> Result<Replay> {
        self.run(slot, bucket, live, false)
    }

    /// [`Executor::replay`], with the slot's timestamps
    /// [`BEGUN`](super::timed::BEGUN) to [`DOWNLOADED`](super::timed::DOWNLOADED).
    ///
    /// A batch that runs twice, to verify it ([`Policy::verify`]), has no timestamps. Nor has one whose timed
    /// graph the device refuses, which is logged when the graph is tried. [`Replay::timed`] is false then.
    ///
    /// # Errors
    /// The errors of [`Executor::replay`].
    pub fn replay_timed(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
        live: Extent,
    ) -> Result<Replay> {
        self.run(slot, bucket, live, true)
    }

    /// Replays a bucket's batch of extent `live` in the slot, after all earlier work of the slot.
    /// Makes the bucket ready first if it is not, and compares graph and launches if that is due.
    /// On an error a fence is set, so that work that was submitted before it is waited for.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for a bucket that does not hold the batch;
    /// those of making it ready, of [`run_twice`], and of the slot.
    fn run(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
        live: Extent,
        is_timed: bool,
    ) -> Result<Replay> {
        self.backend().id().check_process()?;
        let capacity = self.buckets().as_slice().get(bucket);
        if !capacity.is_some_and(|bucket| live.fits(bucket.capacity)) {
            let message = format!("bucket {bucket} does not hold a batch of {live}");
            return Err(Error::usage(message));
        }
        // Another executor of the slot may have withdrawn an allocation that is declared here.
        for view in self.buckets.declared.views() {
            slot.adopt(view.allocation())?;
        }
        self.buckets.resident.adopt(slot)?;
        let mut replay = Replay::default();
        let bucket = self.buckets.make_ready_for(slot, bucket, &mut replay)?;
        let bucket = self.bind_resident(slot, bucket, &mut replay)?;
        self.buckets.replays += 1;
        let runs_twice = self.is_check_due(bucket);
        let ReadyBuckets {
            backend,
            policy,
            states,
            declared,
            replays,
            ..
        } = &mut self.buckets;
        let BucketState {
            bindings: Some(bindings),
            ready: Some(ready),
            is_verified,
            ..
        } = &mut states[bucket]
        else {
            unreachable!("made ready above");
        };
        ready.last_used = *replays;
        let submitted = if runs_twice {
            let checked = run_twice(&**backend, slot, ready, bindings, live, policy, &mut replay);
            checked.within(|| format!("verification in bucket {bucket}"))
        } else {
            let timed = if is_timed {
                ready.make_timed_submission(slot, bindings, declared, policy.build)
            } else {
                None
            };
            replay.timed = timed.is_some();
            let submission = timed.unwrap_or_else(|| ready.untimed_submission());
            ready.submit(slot, submission, live, &mut replay)
        };
        *is_verified |= replay.verified > 0 && ready.graph.is_some();
        if submitted.is_err() {
            // The first error is the one to report.
            let _ = slot.fence();
        }
        submitted.map(|()| replay)
    }

    /// Whether the next batch of a ready bucket runs twice, to compare the results. Notes, and logs once, if
    /// its batches cannot.
    fn is_check_due(&mut self, bucket: usize) -> bool {
        let is_nth = match self.buckets.policy.verify {
            Verify::Every(count) => self.buckets.replays.is_multiple_of(count.get().into()),
            Verify::Off | Verify::First => false,
        };
        let state = &mut self.buckets.states[bucket];
        let has_graph = state
            .ready
            .as_ref()
            .is_some_and(|ready| ready.graph.is_some());
        let is_first = !state.is_verified && has_graph;
        if !is_first && !is_nth {
            return false;
        }
        let runs_once = state.bindings.as_ref().is_some_and(runs_once);
        // The commands are looked through for the first batch, and not for all that follow.
        state.is_verified |= runs_once && is_first;
        if runs_once && !state.is_unverifiable {
            state.is_unverifiable = true;
            let why = "a batch changes its own inputs, so running it twice gives other results";
            tracing::info!(bucket, "not verified: {why}");
        }
        !runs_once
    }

    /// What a bucket is bound to; makes it ready first.
    ///
    /// # Errors
    /// The errors of [`Executor::new`].
    pub fn bindings(&mut self, slot: &mut dyn DeviceSlot, bucket: usize) -> Result<&Bindings> {
        self.backend().id().check_process()?;
        self.buckets.make_ready(slot, bucket)?;
        let bindings = self.buckets.states[bucket].bindings.as_ref();
        Ok(bindings.expect("made ready above"))
    }

    /// Replays a bucket with other bindings from here on. Launches in flight keep theirs.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for bindings of another recording or slot,
    /// and for a buffer that is bound to declared memory ([`Executor::declare`]); as
    /// [`Executor::new`] and [`DeviceSlot::set_params`]. The bucket then runs as before.
    pub fn update(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
        bindings: Bindings,
    ) -> Result<Rung> {
        self.update_from(slot, bucket, bindings, Rung::Unchanged)
    }

    /// [`Executor::update`], by no cheaper rung than `least`.
    ///
    /// # Errors
    /// The errors of [`Executor::update`].
    pub fn update_from(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
        bindings: Bindings,
        least: Rung,
    ) -> Result<Rung> {
        self.buckets.make_ready(slot, bucket)?;
        let place = || format!("update of bucket {bucket}");
        self.check_update(slot, bucket, &bindings).within(place)?;
        let updated = self.adopt_and_climb(slot, bucket, &bindings, least);
        let (rung, unused) = match updated {
            Ok(rung) => {
                let state = &mut self.buckets.states[bucket];
                state.is_rebound = true;
                let old = state.bindings.replace(bindings);
                (Ok(rung), old.expect("bound when it was made ready"))
            }
            Err(error) => (Err(error), bindings),
        };
        self.buckets.disown_unused(slot, unused.allocations());
        rung.within(place)
    }

    /// Uses other memory for resident buffers from the next batch on. `memory` is as large as what is used
    /// now, and its contents stay while a batch with this version runs.
    pub(crate) fn set_resident(&mut self, version: u64, memory: &[(BufferId, AllocationView)]) {
        let resident = &mut self.buckets.resident;
        if resident.version == version {
            return;
        }
        resident.version = version;
        for (id, view) in memory {
            let mut views = resident.views.iter_mut();
            let known = views.find(|(known, _)| known == id);
            let (_, known) = known.expect("a resident buffer of the recording");
            // The slot disowns it when it adopts the new memory.
            resident.former.push(std::mem::replace(known, view.clone()));
        }
    }

    /// Gives a ready bucket the memory that resident buffers have now. Returns the bucket that the batch runs
    /// in, which is another one if the device refuses the graph with these addresses.
    fn bind_resident(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
        replay: &mut Replay,
    ) -> Result<usize> {
        let ReadyBuckets {
            states, resident, ..
        } = &self.buckets;
        let state = &states[bucket];
        if state.resident == resident.version {
            return Ok(bucket);
        }
        let (Some(ready), Some(bindings)) = (&state.ready, &state.bindings) else {
            unreachable!("made ready by the caller");
        };
        // A loop has a copy of the graph, and the next one may need its place.
        if !ready.is_resident {
            let bindings = bindings.with_resident(&resident.views);
            match self.adopt_and_climb(slot, bucket, &bindings, Rung::Unchanged) {
                Ok(_) => {
                    let state = &mut self.buckets.states[bucket];
                    state.bindings = Some(bindings);
                    state.resident = self.buckets.resident.version;
                    return Ok(bucket);
                }
                Err(error) if is_of_graph(&error) => {}
                Err(error) => return Err(error.within("resident buffers")),
            }
        }
        self.buckets.drop_ready(slot, bucket);
        let bucket = self.buckets.make_ready_for(slot, bucket, replay)?;
        // This ends: a bucket that was made anew has the memory of now, and each other turn drops
        // one.
        self.bind_resident(slot, bucket, replay)
    }

    /// Refuses bindings that a ready bucket cannot take.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage).
    fn check_update(
        &self,
        slot: &dyn DeviceSlot,
        bucket: usize,
        bindings: &Bindings,
    ) -> Result<()> {
        let old = self.buckets.states[bucket].bindings.as_ref();
        if !old.is_some_and(|old| Arc::ptr_eq(old.recording(), bindings.recording())) {
            return Err(Error::usage("the bindings are of another recording"));
        }
        if bindings.slot() != slot.id() {
            return Err(Error::usage("the bindings are of another slot"));
        }
        self.buckets.declared.check(bindings)
    }

    /// Gives a ready bucket the addresses of other bindings, which the caller keeps with it. After
    /// an error the bucket has its old addresses, or none is ready.
    fn adopt_and_climb(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
        bindings: &Bindings,
        least: Rung,
    ) -> Result<Rung> {
        for allocation in bindings.allocations() {
            slot.adopt(allocation)?;
        }
        let ready = self.buckets.states[bucket].ready.as_mut();
        let ready = ready.expect("made ready by the caller");
        let batch = LoweredBatch::new(bindings);
        let memory = AllowedMemory::new(slot, bindings, &self.buckets.declared);
        let audit = batch.check(&memory)?;
        let policy = &self.buckets.policy;
        let climbed = self
            .updates
            .climb(slot, ready, &memory, &batch, policy, least);
        let rung = climbed.map_err(|failure| {
            if failure.is_spoiled {
                // The next batch makes another graph.
                self.buckets.drop_ready(slot, bucket);
            }
            failure.error
        })?;
        let ready = self.buckets.states[bucket].ready.as_mut();
        let ready = ready.expect("the bucket stays ready where no error was returned");
        ready.discard_timed(slot);
        (ready.batch, ready.audit) = (batch, audit);
        Ok(rung)
    }

    /// The memory of the result buffers, in the order of the recording.
    pub(crate) fn results(&self) -> impl Iterator<Item = (BufferId, AllocationView)> {
        let recording = &self.buckets().largest().recording;
        let views = self.buckets.resident.views.iter().cloned();
        views.filter(|(id, _)| {
            let decl = recording.buffer(*id);
            decl.is_some_and(|decl| decl.view == View::DeviceResult)
        })
    }

    /// Takes back that the slot may use an allocation, unless a bucket uses it.
    pub(crate) fn disown(&self, slot: &mut dyn DeviceSlot, allocation: &Allocation) {
        if !self.buckets.uses(allocation) {
            slot.disown(allocation);
        }
    }

    /// Lets pointers in structs point into an embedder's memory. All declared memory counts as
    /// one thing that launches read or write, whatever the address. A bucket is made ready only
    /// after the memory that it points to is declared, so set [`Policy::warm_up`] to false.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for another slot, for memory of another
    /// backend, and for memory that a buffer of any bucket is bound to: nothing would order the
    /// kernels that use the two.
    pub fn declare(&mut self, slot: &mut dyn DeviceSlot, view: AllocationView) -> Result<()> {
        self.buckets.check_slot(slot)?;
        for state in &self.buckets.states {
            if let Some(bindings) = &state.bindings {
                check_apart(bindings, &view)?;
            }
        }
        slot.adopt(view.allocation())?;
        self.buckets.declared.add(view);
        Ok(())
    }

    /// Takes back all declarations of an allocation. A bucket that still points there is refused
    /// at its next batch. No work may be in flight.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for another slot.
    pub fn withdraw(&mut self, slot: &mut dyn DeviceSlot, allocation: &Allocation) -> Result<()> {
        self.buckets.check_slot(slot)?;
        self.buckets.declared.remove(allocation);
        for bucket in 0..self.buckets.states.len() {
            let ready = self.buckets.states[bucket].ready.as_ref();
            if ready.is_some_and(|ready| ready.points_into(allocation)) {
                self.buckets.drop_ready(slot, bucket);
            }
        }
        self.buckets
            .disown_unused(slot, std::iter::once(allocation));
        Ok(())
    }

    /// Draws the operations that a batch of a bucket replays, and their order, in Graphviz's DOT
    /// language: kernels are boxes, uploads and downloads trapezia, memsets ellipses. An edge is
    /// labelled with the buffers that order its ends, and dotted where only the stream orders them.
    /// A graph is read back from the device. Makes the bucket ready first.
    ///
    /// # Errors
    /// The errors of [`Executor::new`].
    pub fn dot(&mut self, slot: &mut dyn DeviceSlot, bucket: usize) -> Result<String> {
        self.dot_of_size(slot, bucket, &self.size_text(bucket))
    }

    /// [`Self::dot`] with a text for the size of the bucket.
    pub(crate) fn dot_of_size(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
        size: &str,
    ) -> Result<String> {
        self.draw_ready(slot, bucket, size, dot::draw)
    }

    /// Draws the same operations as an SVG file of page width, by stages: uploads, memsets, kernels
    /// in steps, and downloads. A kernel names those that it waits for. Buffers are named where they
    /// are copied; [`Self::dot`] has them at each edge.
    ///
    /// # Errors
    /// The errors of [`Self::dot`].
    pub fn svg(&mut self, slot: &mut dyn DeviceSlot, bucket: usize) -> Result<String> {
        self.svg_of_size(slot, bucket, &self.size_text(bucket))
    }

    /// [`Self::svg`] with a text for the size of the bucket.
    pub(crate) fn svg_of_size(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
        size: &str,
    ) -> Result<String> {
        self.draw_ready(slot, bucket, size, stage_drawing::draw)
    }

    fn size_text(&self, bucket: usize) -> String {
        let bucket = self.buckets().as_slice().get(bucket);
        bucket.map_or(String::new(), |bucket| bucket.capacity.to_string())
    }

    /// Makes a bucket ready, and draws the operations that the device holds for it.
    fn draw_ready(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
        size: &str,
        draw: fn(&ReadyBatch, &[Op], &Bindings, &Title<'_>, bool) -> String,
    ) -> Result<String> {
        self.buckets.make_ready(slot, bucket)?;
        let state = &self.buckets.states[bucket];
        let (Some(ready), Some(bindings)) = (&state.ready, &state.bindings) else {
            unreachable!("made ready above");
        };
        let graph_ops = match ready.graph {
            Some(graph) => slot.graph_ops(graph),
            None => Ok(Vec::new()),
        };
        let graph_ops = graph_ops.within(|| format!("graph of bucket {bucket}"))?;
        let (way, is_line) = match (ready.graph, self.policy().build) {
            (None, _) => ("launches", true),
            (Some(_), Build::Capture) => ("captured graph", true),
            (Some(_), Build::Explicit) => ("explicit graph", false),
        };
        let title = Title { bucket, size, way };
        Ok(draw(ready, &graph_ops, bindings, &title, is_line))
    }
}
