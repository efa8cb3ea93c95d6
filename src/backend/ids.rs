//! Identities of backends and slots.

use super::GraphId;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Identifies a backend among all of the process. The functions that it loads belong to its own
/// slots.
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

/// Identifies a slot among all of the process. Clones identify the same slot.
///
/// It also holds graphs that were released where the slot was not at hand.
#[derive(Clone)]
pub struct DeviceSlotId(Arc<Identity>);

struct Identity {
    number: u64,
    backend: BackendId,
    /// Graphs that their executor has left behind.
    released: Mutex<Vec<GraphId>>,
}

impl DeviceSlotId {
    /// An id that no other slot has, for a slot of `backend`.
    pub fn new(backend: BackendId) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        DeviceSlotId(Arc::new(Identity {
            number: NEXT.fetch_add(1, Relaxed),
            backend,
            released: Mutex::new(Vec::new()),
        }))
    }

    /// The backend that opened the slot.
    pub fn backend(&self) -> BackendId {
        self.0.backend
    }

    /// Leaves graphs for the next executor that makes a graph in the slot to drop.
    pub(crate) fn release(&self, graphs: impl IntoIterator<Item = GraphId>) {
        self.0.released.lock().extend(graphs);
    }

    /// Takes the graphs that [`DeviceSlotId::release`] left.
    pub(crate) fn take_released(&self) -> Vec<GraphId> {
        std::mem::take(&mut *self.0.released.lock())
    }
}

impl PartialEq for DeviceSlotId {
    fn eq(&self, other: &DeviceSlotId) -> bool {
        self.0.number == other.0.number
    }
}
impl Eq for DeviceSlotId {}

impl fmt::Debug for DeviceSlotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceSlotId({})", self.0.number)
    }
}
