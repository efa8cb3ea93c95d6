//! *Where*: the contract between the engine and a device.
//!
//! A [`Backend`] is one open device. A [`DeviceSlot`] is one slot's share of it: buffers, queues,
//! and the graphs that were made for the slot.
//!
//! # Order of work
//!
//! 1. A slot has three [`Queue`]s. Operations of one queue run in the order in which they were
//!    given. With [`Streams::PerSlot`] the three queues are one stream of the slot: all its work
//!    runs in order, and slots run at the same time. With [`Streams::PerStage`] each queue is a
//!    stream that all slots share: queues run at the same time, and only [`DeviceSlot::join`]
//!    orders them.
//! 2. [`DeviceSlot::enqueue`], [`DeviceSlot::launch_graph`], [`DeviceSlot::join`] and
//!    [`DeviceSlot::fence`] return before the work is done. The host must not touch memory that
//!    the work uses until [`DeviceSlot::is_done`] returns true or [`DeviceSlot::wait`] returns.
//! 3. [`DeviceSlot::make_graph`] runs nothing and waits for nothing. A backend that captures
//!    keeps CUDA's rules: during a capture nothing is allocated or waited for, and an operation
//!    that is refused ends the capture.
//! 4. A graph runs on the compute queue with the parameters that it has at its launch; an update
//!    changes later launches only. Launches of one graph run one after the other.
//! 5. Operations use the slot's own buffers, and [`Allocation`]s that the slot has adopted; a
//!    slot refuses any other address. While work that uses an allocation is in flight the slot
//!    holds a [`Lease`] on it. A graph keeps its allocations alive, even if the embedder drops
//!    all handles.
//!
//! # Errors
//!
//! Methods of a backend or a slot return these kinds, besides those that they list:
//!
//! - [`ErrorKind::Device`]: a call of the driver failed, or work on the device did. The error has
//!   the driver's code ([`Error::code`]).
//! - [`ErrorKind::OutOfMemory`]: the driver has no memory left for the call.
//! - [`ErrorKind::Deadline`]: the slot was given up ([`DeviceSlot::abandon`]) with this error.
//! - [`ErrorKind::Worker`]: the process of a supervised device ended for a reason outside of its
//!   work.
//!
//! [`Error::scope`] tells what an error ended. After an error of the device
//! ([`ErrorScope::Device`](crate::ErrorScope::Device)) the slot takes no more work, and dropping
//! it waits for what it can and frees the rest; if the device was lost or given up, nothing is
//! waited for, touched or freed any more. After any other error the slot goes on: the failed call
//! had no effect, and earlier work ends as usual. [`DeviceSlot::is_done`] and
//! [`DeviceSlot::wait`] report the error of a batch once; the next success means that all of the
//! batch's work is over.
//!
//! A supervised backend ([`Backend::is_supervised`]) recovers by [`Backend::revive`]: its slots
//! take work again, with their graphs and with what the host wrote. Device memory then has
//! unspecified contents, work that was in flight is lost, and a slot reports that loss when it is
//! next asked about its work.

mod allocation;
mod backoff;
mod call_counters;
pub mod cpu;
pub(crate) mod crate_threads;
#[cfg(feature = "cuda")]
pub mod cuda;
mod cuda_options;
mod devices;
pub mod doctor;
mod doorbell;
pub(crate) mod edges;
mod graphs;
mod ids;
mod layout;
mod loop_clock;
mod loop_words;
mod loops;
mod op;
mod select;
pub mod sim;
mod storage;
mod streams;
mod timestamp;
mod twin_launch;
#[cfg(any(feature = "cuda", test))]
mod visible_devices;
#[cfg(all(feature = "supervise", target_os = "linux"))]
pub mod worker;

use crate::error::{Error, ErrorKind, Result};
pub use crate::record::DeviceInfo;
use crate::record::{BUFFERS_MAX, BufferDecl, BufferId, Kernel};

pub use allocation::{
    Allocation, AllocationKey, AllocationView, Lease, ReadGuard, Region, Space, WriteGuard,
};
use arrayvec::ArrayVec;
pub(crate) use backoff::{Backoff, receive_helping};
#[cfg(not(loom))]
pub(crate) use backoff::{help_until, receive_within};
pub use call_counters::{Call, CallCounters};
pub use cuda_options::{CudaOptions, KernelCache, NvrtcLibrary};
pub(crate) use devices::device_names;
pub use devices::{DeviceChoice, DeviceEntry, DeviceSet, PcieLink, visible_variable};
pub use ids::{BackendId, DeviceSlotId, FunctionId, GraphId};
pub use layout::{ALIGN_BYTES, BufferRange, Layout};
pub use loops::Residency;
pub use op::{GraphSource, Node, Op, Queue};
pub use select::{Choice, Selected, device_options, devices, select, select_all, select_with};
use std::any::Any;
use std::time::{Duration, Instant};
#[cfg(any(feature = "cuda", all(feature = "supervise", target_os = "linux")))]
pub(crate) use streams::Priority;
pub use streams::Streams;
pub(crate) use timestamp::of_whole_batch;
pub use timestamp::{TIMESTAMPS, Timestamps, host_ns};

