//! What a recording's names stand for in one slot.

use crate::backend::{Addresses, Backend, FunctionId, Lane};
use crate::error::{Context, Result};
use crate::record::Recording;

/// The functions of a recording's launches on one device, in order.
pub(crate) type Functions = Vec<FunctionId>;

/// Loads the kernels of a recording.
///
/// # Errors
/// By the kernel's name, when the backend cannot load it.
pub(crate) fn load_functions(backend: &dyn Backend, recording: &Recording) -> Result<Functions> {
    let load = |kernel| backend.load(kernel);
    recording
        .kernels()
        .map(|kernel| load(kernel).within(|| format!("kernel {}", kernel.name)))
        .collect()
}

/// Addresses of a recording's buffers in one slot, and its functions on the
/// slot's device.
#[derive(Clone, Debug)]
pub struct Bindings {
    /// By buffer index.
    pub addresses: Vec<Addresses>,
    /// By launch, in order.
    pub functions: Vec<FunctionId>,
}

impl Bindings {
    /// The recording's buffers as they lie in `lane`.
    pub fn new(recording: &Recording, lane: &dyn Lane, functions: Vec<FunctionId>) -> Self {
        Bindings {
            addresses: recording
                .buffers_by_id()
                .map(|(id, _)| lane.addresses(id))
                .collect(),
            functions,
        }
    }
}
