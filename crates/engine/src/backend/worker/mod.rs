//! A device in a worker process, which a fault or a kernel without end may end: another worker is
//! started in its place.
//!
//! A fault on a GPU ends CUDA for the whole process. So the engine's process does not open the
//! device: a worker does, a program that calls [`serve`]. Kernels, slots and graphs are sent once
//! to each worker. The host memory of slots is shared, and pinned by the worker. For each batch,
//! the engine's process sends a launch, and the worker stores a completion flag in shared memory.
//!
//! ```text
//! engine's process                          worker
//! WorkerBackend, WorkerSlot -- requests --> serve: a slot's work in its turn
//!        arena ............ memory ........ arena, registered as pinned
//!        flags <........... memory ........ the threads that wait for the device
//! ```
//!
//! # Memory that two processes share
//!
//! Slots that are opened together have one file for their host memory and one for their completion
//! flags. The worker uses a slot's host memory from a submission until its fence is reached, and
//! this process otherwise. Each group of slots has its own flags, so a flag that a worker stores
//! late cannot complete a later slot's work. When a worker is lost, its slots' memory stays closed
//! until its process has ended. [`Backend::revive`] reports a killed process that does not end
//! within 10 seconds, and the memory of its work in flight stays closed.
//!
//! [`Backend::revive`] starts the next worker, which gets kernels, filled allocations, slots and graphs
//! again before any work. The pipeline calls it, runs the lost batches again and finds the item at fault.

mod addresses;
mod arena;
mod device_slot;
mod ipc;
mod message;
mod polling;
mod process;
mod restart_state;
mod serve;
mod served_slot;
mod supervisor;

use super::refusals::no_allocations;
use super::{
    Allocation, AllocationKey, Backend, BackendId, Choice, Compilation, Contents, CudaOptions,
    DeviceInfo, DeviceSlot, DriverCalls, FunctionId, Layout, Occupancy, Priority, Space,
};
use crate::error::{Error, ErrorKind, Result};
use crate::record::{BufferDecl, Image, Kernel};
use arena::CompletionFlags;
pub(super) use arena::{Arena, ArenaPart};
use device_slot::WorkerSlot;
use message::{Request, WorkerReply};
use restart_state::SlotGroup;
pub use serve::serve;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use supervisor::Supervisor;
use tapeloop_error::internal::LaterFields;

/// The file of a trusted worker program.
///
/// A worker gets the memory of the slots that it serves, so safe code cannot name one:
///
/// ```compile_fail,E0133
/// let program = tapeloop_engine::backend::worker::WorkerProgram::new("/tmp/anything");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerProgram(PathBuf);

