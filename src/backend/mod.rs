//! *Where*: the contract between the engine and a device.
//!
//! # The ordering contract
//!
//! A [`DeviceSlot`] is one slot's share of a device: its buffers, its queues, and the
//! graphs made for it.
//!
//! 1. A slot has three [`Queue`]s. Operations given to one queue run in the
//!    order they were given, each after the one before is done. With
//!    [`Streams::PerSlot`] the three are one stream, the slot's own, so
//!    everything given to the slot runs in order, and slots run beside each
//!    other. With [`Streams::PerStage`] each queue is a stream that all slots
//!    share; queues run beside each other, and only [`DeviceSlot::join`] orders them.
//! 2. [`DeviceSlot::enqueue`], [`DeviceSlot::launch_graph`], [`DeviceSlot::join`] and
//!    [`DeviceSlot::fence`] return before the work is done. Host memory that the work
//!    reads or writes is not touched until a later [`DeviceSlot::is_done`] says true
//!    or [`DeviceSlot::wait`] returns.
//! 3. [`DeviceSlot::make_graph`] runs nothing and waits for nothing. A backend that captures
//!    keeps CUDA's rules for it: during a capture nothing is allocated or waited for, an
//!    operation that is refused ends the capture, and a capture without operations is an error.
//! 4. A graph runs on the compute queue, with the parameters that it has when it
//!    is launched: an update touches later launches only. Each launch of one
//!    graph is ordered after the one before.
//! 5. Operations address the slot's own buffers, and [`Allocation`]s that the slot
//!    has adopted; any other address is refused. While work that uses an allocation is
//!    in flight the slot holds a [`Lease`] on it. A graph keeps the allocations that
//!    it was made with, whatever happens to the embedder's handles.
//! 6. An error says by its [`ErrorScope`](crate::ErrorScope) what it ended. After one of the
//!    device the slot takes nothing more; dropping it waits for what it can and
//!    frees the rest. Where the device was lost or given up ([`DeviceSlot::abandon`])
//!    nothing of it is waited for, touched or freed any more. After any other error
//!    the slot goes on: a call that failed had no effect, and what was given before
//!    ends as ever. [`DeviceSlot::is_done`] and [`DeviceSlot::wait`] report an error of a batch
//!    once; the next call that succeeds says that nothing of the batch is left.
//! 7. A supervised backend ([`Backend::is_supervised`]) comes back from that by
//!    [`Backend::revive`]: its slots take work again, with their graphs, with what
//!    the host wrote, and with anything at all in memory of the device. Work that
//!    was in flight is gone; a slot tells so when it is next asked about it.

mod allocation;
mod backoff;
mod call_counters;
pub mod cpu;
pub(crate) mod crate_threads;
#[cfg(feature = "cuda")]
pub mod cuda;
mod devices;
pub mod doctor;
mod graphs;
mod ids;
mod layout;
mod op;
mod select;
pub mod sim;
mod storage;
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
pub(crate) use backoff::Backoff;
#[cfg(not(loom))]
pub(crate) use backoff::receive_within;
pub use call_counters::{Call, CallCounters};
pub use devices::{DeviceChoice, DeviceEntry, PcieLink, devices, visible_variable};
pub use ids::{BackendId, DeviceSlotId};
pub use layout::{ALIGN_BYTES, BufferRange, Layout};
pub use op::{GraphSource, Node, Op, Queue};
pub use select::{Choice, CudaOptions, KernelCache, NvrtcLibrary, Selected, select, select_with};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
pub use timestamp::{TIMESTAMPS, Timestamps, host_ns};

/// A kernel that a backend has loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
pub struct FunctionId(pub u32);

/// A graph of a slot. An identifier is never used again in the process, so only code
/// that was given it can name the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GraphId(pub(crate) u64);

impl GraphId {
    /// A name that no graph has yet.
    pub fn unique() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        GraphId(NEXT.fetch_add(1, Relaxed))
    }

    /// The graph of this number, counted from 0 over the process.
    ///
    /// # Safety
    /// The graph is the caller's: with another's, safe code could replace or drop it.
    pub unsafe fn from_number(number: u64) -> Self {
        GraphId(number)
    }
}

/// Which streams the queues of slots are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
pub enum Streams {
    /// One stream for each slot: kernels of different slots overlap.
    #[default]
    PerSlot,
    /// One stream for each queue, shared by all slots.
    PerStage,
}

impl Streams {
    /// Both.
    pub const ALL: &'static [Streams] = &[Streams::PerSlot, Streams::PerStage];

    /// The name in configs and reports.
    pub fn name(self) -> &'static str {
        match self {
            Streams::PerSlot => "per_slot",
            Streams::PerStage => "per_stage",
        }
    }
}

/// The addresses of one buffer in one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// On the device.
    pub device: u64,
    /// On the host, for buffers that the host sees.
    pub host: Option<u64>,
    /// The room on each side.
    pub bytes: usize,
}

/// How a slot came to a graph that does what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
pub enum Built {
    /// Made anew.
    Instantiated,
    /// The graph that there was took the new parameters.
    Updated,
    /// The graph that there was has another topology, and was replaced.
    Reinstantiated {
        /// What the device said, with the node where it differs.
        reason: String,
    },
}

