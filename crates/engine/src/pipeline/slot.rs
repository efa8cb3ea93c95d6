//! [`Slot`]: pinned memory, streams and graphs for one batch, with its state in the type.
//!
//! `Free -> Filling -> Filled -> InFlight -> Done -> Free`. Host memory can be written only in
//! `Filling` and read only in `Done`, so a program that refills a slot in flight, or reads it
//! before it is done, does not compile.

mod events;
mod in_flight;
mod inputs;
mod lendable;

use super::device_results::DeviceResults;
use super::resident_version::ResidentVersion;
use crate::backend::contract::{HostViews, Priority, Timestamps};
use crate::backend::fork::OfProcess;
use crate::backend::{Allocation, AllocationView, Backend};
use crate::error::{Context, Error, Result};
use crate::record::{
    Buffer, BufferId, Element, HEADER_ITEMS, HEADER_LEN, Number, RecordingId, Scalar, Uniform, View,
};
use crate::replay::{Bindings, Buckets, Executor, Policy, Replay, Rung};
use crate::workload::Extent;
use events::Events;
use inputs::BatchCopies;
use lendable::Lendable;
pub(crate) use lendable::Lent;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::debug_span;

/// How long the device may refuse the fence of a failed batch, as it does while another thread
/// captures a graph; also the least timeout of [`Slot::take_loss`].
const FENCE_TIMEOUT: Duration = Duration::from_secs(10);

/// The pause before a refused fence is tried again, so that a thread that waits leaves its core to others.
const FENCE_RETRY: Duration = Duration::from_micros(100);

/// A slot in state `S`. Dropping it frees its memory, and its ring has one slot less.
#[must_use = "a slot that is dropped is gone from its ring"]
pub struct Slot<S> {
    core: OfProcess<Box<SlotCore>>,
    state: S,
}

struct SlotCore {
    index: usize,
    /// The index of its device in the engine.
    device: usize,
    /// Whether it is kept for urgent batches.
    is_urgent: bool,
    device_slot: Lendable,
    executor: Executor,
    /// What the batch is copied from on the device.
    inputs: BatchCopies,
    /// `None` without result buffers.
    device_results: Option<Arc<DeviceResults>>,
    /// The extent that was written into the header.
    header_live: Extent,
}

/// The slot holds no batch.
pub struct Free(());
/// The host may write the slot's memory.
pub struct Filling(Events);
/// The slot is ready to submit: a batch and its extent.
pub(crate) struct Filled<B> {
    batch: B,
    live: Extent,
    events: Events,
}
/// The slot is in flight.
pub(crate) struct InFlight<B> {
    batch: B,
    /// The deadline of the batch.
    due: Option<Instant>,
    /// The batch's error, if it has failed. The slot stays in flight, since a part of the batch may
    /// be on the device.
    failed: Option<Error>,
    /// Whether the device has reported an error of the batch. It reports one only.
    has_reported: bool,
    /// Since when the slot needs a fence after its work; `None` if it has one.
    unfenced_since: Option<Instant>,
}
/// The batch is done, and its results can be read.
pub struct Done<B> {
    batch: B,
}

/// A failed batch and its slot. A part of the batch may still be on the device.
#[non_exhaustive]
pub struct Failed<B> {
    /// The error.
    pub error: Error,
    /// The data that was attached to the batch.
    pub batch: B,
    pub(crate) slot: Slot<Free>,
}

impl<B> fmt::Debug for Failed<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Failed: {}", self.error)
    }
}

/// A submitted slot and how it was replayed, or the failed batch.
pub(crate) type Submitted<B> = Result<(Slot<InFlight<B>>, Replay), Box<Failed<B>>>;

/// A slot in flight, or a batch that its device was lost with.
pub(crate) type Flight<B> = Result<Slot<InFlight<B>>, Box<Failed<B>>>;

/// The state of a slot in flight after a poll or a wait.
pub(crate) enum Progress<B> {
    Pending(Slot<InFlight<B>>),
    Done(Slot<Done<B>>),
    Failed(Box<Failed<B>>),
}

