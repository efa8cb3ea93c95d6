//! The buckets of one slot: what each is bound to, and which are ready to run.

use super::audit::AllowedMemory;
use super::declared_memory::DeclaredMemory;
use super::graph_retry::{GraphRetry, is_of_capture, is_of_graph};
use super::ready_batch::ReadyBatch;
use super::submit::drop_released;
use super::{Bindings, Buckets, Fallback, Mode, Policy, Replay, Verify};
use crate::backend::{Allocation, AllocationView, Backend, DeviceSlot, DeviceSlotId, Space};
use crate::error::{Context, Error, Result};
use crate::record::BufferId;
use std::sync::Arc;

/// What is known of one bucket.
#[derive(Default)]
pub(super) struct BucketState {
    /// Stays when the ready batch is dropped.
    pub(super) bindings: Option<Bindings>,
    /// The version of the resident buffers that its bindings name.
    pub(super) resident: u64,
    pub(super) ready: Option<ReadyBatch>,
    pub(super) retry: GraphRetry,
    /// Whether it has other bindings than those recorded.
    pub(super) is_rebound: bool,
    /// True once a batch of its graph was compared with launches, or if none is to be or can be.
    pub(super) is_verified: bool,
    /// Whether a batch was to be compared that cannot run twice, which is logged once.
    pub(super) is_unverifiable: bool,
}

/// The memory of the resident buffers for the next batch, and of the slot's result buffers.
pub(super) struct ResidentMemory {
    /// 0 for the memory that the buckets were bound to at first.
    pub(super) version: u64,
    pub(super) views: Vec<(BufferId, AllocationView)>,
    /// What the slot has adopted in place of some of these.
    pub(super) former: Vec<AllocationView>,
}

impl ResidentMemory {
    /// Lets the slot adopt the memory in place of the former. A kernel that follows pointers in device memory
    /// counts as a read of all that a slot has adopted, which must not be the copy that is to be filled.
    pub(super) fn adopt(&mut self, slot: &mut dyn DeviceSlot) -> Result<()> {
        if self.former.is_empty() {
            return Ok(());
        }
        for former in self.former.drain(..) {
            slot.disown(former.allocation());
        }
        let mut views = self.views.iter();
        views.try_for_each(|(_, view)| slot.adopt(view.allocation()))
    }
}

/// Makes buckets ready, and keeps at most [`Policy::ready_max`] of them so.
pub(super) struct ReadyBuckets {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) policy: Policy,
    pub(super) slot: DeviceSlotId,
    pub(super) buckets: Arc<Buckets>,
    pub(super) resident: ResidentMemory,
    /// The state of each bucket, by its index.
    pub(super) states: Vec<BucketState>,
    pub(super) declared: DeclaredMemory,
    /// How many batches were replayed.
    pub(super) replays: u64,
}

impl ReadyBuckets {
    /// The buckets of an executor, ready if the policy says so.
    ///
    /// # Errors
    /// The errors of [`Executor::new`](super::Executor::new).
    pub(super) fn new(
        backend: &Arc<dyn Backend>,
        slot: &mut dyn DeviceSlot,
        buckets: &Arc<Buckets>,
        policy: &Policy,
    ) -> Result<Self> {
        drop_released(slot);
        // Where host and device share memory, a graph makes the same calls as launches.
        let is_verified = policy.verify == Verify::Off || backend.device().shares_host_memory;
        let state = |_| BucketState {
            is_verified,
            ..BucketState::default()
        };
        let mut views = buckets.resident().to_vec();
        for (id, decl) in buckets.largest().recording.results() {
            let place = || format!("buffer {}", decl.name);
            let bytes = decl.size_bytes();
            let memory = backend.allocate(Space::Device, bytes).within(place)?;
            views.push((id, AllocationView::new(&memory, 0, bytes)?));
        }
        let states = buckets.as_slice().iter().map(state);
        let mut ready = ReadyBuckets {
            backend: Arc::clone(backend),
            policy: *policy,
            slot: slot.id().clone(),
            states: states.collect(),
            resident: ResidentMemory {
                version: 0,
                views,
                former: Vec::new(),
            },
            buckets: Arc::clone(buckets),
            declared: DeclaredMemory::default(),
            replays: 0,
        };
        if policy.warm_up {
            for bucket in 0..ready.states.len().min(policy.ready_max) {
                ready.warm(slot, bucket)?;
            }
        }
        Ok(ready)
    }

