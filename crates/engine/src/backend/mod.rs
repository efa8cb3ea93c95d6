//! *Where*: the devices, and how to choose one.
//!
//! A [`Backend`] is one open device: a GPU (`cuda`), the CPU ([`cpu`]), one in another process
//! (`worker`), or a simulated one for tests (the crate `tapeloop-sim`). [`select()`] opens one. Who
//! writes a backend keeps the [`contract`].

pub(crate) mod allocation;
mod backoff;
mod call_counters;
mod compilation;
pub mod contract;
pub mod cpu;
pub(crate) mod crate_threads;
#[cfg(feature = "cuda")]
pub mod cuda;
mod cuda_options;
pub(crate) mod devices;
pub mod doctor;
pub(crate) mod doorbell;
pub(crate) mod edges;
mod external_event;
pub(crate) mod fork;
pub(crate) mod graphs;
mod ids;
mod layout;
pub(crate) mod loops;
mod op;
mod priority;
pub(crate) mod refusals;
mod select;
pub(crate) mod storage;
pub(crate) mod timestamp;
pub(crate) mod twin_launch;
#[cfg(any(feature = "cuda", test))]
mod visible_devices;
#[cfg(all(feature = "supervise", target_os = "linux"))]
pub mod worker;

use crate::error::{Error, ErrorKind, Result};
pub use crate::record::device_info::DeviceInfo;
use crate::record::{BufferDecl, Image, Kernel};

pub use allocation::{Allocation, AllocationView, Space};
pub(crate) use backoff::{Backoff, HANDED_OVER_BYTES_MIN, receive_helping};
#[cfg(not(loom))]
pub(crate) use backoff::{help_until, receive_within};
pub use compilation::Compilation;
pub(crate) use contract::{
    ALIGN_BYTES, Addresses, AllocationKey, BackendId, Built, Call, CallCounters, DeviceSlot,
    DeviceSlotId, FunctionId, GraphId, GraphSource, HostViews, Layout, Lease, Node, Occupancy, Op,
    Priority, Region, TIMESTAMPS, Timestamps, host_ns,
};
pub use cuda_options::{CudaOptions, KernelCache, NvrtcLibrary};
pub(crate) use devices::device_names;
pub use devices::{DeviceChoice, DeviceEntry, DeviceSet, PcieLink, visible_variable};
pub use external_event::ExternalEvent;
pub(crate) use external_event::{no_events, no_stream};
pub use loops::Residency;
/// The pool of threads of the crate `rayon`, in which batches are copied, and computed on the CPU.
pub use rayon::{ThreadPool, ThreadPoolBuilder};
pub(crate) use refusals::no_timestamp;
pub use select::{Choice, Selected, device_options, devices, select, select_all, select_with};
use std::any::Any;
use std::sync::Arc;
pub(crate) use storage::Storage;
pub(crate) use twin_launch::runs_twin;

/// Numbers of driver calls since the device was opened, by purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct DriverCalls {
    /// Allocations of device or pinned memory.
    pub allocations: u64,
    /// Calls that give work to a stream: copies, launches, graph launches, event records, stream
    /// waits.
    pub submissions: u64,
    /// Calls that make, change or drop graphs, captures included.
    pub graph_edits: u64,
    /// Queries of events, and waits for them.
    pub polls: u64,
    /// Calls for timestamps: events that are created, and times that are read.
    pub timings: u64,
}

/// The contents of memory: [`Backend::allocate_filled`] copies them, and a supervised device keeps
/// them. They stay the same, and their code (`as_ref` and `Drop`) does not use the device.
pub type Contents = dyn AsRef<[u8]> + Send + Sync;

/// One open device.
///
/// Every method that returns a `Result` may fail with the kinds that the [contract](contract#errors) lists.
///
/// # Safety
/// An implementation must ensure that
/// - [`Backend::load`] returns the function of this very declaration and code, and passes the
///   kernel on to nothing that records it;
/// - slots have the buffers that were asked for, and [`DeviceSlotId::backend`] of each is
///   [`Backend::id`];
/// - allocations are as large as asked for.
///
/// # Examples
/// ```
/// # fn main() -> tapeloop_engine::Result<()> {
/// use std::sync::Arc;
/// use tapeloop_engine::backend::{Choice, ThreadPoolBuilder, select};
///
/// let pool = Arc::new(ThreadPoolBuilder::new().build().expect("threads"));
/// let selected = select(Choice::Cpu, &pool)?;
/// let device = selected.backend.device();
/// println!("{} ({})", device.name, selected.reason);
/// assert_eq!(device.backend, "cpu");
/// # Ok(())
/// # }
/// ```
pub unsafe trait Backend: Send + Sync {
    /// The backend's identity; a backend that passes calls on to another has the other's.
    fn id(&self) -> BackendId;

    /// The device.
    fn device(&self) -> &DeviceInfo;

    /// Makes a kernel ready to launch. The same declaration gives the same function. The backend keeps
    /// what it has loaded, the closure of [`Kernel::twin_closure`] too, until it is dropped: a program that
    /// makes engines again and again does it with clones of the same kernels.
    ///
    /// # Errors
    /// [`ErrorKind::Kernel`], with the name, for a kernel without code for this device or without
    /// a CPU twin, and for code that cannot be compiled or differs from the declaration.
    fn load(&self, kernel: &Kernel) -> Result<FunctionId>;

