//! Settings of the CUDA backend, and the paths that a caller vouches for.

use super::DeviceChoice;
use std::path::{Path, PathBuf};
use tapeloop_error::internal::LaterFields;

/// The file of a trusted NVRTC library.
///
/// Opening a library runs code in it, so safe code cannot name one:
///
/// ```compile_fail,E0133
/// let nvrtc = tapeloop_engine::backend::NvrtcLibrary::new("/tmp/libanything.so");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NvrtcLibrary(PathBuf);

impl NvrtcLibrary {
    /// The library in this file, which need not exist.
    ///
    /// # Safety
    /// A library that can be opened at `path` must be NVRTC: its functions are those of NVIDIA's
    /// header, and opening it does nothing else to the process.
    pub unsafe fn new(path: impl Into<PathBuf>) -> Self {
        NvrtcLibrary(path.into())
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// A trusted folder of compiled kernels.
///
/// Device code is loaded from the folder, so safe code cannot name one:
///
/// ```compile_fail,E0133
/// let cache = tapeloop_engine::backend::KernelCache::new("/tmp/anything");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelCache(PathBuf);

impl KernelCache {
    /// The folder at this path, which is created when it is first needed.
    ///
    /// # Safety
    /// Only this crate may write files to the folder, now and later.
    pub unsafe fn new(path: impl Into<PathBuf>) -> Self {
        KernelCache(path.into())
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// Settings of the CUDA backend; other backends ignore them. Later versions may add fields: end a literal with
/// `..CudaOptions::default()`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
pub struct CudaOptions {
    /// Which of the visible devices.
    pub device: DeviceChoice,
    /// Whether waits sleep instead of spinning: that frees the core, and each wait takes about
    /// 30 us longer.
    pub blocking_wait: bool,
    /// The NVRTC library, in preference to `TAPELOOP_NVRTC` and the usual names.
    // Paths are not deserialized: code that reads options has to vouch for them itself.
    #[cfg_attr(feature = "supervise", serde(skip))]
    pub nvrtc: Option<NvrtcLibrary>,
    /// The folder for compiled kernels, in preference to `TAPELOOP_CACHE_DIR` and the user's
    /// cache folder.
    #[cfg_attr(feature = "supervise", serde(skip))]
    pub kernel_cache: Option<KernelCache>,
    #[doc(hidden)]
    pub later: LaterFields,
}