impl WorkerProgram {
    /// The program in this file, which need not exist.
    ///
    /// # Safety
    /// If a program can be started at `path`, it calls [`serve`] with what comes in on
    /// its standard input, and touches the memory that it is sent nowhere else: this
    /// process has borrowed it.
    pub unsafe fn new(path: impl Into<PathBuf>) -> Self {
        WorkerProgram(path.into())
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// Variables of a worker's environment, next to those of this process.
#[derive(Clone, Debug, Default)]
pub struct WorkerEnv(Vec<(OsString, OsString)>);

impl WorkerEnv {
    /// Adds a variable.
    ///
    /// # Safety
    /// The variable brings no code into the worker that touches the memory which this
    /// process shares with it. `LD_PRELOAD` does, for example, and `TAPELOOP_NVRTC`,
    /// `TAPELOOP_CACHE_DIR`, `XDG_CACHE_HOME` and `HOME` name libraries and compiled kernels.
    #[must_use]
    pub unsafe fn with(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.0.push((name.into(), value.into()));
        self
    }
}

/// Which worker to start, and what it opens. Later versions may add fields: end a literal with
/// `..WorkerOptions::default()`.
#[derive(Clone, Debug, Default)]
pub struct WorkerOptions {
    /// A program that calls [`serve`]; `None` for the running program, which must then call
    /// [`serve`] when it gets `args` and `env`.
    pub program: Option<WorkerProgram>,
    /// Its arguments, such as `worker` for tapeloop itself.
    pub args: Vec<OsString>,
    /// Variables of its environment.
    pub env: WorkerEnv,
    /// The backend that it opens.
    pub choice: Choice,
    /// Settings of the CUDA backend.
    pub cuda: CudaOptions,
    /// Threads of the CPU backend, 0 for all cores.
    pub threads: usize,
    #[doc(hidden)]
    pub later: LaterFields,
}

/// A device in a worker process.
///
/// Its allocations are those of [`Backend::allocate_filled`], such as the resident buffers of an
/// engine, which work only reads: this process keeps their contents, and copies them to each worker
/// that it starts. Any other allocation is refused, as its contents would be lost with the worker.
pub struct WorkerBackend {
    id: BackendId,
    allocation_key: AllocationKey,
    device: DeviceInfo,
    reason: String,
    supervisor: Arc<Supervisor>,
}

impl WorkerBackend {
    /// Starts a worker, and waits until it has opened its device.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] for a program that cannot be started or is not a worker;
    /// [`ErrorKind::Io`] if the worker's socket or its output cannot be made; [`ErrorKind::Usage`] in a
    /// process that was started as a worker, and has to call [`serve`]; the error that the worker
    /// reports for its device.
    pub fn open(options: WorkerOptions) -> Result<WorkerBackend> {
        let (supervisor, opened) = Supervisor::start(options)?;
        Ok(WorkerBackend {
            id: BackendId::new(),
            allocation_key: AllocationKey::new(),
            device: opened.device(),
            reason: opened.reason,
            supervisor,
        })
    }

    /// The process id of the worker; `None` while it is lost.
    pub fn process_id(&self) -> Option<u32> {
        self.supervisor.process_id()
    }

    /// The reason for the worker's choice of backend.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

// SAFETY: the worker loads each declaration with its own image, and slots have the layout of
// the buffers that were asked for.
unsafe impl Backend for WorkerBackend {
    fn id(&self) -> BackendId {
        self.id
    }

    fn device(&self) -> &DeviceInfo {
        &self.device
    }

    fn load(&self, kernel: &Kernel) -> Result<FunctionId> {
        self.supervisor.load(kernel)
    }

    fn prepare(&self, images: &[Arc<Image>]) -> Result<()> {
        self.supervisor.prepare(images)
    }

    fn compilation(&self) -> Compilation {
        self.supervisor.compilation()
    }

    fn occupancy(&self, _: &Kernel, function: FunctionId) -> Result<Occupancy> {
        match self.supervisor.ask(&Request::Occupancy(function))? {
            WorkerReply::Occupancy(occupancy) => self.supervisor.check_answer(occupancy),
            _ => Err(self.supervisor.lose_garbled()),
        }
    }

    fn open_slots(
        &self,
        buffers: &[BufferDecl],
        slots: usize,
        priority: Priority,
    ) -> Result<Vec<Box<dyn DeviceSlot>>> {
        let (layout, [_, host_bytes]) = Layout::for_slots(buffers, slots)?;
        let sizes = std::iter::repeat_n(layout.host_bytes, slots);
        let parts = Arena::new(host_bytes)?.cut(sizes);
        let Some(first) = parts.first() else {
            return Ok(Vec::new());
        };
        let flags = Arc::new(CompletionFlags::new(slots)?);
        let group = SlotGroup {
            buffers: buffers.to_vec(),
            slots: Vec::new(),
            priority,
            host: Arc::clone(first.arena()),
            flags: Arc::clone(&flags),
        };
        let numbers = self.supervisor.open_slots(group, slots)?;
        let opened = device_slot::SlotsShared {
            backend: self.id,
            device: self.device.backend,
            allocation_key: self.allocation_key,
            layout: Arc::new(layout),
            flags,
            supervisor: Arc::clone(&self.supervisor),
        };
        let slot = |(index, (number, part))| -> Box<dyn DeviceSlot> {
            Box::new(WorkerSlot::new(&opened, index, number, part))
        };
        let slots = numbers.into_iter().zip(parts).enumerate();
        Ok(slots.map(slot).collect())
    }

    fn allocate(&self, _: Space, _: usize) -> Result<Allocation> {
        Err(no_allocations())
    }

    fn allocate_filled(&self, contents: &Arc<Contents>) -> Result<Allocation> {
        let key = self.allocation_key;
        self.supervisor.allocate_filled(key, contents)
    }

    fn refill(&self, memory: &Allocation, contents: &Arc<Contents>) -> Result<()> {
        memory.check_key(self.allocation_key)?;
        memory.check_size((**contents).as_ref().len())?;
        self.supervisor.refill(memory.address(), contents)
    }

    fn write(&self, _: &[u8], _: &Allocation, _: usize) -> Result<()> {
        Err(no_allocations())
    }

    fn read(&self, _: &Allocation, _: usize, _: &mut [u8]) -> Result<()> {
        Err(no_allocations())
    }

    fn copy(&self, _: &Allocation, _: usize, _: &Allocation, _: usize, _: usize) -> Result<()> {
        Err(no_allocations())
    }

    /// The numbers of the current worker; 0 while it is lost.
    fn driver_calls(&self) -> DriverCalls {
        match self.supervisor.ask(&Request::Calls) {
            Ok(WorkerReply::Calls(calls)) => calls,
            _ => DriverCalls::default(),
        }
    }

    fn is_supervised(&self) -> bool {
        true
    }

    fn revive(&self) -> Result<bool> {
        self.supervisor.revive()
    }
}

fn unexpected_reply_error() -> Error {
    Error::new(
        ErrorKind::Device,
        "the worker's answer does not fit the request",
    )
    .fix("use a worker of the same version as this program")
}
