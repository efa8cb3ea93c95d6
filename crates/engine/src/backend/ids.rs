//! Identities of backends, slots, functions and graphs.

use crate::backend::fork::Process;
use crate::error::Result;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Identifies a backend among all of the process. The functions that it loads belong to its own
/// slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackendId {
    number: u64,
    process: Process,
}

impl BackendId {
    /// An id that no other backend has.
    #[allow(clippy::new_without_default, reason = "every call gives another value")]
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        BackendId {
            number: NEXT.fetch_add(1, Relaxed),
            process: Process::current(),
        }
    }

    /// Fails in a child of the process in which the backend was opened.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage).
    pub fn check_process(self) -> Result<()> {
        self.process.check("the backend")
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
    /// Graphs whose executor was dropped, and which the slot has not dropped yet.
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

    /// Leaves graphs for the next executor that starts or makes a graph in the slot to drop.
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

/// A kernel that a backend has loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
pub struct FunctionId(pub u32);

/// A graph of a slot. An identifier is never used twice in a process, so only code that got it
/// can name the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GraphId(pub(crate) u64);

impl GraphId {
    /// An identifier that no graph has.
    pub fn unique() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        GraphId(NEXT.fetch_add(1, Relaxed))
    }

    /// The graph with this number, counted from 0 over the process.
    ///
    /// # Safety
    /// The caller owns the graph: safe code could replace or drop it.
    pub unsafe fn from_number(number: u64) -> Self {
        GraphId(number)
    }
}
