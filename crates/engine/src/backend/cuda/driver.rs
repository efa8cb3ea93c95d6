//! The driver's functions, resolved once.
//!
//! The bindings load each symbol at its first call, panic if it is missing, and return an enum that
//! lacks the codes of newer drivers. So the functions come from the same library through a table of
//! our own, whose signatures are checked against the bindings at compile time.

use super::result_codes::{self, Code};
use crate::backend::visible_devices::variable_text;
use crate::backend::visible_variable;
use crate::error::{Error, ErrorKind, Result};
use cudarc::driver::sys;
use libloading::Library;
use std::ffi::{c_char, c_int, c_uchar, c_uint, c_ulonglong, c_void};
use std::sync::OnceLock;

/// The last part of every advice about a GPU that cannot be used.
pub(super) const OR_CPU: &str = "or set backend = \"cpu\"";

/// What to do without a driver or a visible device.
pub(in crate::backend) const ABSENT_FIX: &str = "install the NVIDIA driver and make a device \
     visible (nvidia-smi lists them, CUDA_VISIBLE_DEVICES hides them), or set backend = \"cpu\"";

/// The driver version that the bindings were chosen for, as CUDA counts it. Another crate of the
/// build may have chosen it, so that no feature of this crate names it.
pub(super) const REQUIRED_VERSION: u32 = sys::CUDA_VERSION;

const _: () = assert!(
    REQUIRED_VERSION >= 12_040,
    "cudarc's bindings must be of CUDA 12.4 or later: select tapeloop's feature cuda-12040 or a later one"
);

