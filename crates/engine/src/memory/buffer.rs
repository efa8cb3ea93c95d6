//! Buffers that a pool lends.

use super::pool::PooledAllocation;
use super::{ReadGuard, Slice, SliceMut, WriteGuard};
use crate::backend::{AllocationView, Space};
use crate::error::Result;
use crate::record::Element;
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;

/// A kind of memory as a type: [`Device`] or [`Pinned`].
pub trait MemorySpace: sealed::MemorySpace {
    /// The kind of memory as a value.
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

/// A buffer in device memory.
pub type DeviceBuffer<T> = Owned<T, Device>;
/// A buffer in pinned memory.
pub type PinnedBuffer<T> = Owned<T, Pinned>;

/// A buffer of elements of type `T`. Dropping it returns its allocation to the pool.
pub struct Owned<T, P> {
    pooled: PooledAllocation,
    len: usize,
    marker: PhantomData<fn() -> (T, P)>,
}

impl<T: Element, P: MemorySpace> Owned<T, P> {
    pub(super) fn new(pooled: PooledAllocation, len: usize) -> Self {
        Owned {
            pooled,
            len,
            marker: PhantomData,
        }
    }

    /// The number of elements; at least one.
    #[allow(clippy::len_without_is_empty, reason = "no buffer is empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// All elements.
    pub fn as_slice(&self) -> Slice<'_, T, P> {
        Slice::new(&self.pooled, 0, self.len)
    }

    /// All elements, mutable.
    pub fn as_slice_mut(&mut self) -> SliceMut<'_, T, P> {
        SliceMut::new(&self.pooled, 0, self.len)
    }

    /// A part of the elements.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for a range that does not lie inside.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Slice<'_, T, P>> {
        self.as_slice().slice(range)
    }

    /// A part of the elements, mutable.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for a range that does not lie inside.
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<SliceMut<'_, T, P>> {
        self.as_slice_mut().into_slice(range)
    }

    /// All elements, to bind to a recording's buffer. The view, and graphs that are made with it,
    /// keep the memory.
    pub fn view(&self) -> AllocationView {
        self.as_slice().view()
    }

    /// [`SliceMut::upload`] to all elements.
    ///
    /// # Errors
    /// The errors of [`SliceMut::upload`].
    pub fn upload(&mut self, from: &[T]) -> Result<()> {
        self.as_slice_mut().upload(from)
    }

    /// [`Slice::download`] of all elements.
    ///
    /// # Errors
    /// The errors of [`Slice::download`].
    pub fn download(&self, to: &mut [T]) -> Result<()> {
        self.as_slice().download(to)
    }

    /// [`SliceMut::copy_from`] to all elements.
    ///
    /// # Errors
    /// The errors of [`SliceMut::copy_from`].
    pub fn copy_from<Q: MemorySpace>(&mut self, from: Slice<'_, T, Q>) -> Result<()> {
        self.as_slice_mut().copy_from(from)
    }
}

impl<T: Element> PinnedBuffer<T> {
    /// [`Slice::read`] of all elements.
    ///
    /// # Errors
    /// The errors of [`Slice::read`].
    pub fn read(&self) -> Result<ReadGuard<'_, T>> {
        self.as_slice().read()
    }

    /// [`SliceMut::write`] to all elements.
    ///
    /// # Errors
    /// The errors of [`SliceMut::write`].
    pub fn write(&mut self) -> Result<WriteGuard<'_, T>> {
        self.as_slice_mut().into_write()
    }
}

impl<T: Element, P: MemorySpace> fmt::Debug for Owned<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}
