//! One slot's part of the arenas.

use super::memory::{DeviceMemory, PinnedMemory};
use crate::backend::{Addresses, HostViews, Layout, Space};
use crate::record::BufferId;
use std::sync::Arc;

/// The part of both arenas that one slot owns. The arenas live as long as their last part.
pub(super) struct SlotMemory {
    layout: Arc<Layout>,
    pinned: Arc<PinnedMemory>,
    device: Arc<DeviceMemory>,
    /// The index of the part; each exists once.
    index: usize,
}

impl SlotMemory {
    /// Divides both arenas into `count` parts.
    ///
    /// Panics if an arena is smaller than that.
    pub(super) fn cut(
        layout: Layout,
        pinned: PinnedMemory,
        device: DeviceMemory,
        count: usize,
    ) -> impl Iterator<Item = SlotMemory> {
        assert!(layout.host_bytes * count <= pinned.bytes());
        assert!(layout.device_bytes * count <= device.bytes());
        let (layout, pinned, device) = (Arc::new(layout), Arc::new(pinned), Arc::new(device));
        (0..count).map(move |index| SlotMemory {
            layout: Arc::clone(&layout),
            pinned: Arc::clone(&pinned),
            device: Arc::clone(&device),
            index,
        })
    }

    pub(super) fn device_start(&self) -> u64 {
        self.device.start() + (self.index * self.layout.device_bytes) as u64
    }

    pub(super) fn device_bytes(&self) -> usize {
        self.layout.device_bytes
    }

    /// Leaks both arenas: the device may still use them.
    pub(super) fn leak(&self) {
        std::mem::forget((Arc::clone(&self.pinned), Arc::clone(&self.device)));
    }

    fn host_start(&self) -> *mut u8 {
        let offset = self.index * self.layout.host_bytes;
        // SAFETY: `cut` asserted that the arena holds `count` parts, and
        // `index` is below `count`.
        unsafe { self.pinned.start().as_ptr().add(offset) }
    }

    pub(super) fn buffer_count(&self) -> usize {
        self.layout.buffers.len()
    }

    /// The addresses of a buffer in the slot's parts of the arenas.
    pub(super) fn addresses(&self, buffer: BufferId) -> Addresses {
        let place = &self.layout.buffers[buffer.index()];
        Addresses {
            device: self.device_start() + place.device as u64,
            host: place
                .host
                .map(|offset| self.host_start() as u64 + offset as u64),
            bytes: place.bytes,
        }
    }

    /// The host side of a buffer.
    ///
    /// # Safety
    /// No work in flight may write it.
    ///
    /// # Panics
    /// If it has no host side.
    pub(super) unsafe fn host(&self, buffer: BufferId) -> &[u8] {
        let place = &self.layout.buffers[buffer.index()];
        let offset = place.host.expect("the host sees the buffer");
        // SAFETY: `Layout` put the place inside the part, which no other code
        // has and `PinnedMemory` zeroed; `&self` keeps writers of this side away, and
        // the caller those of the device.
        unsafe { std::slice::from_raw_parts(self.host_start().add(offset), place.bytes) }
    }

    /// The host sides of several buffers.
    ///
    /// # Safety
    /// No work in flight may read or write them.
    ///
    /// # Panics
    /// If one has no host side, or they do not ascend.
    pub(super) unsafe fn host_mut(&mut self, buffers: &[BufferId]) -> HostViews<'_> {
        assert!(
            buffers.is_sorted_by(|a, b| a.index() < b.index()),
            "buffers ascend, each once"
        );
        let view = |buffer: &BufferId| {
            let place = &self.layout.buffers[buffer.index()];
            let offset = place.host.expect("the host sees the buffer");
            // SAFETY: as for `host`, with `&mut self` keeping readers away too;
            // places do not overlap and the assert lets none come twice.
            unsafe { std::slice::from_raw_parts_mut(self.host_start().add(offset), place.bytes) }
        };
        buffers.iter().map(view).collect()
    }

    /// Whether a range lies in this part, on the side of `space` if given.
    pub(super) fn contains(&self, space: Option<Space>, address: u64, bytes: usize) -> bool {
        let pinned = || {
            is_inside(
                address,
                bytes,
                self.host_start() as u64,
                self.layout.host_bytes,
            )
        };
        let device = || {
            is_inside(
                address,
                bytes,
                self.device_start(),
                self.layout.device_bytes,
            )
        };
        match space {
            Some(Space::Pinned) => pinned(),
            Some(Space::Device) => device(),
            None => device() || pinned(),
        }
    }
}

fn is_inside(address: u64, bytes: usize, start: u64, len: usize) -> bool {
    address
        .checked_sub(start)
        .and_then(|offset| offset.checked_add(bytes as u64))
        .is_some_and(|end| end <= len as u64)
}

#[cfg(test)]
mod tests {
    use super::is_inside;

    #[test]
    fn a_range_is_inside_to_its_last_byte() {
        assert!(is_inside(100, 10, 100, 10));
        assert!(!is_inside(100, 11, 100, 10));
        assert!(!is_inside(99, 1, 100, 10));
        assert!(!is_inside(u64::MAX, 2, 100, 10));
    }
}
