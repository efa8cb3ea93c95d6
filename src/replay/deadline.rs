//! Waiting for a device that may not come to an end.

use crate::backend::DeviceSlot;
use crate::error::{Error, ErrorKind, Result};
use std::time::Duration;

/// Waits for a slot, and gives its device up where that takes longer than it may.
///
/// # Errors
/// [`ErrorKind::Deadline`], and what the device says.
pub(super) fn wait_within(slot: &mut dyn DeviceSlot, deadline: Option<Duration>) -> Result<()> {
    let Some(deadline) = deadline else {
        return slot.wait();
    };
    match slot.wait_for(deadline)? {
        true => Ok(()),
        false => Err(give_up(slot, deadline)),
    }
}

/// Gives a slot's device up, which had `deadline` for what it was given.
pub(crate) fn give_up(slot: &mut dyn DeviceSlot, deadline: Duration) -> Error {
    let message = format!("the device has not finished the batch after {deadline:?}");
    let error = Error::new(ErrorKind::Deadline, message)
        .fix("see whether a kernel loops for ever on its input, or give batches a later deadline");
    slot.abandon(&error);
    error
}
