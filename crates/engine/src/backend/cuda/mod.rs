//! The CUDA backend: one device, its primary context, streams and graphs for slots.
//!
//! Most of the crate's unsafe code is here. It follows these rules:
//!
//! - The driver's functions come from one table whose signatures are checked against the bindings
//!   at compile time (`driver`). Types that own a handle also hold its context (`context`).
//! - A slot gives the device only addresses in its own memory (`slot_memory`) and in allocations
//!   that it adopted (`address_checks`). It lends the host side of its memory only while no work is
//!   in flight (`slot_stream`), and leases each allocation that work in flight uses (`allocations`).
//!   Dropping a slot waits first.
//! - A call restores the state of an embedder's thread, and captures of other threads do not
//!   disturb it (`thread_guard`).
//! - After an error that loses the context, nothing on the device is used or freed, only leaked.

mod address_checks;
mod allocations;
mod cache;
mod capture;
mod compile;
mod context;
mod copier;
mod copies;
mod device_loop;
mod device_slot;
mod devices;
mod doctor;
mod driver;
mod element_types;
#[cfg(test)]
mod fake_driver;
#[cfg(test)]
mod fake_loops;
mod format;
mod graph;
mod graph_node;
mod graph_plan;
mod launch_attributes;
mod loop_clock;
mod memory;
mod module;
mod nvrtc;
#[cfg(feature = "nvtx")]
mod nvtx;
mod occupancy;
mod pinned_words;
mod programmatic_launch;
mod readback;
mod resident;
mod result_codes;
mod slot_memory;
mod slot_stream;
mod stream;
mod thread_guard;
mod timestamps;

use super::{
    Allocation, Backend, BackendId, Compilation, CudaOptions, DeviceInfo, DeviceSlot, DriverCalls,
    FunctionId, Layout, Occupancy, Priority, Space,
};
use crate::error::{Error, ErrorKind, Result};
use crate::record::CudaSource;
use crate::record::{BufferDecl, Image, Kernel};
use context::PrimaryContext;
use copier::Copier;
use device_slot::CudaSlot;
pub(super) use devices::{find_uuids, list_devices};
pub(super) use doctor::gpu_findings;
pub(super) use driver::ABSENT_FIX;
use memory::{DeviceMemory, PinnedMemory};
#[cfg(feature = "nvtx")]
pub use nvtx::NvtxLayer;
use slot_memory::SlotMemory;
use slot_stream::SlotStream;
use std::any::Any;
use std::sync::Arc;
use timestamps::{DeviceClock, Timestamps};
/// The crate of the subscribers that [`NvtxLayer`] is a layer of.
#[cfg(feature = "nvtx")]
pub use tracing_subscriber;

/// One CUDA device, by its primary context, which the CUDA runtime uses too.
///
/// Any thread may call it, several at the same time. On an embedder's thread each call restores the
/// current context and the mode of stream captures, and works whatever other threads capture; so
/// does dropping slots and allocations.
pub struct CudaBackend {
    info: DeviceInfo,
    context: Arc<PrimaryContext>,
    functions: Arc<module::LoadedFunctions>,
    copier: Copier,
    clock: Arc<DeviceClock>,
    blocking_wait: bool,
}

impl CudaBackend {
    /// Opens the device that `options` name.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`], with the thing to install or to set.
    pub fn open(options: &CudaOptions) -> Result<CudaBackend> {
        CudaBackend::find(options)?
            .map_err(|absent| Error::new(ErrorKind::Unavailable, absent).fix(ABSENT_FIX))
    }

    /// Opens the device. The inner error says why there is none: no driver library, or no visible
    /// device.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] for a device that cannot be used, with the thing to install or to
    /// set.
    pub fn find(options: &CudaOptions) -> Result<Result<CudaBackend, String>> {
        let device = match devices::find(&options.device)? {
            Ok(device) => device,
            Err(absent) => return Ok(Err(absent)),
        };
        let context = PrimaryContext::retain(device)?;
        let _outer = context.enter();
        let compiler = compile::Compiler::new(options, device.driver.version);
        Ok(Ok(CudaBackend {
            info: device.info(),
            functions: Arc::new(module::LoadedFunctions::new(&context, compiler)),
            copier: Copier::new(&context)?,
            context,
            clock: Arc::default(),
            blocking_wait: options.blocking_wait,
        }))
    }

    fn timestamps(&self) -> Timestamps {
        Timestamps::new(&self.context, &self.clock)
    }

    /// Free and total memory of the device in bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Device`] if the driver call fails.
    pub fn memory_bytes(&self) -> Result<(u64, u64)> {
        self.context.memory_bytes()
    }
}

