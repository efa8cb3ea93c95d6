//! Memory of the CPU backend: buffers of slots, and allocations.

use crate::backend::storage::Storage;
use crate::backend::{ALIGN_BYTES, Allocation, AllocationKey, Lease, Space};
use crate::error::{Error, Result};
use crate::record::{Access, BUFFERS_MAX, BufferDecl};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The buffers of one slot. Each takes as much memory as in a [`Layout`](crate::backend::Layout),
/// so that a memory plan is right on every backend.
///
/// # Errors
/// `ErrorKind::OutOfMemory` if a buffer gets no memory.
pub(super) fn slot_buffers(buffers: &[BufferDecl]) -> Result<Vec<Storage>> {
    let storage = |decl: &BufferDecl| {
        // A size beyond the address space becomes one that cannot be allocated.
        let bytes = decl.slot_bytes().unwrap_or(usize::MAX);
        let room = bytes.checked_next_multiple_of(ALIGN_BYTES);
        Storage::with_room(bytes, room.unwrap_or(usize::MAX))
    };
    buffers.iter().map(storage).collect()
}

/// The buffers of several slots, with the host sides in memory that another process maps too. Slot
/// by slot, each part of `host` is a host side, as the layout orders them; buffers without one have
/// memory of their own.
///
/// # Errors
/// Those of [`slot_buffers`].
///
/// # Panics
/// If `host` is smaller than the host sides of all slots, whose size its caller took from their layout.
#[cfg(all(feature = "supervise", target_os = "linux"))]
pub(super) fn shared_buffers(
    buffers: &[BufferDecl],
    slots: usize,
    host: crate::backend::worker::Arena,
) -> Result<Vec<Vec<Storage>>> {
    let of_slots = (0..slots).map(|_| slot_buffers(buffers));
    let mut all = of_slots.collect::<Result<Vec<_>>>()?;
    let layout = crate::backend::Layout::new(buffers).expect("the caller has made this layout");
    let with_host: Vec<usize> = (0..buffers.len())
        .filter(|&index| layout.buffers[index].host.is_some())
        .collect();
    let room = |&index: &usize| layout.buffers[index].bytes.next_multiple_of(ALIGN_BYTES);
    let mut parts = host
        .cut(all.iter().flat_map(|_| with_host.iter().map(room)))
        .into_iter();
    for slot in &mut all {
        // In this order, since `zip` would take one more part before it sees that the left side has ended.
        for (&index, part) in with_host.iter().zip(&mut parts) {
            slot[index] = Storage::shared(part, layout.buffers[index].bytes);
        }
    }
    Ok(all)
}

/// The first address of an allocation: any multiple of [`ALIGN_BYTES`] above 0 and far below [`OWN`].
/// Addresses are never used twice in a process.
const ALLOCATIONS_START: u64 = 1 << 32;

/// The addresses of a slot's own buffers are above those of all allocations: this bit, the index of the
/// buffer, and the offset in its bytes.
const OWN: u64 = 1 << 63;
/// Enough for each offset in a buffer: Linux gives a process no more addresses unless it asks for them.
const OFFSET_BITS: u32 = 48;
const _: () = assert!(
    BUFFERS_MAX as u64 <= OWN >> OFFSET_BITS,
    "an index would reach the bit `OWN`"
);

/// The address of the first byte of a slot's own buffer.
pub(super) fn own_address(index: usize) -> u64 {
    OWN | (index as u64) << OFFSET_BITS
}

/// The index and the offset of an address in a slot's own buffers; `None` for one in an allocation.
pub(super) fn in_own(address: u64) -> Option<(usize, usize)> {
    let index = (address & !OWN) >> OFFSET_BITS;
    let offset = address & ((1 << OFFSET_BITS) - 1);
    (address & OWN != 0).then_some((index as usize, offset as usize))
}

/// An allocation of zeros.
pub(super) fn allocate(key: AllocationKey, space: Space, bytes: usize) -> Result<Allocation> {
    static NEXT: AtomicU64 = AtomicU64::new(ALLOCATIONS_START);
    let storage = Storage::zeroed(bytes)?;
    // An address of its own for 0 bytes too, aligned as the buffers of slots are.
    let room = (bytes as u64 + 1).next_multiple_of(ALIGN_BYTES as u64);
    let address = NEXT.fetch_add(room, Relaxed);
    Ok(Allocation::new(
        key,
        space,
        address,
        bytes,
        Box::new(storage),
    ))
}

