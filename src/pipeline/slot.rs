//! A slot's state is the type that owns it.
//!
//! `Free -> Filling -> Filled -> InFlight -> Done -> Free`. Host memory can be
//! written in `Filling` only and read in `Done` only, so a program that refills
//! a slot in flight, or reads it before it is done, does not compile.

mod in_flight;

use super::upload::write_header;
use crate::backend::{Allocation, AllocationView, Backend, DeviceSlot, HostViews, Timestamps};
use crate::error::{Context, Error, Result};
use crate::record::{Buffer, BufferId, Element, RecordingId, View};
use crate::replay::{Bindings, Buckets, Choices, Executor, Policy, Replay, Rung};
use crate::workload::Extent;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::debug_span;

/// How long the device may refuse to mark the end of a failed batch, as it does while
/// another thread captures.
const FENCE_TIMEOUT: Duration = Duration::from_secs(10);

/// One slot, in state `S`. Dropping it gives up its memory, and the ring has one
/// slot less.
#[must_use = "a slot that is dropped is gone from its ring"]
pub struct Slot<S> {
    core: Box<Core>,
    state: S,
}

struct Core {
    index: usize,
    /// The place of its device among those of the engine.
    device: usize,
    device_slot: Box<dyn DeviceSlot>,
    executor: Executor,
    /// The counts that the header holds, as far as the slot wrote them.
    header_live: Extent,
}

/// Holds nothing.
pub struct Free(());
/// Host memory is being written.
pub struct Filling(());
/// Ready to submit: a batch, what it spans, and the buckets that it may run in.
pub(crate) struct Filled<B> {
    batch: B,
    live: Extent,
    buckets: Arc<Buckets>,
}
/// On the device.
pub(crate) struct InFlight<B> {
    batch: B,
    /// When the device has to be done with it.
    due: Option<Instant>,
    /// Why the batch has failed, once that is known. The slot is waited for all the
    /// same: a part of the batch may be on the device.
    failed: Option<Error>,
    /// Whether the device has reported an error of the batch, which it does once.
    reported: bool,
    /// Since when the end of what was given is to be marked, if it is not.
    unfenced_since: Option<Instant>,
}
/// Results can be read.
pub struct Done<B> {
    batch: B,
}

/// A batch that failed, and its slot. A part of the batch may still be on the device.
pub struct Failed<B> {
    /// What happened.
    pub error: Error,
    /// What was attached to the batch.
    pub batch: B,
    pub(crate) slot: Slot<Free>,
}

impl<B> fmt::Debug for Failed<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Failed: {}", self.error)
    }
}

/// A slot given to the device and what that took, or its failure.
pub(crate) type Submitted<B> = Result<(Slot<InFlight<B>>, Replay), Box<Failed<B>>>;

/// What became of a slot in flight.
pub(crate) enum Progress<B> {
    Pending(Slot<InFlight<B>>),
    Done(Slot<Done<B>>),
    Failed(Box<Failed<B>>),
}

/// Opens `count` slots on a backend and makes their buckets ready. Returns what they
/// will choose.
pub(crate) fn open_slots(
    backend: &Arc<dyn Backend>,
    buckets: &Arc<Buckets>,
    count: usize,
    policy: &Policy,
    device: usize,
    slots: &mut Vec<Slot<Free>>,
) -> Result<Choices> {
    let choices = Choices::default();
    let buffers = buckets.largest().recording.buffers();
    let device_slots = {
        let _span = debug_span!("memory", slots = count).entered();
        backend.open_slots(buffers, count, policy.streams)?
    };
    for mut device_slot in device_slots {
        let index = slots.len();
        let _span = debug_span!("graphs", slot = index).entered();
        let executor =
            Executor::with_choices(backend, &mut *device_slot, buckets, policy, &choices)
                .within(|| format!("slot {index}"))?;
        slots.push(Slot {
            core: Box::new(Core {
                index,
                device,
                device_slot,
                executor,
                header_live: Extent::default(),
            }),
            state: Free(()),
        });
    }
    Ok(choices)
}

impl Core {
    fn expect_view<T: Element>(&self, buffer: Buffer<T>, view: View) {
        let recording = &self.executor.buckets().largest().recording;
        let decl = recording.buffer(buffer.id());
        let fits = decl.is_some_and(|decl| (decl.view, decl.dtype) == (view, T::DTYPE));
        assert!(fits, "the recording has no such {view:?} buffer");
    }

    /// When the device has to be done with what it is given now.
    fn due(&self) -> Option<Instant> {
        let deadline = self.executor.policy().deadline;
        deadline.and_then(|deadline| Instant::now().checked_add(deadline))
    }