/// The code of a source for a device of this compute capability, through the user's cache; for tests of
/// sources. Nothing is loaded.
///
/// # Errors
/// [`ErrorKind::Unavailable`] without NVRTC.
#[doc(hidden)]
pub fn compiled(source: &CudaSource, capability: (u32, u32)) -> Result<Vec<u8>> {
    compile::Compiler::new(&CudaOptions::default(), 0).compile(source, capability)
}

impl CudaBackend {
    /// Opens slots with their host sides in `pinned`. [`Layout::for_slots`] has found that the sizes of
    /// all slots fit into the address space.
    fn open_slots_in(
        &self,
        pinned: PinnedMemory,
        layout: Layout,
        slots: usize,
        priority: Priority,
    ) -> Result<Vec<Box<dyn DeviceSlot>>> {
        let device_bytes = layout.device_bytes * slots;
        let device = DeviceMemory::new(&self.context, device_bytes.max(1))?;
        SlotMemory::cut(layout, pinned, device, slots)
            .map(|share| -> Result<Box<dyn DeviceSlot>> {
                let stream = SlotStream::new(&self.context, priority, self.blocking_wait)?;
                let slot = CudaSlot::open(self.timestamps(), &self.functions, share, stream)?;
                Ok(Box::new(slot))
            })
            .collect()
    }

    /// Like [`Backend::open_slots`], with the host sides of all buffers in `host`, slot by slot, as
    /// their [`Layout`] has them.
    ///
    /// # Errors
    /// The errors of [`Backend::open_slots`]; [`ErrorKind::Unavailable`] if the device cannot use
    /// registered host memory by the host's addresses.
    #[cfg(all(feature = "supervise", target_os = "linux"))]
    pub(super) fn open_slots_over(
        &self,
        buffers: &[BufferDecl],
        slots: usize,
        priority: Priority,
        host: super::worker::Arena,
    ) -> Result<Vec<Box<dyn DeviceSlot>>> {
        let _outer = self.context.enter();
        let pinned = PinnedMemory::registered(&self.context, host)?;
        let (layout, _) = Layout::for_slots(buffers, slots)?;
        self.open_slots_in(pinned, layout, slots, priority)
    }
}

// SAFETY: functions are found by the image and the name of the declaration, and every slot
// has a part of the arenas that the layout of its buffers gives.
unsafe impl Backend for CudaBackend {
    fn id(&self) -> BackendId {
        self.context.id
    }

    fn device(&self) -> &DeviceInfo {
        &self.info
    }

    fn load(&self, kernel: &Kernel) -> Result<FunctionId> {
        element_types::check(kernel, &self.info)?;
        let _outer = self.context.enter();
        self.functions.load(kernel)
    }

    fn prepare(&self, images: &[Arc<Image>]) -> Result<()> {
        let _outer = self.context.enter();
        self.functions.prepare(images)
    }

    fn compilation(&self) -> Compilation {
        self.functions.compilation()
    }

    fn occupancy(&self, kernel: &Kernel, function: FunctionId) -> Result<Occupancy> {
        let function = self.functions.get(function)?;
        let _outer = self.context.enter();
        occupancy::occupancy(&self.context, &function, kernel.shared_bytes)
    }

    fn open_slots(
        &self,
        buffers: &[BufferDecl],
        slots: usize,
        priority: Priority,
    ) -> Result<Vec<Box<dyn DeviceSlot>>> {
        let (layout, [_, host_bytes]) = Layout::for_slots(buffers, slots)?;
        let _outer = self.context.enter();
        // The driver refuses allocations of 0 bytes.
        let pinned = PinnedMemory::zeroed(&self.context, host_bytes.max(1))?;
        self.open_slots_in(pinned, layout, slots, priority)
    }

    fn allocate(&self, space: Space, bytes: usize) -> Result<Allocation> {
        let _outer = self.context.enter();
        self.copier.allocate(space, bytes)
    }

    unsafe fn borrow(
        &self,
        address: u64,
        bytes: usize,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Result<Allocation> {
        Ok(self.copier.borrow(address, bytes, owner))
    }

    fn write(&self, from: &[u8], to: &Allocation, to_offset: usize) -> Result<()> {
        let _outer = self.context.enter();
        self.copier.write(from, to, to_offset)
    }

    fn read(&self, from: &Allocation, from_offset: usize, to: &mut [u8]) -> Result<()> {
        let _outer = self.context.enter();
        self.copier.read(from, from_offset, to)
    }

    fn copy(
        &self,
        from: &Allocation,
        from_offset: usize,
        to: &Allocation,
        to_offset: usize,
        bytes: usize,
    ) -> Result<()> {
        let _outer = self.context.enter();
        self.copier.copy(from, from_offset, to, to_offset, bytes)
    }

    fn driver_calls(&self) -> DriverCalls {
        self.context.calls.snapshot()
    }
}