/// The addresses and the size of one buffer in one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The address on the device.
    pub device: u64,
    /// The address on the host; `None` for a buffer without a host side.
    pub host: Option<u64>,
    /// The size of each side in bytes.
    pub bytes: usize,
}

/// How [`DeviceSlot::make_graph`] made a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
pub enum Built {
    /// It is new.
    Instantiated,
    /// The existing graph took the new parameters.
    Updated,
    /// The existing graph has another topology, and was replaced.
    Reinstantiated {
        /// The device's reason, with the node that differs.
        reason: String,
    },
}

/// The block size with which a kernel fills a device best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
pub struct Occupancy {
    /// Threads of a block, all along x.
    pub block_threads: u32,
    /// How many such blocks the device runs at once; at least 1.
    pub resident_blocks: u32,
}

/// Numbers of driver calls since the device was opened, by purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
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

/// The error for a timestamp that slots do not have.
fn no_timestamp(timestamp: u32) -> Error {
    Error::usage(format!(
        "there is no timestamp {timestamp}; a slot has {TIMESTAMPS}"
    ))
}

/// Host sides of buffers.
pub type HostViews<'a> = ArrayVec<&'a mut [u8], BUFFERS_MAX>;

/// One open device.
///
/// Every method that returns a `Result` may fail with the kinds that the [module](self) lists.
///
/// # Safety
/// An implementation must ensure that
/// - [`Backend::load`] returns the function of this very declaration and code, and passes the
///   kernel on to nothing that records it;
/// - slots have the buffers that were asked for, and [`DeviceSlotId::backend`] of each is
///   [`Backend::id`];
/// - allocations are as large as asked for.
pub unsafe trait Backend: Send + Sync {
    /// The backend's identity; a backend that passes calls on to another has the other's.
    fn id(&self) -> BackendId;

    /// The device.
    fn device(&self) -> &DeviceInfo;

    /// Makes a kernel ready to launch. The same declaration gives the same function.
    ///
    /// # Errors
    /// [`ErrorKind::Kernel`], with the name, for a kernel without code for this device or without
    /// a CPU twin, and for code that cannot be compiled or differs from the declaration.
    fn load(&self, kernel: &Kernel) -> Result<FunctionId>;

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

    /// Opens `slots` slots with these buffers, and the streams for them. The memory of all slots
    /// is one arena on the device and one on the host. Buffers start zeroed.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`] if the arenas do not fit.
    fn open_slots(
        &self,
        buffers: &[BufferDecl],
        slots: usize,
        streams: Streams,
    ) -> Result<Vec<Box<dyn DeviceSlot>>>;

    /// Opens slots as [`Backend::open_slots`] does, with the highest priority of the device: when
    /// a part of the device becomes free, thread blocks of their kernels start before those of other
    /// slots. What runs already is not interrupted. [`DeviceSlot::make_resident`] refuses their graphs.
    ///
    /// The default opens slots without a priority, for devices that have none.
    ///
    /// # Errors
    /// Those of [`Backend::open_slots`].
    fn open_urgent_slots(
        &self,
        buffers: &[BufferDecl],
        slots: usize,
        streams: Streams,
    ) -> Result<Vec<Box<dyn DeviceSlot>>> {
        self.open_slots(buffers, slots, streams)
    }

    /// Takes an allocation of `bytes` bytes, apart from the slots' arenas. It starts zeroed.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`]; [`ErrorKind::Unavailable`] for a supervised device.
    fn allocate(&self, space: Space, bytes: usize) -> Result<Allocation>;

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
    /// As [`Backend::copy`].
    fn write(&self, from: &[u8], to: &Allocation, to_offset: usize) -> Result<()>;

    /// Copies from an allocation into the host's own memory, and returns when the copy is done.
    ///
    /// # Errors
    /// As [`Backend::copy`].
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

