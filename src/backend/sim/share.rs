//! What the device holds for one lane.

use super::access::Step;
use super::clock::{Clock, Epoch};
use super::device::Device;
use super::graph::Graph;
use super::schedule::Work;
use super::violation::{Violation, ViolationKind, queue_name};
use crate::backend::{Addresses, Block, GraphId, Lease, Queue, STAMPS, Space, Stamps};
use crate::error::{Error, ErrorKind, Result};
use crate::record::Access;
use std::collections::BTreeMap;
use std::thread::ThreadId;

/// A lane as the device knows it.
pub(super) struct Share {
    pub(super) streams: [usize; 3],
    pub(super) buffers: Vec<Addresses>,
    /// By their addresses.
    pub(super) adopted: BTreeMap<u64, Block>,
    leases: BTreeMap<u64, Held>,
    pub(super) graphs: BTreeMap<GraphId, Graph>,
    pub(super) capture: Option<Capture>,
    /// The last piece of work given to each queue, and what comes before it.
    pub(super) given: [Option<(Epoch, Clock)>; 3],
    mark: Option<(Epoch, Clock)>,
    /// How often the lane is still told that the mark is not reached.
    denials: u64,
    pub(super) stamps: Stamps,
    /// What became of work that was in flight when the device was lost. Until that has
    /// been reported, the lane takes no work and its host memory is closed.
    pub(super) gone: Option<Error>,
}

/// A block while the lane's work uses it.
struct Held {
    block: Block,
    lease: Lease,
    /// The last work that does.
    last: Epoch,
}

/// Blocks that were leased, and for which work before, if they were already.
pub(super) type Taken = Vec<(u64, Option<Epoch>)>;

/// A capture in progress.
pub(super) struct Capture {
    pub(super) steps: Vec<Step>,
    pub(super) thread: ThreadId,
    pub(super) invalid: Option<Error>,
}

