//! Views of one item's part of a batch's buffers.

use super::{DeviceLeased, Extent, LeaseSource, Leased};
use crate::error;
use crate::record::{BUFFERS_MAX, Buffer, BufferId, Element, Recording, Unit, View};
use arrayvec::ArrayVec;
use std::ops::Range;

/// The buffers of one direction that are divided among items.
#[derive(Clone, Debug)]
pub(crate) struct ViewLayout {
    buffers: Vec<ItemBuffer>,
}

#[derive(Clone, Copy, Debug)]
struct ItemBuffer {
    buffer: BufferId,
    axis: usize,
    unit_bytes: usize,
}

impl ItemBuffer {
    #[inline]
    fn bytes(&self, extent: Extent) -> usize {
        extent[self.axis] as usize * self.unit_bytes
    }
}

impl ViewLayout {
    /// The layout of the buffers with this view that are divided among items.
    pub(crate) fn new(recording: &Recording, view: View) -> Self {
        let buffers = recording
            .buffers_by_id()
            .filter_map(|(buffer, decl)| match decl.unit {
                Unit::PerAxis { axis, elements } if decl.view == view => Some(ItemBuffer {
                    buffer,
                    axis,
                    unit_bytes: elements * decl.dtype.size_bytes(),
                }),
                _ => None,
            });
        ViewLayout {
            buffers: buffers.collect(),
        }
    }

    /// The buffers, in the order of the layout.
    pub(crate) fn buffers(&self) -> impl Iterator<Item = BufferId> {
        self.buffers.iter().map(|part| part.buffer)
    }

    /// The bytes that an extent takes in all buffers together.
    pub(crate) fn bytes(&self, extent: Extent) -> usize {
        self.buffers.iter().map(|part| part.bytes(extent)).sum()
    }

    /// Whether there are no such buffers.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffers.is_empty()
    }

    /// The position of a buffer among the layout's, and the bytes of an item's part of it. The part
    /// starts at `offset` along each axis, and spans `extent`.
    ///
    /// # Panics
    /// If it is not one of the buffers.
    #[inline]
    pub(crate) fn part(
        &self,
        buffer: BufferId,
        offset: Extent,
        extent: Extent,
    ) -> (usize, Range<usize>) {
        let position = self.position(buffer);
        let part = self.buffers[position];
        let start = part.bytes(offset);
        (position, start..start + part.bytes(extent))
    }

    #[inline]
    fn position(&self, buffer: BufferId) -> usize {
        self.buffers
            .iter()
            .position(|part| part.buffer == buffer)
            .expect("the buffer is not one that items see in this direction")
    }
}

/// The upload buffers' parts of consecutive items that are not written yet.
pub(crate) struct WriteParts<'v, 'a> {
    layout: &'a ViewLayout,
    // Borrowed, as the list is large to move.
    parts: &'v mut [&'a mut [u8]],
}

impl<'v, 'a> WriteParts<'v, 'a> {
    /// Buffers, or the rest of each, in the order of the layout.
    pub(crate) fn new(layout: &'a ViewLayout, parts: &'v mut [&'a mut [u8]]) -> Self {
        assert_eq!(parts.len(), layout.buffers.len(), "one for each buffer");
        WriteParts { layout, parts }
    }

    /// Splits off the first part of each buffer, which spans `extent`.
    pub(crate) fn split_off(&mut self, extent: Extent) -> ArrayVec<&'a mut [u8], BUFFERS_MAX> {
        let parts = self.parts.iter_mut().zip(&self.layout.buffers);
        let fronts = parts.map(|(part, buffer)| {
            let (front, rest) = std::mem::take(part).split_at_mut(buffer.bytes(extent));
            *part = rest;
            front
        });
        fronts.collect()
    }

