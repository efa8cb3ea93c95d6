//! Device memory that a batch is copied from, before its commands run.

use super::{Filling, Slot, SlotCore};
use crate::backend::allocation::Lease;
use crate::backend::{AllocationView, ExternalEvent, Space};
use crate::error::{Error, Result};
use crate::record::{Access, Buffer, BufferId, Element, View};
use crate::replay::{enqueue_copy, enqueue_zeros};
use crate::workload::InputTarget;
use std::ops::Range;

/// The copies of the batch that is submitted next, and what they wait for. They are kept, with the leases on
/// the memory that they read, until the batch is done or has failed.
#[derive(Default)]
pub(super) struct BatchCopies {
    parts: Vec<InputPart>,
    waits_for: Vec<ExternalEvent>,
}

/// A part of an input buffer.
struct InputPart {
    to: BufferId,
    /// Where it starts in the buffer, in bytes.
    start: usize,
    contents: Contents,
}

enum Contents {
    /// Those of device memory.
    Memory {
        view: AllocationView,
        /// Keeps others from writing the memory until the copy is given to the device, which then does.
        lease: Option<Lease>,
    },
    /// This many bytes of zeros, for items that were rejected while they were written.
    Zeros(usize),
}

impl BatchCopies {
    #[inline]
    pub(super) fn clear(&mut self) {
        self.parts.clear();
        self.waits_for.clear();
    }
}

impl SlotCore {
    /// Gives the copies to the slot. Returns the number of calls. After an error
    /// [`SlotCore::clear_inputs`] takes back the rest.
    pub(super) fn submit_inputs(&mut self) -> Result<usize> {
        let device_slot = &mut *self.device_slot;
        let mut calls = 0;
        for event in self.inputs.waits_for.drain(..) {
            device_slot.wait_for_event(&event)?;
            calls += 1;
        }
        for part in &mut self.inputs.parts {
            match &mut part.contents {
                Contents::Memory { view, lease } => {
                    device_slot.adopt(view.allocation())?;
                    enqueue_copy(device_slot, view, part.to, part.start)?;
                    *lease = None;
                }
                &mut Contents::Zeros(bytes) => {
                    enqueue_zeros(device_slot, part.to, part.start, bytes)?;
                }
            }
            calls += 1;
        }
        self.disown_inputs();
        Ok(calls)
    }

    /// Takes back what the copies let the slot use. A copy that was given to the device keeps its memory.
    fn disown_inputs(&mut self) {
        for part in &self.inputs.parts {
            if let Contents::Memory { view, .. } = &part.contents {
                self.executor
                    .disown(&mut *self.device_slot, view.allocation());
            }
        }
    }

    pub(super) fn clear_inputs(&mut self) {
        self.disown_inputs();
        self.inputs.clear();
    }

    /// Adds a copy, or lengthens the one before if both of its ranges go on there.
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for pinned memory, memory of another backend,
    /// and while other work writes it.
    fn copy_in(&mut self, from: AllocationView, to: BufferId, start: usize) -> Result<()> {
        if from.allocation().space() != Space::Device {
            return Err(Error::usage(
                "an input buffer is filled from device memory, and not from pinned memory",
            )
            .fix("declare an upload buffer for what is on the host"));
        }
        if let Some(last) = self.inputs.parts.last_mut()
            && let Contents::Memory { view, .. } = &mut last.contents
            && last.to == to
            && last.start + view.bytes() == start
            && let Some(both) = view.followed_by(&from)
        {
            *view = both;
            return Ok(());
        }
        let lease = from.allocation().lease(Access::Read)?;
        // Nothing fails after it: `disown_inputs` takes back what the parts name alone.
        self.device_slot.adopt(from.allocation())?;
        self.inputs.parts.push(InputPart {
            to,
            start,
            contents: Contents::Memory {
                view: from,
                lease: Some(lease),
            },
        });
        Ok(())
    }
}

impl<S> Slot<S> {
    /// Drops the copies of an earlier batch, or of one that has failed for good: the memory can be written
    /// again, and dropped.
    pub(crate) fn clear_inputs(&mut self) {
        self.core.clear_inputs();
    }
}

impl Slot<Filling> {
    /// Copies device memory to the part of an input buffer that starts at element `start`, on the device,
    /// before the commands of the batch that is filled now. Nothing may write the memory until the batch is
    /// done, and work of the engine that would is refused.
    ///
    /// What the buffer holds elsewhere is of an earlier batch.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for a buffer that is no input buffer of the recording,
    /// for more than fits in it, for pinned memory, for memory of another backend, and while work in flight
    /// writes the memory.
    pub fn copy_in<T: Element>(
        &mut self,
        buffer: Buffer<T>,
        start: usize,
        from: AllocationView,
    ) -> Result<()> {
        let recording = &self.core.executor.buckets().largest().recording;
        let decl = recording.buffer(buffer.id());
        let is_input = |decl: &&crate::record::BufferDecl| {
            (decl.view, decl.dtype) == (View::DeviceInput, T::DTYPE)
        };
        let Some(decl) = decl.filter(is_input) else {
            return Err(Error::usage("the recording has no such input buffer")
                .fix("declare it with Recorder::input_buffer"));
        };
        let start = start.saturating_mul(size_of::<T>());
        if start.saturating_add(from.bytes()) > decl.size_bytes() {
            return Err(Error::usage(format!(
                "{} bytes from byte {start} on are more than the {} of input buffer {}",
                from.bytes(),
                decl.size_bytes(),
                decl.name
            )));
        }
        self.core.copy_in(from, buffer.id(), start)
    }

    /// Sets a part of an input buffer to zero before the batch's commands.
    pub(crate) fn zero_input(&mut self, to: BufferId, part: Range<usize>) {
        if part.is_empty() {
            return;
        }
        // It comes after a copy to the same place.
        self.core.inputs.parts.push(InputPart {
            to,
            start: part.start,
            contents: Contents::Zeros(part.len()),
        });
    }

    /// The host side of an upload buffer.
    pub(crate) fn upload_mut(&mut self, buffer: BufferId) -> &mut [u8] {
        let mut views = self.core.device_slot.host_mut(&[buffer]);
        views.pop().expect("one was asked for")
    }
}

impl InputTarget for Slot<Filling> {
    fn copy(&mut self, from: AllocationView, to: BufferId, start: usize) -> Result<()> {
        self.core.copy_in(from, to, start)
    }

    fn wait_for(&mut self, event: ExternalEvent) -> Result<()> {
        self.core.check_events()?;
        self.core.inputs.waits_for.push(event);
        Ok(())
    }
}