/// The number of slots of a device.
#[derive(Clone, Copy)]
pub(crate) struct SlotCount {
    pub(crate) all: usize,
    /// The slots among them that are kept for urgent batches, fewer than all.
    pub(crate) urgent: usize,
}

/// Opens slots on a backend, some of them for urgent batches, and makes their buckets ready as far as
/// the policy says so. The errors are those of the backend, and of [`Executor::of_any`] with the index of the slot. Slots
/// before it stay in `slots`.
pub(crate) fn open_slots(
    backend: &Arc<dyn Backend>,
    buckets: &Arc<Buckets>,
    count: SlotCount,
    policy: &Policy,
    device: usize,
    slots: &mut Vec<Slot<Free>>,
) -> Result<()> {
    let buffers = buckets.largest().recording.buffers();
    let device_slots = {
        let _span = debug_span!("memory", slots = count.all).entered();
        let open = |slots, priority| match slots {
            0 => Ok(Vec::new()),
            _ => backend.open_slots(buffers, slots, priority),
        };
        let mut opened = open(count.all - count.urgent, Priority::Normal)?;
        opened.extend(open(count.urgent, Priority::Urgent)?);
        opened
    };
    let copies = DeviceResults::pool(backend);
    for (position, mut device_slot) in device_slots.into_iter().enumerate() {
        let index = slots.len();
        let _span = debug_span!("graphs", slot = index).entered();
        let executor = Executor::of_any(backend, &mut *device_slot, buckets, policy)
            .within(|| format!("slot {index}"))?;
        let recording = &buckets.largest().recording;
        let device_results = DeviceResults::new(recording, executor.results().collect(), &copies);
        slots.push(Slot {
            core: OfProcess::new(Box::new(SlotCore {
                index,
                device,
                is_urgent: position >= count.all - count.urgent,
                device_slot: Lendable::new(device_slot),
                executor,
                inputs: BatchCopies::default(),
                device_results,
                header_live: Extent::default(),
            })),
            state: Free(()),
        });
    }
    Ok(())
}

impl SlotCore {
    fn expect_view<T: Element>(&self, buffer: Buffer<T>, view: View) {
        let recording = &self.executor.buckets().largest().recording;
        let decl = recording.buffer(buffer.id());
        let fits = decl.is_some_and(|decl| (decl.view, decl.dtype) == (view, T::DTYPE));
        assert!(fits, "the recording has no such {view:?} buffer");
    }

    /// The deadline of a batch that is submitted now.
    fn due(&self) -> Option<Instant> {
        let deadline = self.executor.policy().deadline;
        deadline.and_then(|deadline| Instant::now().checked_add(deadline))
    }

    /// Submits the batch to the device: waits for the caller's events, copies device memory into
    /// input buffers, replays the bucket's graph, and records the caller's events, all in the order
    /// of the stream. The host does not wait.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for an extent that does not hold the header's,
    /// or that no bucket holds; those of the device.
    fn replay(&mut self, live: Extent, events: &Events, timed: bool) -> Result<Replay> {
        if !self.header_live.fits(live) {
            let written = self.header_live;
            return Err(Error::usage(format!(
                "the header was written for {written}, which the submitted extent {live} does not hold"
            ))
            .fix("submit an extent that holds the header's"));
        }
        let bucket = self.executor.buckets().find(live);
        let bucket =
            bucket.ok_or_else(|| Error::usage(format!("no bucket holds a batch of {live}")))?;
        events.wait(&mut *self.device_slot)?;
        let input_calls = self.submit_inputs()?;
        let replay = if timed {
            self.executor
                .replay_timed(&mut *self.device_slot, bucket, live)?
        } else {
            self.executor.replay(&mut *self.device_slot, bucket, live)?
        };
        events.record(&mut *self.device_slot)?;
        Ok(Replay {
            calls: replay.calls + events.len() + input_calls,
            ..replay
        })
    }
}