/// Declares the functions of the driver: in braces those that not all bindings have, then the others,
/// whose signatures are checked.
macro_rules! driver {
    (
        { $($own:ident($($own_arg:ty),*);)* }
        $($(#[$only:meta])* $name:ident($($arg:ty),* $(,)?);)*
    ) => {
        /// The functions that the backend calls, by the driver's own names.
        #[allow(non_snake_case, reason = "the driver's own names")]
        pub(super) struct Driver {
            /// The driver's version as CUDA counts it.
            pub(super) version: u32,
            $(pub(super) $own: unsafe extern "C" fn($($own_arg),*) -> i32,)*
            $($(#[$only])* pub(super) $name: unsafe extern "C" fn($($arg),*) -> i32,)*
        }

        impl Driver {
            /// A driver that refuses every call, in which tests replace functions.
            #[cfg(test)]
            pub(super) fn refusing() -> Self {
                Driver {
                    version: REQUIRED_VERSION,
                    $($own: {
                        extern "C" fn refuse($(_: $own_arg),*) -> i32 {
                            result_codes::NOT_SUPPORTED
                        }
                        refuse
                    },)*
                    $($(#[$only])* $name: {
                        extern "C" fn refuse($(_: $arg),*) -> i32 {
                            result_codes::NOT_SUPPORTED
                        }
                        refuse
                    },)*
                }
            }

            fn resolve(library: &'static Library, version: u32) -> Result<Self> {
                Ok(Driver {
                    version,
                    // SAFETY: the table has the type that CUDA's documentation gives it.
                    $($own: unsafe { symbol(library, stringify!($own)) }?,)*
                    // SAFETY: the assertion below gives the symbol the type that
                    // the bindings give it; `i32` stands for its enum, of 4 bytes.
                    $($(#[$only])* $name: unsafe { symbol(library, stringify!($name)) }?,)*
                })
            }
        }

        const _: () = {
            let _: unsafe fn(c_uint) -> sys::CUresult = sys::cuInit;
            let _: unsafe fn(*mut c_int) -> sys::CUresult = sys::cuDriverGetVersion;
            $($(#[$only])* let _: unsafe fn($($arg),*) -> sys::CUresult = sys::$name;)*
            assert!(size_of::<sys::CUresult>() == size_of::<i32>());
        };
    };
}

driver! {
    // The bindings of CUDA 13 have its second version alone. Drivers export both, of one type.
    { cuEventElapsedTime(*mut f32, sys::CUevent, sys::CUevent); }
    cuDeviceGetCount(*mut c_int);
    cuDeviceGet(*mut sys::CUdevice, c_int);
    cuDeviceGetName(*mut c_char, c_int, sys::CUdevice);
    cuDeviceGetAttribute(*mut c_int, sys::CUdevice_attribute, sys::CUdevice);
    cuDeviceTotalMem_v2(*mut usize, sys::CUdevice);
    cuDeviceGetUuid_v2(*mut sys::CUuuid, sys::CUdevice);
    cuDeviceGetPCIBusId(*mut c_char, c_int, sys::CUdevice);
    cuDevicePrimaryCtxRetain(*mut sys::CUcontext, sys::CUdevice);
    cuDevicePrimaryCtxRelease_v2(sys::CUdevice);
    cuCtxGetCurrent(*mut sys::CUcontext);
    cuCtxSetCurrent(sys::CUcontext);
    cuCtxPushCurrent_v2(sys::CUcontext);
    cuCtxPopCurrent_v2(*mut sys::CUcontext);
    cuCtxGetStreamPriorityRange(*mut c_int, *mut c_int);
    cuThreadExchangeStreamCaptureMode(*mut sys::CUstreamCaptureMode);
    cuMemGetInfo_v2(*mut usize, *mut usize);
    cuMemAlloc_v2(*mut sys::CUdeviceptr, usize);
    cuMemFree_v2(sys::CUdeviceptr);
    cuMemHostAlloc(*mut *mut c_void, usize, c_uint);
    cuMemFreeHost(*mut c_void);
    #[cfg(all(feature = "supervise", target_os = "linux"))]
    cuMemHostRegister_v2(*mut c_void, usize, c_uint);
    #[cfg(all(feature = "supervise", target_os = "linux"))]
    cuMemHostUnregister(*mut c_void);
    cuMemcpyHtoDAsync_v2(sys::CUdeviceptr, *const c_void, usize, sys::CUstream);
    cuMemcpyDtoHAsync_v2(*mut c_void, sys::CUdeviceptr, usize, sys::CUstream);
    cuMemcpyAsync(sys::CUdeviceptr, sys::CUdeviceptr, usize, sys::CUstream);
    cuMemsetD8Async(sys::CUdeviceptr, c_uchar, usize, sys::CUstream);
    cuStreamCreate(*mut sys::CUstream, c_uint);
    cuStreamCreateWithPriority(*mut sys::CUstream, c_uint, c_int);
    cuStreamSynchronize(sys::CUstream);
    cuStreamDestroy_v2(sys::CUstream);
    cuStreamBeginCapture_v2(sys::CUstream, sys::CUstreamCaptureMode);
    cuStreamEndCapture(sys::CUstream, *mut sys::CUgraph);
    cuStreamGetCaptureInfo_v3(
        sys::CUstream,
        *mut sys::CUstreamCaptureStatus,
        *mut sys::cuuint64_t,
        *mut sys::CUgraph,
        *mut *const sys::CUgraphNode,
        *mut *const sys::CUgraphEdgeData,
        *mut usize,
    );
    cuStreamWaitEvent(sys::CUstream, sys::CUevent, c_uint);
    cuEventCreate(*mut sys::CUevent, c_uint);
    cuEventRecord(sys::CUevent, sys::CUstream);
    cuEventRecordWithFlags(sys::CUevent, sys::CUstream, c_uint);
    cuEventQuery(sys::CUevent);
    cuEventSynchronize(sys::CUevent);
    cuEventDestroy_v2(sys::CUevent);
    cuGraphCreate(*mut sys::CUgraph, c_uint);
    cuGraphAddDependencies_v2(
        sys::CUgraph,
        *const sys::CUgraphNode,
        *const sys::CUgraphNode,
        *const sys::CUgraphEdgeData,
        usize,
    );
    cuGraphRemoveDependencies_v2(
        sys::CUgraph,
        *const sys::CUgraphNode,
        *const sys::CUgraphNode,
        *const sys::CUgraphEdgeData,
        usize,
    );
    cuGraphAddKernelNode_v2(
        *mut sys::CUgraphNode,
        sys::CUgraph,
        *const sys::CUgraphNode,
        usize,
        *const sys::CUDA_KERNEL_NODE_PARAMS,
    );
    cuGraphAddMemcpyNode(
        *mut sys::CUgraphNode,
        sys::CUgraph,
        *const sys::CUgraphNode,
        usize,
        *const sys::CUDA_MEMCPY3D,
        sys::CUcontext,
    );
    cuGraphAddMemsetNode(
        *mut sys::CUgraphNode,
        sys::CUgraph,
        *const sys::CUgraphNode,
        usize,
        *const sys::CUDA_MEMSET_NODE_PARAMS,
        sys::CUcontext,
    );
    cuGraphExecChildGraphNodeSetParams(sys::CUgraphExec, sys::CUgraphNode, sys::CUgraph);
    cuGraphAddChildGraphNode(
        *mut sys::CUgraphNode,
        sys::CUgraph,
        *const sys::CUgraphNode,
        usize,
        sys::CUgraph,
    );
    cuGraphAddNode_v2(
        *mut sys::CUgraphNode,
        sys::CUgraph,
        *const sys::CUgraphNode,
        *const sys::CUgraphEdgeData,
        usize,
        *mut sys::CUgraphNodeParams,
    );
    cuGraphConditionalHandleCreate(
        *mut sys::CUgraphConditionalHandle,
        sys::CUgraph,
        sys::CUcontext,
        c_uint,
        c_uint,
    );
    cuGraphAddEventRecordNode(
        *mut sys::CUgraphNode,
        sys::CUgraph,
        *const sys::CUgraphNode,
        usize,
        sys::CUevent,
    );
    cuGraphEventRecordNodeGetEvent(sys::CUgraphNode, *mut sys::CUevent);
    cuGraphExecEventRecordNodeSetEvent(sys::CUgraphExec, sys::CUgraphNode, sys::CUevent);
    cuGraphNodeGetType(sys::CUgraphNode, *mut sys::CUgraphNodeType);
    cuGraphKernelNodeGetParams_v2(sys::CUgraphNode, *mut sys::CUDA_KERNEL_NODE_PARAMS);
    cuGraphKernelNodeGetAttribute(
        sys::CUgraphNode,
        sys::CUkernelNodeAttrID,
        *mut sys::CUkernelNodeAttrValue,
    );
    cuGraphKernelNodeSetAttribute(
        sys::CUgraphNode,
        sys::CUkernelNodeAttrID,
        *const sys::CUkernelNodeAttrValue,
    );
    cuGraphMemcpyNodeGetParams(sys::CUgraphNode, *mut sys::CUDA_MEMCPY3D);
    cuGraphMemsetNodeGetParams(sys::CUgraphNode, *mut sys::CUDA_MEMSET_NODE_PARAMS);
    cuGraphExecKernelNodeSetParams_v2(
        sys::CUgraphExec,
        sys::CUgraphNode,
        *const sys::CUDA_KERNEL_NODE_PARAMS,
    );
    cuGraphExecMemcpyNodeSetParams(
        sys::CUgraphExec,
        sys::CUgraphNode,
        *const sys::CUDA_MEMCPY3D,
        sys::CUcontext,
    );
    cuGraphExecMemsetNodeSetParams(
        sys::CUgraphExec,
        sys::CUgraphNode,
        *const sys::CUDA_MEMSET_NODE_PARAMS,
        sys::CUcontext,
    );
    cuGraphExecUpdate_v2(
        sys::CUgraphExec,
        sys::CUgraph,
        *mut sys::CUgraphExecUpdateResultInfo,
    );
    cuGraphGetNodes(sys::CUgraph, *mut sys::CUgraphNode, *mut usize);
    cuGraphInstantiateWithFlags(*mut sys::CUgraphExec, sys::CUgraph, c_ulonglong);
    cuGraphLaunch(sys::CUgraphExec, sys::CUstream);
    cuGraphExecDestroy(sys::CUgraphExec);
    cuGraphDestroy(sys::CUgraph);
    cuModuleLoadDataEx(
        *mut sys::CUmodule,
        *const c_void,
        c_uint,
        *mut sys::CUjit_option,
        *mut *mut c_void,
    );
    cuModuleGetFunction(*mut sys::CUfunction, sys::CUmodule, *const c_char);
    cuModuleUnload(sys::CUmodule);
    cuFuncGetAttribute(*mut c_int, sys::CUfunction_attribute, sys::CUfunction);
    cuFuncSetAttribute(sys::CUfunction, sys::CUfunction_attribute, c_int);
    cuFuncGetParamInfo(sys::CUfunction, usize, *mut usize, *mut usize);
    cuFuncLoad(sys::CUfunction);
    cuOccupancyMaxPotentialBlockSize(
        *mut c_int,
        *mut c_int,
        sys::CUfunction,
        sys::CUoccupancyB2DSize,
        usize,
        c_int,
    );
    cuOccupancyMaxActiveBlocksPerMultiprocessor(*mut c_int, sys::CUfunction, c_int, usize);
    cuLaunchKernelEx(
        *const sys::CUlaunchConfig,
        sys::CUfunction,
        *mut *mut c_void,
        *mut *mut c_void,
    );
}

/// The result of looking for a driver.
#[derive(Clone)]
pub(super) enum Presence {
    /// An initialised driver with `devices` visible devices, at least one.
    Ready {
        driver: &'static Driver,
        devices: u32,
    },
    /// No driver or no visible device, with the reason.
    Absent(String),
}

/// Finds the driver and initialises it, once in a process: later calls return what the first found.
///
/// # Errors
/// [`ErrorKind::Unavailable`] for a driver that cannot be used.
pub(super) fn find() -> Result<Presence> {
    static PRESENCE: OnceLock<Result<Presence>> = OnceLock::new();
    PRESENCE.get_or_init(probe).clone()
}

/// Whether there is a driver library.
pub(super) fn library() -> Option<&'static Library> {
    // SAFETY: opening libcuda runs its initialisers alone, which are made to be
    // run by any process at any time.
    unsafe { sys::is_culib_present().then(|| sys::culib()) }
}

/// The version of the driver, also of one that cannot be used.
///
/// # Errors
/// [`ErrorKind::Unavailable`] if the driver lacks the call or refuses it.
pub(super) fn version(library: &'static Library) -> Result<u32> {
    // SAFETY: the signature is the one asserted next to the table.
    let get: unsafe extern "C" fn(*mut c_int) -> i32 =
        unsafe { symbol(library, "cuDriverGetVersion") }?;
    let mut version = 0;
    // SAFETY: `version` outlives the call, which needs no initialised driver.
    check("cuDriverGetVersion", unsafe { get(&mut version) })?;
    Ok(version.max(0) as u32)
}

/// A version in the usual form: 12040 is 12.4.
pub(super) fn version_text(version: u32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// Opens the driver and asks it for devices. An error is [`ErrorKind::Unavailable`]: a driver that
/// is too old, or that refuses a call.
fn probe() -> Result<Presence> {
    let Some(library) = library() else {
        let reason = "no NVIDIA driver (libcuda) on this machine";
        return Ok(Presence::Absent(reason.to_owned()));
    };
    // SAFETY: the signature is the one asserted next to the table.
    let init: unsafe extern "C" fn(c_uint) -> i32 = unsafe { symbol(library, "cuInit") }?;
    // SAFETY: 0 is the only value that cuInit takes, at any time.
    let initialised = unsafe { init(0) };
    if initialised == result_codes::NO_DEVICE {
        return Ok(Presence::Absent(no_device()));
    }
    check("cuInit", initialised)?;
    let version = version(library)?;
    if version < REQUIRED_VERSION {
        return Err(too_old_error(version));
    }
    let driver = Driver::resolve(library, version)?;
    let mut devices = 0;
    // SAFETY: `devices` outlives the call, and the driver is initialised.
    check("cuDeviceGetCount", unsafe {
        (driver.cuDeviceGetCount)(&mut devices)
    })?;
    if devices <= 0 {
        return Ok(Presence::Absent(no_device()));
    }
    static DRIVER: OnceLock<Driver> = OnceLock::new();
    Ok(Presence::Ready {
        driver: DRIVER.get_or_init(|| driver),
        devices: devices as u32,
    })
}

fn no_device() -> String {
    let variable = variable_text(visible_variable().as_deref());
    format!("the NVIDIA driver shows no GPU ({variable})")
}

fn too_old_error(version: u32) -> Error {
    let required = version_text(REQUIRED_VERSION);
    let message = format!(
        "the NVIDIA driver is too old: it supports CUDA {}, and this build needs {required}",
        version_text(version)
    );
    Error::new(ErrorKind::Unavailable, message).fix(format!(
        "update the NVIDIA driver to one that supports CUDA {required}, {OR_CPU}"
    ))
}

fn check(call: &str, raw: i32) -> Result<()> {
    if raw == result_codes::SUCCESS {
        return Ok(());
    }
    Err(unusable_error(call, Code::of(raw)))
}

/// The error of a driver that refuses `call`.
pub(super) fn unusable_error(call: &str, code: Code) -> Error {
    let message = format!(
        "the GPU cannot be used: {call}: {} ({}, {})",
        code.meaning, code.name, code.raw
    );
    Error::new(ErrorKind::Unavailable, message)
        .with_code(code.raw)
        .fix(format!("{}, {OR_CPU}", code.next_step))
}

/// The function `name` of the driver. If it is missing, the error is an [`ErrorKind::Unavailable`].
///
/// # Safety
/// `F` must be the type of a pointer to that function.
unsafe fn symbol<F: Copy>(library: &'static Library, name: &str) -> Result<F> {
    // SAFETY: the caller's promise; the library is never closed.
    let found = unsafe { library.get::<F>(name) };
    found.map(|symbol| *symbol).map_err(|_| {
        let message = format!("the NVIDIA driver is too old or broken: it lacks {name}");
        Error::new(ErrorKind::Unavailable, message).fix(format!(
            "update the NVIDIA driver to one that supports CUDA {}, {OR_CPU}",
            version_text(REQUIRED_VERSION)
        ))
    })
}