    /// Compiles the sources among these images, several at a time, so that [`Backend::load`] finds
    /// them compiled. The default does nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Kernel`] for the first source that does not compile, once all others are compiled;
    /// [`ErrorKind::Unavailable`] without NVRTC. `load` reports both too, with the kernel's name.
    fn prepare(&self, images: &[Arc<Image>]) -> Result<()> {
        let _ = images;
        Ok(())
    }

    /// What the backend compiled so far. The default compiles nothing.
    fn compilation(&self) -> Compilation {
        Compilation::default()
    }

    /// The block size with which a kernel that was loaded as `function` fills the device best.
    /// The default is the declared block, and one such block for each multiprocessor.
    ///
    /// # Errors
    /// [`ErrorKind::Kernel`] if the device cannot run a block of the kernel.
    fn occupancy(&self, kernel: &Kernel, function: FunctionId) -> Result<Occupancy> {
        let _ = function;
        Ok(Occupancy {
            block_threads: kernel.block.iter().product(),
            resident_blocks: self.device().multiprocessors.max(1),
        })
    }

    /// Opens `slots` slots with these buffers, and a stream of this priority for each. The memory of
    /// all slots is one arena on the device and one on the host. Buffers start zeroed.
    ///
    /// A device without priorities opens the same slots for each.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`] if the arenas do not fit.
    fn open_slots(
        &self,
        buffers: &[BufferDecl],
        slots: usize,
        priority: Priority,
    ) -> Result<Vec<Box<dyn DeviceSlot>>>;

    /// Takes an allocation of `bytes` bytes, apart from the slots' arenas. It starts zeroed.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`]; [`ErrorKind::Unavailable`] for a supervised device, which has
    /// [`Backend::allocate_filled`] alone.
    fn allocate(&self, space: Space, bytes: usize) -> Result<Allocation>;

    /// Takes an allocation of device memory with these contents, such as a table or weights.
    ///
    /// A supervised device keeps the contents, and restores them in [`Backend::revive`], so its
    /// work may only read the memory ([`Allocation::read_only`]).
    ///
    /// # Errors
    /// The errors of [`Backend::allocate`] and [`Backend::write`], but a supervised device takes
    /// them.
    fn allocate_filled(&self, contents: &Arc<Contents>) -> Result<Allocation> {
        let contents = (**contents).as_ref();
        let memory = self.allocate(Space::Device, contents.len())?;
        self.write(contents, &memory, 0)?;
        Ok(memory)
    }

    /// Copies other contents of the same size to an allocation of [`Backend::allocate_filled`] that no work in
    /// flight uses, and returns when the copy is done. A supervised device keeps these contents from then on.
    /// One that is lost gets them when it is restarted, and this succeeds.
    ///
    /// # Errors
    /// The errors of [`Backend::write`], but a supervised device takes the contents.
    /// [`ErrorKind::Usage`] for contents of another size.
    fn refill(&self, memory: &Allocation, contents: &Arc<Contents>) -> Result<()> {
        let contents = (**contents).as_ref();
        memory.check_size(contents.len())?;
        self.write(contents, memory, 0)
    }

    /// Lends slots device memory that other code allocated, such as an array of another library.
    /// `owner` is dropped with the last handle of the allocation.
    ///
    /// # Safety
    /// Until `owner` is dropped, `bytes` bytes at `address` are memory of this device that kernels
    /// in its primary context can access. While work of a slot uses them, other code does not, but
    /// to read what that work only reads.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] for a device that is no GPU, and for a supervised one.
    unsafe fn borrow(
        &self,
        address: u64,
        bytes: usize,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Result<Allocation> {
        let _ = (address, bytes, owner);
        let error = Error::new(ErrorKind::Unavailable, "the device has no memory to borrow");
        Err(error.fix("use a GPU in this process, without supervision"))
    }

    /// Copies from the host's own memory into an allocation, and returns when the copy is done.
    ///
    /// # Errors
    /// The errors of [`Backend::copy`].
    fn write(&self, from: &[u8], to: &Allocation, to_offset: usize) -> Result<()>;

    /// Copies from an allocation into the host's own memory, and returns when the copy is done.
    ///
    /// # Errors
    /// The errors of [`Backend::copy`].
    fn read(&self, from: &Allocation, from_offset: usize, to: &mut [u8]) -> Result<()>;

    /// Copies `bytes` bytes between two allocations of any spaces, and returns when the copy is
    /// done.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a range outside of its allocation, for ranges of one allocation
    /// that overlap, for an allocation of another backend, and for one that work in flight or a
    /// guard holds; [`ErrorKind::Unavailable`] for a supervised device.
    fn copy(
        &self,
        from: &Allocation,
        from_offset: usize,
        to: &Allocation,
        to_offset: usize,
        bytes: usize,
    ) -> Result<()>;

    /// How often the driver was called.
    fn driver_calls(&self) -> DriverCalls;

    /// Whether small batches are computed by the thread that asks whether they are done. Then a
    /// thread that waits for a result computes it, and waits for no other thread.
    fn computes_when_asked(&self) -> bool {
        false
    }

    /// Whether [`Backend::revive`] can restart a lost device.
    fn is_supervised(&self) -> bool {
        false
    }

    /// Restarts a lost device, so that its slots take work again. Returns whether it was lost.
    ///
    /// # Errors
    /// [`ErrorKind::Worker`] if the process that is to hold the device ended while it started:
    /// a further call may succeed. [`ErrorKind::Device`] if the loss is permanent, or the error
    /// that prevents the restart.
    fn revive(&self) -> Result<bool> {
        Err(Error::new(
            ErrorKind::Device,
            "the device is lost, and this process cannot use it again",
        )
        .fix("start the program again, or set supervise = true"))
    }
}
