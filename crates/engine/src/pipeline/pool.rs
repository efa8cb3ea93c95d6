//! Vectors and batches that are reused, so that batches do not allocate.

use crossbeam_utils::CachePadded;
use parking_lot::Mutex;

/// Values that are not in use: as many as were ever in use at once.
pub(super) struct SparePool<T>(CachePadded<Mutex<Vec<T>>>);

impl<T> Default for SparePool<T> {
    fn default() -> Self {
        SparePool(CachePadded::new(Mutex::new(Vec::new())))
    }
}

impl<T> SparePool<T> {
    /// A value that was used before; `None` if none is left.
    pub(super) fn take(&self) -> Option<T> {
        self.0.lock().pop()
    }

    /// Keeps a value for the next [`SparePool::take`].
    pub(super) fn give_back(&self, used: T) {
        self.0.lock().push(used);
    }
}
