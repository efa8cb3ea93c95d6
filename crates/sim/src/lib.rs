//! A simulated device. A seed chooses the order in which work runs, within the freedom of a GPU,
//! and every rule for programs is checked.
//!
//! Kernels run as their CPU twins. Work takes effect after its submission, in parts, at moments and
//! in an interleaving that the seed chooses; there are no threads. The same calls in the same order
//! have the same effects.
//!
//! Violations do not depend on luck. Vector clocks over byte ranges are compared when work is
//! submitted: each access must be ordered after every earlier conflicting one, by a stream, an
//! edge of a graph, or because the host has seen the earlier one done. So a missing wait is a
//! [`Violation`] on every seed. A test runs its program on several seeds and expects
//! [`SimBackend::violations`] and [`SimBackend::live`] to be empty:
//!
//! ```
//! use std::sync::Arc;
//! use tapeloop_engine::Backend;
//! use tapeloop_sim::{Live, SimBackend, SimOptions};
//!
//! for seed in 0..100 {
//!     let device = Arc::new(SimBackend::new(SimOptions::seeded(seed)));
//!     let backend: Arc<dyn Backend> = device.clone();
//!     // ... an Engine on `backend`, its results compared, and dropped ...
//!     assert_eq!(device.violations(), []);
//!     assert_eq!(device.live(), Live::default());
//! }
//! ```
//!
//! It models no time, no caches and no atomics: a kernel is one operation, and two kernels that
//! access a buffer at the same time are a violation. A timestamp is the number of steps of the
//! device so far.

mod access;
mod clock;
mod device;
mod device_slot;
mod fault;
mod graph;
mod host_views;
mod loops;
mod memory;
mod random;
mod resident;
mod resolve;
mod schedule;
mod slot_state;
mod violation;

use device::SimDevice;
pub use device::SimOptions;
use device_slot::{SimShared, SimSlot};
pub use fault::{Fault, LoopMistake};
use host_views::Views;
use memory::{AllocationRegion, Graveyard, SimMemory};
use parking_lot::{Mutex, MutexGuard};
use slot_state::SlotState;
use std::ops::Range;
use std::sync::Arc;
use tapeloop_engine::backend::contract::{
    Addresses, AllocationKey, BackendId, Call, CallCounters, DeviceSlot, FunctionId, Layout, Lease,
    Priority,
};
use tapeloop_engine::backend::{Allocation, Backend, Contents, DeviceInfo, DriverCalls, Space};
use tapeloop_engine::error::Result;
use tapeloop_engine::internal::Functions;
use tapeloop_engine::internal::no_allocations;
use tapeloop_engine::record::{Access, BufferDecl, Kernel, Unit, View};
pub use violation::{Accessed, Violation, ViolationKind};

/// The resources of a device that are in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Live {
    /// Open slots.
    pub slots: usize,
    /// Allocations, and sides of slots' buffers.
    pub allocations: usize,
    /// Graphs of open slots.
    pub graphs: usize,
    /// Captures in progress.
    pub captures: usize,
    /// Leases of slots for work in flight.
    pub leases: usize,
    /// Submitted work that is not done; 0 once the device is lost.
    pub work: usize,
    /// Loops of resident graphs.
    pub loops: usize,
}

/// A simulated device.
pub struct SimBackend {
    info: DeviceInfo,
    shared: Arc<SimShared>,
}

impl SimBackend {
    /// A device with these settings.
    pub fn new(options: SimOptions) -> Self {
        let functions = Arc::new(Functions::default());
        let calls = Arc::new(CallCounters::default());
        let graveyard = Graveyard::default();
        let device = SimDevice::new(
            options,
            Arc::clone(&functions),
            Arc::clone(&calls),
            Arc::clone(&graveyard),
        );
        let mut info = DeviceInfo::new("sim", "simulated device");
        // As of a small GPU. They bound grids and plans; what is allocated is memory of the host.
        info.multiprocessors = 4;
        info.memory_bytes = 16 << 30;
        SimBackend {
            info,
            shared: Arc::new(SimShared {
                id: BackendId::new(),
                allocation_key: AllocationKey::new(),
                functions,
                calls,
                graveyard,
                loops: Arc::default(),
                device: Mutex::new(device),
            }),
        }
    }

