//! [`ExternalEvent`]: an event of CUDA that other code of the process made.

use crate::error::{Error, ErrorKind};

/// An event of CUDA that other code of the process made, such as another library or PyTorch: what a
/// batch waits for ([`Slot::wait_for`](crate::pipeline::Slot::wait_for)), or what it records
/// ([`Slot::signal`](crate::pipeline::Slot::signal)). So the device orders the batch and the other
/// work, and the host waits for neither.
#[derive(Debug)]
pub struct ExternalEvent(u64);

impl ExternalEvent {
    /// The event with this handle, a `CUevent` or `cudaEvent_t`.
    ///
    /// # Safety
    /// `handle` is an event of the primary context of the device of the slot that it is given to, until
    /// the slot's batch was submitted, or the slot was dropped or cancelled without that.
    pub unsafe fn from_raw(handle: u64) -> Self {
        ExternalEvent(handle)
    }

    /// Its handle.
    pub fn handle(&self) -> u64 {
        self.0
    }
}

/// The error of a slot without [`DeviceSlot::stream`](super::DeviceSlot::stream).
pub(crate) fn no_stream() -> Error {
    no_events("the slot has no stream")
}

/// The error of a slot whose batches are not all in its stream.
pub(crate) fn no_events(reason: &str) -> Error {
    let message = format!("batches cannot wait for events of CUDA or record them: {reason}");
    Error::new(ErrorKind::Unavailable, message)
        .fix("use a GPU in this process, and mode graph or stream")
}