    /// Calls `write` with the views of the next item, which spans `extent`, and goes on to the item after
    /// it. Sets the item's views to zero if `write` fails. `write` has to catch panics: after one, the next
    /// item would be written in this one's place.
    // Inlined, since moving the views would take longer than to write a small item.
    #[inline]
    pub(crate) fn write_next<E>(
        &mut self,
        extent: Extent,
        write: impl FnOnce(&mut WriteViews<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let written = {
            let mut views = WriteViews {
                layout: self.layout,
                extent,
                slices: ArrayVec::new(),
            };
            for (part, buffer) in self.parts.iter_mut().zip(&self.layout.buffers) {
                let (front, _) = part.split_at_mut(buffer.bytes(extent));
                views.slices.push(Some(front));
            }
            write(&mut views)
        };
        for (part, buffer) in self.parts.iter_mut().zip(&self.layout.buffers) {
            let (front, rest) = std::mem::take(part).split_at_mut(buffer.bytes(extent));
            if written.is_err() {
                front.fill(0);
            }
            *part = rest;
        }
        written
    }
}

/// The resident buffers of a workload, or those that can be replaced, before they are copied to a device.
pub struct ResidentViews<'a> {
    // `None` after it was taken.
    buffers: Vec<(BufferId, Option<&'a mut [u8]>)>,
}

impl<'a> ResidentViews<'a> {
    pub(crate) fn new(buffers: impl Iterator<Item = (BufferId, &'a mut [u8])>) -> Self {
        let buffers = buffers.map(|(id, bytes)| (id, Some(bytes)));
        ResidentViews {
            buffers: buffers.collect(),
        }
    }

    /// The buffers that were taken.
    pub(crate) fn taken(&self) -> impl Iterator<Item = BufferId> {
        let taken = self.buffers.iter().filter(|(_, bytes)| bytes.is_none());
        taken.map(|(id, _)| *id)
    }

    /// The elements of `buffer`, which are zeros. Each buffer can be taken once.
    ///
    /// # Panics
    /// If it was taken before, or is not a resident buffer of the recording; while the engine runs, also if it
    /// cannot be replaced.
    pub fn take<T: Element>(&mut self, buffer: Buffer<T>) -> &'a mut [T] {
        let mut buffers = self.buffers.iter_mut();
        let found = buffers.find(|(id, _)| *id == buffer.id());
        let (_, bytes) = found.expect("a resident buffer of the recording");
        bytemuck::cast_slice_mut(bytes.take().expect("the buffer was taken before"))
    }
}

/// Mutable parts of the upload buffers, of one item.
///
#[doc = "```"]
#[doc = include_str!("../../doc/double.rs")]
#[doc = "# fn main() -> Result<()> {"]
#[doc = "let config = tapeloop_engine::EngineConfig::new([1 << 20]);"]
#[doc = "let engine = tapeloop_engine::Engine::auto(Double::new()?, &config)?;"]
#[doc = "assert_eq!(engine.submit(vec![1.0, 2.0])?.wait()?.result?, [2.0, 4.0]);"]
#[doc = "# Ok(())"]
#[doc = "# }"]
#[doc = "```"]
pub struct WriteViews<'a> {
    layout: &'a ViewLayout,
    extent: Extent,
    // `None` after it was taken.
    slices: ArrayVec<Option<&'a mut [u8]>, BUFFERS_MAX>,
}

impl<'a> WriteViews<'a> {
    /// The length of the item's part along each axis.
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// The item's part of `buffer`. Each part can be taken once.
    ///
    /// # Panics
    /// If it was taken before, or is not an upload buffer of the recording.
    #[inline]
    pub fn take<T: Element>(&mut self, buffer: Buffer<T>) -> &'a mut [T] {
        let slice = self.slices[self.layout.position(buffer.id())].take();
        bytemuck::cast_slice_mut(slice.expect("the view was taken before"))
    }
}

