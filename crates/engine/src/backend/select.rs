//! Selects the backend, once, when the engine is built, and lists the visible GPUs.

use super::cpu::CpuBackend;
#[cfg(feature = "cuda")]
use super::cuda::{CudaBackend, find_uuids, list_devices as list};
#[cfg(all(feature = "supervise", target_os = "linux"))]
use super::worker::Arena;
use super::{Backend, CudaOptions, DeviceChoice, DeviceEntry, DeviceSet};
#[cfg(all(feature = "supervise", target_os = "linux"))]
use super::{DeviceSlot, Priority};
use crate::error::{Error, ErrorKind, Result};
#[cfg(all(feature = "supervise", target_os = "linux"))]
use crate::record::BufferDecl;
use rayon::ThreadPool;
use std::sync::Arc;

/// The backend that the user requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
pub enum Choice {
    /// The GPU, or the CPU on a machine without a GPU.
    #[default]
    Auto,
    /// The GPU; an error without one.
    Cuda,
    /// The CPU.
    Cpu,
}

/// A backend and the reason for its choice.
#[non_exhaustive]
pub struct Selected {
    /// The backend.
    pub backend: Arc<dyn Backend>,
    /// The reason, for the log and the record of the run.
    pub reason: String,
}

impl Selected {
    /// A backend that was opened in another way, such as in a worker process.
    #[doc(hidden)]
    pub fn new(backend: Arc<dyn Backend>, reason: String) -> Self {
        Selected { backend, reason }
    }
}

/// [`select_with`] the default options.
///
/// # Errors
/// The errors of [`select_with`].
pub fn select(choice: Choice, pool: &Arc<ThreadPool>) -> Result<Selected> {
    select_with(choice, pool, &CudaOptions::default())
}

/// Selects and opens a backend. [`Choice::Auto`] takes the CPU only if there is no driver library
/// or no visible device; a device that cannot be used is an error.
///
/// # Errors
/// [`ErrorKind::Unavailable`], with the thing to install or to set.
pub fn select_with(
    choice: Choice,
    pool: &Arc<ThreadPool>,
    options: &CudaOptions,
) -> Result<Selected> {
    let (opened, reason) = open_builtin(choice, pool, options)?;
    Ok(Selected {
        backend: opened.shared(),
        reason,
    })
}

/// Selects and opens a backend for each device of `devices`, which is one at least.
/// [`CudaOptions::device`] is not used.
///
/// # Errors
/// The errors of [`select_with`] and [`device_options`].
pub fn select_all(
    choice: Choice,
    devices: &DeviceSet,
    pool: &Arc<ThreadPool>,
    options: &CudaOptions,
) -> Result<Vec<Selected>> {
    let each = device_options(choice, devices, options)?.into_iter();
    each.map(|options| select_with(choice, pool, &options))
        .collect()
}

/// For each device of `devices` a copy of `options` that names it, for [`select_with`] or for the worker
/// of a supervised device. One device keeps the name that it was given, and no driver is called here;
/// several are named by their UUIDs. On the CPU, or if there is no GPU, there is one backend to open,
/// and what `devices` names is not checked.
///
/// # Errors
/// - [`ErrorKind::Config`] if no device is named, or one twice, as by its number and by its UUID.
/// - [`ErrorKind::Unavailable`] for a device that is not visible, and for a driver that cannot be
///   used.
pub fn device_options(
    choice: Choice,
    devices: &DeviceSet,
    options: &CudaOptions,
) -> Result<Vec<CudaOptions>> {
    let with = |device: DeviceChoice| CudaOptions {
        device,
        ..options.clone()
    };
    match devices {
        DeviceSet::Named(named) if named.len() == 1 => Ok(vec![with(named[0].clone())]),
        _ if choice == Choice::Cpu => Ok(vec![options.clone()]),
        _ => Ok(match find_uuids(devices)? {
            Ok(uuids) => uuids
                .into_iter()
                .map(|uuid| with(DeviceChoice::Uuid(uuid)))
                .collect(),
            // Opening it reports that there is no GPU.
            Err(_) => vec![options.clone()],
        }),
    }
}

#[cfg(not(feature = "cuda"))]
fn find_uuids(_: &DeviceSet) -> Result<Result<Vec<String>, String>> {
    Ok(Err(WITHOUT_CUDA.to_owned()))
}