impl<S> Slot<S> {
    /// Waits for work of the slot that has not been seen to end; on a lost device, for the report
    /// of the loss. Returns whether the host may use the slot's memory.
    pub(crate) fn take_loss(&mut self) -> bool {
        let core = &mut **self.core;
        let device_slot = &mut *core.device_slot;
        if !device_slot.is_quiet() {
            let deadline = core.executor.policy().deadline.unwrap_or_default();
            // The error has been reported before.
            let _ = device_slot.wait_for(deadline.max(FENCE_TIMEOUT));
        }
        device_slot.is_quiet()
    }

    /// Fails in a child of the process in which its device was opened.
    pub(crate) fn check_process(&self) -> Result<()> {
        self.backend().id().check_process()
    }

    /// Its index among all slots.
    pub fn index(&self) -> usize {
        self.core.index
    }

    /// The index of its device in the engine.
    pub(crate) fn device(&self) -> usize {
        self.core.device
    }

    /// Whether it is kept for urgent batches.
    pub(crate) fn is_urgent(&self) -> bool {
        self.core.is_urgent
    }

    /// Whether results may borrow its memory.
    pub(crate) fn is_lent(&self) -> bool {
        self.core.device_slot.is_lent()
    }

    /// The backend of its device.
    pub(crate) fn backend(&self) -> &Arc<dyn Backend> {
        self.core.executor.backend()
    }

    /// The largest extent of a batch.
    pub(crate) fn capacity(&self) -> Extent {
        self.core.executor.buckets().largest().capacity
    }

    /// Whether its buckets are recordings with this id.
    pub(crate) fn is_of(&self, id: RecordingId) -> bool {
        self.core.executor.buckets().largest().recording.id() == id
    }

    fn with<T>(self, state: impl FnOnce(S) -> T) -> Slot<T> {
        Slot {
            core: self.core,
            state: state(self.state),
        }
    }

    /// Adds the number of the slot to an error.
    fn name_slot(&self, error: Error) -> Error {
        error.within(format!("slot {}", self.core.index))
    }

    /// Ends the work in the slot with an error. The slot is free then, and the batch comes back.
    fn fail<B>(self, error: Error, batch: impl FnOnce(S) -> B) -> Box<Failed<B>> {
        let error = self.name_slot(error);
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
        self.with(|_| Filling(Events::default()))
    }

    /// Waits until no part of a failed batch is on the device. Drops the slot and returns `None` if
    /// that cannot be known.
    pub(crate) fn quiet(mut self) -> Option<Self> {
        self.check_process().ok()?;
        // A restarted device refuses new work until the slot has taken its loss.
        self.take_loss();
        // Without a deadline: the batch has failed, and its memory is needed.
        let in_flight = self.with(|_| InFlight::unfenced((), None, None));
        let slot = match in_flight.wait() {
            Ok(done) => done.release().0,
            Err(failed) => failed.slot,
        };
        slot.core.device_slot.is_quiet().then_some(slot)
    }

    /// Ends [`Slot::lend`] if no result borrows the slot's memory. Until then the slot can be dropped,
    /// and not used otherwise. Returns whether it can be used.
    pub(crate) fn take_back(&mut self) -> bool {
        self.core.device_slot.take_back()
    }

    /// Finishes a batch without device work, so that it keeps its turn.
    pub(crate) fn pass<B>(self, batch: B) -> Slot<Done<B>> {
        self.with(|_| Done { batch })
    }
}

impl Slot<Filling> {
    /// Frees the slot. Its memory keeps what was written.
    #[doc(hidden)]
    pub fn cancel(self) -> Slot<Free> {
        self.with(|_| Free(()))
    }

