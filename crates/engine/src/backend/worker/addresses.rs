//! Addresses of slots' buffers and of allocations in the engine's process, which stay the same when
//! the worker is restarted.

use crate::backend::allocation::read_only;
use crate::backend::{Addresses, Allocation, DeviceSlot, Layout, Op};
use crate::error::{Error, Result};
use crate::record::{BufferId, Kernel};
use std::collections::BTreeMap;

/// The most slots of a worker. Their addresses are below those of allocations, as is asserted below.
pub(super) const SLOTS_MAX: usize = 1024;
/// The address space of each side of each slot, in bytes: buffers of one side have no more, as Linux
/// gives a process no more addresses unless it asks for them.
const SIDE_BYTES: u64 = 1 << 48;

/// The first address of an allocation. Slots have lower ones.
pub(super) const ALLOCATIONS_START: u64 = 1 << 60;
const _: () = assert!(2 * (SLOTS_MAX as u64 + 1) * SIDE_BYTES <= ALLOCATIONS_START);

/// One of the two addresses of a buffer.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum MemorySide {
    Device,
    Host,
}

/// The first address of a side of a slot. None is below [`SIDE_BYTES`], so that no small number is one.
fn start(slot: u32, side: MemorySide) -> u64 {
    let place = 2 * (u64::from(slot) + 1) + side as u64;
    place * SIDE_BYTES
}

/// The addresses of a slot's buffer.
pub(super) fn addresses(slot: u32, layout: &Layout, buffer: BufferId) -> Addresses {
    let place = &layout.buffers[buffer.index()];
    let address = |side, offset| start(slot, side) + offset as u64;
    Addresses {
        device: address(MemorySide::Device, place.device),
        host: place.host.map(|offset| address(MemorySide::Host, offset)),
        bytes: place.bytes,
    }
}

/// The worker's allocations, by their address in the other process.
#[derive(Default)]
pub(super) struct WorkerAllocations(pub(super) BTreeMap<u64, Allocation>);

impl WorkerAllocations {
    /// The address in the worker; `None` if it is not in an allocation.
    fn real(&self, address: u64) -> Option<u64> {
        let (start, allocation) = self.0.range(..=address).next_back()?;
        let offset = address - start;
        // An empty allocation contains its start address.
        let is_inside = offset < allocation.bytes().max(1) as u64;
        is_inside.then(|| allocation.address() + offset)
    }
}

/// The addresses of one slot in both processes.
pub(super) struct Map {
    slot: u32,
    layout: Layout,
    real: Vec<Addresses>,
}

impl Map {
    pub(super) fn new(slot: u32, layout: Layout, real: &dyn DeviceSlot) -> Map {
        let count = layout.buffers.len() as u16;
        Map {
            slot,
            layout,
            real: (0..count)
                .map(|id| real.addresses(BufferId::of_slot(id)))
                .collect(),
        }
    }

    /// The address in the worker, for work that only reads there or that `writes`.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for an address that is not the slot's own, and
    /// for one in an allocation, which the supervisor fills again, if the work writes there.
    fn real(&self, address: u64, allocations: &WorkerAllocations, writes: bool) -> Result<u64> {
        match allocations.real(address) {
            Some(_) if writes => return Err(read_only()),
            Some(real) => return Ok(real),
            None => {}
        }
        let inside = |side: MemorySide, offset: Option<usize>, bytes: usize, real: Option<u64>| {
            let offset = address.checked_sub(start(self.slot, side) + offset? as u64)?;
            // An empty buffer contains its start address.
            (offset < bytes.max(1) as u64).then(|| real.map(|real| real + offset))?
        };
        let pairs = self.layout.buffers.iter().zip(&self.real);
        let mut found = pairs.filter_map(|(place, real)| {
            inside(
                MemorySide::Device,
                Some(place.device),
                place.bytes,
                Some(real.device),
            )
            .or_else(|| inside(MemorySide::Host, place.host, place.bytes, real.host))
        });
        found.next().ok_or_else(|| {
            Error::usage(format!("address {address:#x} is not the slot's own"))
                .fix("use the slot's buffers")
        })
    }

    /// The operation with the worker's addresses; `kernel` is that of a launch.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for such an address, and for a launch of too
    /// few words.
    pub(super) fn op(
        &self,
        op: &Op,
        kernel: Option<&Kernel>,
        allocations: &WorkerAllocations,
    ) -> Result<Op> {
        let real = |address: u64, writes: bool| self.real(address, allocations, writes);
        let mut op = op.clone();
        match &mut op {
            Op::Upload { host, device, .. } => {
                (*host, *device) = (real(*host, false)?, real(*device, true)?);
            }
            Op::Download { host, device, .. } => {
                (*host, *device) = (real(*host, true)?, real(*device, false)?);
            }
            Op::Copy { from, to, .. } => (*from, *to) = (real(*from, false)?, real(*to, true)?),
            Op::Memset { device, .. } => *device = real(*device, true)?,
            Op::Timestamp { .. } => {}
            Op::Launch { args, .. } => {
                for pointer in kernel.into_iter().flat_map(Kernel::pointers) {
                    let word = args
                        .get_mut(pointer.word)
                        .ok_or_else(too_few_addresses_error)?;
                    *word = real(*word, pointer.access.writes())?;
                }
            }
        }
        Ok(op)
    }
}

fn too_few_addresses_error() -> Error {
    Error::usage("a launch passes fewer words than its kernel takes")
}
