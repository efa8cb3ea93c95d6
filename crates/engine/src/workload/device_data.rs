//! Items whose data is on the device, and results that stay there.

use super::Extent;
use super::leased::HostMemory;
use super::views::ViewLayout;
use crate::backend::{AllocationView, Backend, ExternalEvent};
use crate::error::{Error, Result};
use crate::memory::DeviceBuffer;
use crate::record::{BUFFERS_MAX, Buffer, BufferId, Element};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// A batch that takes copies from device memory.
pub(crate) trait InputTarget {
    /// Copies all of `from` to the bytes of the input buffer `to` from `start` on.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for memory that the batch cannot take: see
    /// [`DeviceInputs::copy`].
    fn copy(&mut self, from: AllocationView, to: BufferId, start: usize) -> Result<()>;

    /// Makes the batch wait on the device for what `event` has recorded.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) where [`DeviceInputs::wait_for`]
    /// says.
    fn wait_for(&mut self, event: ExternalEvent) -> Result<()>;
}

/// Takes the device memory that an item's parts of the input buffers are copied from.
///
#[doc = "```"]
#[doc = include_str!("../../doc/double.rs")]
#[doc = include_str!("../../doc/on_device.rs")]
#[doc = "```"]
pub struct DeviceInputs<'a> {
    layout: &'a ViewLayout,
    /// The start of the item's part along each axis.
    offset: Extent,
    extent: Extent,
    target: &'a mut dyn InputTarget,
    /// A bit for each buffer of the layout whose part was given.
    given: [u64; BUFFERS_MAX.div_ceil(64)],
}

impl<'a> DeviceInputs<'a> {
    pub(crate) fn new(
        layout: &'a ViewLayout,
        offset: Extent,
        extent: Extent,
        target: &'a mut dyn InputTarget,
    ) -> Self {
        DeviceInputs {
            layout,
            offset,
            extent,
            target,
            given: Default::default(),
        }
    }

    /// The length of the item's part along each axis.
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// Copies `from` to the item's part of `buffer`, which it fills. Each part is given once.
    ///
    /// The memory stays as it is until the item's completion: a result of another engine is kept as
    /// long ([`DeviceLeased`]), and a buffer of a [`Pool`](crate::memory::Pool) is not written, which the
    /// engine refuses. Keep them in the item, which comes back with its result.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for memory that is not as large as the part, for
    /// pinned memory, for memory of another backend than the engine's, and while work in flight writes it.
    ///
    /// # Panics
    /// If it is not an input buffer of the recording, or its part was given before.
    pub fn copy<T: Element>(&mut self, buffer: Buffer<T>, from: AllocationView) -> Result<()> {
        let (position, part) = self.layout.part(buffer.id(), self.offset, self.extent);
        assert!(!self.is_given(position), "the part was given before");
        if from.bytes() != part.len() {
            return Err(Error::usage(format!(
                "{} bytes of device memory for a part of {} bytes",
                from.bytes(),
                part.len()
            ))
            .fix("give memory as long as Workload::extent says"));
        }
        if !part.is_empty() {
            self.target.copy(from, buffer.id(), part.start)?;
        }
        self.given[position / 64] |= 1 << (position % 64);
        Ok(())
    }

    /// Makes the batch wait, on the device, for what `event` has recorded when the batch is submitted,
    /// such as kernels of another library that write the memory. The host does not wait. A batch with
    /// such an item waits as a whole, and the wait counts for
    /// [`Policy::deadline`](crate::Policy::deadline).
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) for a device that is no GPU of this
    /// process, and for [`Mode::Resident`](crate::Mode::Resident). The batch fails with
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) if a capture has recorded the event.
    pub fn wait_for(&mut self, event: ExternalEvent) -> Result<()> {
        self.target.wait_for(event)
    }

    fn is_given(&self, position: usize) -> bool {
        self.given[position / 64] >> (position % 64) & 1 == 1
    }

    /// The first input buffer whose part has bytes and was not given.
    pub(crate) fn first_missing(&self) -> Option<BufferId> {
        let mut buffers = self.layout.buffers().enumerate();
        let missing = buffers.find(|(position, id)| {
            let (_, part) = self.layout.part(*id, self.offset, self.extent);
            !self.is_given(*position) && !part.is_empty()
        });
        missing.map(|(_, id)| id)
    }
}

/// A part of a result buffer that outlives its batch, on the device:
/// [`ReadViews::keep_on_device`](super::ReadViews::keep_on_device) borrows it from the batch's slot, or
/// copies it there.
///
/// Its elements never change. A clone is the same memory. Another engine takes them as an item's input
/// ([`Workload::device_inputs`](super::Workload::device_inputs)); other code reads them at the address of
/// [`DeviceLeased::view`], while this exists.
///
#[doc = "```"]
#[doc = include_str!("../../doc/double.rs")]
#[doc = include_str!("../../doc/on_device.rs")]
#[doc = "```"]
#[derive(Clone)]
pub struct DeviceLeased<T> {
    view: AllocationView,
    /// Keeps the elements as they are.
    _owner: DeviceOwner,
    backend: Arc<dyn Backend>,
    element: PhantomData<fn() -> T>,
}

/// What keeps device memory as it is.
#[derive(Clone)]
pub(crate) enum DeviceOwner {
    /// The slot whose memory it is.
    Slot { _slot: Arc<dyn HostMemory> },
    /// The copy.
    Copy { _copy: Arc<DeviceBuffer<u8>> },
    /// There are no elements.
    Nothing,
}

/// A part of a result buffer, before its type is known.
pub(crate) struct DevicePart {
    pub(crate) view: AllocationView,
    pub(crate) owner: DeviceOwner,
    pub(crate) backend: Arc<dyn Backend>,
}

impl<T: Element> DeviceLeased<T> {
    pub(super) fn new(part: DevicePart) -> Self {
        DeviceLeased {
            view: part.view,
            _owner: part.owner,
            backend: part.backend,
            element: PhantomData,
        }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.view.bytes() / size_of::<T>()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.view.bytes() == 0
    }

    /// The memory, for [`DeviceInputs::copy`], a ring's bindings or, by its address, other code. Keep this
    /// value until all of them are done: the view alone keeps the memory, and not its contents.
    pub fn view(&self) -> AllocationView {
        self.view.clone()
    }

    /// Copies the elements to the host, and returns when the copy is done.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) if the lengths differ; those of the
    /// [backend](crate::backend::contract#errors).
    pub fn download(&self, to: &mut [T]) -> Result<()> {
        if to.len() != self.len() {
            let message = format!("a copy of {} elements to {}", self.len(), to.len());
            return Err(Error::usage(message));
        }
        if to.is_empty() {
            return Ok(());
        }
        let allocation = self.view.allocation();
        let start = (self.view.address() - allocation.address()) as usize;
        self.backend
            .read(allocation, start, bytemuck::cast_slice_mut(to))
    }
}

impl<T: Element> fmt::Debug for DeviceLeased<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (len, dtype, address) = (self.len(), T::DTYPE, self.view.address());
        write!(f, "{len} {dtype:?} of device memory at {address:#x}")
    }
}
