//! Checks that operations use only memory of the slot and of adopted allocations.

use super::allocations::{AllocationUse, SlotAllocations, add_use};
use super::module::{Function, LoadedFunctions};
use super::slot_memory::SlotMemory;
use super::stream::Stream;
use super::timestamps::Timestamps;
use crate::backend::edges::NodeRole;
use crate::backend::{Call, FunctionId, Op, Space};
use crate::error::{Error, Result};
use crate::record::struct_arg::{pointers_of, words_of};
use crate::record::{Access, PARAMS_MAX, ParamKind};
use arrayvec::ArrayVec;
use cudarc::driver::sys;
use std::ffi::c_void;
use std::sync::Arc;

/// Pointers to the arguments of a launch, as the driver takes them.
pub(super) type Pointers = ArrayVec<*mut c_void, PARAMS_MAX>;

/// A checked operation: every range lies in the slot's memory or in an allocation of `uses`, and a
/// launch passes as many arguments as the code takes.
pub(super) struct Checked<'a> {
    op: &'a Op,
    /// The function of a launch.
    function: Option<Function>,
    /// The event of a timestamp, which outlives the slot's streams and graphs.
    event: Option<sys::CUevent>,
    uses: Vec<AllocationUse>,
}

/// Refuses an operation on memory that is not the slot's own or adopted.
///
/// # Errors
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for that, for a function that does not exist, and
/// for another number of words than it takes; those of [`Timestamps::event`].
pub(super) fn check<'a>(
    op: &'a Op,
    share: &SlotMemory,
    allocations: &SlotAllocations,
    functions: &LoadedFunctions,
    timestamps: &Timestamps,
) -> Result<Checked<'a>> {
    let mut uses = Vec::new();
    let mut touch = |space, address, bytes, access| -> Result<()> {
        if share.contains(space, address, bytes) {
            return Ok(());
        }
        let allocation = allocations.find(space, address, bytes);
        let allocation = allocation.ok_or_else(|| foreign_address_error(space, address, bytes))?;
        add_use(&mut uses, allocation, access);
        Ok(())
    };
    let (pinned, device) = (Some(Space::Pinned), Some(Space::Device));
    let (mut function, mut event) = (None, None);
    match op {
        &Op::Upload {
            host,
            device: to,
            bytes,
        } => {
            touch(pinned, host, bytes, Access::Read)?;
            touch(device, to, bytes, Access::Write)?;
        }
        &Op::Download {
            device: from,
            host,
            bytes,
        } => {
            touch(device, from, bytes, Access::Read)?;
            touch(pinned, host, bytes, Access::Write)?;
        }
        &Op::Copy { from, to, bytes } => {
            touch(device, from, bytes, Access::Read)?;
            touch(device, to, bytes, Access::Write)?;
        }
        &Op::Memset {
            device: at, bytes, ..
        } => touch(device, at, bytes, Access::Write)?,
        Op::Launch {
            function: id, args, ..
        } => {
            let known = functions.get(*id)?;
            let (given, taken) = (args.len(), words_of(&*known.params));
            if given != taken {
                return Err(Error::usage(format!(
                    "{given} words for parameters that take {taken}"
                )));
            }
            for pointer in pointers_of(&*known.params) {
                // Only the kernel's author knows how far it goes from there.
                touch(None, args[pointer.word], 1, pointer.access)?;
            }
            if known.follows_device_pointers {
                // The kernel may access any adopted allocation: while it runs they live, and the
                // host does not write them.
                allocations.add_adopted(&mut uses);
            }
            function = Some(known);
        }
        &Op::Timestamp { timestamp } => event = Some(timestamps.event(timestamp)?),
    }
    Ok(Checked {
        op,
        function,
        event,
        uses,
    })
}

/// The error of an address that is in no memory of the slot; `space` is that of the side that it
/// was given for.
fn foreign_address_error(space: Option<Space>, address: u64, bytes: usize) -> Error {
    let side = match space {
        Some(Space::Pinned) => "host address",
        Some(Space::Device) => "device address",
        None => "address",
    };
    Error::usage(format!(
        "{bytes} bytes at {side} {address:#x} are not the slot's own"
    ))
    .fix("use the slot's buffers, or adopt the allocation that the bytes are in")
}

impl<'a> Checked<'a> {
    /// A launch of the kernel that copies, whose pieces are operations that [`check`] passed. Their
    /// uses stand for the launch.
    pub(super) fn copies(op: &'a Op, function: Function) -> Self {
        Checked {
            op,
            function: Some(function),
            event: None,
            uses: Vec::new(),
        }
    }

