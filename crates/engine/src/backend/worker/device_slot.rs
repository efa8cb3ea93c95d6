//! A slot whose device is in the worker process.

use super::addresses::addresses;
use super::arena::{
    ArenaPart, BATCH_FAILED, CompletionFlag, CompletionFlags, DEVICE_FAILED, NO_FAILURE,
};
use super::message::{Request, SlotCall, Spec, WorkerReply};
use super::process::Fate;
use super::served_slot::as_loss;
use super::supervisor::Supervisor;
use crate::backend::loops::check_loop_in_worker;
use crate::backend::{
    Addresses, Allocation, AllocationKey, BackendId, Built, DeviceSlot, DeviceSlotId, GraphId,
    GraphSource, HostViews, Layout, Op, Residency, Timestamps, host_ns,
};
use crate::error::{Error, ErrorScope, Result};
use crate::record::BufferId;
use rustix::thread::futex;
use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;
use std::time::{Duration, Instant};

/// How long a wait spins before it sleeps: short batches end meanwhile, and need no wake-up.
const SPIN_TIME: Duration = Duration::from_micros(20);
/// The time between two checks of a wait that the worker lives: they take a lock and call the system, and
/// a worker that ended without a word is noticed so much later at most.
const ALIVE_CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// The state that slots which are opened together share.
pub(super) struct SlotsShared {
    pub(super) backend: BackendId,
    /// The name of the worker's backend.
    pub(super) device: &'static str,
    pub(super) allocation_key: AllocationKey,
    pub(super) layout: Arc<Layout>,
    pub(super) flags: Arc<CompletionFlags>,
    pub(super) supervisor: Arc<Supervisor>,
}

pub(super) struct WorkerSlot {
    id: DeviceSlotId,
    /// The name of the worker's backend.
    device: &'static str,
    allocation_key: AllocationKey,
    /// The number in requests. A later slot may get the same.
    slot: u32,
    layout: Arc<Layout>,
    host: ArenaPart,
    /// The work since the last fence.
    steps: Vec<SlotCall>,
    /// The numbers of the last fence that was set, and of the last one that was seen reached or
    /// lost. Numbers wrap, and are only compared for equality.
    fence_set: u32,
    fence_seen: u32,
    /// The worker that got the last fence.
    generation: u64,
    /// When a wait last checked that the worker lives, or the last fence was set.
    alive_checked_at: Instant,
    flags: Arc<CompletionFlags>,
    /// The index of the slot's flag in `flags`.
    index: usize,
    supervisor: Arc<Supervisor>,
}

impl WorkerSlot {
    /// The `index`-th of the slots that were opened together.
    pub(super) fn new(
        opened: &SlotsShared,
        index: usize,
        slot: u32,
        host: ArenaPart,
    ) -> WorkerSlot {
        WorkerSlot {
            id: DeviceSlotId::new(opened.backend),
            device: opened.device,
            allocation_key: opened.allocation_key,
            slot,
            layout: Arc::clone(&opened.layout),
            host,
            steps: Vec::new(),
            fence_set: 0,
            fence_seen: 0,
            generation: 0,
            alive_checked_at: Instant::now(),
            flags: Arc::clone(&opened.flags),
            index,
            supervisor: Arc::clone(&opened.supervisor),
        }
    }

    fn assert_quiet(&self) {
        assert!(
            self.is_quiet(),
            "host memory is touched while the slot works: set a fence behind the work, then wait"
        );
    }

    fn flag(&self) -> &CompletionFlag {
        self.flags.slot(self.index)
    }

    /// Whether the last fence was not seen reached or lost.
    fn is_in_flight(&self) -> bool {
        self.fence_seen != self.fence_set
    }

    /// Notes that the process with the slot's work has ended: no fence is awaited any more.
    fn note_loss(&mut self) {
        self.fence_seen = self.fence_set;
        self.flag().clear_failure();
    }