    /// The violations so far.
    pub fn violations(&self) -> Vec<Violation> {
        self.shared.device.lock().violations.clone()
    }

    /// The resources in use.
    pub fn live(&self) -> Live {
        let mut device = self.shared.device.lock();
        device.bury();
        let slots = device.slots.values();
        let graphs = slots.clone().map(|state| state.graphs.len());
        let captures = slots.clone().filter(|state| state.capture.is_some());
        Live {
            slots: device.slots.len(),
            allocations: device.memory.len(),
            graphs: graphs.sum(),
            captures: captures.count(),
            leases: slots.map(SlotState::leases).sum(),
            work: match device.check_lost() {
                Ok(()) => device.schedule.pending(),
                Err(_) => 0,
            },
            loops: device.loops.len(),
        }
    }

    /// A call of the backend, which a capture of this thread forbids.
    ///
    /// # Errors
    /// The loss of the device; the violation of the capture.
    fn enter(&self, call: &str) -> Result<MutexGuard<'_, SimDevice>> {
        let mut device = self.shared.device.lock();
        device.enter();
        device.check_lost()?;
        device.forbid_in_capture(call)?;
        Ok(device)
    }

    /// Takes memory for an allocation.
    ///
    /// # Errors
    /// Those of [`SimBackend::enter`] and of planned faults;
    /// [`ErrorKind::OutOfMemory`](tapeloop_engine::error::ErrorKind::OutOfMemory) if the host has
    /// no memory.
    fn take(&self, space: Space, bytes: usize) -> Result<Allocation> {
        let mut device = self.enter("an allocation")?;
        device.call(Call::Allocation)?;
        device.plan.count_allocation(bytes).map_or(Ok(()), Err)?;
        let host = match space {
            Space::Pinned => Some(device.memory.fresh(bytes)?),
            Space::Device => None,
        };
        let name = |address: u64| format!("the {} allocation at {address:#x}", space.name());
        let address = device.memory.allocate(bytes, space, None, name)?;
        let region = AllocationRegion {
            address,
            host,
            graveyard: Arc::clone(&self.shared.graveyard),
        };
        let region = Box::new(region);
        Ok(Allocation::new(
            self.shared.allocation_key,
            space,
            address,
            bytes,
            region,
        ))
    }

    /// Refuses what a supervised device does not do, as its worker has no memory of the program's.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`](tapeloop_engine::error::ErrorKind::Unavailable) with supervision.
    fn refuse_supervised(&self) -> Result<()> {
        if self.is_supervised() {
            Err(no_allocations())
        } else {
            Ok(())
        }
    }

    /// Writes bytes into an allocation.
    ///
    /// # Errors
    /// Those of [`SimBackend::turn`].
    fn put(&self, from: &[u8], to: &Allocation, to_offset: usize) -> Result<()> {
        let (mut device, mut lease) = self.turn(to, to_offset, from.len(), Access::Write)?;
        let bytes = match to.space() {
            Space::Pinned => lease.exclusive(),
            Space::Device => device.memory.at_mut(to.address()).bytes.as_mut_slice(),
        };
        bytes[to_offset..to_offset + from.len()].copy_from_slice(from);
        Ok(())
    }

    /// Locks a part of an allocation for the host.
    ///
    /// # Errors
    /// A violation, for an access that is not ordered after earlier work;
    /// [`ErrorKind::Usage`](tapeloop_engine::error::ErrorKind::Usage) for another backend's
    /// allocation, a part outside of it, or one that is in use; those of [`SimBackend::enter`].
    fn turn(
        &self,
        allocation: &Allocation,
        offset: usize,
        bytes: usize,
        access: Access,
    ) -> Result<(MutexGuard<'_, SimDevice>, Lease)> {
        allocation.check_key(self.shared.allocation_key)?;
        allocation.check_range(offset, bytes)?;
        let device = self.enter("a copy that the host waits for")?;
        self.turn_with(
            device,
            allocation,
            offset..offset + bytes,
            allocation.lease(access)?,
        )
    }

    /// Checks an access by the host to an allocation that it has leased. Returns the device,
    /// locked, and the lease.
    fn turn_with<'a>(
        &self,
        mut device: MutexGuard<'a, SimDevice>,
        allocation: &Allocation,
        range: Range<usize>,
        lease: Lease,
    ) -> Result<(MutexGuard<'a, SimDevice>, Lease)> {
        device.host_access(allocation.address(), &range, lease.writes())?;
        Ok((device, lease))
    }
}

