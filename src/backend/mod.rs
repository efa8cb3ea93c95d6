//! *Where*: the contract between the engine and a device.
//!
//! # The ordering contract
//!
//! A [`Lane`] is one slot's share of a device: its buffers, its stream, and the
//! graphs captured on that stream.
//!
//! 1. Operations given to one lane run in the order they were given, each after
//!    the one before is done; those of different lanes run in any order and at
//!    the same time.
//! 2. [`Lane::enqueue`], [`Lane::launch_graph`] and [`Lane::fence`] return
//!    before the work is done. Host memory that the work reads or writes is not
//!    touched until a later [`Lane::is_done`] says true or [`Lane::wait`]
//!    returns.
//! 3. Between [`Lane::begin_capture`] and [`Lane::end_capture`] operations are
//!    taken down and not run. `end_capture` is always called, also after an
//!    error.
//! 4. A graph runs with the addresses that it was captured with, and may be
//!    launched again as soon as its last launch was given to the same lane.
//! 5. After an error from any call but a refused argument, the lane takes
//!    nothing more; dropping it waits for what it can and frees the rest.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod doctor;
mod select;

use crate::error::Result;
use crate::record::{BUFFERS_MAX, BufferDecl, BufferId, Kernel};
pub use crate::workload::DeviceInfo;
use arrayvec::ArrayVec;
pub use select::{Choice, CudaOptions, Selected, select, select_with};

/// A kernel that a backend has loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FunctionId(pub u32);

/// A graph that a lane has captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GraphId(pub u32);

/// One operation with everything resolved. Addresses are the lane's own and
/// mean nothing elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Copies host to device.
    Upload {
        /// Host address.
        host: u64,
        /// Device address.
        device: u64,
        /// Size.
        bytes: usize,
    },
    /// Copies device to host.
    Download {
        /// Device address.
        device: u64,
        /// Host address.
        host: u64,
        /// Size.
        bytes: usize,
    },
    /// Sets every byte.
    Memset {
        /// Device address.
        device: u64,
        /// Value.
        byte: u8,
        /// Size.
        bytes: usize,
    },
    /// Runs a kernel.
    Launch {
        /// The kernel.
        function: FunctionId,
        /// Blocks.
        grid: [u32; 3],
        /// Threads a block.
        block: [u32; 3],
        /// Dynamic shared memory a block, in bytes.
        shared_bytes: u32,
        /// Each parameter in the low end of one little-endian word: a device
        /// address, or a value.
        args: Box<[u64]>,
    },
}

/// The addresses of one buffer in one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// On the device.
    pub device: u64,
    /// On the host, for buffers that the host sees.
    pub host: Option<u64>,
}

/// Host sides of buffers.
pub type HostViews<'a> = ArrayVec<&'a mut [u8], BUFFERS_MAX>;

/// One device.
pub trait Backend: Send + Sync {
    /// What it is.
    fn device(&self) -> &DeviceInfo;

    /// Makes a kernel ready to launch. The same declaration gives the same
    /// function.
    ///
    /// # Errors
    /// [`ErrorKind::Kernel`](crate::ErrorKind::Kernel) by name, for a kernel
    /// without code or without a twin.
    fn load(&self, kernel: &Kernel) -> Result<FunctionId>;

    /// Takes the memory of `lanes` slots with these buffers, and their streams.
    /// Buffers start zeroed.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory), or what the
    /// device says.
    fn open_lanes(&self, buffers: &[BufferDecl], lanes: usize) -> Result<Vec<Box<dyn Lane>>>;
}

/// One slot's share of a device. See the module for the order of things.
pub trait Lane: Send {
    /// Where a buffer lies.
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

    /// Gives an operation to the stream, or to the capture in progress.
    ///
    /// # Errors
    /// What the device says.
    fn enqueue(&mut self, op: &Op) -> Result<()>;

    /// Starts taking down operations.
    ///
    /// # Errors
    /// What the device says.
    fn begin_capture(&mut self) -> Result<()>;

    /// Ends the capture and makes a launchable graph of it.
    ///
    /// # Errors
    /// What the device says; the capture is over in any case.
    fn end_capture(&mut self) -> Result<GraphId>;

    /// Gives a whole graph to the stream.
    ///
    /// # Errors
    /// What the device says.
    fn launch_graph(&mut self, graph: GraphId) -> Result<()>;

    /// Marks the end of a batch: [`Lane::is_done`] and [`Lane::wait`] speak of
    /// everything given before the last mark.
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
}
