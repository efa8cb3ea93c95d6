//! Vectors that are used again, so that batches allocate none.

use parking_lot::Mutex;

/// Empty vectors with the room that they had: as many as were ever in use at once.
pub(super) struct VecPool<T>(Mutex<Vec<Vec<T>>>);

impl<T> VecPool<T> {
    pub(super) fn new() -> Self {
        VecPool(Mutex::new(Vec::new()))
    }

    /// An empty one, new if there is none to be used again.
    pub(super) fn take(&self) -> Vec<T> {
        self.0.lock().pop().unwrap_or_default()
    }

    /// Drops what is left in it, and keeps its room.
    pub(super) fn give_back(&self, mut used: Vec<T>) {
        used.clear();
        self.0.lock().push(used);
    }
}
