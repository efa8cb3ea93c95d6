//! Files of code that settings name: on the command line, in a config file with `--trust-config`, or in
//! the program that embeds this one. Whoever gives such settings may run any code anyway, so the files
//! are trusted.

use std::path::Path;
#[cfg(target_os = "linux")]
use tapeloop::backend::worker::WorkerProgram;
use tapeloop::backend::{KernelCache, NvrtcLibrary};
use tapeloop::error::Result;
use tapeloop::features::{OwnKernel, OwnKernelSettings};

/// The NVRTC library that the config names.
pub(super) fn nvrtc(path: &Path) -> NvrtcLibrary {
    // SAFETY: who gives the settings names the file as NVRTC.
    unsafe { NvrtcLibrary::new(path) }
}

/// The folder of compiled kernels that the config names.
pub(super) fn kernel_cache(path: &Path) -> KernelCache {
    // SAFETY: who gives the settings names the folder as the program's.
    unsafe { KernelCache::new(path) }
}

/// A kernel that the config gives.
///
/// # Errors
/// The errors of [`OwnKernel::new`].
pub(super) fn own_kernel(settings: OwnKernelSettings) -> Result<OwnKernel> {
    // SAFETY: who gives the settings vouches for the kernel that they name: it is code of theirs,
    // which stays within its buffers or may do anything, as a program may.
    unsafe { OwnKernel::new(settings) }
}

/// The worker program that the config names.
#[cfg(target_os = "linux")]
pub(super) fn worker(path: &Path) -> WorkerProgram {
    // SAFETY: who gives the settings names the file as a worker.
    unsafe { WorkerProgram::new(path) }
}
