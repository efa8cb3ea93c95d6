//! Files of code that the user names on the command line, or in a config file with
//! `--trust-config`. The user may run any code anyway, so the program trusts these files.

#[cfg(target_os = "linux")]
use crate::backend::worker::WorkerProgram;
use crate::backend::{KernelCache, NvrtcLibrary};
use crate::error::Result;
use crate::features::{OwnKernel, OwnKernelSettings};
use std::path::Path;

/// The NVRTC library that the config names.
pub(super) fn nvrtc(path: &Path) -> NvrtcLibrary {
    // SAFETY: the user who runs this program names the file as NVRTC.
    unsafe { NvrtcLibrary::at(path) }
}

/// The folder of compiled kernels that the config names.
pub(super) fn kernel_cache(path: &Path) -> KernelCache {
    // SAFETY: the user who runs this program names the folder as the program's.
    unsafe { KernelCache::at(path) }
}

/// A kernel that the config gives.
///
/// # Errors
/// Those of [`OwnKernel::new`].
pub(super) fn own_kernel(settings: OwnKernelSettings) -> Result<OwnKernel> {
    // SAFETY: the user who runs this program vouches for the kernel that the config names: it is
    // code of theirs, which stays within its buffers or may do anything, as a program may.
    unsafe { OwnKernel::new(settings) }
}

/// The worker program that the config names.
#[cfg(target_os = "linux")]
pub(super) fn worker(path: &Path) -> WorkerProgram {
    // SAFETY: the user who runs this program names the file as a worker.
    unsafe { WorkerProgram::at(path) }
}