// SAFETY: functions are twins, which are safe code, and every slot has the memory that was
// asked for.
unsafe impl Backend for SimBackend {
    fn id(&self) -> BackendId {
        self.shared.id
    }

    fn device(&self) -> &DeviceInfo {
        &self.info
    }

    fn load(&self, kernel: &Kernel) -> Result<FunctionId> {
        self.shared.functions.load(kernel)
    }

    fn open_slots(
        &self,
        buffers: &[BufferDecl],
        slots: usize,
        _: Priority,
    ) -> Result<Vec<Box<dyn DeviceSlot>>> {
        let mut device = self.enter("an allocation")?;
        let (_, sizes) = Layout::for_slots(buffers, slots)?;
        for bytes in sizes {
            device.call(Call::Allocation)?;
            device.plan.count_allocation(bytes).map_or(Ok(()), Err)?;
        }
        let mut opened = Vec::with_capacity(slots);
        for _ in 0..slots {
            let slot = device.open_slot();
            opened.push((slot, device.fill_slot(slot, buffers)));
        }
        if let Some((_, Err(error))) = opened.iter().find(|(_, filled)| filled.is_err()) {
            let error = error.clone();
            opened.iter().for_each(|(slot, _)| device.close(*slot));
            return Err(error);
        }
        let slot = |(slot, views): (u32, Result<Views>)| -> Result<Box<dyn DeviceSlot>> {
            let buffers = device.slot(slot).buffers.clone();
            let shared = Arc::clone(&self.shared);
            Ok(Box::new(SimSlot::new(slot, buffers, views?, shared)))
        };
        opened.into_iter().map(slot).collect()
    }

    fn allocate(&self, space: Space, bytes: usize) -> Result<Allocation> {
        self.refuse_supervised()?;
        self.take(space, bytes)
    }

    fn allocate_filled(&self, contents: &Arc<Contents>) -> Result<Allocation> {
        let bytes = (**contents).as_ref();
        let memory = self.take(Space::Device, bytes.len())?;
        let is_supervised = self.is_supervised();
        if is_supervised {
            // Before the write: another thread may restart the device right after it.
            let kept = Arc::clone(contents);
            let mut device = self.shared.device.lock();
            device.filled.insert(memory.address(), kept);
        }
        self.put(bytes, &memory, 0)?;
        Ok(if is_supervised {
            memory.read_only()
        } else {
            memory
        })
    }

    fn refill(&self, memory: &Allocation, contents: &Arc<Contents>) -> Result<()> {
        let bytes = (**contents).as_ref();
        memory.check_key(self.shared.allocation_key)?;
        memory.check_size(bytes.len())?;
        let keep = |device: &mut SimDevice| {
            device.filled.insert(memory.address(), Arc::clone(contents));
        };
        // Under one lock, as another thread may restart a device that is lost.
        let mut device = self.shared.device.lock();
        device.enter();
        if device.supervised && device.check_lost().is_err() {
            keep(&mut device);
            return Ok(());
        }
        device.check_lost()?;
        device.forbid_in_capture("a copy that the host waits for")?;
        let lease = memory.lease_to_refill()?;
        let (mut device, _lease) = self.turn_with(device, memory, 0..bytes.len(), lease)?;
        device
            .memory
            .at_mut(memory.address())
            .bytes
            .as_mut_slice()
            .copy_from_slice(bytes);
        if device.supervised {
            keep(&mut device);
        }
        Ok(())
    }

