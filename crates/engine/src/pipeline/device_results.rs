//! The result buffers of a slot, and copies of them.

use crate::backend::{AllocationView, Backend};
use crate::error::{Context, Result};
use crate::memory::{Pool, PoolConfig};
use crate::record::{BufferId, Recording, View};
use crate::workload::{DeviceOwner, DevicePart, Extent, ViewLayout};
use std::ops::Range;
use std::sync::Arc;

/// The memory of a slot's result buffers.
pub(crate) struct DeviceResults {
    layout: ViewLayout,
    /// In the order of the layout.
    memory: Vec<AllocationView>,
    /// For copies.
    pool: Pool,
}

impl DeviceResults {
    /// Those of a slot with these buffers; `None` if there are none.
    pub(super) fn new(
        recording: &Recording,
        memory: Vec<(BufferId, AllocationView)>,
        pool: &Pool,
    ) -> Option<Arc<Self>> {
        if memory.is_empty() {
            return None;
        }
        Some(Arc::new(DeviceResults {
            layout: ViewLayout::new(recording, View::DeviceResult),
            memory: memory.into_iter().map(|(_, view)| view).collect(),
            pool: pool.clone(),
        }))
    }

    /// A pool for the copies of a device's slots. The engine's device memory is not in it.
    pub(super) fn pool(backend: &Arc<dyn Backend>) -> Pool {
        Pool::new(Arc::clone(backend), PoolConfig::production())
    }

    pub(super) fn backend(&self) -> &Arc<dyn Backend> {
        self.pool.backend()
    }

    /// An item's part of a result buffer.
    ///
    /// # Panics
    /// If it is not a result buffer of the recording.
    pub(super) fn part(&self, buffer: BufferId, offset: Extent, extent: Extent) -> AllocationView {
        let (position, Range { start, end }) = self.layout.part(buffer, offset, extent);
        let allocation = self.memory[position].allocation();
        AllocationView::new(allocation, start, end - start).expect("within the slot's capacity")
    }

    /// Copies a part on the device. The errors are those of
    /// [`Pool::device`](crate::memory::Pool::device) and of the backend's copy.
    pub(super) fn copy(&self, part: &AllocationView) -> Result<DevicePart> {
        let copy = self.pool.device::<u8>(part.bytes(), "a result")?;
        let (from, to) = (part.allocation(), copy.view());
        let start = (part.address() - from.address()) as usize;
        let backend = self.backend();
        let copied = backend.copy(from, start, to.allocation(), 0, part.bytes());
        copied.within(|| "copy of a result")?;
        Ok(DevicePart {
            view: to,
            owner: DeviceOwner::Copy {
                _copy: Arc::new(copy),
            },
            backend: Arc::clone(backend),
        })
    }
}