    /// Writes the recording's header: the extent of the batch, the number of items, and the
    /// declared values of the uniforms. Submit the batch with an extent that holds `live`.
    ///
    /// # Panics
    /// If the recording has no header, if the largest bucket does not hold `live`, or if the
    /// recording is that of a [`Packer`](super::Packer), which writes the header itself.
    pub fn write_header(&mut self, live: Extent, items: u32) {
        let buckets = Arc::clone(self.core.executor.buckets());
        let recording = &buckets.largest().recording;
        let capacity = buckets.largest().capacity;
        assert!(
            live.fits(capacity),
            "the largest bucket {capacity} does not hold the header's extent {live}"
        );
        assert!(
            !recording.is_of_workload(),
            "the packer writes the header of a workload's batch"
        );
        let header = recording.header().expect("the recording has a header");
        self.core.header_live = live;
        let mut views = self.core.device_slot.host_mut(&[header]);
        let bytes = views.pop().expect("one was asked for");
        let header = bytemuck::cast_slice_mut(bytes);
        let values: Vec<u32> = recording.uniforms().iter().map(|decl| decl.bits).collect();
        write_header(header, live, items, &values);
    }

    /// Writes the value that a uniform has for the slot's batch, after [`Slot::write_header`], which
    /// writes the declared value.
    ///
    /// # Panics
    /// If the uniform is of another recording or a constant, or if the recording is that of a
    /// [`Packer`](super::Packer), which has [`Packer::set_uniforms`](super::Packer::set_uniforms).
    pub fn write_uniform<T: Number>(&mut self, uniform: Uniform<T>, value: T) {
        let recording = &self.core.executor.buckets().largest().recording;
        assert!(
            !recording.is_of_workload(),
            "the packer writes the header of a workload's batch"
        );
        let id = uniform.id();
        let declared = recording.uniforms().get(id.index());
        let declared = declared.filter(|_| recording.header() == Some(id.header()));
        assert!(
            declared.is_some_and(|decl| decl.dtype == T::DTYPE && !decl.is_constant),
            "the uniform is of another recording, or a constant"
        );
        let mut views = self.core.device_slot.host_mut(&[id.header()]);
        let bytes = views.pop().expect("one was asked for");
        let header: &mut [u32] = bytemuck::cast_slice_mut(bytes);
        header[id.header_index()] = Scalar::from(value).bits as u32;
    }

    /// The bindings of a bucket in this slot, to change and pass to [`Slot::rebind`].
    ///
    /// # Errors
    /// The errors of making the bucket ready: [`ErrorKind::Kernel`](crate::ErrorKind::Kernel),
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) or
    /// [`ErrorKind::Device`](crate::ErrorKind::Device).
    pub fn bindings(&mut self, bucket: usize) -> Result<Bindings> {
        let core = &mut *self.core;
        core.executor
            .bindings(&mut *core.device_slot, bucket)
            .cloned()
    }

    /// Replays a bucket of this slot with other bindings from now on.
    ///
    /// # Errors
    /// The errors of [`Executor::update`].
    pub fn rebind(&mut self, bucket: usize, bindings: Bindings) -> Result<Rung> {
        let core = &mut *self.core;
        let _span = debug_span!("rebind", slot = core.index, bucket).entered();
        core.executor
            .update(&mut *core.device_slot, bucket, bindings)
    }

    /// Calls [`DeviceSlot::stream`](crate::backend::DeviceSlot::stream) for this slot.
    pub fn stream(&self) -> Option<u64> {
        self.core.device_slot.stream()
    }

    /// Calls [`Executor::declare`] for this slot.
    ///
    /// # Errors
    /// The errors of [`Executor::declare`].
    pub fn declare(&mut self, view: AllocationView) -> Result<()> {
        let core = &mut *self.core;
        core.executor.declare(&mut *core.device_slot, view)
    }

    /// Calls [`Executor::withdraw`] for this slot.
    ///
    /// # Errors
    /// The errors of [`Executor::withdraw`].
    pub fn withdraw(&mut self, allocation: &Allocation) -> Result<()> {
        let core = &mut *self.core;
        core.executor.withdraw(&mut *core.device_slot, allocation)
    }

    /// The host side of an upload buffer. It still holds the data of an earlier batch; where the
    /// device shares the host's memory, as its kernels left it.
    ///
    /// # Panics
    /// If the recording has no such upload buffer.
    pub fn write<T: Element>(&mut self, buffer: Buffer<T>) -> &mut [T] {
        self.core.expect_view(buffer, View::Upload);
        let mut views = self.core.device_slot.host_mut(&[buffer.id()]);
        bytemuck::cast_slice_mut(views.pop().expect("one was asked for"))
    }

    /// The memory for a batch of extent `live`, whose header the caller writes. Notes the extent,
    /// which the batch that is submitted must hold.
    ///
    /// # Panics
    /// If the slot's recordings have another id, or do not hold `live`.
    pub(crate) fn host_mut(
        &mut self,
        recording: RecordingId,
        live: Extent,
        buffers: &[BufferId],
    ) -> HostViews<'_> {
        assert!(self.is_of(recording), "the slot is of another recording");
        let largest = self.core.executor.buckets().largest();
        assert!(live.fits(largest.capacity), "a batch beyond the capacity");
        self.core.header_live = live;
        self.core.device_slot.host_mut(buffers)
    }

    /// Uses other memory for resident buffers in the slot's next batch.
    pub(super) fn set_resident(&mut self, version: &ResidentVersion) {
        let core = &mut *self.core;
        let memory = version.memory(core.device);
        core.executor.set_resident(version.number, memory);
    }

    /// The slot with the batch that was written into it, which is of extent `live`.
    pub(crate) fn with_batch<B>(self, batch: B, live: Extent) -> Slot<Filled<B>> {
        self.with(|Filling(events)| Filled {
            batch,
            live,
            events,
        })
    }
}

