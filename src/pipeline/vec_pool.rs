//! Vectors that are reused, so that batches do not allocate.

use parking_lot::Mutex;

/// Empty vectors that keep their capacity: as many as were ever in use at once.
pub(super) struct VecPool<T>(Mutex<Vec<Vec<T>>>);

impl<T> VecPool<T> {
    pub(super) fn new() -> Self {
        VecPool(Mutex::new(Vec::new()))
    }

    /// An empty vector, new if none is left.
    pub(super) fn take(&self) -> Vec<T> {
        self.0.lock().pop().unwrap_or_default()
    }

    /// Clears a vector and keeps it for the next [`VecPool::take`].
    pub(super) fn give_back(&self, mut used: Vec<T>) {
        used.clear();
        self.0.lock().push(used);
    }
}