/// The download buffers' parts of one item, or of all items of a batch.
///
#[doc = "```"]
#[doc = include_str!("../../doc/double.rs")]
#[doc = "# fn main() -> Result<()> {"]
#[doc = "let config = tapeloop_engine::EngineConfig::new([1 << 20]);"]
#[doc = "let engine = tapeloop_engine::Engine::auto(Double::new()?, &config)?;"]
#[doc = "assert_eq!(engine.submit(vec![1.0, 2.0])?.wait()?.result?, [2.0, 4.0]);"]
#[doc = "# Ok(())"]
#[doc = "# }"]
#[doc = "```"]
pub struct ReadViews<'a> {
    layout: &'a ViewLayout,
    buffers: &'a [&'a [u8]],
    offset: Extent,
    extent: Extent,
    leases: &'a dyn LeaseSource,
}

impl<'a> ReadViews<'a> {
    /// The part of whole buffers, given in the order of the layout, that starts at `offset` and spans
    /// `extent`. They are host memory of the slot of `leases`.
    #[inline]
    pub(crate) fn new(
        layout: &'a ViewLayout,
        buffers: &'a [&'a [u8]],
        offset: Extent,
        extent: Extent,
        leases: &'a dyn LeaseSource,
    ) -> Self {
        ReadViews {
            layout,
            buffers,
            offset,
            extent,
            leases,
        }
    }

    /// The length of what they span along each axis.
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// The item's part of `buffer`.
    ///
    /// # Panics
    /// If it is not a download buffer of the recording.
    #[inline]
    pub fn get<T: Element>(&self, buffer: Buffer<T>) -> &'a [T] {
        let (position, bytes) = self.layout.part(buffer.id(), self.offset, self.extent);
        bytemuck::cast_slice(&self.buffers[position][bytes])
    }

    /// The item's part of `buffer`, to keep: it outlives the batch, and can be the item's result or a
    /// part of it.
    ///
    /// It borrows the memory of the batch's slot, so nothing is copied. The slot is out of use until
    /// the last such part of its batch is dropped; the next batch starts in it then. So that this
    /// never stops an engine, the part is copied instead
    ///
    /// - while only two slots are left that nothing borrows from, of those on the slot's device that
    ///   take the same batches (the slots for urgent batches count apart). With three slots one can be
    ///   lent, with two none;
    /// - if items of the batch run again: they have outgrown their extents
    ///   ([`Workload::outgrown`](super::Workload::outgrown)), or their device was lost;
    /// - in a [`Pipeline`](crate::pipeline::Pipeline) and a [`Packer`](crate::pipeline::Packer), whose
    ///   caller has the slots.
    ///
    /// All parts of a batch are borrowed, or all are copied.
    /// [`Counters::results_leased`](crate::Counters::results_leased) and
    /// [`Counters::results_copied`](crate::Counters::results_copied) count both: raise
    /// [`EngineConfig::slots`](crate::EngineConfig::slots) if many are copied.
    ///
    /// An engine is dropped without waiting for them. They can be read afterwards, and keep the memory
    /// of the device's slots until then, on the device too.
    ///
    /// # Panics
    /// If it is not a download buffer of the recording.
    pub fn lease<T: Element>(&self, buffer: Buffer<T>) -> Leased<T> {
        let (_, bytes) = self.layout.part(buffer.id(), self.offset, self.extent);
        Leased::new(self.leases, buffer.id(), bytes, self.get(buffer))
    }

    /// The item's part of a result buffer ([`Recorder::result_buffer`](crate::Recorder::result_buffer)), to
    /// keep on the device: it outlives the batch, and nothing is copied to the host.
    ///
    /// It borrows the memory of the batch's slot, or is a copy on the device, as [`ReadViews::lease`] says. A
    /// copy takes device memory that the engine's plan does not count, and keeps for later ones.
    ///
    /// # Errors
    /// Those of a copy: [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) and those of the
    /// [backend](crate::backend::contract#errors).
    ///
    /// # Panics
    /// If it is not a result buffer of the recording.
    pub fn keep_on_device<T: Element>(&self, buffer: Buffer<T>) -> error::Result<DeviceLeased<T>> {
        let part = self
            .leases
            .lend_device(buffer.id(), self.offset, self.extent)?;
        Ok(DeviceLeased::new(part))
    }
}
