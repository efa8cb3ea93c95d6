//! Slices of buffers, and copies between them.

use super::buffer::{MemorySpace, Pinned};
use super::pool::PooledAllocation;
use crate::backend::AllocationView;
use crate::backend::allocation::{ReadGuard, WriteGuard};
use crate::error::{Error, Result};
use crate::record::Element;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, Range, RangeBounds};

/// A part of a buffer's elements.
pub struct Slice<'a, T, P> {
    pooled: &'a PooledAllocation,
    start: usize,
    len: usize,
    marker: PhantomData<fn() -> (T, P)>,
}

/// A mutable part of a buffer's elements.
pub struct SliceMut<'a, T, P> {
    slice: Slice<'a, T, P>,
    exclusive: PhantomData<&'a mut T>,
}

impl<T, P> Clone for Slice<'_, T, P> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T, P> Copy for Slice<'_, T, P> {}

impl<'a, T: Element, P: MemorySpace> Slice<'a, T, P> {
    /// The caller ensures that the elements lie inside the buffer.
    pub(super) fn new(pooled: &'a PooledAllocation, start: usize, len: usize) -> Self {
        Slice {
            pooled,
            start,
            len,
            marker: PhantomData,
        }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A part of the elements.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for a range that does not lie inside.
    pub fn slice(self, range: impl RangeBounds<usize>) -> Result<Slice<'a, T, P>> {
        let Range { start, end } = check_range(range, self.len)?;
        Ok(Slice::new(self.pooled, self.start + start, end - start))
    }

    /// The elements, to bind to a recording's buffer. The view, and graphs that are made with it,
    /// keep the memory.
    pub fn view(self) -> AllocationView {
        let Range { start, end } = self.bytes();
        AllocationView::new(self.pooled.allocation(), start, end - start)
            .expect("inside the allocation")
    }

    /// Copies the elements to the host's own memory, and returns when the copy is done.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) if the lengths differ, and while work in
    /// flight or a guard writes the buffer; those of the [backend](crate::backend::contract#errors).
    pub fn download(self, to: &mut [T]) -> Result<()> {
        check_len(self.len, to.len())?;
        if to.is_empty() {
            return Ok(());
        }
        let (backend, allocation) = (self.pooled.backend(), self.pooled.allocation());
        backend.read(allocation, self.bytes().start, bytemuck::cast_slice_mut(to))
    }

    fn bytes(&self) -> Range<usize> {
        self.start * size_of::<T>()..(self.start + self.len) * size_of::<T>()
    }
}

impl<'a, T: Element> Slice<'a, T, Pinned> {
    /// Locks the whole buffer for the host to read: work that writes any part of it is refused
    /// meanwhile.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) while work in flight writes
    /// the buffer.
    pub fn read(self) -> Result<ReadGuard<'a, T>> {
        let guard = self.pooled.allocation().read()?;
        let range = self.bytes();
        Ok(guard.map(|bytes| bytemuck::cast_slice(&bytes[range])))
    }
}

impl<'a, T: Element, P: MemorySpace> SliceMut<'a, T, P> {
    /// Like [`Slice::new`]; the caller has exclusive access to the elements for `'a`.
    pub(super) fn new(pooled: &'a PooledAllocation, start: usize, len: usize) -> Self {
        SliceMut {
            slice: Slice::new(pooled, start, len),
            exclusive: PhantomData,
        }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.slice.len
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.slice.is_empty()
    }

