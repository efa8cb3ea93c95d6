//! Which backend, and which slot: names that tell one from every other of the process.

use super::GraphId;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Tells a backend from every other of the process. The functions that it loads mean
/// nothing to the slots of another.
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

/// Tells a slot from every other slot of the process, and takes the graphs of the slot
/// that are let go of where the slot is not at hand.
///
/// Clones are of the same slot.
#[derive(Clone)]
pub struct DeviceSlotId(Arc<Identity>);

struct Identity {
    number: u64,
    backend: BackendId,
    /// Graphs that nothing launches again.
    released: Mutex<Vec<GraphId>>,
}

impl DeviceSlotId {
    /// An id that no other slot has, for a slot of this backend.
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

    /// Leaves graphs to be dropped by the next executor that makes a graph in the slot.
    pub(crate) fn release(&self, graphs: impl IntoIterator<Item = GraphId>) {
        self.0.released.lock().extend(graphs);
    }

    /// Takes what was left by [`DeviceSlotId::release`].
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
