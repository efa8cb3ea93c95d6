//! The buckets of one slot: what each is bound to, and which are ready to run.

use super::audit::AllowedMemory;
use super::autotune::{Choices, Chosen, Measurement};
use super::declared_memory::DeclaredMemory;
use super::graph_retry::{GraphRetry, is_of_capture, is_of_graph};
use super::ready_batch::ReadyBatch;
use super::shadow_check::runs_once;
use super::submit::drop_released;
use super::{Bindings, Buckets, Fallback, Mode, Policy, Replay, Way};
use crate::backend::{Allocation, AllocationView, Backend, DeviceSlot, DeviceSlotId};
use crate::error::{Context, Error, Result};
use crate::record::BufferId;
use crate::workload::Extent;
use std::sync::Arc;
use std::time::Instant;

/// What is known of one bucket.
#[derive(Default)]
pub(super) struct BucketState {
    /// How it is replayed; `None` until [`Mode::Auto`](super::Mode::Auto) has chosen.
    pub(super) way: Option<Way>,
    /// Stays when the ready batch is dropped.
    pub(super) bindings: Option<Bindings>,
    pub(super) ready: Option<ReadyBatch>,
    pub(super) retry: GraphRetry,
    /// Whether it has other bindings than those recorded.
    pub(super) is_rebound: bool,
    /// Whether a batch of its graph was compared with launches, or cannot be.
    pub(super) is_verified: bool,
}

/// Makes buckets ready, and keeps at most [`Policy::ready_max`] of them so.
pub(super) struct ReadyBuckets {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) policy: Policy,
    pub(super) slot: DeviceSlotId,
    pub(super) buckets: Arc<Buckets>,
    /// The memory of resident buffers, which later buckets share.
    pub(super) resident: Vec<(BufferId, AllocationView)>,
    pub(super) choices: Choices,
    /// By bucket.
    pub(super) states: Vec<BucketState>,
    pub(super) declared: DeclaredMemory,
    /// How many batches were replayed.
    pub(super) replays: u64,
}

impl ReadyBuckets {
    /// Replaces all buckets, and makes them ready if the policy says so. While the executor is
    /// made (`is_new`) fewer refusals of a graph are left to the bucket's first batch.
    ///
    /// # Errors
    /// As [`Executor::new`](super::Executor::new).
    pub(super) fn start(
        &mut self,
        slot: &mut dyn DeviceSlot,
        buckets: &Arc<Buckets>,
        is_new: bool,
    ) -> Result<Replay> {
        self.check_slot(slot)?;
        drop_released(slot);
        let policy = self.policy;
        let count = buckets.as_slice().len();
        let ways = match policy.mode {
            Mode::Auto => self.choices.start(buckets),
            Mode::Graph | Mode::Stream | Mode::Resident => vec![Some(policy.first_way()); count],
        };
        let mut replay = Replay {
            dropped: self.replace(slot, buckets, ways),
            ..Replay::default()
        };
        if policy.warm_up {
            for bucket in 0..count.min(policy.ready_max) {
                self.warm(slot, bucket, is_new, &mut replay)?;
            }
        }
        Ok(replay)
    }

    /// Replaces all buckets. Returns how many ready ones were dropped.
    fn replace(
        &mut self,
        slot: &mut dyn DeviceSlot,
        buckets: &Arc<Buckets>,
        ways: Vec<Option<Way>>,
    ) -> usize {
        let mut dropped = 0;
        for bucket in 0..self.states.len() {
            dropped += usize::from(self.drop_ready(slot, bucket));
            if let Some(bindings) = self.states[bucket].bindings.take() {
                self.disown_unused(slot, bindings.allocations());
            }
        }
        self.buckets = Arc::clone(buckets);
        let state = |way| BucketState {
            way,
            ..BucketState::default()
        };
        self.states = ways.into_iter().map(state).collect();
        dropped
    }

