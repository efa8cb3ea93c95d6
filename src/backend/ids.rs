//! Which backend, and which lane: names that tell one from every other of the process.

use super::GraphId;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Tells a backend from every other of the process. The functions that it loads mean
/// nothing to the lanes of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackendId(u64);

impl BackendId {
    /// An id that no other backend has.
    #[allow(clippy::new_without_default, reason = "every call gives another value")]
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        BackendId(NEXT.fetch_add(1, Relaxed))
    }
}

/// Tells a lane from every other lane of the process, and takes the graphs of the lane
/// that are let go of where the lane is not at hand.
///
/// Clones are of the same lane.
#[derive(Clone)]
pub struct LaneId(Arc<Identity>);

struct Identity {
    number: u64,
    backend: BackendId,
    /// Graphs that nothing launches again.
    released: Mutex<Vec<GraphId>>,
}

impl LaneId {
    /// An id that no other lane has, for a lane of this backend.
    pub fn new(backend: BackendId) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        LaneId(Arc::new(Identity {
            number: NEXT.fetch_add(1, Relaxed),
            backend,
            released: Mutex::new(Vec::new()),
        }))
    }

    /// The backend that opened the lane.
    pub fn backend(&self) -> BackendId {
        self.0.backend
    }

    /// Leaves graphs to be dropped by the next executor that makes a graph in the lane.
    pub(crate) fn release(&self, graphs: impl IntoIterator<Item = GraphId>) {
        self.0.released.lock().extend(graphs);
    }

    /// Takes what was left by [`LaneId::release`].
    pub(crate) fn take_released(&self) -> Vec<GraphId> {
        std::mem::take(&mut *self.0.released.lock())
    }
}

impl PartialEq for LaneId {
    fn eq(&self, other: &LaneId) -> bool {
        self.0.number == other.0.number
    }
}
impl Eq for LaneId {}

impl fmt::Debug for LaneId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LaneId({})", self.0.number)
    }
}
