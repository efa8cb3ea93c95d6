//! What the device holds for one slot.

use super::access::ResolvedOp;
use super::clock::{Clock, Epoch};
use super::device::Device;
use super::graph::Graph;
use super::schedule::Work;
use super::violation::{Violation, ViolationKind, queue_name};
use crate::backend::graphs::Graphs;
use crate::backend::{Addresses, Allocation, Lease, Queue, Space, TIMESTAMPS, Timestamps};
use crate::error::{Error, ErrorKind, Result};
use crate::record::Access;
use std::collections::BTreeMap;
use std::thread::ThreadId;

/// A slot as the device knows it.
pub(super) struct SlotState {
    pub(super) streams: [usize; 3],
    pub(super) buffers: Vec<Addresses>,
    /// By their addresses.
    pub(super) adopted: BTreeMap<u64, Allocation>,
    leases: BTreeMap<u64, Held>,
    pub(super) graphs: Graphs<Graph>,
    pub(super) capture: Option<Capture>,
    /// The last piece of work given to each queue, and what comes before it.
    pub(super) given: [Option<(Epoch, Clock)>; 3],
    fence: Option<(Epoch, Clock)>,
    /// How often the slot is still told that the mark is not reached.
    denials: u64,
    pub(super) timestamps: Timestamps,
    /// What became of work that was in flight when the device was lost. Until that has
    /// been reported, the slot takes no work and its host memory is closed.
    pub(super) gone: Option<Error>,
}

/// An allocation while the slot's work uses it.
struct Held {
    allocation: Allocation,
    lease: Lease,
    /// The last work that does.
    last: Epoch,
}

/// Allocations that were leased, and for which work before, if they were already.
pub(super) type Taken = Vec<(u64, Option<Epoch>)>;

/// A capture in progress.
pub(super) struct Capture {
    pub(super) steps: Vec<ResolvedOp>,
    pub(super) thread: ThreadId,
    pub(super) invalid: Option<Error>,
}

impl SlotState {
    pub(super) fn new(streams: [usize; 3]) -> Self {
        SlotState {
            streams,
            buffers: Vec::new(),
            adopted: BTreeMap::new(),
            leases: BTreeMap::new(),
            graphs: Graphs::default(),
            capture: None,
            given: [const { None }; 3],
            fence: None,
            denials: 0,
            timestamps: [None; TIMESTAMPS],
            gone: None,
        }
    }

    pub(super) fn stream(&self, queue: Queue) -> usize {
        self.streams[queue as usize]
    }

    pub(super) fn leases(&self) -> usize {
        self.leases.len()
    }
}

impl Device {
    /// Holds the allocations that steps use until the work at `last` is seen done, or
    /// none of them. Returns what to [`Device::unlease`] if that is not given.
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

    /// Takes back what [`Device::lease`] did.
    pub(super) fn unlease(&mut self, slot: u32, taken: Taken) {
        let leases = &mut self.slot(slot).leases;
        for (address, before) in taken.into_iter().rev() {
            match (before, leases.get_mut(&address)) {
                (Some(before), Some(held)) => held.last = before,
                _ => drop(leases.remove(&address)),
            }
        }
    }

    /// Keeps the loss for a slot whose work the host has not seen done.
    pub(super) fn keep_loss(&mut self, slot: u32, error: &Error) {
        let fence = self.slot(slot).fence.take();
        let is_unseen = fence.is_some_and(|(epoch, _)| !self.host.covers(epoch));
        if is_unseen {
            self.slot(slot).gone = Some(error.clone());
        }
    }

    /// The device came back from a loss without the slot's work.
    pub(super) fn forget_work(&mut self, slot: u32) {
        for (_, clock) in self.slot(slot).given.clone().into_iter().flatten() {
            self.host.join(&clock);
        }
        self.release(slot, true);
        self.slot(slot).capture = None;
    }

    /// Tells once what became of work that was in flight when the device was lost.
    pub(super) fn check_gone(&mut self, slot: u32) -> Result<()> {
        self.slot(slot).gone.take().map_or(Ok(()), Err)
    }

    fn take_lease(
        &mut self,
        slot: u32,
        allocation: &Allocation,
        access: Access,
        last: Epoch,
    ) -> Result<()> {
        // A lease to read becomes one to write: nobody else may hold one then.
        let before = self.slot(slot).leases.remove(&allocation.address());
        let before = before.map(|held| held.last);
        let (access, last, refused) = match (allocation.lease(access), before) {
            (Ok(lease), _) => (lease, last, Ok(())),
            // What was given before still reads it.
            (Err(error), Some(before)) => (allocation.lease(Access::Read)?, before, Err(error)),
            (Err(error), None) => return Err(error),
        };
        let held = Held {
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

    /// Gives back the allocations whose work is done by `host`'s account, or all.
    fn release(&mut self, slot: u32, all: bool) {
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

    /// Takes a planned failure of a call that gives work; refuses it while a loss of the
    /// slot has not been reported.
    pub(super) fn count_submission(&mut self, slot: u32) -> Result<()> {
        if let Some(error) = &self.slot(slot).gone {
            return Err(error.clone());
        }
        let Some(error) = self.plan.submission() else {
            return Ok(());
        };
        if !self.supervised {
            return Err(error);
        }
        // As a worker process is lost with any error of a batch.
        let error = Error::new(ErrorKind::Device, error.message());
        self.lose(error.clone());
        Err(error)
    }

    pub(super) fn join(&mut self, slot: u32, earlier: Queue, later: Queue) {
        let share = self.slot(slot);
        let Some((epoch, clock)) = share.given[earlier as usize].clone() else {
            return;
        };
        let stream = share.stream(later);
        self.schedule.stream(stream).clock.join(&clock);
        self.give(slot, later, Work::Wait(epoch));
    }

    pub(super) fn fence(&mut self, slot: u32) {
        let fence = self.give(slot, Queue::Download, Work::Fence);
        let denials = self.random.below(3);
        let share = self.slot(slot);
        (share.fence, share.denials) = (Some(fence), denials);
    }

    /// Whether the last mark is reached, and the host may know.
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

    /// The host has seen everything before the last mark done.
    pub(super) fn see_fence(&mut self, slot: u32) {
        if let Some((_, clock)) = self.slot(slot).fence.clone() {
            self.host.join(&clock);
            self.release(slot, false);
        }
    }

    /// Ends a slot: waits for what it can, and frees the rest.
    pub(super) fn close(&mut self, slot: u32) {
        for given in self.slot(slot).given.clone() {
            if let Some((epoch, clock)) = given
                && self.run_until(epoch).is_ok()
            {
                self.host.join(&clock);
            }
        }
        self.release(slot, true);
        let Some(share) = self.slots.remove(&slot) else {
            return;
        };
        for buffer in &share.buffers {
            self.memory.free(buffer.device);
            if let Some(host) = buffer.host {
                self.memory.free(host);
            }
        }
    }

    /// Refuses graphs with allocations that the slot may not use any more.
    pub(super) fn check_adopted(&mut self, slot: u32, graph: &Graph) -> Result<()> {
        for (node, step) in graph.steps.iter().enumerate() {
            for (allocation, _) in &step.uses {
                if self.slot(slot).adopted.contains_key(&allocation.address()) {
                    continue;
                }
                let operation = self.operation(step.action());
                let queue = queue_name(Queue::Compute);
                let message = format!(
                    "{operation} (slot {slot}, {queue} queue, node {node}) uses {allocation:?}, which \
                     the slot has disowned"
                );
                self.violate(Violation::new(ViolationKind::Stale, message))?;
            }
        }
        Ok(())
    }
}
