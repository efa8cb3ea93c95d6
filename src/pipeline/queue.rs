//! [`Queue`]: the items, batches and slots of an engine that are not on a device. It forms batches
//! and gives them slots.

use super::batch::{Batch, Batcher, Ordered};
use super::config::{Close, SubmitOptions};
use super::counters::add_since;
use super::run_results::RunResults;
use super::slot::{Free, Slot};
use super::stages::Shared;
use super::ticket::{AnswersPool, Reply};
use crate::error::Result;
use crate::workload::{Extent, Workload};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// The largest number of closed batches of each kind, urgent and other, that wait for a slot before
/// a submission waits. One waits while the next is formed.
const CLOSED_MAX: usize = 2;

/// The largest number of urgent batches in a row that start while another batch waits.
const URGENT_MAX: u32 = 8;

/// A batch, and the slot that it starts in.
pub(super) type Start<W> = (Slot<Free>, Batch<W>);

pub(super) struct Queue<W: Workload> {
    batcher: Batcher<W>,
    answers: AnswersPool<W>,
    close: Close,
    /// Closed batches without a slot.
    urgent: VecDeque<Batch<W>>,
    normal: VecDeque<Batch<W>>,
    urgent_in_a_row: u32,
    /// The number of batches that were closed.
    closed: u64,
    /// Since when a batch of a run waits for the run's consumer while a slot is free.
    held_since: Option<Instant>,
    free: VecDeque<Slot<Free>>,
    devices: Vec<DeviceUse>,
    run: Option<Run<W>>,
}

/// The use of a device by the threads that submit batches.
#[derive(Clone, Default)]
struct DeviceUse {
    /// Batches that are being written or submitted.
    starting: usize,
    /// While it is suspended, no batch is given to it.
    is_suspended: bool,
}

/// The run whose items are added.
struct Run<W: Workload> {
    results: Arc<RunResults<W>>,
    batches: u64,
}

/// What adding an item changed.
#[derive(Clone, Copy, Default)]
pub(super) struct Added {
    /// A batch was closed.
    pub(super) closed: bool,
    /// [`Queue::closes_at`] may be earlier than before.
    pub(super) timed: bool,
}

impl<W: Workload> Queue<W> {
    pub(super) fn new(shared: &Shared<W>, slots: Vec<Slot<Free>>, close: Close) -> Self {
        Queue {
            batcher: shared.batcher(),
            answers: AnswersPool::new(shared.engine),
            close,
            urgent: VecDeque::new(),
            normal: VecDeque::new(),
            urgent_in_a_row: 0,
            closed: 0,
            held_since: None,
            free: slots.into(),
            devices: vec![DeviceUse::default(); shared.devices.len()],
            run: None,
        }
    }

    /// Whether an item may be added. Adding one adds at most two batches.
    pub(super) fn has_room(&self, is_urgent: bool) -> bool {
        let waiting = match is_urgent {
            true => &self.urgent,
            false => &self.normal,
        };
        waiting.len() < CLOSED_MAX
    }

    /// The number of batches that were closed so far.
    pub(super) fn closed(&self) -> u64 {
        self.closed
    }

    /// Adds an item to the open batch, and closes it if the item is urgent. Outside of a run,
    /// `added` gets the batch's reply and the item's index.
    pub(super) fn add(
        &mut self,
        shared: &Shared<W>,
        item: W::Item,
        extent: Result<Extent>,
        options: SubmitOptions,
        added: impl FnOnce(&Reply<W>, u32),
    ) -> Added {
        let (before, extent) = self.batcher.make_room(extent);
        let closed_before = self.enqueue(shared, before, false);
        let is_first = !self.batcher.is_open();
        if self.run.is_none() {
            let open = self.batcher.open();
            let reply = open.reply.get_or_insert_with(|| self.answers.take());
            added(reply, open.entries.len() as u32);
        }
        let SubmitOptions { urgent, deadline } = options;
        let mut closed = self.batcher.add(item, extent, Instant::now, deadline);
        if urgent {
            closed = closed.or_else(|| self.batcher.flush());
        }
        let has_closed = self.enqueue(shared, closed, urgent);
        Added {
            closed: closed_before || has_closed,
            timed: (is_first || deadline.is_some()) && !has_closed && self.closes_by_time(),
        }
    }

    /// Closes the open batch.
    pub(super) fn flush(&mut self, shared: &Shared<W>) {
        let open = self.batcher.flush();
        self.enqueue(shared, open, false);
    }