/// A backend of this crate. A worker can open its slots over memory that it shares with another
/// process.
pub(super) enum Builtin {
    Cpu(Arc<CpuBackend>),
    #[cfg(feature = "cuda")]
    Cuda(Arc<CudaBackend>),
}

impl Builtin {
    /// The backend as a trait object.
    pub(super) fn shared(&self) -> Arc<dyn Backend> {
        match self {
            Builtin::Cpu(cpu) => Arc::clone(cpu) as Arc<dyn Backend>,
            #[cfg(feature = "cuda")]
            Builtin::Cuda(cuda) => Arc::clone(cuda) as Arc<dyn Backend>,
        }
    }
}

#[cfg(all(feature = "supervise", target_os = "linux"))]
impl Builtin {
    /// Whether a slot computes on the thread that calls [`is_done`](super::DeviceSlot::is_done).
    pub(super) fn computes_when_asked(&self) -> bool {
        matches!(self, Builtin::Cpu(_))
    }

    /// Like [`Backend::open_slots`], with the host sides of all buffers in `host`,
    /// slot by slot, as their [`Layout`](super::Layout) has them.
    ///
    /// # Errors
    /// The errors of [`Backend::open_slots`]; [`ErrorKind::Unavailable`] if the device cannot use
    /// such memory.
    pub(super) fn open_slots_over(
        &self,
        buffers: &[BufferDecl],
        slots: usize,
        priority: Priority,
        host: Arena,
    ) -> Result<Vec<Box<dyn DeviceSlot>>> {
        // The CPU has no priorities.
        #[cfg(not(feature = "cuda"))]
        let _ = priority;
        match self {
            Builtin::Cpu(cpu) => cpu.open_slots_over(buffers, slots, host),
            #[cfg(feature = "cuda")]
            Builtin::Cuda(cuda) => cuda.open_slots_over(buffers, slots, priority, host),
        }
    }
}

/// Like [`select_with`], but returns the backend with its type, and the reason.
///
/// # Errors
/// The errors of [`select_with`].
pub(super) fn open_builtin(
    choice: Choice,
    pool: &Arc<ThreadPool>,
    options: &CudaOptions,
) -> Result<(Builtin, String)> {
    let cpu = |reason: String| {
        let backend = CpuBackend::new(Arc::clone(pool));
        Ok((Builtin::Cpu(Arc::new(backend)), reason))
    };
    match choice {
        Choice::Cpu => cpu("asked for".to_owned()),
        Choice::Cuda | Choice::Auto => match open_gpu(options)? {
            Ok(backend) => Ok((backend, "a usable GPU".to_owned())),
            Err(absent) if choice == Choice::Auto => cpu(absent.reason),
            Err(absent) => Err(Error::new(ErrorKind::Unavailable, absent.reason).fix(absent.fix)),
        },
    }
}

/// Why there is no GPU, and how to get one.
struct Absent {
    reason: String,
    fix: &'static str,
}

/// Why a build without the backend has no GPU.
#[cfg(not(feature = "cuda"))]
pub(super) const WITHOUT_CUDA: &str = "this build has no CUDA support (feature `cuda`)";

/// Opens the GPU. The inner error says why there is none, the outer one why it failed.
#[cfg(feature = "cuda")]
fn open_gpu(options: &CudaOptions) -> Result<Result<Builtin, Absent>> {
    Ok(match CudaBackend::find(options)? {
        Ok(backend) => Ok(Builtin::Cuda(Arc::new(backend))),
        Err(reason) => Err(Absent {
            reason,
            fix: super::cuda::ABSENT_FIX,
        }),
    })
}

/// This build cannot use a GPU.
#[cfg(not(feature = "cuda"))]
fn open_gpu(_: &CudaOptions) -> Result<Result<Builtin, Absent>> {
    Ok(Err(Absent {
        reason: WITHOUT_CUDA.to_owned(),
        fix: "build with the feature cuda-12040 or a later one, or set backend = \"cpu\"",
    }))
}

/// The visible GPUs in the driver's order. The inner error says why there is none: no driver, or
/// no visible device. Makes a short-lived context on each device to read its free memory.
///
/// # Errors
/// [`ErrorKind::Unavailable`] for a driver that cannot be used.
pub fn devices() -> Result<Result<Vec<DeviceEntry>, String>> {
    list()
}

#[cfg(not(feature = "cuda"))]
fn list() -> Result<Result<Vec<DeviceEntry>, String>> {
    Ok(Err(WITHOUT_CUDA.to_owned()))
}