    pub(super) fn op(&self) -> &'a Op {
        self.op
    }

    /// The function of a launch.
    ///
    /// # Panics
    /// If the operation is none.
    pub(super) fn function(&self) -> &Function {
        self.function.as_ref().expect("a launch has its function")
    }

    /// Whether it is a library call.
    pub(super) fn is_library_call(&self) -> bool {
        self.function
            .as_ref()
            .is_some_and(|function| function.library().is_some())
    }

    /// The name of the kernel if it is a launch with a priority of its own.
    pub(super) fn urgent_kernel(&self) -> Option<&Arc<str>> {
        let function = self.function.as_ref()?;
        function
            .attributes
            .declared
            .is_urgent
            .then_some(&function.name)
    }

    /// The event of a timestamp.
    ///
    /// # Panics
    /// If the operation is none.
    pub(super) fn event(&self) -> sys::CUevent {
        self.event.expect("a timestamp has its event")
    }

    /// The allocations that it uses.
    pub(super) fn uses(&self) -> &[AllocationUse] {
        &self.uses
    }

    pub(super) fn into_uses(self) -> Vec<AllocationUse> {
        self.uses
    }

    /// The function that a launch names.
    pub(super) fn function_id(&self) -> Option<FunctionId> {
        match self.op {
            Op::Launch { function, .. } => Some(*function),
            _ => None,
        }
    }

    /// Refuses an operation that a graph cannot hold. A graph takes none on 0 bytes
    /// ([`DeviceSlot::make_graph`](crate::backend::DeviceSlot::make_graph)).
    pub(super) fn check_node(&self) -> Result<()> {
        match self.op {
            Op::Upload { bytes: 0, .. }
            | Op::Download { bytes: 0, .. }
            | Op::Memset { bytes: 0, .. } => Err(Error::usage(
                "an operation on 0 bytes has no place in a graph",
            )
            .fix("leave it out")),
            _ => Ok(()),
        }
    }

    /// What it is for programmatic dependent launch.
    pub(super) fn role(&self) -> NodeRole {
        self.function
            .as_ref()
            .map_or(NodeRole::Other, |function| function.role)
    }

    /// Submits it to a stream, and counts it as `call`: [`Call::GraphEdit`] in a capture. A kernel that
    /// `starts_early` starts before the end of the kernel that was submitted last.
    ///
    /// # Safety
    /// Until the work is done, the slot's memory and the allocations that the check found must
    /// live, and the host must not access those parts that it touches; unless the
    /// stream captures, when nothing runs.
    pub(super) unsafe fn submit(
        &self,
        stream: &Stream,
        call: Call,
        starts_early: bool,
    ) -> Result<()> {
        let context = stream.context();
        let driver = context.bind_for(call)?;
        let raw = stream.raw();
        match self.op {
            &Op::Upload {
                host,
                device,
                bytes,
            } => {
                let host = host as *const c_void;
                // SAFETY: `check` found both ranges inside memory that the caller
                // keeps alive and the host away from.
                let result = unsafe { (driver.cuMemcpyHtoDAsync_v2)(device, host, bytes, raw) };
                context.check("cuMemcpyHtoDAsync", result)
            }
            &Op::Download {
                device,
                host,
                bytes,
            } => {
                let host = host as *mut c_void;
                // SAFETY: as for the upload.
                let result = unsafe { (driver.cuMemcpyDtoHAsync_v2)(host, device, bytes, raw) };
                context.check("cuMemcpyDtoHAsync", result)
            }
            &Op::Copy { from, to, bytes } => {
                // SAFETY: as for the upload.
                let result = unsafe { (driver.cuMemcpyAsync)(to, from, bytes, raw) };
                context.check("cuMemcpyAsync", result)
            }
            &Op::Memset {
                device,
                byte,
                bytes,
            } => {
                // SAFETY: as for the upload.
                let result = unsafe { (driver.cuMemsetD8Async)(device, byte, bytes, raw) };
                context.check("cuMemsetD8Async", result)
            }
            Op::Launch {
                grid,
                block,
                shared_bytes,
                args,
                ..
            } => {
                let function = self.function();
                if let Some(library) = function.library() {
                    // SAFETY: the stream lives as long as the reference, and the addresses are
                    // those that `check` found. What the call does with both is its author's.
                    return unsafe { library.submit(stream.handle(), &function.params, args) };
                }
                let mut attributes = function.attributes.list_in_stream(starts_early);
                let config = sys::CUlaunchConfig {
                    gridDimX: grid[0],
                    gridDimY: grid[1],
                    gridDimZ: grid[2],
                    blockDimX: block[0],
                    blockDimY: block[1],
                    blockDimZ: block[2],
                    sharedMemBytes: *shared_bytes,
                    hStream: raw,
                    attrs: attributes.as_mut_ptr(),
                    numAttrs: attributes.len() as u32,
                };
                let mut pointers = pointers(&function.params, args);
                // SAFETY: the function's module lives as long as the slot. The
                // driver reads as many pointers, and through each as many bytes, as
                // the code takes, which `load` compared with the parameters; `check`
                // found as many words as those take. `config` and the attributes
                // outlive the call. Buffers are in memory that the caller
                // answers for; what the code does with them is its author's, as
                // is any code that an image brings.
                context.check("cuLaunchKernelEx", unsafe {
                    (driver.cuLaunchKernelEx)(
                        &config,
                        function.raw(),
                        pointers.as_mut_ptr(),
                        std::ptr::null_mut(),
                    )
                })
            }
            Op::Timestamp { .. } => {
                use sys::CUevent_record_flags_enum as Flags;
                // In a capture, a record without this flag would only mark a dependency, and add no
                // node.
                let flags = match call {
                    Call::GraphEdit => Flags::CU_EVENT_RECORD_EXTERNAL,
                    _ => Flags::CU_EVENT_RECORD_DEFAULT,
                };
                // SAFETY: the stream lives as long as the reference, and the event
                // as long as the slot, which waits for its streams before it goes.
                context.check("cuEventRecordWithFlags", unsafe {
                    (driver.cuEventRecordWithFlags)(self.event(), raw, flags as u32)
                })
            }
        }
    }
}

/// A pointer to the words of each parameter.
///
/// # Panics
/// If there are more than [`PARAMS_MAX`], or fewer words than they take.
pub(super) fn pointers(params: &[ParamKind], mut words: &[u64]) -> Pointers {
    let start = |kind: &ParamKind| {
        let passed;
        (passed, words) = words.split_at(kind.words());
        passed.as_ptr().cast_mut().cast()
    };
    params.iter().map(start).collect()
}