    /// Closes the open batch. The next items belong to a run with these results, or to none.
    pub(super) fn set_run(&mut self, shared: &Shared<W>, results: Option<Arc<RunResults<W>>>) {
        self.flush(shared);
        self.run = results.map(|results| Run {
            results,
            batches: 0,
        });
    }

    /// When the open batch is due, if it closes by time.
    pub(super) fn closes_at(&self) -> Option<Instant> {
        self.batcher.closes_at().filter(|_| self.closes_by_time())
    }

    fn closes_by_time(&self) -> bool {
        self.close == Close::Full && self.run.is_none()
    }

    /// Whether the open batch closes because a slot is free.
    fn closes_when_idle(&self) -> bool {
        self.close == Close::Idle
            && self.run.is_none()
            && self.batcher.is_open()
            && self.free.iter().any(|slot| self.can_start_on(slot))
    }

    fn can_start_on(&self, slot: &Slot<Free>) -> bool {
        !self.devices[slot.device()].is_suspended
    }

    /// Returns whether there was a batch.
    fn enqueue(&mut self, shared: &Shared<W>, batch: Option<Batch<W>>, is_urgent: bool) -> bool {
        let Some(mut batch) = batch else { return false };
        self.closed += 1;
        self.batcher.recycle(shared.entries.take());
        batch.closed_at = Some(Instant::now());
        if let Some(run) = &mut self.run {
            batch.ordered = Some(Ordered {
                number: run.batches,
                results: Arc::clone(&run.results),
            });
            run.batches += 1;
        }
        match is_urgent {
            true => self.urgent.push_back(batch),
            false => self.normal.push_back(batch),
        }
        true
    }

    /// The next batch and its slot, if there are both. Call [`Queue::has_started`] once the batch is
    /// on the device.
    pub(super) fn next(&mut self, shared: &Shared<W>) -> Option<Start<W>> {
        if self.urgent.is_empty() && self.normal.is_empty() && self.closes_when_idle() {
            self.flush(shared);
        }
        let is_urgent = match (self.urgent.is_empty(), self.normal.is_empty()) {
            (true, true) => return None,
            (false, false) => self.urgent_in_a_row < URGENT_MAX,
            (_, normal_is_empty) => normal_is_empty,
        };
        let position = loop {
            let position = self.free.iter().position(|slot| self.can_start_on(slot))?;
            if shared.is_usable(&self.free[position]) {
                break position;
            }
            self.free.remove(position);
        };
        let queue = match is_urgent {
            true => &mut self.urgent,
            false => &mut self.normal,
        };
        if let Some(Ordered { results, .. }) = &queue.front()?.ordered {
            if !results.begin() {
                self.held_since.get_or_insert_with(Instant::now);
                return None;
            }
            if let Some(since) = self.held_since.take() {
                add_since(&shared.counters.output_ns, since);
            }
        }
        let batch = queue.pop_front()?;
        let slot = self.free.remove(position)?;
        self.urgent_in_a_row = match is_urgent {
            true => self.urgent_in_a_row + 1,
            false => 0,
        };
        self.devices[slot.device()].starting += 1;
        Some((slot, batch))
    }

    /// Notes that a batch of [`Queue::next`] is with the completion thread of its device, or has
    /// ended. Returns whether a thread waits for that.
    pub(super) fn has_started(&mut self, device: usize) -> bool {
        self.devices[device].starting -= 1;
        self.devices[device].is_suspended
    }

    /// Takes all batches out, to be dropped.
    pub(super) fn clear(&mut self) -> Vec<Batch<W>> {
        self.run = None;
        let open = self.batcher.flush();
        let closed = self.urgent.drain(..).chain(self.normal.drain(..));
        closed.chain(open).collect()
    }

    /// Gives a slot back.
    pub(super) fn put_free(&mut self, slot: Slot<Free>) {
        self.free.push_back(slot);
    }

    /// Gives no batch to a device, whose slots stay here meanwhile. Returns whether some are still
    /// being written or submitted.
    pub(super) fn suspend(&mut self, device: usize) -> bool {
        self.devices[device].is_suspended = true;
        self.devices[device].starting > 0
    }

    /// Ends [`Queue::suspend`].
    pub(super) fn resume(&mut self, device: usize) {
        self.devices[device].is_suspended = false;
    }
}