/// The allocation with which a kernel fills a device best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
pub struct Occupancy {
    /// Threads of an allocation, all along x.
    pub block_threads: u32,
    /// How many such allocations the device runs at once, at least 1.
    pub resident_blocks: u32,
}

/// Calls made to a device since it was opened, by what they do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
pub struct DriverCalls {
    /// Allocations of device or pinned memory.
    pub allocations: u64,
    /// Calls that give work or marks to a stream: copies, launches, graph
    /// launches, event records, stream waits.
    pub submissions: u64,
    /// Calls that make, change or drop graphs, captures included.
    pub graph_edits: u64,
    /// Queries of events, and waits for them.
    pub polls: u64,
    /// What timing takes: events with a time that are made, and times that are
    /// asked for. None without timestamps.
    pub timings: u64,
}

/// The error of a timestamp that no slot has.
fn no_timestamp(timestamp: u32) -> Error {
    Error::usage(format!(
        "there is no timestamp {timestamp}; a slot has {TIMESTAMPS}"
    ))
}

/// Host sides of buffers.
pub type HostViews<'a> = ArrayVec<&'a mut [u8], BUFFERS_MAX>;

/// One device.
///
/// # Safety
/// Who implements it vouches that
/// - [`Backend::load`] gives the function of this very declaration and code, and hands
///   the kernel on to nothing that records it;
/// - slots have the buffers that were asked for, and
///   [`DeviceSlotId::backend`] of each is [`Backend::id`];
/// - allocations are as large as asked for.
pub unsafe trait Backend: Send + Sync {
    /// Which backend it is; one that passes calls on to another has the other's id.
    fn id(&self) -> BackendId;

    /// What it is.
    fn device(&self) -> &DeviceInfo;

    /// Makes a kernel ready to launch. The same declaration gives the same
    /// function.
    ///
    /// # Errors
    /// [`ErrorKind::Kernel`] by name, for a kernel
    /// without code or without a twin.
    fn load(&self, kernel: &Kernel) -> Result<FunctionId>;

    /// How a kernel that was loaded as `function` fills the device best. Without a
    /// choice of its own a backend takes the declared block, one a multiprocessor.
    ///
    /// # Errors
    /// [`ErrorKind::Kernel`] where the device runs no allocation
    /// of it, or what the device says.
    fn occupancy(&self, kernel: &Kernel, function: FunctionId) -> Result<Occupancy> {
        let _ = function;
        Ok(Occupancy {
            block_threads: kernel.block.iter().product(),
            resident_blocks: self.device().multiprocessors.max(1),
        })
    }

    /// Takes the memory of `slots` slots with these buffers, one arena on each
    /// side for all of them, and their streams. Buffers start zeroed.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`], or what the
    /// device says.
    fn open_slots(
        &self,
        buffers: &[BufferDecl],
        slots: usize,
        streams: Streams,
    ) -> Result<Vec<Box<dyn DeviceSlot>>>;

    /// Takes an allocation of memory beside the slots' arenas. It starts zeroed.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`], or what the
    /// device says.
    fn allocate(&self, space: Space, bytes: usize) -> Result<Allocation>;

    /// Copies from the host's own memory into an allocation and returns when it is
    /// done.
    ///
    /// # Errors
    /// As [`Backend::copy`].
    fn write(&self, from: &[u8], to: &Allocation, to_offset: usize) -> Result<()>;

    /// Copies out of an allocation into the host's own memory, and returns when it is
    /// done.
    ///
    /// # Errors
    /// As [`Backend::copy`].
    fn read(&self, from: &Allocation, from_offset: usize, to: &mut [u8]) -> Result<()>;

    /// Copies between two allocations of any spaces and returns when it is done.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a range outside its
    /// allocation, for overlapping ranges of one allocation, and for allocations that work in
    /// flight or a guard holds; or what the device says.
    fn copy(
        &self,
        from: &Allocation,
        from_offset: usize,
        to: &Allocation,
        to_offset: usize,
        bytes: usize,
    ) -> Result<()>;

    /// How often the device was called so far.
    fn driver_calls(&self) -> DriverCalls;

    /// Whether [`Backend::revive`] brings a lost device back.
    fn is_supervised(&self) -> bool {
        false
    }

    /// Makes a lost device usable again; whether it had to.
    ///
    /// # Errors
    /// [`ErrorKind::Worker`] if the process that is to hold the device ended while it
    /// started: a further call may succeed. [`ErrorKind::Device`] where a loss is for
    /// good, or what stands in the way.
    fn revive(&self) -> Result<bool> {
        Err(
            Error::new(ErrorKind::Device, "a lost device stays lost to its process")
                .fix("start the program again, or set supervise = true"),
        )
    }
}

