//! Errors that several backends have.

use super::TIMESTAMPS;
use crate::error::{Error, ErrorKind};

/// The error of allocations of a supervised device, which would be lost with its process.
pub fn no_allocations() -> Error {
    Error::new(
        ErrorKind::Unavailable,
        "a supervised device has no allocations, which would be lost with its process",
    )
    .fix(
        "use the slots' buffers, or Backend::allocate_filled for memory that work only reads, or \
         a device without supervision",
    )
}

/// The error for a timestamp that slots do not have.
pub fn no_timestamp(timestamp: u32) -> Error {
    Error::usage(format!(
        "there is no timestamp {timestamp}; a slot has {TIMESTAMPS}"
    ))
}
