//! Exclusive use of supervised backends: each serves one engine at a time.
//!
//! After a loss the engine runs items alone to find the one at fault. Work of another engine on the
//! same device would be lost too, and its faults would be blamed on those items.

use crate::backend::{Backend, BackendId};
use crate::error::{Error, Result};
use parking_lot::Mutex;

/// The supervised backends that are in use.
static CLAIMED: Mutex<Vec<BackendId>> = Mutex::new(Vec::new());

/// An engine's exclusive use of a supervised backend. Ends when it is dropped.
pub(super) struct ExclusiveUse(BackendId);

impl ExclusiveUse {
    /// `None` for a backend without supervision, which several engines may share.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) if another engine uses the backend.
    pub(super) fn acquire(backend: &dyn Backend) -> Result<Option<ExclusiveUse>> {
        if !backend.is_supervised() {
            return Ok(None);
        }
        let id = backend.id();
        let mut claimed = CLAIMED.lock();
        if claimed.contains(&id) {
            return Err(Error::usage(
                "the supervised backend is in use by another engine, or was given twice",
            )
            .fix("open a backend for each engine, and give each once"));
        }
        claimed.push(id);
        Ok(Some(ExclusiveUse(id)))
    }
}

impl Drop for ExclusiveUse {
    fn drop(&mut self) {
        CLAIMED.lock().retain(|id| *id != self.0);
    }
}