    /// Binds a bucket as recorded, unless it is bound.
    ///
    /// # Errors
    /// As [`Bindings::new`].
    fn bind(&mut self, slot: &mut dyn DeviceSlot, bucket: usize) -> Result<&Bindings> {
        let bindings = match self.states[bucket].bindings.take() {
            Some(bindings) => bindings,
            None => {
                let recording = &self.buckets.as_slice()[bucket].recording;
                let place = || format!("bucket {bucket}");
                let bindings = Bindings::over(
                    recording,
                    &self.resident,
                    &*self.backend,
                    slot,
                    &self.policy,
                );
                let bindings = bindings.within(place)?;
                for allocation in bindings.allocations() {
                    slot.adopt(allocation).within(place)?;
                }
                bindings
            }
        };
        Ok(self.states[bucket].bindings.insert(bindings))
    }

    /// Makes a bucket ready to be replayed in this way.
    ///
    /// # Errors
    /// As [`Bindings::new`] and [`ReadyBatch::make`].
    fn make(&mut self, slot: &mut dyn DeviceSlot, bucket: usize, way: Way) -> Result<()> {
        self.bind(slot, bucket)?;
        let state = &mut self.states[bucket];
        let bindings = state.bindings.as_ref().expect("bound above");
        let memory = AllowedMemory::new(slot, bindings, &self.declared);
        let made = ReadyBatch::make(slot, bindings, &memory, way, &self.policy);
        let mut ready = made.within(|| format!("bucket {bucket}"))?;
        ready.last_used = self.replays;
        state.ready = Some(ready);
        Ok(())
    }