    fn replay(&mut self, live: Extent, buckets: &Arc<Buckets>, timed: bool) -> Result<Replay> {
        let mut taken = Replay::default();
        if !Arc::ptr_eq(self.executor.buckets(), buckets) {
            taken = self
                .executor
                .take_buckets(&mut *self.device_slot, buckets)?;
        }
        if !self.header_live.fits(live) {
            let written = self.header_live;
            return Err(Error::usage(format!(
                "the header counts {written}, and the batch spans {live}"
            ))
            .fix("submit at least what the header was written for"));
        }
        let bucket = buckets.find(live);
        let bucket =
            bucket.ok_or_else(|| Error::usage(format!("no bucket holds a batch of {live}")))?;
        let replay = match timed {
            true => self
                .executor
                .replay_timed(&mut *self.device_slot, bucket, live)?,
            false => self.executor.replay(&mut *self.device_slot, bucket, live)?,
        };
        Ok(Replay {
            made: replay.made + taken.made,
            dropped: replay.dropped + taken.dropped,
            graphs_failed: replay.graphs_failed + taken.graphs_failed,
            ..replay
        })
    }
}

impl<S> Slot<S> {
    /// Waits for what the slot gave to the device and never saw end: with a lost device,
    /// for the report of the loss. Whether the host may use the slot's memory.
    pub(crate) fn take_loss(&mut self) -> bool {
        let device_slot = &mut *self.core.device_slot;
        if !device_slot.is_quiet() {
            let deadline = self.core.executor.policy().deadline.unwrap_or_default();
            // What went wrong has been reported.
            let _ = device_slot.wait_for(deadline.max(FENCE_TIMEOUT));
        }
        device_slot.is_quiet()
    }

    /// Its place among all slots.
    pub fn index(&self) -> usize {
        self.core.index
    }

    /// The place of its device among those of the engine.
    pub(crate) fn device(&self) -> usize {
        self.core.device
    }

    /// The device that it is on.
    pub(crate) fn backend(&self) -> &Arc<dyn Backend> {
        self.core.executor.backend()
    }

    /// The most that a batch of it can span.
    pub(crate) fn capacity(&self) -> Extent {
        self.core.executor.buckets().largest().capacity
    }

    /// Whether its buckets are of the recordings with this id.
    pub(crate) fn is_of(&self, id: RecordingId) -> bool {
        self.core.executor.buckets().largest().recording.id() == id
    }

    fn with<T>(self, state: impl FnOnce(S) -> T) -> Slot<T> {
        Slot {
            core: self.core,
            state: state(self.state),
        }
    }

    fn located(&self, error: Error) -> Error {
        error.within(format!("slot {}", self.core.index))
    }

    fn fail<B>(self, error: Error, batch: impl FnOnce(S) -> B) -> Box<Failed<B>> {
        let error = self.located(error);
        let batch = batch(self.state);
        let slot = Slot {
            core: self.core,
            state: Free(()),
        };
        Box::new(Failed { error, batch, slot })
    }
}

impl Slot<Free> {
    pub(crate) fn begin(self) -> Slot<Filling> {
        self.with(|_| Filling(()))
    }

    /// Waits until nothing of a failed batch is on the device. `None` if that cannot
    /// be known: the slot is dropped.
    pub(crate) fn quiet(mut self) -> Option<Self> {
        let device_slot = &mut *self.core.device_slot;
        if !device_slot.is_quiet() {
            // A device that was started again refuses new work before its loss is seen.
            let _ = device_slot.wait();
        }
        let is_marked = self.core.executor.fence(device_slot).is_ok();
        // The first wait may report an error of the batch.
        let is_quiet = is_marked && (device_slot.wait().is_ok() || device_slot.wait().is_ok());
        is_quiet.then_some(self)
    }

    /// Carries a batch that has nothing for the device in its turn.
    pub(crate) fn pass<B>(self, batch: B) -> Slot<Done<B>> {
        self.with(|_| Done { batch })
    }
}

impl Slot<Filling> {
    /// Free again, with what was written.
    pub(crate) fn cancel(self) -> Slot<Free> {
        self.with(|_| Free(()))
    }

    /// Fills the recording's header: what the batch spans, how many items it has,
    /// and the uniforms as they were declared.
    ///
    /// The batch is then submitted with an extent that holds `live`.
    ///
    /// # Panics
    /// If the recording has no header, if the largest bucket does not hold `live`, and
    /// if a packer made the recording: what a [`Packer`](super::Packer) packs comes with
    /// its header.
    pub fn write_header(&mut self, live: Extent, items: u32) {
        let buckets = Arc::clone(self.core.executor.buckets());
        let recording = &buckets.largest().recording;
        let capacity = buckets.largest().capacity;
        assert!(
            live.fits(capacity),
            "the header counts {live}, and the largest bucket holds {capacity}"
        );
        assert!(
            !recording.is_of_workload(),
            "the header of a workload's batch is its packer's to write"
        );
        let header = recording.header().expect("the recording has a header");
        self.core.header_live = live;
        let mut views = self.core.device_slot.host_mut(&[header]);
        let bytes = views.pop().expect("one was asked for");
        let uniforms = recording.uniforms().iter().map(|uniform| uniform.bits);
        write_header(bytemuck::cast_slice_mut(bytes), live, items, uniforms);
    }