    fn write(&self, from: &[u8], to: &Allocation, to_offset: usize) -> Result<()> {
        self.refuse_supervised()?;
        self.put(from, to, to_offset)
    }

    fn read(&self, from: &Allocation, from_offset: usize, to: &mut [u8]) -> Result<()> {
        self.refuse_supervised()?;
        let (device, lease) = self.turn(from, from_offset, to.len(), Access::Read)?;
        let bytes = match from.space() {
            Space::Pinned => lease.shared(),
            Space::Device => device.memory.at(from.address()).bytes.as_slice(),
        };
        to.copy_from_slice(&bytes[from_offset..from_offset + to.len()]);
        Ok(())
    }

    fn copy(
        &self,
        from: &Allocation,
        from_offset: usize,
        to: &Allocation,
        to_offset: usize,
        bytes: usize,
    ) -> Result<()> {
        self.refuse_supervised()?;
        from.check_range(from_offset, bytes)?;
        to.check_key(self.shared.allocation_key)?;
        to.check_range(to_offset, bytes)?;
        if from.is(to) {
            Allocation::check_disjoint(from_offset, to_offset, bytes)?;
        }
        let mut moved = vec![0; bytes];
        self.read(from, from_offset, &mut moved)?;
        self.write(&moved, to, to_offset)
    }

    fn driver_calls(&self) -> DriverCalls {
        self.shared.calls.snapshot()
    }

    fn is_supervised(&self) -> bool {
        self.shared.device.lock().supervised
    }

    fn revive(&self) -> Result<bool> {
        let mut device = self.shared.device.lock();
        if device.supervised {
            device.revive()
        } else {
            device.check_lost().map(|()| false)
        }
    }
}

impl SimDevice {
    fn open_slot(&mut self) -> u32 {
        let slot = self.slots_opened;
        self.slots_opened += 1;
        self.slots
            .insert(slot, SlotState::new(self.schedule.open()));
        slot
    }

    /// Allocates the memory of a slot.
    fn fill_slot(&mut self, slot: u32, buffers: &[BufferDecl]) -> Result<Views> {
        let mut views = Views::default();
        for decl in buffers {
            if !decl.view.is_in_slot() {
                let addresses = Addresses {
                    device: 0,
                    host: None,
                    bytes: 0,
                };
                self.slot(slot).buffers.push(addresses);
                views.push(None);
                continue;
            }
            let bytes = decl.size_bytes();
            let allocate = |memory: &mut SimMemory, space| {
                let name = |_| violation::memory_name(&decl.name, slot, space);
                memory.allocate(bytes, space, Some(slot), name)
            };
            let device = allocate(&mut self.memory, Space::Device)?;
            // A batch may leave a part of an upload or input buffer unwritten, as that of a full batch. A
            // buffer of the batch as a whole has no such parts.
            let is_per_batch = matches!(decl.unit, Unit::PerBatch { .. });
            self.memory.at_mut(device).kernels_read_only_written =
                is_per_batch || !matches!(decl.view, View::Upload | View::DeviceInput);
            let host = match decl.view {
                View::Upload | View::Download => {
                    let host = allocate(&mut self.memory, Space::Pinned)?;
                    Some((host, self.memory.fresh(bytes)?))
                }
                _ => None,
            };
            let addresses = Addresses {
                device,
                host: host.as_ref().map(|(host, _)| *host),
                bytes,
            };
            self.slot(slot).buffers.push(addresses);
            views.push(host);
        }
        Ok(views)
    }
}
