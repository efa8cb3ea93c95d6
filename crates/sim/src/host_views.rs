//! The host's view of a slot's pinned memory.
//!
//! The host and the device each have their own bytes. Bytes that the host wrote reach the device at
//! the slot's next call, and bytes that the device wrote reach the host when it sees the work done,
//! as the caches of a processor would allow.

use super::access::Touch;
use super::memory::SimMemory;
use std::ops::Range;
use tapeloop_engine::backend::contract::HostViews;
use tapeloop_engine::internal::Storage;
use tapeloop_engine::record::BufferId;

#[derive(Default)]
pub(super) struct Views(Vec<Option<HostView>>);

struct HostView {
    address: u64,
    bytes: Storage,
    /// Whether the host wrote it since the last call, so that the device's copy is stale.
    is_ahead: bool,
    /// Whether work that writes it was submitted and not seen done.
    is_behind: bool,
}

impl Views {
    /// Adds the next buffer: address and bytes of its host side, if it has one.
    pub(super) fn push(&mut self, seen: Option<(u64, Storage)>) {
        self.0.push(seen.map(|(address, bytes)| HostView {
            address,
            bytes,
            is_ahead: false,
            is_behind: false,
        }));
    }

    /// The address and the range of a buffer's host side.
    ///
    /// # Panics
    /// If the buffer has no host side.
    pub(super) fn range(&self, buffer: BufferId) -> (u64, Range<usize>) {
        let view = self.view(buffer);
        (view.address, 0..view.bytes.as_slice().len())
    }

    fn view(&self, buffer: BufferId) -> &HostView {
        let view = self.0[buffer.index()].as_ref();
        view.expect("the host does not see this buffer")
    }

    pub(super) fn bytes(&self, buffer: BufferId) -> &[u8] {
        self.view(buffer).bytes.as_slice()
    }

    /// The host's copies of buffers, which are published to the device at the next call.
    pub(super) fn bytes_mut(&mut self, buffers: &[BufferId]) -> HostViews<'_> {
        let mut wanted = buffers.iter().map(|buffer| buffer.index()).peekable();
        let all = self.0.iter_mut().enumerate();
        let views: HostViews<'_> = all
            .filter(|(index, _)| wanted.next_if_eq(index).is_some())
            .map(|(_, view)| {
                let view = view.as_mut().expect("the host does not see this buffer");
                view.is_ahead = true;
                view.bytes.as_mut_slice()
            })
            .collect();
        assert_eq!(views.len(), buffers.len(), "buffers ascend and exist");
        views
    }

    /// Copies what the host wrote to the device.
    pub(super) fn publish(&mut self, memory: &mut SimMemory) {
        for view in self.0.iter_mut().flatten().filter(|view| view.is_ahead) {
            let bytes = memory.at_mut(view.address).bytes.as_mut_slice();
            bytes.copy_from_slice(view.bytes.as_slice());
            view.is_ahead = false;
        }
    }

    /// Poisons the bytes that submitted work will write: the host must not read them yet.
    pub(super) fn poison(&mut self, memory: &SimMemory, touches: &[(usize, Touch)]) {
        for (_, touch) in touches.iter().filter(|(_, touch)| touch.access.writes()) {
            let mut views = self.0.iter_mut().flatten();
            if let Some(view) = views.find(|view| view.address == touch.memory) {
                memory.poison(&mut view.bytes.as_mut_slice()[touch.range.clone()]);
                view.is_behind = true;
            }
        }
    }

    /// Copies what the device wrote to the host.
    pub(super) fn refresh(&mut self, memory: &SimMemory) {
        for view in self.0.iter_mut().flatten().filter(|view| view.is_behind) {
            let bytes = memory.at(view.address).bytes.as_slice();
            view.bytes.as_mut_slice().copy_from_slice(bytes);
            view.is_behind = false;
        }
    }
}
