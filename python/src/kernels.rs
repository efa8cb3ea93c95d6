//! The kernels in the native module.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tapeloop::features::{self, KERNEL_TARGETS, NVCC_VERSION};

/// The version of the nvcc that compiled the kernels, the targets, such as `sm_90` and, for PTX,
/// `compute_75`, and the fat binary. Without nvcc the texts and the binary are empty, and NVRTC
/// compiles the kernels when an engine on a GPU starts.
#[pyfunction]
pub(crate) fn kernels(py: Python<'_>) -> (&'static str, Vec<&'static str>, Bound<'_, PyBytes>) {
    let image = features::image();
    let binary = PyBytes::new(py, image.binary.as_deref().unwrap_or_default());
    (
        NVCC_VERSION,
        KERNEL_TARGETS.split_whitespace().collect(),
        binary,
    )
}
