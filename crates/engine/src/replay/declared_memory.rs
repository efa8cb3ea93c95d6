//! Memory of the embedder's that pointers in structs may point to.

use super::Bindings;
use crate::backend::{Allocation, AllocationView};
use crate::error::{Error, Result};

/// How many former allocations are remembered to explain a stale address. Only messages use them, so the
/// latest suffice.
const FORMER_MAX: usize = 64;

/// The memory that pointers may point to besides the buffers of a recording.
#[derive(Default)]
pub(super) struct DeclaredMemory {
    views: Vec<AllocationView>,
    /// Start and size in bytes of allocations that were bound or declared before, latest first.
    former: Vec<(u64, usize)>,
}

impl DeclaredMemory {
    pub(super) fn views(&self) -> &[AllocationView] {
        &self.views
    }

    pub(super) fn add(&mut self, view: AllocationView) {
        self.views.push(view);
    }

    pub(super) fn remove(&mut self, allocation: &Allocation) {
        self.views.retain(|view| !view.allocation().is(allocation));
    }

    /// Refuses bindings of a buffer to declared memory. Edges between commands follow from the
    /// buffers that they name, and an address in declared memory names none: nothing would
    /// order the two.
    ///
    /// # Errors
    /// That of [`check_apart`].
    pub(super) fn check(&self, bindings: &Bindings) -> Result<()> {
        let mut views = self.views.iter();
        views.try_for_each(|declared| check_apart(bindings, declared))
    }

    /// Remembers an allocation that the executor uses no longer.
    pub(super) fn add_former(&mut self, allocation: &Allocation) {
        self.former.truncate(FORMER_MAX - 1);
        self.former
            .insert(0, (allocation.address(), allocation.bytes()));
    }

    /// Whether an address lies in an allocation that the executor used before.
    pub(super) fn was_known(&self, address: u64) -> bool {
        let mut former = self.former.iter();
        former.any(|&(start, bytes)| is_inside(address, start, bytes))
    }
}

/// Whether an address is one of the `bytes` bytes from `start` on.
pub(super) fn is_inside(address: u64, start: u64, bytes: usize) -> bool {
    address >= start && address - start < bytes as u64
}

/// Refuses declared memory that a buffer is bound to.
///
/// # Errors
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage), with both ranges.
pub(super) fn check_apart(bindings: &Bindings, declared: &AllocationView) -> Result<()> {
    let Some((buffer, bound)) = bindings.bound_over(declared) else {
        return Ok(());
    };
    let range = |view: &AllocationView| {
        let start = view.address();
        format!("{start:#x} to {:#x}", start + view.bytes() as u64)
    };
    let (bound, declared) = (range(bound), range(declared));
    let error = Error::usage(format!(
        "buffer {buffer} is bound to {bound}, which overlaps declared memory, {declared}"
    ));
    Err(error.fix(
        "bind the buffer to memory that is not declared, or pass the buffer itself in the struct",
    ))
}
