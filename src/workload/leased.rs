//! [`Leased`]: a result that borrows the memory of its batch's slot, or has a copy.

use crate::record::{BufferId, Element};
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// The host memory of a slot, which stays as it is while this exists.
pub(crate) trait HostMemory: Send + Sync {
    /// The host side of a download buffer.
    fn host(&self, buffer: BufferId) -> &[u8];
}

/// What the results of a batch may borrow.
pub(crate) trait LeaseSource: Sync {
    /// The memory of the batch's slot for one more result; `None` if that is to be copied. Counts
    /// the result.
    fn lend(&self) -> Option<Arc<dyn HostMemory>>;
}

/// A part of a download buffer that outlives its batch: [`ReadViews::lease`](super::ReadViews::lease)
/// borrows it from the memory of the batch's slot, or copies it.
///
/// Its elements never change. A clone borrows the same memory, or has the same copy.
///
/// Each dereference asks the slot where the memory is: take the slice once, before a loop over its
/// elements.
#[derive(Clone)]
pub struct Leased<T: Element>(Memory<T>);

#[derive(Clone)]
enum Memory<T> {
    Slot {
        slot: Arc<dyn HostMemory>,
        buffer: BufferId,
        bytes: Range<usize>,
    },
    Copy(Arc<[T]>),
}

impl<T: Element> Leased<T> {
    /// The part `bytes` of `buffer`, of which `elements` are the elements.
    pub(super) fn new(
        source: &dyn LeaseSource,
        buffer: BufferId,
        bytes: Range<usize>,
        elements: &[T],
    ) -> Self {
        Leased(match source.lend() {
            Some(slot) => Memory::Slot {
                slot,
                buffer,
                bytes,
            },
            None => Memory::Copy(Arc::from(elements)),
        })
    }
}

impl<T: Element> Deref for Leased<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            Memory::Slot {
                slot,
                buffer,
                bytes,
            } => bytemuck::cast_slice(&slot.host(*buffer)[bytes.clone()]),
            Memory::Copy(elements) => elements,
        }
    }
}

impl<T: Element + fmt::Debug> fmt::Debug for Leased<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
