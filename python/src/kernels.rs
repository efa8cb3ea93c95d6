//! The kernels in the native module.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use tapeloop::Image;
use tapeloop::features::{self, KERNEL_TARGETS, NVCC_VERSION};

/// The version of the nvcc that compiled the kernels, the targets, such as `sm_90` and, for PTX,
/// `compute_75`, and the fat binary of each file of kernels, by name. Without nvcc they are empty,
/// and NVRTC compiles the kernels when an engine on a GPU starts.
#[pyfunction]
pub(crate) fn kernels(
    py: Python<'_>,
) -> (
    &'static str,
    Vec<&'static str>,
    BTreeMap<&'static str, Bound<'_, PyBytes>>,
) {
    let binary = |(name, image): (_, Arc<Image>)| {
        let binary = image.binary.as_deref()?;
        Some((name, PyBytes::new(py, binary)))
    };
    (
        NVCC_VERSION,
        KERNEL_TARGETS.split_whitespace().collect(),
        features::images().filter_map(binary).collect(),
    )
}