    /// Whether the last fence is reached. The error of a batch is reported once. The loss of a
    /// worker is reported once, when its process has ended: until then its device may write to the
    /// slot's host memory. If the process does not end, each call returns the error, and the memory
    /// stays closed.
    fn poll_fence(&mut self) -> Result<bool> {
        if !self.is_in_flight() {
            return Ok(true);
        }
        let flag = self.flag();
        let is_reached = flag.done.load(Acquire) == self.fence_set;
        // After the fence, as the worker stores the failure before it.
        let failure = flag.failure.load(Acquire);
        if is_reached && failure == NO_FAILURE {
            self.fence_seen = self.fence_set;
            return Ok(true);
        }
        match self.supervisor.fate(self.generation) {
            Fate::Runs => {}
            Fate::Ending => return Ok(false),
            Fate::Ended(error) => {
                self.note_loss();
                return Err(error);
            }
            Fate::Stuck(error) => return Err(error),
        }
        if failure == DEVICE_FAILED || (is_reached && failure == BATCH_FAILED) {
            return self.ask_for_error(is_reached);
        }
        if self.alive_checked_at.elapsed() > ALIVE_CHECK_INTERVAL {
            self.alive_checked_at = Instant::now();
            self.supervisor.check_alive();
        }
        Ok(false)
    }

    /// Asks for the error that the completion flag announces. An error of the device loses the
    /// worker, and is reported when its process has ended. An error of a batch is reported when its
    /// fence is reached: until then the worker uses the slot's memory.
    fn ask_for_error(&mut self, is_reached: bool) -> Result<bool> {
        let request = Request::TakeError { slot: self.slot };
        match self.supervisor.ask_worker(&request, self.generation) {
            Ok(WorkerReply::Done(Err(error))) if error.scope() >= ErrorScope::Device => {
                self.supervisor.lose(self.generation, &error);
            }
            Ok(WorkerReply::Done(Err(error))) if is_reached => {
                self.fence_seen = self.fence_set;
                return Err(error);
            }
            // The flag announced an error of the device, or one of a batch at its fence.
            Ok(_) => drop(self.supervisor.lose_garbled()),
            // The worker is lost.
            Err(_) => {}
        }
        Ok(false)
    }

    /// Waits until `until`, or without a limit. Returns whether the work is done.
    fn wait_until(&mut self, until: Option<Instant>) -> Result<bool> {
        let start = Instant::now();
        loop {
            // Before the poll: if the fence is reached after it, the sleep ends at once.
            let reached = self.flag().done.load(Acquire);
            if self.poll_fence()? {
                return Ok(true);
            }
            let now = Instant::now();
            let left = until.map_or(ALIVE_CHECK_INTERVAL, |until| {
                until.saturating_duration_since(now)
            });
            if left.is_zero() {
                return Ok(false);
            }
            if now - start < SPIN_TIME {
                std::hint::spin_loop();
                continue;
            }
            let left = left.min(ALIVE_CHECK_INTERVAL).as_nanos();
            let timeout = futex::Timespec {
                tv_sec: const {
                    assert!(ALIVE_CHECK_INTERVAL.as_secs() == 0);
                    0
                },
                tv_nsec: left as i64,
            };
            let word = &self.flag().done;
            // The next check decides, whatever ended the sleep.
            let _ = futex::wait(word, futex::Flags::empty(), reached, Some(&timeout));
        }
    }
}

// SAFETY: buffers lie where the layout has them, apart from each other, and `assert_quiet`
// keeps the host out while the slot works.
unsafe impl DeviceSlot for WorkerSlot {
    fn id(&self) -> &DeviceSlotId {
        &self.id
    }

    fn is_quiet(&self) -> bool {
        self.steps.is_empty() && !self.is_in_flight()
    }

    fn buffer_count(&self) -> usize {
        self.layout.buffers.len()
    }

    fn addresses(&self, buffer: BufferId) -> Addresses {
        addresses(self.slot, &self.layout, buffer)
    }

    fn host(&self, buffer: BufferId) -> &[u8] {
        self.assert_quiet();
        let place = &self.layout.buffers[buffer.index()];
        let offset = place.host.expect("the host sees the buffer");
        &self.host.as_slice()[offset..offset + place.bytes]
    }