/// The memory at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MemoryPlace {
    /// Inside a slot's own buffer.
    Own { index: usize, offset: usize },
    /// Inside the allocation that starts at `allocation`.
    Allocation { allocation: u64, offset: usize },
}

/// The adopted allocations of a slot.
#[derive(Default)]
pub(super) struct Adopted(Vec<Allocation>);

impl Adopted {
    pub(super) fn adopt(&mut self, allocation: &Allocation) {
        if !self.0.iter().any(|known| known.is(allocation)) {
            self.0.push(allocation.clone());
        }
    }

    pub(super) fn disown(&mut self, allocation: &Allocation) {
        self.0.retain(|known| !known.is(allocation));
    }

    /// The adopted allocation that contains the range; `ErrorKind::Usage` if none does.
    pub(super) fn find(&self, address: u64, bytes: usize) -> Result<&Allocation> {
        let holds = |allocation: &&Allocation| allocation.contains(address, bytes);
        self.0.iter().find(holds).ok_or_else(|| {
            Error::usage(format!(
                "{bytes} bytes at address {address:#x} are not the slot's own"
            ))
        })
    }
}

/// The leases of a slot's work, by the allocation's address.
#[derive(Default)]
pub(super) struct Leases(BTreeMap<u64, Lease>);

impl Leases {
    /// Whether `allocation` has a read lease, and `access` writes.
    pub(super) fn needs_upgrade(&self, allocation: &Allocation, access: Access) -> bool {
        let held = self.0.get(&allocation.address());
        held.is_some_and(|lease| access.writes() && !lease.writes())
    }

    /// Leases `allocation` until [`Leases::release`].
    pub(super) fn lease(&mut self, allocation: &Allocation, access: Access) -> Result<()> {
        debug_assert!(!self.needs_upgrade(allocation, access), "released before");
        if let Entry::Vacant(vacant) = self.0.entry(allocation.address()) {
            vacant.insert(allocation.lease(access)?);
        }
        Ok(())
    }

    /// Releases all leases.
    pub(super) fn release(&mut self) {
        self.0.clear();
    }

    /// The location of `address` in a leased allocation.
    pub(super) fn locate(&self, address: u64) -> MemoryPlace {
        let (&allocation, _) = self.0.range(..=address).next_back().expect("leased");
        MemoryPlace::Allocation {
            allocation,
            offset: (address - allocation) as usize,
        }
    }

    pub(super) fn bytes(&self, allocation: u64) -> &[u8] {
        self.0[&allocation].shared()
    }

    pub(super) fn bytes_mut(&mut self, allocation: u64) -> &mut [u8] {
        let lease = self.0.get_mut(&allocation);
        lease.expect("leased when it was given").exclusive()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut Lease)> {
        self.0.iter_mut().map(|(&address, lease)| (address, lease))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Layout;
    use crate::record::{DType, Unit, View};

    #[test]
    fn a_slot_takes_what_its_layout_says() {
        let decl = |len| BufferDecl {
            name: "b".to_owned(),
            dtype: DType::U8,
            unit: Unit::PerBatch { elements: len },
            view: View::Upload,
            len,
            is_replaceable: false,
        };
        let buffers = [1, 255, 256, 257, 1000].map(decl);
        let taken: usize = slot_buffers(&buffers)
            .unwrap()
            .iter()
            .map(Storage::room)
            .sum();
        assert_eq!(taken, Layout::new(&buffers).unwrap().device_bytes);
    }

    #[test]
    fn an_allocation_that_is_read_is_given_back_before_it_is_written() {
        let allocation = allocate(AllocationKey::new(), Space::Pinned, 64).unwrap();
        let mut leases = Leases::default();
        leases.lease(&allocation, Access::Read).unwrap();
        assert!(!leases.needs_upgrade(&allocation, Access::Read));
        assert!(leases.needs_upgrade(&allocation, Access::Write));
        assert!(allocation.read().is_ok(), "others may read too");
        leases.release();
        leases.lease(&allocation, Access::Write).unwrap();
        assert!(!leases.needs_upgrade(&allocation, Access::Write));
        assert!(allocation.read().is_err(), "it is the slot's alone");
    }
}
