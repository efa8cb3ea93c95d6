//! The contract between the engine and a device, for authors of a [`Backend`].
//!
//! Programs with an engine, a pipeline or a ring need nothing of it: they get a backend from
//! [`select`](super::select()), or open one, and hand it over. Only an executor is driven with the
//! slots themselves. **It is unstable**: any release may change it, also one that keeps the rest of
//! the API. A backend that passes calls on to another one needs nothing more; loading a kernel's code
//! and running its CPU twin are this crate's own.
//!
//! A [`Backend`] is one open device. A [`DeviceSlot`] is one slot's share of it: buffers, a stream, and
//! the graphs that were made for the slot.
//!
//! # Tests for a backend
//!
//! The crate `tapeloop-conformance` has the tests that every backend of tapeloop passes. Its author
//! writes a function that opens the backend; a macro makes a test of each scenario:
//!
//! ```
//! use std::sync::Arc;
//! use tapeloop_engine::backend::{Backend, cpu::CpuBackend};
//!
//! fn on_the_cpu(scenario: tapeloop_conformance::Scenario) {
//!     let backend: Arc<dyn Backend> = Arc::new(CpuBackend::inline());
//!     scenario(&backend);
//! }
//!
//! tapeloop_conformance::tests!(on_the_cpu);
//! ```
//!
//! The crate's documentation lists what each group checks, which parts of the contract are optional,
//! and how the tests find out what a backend offers.
//!
//! # Order of work
//!
//! 1. The work of a slot runs in the order in which it was given, as in a CUDA stream. Slots run at
//!    the same time.
//! 2. [`DeviceSlot::enqueue`], [`DeviceSlot::launch_graph`] and [`DeviceSlot::fence`] return before
//!    the work is done. The host must not touch memory that the work uses until
//!    [`DeviceSlot::is_done`] returns true or [`DeviceSlot::wait`] returns.
//! 3. [`DeviceSlot::make_graph`] runs nothing and waits for nothing. A backend that captures
//!    keeps CUDA's rules: during a capture nothing is allocated or waited for, and an operation
//!    that is refused ends the capture.
//! 4. A graph runs with the parameters that it has at its launch; an update changes later launches
//!    only. Launches of one graph run one after the other.
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
//! unspecified contents, but that of [`Backend::allocate_filled`] has its own again. Work that was
//! in flight is lost, and a slot reports that loss when it is next asked about its work.

#[cfg(doc)]
use super::Backend;
use super::{Allocation, Backoff, ExternalEvent, Residency, no_stream};
#[cfg(doc)]
use crate::error::ErrorKind;
use crate::error::{Error, Result};
#[cfg(doc)]
use crate::record::Kernel;
use crate::record::{BUFFERS_MAX, BufferId};
use arrayvec::ArrayVec;
use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

pub use super::allocation::{AllocationKey, Lease, Region};
pub use super::call_counters::{Call, CallCounters};
pub use super::ids::{BackendId, DeviceSlotId, FunctionId, GraphId};
pub use super::layout::{ALIGN_BYTES, BufferRange, Layout};
pub use super::op::{GraphSource, Node, Op};
pub use super::priority::Priority;
pub use super::timestamp::{TIMESTAMPS, Timestamps, host_ns};
pub use crate::record::struct_arg::{Pointer, WORD_BYTES, pointers_of, words_of};

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

/// Host sides of buffers, which [`DeviceSlot::host_mut`] collects.
#[derive(Debug, Default)]
pub struct HostViews<'a>(ArrayVec<&'a mut [u8], BUFFERS_MAX>);

impl<'a> HostViews<'a> {
    /// Takes the last view out.
    pub fn pop(&mut self) -> Option<&'a mut [u8]> {
        self.0.pop()
    }

    /// Takes a view out; those behind it move up.
    ///
    /// # Panics
    /// If there is no such view.
    pub fn remove(&mut self, index: usize) -> &'a mut [u8] {
        self.0.remove(index)
    }
}

impl<'a> FromIterator<&'a mut [u8]> for HostViews<'a> {
    /// # Panics
    /// If there are more than [`BUFFERS_MAX`].
    fn from_iter<I: IntoIterator<Item = &'a mut [u8]>>(views: I) -> Self {
        HostViews(views.into_iter().collect())
    }
}

