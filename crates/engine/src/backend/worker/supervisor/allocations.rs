//! Allocations of a supervised device.

use super::super::message::Request;
use super::super::restart_state::FilledAllocation;
use super::{Supervisor, SupervisorCore, loses_worker};
use crate::backend::{Allocation, AllocationKey, Contents, Region, Space};
use crate::error::Result;
use std::sync::Arc;

impl Supervisor {
    /// Takes an allocation with these contents in this worker, for which it waits, and in all later ones.
    /// After an error of the device the worker does not keep it.
    pub(in super::super) fn allocate_filled(
        self: &Arc<Self>,
        key: AllocationKey,
        contents: &Arc<Contents>,
    ) -> Result<Allocation> {
        let filled = FilledAllocation::new(contents);
        let bytes = filled.bytes();
        let mut core = self.core()?;
        self.workers.check()?;
        let address = core.restart_state.free_address(bytes);
        let sent = filled.send(address, &mut core.link);
        let sent = self.check_link(&core.link, sent)?;
        // Its contents may have been refused after it was taken.
        if sent.is_err() {
            self.free_in_worker(&mut core, address);
        }
        self.check_answer(sent)?;
        core.restart_state.add_filled(address, filled);
        let supervisor = Arc::clone(self);
        let region = Box::new(FilledRegion {
            address,
            supervisor,
        });
        let memory = Allocation::new(key, Space::Device, address, bytes, region);
        Ok(memory.read_only())
    }

    /// Gives an allocation other contents of the same size in this worker, for which it waits, and in all
    /// later ones. If this worker is lost, the next one gets them. An error of the copy that leaves the worker
    /// alive is returned, and nothing is kept.
    pub(in super::super) fn refill(&self, address: u64, contents: &Arc<Contents>) -> Result<()> {
        let mut core = self.core()?;
        let filled = FilledAllocation::new(contents);
        let sent = match self.workers.check() {
            Ok(()) => filled.send_contents(address, &mut core.link),
            Err(_) => Ok(Ok(())),
        };
        // An error of the link is the loss of the worker, as is one that ends its device.
        let copied = self.check_link(&core.link, sent).unwrap_or(Ok(()));
        match self.check_answer(copied) {
            Err(error) if !loses_worker(&error) => return Err(error),
            _ => {}
        }
        core.restart_state.refill(address, filled);
        Ok(())
    }

    /// Frees the allocations that neither a handle nor a graph uses.
    pub(super) fn free_unused(&self, core: &mut SupervisorCore) {
        for address in core.restart_state.take_unused() {
            self.free_in_worker(core, address);
        }
    }

    fn free_in_worker(&self, core: &mut SupervisorCore, address: u64) {
        if self.workers.check().is_ok() {
            let sent = core.link.send(&Request::Free { address });
            // A lost worker has freed it too.
            let _ = self.check_link(&core.link, sent);
        }
    }
}

/// An allocation as this process has it.
struct FilledRegion {
    address: u64,
    supervisor: Arc<Supervisor>,
}

impl Region for FilledRegion {}

impl Drop for FilledRegion {
    fn drop(&mut self) {
        let Ok(mut core) = self.supervisor.core() else {
            return;
        };
        core.restart_state.release(self.address);
        self.supervisor.free_unused(&mut core);
    }
}
