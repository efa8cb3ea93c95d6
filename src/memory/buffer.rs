//! Buffers that own their memory.

use super::pool::PooledAllocation;
use super::{Read, Slice, SliceMut, Write};
use crate::backend::{AllocationView, Space};
use crate::error::Result;
use crate::record::Element;
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;

/// Says in a type where memory lies: [`Device`] or [`Pinned`].
pub trait MemorySpace: sealed::MemorySpace {
    /// The same as a value.
    const SPACE: Space;
}

/// [`Space::Device`].
#[derive(Clone, Copy, Debug)]
pub enum Device {}

/// [`Space::Pinned`].
#[derive(Clone, Copy, Debug)]
pub enum Pinned {}

mod sealed {
    pub trait MemorySpace {}
    impl MemorySpace for super::Device {}
    impl MemorySpace for super::Pinned {}
}

impl MemorySpace for Device {
    const SPACE: Space = Space::Device;
}

impl MemorySpace for Pinned {
    const SPACE: Space = Space::Pinned;
}

/// Elements on the device.
pub type DeviceBuffer<T> = Owned<T, Device>;
/// Elements in pinned memory.
pub type PinnedBuffer<T> = Owned<T, Pinned>;

/// Elements in an allocation of a pool, which takes it back when this is dropped.
pub struct Owned<T, P> {
    pooled: PooledAllocation,
    len: usize,
    of: PhantomData<fn() -> (T, P)>,
}

impl<T: Element, P: MemorySpace> Owned<T, P> {
    pub(super) fn new(pooled: PooledAllocation, len: usize) -> Self {
        Owned {
            pooled,
            len,
            of: PhantomData,
        }
    }

    /// Elements; at least one.
    #[allow(clippy::len_without_is_empty, reason = "no buffer is empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// All elements.
    pub fn as_slice(&self) -> Slice<'_, T, P> {
        Slice::new(&self.pooled, 0, self.len)
    }

    /// All elements, to write.
    pub fn as_slice_mut(&mut self) -> SliceMut<'_, T, P> {
        SliceMut::new(&self.pooled, 0, self.len)
    }

    /// Some of the elements.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for a range that is not inside.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Slice<'_, T, P>> {
        self.as_slice().slice(range)
    }

    /// Some of the elements, to write.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for a range that is not inside.
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<SliceMut<'_, T, P>> {
        self.as_slice_mut().into_slice(range)
    }

    /// All elements, to bind to a recording's buffer. The memory stays as it is
    /// for as long as the view, or a graph that was made with it, lives.
    pub fn view(&self) -> AllocationView {
        self.as_slice().view()
    }

    /// [`SliceMut::upload`] to all elements.
    ///
    /// # Errors
    /// As there.
    pub fn upload(&mut self, from: &[T]) -> Result<()> {
        self.as_slice_mut().upload(from)
    }

    /// [`Slice::download`] of all elements.
    ///
    /// # Errors
    /// As there.
    pub fn download(&self, to: &mut [T]) -> Result<()> {
        self.as_slice().download(to)
    }

    /// [`SliceMut::copy_from`] to all elements.
    ///
    /// # Errors
    /// As there.
    pub fn copy_from<Q: MemorySpace>(&mut self, from: Slice<'_, T, Q>) -> Result<()> {
        self.as_slice_mut().copy_from(from)
    }
}

impl<T: Element> PinnedBuffer<T> {
    /// [`Slice::read`] of all elements.
    ///
    /// # Errors
    /// As there.
    pub fn read(&self) -> Result<Read<'_, T>> {
        self.as_slice().read()
    }

    /// [`SliceMut::write`] to all elements.
    ///
    /// # Errors
    /// As there.
    pub fn write(&mut self) -> Result<Write<'_, T>> {
        self.as_slice_mut().into_write()
    }
}

impl<T: Element, P: MemorySpace> fmt::Debug for Owned<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}