    fn host_mut(&mut self, buffers: &[BufferId]) -> HostViews<'_> {
        self.assert_quiet();
        let places = &self.layout.buffers;
        let mut rest = self.host.as_mut_slice();
        let mut cut = 0;
        let view = |buffer: &BufferId| {
            let place = &places[buffer.index()];
            let offset = place.host.expect("the host sees the buffer");
            let skipped = offset.checked_sub(cut).expect("buffers ascend, each once");
            let (_, from) = std::mem::take(&mut rest).split_at_mut(skipped);
            let (view, after) = from.split_at_mut(place.bytes);
            (rest, cut) = (after, offset + place.bytes);
            view
        };
        buffers.iter().map(view).collect()
    }

    /// The worker's slots have adopted all allocations.
    fn adopt(&mut self, allocation: &Allocation) -> Result<()> {
        allocation.check_key(self.allocation_key)
    }

    fn disown(&mut self, _: &Allocation) {}

    unsafe fn enqueue(&mut self, op: &Op) -> Result<()> {
        // The worker checks it, and reports what it refuses with the fence.
        self.steps.push(SlotCall::Op(op.clone()));
        Ok(())
    }

    unsafe fn make_graph(
        &mut self,
        source: GraphSource<'_>,
        into: Option<GraphId>,
    ) -> Result<(GraphId, Built)> {
        source.check()?;
        self.supervisor.build(self.slot, Spec::new(source), into)
    }

    unsafe fn set_params(&mut self, graph: GraphId, node: usize, op: &Op) -> Result<()> {
        self.supervisor.set_params(self.slot, graph, node, op)
    }

    fn graph_ops(&self, graph: GraphId) -> Result<Vec<Op>> {
        let slot = self.slot;
        match self.supervisor.ask(&Request::GraphOps { slot, graph })? {
            WorkerReply::Ops(ops) => self.supervisor.check_answer(ops),
            _ => Err(self.supervisor.lose_garbled()),
        }
    }

    fn drop_graph(&mut self, graph: GraphId) {
        self.supervisor.drop_graph(self.slot, graph);
    }

    fn launch_graph(&mut self, graph: GraphId) -> Result<()> {
        self.steps.push(SlotCall::Graph(graph));
        Ok(())
    }

    fn make_resident(&mut self, _: GraphId, _: Residency) -> Result<bool> {
        check_loop_in_worker(self.device).map(|()| false)
    }

    fn fence(&mut self) -> Result<()> {
        // The steps are lent to the request and taken back empty, so that a batch allocates
        // nothing.
        let mut work = Request::Work {
            slot: self.slot,
            steps: std::mem::take(&mut self.steps),
            // Fences are compared for equality alone, so the number may wrap.
            fence: self.fence_set.wrapping_add(1),
        };
        let in_flight = self.is_in_flight();
        let flag = self.flag();
        let sent = (self.supervisor).send_work(&work, self.generation, in_flight, flag);
        if let Request::Work { steps, fence, .. } = &mut work {
            if sent.is_ok() {
                self.fence_set = *fence;
            }
            steps.clear();
            self.steps = std::mem::take(steps);
        }
        self.generation = sent?;
        self.alive_checked_at = Instant::now();
        Ok(())
    }

    fn is_done(&mut self) -> Result<bool> {
        self.poll_fence()
    }

    fn wait(&mut self) -> Result<()> {
        self.wait_until(None).map(|_| ())
    }

    fn wait_for(&mut self, timeout: Duration) -> Result<bool> {
        self.wait_until(Instant::now().checked_add(timeout))
    }

    fn timestamps(&self) -> Result<Timestamps> {
        let asked = Instant::now();
        let reply = self
            .supervisor
            .ask(&Request::Timestamps { slot: self.slot })?;
        let WorkerReply::Timestamps(timestamps, worker_ns) = reply else {
            return Err(self.supervisor.lose_garbled());
        };
        // The worker read its clock between the request and now.
        let own_ns = host_ns(asked + asked.elapsed() / 2);
        let to_own_clock = |ns: u64| own_ns.saturating_add(ns).saturating_sub(worker_ns);
        let timestamps = self.supervisor.check_answer(timestamps)?;
        Ok(timestamps.map(|timestamp| timestamp.map(to_own_clock)))
    }

    fn abandon(&mut self, error: &Error) -> Error {
        let generation = if self.is_in_flight() {
            self.generation
        } else {
            self.supervisor.generation()
        };
        self.supervisor.lose(generation, &as_loss(error.clone()));
        self.steps.clear();
        // Host memory stays closed as long as the process may write to it.
        let ended = match self.supervisor.fate(generation) {
            Fate::Ending | Fate::Stuck(_) => self.supervisor.wait_for_end().is_ok(),
            Fate::Ended(_) => true,
            Fate::Runs => false,
        };
        if ended {
            self.note_loss();
        }
        self.supervisor.loss()
    }
}

impl Drop for WorkerSlot {
    fn drop(&mut self) {
        self.supervisor.close_slot(self.slot);
    }
}
