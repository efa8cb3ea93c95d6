//! Waits for a device with a deadline.

use crate::backend::DeviceSlot;
use crate::error::{Error, ErrorKind, Result};
use std::time::Duration;

/// Waits for a slot. Marks its device as lost if that takes longer than `deadline`.
///
/// # Errors
/// [`ErrorKind::Deadline`] after the deadline; as [`DeviceSlot::wait`].
pub(super) fn wait_within(slot: &mut dyn DeviceSlot, deadline: Option<Duration>) -> Result<()> {
    let Some(deadline) = deadline else {
        return slot.wait();
    };
    if slot.wait_for(deadline)? {
        Ok(())
    } else {
        Err(give_up(slot, deadline))
    }
}

/// Marks the device of a slot as lost, as it missed its deadline. Returns the error of its work,
/// which is the reason of the loss if the device was lost before.
pub(crate) fn give_up(slot: &mut dyn DeviceSlot, deadline: Duration) -> Error {
    let message = format!("the device has not finished the batch after {deadline:?}");
    let error = Error::new(ErrorKind::Deadline, message)
        .fix("see whether a kernel loops for ever on its input, or give batches a later deadline");
    slot.abandon(&error)
}
