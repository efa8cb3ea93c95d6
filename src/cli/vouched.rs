//! Files with code in them that the user of the program names, on the command line or in
//! a config file that `--trust-config` trusts. The user may run any code anyway, so the
//! program vouches for these files.

#[cfg(target_os = "linux")]
use crate::backend::worker::WorkerProgram;
use crate::backend::{KernelCache, NvrtcLibrary};
use std::path::Path;

/// The NVRTC library of the config.
pub(super) fn nvrtc(path: &Path) -> NvrtcLibrary {
    // SAFETY: the user who runs this program names the file as NVRTC.
    unsafe { NvrtcLibrary::at(path) }
}

/// The folder of compiled kernels of the config.
pub(super) fn kernel_cache(path: &Path) -> KernelCache {
    // SAFETY: the user who runs this program names the folder as the program's.
    unsafe { KernelCache::at(path) }
}

/// The worker program of the config.
#[cfg(target_os = "linux")]
pub(super) fn worker(path: &Path) -> WorkerProgram {
    // SAFETY: the user who runs this program names the file as a worker.
    unsafe { WorkerProgram::at(path) }
}