    /// Binds a bucket as recorded, unless it is bound.
    ///
    /// # Errors
    /// The errors of [`Bindings::new`].
    fn bind(&mut self, slot: &mut dyn DeviceSlot, bucket: usize) -> Result<&Bindings> {
        let ResidentMemory { version, views, .. } = &self.resident;
        let bindings = match self.states[bucket].bindings.take() {
            Some(bindings) if self.states[bucket].resident == *version => bindings,
            Some(bindings) => {
                self.states[bucket].resident = *version;
                bindings.with_resident(views)
            }
            None => {
                let recording = &self.buckets.as_slice()[bucket].recording;
                let place = || format!("bucket {bucket}");
                self.states[bucket].resident = *version;
                let bindings = Bindings::over(recording, views, &*self.backend, slot, &self.policy);
                let bindings = bindings.within(place)?;
                for allocation in bindings.allocations() {
                    slot.adopt(allocation).within(place)?;
                }
                bindings
            }
        };
        Ok(self.states[bucket].bindings.insert(bindings))
    }

    /// Makes a bucket ready to be replayed in this mode.
    ///
    /// # Errors
    /// The errors of [`Bindings::new`] and [`ReadyBatch::make`].
    fn make(&mut self, slot: &mut dyn DeviceSlot, bucket: usize, mode: Mode) -> Result<()> {
        self.bind(slot, bucket)?;
        let state = &mut self.states[bucket];
        let bindings = state.bindings.as_ref().expect("bound above");
        let memory = AllowedMemory::new(slot, bindings, &self.declared);
        let made = ReadyBatch::make(slot, bindings, &memory, mode, &self.policy);
        let mut ready = made.within(|| format!("bucket {bucket}"))?;
        ready.last_used = self.replays;
        state.ready = Some(ready);
        Ok(())
    }

    /// Drops the least recently used bucket if one more would be too many. Returns how many it
    /// dropped.
    fn make_room(&mut self, slot: &mut dyn DeviceSlot) -> usize {
        let ready = self.states.iter().enumerate();
        let ready = ready.filter_map(|(bucket, state)| Some((bucket, state.ready.as_ref()?)));
        if ready.clone().count() < self.policy.ready_max {
            return 0;
        }
        let oldest = ready.min_by_key(|(_, ready)| ready.last_used);
        let (oldest, _) = oldest.expect("the limit is at least 1");
        self.drop_ready(slot, oldest);
        1
    }

    /// Drops what makes a bucket ready. Returns whether it was.
    pub(super) fn drop_ready(&mut self, slot: &mut dyn DeviceSlot, bucket: usize) -> bool {
        let ready = self.states[bucket].ready.take();
        let was_ready = ready.is_some();
        if let Some(ready) = ready {
            ready.discard(slot);
        }
        was_ready
    }