    /// Makes a lost device usable again. Returns whether it was lost.
    ///
    /// # Errors
    /// [`ErrorKind::Worker`] if the process that is to hold the device ended while it started:
    /// a further call may succeed. [`ErrorKind::Device`] if the loss is permanent, or the error
    /// that prevents the restart.
    fn revive(&self) -> Result<bool> {
        Err(
            Error::new(ErrorKind::Device, "a lost device stays lost to its process")
                .fix("start the program again, or set supervise = true"),
        )
    }
}

/// One slot's share of a device. Several threads may read its host memory at once.
///
/// Every method that returns a `Result` may fail with the kinds that the [module](self) lists.
///
/// A launch runs device code, so giving one to a slot is `unsafe`:
///
/// ```compile_fail,E0133
/// use tapeloop::backend::{DeviceSlot, Op, Queue};
/// fn launch(slot: &mut dyn DeviceSlot, op: &Op) -> tapeloop::Result<()> {
///     slot.enqueue(Queue::Compute, op)
/// }
/// ```
///
/// `replay::Executor` replays checked recordings in safe code.
///
/// # Safety
/// An implementation must ensure that
/// - [`DeviceSlot::addresses`] returns the memory that the buffer has, as large as stated and
///   shared with no other buffer, and that addresses and identity never change;
/// - [`DeviceSlot::streams`] and [`DeviceSlot::is_quiet`] are true;
/// - the order of the [module](self) is kept: host memory is lent only while no work of the slot
///   is in flight.
pub unsafe trait DeviceSlot: Send + Sync {
    /// The slot's identity; a slot that passes calls on to another has the other's. Graphs belong
    /// to one slot.
    fn id(&self) -> &DeviceSlotId;

    /// The streams of its queues; `None` if it runs all work in the order in which it was given,
    /// whatever the queue.
    fn streams(&self) -> Option<Streams>;

    /// The driver's handle of the CUDA stream that has all work of the slot, so that other libraries
    /// can order their work before it. `None` for a device that is no GPU, for a supervised one,
    /// and with [`Streams::PerStage`]. Batches of a loop ([`DeviceSlot::make_resident`]) are not in
    /// it.
    fn stream(&self) -> Option<u64> {
        None
    }

    /// Whether the host has seen all work done. It makes no call to the device.
    fn is_quiet(&self) -> bool;

    /// How many buffers it has.
    fn buffer_count(&self) -> usize;

    /// The addresses of a buffer.
    ///
    /// # Panics
    /// If the slot has no such buffer.
    fn addresses(&self, buffer: BufferId) -> Addresses;

    /// The host side of a buffer.
    ///
    /// # Panics
    /// If the buffer has none, or work is in flight.
    fn host(&self, buffer: BufferId) -> &[u8];

    /// The host sides of several buffers, given by ascending id.
    ///
    /// # Panics
    /// If a buffer has no host side, the ids do not ascend, or work is in flight.
    fn host_mut(&mut self, buffers: &[BufferId]) -> HostViews<'_>;

    /// Lets operations of this slot use an allocation.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for an allocation of another backend.
    fn adopt(&mut self, allocation: &Allocation) -> Result<()>;

    /// Takes back [`DeviceSlot::adopt`]. Graphs that use the allocation keep it.
    fn disown(&mut self, allocation: &Allocation);

    /// Gives an operation to a queue.
    ///
    /// # Safety
    /// One of these holds:
    /// - the operation is lowered (`replay::lower`) from a checked recording over bindings of
    ///   this slot, and the memory that it names lives;
    /// - it is a timestamp;
    /// - the caller answers for it as for [`Kernel::code`]: with these arguments the kernel, and
    ///   those that read what this operation writes, stay within memory of the slot or of
    ///   allocations that it adopted.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for an address that is not the slot's, for a function or timestamp
    /// that does not exist, and for an allocation that the host or another slot holds;
    /// [`ErrorKind::Kernel`] if a kernel's CPU twin panics, reported by the wait.
    unsafe fn enqueue(&mut self, queue: Queue, op: &Op) -> Result<()>;

    /// Makes work that `later` gets from now on wait for all work that this slot gave to
    /// `earlier`. It has no effect if both queues are one stream.
    ///
    /// # Errors
    /// Those of the [module](self).
    fn join(&mut self, earlier: Queue, later: Queue) -> Result<()>;

