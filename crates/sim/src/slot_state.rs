//! The state of one slot on the device.

use super::access::ResolvedOp;
use super::clock::{Epoch, VectorClock};
use super::device::SimDevice;
use super::graph::Graph;
use super::schedule::StreamWork;
use super::violation::{Violation, ViolationKind};
use std::collections::BTreeMap;
use std::thread::ThreadId;
use tapeloop_engine::backend::contract::{Addresses, Lease, TIMESTAMPS, Timestamps};
use tapeloop_engine::backend::{Allocation, Space};
use tapeloop_engine::error::{Error, ErrorKind, Result};
use tapeloop_engine::internal::{Graphs, NodeRole};
use tapeloop_engine::record::Access;

/// A slot, as the device knows it.
pub(super) struct SlotState {
    pub(super) stream: usize,
    pub(super) buffers: Vec<Addresses>,
    /// The adopted allocations, by address.
    pub(super) adopted: BTreeMap<u64, Allocation>,
    leases: BTreeMap<u64, HeldAllocation>,
    pub(super) graphs: Graphs<Graph>,
    pub(super) capture: Option<Capture>,
    /// The last work, and the work ordered before it.
    pub(super) given: Option<(Epoch, VectorClock)>,
    fence: Option<(Epoch, VectorClock)>,
    /// The last kernel that was launched by itself, what it is for programmatic dependent launch, and
    /// the work ordered before it.
    pub(super) kernel: Option<(Epoch, NodeRole, VectorClock)>,
    /// How many polls still report that the fence is not reached although it is: a host sees the end of work
    /// late, and must not rely on seeing it at once. Polls before the end do not count.
    denials: u64,
    pub(super) timestamps: Timestamps,
    /// The error of work that was in flight when the device was lost. Until it is reported the slot
    /// takes no work and its host memory is closed.
    pub(super) gone: Option<Error>,
}

/// An allocation that work of the slot uses.
struct HeldAllocation {
    allocation: Allocation,
    lease: Lease,
    /// The last work that uses it.
    last: Epoch,
}

/// Leases to roll back if the submission fails: the address, and the last work that used the
/// allocation before.
pub(super) type Taken = Vec<(u64, Option<Epoch>)>;

/// A capture in progress.
pub(super) struct Capture {
    pub(super) steps: Vec<ResolvedOp>,
    pub(super) thread: ThreadId,
    pub(super) invalid: Option<Error>,
}

impl SlotState {
    pub(super) fn new(stream: usize) -> Self {
        SlotState {
            stream,
            buffers: Vec::new(),
            adopted: BTreeMap::new(),
            leases: BTreeMap::new(),
            graphs: Graphs::default(),
            capture: None,
            given: None,
            fence: None,
            kernel: None,
            denials: 0,
            timestamps: [None; TIMESTAMPS],
            gone: None,
        }
    }

    pub(super) fn leases(&self) -> usize {
        self.leases.len()
    }
}

impl SimDevice {
    /// Leases the allocations of operations until the work at `last` is seen done; none of them
    /// after an error. Returns what to pass to [`SimDevice::unlease`] if the submission fails.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for an allocation that other work, the host or a guard uses.
    pub(super) fn lease(&mut self, slot: u32, steps: &[ResolvedOp], last: Epoch) -> Result<Taken> {
        let mut taken = Taken::new();
        for (allocation, access) in steps.iter().flat_map(|step| &step.uses) {
            let address = allocation.address();
            let held = self.slot(slot).leases.get_mut(&address);
            let before = held.as_ref().map(|held| held.last);
            if let Some(held) = held
                && (held.lease.writes() || !access.writes())
            {
                held.last = last;
            } else if let Err(error) = self.take_lease(slot, allocation, *access, last) {
                self.unlease(slot, taken);
                return Err(error);
            }
            taken.push((address, before));
        }
        Ok(taken)
    }

    /// Reverts [`SimDevice::lease`].
    pub(super) fn unlease(&mut self, slot: u32, taken: Taken) {
        let leases = &mut self.slot(slot).leases;
        for (address, before) in taken.into_iter().rev() {
            match (before, leases.get_mut(&address)) {
                (Some(before), Some(held)) => held.last = before,
                _ => drop(leases.remove(&address)),
            }
        }
    }

    /// Keeps the error of a loss for a slot with work that the host has not seen done.
    pub(super) fn keep_loss(&mut self, slot: u32, error: &Error) {
        let fence = self.slot(slot).fence.take();
        let is_unseen = fence.is_some_and(|(epoch, _)| !self.host.covers(epoch));
        if is_unseen {
            self.slot(slot).gone = Some(error.clone());
        }
    }

    /// Drops the work of a slot after a loss of the device.
    pub(super) fn forget_work(&mut self, slot: u32) {
        if let Some((_, clock)) = self.slot(slot).given.clone() {
            self.host.join(&clock);
        }
        self.release(slot, true);
        self.slot(slot).capture = None;
    }

    /// Takes the error of lost work, which is reported once.
    pub(super) fn take_loss(&mut self, slot: u32) -> Result<()> {
        self.slot(slot).gone.take().map_or(Ok(()), Err)
    }

