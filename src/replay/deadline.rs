//! Waiting for a device that may not come to an end.

use crate::backend::DeviceSlot;
use crate::error::{Error, ErrorKind, Result};
use std::time::Duration;

/// Waits for a device slot, and gives its device up where that takes longer than it may.
///
/// # Errors
/// [`ErrorKind::Deadline`], and what the device says.
pub(super) fn wait_within(
    device_slot: &mut dyn DeviceSlot,
    deadline: Option<Duration>,
) -> Result<()> {
    let Some(deadline) = deadline else {
        return device_slot.wait();
    };
    match device_slot.wait_for(deadline)? {
        true => Ok(()),
        false => Err(give_up(device_slot, deadline)),
    }
}

/// Gives a device slot's device up, which had `deadline` for what it was given.
pub(crate) fn give_up(device_slot: &mut dyn DeviceSlot, deadline: Duration) -> Error {
    let message = format!("the device has not finished the batch after {deadline:?}");
    let error = Error::new(ErrorKind::Deadline, message)
        .fix("see whether a kernel loops for ever on its input, or give batches a later deadline");
    device_slot.abandon(&error);
    error
}