    /// Withdraws from the slot those of `allocations` that no bucket uses.
    pub(super) fn disown_unused<'a>(
        &mut self,
        slot: &mut dyn DeviceSlot,
        allocations: impl Iterator<Item = &'a Allocation>,
    ) {
        for allocation in allocations {
            if !self.uses(allocation) {
                slot.disown(allocation);
                self.declared.add_former(allocation);
            }
        }
    }

    /// Whether a bucket is bound to an allocation, or it is declared.
    pub(super) fn uses(&self, allocation: &Allocation) -> bool {
        let states = self.states.iter();
        let bindings = states.filter_map(|state| state.bindings.as_ref());
        let bound = bindings.flat_map(Bindings::allocations);
        let declared = self.declared.views().iter().map(AllocationView::allocation);
        bound.chain(declared).any(|used| used.is(allocation))
    }

    /// Makes a bucket ready before its first batch. If the capture failed and the policy has a
    /// fallback, that batch makes the bucket ready in place of this, and the graph is tried again later.
    fn warm(&mut self, slot: &mut dyn DeviceSlot, bucket: usize) -> Result<()> {
        let has_fallback = self.policy.fallback == Fallback::Launches;
        match self.make(slot, bucket, self.policy.mode) {
            Err(error) if has_fallback && is_of_capture(&error) => {
                self.note_refusal(bucket, &error, &mut Replay::default());
                Ok(())
            }
            made => made,
        }
    }

    /// Makes a bucket ready for a batch, or its fallback. Returns the bucket that the batch runs in.
    ///
    /// A larger bucket does the same work with more padding, so it comes first. Single launches
    /// are many times slower, and run only if the policy allows them. A failed capture would
    /// fail in a larger bucket too.
    ///
    /// # Errors
    /// The error of the graph, if nothing may stand in for it, and those that are not about a
    /// graph.
    pub(super) fn make_ready_for(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
        replay: &mut Replay,
    ) -> Result<usize> {
        let Some(error) = self.try_ready(slot, bucket, replay)? else {
            return Ok(bucket);
        };
        if !is_of_capture(&error) {
            for larger in bucket + 1..self.states.len() {
                // A bucket with other bindings does other work.
                if [bucket, larger].map(|index| self.states[index].is_rebound) != [false; 2] {
                    continue;
                }
                if self.try_ready(slot, larger, replay)?.is_none() {
                    replay.larger_bucket = 1;
                    return Ok(larger);
                }
            }
        }
        self.fall_back_to_launches(slot, bucket, error, replay)?;
        replay.as_launches = 1;
        Ok(bucket)
    }

    /// Makes a bucket ready: with its graph, or as single launches if the policy allows that.
    ///
    /// # Errors
    /// The errors of [`Executor::new`](super::Executor::new).
    pub(super) fn make_ready(&mut self, slot: &mut dyn DeviceSlot, bucket: usize) -> Result<()> {
        let mut replay = Replay::default();
        match self.try_ready(slot, bucket, &mut replay)? {
            None => Ok(()),
            Some(error) => self.fall_back_to_launches(slot, bucket, error, &mut replay),
        }
    }

    /// Falls back to launches for a bucket whose graph could not be made, if the policy allows
    /// that. Otherwise returns the error of the graph.
    fn fall_back_to_launches(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
        error: Error,
        replay: &mut Replay,
    ) -> Result<()> {
        let state = &mut self.states[bucket];
        if self.policy.fallback != Fallback::Launches {
            // The next batch tries at once.
            state.retry.clear();
            return Err(error);
        }
        if state.ready.is_some() {
            return Ok(());
        }
        // Another bucket may have taken the room that was made for the graph, or none was made for a graph
        // that is not tried again yet.
        replay.dropped += self.make_room(slot);
        self.make(slot, bucket, Mode::Stream)
    }

    /// Makes a bucket ready unless it is, or its graph was refused and is not tried again yet.
    /// Returns the error that a fallback may answer.
    ///
    /// # Errors
    /// Those that no fallback answers: of the bucket's bindings or its audit, and of a lost device.
    fn try_ready(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
        replay: &mut Replay,
    ) -> Result<Option<Error>> {
        self.check_bucket(slot, bucket)?;
        let mode = self.policy.mode;
        let state = &mut self.states[bucket];
        if (state.ready.as_ref()).is_some_and(|ready| ready.mode == mode) {
            return Ok(None);
        }
        if let Some(error) = state.retry.wait() {
            return Ok(Some(error));
        }
        self.drop_ready(slot, bucket);
        replay.dropped += self.make_room(slot);
        match self.make(slot, bucket, mode) {
            Ok(()) => {
                replay.made += 1;
                self.states[bucket].retry.clear();
                Ok(None)
            }
            Err(error) if is_of_graph(&error) => {
                self.note_refusal(bucket, &error, replay);
                Ok(Some(error))
            }
            Err(error) => Err(error),
        }
    }

    fn note_refusal(&mut self, bucket: usize, error: &Error, replay: &mut Replay) {
        tracing::warn!(bucket, %error, "a graph could not be made; it is tried again later");
        replay.graphs_failed += 1;
        self.states[bucket].retry.refuse(error.clone());
    }

    /// Checks that the executor was made for this slot, and in this process.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage).
    pub(super) fn check_slot(&self, slot: &dyn DeviceSlot) -> Result<()> {
        self.backend.id().check_process()?;
        if *slot.id() == self.slot {
            Ok(())
        } else {
            Err(Error::usage("the executor is of another slot"))
        }
    }

    /// Checks the slot, and that there is such a bucket.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage).
    pub(super) fn check_bucket(&self, slot: &dyn DeviceSlot, bucket: usize) -> Result<()> {
        self.check_slot(slot)?;
        if bucket < self.states.len() {
            Ok(())
        } else {
            Err(Error::usage(format!("there is no bucket {bucket}")))
        }
    }
}

/// Leaves the graphs to the slot, which is not at hand here: it drops them when an executor next
/// starts or makes a graph.
impl Drop for ReadyBuckets {
    fn drop(&mut self) {
        if self.backend.id().check_process().is_err() {
            return;
        }
        let ready = self.states.iter().filter_map(|state| state.ready.as_ref());
        self.slot.release(ready.flat_map(|ready| ready.graphs()));
    }
}