    /// Makes a graph, or gives the operations' parameters to the graph `into`, which must have
    /// been made in the same way, captured or explicit. Nothing of it runs yet.
    ///
    /// Where `into` has another topology, a new graph takes its place under the same identifier.
    /// After an error [`DeviceSlot::launch_graph`] still takes `into`, but it may hold some of
    /// the new parameters if the error came from the driver ([`Error::code`]).
    ///
    /// # Safety
    /// As [`DeviceSlot::enqueue`], for each operation and for as long as the graph exists; in
    /// [`GraphSource::Explicit`] a node that uses what another writes runs after it.
    ///
    /// # Errors
    /// As [`DeviceSlot::enqueue`], with the operation; [`ErrorKind::Usage`] if
    /// [`GraphSource::check`] refuses the source, for an operation on 0 bytes, and for an `into`
    /// that does not exist or was made in another way; [`ErrorKind::OutOfMemory`].
    unsafe fn make_graph(
        &mut self,
        source: GraphSource<'_>,
        into: Option<GraphId>,
    ) -> Result<(GraphId, Built)>;

    /// Changes the parameters of the `node`-th operation of a graph. The kind of operation stays.
    ///
    /// # Safety
    /// As [`DeviceSlot::make_graph`], together with the graph's other nodes.
    ///
    /// # Errors
    /// As [`DeviceSlot::enqueue`]; [`ErrorKind::Usage`] for a graph or node that does not exist,
    /// and for another kind of operation.
    unsafe fn set_params(&mut self, graph: GraphId, node: usize, op: &Op) -> Result<()>;

    /// The operations of a graph as the device holds them since the graph was made or last
    /// updated as a whole, in the order of its [`GraphSource`].
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a graph that does not exist; [`ErrorKind::Mismatch`] for a graph
    /// with another number of nodes than operations.
    fn graph_ops(&self, graph: GraphId) -> Result<Vec<Op>>;

    /// Drops a graph. A launch in flight runs to its end.
    fn drop_graph(&mut self, graph: GraphId);

    /// Gives a whole graph to the compute queue.
    ///
    /// # Errors
    /// As [`DeviceSlot::enqueue`]; [`ErrorKind::Usage`] for a graph that does not exist.
    fn launch_graph(&mut self, graph: GraphId) -> Result<()>;

    /// Makes a loop on the device replay a graph from now on, so that
    /// [`DeviceSlot::launch_graph`] makes no call to the driver. The graph cannot be changed any
    /// more, only dropped.
    ///
    /// A launch then waits for earlier work of the slot, and later work for the launch. Returns
    /// false, and does nothing, for a device whose launches make no call to a driver.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] for a device that cannot do this, and for more loops than it runs
    /// at once; [`ErrorKind::Usage`] for a graph that does not exist, is resident, or was changed
    /// since it was made, and for a slot with [`Streams::PerStage`]. [`ErrorKind::Unavailable`] for
    /// a slot of [`Backend::open_urgent_slots`] too: a loop has no priority.
    fn make_resident(&mut self, graph: GraphId, residency: Residency) -> Result<bool> {
        let _ = (graph, residency);
        Ok(false)
    }

    /// Sets a fence on the download queue. [`DeviceSlot::is_done`] and [`DeviceSlot::wait`]
    /// report on the work before the last fence.
    ///
    /// # Errors
    /// Those of the [module](self).
    fn fence(&mut self) -> Result<()>;

    /// Whether all work before the last fence is done.
    ///
    /// # Errors
    /// The error of that work: [`ErrorKind::Kernel`] if a CPU twin panicked, or one of the
    /// [module](self).
    fn is_done(&mut self) -> Result<bool>;

    /// Returns when all work before the last fence is done.
    ///
    /// # Errors
    /// As [`DeviceSlot::is_done`].
    fn wait(&mut self) -> Result<()>;

    /// Waits as [`DeviceSlot::wait`], for `timeout` at most. Returns whether the work is done.
    ///
    /// # Errors
    /// As [`DeviceSlot::is_done`].
    fn wait_for(&mut self, timeout: Duration) -> Result<bool> {
        let start = Instant::now();
        let backoff = Backoff::new(start);
        loop {
            if self.is_done()? {
                return Ok(true);
            }
            let now = Instant::now();
            let left = timeout.saturating_sub(now - start);
            if left.is_zero() {
                return Ok(false);
            }
            backoff.wait(now, left);
        }
    }

    /// Marks the device as lost after a missed deadline: from now on every call to any of its
    /// slots fails with `error`, and nothing of it is waited for, touched or freed. Returns the
    /// reason of the loss: `error`, or that of an earlier loss that ended the work too.
    fn abandon(&mut self, error: &Error) -> Error;

    /// When the device last reached each [`Op::Timestamp`] of this slot, among work that was seen
    /// done; after a batch of a loop, twice when it began, and twice when it ended.
    ///
    /// # Errors
    /// Those of the [module](self).
    fn timestamps(&self) -> Result<Timestamps>;
}