impl<'a> Deref for HostViews<'a> {
    type Target = [&'a mut [u8]];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for HostViews<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

/// One slot's share of a device. Several threads may read its host memory at once.
///
/// Every method that returns a `Result` may fail with the kinds that the [module](self) lists.
///
/// A launch runs device code, so giving one to a slot is `unsafe`:
///
/// ```compile_fail,E0133
/// use tapeloop_engine::backend::contract::{DeviceSlot, Op};
/// fn launch(slot: &mut dyn DeviceSlot, op: &Op) -> tapeloop_engine::Result<()> {
///     slot.enqueue(op)
/// }
/// ```
///
/// `replay::Executor` replays checked recordings in safe code.
///
/// # Safety
/// An implementation must ensure that
/// - [`DeviceSlot::addresses`] returns the memory that the buffer has, as large as stated and
///   shared with no other buffer, and that addresses and identity never change;
/// - [`DeviceSlot::is_quiet`] returns true only if the host has seen all work of the slot done;
/// - the order of the [module](self) is kept: host memory is lent only while no work of the slot
///   is in flight.
pub unsafe trait DeviceSlot: Send + Sync {
    /// The slot's identity; a slot that passes calls on to another has the other's. Graphs belong
    /// to one slot.
    fn id(&self) -> &DeviceSlotId;

    /// The driver's handle of the CUDA stream that has all work of the slot, so that other libraries
    /// can order their work before it. `None` for a device that is no GPU and for a supervised one.
    /// Batches of a loop ([`DeviceSlot::make_resident`]) are not in it.
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

    /// Gives an operation to the slot.
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
    unsafe fn enqueue(&mut self, op: &Op) -> Result<()>;

    /// Makes a graph, or gives the operations' parameters to the graph `into`, which must have
    /// been made in the same way, captured or explicit. Nothing of it runs yet.
    ///
    /// Where `into` has another topology, a new graph takes its place under the same identifier.
    /// After an error [`DeviceSlot::launch_graph`] still takes `into`, but it may hold some of
    /// the new parameters if the error came from the driver ([`Error::code`]).
    ///
    /// # Safety
    /// The requirements of [`DeviceSlot::enqueue`], for each operation and for as long as the graph
    /// exists; in [`GraphSource::Explicit`] a node that uses what another writes runs after it.
    ///
    /// # Errors
    /// The errors of [`DeviceSlot::enqueue`], with the operation; [`ErrorKind::Usage`] if
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
    /// The requirements of [`DeviceSlot::make_graph`], together with the graph's other nodes.
    ///
    /// # Errors
    /// The errors of [`DeviceSlot::enqueue`]; [`ErrorKind::Usage`] for a graph or node that does
    /// not exist, and for another kind of operation.
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

    /// Gives a whole graph to the slot.
    ///
    /// # Errors
    /// The errors of [`DeviceSlot::enqueue`]; [`ErrorKind::Usage`] for a graph that does not exist.
    fn launch_graph(&mut self, graph: GraphId) -> Result<()>;

    /// Makes a loop on the device replay a graph from now on, so that
    /// [`DeviceSlot::launch_graph`] makes no call to the driver. The graph cannot be changed any
    /// more, only dropped.
    ///
    /// A launch then waits for earlier work of the slot, and later work for the launch. Returns
    /// false, and does nothing, for a device whose launches make no call to a driver.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] for a device that cannot do this, such as a GPU in a worker
    /// process, for more loops than it runs at once, and for a slot of [`Priority::Urgent`], as a
    /// loop has no priority; [`ErrorKind::Usage`] for a graph that does not exist, is resident, or
    /// was changed since it was made.
    fn make_resident(&mut self, graph: GraphId, residency: Residency) -> Result<bool> {
        let _ = (graph, residency);
        Ok(false)
    }

    /// Makes work that the slot gets from now on wait, on the device, for what an event of other
    /// code has recorded by now. Has no effect if it has recorded nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] for a slot without [`DeviceSlot::stream`].
    fn wait_for_event(&mut self, event: &ExternalEvent) -> Result<()> {
        let _ = event;
        Err(no_stream())
    }

    /// Lets an event of other code record all work that the slot got before.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] for a slot without [`DeviceSlot::stream`].
    fn record_event(&mut self, event: &ExternalEvent) -> Result<()> {
        let _ = event;
        Err(no_stream())
    }

    /// Sets a fence behind all work of the slot. [`DeviceSlot::is_done`] and [`DeviceSlot::wait`]
    /// report on the work before the last fence.
    ///
    /// # Errors
    /// The errors of the [module](self).
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
    /// The errors of [`DeviceSlot::is_done`].
    fn wait(&mut self) -> Result<()>;

    /// Waits as [`DeviceSlot::wait`], for `timeout` at most. Returns whether the work is done.
    ///
    /// # Errors
    /// The errors of [`DeviceSlot::is_done`].
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
    /// The errors of the [module](self).
    fn timestamps(&self) -> Result<Timestamps>;
}
