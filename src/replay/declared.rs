//! Memory of the embedder's that pointers in structs may point to.

use super::Bindings;
use super::executor::Executor;
use crate::backend::{Allocation, AllocationView, DeviceSlot};
use crate::error::{Error, Result};

/// How much memory that is gone is remembered, to tell what a stale address was.
const FORMER_MAX: usize = 64;

/// What pointers may point to beside the buffers of a recording.
#[derive(Default)]
pub(super) struct Declared {
    views: Vec<AllocationView>,
    /// Starts and sizes of what was bound or declared and is no more, latest first.
    former: Vec<(u64, usize)>,
}

impl Declared {
    pub(super) fn views(&self) -> &[AllocationView] {
        &self.views
    }

    /// Refuses bindings of a buffer to memory that is declared. Edges between commands
    /// follow from the buffers that they name, and an address of declared memory names
    /// none: nothing would order the two.
    pub(super) fn check(&self, bindings: &Bindings) -> Result<()> {
        for declared in &self.views {
            if let Some((buffer, bound)) = bindings.bound_over(declared) {
                return Err(overlap(buffer, bound, declared));
            }
        }
        Ok(())
    }

    /// Notes that the executor let go of an allocation.
    pub(super) fn let_go(&mut self, allocation: &Allocation) {
        self.former.truncate(FORMER_MAX - 1);
        self.former
            .insert(0, (allocation.address(), allocation.bytes()));
    }

    /// Whether an address was inside of an allocation that the executor let go of.
    pub(super) fn was_known(&self, address: u64) -> bool {
        let mut former = self.former.iter();
        former.any(|&(start, bytes)| address >= start && address - start < bytes as u64)
    }
}

fn overlap(buffer: &str, bound: &AllocationView, declared: &AllocationView) -> Error {
    let range = |view: &AllocationView| {
        let start = view.address();
        format!("{start:#x} to {:#x}", start + view.bytes() as u64)
    };
    let (bound, declared) = (range(bound), range(declared));
    Error::usage(format!(
        "buffer {buffer} is bound to {bound}, which overlaps declared memory, {declared}"
    ))
    .fix("bind the buffer to memory that is not declared, or pass the buffer itself in the struct")
}

impl Executor {
    /// Lets pointers in structs point into an embedder's memory. All of it counts
    /// as one thing that launches read or write, whatever the address. Buckets are
    /// made ready only once what they point to is declared, so the policy of such an
    /// executor warms nothing up.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for another slot, for memory of
    /// another backend, and for memory that a buffer of any bucket is bound to: nothing
    /// would order what kernels do to it by either name.
    pub fn declare(&mut self, slot: &mut dyn DeviceSlot, view: AllocationView) -> Result<()> {
        self.check_slot(slot)?;
        for bindings in self.bindings.iter().flatten() {
            if let Some((buffer, bound)) = bindings.bound_over(&view) {
                return Err(overlap(buffer, bound, &view));
            }
        }
        slot.adopt(view.allocation())?;
        self.declared.views.push(view);
        Ok(())
    }

    /// Takes back what [`Executor::declare`] said of an allocation. A bucket that still
    /// points there is refused at its next batch. Nothing may be in flight.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for another slot.
    pub fn withdraw(&mut self, slot: &mut dyn DeviceSlot, allocation: &Allocation) -> Result<()> {
        self.check_slot(slot)?;
        self.declared
            .views
            .retain(|view| !view.allocation().is(allocation));
        for bucket in 0..self.past.len() {
            let points_there = self
                .ready_mut(bucket)
                .is_some_and(|ready| ready.points_into(allocation));
            if points_there {
                self.drop_ready(slot, bucket);
            }
        }
        self.disown_unused(slot, std::iter::once(allocation));
        Ok(())
    }
}