    /// The elements, to read.
    pub fn as_slice(&self) -> Slice<'_, T, P> {
        self.slice
    }

    /// A part of the elements, to read.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for a range that does not lie inside.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Slice<'_, T, P>> {
        self.slice.slice(range)
    }

    /// A part of the elements.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for a range that does not lie inside.
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<SliceMut<'_, T, P>> {
        self.reborrow().into_slice(range)
    }

    /// [`SliceMut::slice_mut`] with the lifetime of this slice.
    ///
    /// # Errors
    /// The errors of [`SliceMut::slice_mut`].
    pub fn into_slice(self, range: impl RangeBounds<usize>) -> Result<SliceMut<'a, T, P>> {
        let slice = self.slice.slice(range)?;
        let exclusive = PhantomData;
        Ok(SliceMut { slice, exclusive })
    }

    /// The elements before `mid`, and those from `mid` on.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) if `mid` is larger than the length.
    pub fn split_at(self, mid: usize) -> Result<(SliceMut<'a, T, P>, SliceMut<'a, T, P>)> {
        let Range { end: len, .. } = check_range(..mid, self.len())?;
        let Slice { pooled, start, .. } = self.slice;
        Ok((
            SliceMut::new(pooled, start, len),
            SliceMut::new(pooled, start + len, self.len() - len),
        ))
    }

    /// Like [`Slice::view`].
    pub fn view(&self) -> AllocationView {
        self.slice.view()
    }

    /// Copies from the host's own memory, and returns when the copy is done.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) if the lengths differ, and while work in
    /// flight or a guard uses the buffer; those of the [backend](crate::backend::contract#errors).
    pub fn upload(&mut self, from: &[T]) -> Result<()> {
        check_len(from.len(), self.len())?;
        if from.is_empty() {
            return Ok(());
        }
        let (backend, allocation) = (self.slice.pooled.backend(), self.slice.pooled.allocation());
        backend.write(
            bytemuck::cast_slice(from),
            allocation,
            self.slice.bytes().start,
        )
    }

    /// Like [`Slice::download`].
    ///
    /// # Errors
    /// The errors of [`Slice::download`].
    pub fn download(&self, to: &mut [T]) -> Result<()> {
        self.slice.download(to)
    }

    /// Copies from a slice of any buffer, in device or pinned memory, and returns when the copy is
    /// done.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) if the lengths differ, for a buffer of
    /// another backend, and while work in flight or a guard uses one of the buffers; those of the
    /// [backend](crate::backend::contract#errors).
    pub fn copy_from<Q: MemorySpace>(&mut self, from: Slice<'_, T, Q>) -> Result<()> {
        check_len(from.len(), self.len())?;
        if from.is_empty() {
            return Ok(());
        }
        let (source, target) = (from.bytes(), self.slice.bytes());
        self.slice.pooled.backend().copy(
            from.pooled.allocation(),
            source.start,
            self.slice.pooled.allocation(),
            target.start,
            target.len(),
        )
    }

    fn reborrow(&mut self) -> SliceMut<'_, T, P> {
        SliceMut {
            slice: self.slice,
            exclusive: PhantomData,
        }
    }
}

impl<'a, T: Element> SliceMut<'a, T, Pinned> {
    /// Locks the whole buffer for the host to write: work that uses any part of it is refused
    /// meanwhile, and so is a lock of another part.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) while work in flight or a
    /// guard uses the buffer.
    pub fn write(&mut self) -> Result<WriteGuard<'_, T>> {
        self.reborrow().into_write()
    }

    /// [`SliceMut::write`] with the lifetime of this slice.
    ///
    /// # Errors
    /// The errors of [`SliceMut::write`].
    pub fn into_write(self) -> Result<WriteGuard<'a, T>> {
        let guard = self.slice.pooled.allocation().write()?;
        let range = self.slice.bytes();
        Ok(guard.map(|bytes| bytemuck::cast_slice_mut(&mut bytes[range])))
    }
}

/// Checks that a range lies inside `len` elements. [`ErrorKind::Usage`](crate::ErrorKind::Usage) if
/// it does not, or ends before it starts.
fn check_range(range: impl RangeBounds<usize>, len: usize) -> Result<Range<usize>> {
    // A bound that saturates is larger than any length, and is refused below.
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&last) => last.saturating_add(1),
        Bound::Excluded(&end) => end,
        Bound::Unbounded => len,
    };
    if start <= end && end <= len {
        Ok(start..end)
    } else {
        Err(Error::usage(format!(
            "elements {start}..{end} are not inside {len} elements"
        )))
    }
}

/// Checks that both sides of a copy have as many elements.
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage) if they do not.
fn check_len(from: usize, to: usize) -> Result<()> {
    if from == to {
        Ok(())
    } else {
        Err(Error::usage(format!(
            "a copy of {from} elements to {to} elements"
        )))
    }
}

impl<T: Element, P: MemorySpace> fmt::Debug for Slice<'_, T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (space, start, len) = (P::SPACE.name(), self.start, self.len);
        let dtype = T::DTYPE;
        write!(f, "{len} {dtype:?} from {start} of {space} memory")
    }
}

impl<T: Element, P: MemorySpace> fmt::Debug for SliceMut<'_, T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.slice.fmt(f)
    }
}
