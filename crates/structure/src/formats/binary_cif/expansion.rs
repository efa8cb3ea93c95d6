//! The limit of what columns decode to.
//!
//! Errors are [`ErrorKind::Input`](crate::ErrorKind::Input) for what no writer of the format makes,
//! and [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) beyond a limit or without memory.

use crate::Result;
use crate::read_limits::{ReadLimits, limit_error};

/// The bytes that the columns of a file may still expand to. Only RunLength makes more values than
/// there are bytes, so only its values count, and strings that rows repeat.
pub(super) struct ExpansionBudget {
    left: u64,
    limits: ReadLimits,
    bytes_max: u64,
}

impl ExpansionBudget {
    /// For a file of `file_bytes`, as packed.
    pub(super) fn new(limits: ReadLimits, file_bytes: usize) -> Self {
        let bytes_max = limits.unpacked_bytes_max(file_bytes);
        ExpansionBudget {
            left: bytes_max,
            limits,
            bytes_max,
        }
    }

    /// Takes `bytes` before they are decoded.
    ///
    /// # Errors
    /// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if fewer are left.
    pub(super) fn take(&mut self, bytes: u64) -> Result<()> {
        if let Some(left) = self.left.checked_sub(bytes) {
            self.left = left;
            return Ok(());
        }
        let what = format!(
            "the columns of the file decode to over {} bytes",
            self.bytes_max
        );
        let (field, max) = self.limits.unpacked_bytes_field(self.bytes_max);
        Err(limit_error(field, max, what))
    }
}
