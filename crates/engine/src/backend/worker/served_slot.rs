//! A slot in the worker: its work, its graphs, and its completion flag.

use super::addresses::Map;
use super::arena::{BATCH_FAILED, CompletionFlags, DEVICE_FAILED};
use super::message::{SlotCall, Spec};
use super::polling::Polled;
use crate::backend::{Allocation, DeviceSlot, GraphId, Op};
use crate::error::{Error, ErrorKind, ErrorScope, Result};
use parking_lot::{Mutex, MutexGuard};
use rustix::thread::futex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering::Release;

pub(super) struct ServedSlot {
    /// Maps addresses of the other process.
    pub(super) map: Map,
    flags: Arc<CompletionFlags>,
    /// The index of the slot's flag in `flags`.
    index: usize,
    /// Requests without an answer, oldest first. The slot applies them under the lock of
    /// `state`, which it holds while it computes; the thread that posts them does not
    /// take that lock.
    inbox: Mutex<VecDeque<Posted>>,
    state: Mutex<ServedState>,
}

/// A request without a reply.
pub(super) enum Posted {
    /// Work with the names of this process, or the error of translating it; and the fence behind
    /// it.
    Work {
        steps: Result<Vec<SlotCall>>,
        fence: u32,
    },
    DropGraph(GraphId),
    Adopt(Allocation),
    Disown(Allocation),
}

pub(super) struct ServedState {
    pub(super) slot: Box<dyn DeviceSlot>,
    /// By the id in the other process.
    pub(super) graphs: BTreeMap<u64, ServedGraph>,
    /// The number of the last fence.
    fence: u32,
    /// The error to report.
    error: Option<Error>,
    is_lost: bool,
}

/// A graph: as requested, with its operations and its id in this process.
pub(super) struct ServedGraph {
    pub(super) spec: Spec,
    pub(super) ops: Vec<Op>,
    pub(super) graph: GraphId,
}

impl ServedSlot {
    pub(super) fn new(
        slot: Box<dyn DeviceSlot>,
        map: Map,
        flags: Arc<CompletionFlags>,
        index: usize,
    ) -> ServedSlot {
        ServedSlot {
            map,
            flags,
            index,
            inbox: Mutex::default(),
            state: Mutex::new(ServedState {
                slot,
                graphs: BTreeMap::new(),
                fence: 0,
                error: None,
                is_lost: false,
            }),
        }
    }

    /// The error that the completion flag announces, which is then taken back. The error of a lost
    /// device stays.
    pub(super) fn take_error(&self) -> Error {
        let mut state = self.lock();
        let error = if state.is_lost {
            state.error.clone()
        } else {
            state.error.take()
        };
        if state.error.is_none() {
            self.flags.slot(self.index).clear_failure();
        }
        // The supervisor asks only where the flag announced one.
        error.unwrap_or_else(unknown_id_error)
    }

    /// Passes a request to the slot: at once if no thread holds the slot, otherwise when the slot is
    /// next locked. Never waits for the slot, which may be computing.
    pub(super) fn post(&self, posted: Posted) {
        self.inbox.lock().push_back(posted);
        if let Some(mut state) = self.state.try_lock() {
            self.take_in(&mut state);
        }
    }

    /// The slot, after all posted requests.
    pub(super) fn lock(&self) -> MutexGuard<'_, ServedState> {
        let mut state = self.state.lock();
        self.take_in(&mut state);
        state
    }

    /// Does what was posted to the slot, whose lock the caller holds. Errors are kept until a fence
    /// reports them.
    fn take_in(&self, state: &mut ServedState) {
        loop {
            let next = self.inbox.lock().pop_front();
            let Some(posted) = next else { return };
            state.take_in(posted);
        }
    }
}

impl Polled for ServedSlot {
    fn poll(&self) -> bool {
        let mut state = self.lock();
        if !state.is_done() {
            return false;
        }
        let flag = self.flags.slot(self.index);
        // The failure first: a reader that sees the fence reached sees the failure too.
        if state.error.is_some() {
            let failure = if state.is_lost {
                DEVICE_FAILED
            } else {
                BATCH_FAILED
            };
            flag.failure.store(failure, Release);
        }
        if !state.is_lost {
            flag.done.store(state.fence, Release);
        }
        drop(state);
        // The only error is that no thread sleeps.
        let _ = futex::wake(&flag.done, futex::Flags::empty(), u32::MAX);
        true
    }
}

impl ServedState {
    /// Does one posted request. A slot whose device is lost drops work.
    fn take_in(&mut self, posted: Posted) {
        match posted {
            Posted::Work { steps, fence } => {
                self.fence = fence;
                if !self.is_lost {
                    self.work(steps);
                }
            }
            Posted::Adopt(allocation) => {
                let adopted = self.slot.adopt(&allocation);
                adopted.unwrap_or_else(|error| self.fail(error));
            }
            Posted::Disown(allocation) => self.slot.disown(&allocation),
            Posted::DropGraph(graph) => {
                if let Some(held) = self.graphs.remove(&graph.0) {
                    self.slot.drop_graph(held.graph);
                }
            }
        }
    }

    /// Submits a batch to the device. A batch that is refused half way gets its fence all the same, so
    /// that its submitted part is waited for.
    fn work(&mut self, steps: Result<Vec<SlotCall>>) {
        let steps = steps.unwrap_or_else(|error| {
            self.fail(error);
            Vec::new()
        });
        for step in &steps {
            let enqueued = match step {
                // SAFETY: the process that started this one gave the operation to its
                // slot, so code there vouched for it; `Worker::work` put this slot's
                // addresses in.
                SlotCall::Op(op) => unsafe { self.slot.enqueue(op) },
                SlotCall::Graph(graph) => self
                    .graphs
                    .get(&graph.0)
                    .ok_or_else(unknown_id_error)
                    .and_then(|held| self.slot.launch_graph(held.graph)),
            };
            if let Err(error) = enqueued {
                self.fail(error);
                break;
            }
        }
        if let Err(error) = self.slot.fence() {
            self.lose(error);
        }
    }

    /// A call was refused, which ends its batch, or lost the device.
    fn fail(&mut self, error: Error) {
        if error.scope() >= ErrorScope::Device {
            return self.lose(error);
        }
        self.error.get_or_insert(error);
    }

    /// Notes that the device is lost, or that the slot's work cannot be waited for.
    fn lose(&mut self, error: Error) {
        if !self.is_lost {
            self.is_lost = true;
            self.error = Some(as_loss(error));
        }
    }

    /// Whether the last fence is reached or never will be.
    fn is_done(&mut self) -> bool {
        if self.is_lost {
            return true;
        }
        match self.slot.is_done() {
            Ok(is_done) => is_done,
            // The work failed on the device: the supervisor runs it again on another.
            Err(error) => {
                self.lose(error);
                true
            }
        }
    }
}

/// Makes an error one of the device, after which the process is restarted.
pub(super) fn as_loss(error: Error) -> Error {
    match error.scope() {
        ErrorScope::Device => error,
        _ => Error::new(ErrorKind::Device, error.to_string()),
    }
}

/// The error of an id that the other process did not send before. Whatever is looked up by an id
/// from there fails with it.
pub(super) fn unknown_id_error() -> Error {
    Error::usage("the worker does not know this kernel, slot or graph")
}
