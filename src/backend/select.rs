//! Which backend runs: asked for, or found once when the engine is built.

use super::cpu::CpuBackend;
use super::{Backend, DeviceChoice};
use crate::error::{Error, ErrorKind, Result};
use rayon::ThreadPool;
use std::path::PathBuf;
use std::sync::Arc;

/// The backend that the user asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
pub enum Choice {
    /// The GPU; the CPU where there is no GPU at all.
    #[default]
    Auto,
    /// The GPU or an error.
    Cuda,
    /// The CPU.
    Cpu,
}

/// Settings of the CUDA backend; without meaning to the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
pub struct CudaOptions {
    /// Which of the visible devices.
    pub device: DeviceChoice,
    /// Sleep in waits rather than spin: frees the core, adds some 30 us to each.
    pub blocking_wait: bool,
    /// The NVRTC library to use, before `TAPELOOP_NVRTC` and the usual names.
    pub nvrtc_path: Option<PathBuf>,
    /// The folder for compiled kernels, before `TAPELOOP_CACHE_DIR` and the
    /// user's cache folder.
    pub cache_dir: Option<PathBuf>,
}

/// A backend and why it was chosen.
pub struct Selected {
    /// The backend.
    pub backend: Arc<dyn Backend>,
    /// The reason, for the log and the run's record.
    pub reason: String,
}

/// [`select_with`] the default options.
///
/// # Errors
/// As for [`select_with`].
pub fn select(choice: Choice, pool: &Arc<ThreadPool>) -> Result<Selected> {
    select_with(choice, pool, &CudaOptions::default())
}

/// Chooses once. `Auto` takes the CPU only if there is no driver library or no
/// device in sight; a device that is there and cannot be used is an error.
///
/// # Errors
/// [`ErrorKind::Unavailable`], with what to install or to set.
pub fn select_with(
    choice: Choice,
    pool: &Arc<ThreadPool>,
    options: &CudaOptions,
) -> Result<Selected> {
    let cpu = |reason: String| {
        Ok(Selected {
            backend: Arc::new(CpuBackend::new(Arc::clone(pool))),
            reason,
        })
    };
    match choice {
        Choice::Cpu => cpu("asked for".to_owned()),
        Choice::Cuda | Choice::Auto => match open_gpu(options)? {
            Ok(backend) => Ok(Selected {
                backend,
                reason: "a usable GPU".to_owned(),
            }),
            Err(absent) if choice == Choice::Auto => cpu(absent.reason),
            Err(absent) => Err(Error::new(ErrorKind::Unavailable, absent.reason).fix(absent.fix)),
        },
    }
}

/// Why there is no GPU to use, and what would change that.
struct Absent {
    reason: String,
    fix: &'static str,
}

/// Why a build without the backend has no GPU.
#[cfg(not(feature = "cuda"))]
pub(super) const WITHOUT_CUDA: &str = "this build has no CUDA support (feature `cuda`)";

/// A usable GPU, or why there is none; an error if there is one that fails.
#[cfg(feature = "cuda")]
fn open_gpu(options: &CudaOptions) -> Result<Result<Arc<dyn Backend>, Absent>> {
    Ok(match super::cuda::CudaBackend::find(options)? {
        Ok(backend) => Ok(Arc::new(backend)),
        Err(reason) => Err(Absent {
            reason,
            fix: super::cuda::ABSENT_FIX,
        }),
    })
}

/// As above, in a build that cannot use one.
#[cfg(not(feature = "cuda"))]
fn open_gpu(_: &CudaOptions) -> Result<Result<Arc<dyn Backend>, Absent>> {
    Ok(Err(Absent {
        reason: WITHOUT_CUDA.to_owned(),
        fix: "build with the feature cuda-12040 or a later one, or set backend = \"cpu\"",
    }))
}
