//! Locks a folder that one program writes to.

use crate::files::{Existing, open_to_write};
use crate::paths::shown;
use std::fs::{File, TryLockError};
use std::path::Path;
use tapeloop_error::{Error, Result};

/// The name of the lock file of an output folder or a packed set. The program that writes to the folder
/// holds a lock on it.
pub const LOCK: &str = ".tapeloop.lock";

/// Opens the lock file, and locks it against other runs, if the file system has locks. The file stays
/// empty.
///
/// # Errors
/// [`ErrorKind::Usage`](tapeloop_error::ErrorKind::Usage): another run holds the lock.
/// [`ErrorKind::Io`](tapeloop_error::ErrorKind::Io): the file cannot be opened for writing.
pub fn lock(path: &Path) -> Result<File> {
    let file = open_to_write(path, Existing::Kept)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(Error::usage("another run is writing here").fix("name another output"))
        }
        // Some network file systems have no locks; there the user must not start two runs.
        Err(TryLockError::Error(error)) => {
            tracing::debug!(
                %error,
                path = shown(path),
                "the file system cannot lock the output folder; start no second run into it"
            );
            Ok(file)
        }
    }
}