    /// Leases an allocation for work until `last`. Pinned memory that the slot did not hold is
    /// copied to the model, as the host may have written it.
    ///
    /// # Errors
    /// As [`SimDevice::lease`]. A read lease of earlier work is kept.
    fn take_lease(
        &mut self,
        slot: u32,
        allocation: &Allocation,
        access: Access,
        last: Epoch,
    ) -> Result<()> {
        // A read lease is replaced by a write lease, which needs that no other lease exists.
        let before = self.slot(slot).leases.remove(&allocation.address());
        let before = before.map(|held| held.last);
        let (access, last, refused) = match (allocation.lease(access), before) {
            (Ok(lease), _) => (lease, last, Ok(())),
            // Earlier work still reads it.
            (Err(error), Some(before)) => (allocation.lease(Access::Read)?, before, Err(error)),
            (Err(error), None) => return Err(error),
        };
        let held = HeldAllocation {
            allocation: allocation.clone(),
            lease: access,
            last,
        };
        if before.is_none() && allocation.space() == Space::Pinned {
            // The host may have written it since.
            let memory = self.memory.at_mut(allocation.address());
            let bytes = memory.bytes.as_mut_slice();
            bytes.copy_from_slice(held.lease.shared());
            memory.write_down(&(0..allocation.bytes()));
        }
        self.slot(slot).leases.insert(allocation.address(), held);
        refused
    }

    /// Releases the allocations whose work the host has seen done, or all. What work wrote to
    /// pinned memory is copied to where the host sees it.
    pub(super) fn release(&mut self, slot: u32, all: bool) {
        let host = self.host.clone();
        let leases = &mut self.slot(slot).leases;
        let over = leases
            .iter()
            .filter(|(_, held)| all || host.covers(held.last));
        let over: Vec<u64> = over.map(|(address, _)| *address).collect();
        for address in over {
            let held = self.slot(slot).leases.remove(&address);
            let mut held = held.expect("just seen");
            if held.lease.writes() && held.allocation.space() == Space::Pinned {
                let bytes = self.memory.at(address).bytes.as_slice();
                held.lease.exclusive().copy_from_slice(bytes);
            }
        }
    }

    /// Fails if a fault is planned for this submission, or if a loss of the slot has not been
    /// reported.
    ///
    /// # Errors
    /// That fault, which loses a supervised device; that loss.
    pub(super) fn count_submission(&mut self, slot: u32) -> Result<()> {
        if let Some(error) = &self.slot(slot).gone {
            return Err(error.clone());
        }
        let Some(error) = self.plan.count_submission() else {
            return Ok(());
        };
        if !self.supervised {
            return Err(error);
        }
        // Stricter than a worker, which loses its device at a refused fence, and at a refused launch the batch
        // alone. Without the driver's code this is an error of the device ([`Error::scope`]).
        let error = Error::new(ErrorKind::Device, error.message());
        self.lose(error.clone());
        Err(error)
    }

    /// Runs all work of the slot, which the host has then seen done, and releases the slot's leases.
    ///
    /// # Errors
    /// The loss of the device.
    pub(super) fn run_all(&mut self, slot: u32) -> Result<()> {
        if let Some((epoch, clock)) = self.slot(slot).given.clone()
            && !self.host.covers(epoch)
        {
            self.run_until(epoch)?;
            self.host.join(&clock);
        }
        self.release(slot, false);
        Ok(())
    }

    /// Notes a batch that a loop is about to be given, as work and as a fence behind it.
    pub(super) fn note_given(&mut self, slot: u32, given: (Epoch, VectorClock)) {
        let state = self.slot(slot);
        state.given = Some(given.clone());
        state.fence = Some(given);
    }

    pub(super) fn fence(&mut self, slot: u32) {
        let fence = self.submit_work(slot, StreamWork::Fence);
        // None after some seeds, so that an end is also seen at once.
        let denials = self.random.below(3);
        let state = self.slot(slot);
        (state.fence, state.denials) = (Some(fence), denials);
    }

    /// Whether the last fence is reached and may be reported.
    pub(super) fn is_fence_reached(&mut self, slot: u32) -> bool {
        let Some((epoch, _)) = self.slot(slot).fence else {
            return true;
        };
        let denied = self.slot(slot).denials > 0;
        let done = self.schedule.is_done(epoch);
        if done && denied {
            self.slot(slot).denials -= 1;
        }
        done && !denied
    }

    pub(super) fn run_to_fence(&mut self, slot: u32) -> Result<()> {
        match self.slot(slot).fence {
            Some((epoch, _)) => self.run_until(epoch),
            None => Ok(()),
        }
    }

    /// The host has seen all work before the last fence done.
    pub(super) fn see_fence(&mut self, slot: u32) {
        if let Some((_, clock)) = self.slot(slot).fence.clone() {
            self.host.join(&clock);
            self.release(slot, false);
        }
    }

    /// Closes a slot: waits for its work where possible, and frees its memory.
    pub(super) fn close(&mut self, slot: u32) {
        if let Some((epoch, clock)) = self.slot(slot).given.clone()
            && self.run_until(epoch).is_ok()
        {
            self.host.join(&clock);
        }
        self.release(slot, true);
        let Some(state) = self.slots.remove(&slot) else {
            return;
        };
        for buffer in &state.buffers {
            self.memory.free(buffer.device);
            if let Some(host) = buffer.host {
                self.memory.free(host);
            }
        }
    }

    /// Refuses a graph with an allocation that the slot has disowned.
    pub(super) fn check_adopted(&mut self, slot: u32, graph: &Graph) -> Result<()> {
        for (node, step) in graph.steps.iter().enumerate() {
            for (allocation, _) in &step.uses {
                if self.slot(slot).adopted.contains_key(&allocation.address()) {
                    continue;
                }
                let operation = self.operation(step.action());
                let message = format!(
                    "{operation} (slot {slot}, node {node}) uses {allocation:?}, which the slot has \
                     disowned"
                );
                self.violate(Violation::new(ViolationKind::Stale, message))?;
            }
        }
        Ok(())
    }
}