impl Share {
    pub(super) fn new(streams: [usize; 3]) -> Self {
        Share {
            streams,
            buffers: Vec::new(),
            adopted: BTreeMap::new(),
            leases: BTreeMap::new(),
            graphs: BTreeMap::new(),
            capture: None,
            given: [const { None }; 3],
            mark: None,
            denials: 0,
            stamps: [None; STAMPS],
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
    /// Holds the blocks that steps use until the work at `last` is seen done, or
    /// none of them. Returns what to [`Device::unlease`] if that is not given.
    pub(super) fn lease(&mut self, lane: u32, steps: &[Step], last: Epoch) -> Result<Taken> {
        let mut taken = Taken::new();
        for (block, access) in steps.iter().flat_map(|step| &step.uses) {
            let address = block.address();
            let held = self.lane(lane).leases.get_mut(&address);
            let before = held.as_ref().map(|held| held.last);
            if let Some(held) = held
                && (held.lease.writes() || !access.writes())
            {
                held.last = last;
            } else if let Err(error) = self.take_lease(lane, block, *access, last) {
                self.unlease(lane, taken);
                return Err(error);
            }
            taken.push((address, before));
        }
        Ok(taken)
    }

    /// Takes back what [`Device::lease`] did.
    pub(super) fn unlease(&mut self, lane: u32, taken: Taken) {
        let leases = &mut self.lane(lane).leases;
        for (address, before) in taken.into_iter().rev() {
            match (before, leases.get_mut(&address)) {
                (Some(before), Some(held)) => held.last = before,
                _ => drop(leases.remove(&address)),
            }
        }
    }

    /// Keeps the loss for a lane whose work the host has not seen done.
    pub(super) fn keep_loss(&mut self, lane: u32, error: &Error) {
        let mark = self.lane(lane).mark.take();
        let is_unseen = mark.is_some_and(|(epoch, _)| !self.host.covers(epoch));
        if is_unseen {
            self.lane(lane).gone = Some(error.clone());
        }
    }

    /// The device came back from a loss without the lane's work.
    pub(super) fn forget_work(&mut self, lane: u32) {
        for (_, clock) in self.lane(lane).given.clone().into_iter().flatten() {
            self.host.join(&clock);
        }
        self.release(lane, true);
        self.lane(lane).capture = None;
    }

    /// Tells once what became of work that was in flight when the device was lost.
    pub(super) fn check_gone(&mut self, lane: u32) -> Result<()> {
        self.lane(lane).gone.take().map_or(Ok(()), Err)
    }

    fn take_lease(&mut self, lane: u32, block: &Block, access: Access, last: Epoch) -> Result<()> {
        // A lease to read becomes one to write: nobody else may hold one then.
        let before = self.lane(lane).leases.remove(&block.address());
        let before = before.map(|held| held.last);
        let (access, last, refused) = match (block.lease(access), before) {
            (Ok(lease), _) => (lease, last, Ok(())),
            // What was given before still reads it.
            (Err(error), Some(before)) => (block.lease(Access::Read)?, before, Err(error)),
            (Err(error), None) => return Err(error),
        };
        let held = Held {
            block: block.clone(),
            lease: access,
            last,
        };
        if before.is_none() && block.space() == Space::Pinned {
            // The host may have written it since.
            let memory = self.memory.at_mut(block.address());
            let bytes = memory.bytes.as_mut_slice();
            bytes.copy_from_slice(held.lease.shared());
            memory.write_down(&(0..block.bytes()));
        }
        self.lane(lane).leases.insert(block.address(), held);
        refused
    }

    /// Gives back the blocks whose work is done by `host`'s account, or all.
    fn release(&mut self, lane: u32, all: bool) {
        let host = self.host.clone();
        let leases = &mut self.lane(lane).leases;
        let over = leases
            .iter()
            .filter(|(_, held)| all || host.covers(held.last));
        let over: Vec<u64> = over.map(|(address, _)| *address).collect();
        for address in over {
            let held = self.lane(lane).leases.remove(&address);
            let mut held = held.expect("just seen");
            if held.lease.writes() && held.block.space() == Space::Pinned {
                let bytes = self.memory.at(address).bytes.as_slice();
                held.lease.exclusive().copy_from_slice(bytes);
            }
        }
    }

    /// Refuses a call that a capture forbids, by the lane that captures.
    pub(super) fn forbid_in_own_capture(&mut self, lane: u32, what: &str) -> Result<()> {
        let share = self.lane(lane);
        if share.capture.is_none() {
            return Ok(());
        }
        let message = format!("{what} during a capture on lane {lane}");
        let error = Error::usage(message.clone());
        self.violate(Violation::new(ViolationKind::Capture, message))?;
        Err(error)
    }

    /// Takes a planned failure of a call that gives work; refuses it while a loss of the
    /// lane has not been reported.
    pub(super) fn count_submission(&mut self, lane: u32) -> Result<()> {
        if let Some(error) = &self.lane(lane).gone {
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

    pub(super) fn join(&mut self, lane: u32, earlier: Queue, later: Queue) {
        let share = self.lane(lane);
        let Some((epoch, clock)) = share.given[earlier as usize].clone() else {
            return;
        };
        let stream = share.stream(later);
        self.schedule.stream(stream).clock.join(&clock);
        self.give(lane, later, Work::Wait(epoch));
    }

    pub(super) fn mark(&mut self, lane: u32) {
        let mark = self.give(lane, Queue::Download, Work::Mark);
        let denials = self.random.below(3);
        let share = self.lane(lane);
        (share.mark, share.denials) = (Some(mark), denials);
    }

    /// Whether the last mark is reached, and the host may know.
    pub(super) fn is_marked(&mut self, lane: u32) -> bool {
        let Some((epoch, _)) = self.lane(lane).mark else {
            return true;
        };
        let denied = self.lane(lane).denials > 0;
        let done = self.schedule.is_done(epoch);
        if done && denied {
            self.lane(lane).denials -= 1;
        }
        done && !denied
    }

    pub(super) fn run_to_mark(&mut self, lane: u32) -> Result<()> {
        match self.lane(lane).mark {
            Some((epoch, _)) => self.run_until(epoch),
            None => Ok(()),
        }
    }

    /// The host has seen everything before the last mark done.
    pub(super) fn see_mark(&mut self, lane: u32) {
        if let Some((_, clock)) = self.lane(lane).mark.clone() {
            self.host.join(&clock);
            self.release(lane, false);
        }
    }

    /// Ends a lane: waits for what it can, and frees the rest.
    pub(super) fn close(&mut self, lane: u32) {
        if self.lane(lane).capture.take().is_some() {
            let message = format!("lane {lane} was dropped during a capture");
            // Nobody is there to take an error.
            let _ = self.violate(Violation::new(ViolationKind::Capture, message));
        }
        for given in self.lane(lane).given.clone() {
            if let Some((epoch, clock)) = given
                && self.run_until(epoch).is_ok()
            {
                self.host.join(&clock);
            }
        }
        self.release(lane, true);
        let Some(share) = self.shares.remove(&lane) else {
            return;
        };
        for buffer in &share.buffers {
            self.memory.free(buffer.device);
            if let Some(host) = buffer.host {
                self.memory.free(host);
            }
        }
    }

    /// Refuses graphs with blocks that the lane may not use any more.
    pub(super) fn check_adopted(&mut self, lane: u32, graph: &Graph) -> Result<()> {
        for (node, step) in graph.steps.iter().enumerate() {
            for (block, _) in &step.uses {
                if self.lane(lane).adopted.contains_key(&block.address()) {
                    continue;
                }
                let operation = self.operation(step.action());
                let queue = queue_name(Queue::Compute);
                let message = format!(
                    "{operation} (lane {lane}, {queue} queue, node {node}) uses {block:?}, which \
                     the lane has disowned"
                );
                self.violate(Violation::new(ViolationKind::Stale, message))?;
            }
        }
        Ok(())
    }
}