/// One slot's share of a device. See the module for the order of things.
///
/// A launch runs device code, so giving one to a slot is `unsafe`:
///
/// ```compile_fail,E0133
/// use tapeloop::backend::{DeviceSlot, Op, Queue};
/// fn give(slot: &mut dyn DeviceSlot, op: &Op) -> tapeloop::Result<()> {
///     slot.enqueue(Queue::Compute, op)
/// }
/// ```
///
/// `replay::Executor` replays checked recordings in safe code.
///
/// # Safety
/// Who implements it vouches that [`DeviceSlot::addresses`] gives each buffer the memory
/// that it has, as large as it says and shared with no other, that the addresses and
/// the id stay the same, that [`DeviceSlot::streams`] and [`DeviceSlot::is_quiet`] are true, and that
/// the order of the module is kept: host memory is given out only while nothing of the
/// slot is in flight.
pub unsafe trait DeviceSlot: Send {
    /// Which slot it is. Graphs mean nothing to another. A slot that passes calls on to
    /// another has the other's id.
    fn id(&self) -> &DeviceSlotId;

    /// What its queues are; `None` if it runs everything in the order in which it was
    /// given, whatever the queue.
    fn streams(&self) -> Option<Streams>;

    /// Whether everything that it was given has been seen done. It asks the device for
    /// nothing.
    fn is_quiet(&self) -> bool;

    /// How many buffers it has.
    fn buffer_count(&self) -> usize;

    /// Where a buffer lies.
    ///
    /// # Panics
    /// If the slot has no such buffer.
    fn addresses(&self, buffer: BufferId) -> Addresses;

    /// The host side of a buffer that the host sees.
    ///
    /// # Panics
    /// If the host does not see the buffer.
    fn host(&self, buffer: BufferId) -> &[u8];

    /// The host sides of several buffers at once, by ascending id.
    ///
    /// # Panics
    /// If the host does not see one of them, or they do not ascend.
    fn host_mut(&mut self, buffers: &[BufferId]) -> HostViews<'_>;

    /// Lets operations of this slot use an allocation of the same backend.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for an allocation of another
    /// backend.
    fn adopt(&mut self, allocation: &Allocation) -> Result<()>;

    /// Takes that back. Graphs that use the allocation keep it.
    fn disown(&mut self, allocation: &Allocation);

    /// Gives an operation to a queue, or to the capture in progress.
    ///
    /// # Safety
    /// The operation is lowered (`replay::lower`) from a checked
    /// recording over bindings of this slot, and the memory that it names lives; or it
    /// is a timestamp; or the caller vouches for it as [`Kernel::code`] has it: with these
    /// arguments the kernel, and those that take what this operation writes, stay
    /// within memory that is the slot's, or adopted by it. A graph that a capture makes
    /// can be launched as long as the slot lives.
    ///
    /// # Errors
    /// What the device says; [`ErrorKind::Usage`] for
    /// an address that is not the slot's, and for an allocation that the host or
    /// another slot holds.
    unsafe fn enqueue(&mut self, queue: Queue, op: &Op) -> Result<()>;

    /// What is given to `later` from now on runs after all that this slot gave
    /// to `earlier`. Without effect where both are one stream.
    ///
    /// # Errors
    /// What the device says.
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

    /// Gives the `node`-th operation of a graph other parameters. It stays of
    /// the same kind.
    ///
    /// # Safety
    /// As [`DeviceSlot::build_graph`], with the graph's other nodes as they are.
    ///
    /// # Errors
    /// What the device says.
    unsafe fn set_params(&mut self, graph: GraphId, node: usize, op: &Op) -> Result<()>;

    /// The operations of a graph as the device holds them since it was made or
    /// last replaced, in the order they were given.
    ///
    /// # Errors
    /// What the device says.
    fn graph_ops(&self, graph: GraphId) -> Result<Vec<Op>>;

    /// Drops a graph. A launch in flight ends undisturbed.
    fn drop_graph(&mut self, graph: GraphId);

    /// Gives a whole graph to the compute queue.
    ///
    /// # Errors
    /// As [`DeviceSlot::enqueue`].
    fn launch_graph(&mut self, graph: GraphId) -> Result<()>;

    /// Marks the end of a batch on the download queue: [`DeviceSlot::is_done`] and
    /// [`DeviceSlot::wait`] speak of everything before the last mark there.
    ///
    /// # Errors
    /// What the device says.
    fn fence(&mut self) -> Result<()>;

    /// Whether everything before the last mark is done.
    ///
    /// # Errors
    /// What went wrong on the device since.
    fn is_done(&mut self) -> Result<bool>;

    /// Returns once everything before the last mark is done.
    ///
    /// # Errors
    /// What went wrong on the device since.
    fn wait(&mut self) -> Result<()>;

    /// As [`DeviceSlot::wait`], for `timeout` at the most; whether it is done.
    ///
    /// # Errors
    /// As [`DeviceSlot::wait`].
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

    /// Gives the device up, as it does not come to an end with its work: from here
    /// on every call to any of its slots fails with `error`, and nothing of it is
    /// waited for, touched or freed.
    fn abandon(&mut self, error: &Error);

    /// When the device last came to each [`Op::Timestamp`] of this slot, of those that
    /// are seen done.
    ///
    /// # Errors
    /// What the device says.
    fn timestamps(&self) -> Result<Timestamps>;
}
