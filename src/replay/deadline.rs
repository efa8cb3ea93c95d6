//! Waiting for a device that may not come to an end.

use crate::backend::Lane;
use crate::error::{Error, ErrorKind, Result};
use std::time::Duration;

/// Waits for a lane, and gives its device up where that takes longer than it may.
///
/// # Errors
/// [`ErrorKind::Deadline`], and what the device says.
pub(super) fn wait_within(lane: &mut dyn Lane, deadline: Option<Duration>) -> Result<()> {
    let Some(deadline) = deadline else {
        return lane.wait();
    };
    match lane.wait_for(deadline)? {
        true => Ok(()),
        false => Err(give_up(lane, deadline)),
    }
}

/// Gives a lane's device up, which had `deadline` for what it was given.
pub(crate) fn give_up(lane: &mut dyn Lane, deadline: Duration) -> Error {
    let message = format!("the device has not finished the batch after {deadline:?}");
    let error = Error::new(ErrorKind::Deadline, message)
        .fix("see whether a kernel loops for ever on its input, or give batches a later deadline");
    lane.abandon(&error);
    error
}
