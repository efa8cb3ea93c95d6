//! The words of a loop in memory that the worker shares, as the loop's host sees them.

use super::arena::LoopFile;
use super::process::Workers;
use crate::backend::loop_words::{LoopMemory, LoopWords};
use crate::error::Result;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// The words of a loop, which stay when the worker is restarted.
pub(super) struct SharedWords {
    file: LoopFile,
    workers: Arc<Workers>,
}

impl SharedWords {
    /// Allocates words, all zero.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the system refuses the memory.
    pub(super) fn new(workers: &Arc<Workers>) -> Result<SharedWords> {
        Ok(SharedWords {
            file: LoopFile::new()?,
            workers: Arc::clone(workers),
        })
    }

    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.file.file()
    }
}

impl LoopMemory for SharedWords {
    fn words(&self) -> &LoopWords {
        self.file.words()
    }

    /// Until another worker is started, for which all loops count as parked.
    fn is_lost(&self) -> bool {
        self.workers.is_lost()
    }
}