    /// Makes a bucket ready; before [`Mode::Auto`] has chosen, in the way that it prefers.
    ///
    /// # Errors
    /// As [`Executor::new`](super::Executor::new).
    pub(super) fn make_ready_to_draw(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
    ) -> Result<()> {
        self.check_bucket(slot, bucket)?;
        if self.states[bucket].way.is_some() {
            return self.make_ready(slot, bucket);
        }
        self.drop_ready(slot, bucket);
        self.make_room(slot);
        self.make(slot, bucket, self.policy.first_way())
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
            let bindings = self
                .states
                .iter()
                .filter_map(|state| state.bindings.as_ref());
            let bound = bindings.flat_map(Bindings::allocations);
            let declared = self.declared.views().iter().map(AllocationView::allocation);
            if !bound.chain(declared).any(|used| used.is(allocation)) {
                slot.disown(allocation);
                self.declared.add_former(allocation);
            }
        }
    }

    /// Makes a bucket ready before its first batch, if it is known how it is replayed. A graph
    /// that the device refuses is left to that batch; while the executor is made only if the
    /// capture failed and the policy has a fallback.
    fn warm(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
        is_new: bool,
        replay: &mut Replay,
    ) -> Result<()> {
        let Some(way) = self.states[bucket].way else {
            return Ok(());
        };
        let has_fallback = self.policy.fallback == Fallback::Launches;
        match self.make(slot, bucket, way) {
            Ok(()) => replay.made += 1,
            Err(error) => {
                let is_left = match is_new {
                    true => has_fallback && is_of_capture(&error),
                    false => is_of_graph(&error),
                };
                if !is_left {
                    return Err(error);
                }
                self.note_refusal(bucket, &error, replay);
            }
        }
        Ok(())
    }

    /// Makes a bucket ready for a batch that spans `live`, or its fallback. Returns the bucket
    /// that the batch runs in.
    ///
    /// A larger bucket does the same work with more padding, so it comes first. Single launches
    /// are many times slower, and run only if the policy allows them. A failed capture would
    /// fail in a larger bucket too.
    pub(super) fn make_ready_for(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
        live: Extent,
        replay: &mut Replay,
    ) -> Result<usize> {
        self.choose_way(slot, bucket, live, replay)?;
        let Some(error) = self.try_ready(slot, bucket, replay)? else {
            return Ok(bucket);
        };
        if !is_of_capture(&error) {
            for larger in bucket + 1..self.states.len() {
                // A bucket with other bindings does other work.
                if [bucket, larger].map(|it| self.states[it].is_rebound) != [false; 2] {
                    continue;
                }
                self.choose_way(slot, larger, live, replay)?;
                if self.try_ready(slot, larger, replay)?.is_none() {
                    replay.larger_bucket = 1;
                    return Ok(larger);
                }
            }
        }
        self.ready_as_launches(slot, bucket, error)?;
        replay.as_launches = 1;
        Ok(bucket)
    }

    /// Makes a bucket ready: with its graph, or as single launches if the policy allows that or
    /// if [`Mode::Auto`] has not chosen yet.
    ///
    /// # Errors
    /// As [`Executor::new`](super::Executor::new).
    pub(super) fn make_ready(&mut self, slot: &mut dyn DeviceSlot, bucket: usize) -> Result<()> {
        match self.try_ready(slot, bucket, &mut Replay::default())? {
            None => Ok(()),
            Some(error) => self.ready_as_launches(slot, bucket, error),
        }
    }

    fn ready_as_launches(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
        error: Error,
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
        let way = state.way.unwrap_or(self.policy.first_way());
        let mode = Mode::Stream;
        self.make(slot, bucket, Way { mode, ..way })
    }

    /// Makes a bucket ready unless it is, or its graph was refused and is not tried again yet.
    /// Returns the error that a fallback may answer.
    fn try_ready(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
        replay: &mut Replay,
    ) -> Result<Option<Error>> {
        self.check_bucket(slot, bucket)?;
        let state = &mut self.states[bucket];
        let way = state.way.unwrap_or(Way {
            mode: Mode::Stream,
            ..self.policy.first_way()
        });
        if state.ready.as_ref().is_some_and(|ready| ready.is_of(way)) {
            return Ok(None);
        }
        if let Some(error) = state.retry.wait() {
            return Ok(Some(error));
        }
        self.drop_ready(slot, bucket);
        replay.dropped += self.make_room(slot);
        match self.make(slot, bucket, way) {
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

    /// Chooses how a bucket is replayed if that is open, by measurements with a batch that spans
    /// `live`, which is then as it was. The first slot that needs a choice makes it for all slots
    /// of the device.
    fn choose_way(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
        live: Extent,
        replay: &mut Replay,
    ) -> Result<()> {
        if self.states[bucket].way.is_some() {
            return Ok(());
        }
        self.check_slot(slot)?;
        if let Some(way) = self.choices.way(&self.buckets, bucket) {
            self.states[bucket].way = Some(way);
            return Ok(());
        }
        let mut chosen = Chosen {
            device: 0,
            bucket,
            capacity: self.buckets.as_slice()[bucket].capacity,
            way: self.policy.first_way(),
            tried: Vec::new(),
        };
        if !runs_once(self.bind(slot, bucket)?) {
            let start = Instant::now();
            self.drop_ready(slot, bucket);
            replay.dropped += self.make_room(slot);
            let bindings = self.states[bucket].bindings.as_ref().expect("bound above");
            let measurement = Measurement {
                backend: &*self.backend,
                bindings,
                memory: AllowedMemory::new(slot, bindings, &self.declared),
                live,
                policy: &self.policy,
            };
            let measured = measurement.run(slot);
            let (way, ready, tried) = measured.within(|| format!("trial in bucket {bucket}"))?;
            self.states[bucket].ready = Some(ready);
            (chosen.way, chosen.tried) = (way, tried);
            replay.made += 1;
            replay.tried = 1;
            replay.trial_ns += start.elapsed().as_nanos() as u64;
        }
        let device = &self.backend.device().name;
        tracing::info!(device, "mode auto: {chosen}");
        self.states[bucket].way = Some(chosen.way);
        self.choices.add(&self.buckets, chosen);
        Ok(())
    }

    pub(super) fn check_slot(&self, slot: &dyn DeviceSlot) -> Result<()> {
        match *slot.id() == self.slot {
            true => Ok(()),
            false => Err(Error::usage("the executor is of another slot")),
        }
    }

    pub(super) fn check_bucket(&self, slot: &dyn DeviceSlot, bucket: usize) -> Result<()> {
        self.check_slot(slot)?;
        match bucket < self.states.len() {
            true => Ok(()),
            false => Err(Error::usage(format!("there is no bucket {bucket}"))),
        }
    }
}

/// Leaves the graphs to the slot, which is not at hand here: it drops them when an executor next
/// starts or makes a graph.
impl Drop for ReadyBuckets {
    fn drop(&mut self) {
        let ready = self.states.iter().filter_map(|state| state.ready.as_ref());
        self.slot.release(ready.flat_map(|ready| ready.graphs()));
    }
}
