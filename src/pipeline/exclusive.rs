//! A supervised backend serves one engine at a time.
//!
//! After a loss the engine runs items alone to find the one at fault. Work of another
//! engine on the same device would be lost with them, and its faults blamed on them.

use crate::backend::{Backend, BackendId};
use crate::error::{Error, Result};
use parking_lot::Mutex;

/// The supervised backends that engines run on.
static CLAIMED: Mutex<Vec<BackendId>> = Mutex::new(Vec::new());

/// An engine's right to a supervised backend, until it is dropped.
pub(super) struct ExclusiveUse(BackendId);

impl ExclusiveUse {
    /// `None` for a backend without supervision, which several engines may use.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) if an engine has the backend.
    pub(super) fn of(backend: &dyn Backend) -> Result<Option<ExclusiveUse>> {
        if !backend.is_supervised() {
            return Ok(None);
        }
        let id = backend.id();
        let mut claimed = CLAIMED.lock();
        if claimed.contains(&id) {
            return Err(Error::usage(
                "an engine has this backend, and a supervised one serves one engine",
            )
            .fix("open a backend for each engine, and give it once"));
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