impl<B> Slot<Filled<B>> {
    pub(crate) fn batch_mut(&mut self) -> &mut B {
        &mut self.state.batch
    }

    /// Submits the batch to the device, in the smallest bucket that holds it. If `timed`, the slot has
    /// timestamps when it is done, unless [`Executor::replay_timed`] leaves them out.
    pub(crate) fn submit(mut self, timed: bool) -> Submitted<B> {
        match (self.core).replay(self.state.live, &self.state.events, timed) {
            Ok(replay) => {
                let due = self.core.due();
                let slot = self.with(|Filled { batch, .. }| InFlight::new(batch, due));
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

    /// The data that was attached to the batch.
    pub fn batch(&self) -> &B {
        &self.state.batch
    }

    pub(super) fn batch_mut(&mut self) -> &mut B {
        &mut self.state.batch
    }

    /// When the device began a batch that was submitted with timestamps, and when its uploads,
    /// kernels and downloads ended, in nanoseconds of [`host_ns`](crate::backend::host_ns).
    ///
    /// # Errors
    /// [`ErrorKind::Device`](crate::ErrorKind::Device) if the device cannot read them.
    pub fn timestamps(&self) -> Result<Timestamps> {
        self.core.device_slot.timestamps()
    }

    pub(crate) fn host(&self, buffer: BufferId) -> &[u8] {
        assert!(
            self.is_of(buffer.recording),
            "the slot is of another recording"
        );
        self.core.device_slot.host(buffer)
    }

    /// Its result buffers; `None` if it has none.
    pub(crate) fn device_results(&self) -> Option<&Arc<DeviceResults>> {
        self.core.device_results.as_ref()
    }

    /// Lets results borrow the slot's memory, until [`Slot::take_back`].
    pub(crate) fn lend(&mut self) -> Lent {
        self.core.device_slot.lend()
    }

    /// Frees the slot of a batch that is done, and returns the batch. The memory that its items
    /// were copied from is let go.
    pub(crate) fn release(mut self) -> (Slot<Free>, B) {
        self.core.inputs.clear();
        let batch = self.state.batch;
        let slot = Slot {
            core: self.core,
            state: Free(()),
        };
        (slot, batch)
    }
}

/// Writes the totals of a batch, the number of its items and the values of the uniforms.
pub(super) fn write_header(header: &mut [u32], total: Extent, items: u32, values: &[u32]) {
    let totals = total.as_slice();
    let (counts, uniforms) = header.split_at_mut(HEADER_LEN);
    counts.fill(0);
    counts[..totals.len()].copy_from_slice(totals);
    counts[HEADER_ITEMS] = items;
    uniforms.copy_from_slice(values);
}
