//! The adopted allocations of a slot, and its leases.

use crate::backend::{Allocation, Lease, Space};
use crate::error::Result;
use crate::record::Access;

/// An allocation, and how work accesses it.
#[derive(Clone)]
pub(super) struct AllocationUse {
    allocation: Allocation,
    access: Access,
}

/// Adds a use. Each allocation is listed once, with the strongest access.
pub(super) fn add_use(uses: &mut Vec<AllocationUse>, allocation: &Allocation, access: Access) {
    match uses
        .iter_mut()
        .find(|known| known.allocation.is(allocation))
    {
        Some(known) if access.writes() => known.access = access,
        Some(_) => {}
        None => uses.push(AllocationUse {
            allocation: allocation.clone(),
            access,
        }),
    }
}

/// The uses of several operations together.
pub(super) fn all_uses<'a>(
    parts: impl IntoIterator<Item = &'a Vec<AllocationUse>>,
) -> Vec<AllocationUse> {
    let mut all = Vec::new();
    for part in parts.into_iter().flatten() {
        add_use(&mut all, &part.allocation, part.access);
    }
    all
}

/// Adopted allocations and leases.
#[derive(Default)]
pub(super) struct SlotAllocations {
    adopted: Vec<Allocation>,
    /// By the allocation's address, which is unique among live allocations.
    leased: Vec<(u64, Lease)>,
}

impl SlotAllocations {
    pub(super) fn adopt(&mut self, allocation: &Allocation) {
        if !self.adopted.iter().any(|known| known.is(allocation)) {
            self.adopted.push(allocation.clone());
        }
    }

    pub(super) fn adopted(&self) -> &[Allocation] {
        &self.adopted
    }

    /// Adds reads of all adopted allocations.
    pub(super) fn add_adopted(&self, uses: &mut Vec<AllocationUse>) {
        for allocation in &self.adopted {
            add_use(uses, allocation, Access::Read);
        }
    }

    pub(super) fn disown(&mut self, allocation: &Allocation) {
        self.adopted.retain(|known| !known.is(allocation));
    }

    /// The adopted allocation that contains the range, in `space` if given.
    pub(super) fn find(
        &self,
        space: Option<Space>,
        address: u64,
        bytes: usize,
    ) -> Option<&Allocation> {
        self.adopted.iter().find(|allocation| {
            space.is_none_or(|space| space == allocation.space())
                && allocation.contains(address, bytes)
        })
    }

    /// Holds the allocations of `uses` until [`SlotAllocations::release`]. `finish` waits for all work
    /// in flight. After an error, those that were taken before stay.
    pub(super) fn lease(
        &mut self,
        uses: &[AllocationUse],
        mut finish: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        for AllocationUse { allocation, access } in uses {
            let held = self
                .leased
                .iter()
                .position(|(address, _)| *address == allocation.address());
            match held {
                Some(index) if self.leased[index].1.writes() || !access.writes() => continue,
                Some(index) => {
                    // A read lease cannot become a write lease in one step, and the host may take
                    // the lock in between, so the reads in flight end first.
                    finish()?;
                    self.leased.swap_remove(index);
                }
                None => {}
            }
            self.leased
                .push((allocation.address(), allocation.lease(*access)?));
        }
        Ok(())
    }

    /// Releases all leases.
    pub(super) fn release(&mut self) {
        self.leased.clear();
    }

    /// Leaks all leases: the device may still use the allocations.
    pub(super) fn leak(&mut self) {
        std::mem::forget(std::mem::take(&mut self.leased));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Backend, cpu::CpuBackend};
    use rayon::ThreadPoolBuilder;
    use std::sync::Arc;

    fn allocation() -> Allocation {
        let pool = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let backend = CpuBackend::new(Arc::new(pool));
        backend.allocate(Space::Pinned, 64).unwrap()
    }

    fn uses(allocation: &Allocation, access: &[Access]) -> Vec<AllocationUse> {
        let mut uses = Vec::new();
        access
            .iter()
            .for_each(|access| add_use(&mut uses, allocation, *access));
        uses
    }

    #[test]
    fn a_allocation_that_is_read_and_written_is_leased_once_to_write() {
        let allocation = allocation();
        let mut allocations = SlotAllocations::default();
        let uses = uses(&allocation, &[Access::Read, Access::Write, Access::Read]);
        allocations
            .lease(&uses, || panic!("nothing is in flight"))
            .unwrap();
        assert!(allocation.read().is_err());
        allocations.release();
        assert!(allocation.write().is_ok());
    }

    #[test]
    fn reads_end_before_a_lease_to_read_becomes_one_to_write() {
        let allocation = allocation();
        let mut allocations = SlotAllocations::default();
        let (read, write) = (
            uses(&allocation, &[Access::Read]),
            uses(&allocation, &[Access::Write]),
        );
        allocations
            .lease(&read, || panic!("nothing is in flight"))
            .unwrap();
        allocations
            .lease(&read, || panic!("it is leased to read already"))
            .unwrap();
        let mut finished = 0;
        let guard = allocation.read().unwrap();
        let mut finish = || {
            finished += 1;
            Ok(())
        };
        assert!(
            allocations.lease(&write, &mut finish).is_err(),
            "the host reads too"
        );
        drop(guard);
        allocations.lease(&read, &mut finish).unwrap();
        allocations.lease(&write, &mut finish).unwrap();
        assert_eq!(finished, 2);
        allocations
            .lease(&read, || panic!("one to write does for reading"))
            .unwrap();
        assert!(allocation.read().is_err());
    }

    #[test]
    fn only_an_adopted_allocation_of_the_right_space_is_found() {
        let allocation = allocation();
        let mut allocations = SlotAllocations::default();
        let found = |allocations: &SlotAllocations, space, offset: u64, bytes| {
            allocations
                .find(space, allocation.address() + offset, bytes)
                .is_some()
        };
        assert!(!found(&allocations, None, 0, 64));
        allocations.adopt(&allocation);
        assert!(
            found(&allocations, None, 0, 64) && found(&allocations, Some(Space::Pinned), 8, 56)
        );
        assert!(
            !found(&allocations, Some(Space::Device), 0, 64) && !found(&allocations, None, 8, 57)
        );
        allocations.disown(&allocation);
        assert!(!found(&allocations, None, 0, 64));
    }
}
