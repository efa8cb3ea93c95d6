//! Views of one item's part of a batch's buffers.

use super::Extent;
use crate::record::{BUFFERS_MAX, Buffer, BufferId, Element, Recording, Unit, View};
use arrayvec::ArrayVec;

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

    /// The bytes that one unit along `axis` takes in all buffers together.
    pub(crate) fn unit_bytes(&self, axis: usize) -> usize {
        let along = self.buffers.iter().filter(|part| part.axis == axis);
        along.map(|part| part.unit_bytes).sum()
    }

    fn position(&self, buffer: BufferId) -> usize {
        self.buffers
            .iter()
            .position(|part| part.buffer == buffer)
            .expect("the buffer is not one that items see in this direction")
    }
}

/// Mutable parts of the upload buffers, of one item or of consecutive items.
pub struct WriteViews<'a> {
    layout: &'a ViewLayout,
    // `None` after it was taken.
    slices: ArrayVec<Option<&'a mut [u8]>, BUFFERS_MAX>,
}

impl<'a> WriteViews<'a> {
    /// Views of whole buffers, given in the order of the layout.
    pub(crate) fn new(
        layout: &'a ViewLayout,
        buffers: impl IntoIterator<Item = &'a mut [u8]>,
    ) -> Self {
        let slices: ArrayVec<_, BUFFERS_MAX> = buffers.into_iter().map(Some).collect();
        assert_eq!(
            slices.len(),
            layout.buffers.len(),
            "one buffer for each part"
        );
        WriteViews { layout, slices }
    }

    /// The item's part of `buffer`. Each part can be taken once.
    ///
    /// # Panics
    /// If it was taken before, or is not an upload buffer of the recording.
    pub fn take<T: Element>(&mut self, buffer: Buffer<T>) -> &'a mut [T] {
        let slice = self.slices[self.layout.position(buffer.id())].take();
        bytemuck::cast_slice_mut(slice.expect("the view was taken before"))
    }

    /// Splits off the first part, which spans `extent`.
    pub(crate) fn split_off(&mut self, extent: Extent) -> WriteViews<'a> {
        let layout = self.layout;
        let fronts = self
            .slices
            .iter_mut()
            .zip(&layout.buffers)
            .map(|(slice, part)| {
                let whole = slice
                    .take()
                    .expect("only views that are not handed out are cut");
                let (front, rest) = whole.split_at_mut(part.bytes(extent));
                *slice = Some(rest);
                Some(front)
            });
        let slices = fronts.collect();
        WriteViews { layout, slices }
    }

    /// The same views with a shorter lifetime, so that the caller can zero them afterwards.
    pub(crate) fn reborrow(&mut self) -> WriteViews<'_> {
        WriteViews {
            layout: self.layout,
            slices: self
                .slices
                .iter_mut()
                .map(|slice| slice.as_deref_mut())
                .collect(),
        }
    }

    pub(crate) fn zero(&mut self) {
        for slice in self.slices.iter_mut().flatten() {
            slice.fill(0);
        }
    }
}

/// The download buffers' parts of one item, or of all items of a batch.
pub struct ReadViews<'a> {
    layout: &'a ViewLayout,
    buffers: &'a [&'a [u8]],
    at: Extent,
    extent: Extent,
}

impl<'a> ReadViews<'a> {
    /// The part of whole buffers, given in the order of the layout, that starts at `at` and spans
    /// `extent`.
    pub(crate) fn new(
        layout: &'a ViewLayout,
        buffers: &'a [&'a [u8]],
        at: Extent,
        extent: Extent,
    ) -> Self {
        ReadViews {
            layout,
            buffers,
            at,
            extent,
        }
    }

    /// The item's part of `buffer`.
    ///
    /// # Panics
    /// If it is not a download buffer of the recording.
    pub fn get<T: Element>(&self, buffer: Buffer<T>) -> &'a [T] {
        let position = self.layout.position(buffer.id());
        let part = self.layout.buffers[position];
        let start = part.bytes(self.at);
        let bytes = &self.buffers[position][start..start + part.bytes(self.extent)];
        bytemuck::cast_slice(bytes)
    }
}