    /// What a bucket is bound to in this slot, to be changed and given to
    /// [`Slot::rebind`].
    ///
    /// # Errors
    /// What the device says when the bucket is made ready.
    pub fn bindings(&mut self, bucket: usize) -> Result<Bindings> {
        let core = &mut *self.core;
        core.executor
            .bindings(&mut *core.device_slot, bucket)
            .cloned()
    }

    /// Replays a bucket of this slot with other bindings from here on.
    ///
    /// # Errors
    /// As [`Executor::update`].
    pub fn rebind(&mut self, bucket: usize, bindings: Bindings) -> Result<Rung> {
        let core = &mut *self.core;
        let _span = debug_span!("rebind", slot = core.index, bucket).entered();
        core.executor
            .update(&mut *core.device_slot, bucket, bindings)
    }

    /// As [`Executor::declare`], for this slot.
    ///
    /// # Errors
    /// As [`Executor::declare`].
    pub fn declare(&mut self, view: AllocationView) -> Result<()> {
        let core = &mut *self.core;
        core.executor.declare(&mut *core.device_slot, view)
    }

    /// As [`Executor::withdraw`], for this slot.
    ///
    /// # Errors
    /// As [`Executor::withdraw`].
    pub fn withdraw(&mut self, allocation: &Allocation) -> Result<()> {
        let core = &mut *self.core;
        core.executor.withdraw(&mut *core.device_slot, allocation)
    }

    /// The host side of an upload buffer. It holds what an earlier batch left.
    ///
    /// # Panics
    /// If the recording has no such upload buffer.
    pub fn write<T: Element>(&mut self, buffer: Buffer<T>) -> &mut [T] {
        self.core.expect_view(buffer, View::Upload);
        let mut views = self.core.device_slot.host_mut(&[buffer.id()]);
        bytemuck::cast_slice_mut(views.pop().expect("one was asked for"))
    }

    /// What the header holds.
    pub(crate) fn header(&mut self, header: BufferId) -> &[u32] {
        let mut views = self.core.device_slot.host_mut(&[header]);
        bytemuck::cast_slice(views.pop().expect("one was asked for"))
    }

    /// Memory for a batch of the workload that was recorded with this id; its header is
    /// about to count `live`.
    ///
    /// # Panics
    /// If the slot's recording is another, or does not hold `live`.
    pub(crate) fn host_mut(
        &mut self,
        of: RecordingId,
        live: Extent,
        buffers: &[BufferId],
    ) -> HostViews<'_> {
        assert!(self.is_of(of), "the slot is of another recording");
        let largest = self.core.executor.buckets().largest();
        assert!(live.fits(largest.capacity), "a batch beyond the capacity");
        self.core.header_live = live;
        self.core.device_slot.host_mut(buffers)
    }

    pub(crate) fn filled<B>(
        self,
        batch: B,
        live: Extent,
        buckets: Arc<Buckets>,
    ) -> Slot<Filled<B>> {
        self.with(|_| Filled {
            batch,
            live,
            buckets,
        })
    }
}

impl<B> Slot<Filled<B>> {
    pub(crate) fn batch_mut(&mut self) -> &mut B {
        &mut self.state.batch
    }

    /// Gives the batch to the device, in the smallest bucket that holds it; where it
    /// is `timed` and the device takes that, the slot has its timestamps when it is done.
    pub(crate) fn submit(mut self, timed: bool) -> Submitted<B> {
        let (live, buckets) = (self.state.live, &self.state.buckets);
        match self.core.replay(live, buckets, timed) {
            Ok(replay) => {
                let due = self.core.due();
                let slot = self.with(|Filled { batch, .. }| InFlight::new(batch, due, None));
                Ok((slot, replay))
            }
            Err(error) => Err(self.fail(error.within("submit"), |state| state.batch)),
        }
    }
}

impl<B> Slot<Done<B>> {
    /// The host side of a download buffer.
    ///
    /// # Panics
    /// If the recording has no such download buffer.
    pub fn read<T: Element>(&self, buffer: Buffer<T>) -> &[T] {
        self.core.expect_view(buffer, View::Download);
        bytemuck::cast_slice(self.core.device_slot.host(buffer.id()))
    }

    /// What was attached to the batch.
    pub fn batch(&self) -> &B {
        &self.state.batch
    }

    /// When the device began a batch that was submitted timed, and when its uploads,
    /// kernels and downloads were over: in nanoseconds of [`host_ns`](crate::backend::host_ns).
    ///
    /// # Errors
    /// What the device says.
    pub fn timestamps(&self) -> Result<Timestamps> {
        self.core.device_slot.timestamps()
    }

    pub(crate) fn host(&self, buffer: BufferId) -> &[u8] {
        assert!(self.is_of(buffer.of), "the slot is of another recording");
        self.core.device_slot.host(buffer)
    }

    pub(crate) fn release(self) -> (Slot<Free>, B) {
        let batch = self.state.batch;
        let slot = Slot {
            core: self.core,
            state: Free(()),
        };
        (slot, batch)
    }
}
