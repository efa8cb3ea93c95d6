//! [`Queue`]: the items, batches and slots of an engine that are not on a device. It forms batches
//! and gives them slots.

mod expiry;
mod waiting;

use super::batch::{Batch, Batcher, Ordered};
use super::config::{Close, EngineConfig, SubmitOptions};
use super::counters::{add, add_since};
use super::resident_version::ResidentVersion;
use super::run_results::RunSink;
use super::slot::{Free, Slot};
use super::stages::Shared;
use super::ticket::{Answers, AnswersPool, BatchReply, EngineRef};
use super::uniforms::Change;
use crate::error::Result;
use crate::workload::{Extent, Workload};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;
use waiting::Waiting;
pub(super) use waiting::{Admitted, WaitingId};

/// The largest number of urgent batches in a row that start while another batch waits: enough for a burst
/// of urgent items, and the others still go on.
const URGENT_MAX: u32 = 8;

/// A batch that can start.
pub(super) struct BatchStart<W: Workload> {
    pub(super) slot: Slot<Free>,
    pub(super) batch: Box<Batch<W>>,
    /// Whether another batch may be able to start too.
    pub(super) has_more: bool,
}

/// What to do once the queue is unlocked.
pub(super) struct NextSteps<W: Workload> {
    pub(super) start: Option<BatchStart<W>>,
    pub(super) admitted: Option<Admitted<W>>,
}

impl<W: Workload> Default for NextSteps<W> {
    fn default() -> Self {
        NextSteps {
            start: None,
            admitted: None,
        }
    }
}

/// The batcher of urgent items, if slots are kept for them; else all items are in [`NORMAL`].
const URGENT: usize = 1;
const NORMAL: usize = 0;

pub(super) struct Queue<W: Workload> {
    batchers: [Batcher<W>; 2],
    /// Whether slots are kept for urgent batches.
    keeps_slots: bool,
    answers: AnswersPool<W>,
    close: Close,
    /// The number of closed batches of each kind, urgent and normal, from which on no item is added.
    waiting_batches_max: usize,
    /// No item of a batch without a slot expires before this.
    expires_at: Option<Instant>,
    /// Items that wait for room.
    waiting_items: Waiting<W>,
    /// Threads that sleep until there is room. Where items wait too, both have every other place.
    pub(super) sleeping: usize,
    is_turn_of_threads: bool,
    /// Closed batches without a slot.
    urgent: VecDeque<Box<Batch<W>>>,
    normal: VecDeque<Box<Batch<W>>>,
    /// Batches whose device was lost. They start first, as they began before all others.
    lost: VecDeque<Box<Batch<W>>>,
    urgent_in_a_row: u32,
    /// The number of batches that were closed.
    closed: u64,
    /// Since when a batch of a run waits for the run's consumer while a slot is free.
    held_since: Option<Instant>,
    free: VecDeque<Slot<Free>>,
    /// Free slots that are kept for urgent batches.
    free_urgent: VecDeque<Slot<Free>>,
    /// Slots that results borrow.
    lent: Vec<Slot<Free>>,
    /// Submissions that wait for room without sleeping. Each calls [`Queue::next`] when it ends.
    pub(super) spinning: usize,
    /// By device: whether it is given no batch for now.
    suspended: Vec<bool>,
    run: Option<OrderedRun<W>>,
}

/// The run whose items are added.
struct OrderedRun<W: Workload> {
    results: Arc<dyn RunSink<W>>,
    batches: u64,
}

/// What became of items that were cancelled.
pub(super) enum Cancelled<W: Workload> {
    /// The items stay: their batch has a slot, or had one on a device that was lost, or they have expired.
    Late,
    /// The items were taken out of their batch.
    Taken,
    /// The items were the last of their batch, which was taken out of the queue too.
    Emptied(Box<Batch<W>>),
}

/// What adding an item changed.
#[derive(Clone, Copy, Default)]
pub(super) struct Added {
    /// Whether a batch was closed.
    pub(super) has_closed: bool,
    /// Whether [`Queue::closes_at`] may be earlier than before.
    pub(super) changes_due: bool,
    /// Whether [`Queue::expires_at`] is earlier than before.
    pub(super) expires_first: bool,
}

impl<W: Workload> Queue<W> {
    pub(super) fn new(
        shared: &Shared<W>,
        slots: Vec<Slot<Free>>,
        config: &EngineConfig,
        owner: EngineRef<W>,
    ) -> Self {
        let (urgent, free): (VecDeque<_>, _) = slots.into_iter().partition(Slot::is_urgent);
        Queue {
            batchers: [shared.batcher(), shared.batcher()],
            keeps_slots: !urgent.is_empty(),
            answers: AnswersPool::new(shared.engine, Some(owner)),
            close: config.close,
            waiting_batches_max: config.waiting_batches_max,
            expires_at: None,
            waiting_items: Waiting::default(),
            sleeping: 0,
            is_turn_of_threads: false,
            urgent: VecDeque::new(),
            normal: VecDeque::new(),
            lost: VecDeque::new(),
            urgent_in_a_row: 0,
            closed: 0,
            held_since: None,
            free,
            free_urgent: urgent,
            lent: Vec::new(),
            spinning: 0,
            suspended: vec![false; shared.devices.len()],
            run: None,
        }
    }

    /// Whether an item may be added: fewer than `waiting_batches_max` closed batches of its kind wait for a
    /// slot. The item may close two batches, the open one that it does not fit in and the one that it fills,
    /// so one batch more than the limit may wait afterwards.
    pub(super) fn has_room(&self, is_urgent: bool) -> bool {
        let closed_batches = if is_urgent {
            &self.urgent
        } else {
            &self.normal
        };
        closed_batches.len() < self.waiting_batches_max
    }

    /// Whether a thread may add an item: there is room, and no item waits for it, unless it is the turn of
    /// threads that wait.
    pub(super) fn has_room_for_thread(&self, is_urgent: bool, has_waited: bool) -> bool {
        let is_turn =
            self.waiting_items.is_empty(is_urgent) || has_waited && self.is_turn_of_threads;
        is_turn && self.has_room(is_urgent)
    }

    /// Ends the turn of threads, as one has used it.
    pub(super) fn end_turn(&mut self) {
        self.is_turn_of_threads = false;
    }

    /// The number of batches that were closed so far.
    pub(super) fn closed(&self) -> u64 {
        self.closed
    }

    /// Adds an item to the open batch, and closes it if the item is urgent. If slots are kept for
    /// urgent batches, an urgent item is added to a batch of such items, which [`Queue::next`] closes.
    /// Outside of a run, `added` gets the batch's reply and the item's index.
    #[inline]
    pub(super) fn add(
        &mut self,
        shared: &Shared<W>,
        item: W::Item,
        extent: Result<Extent>,
        options: SubmitOptions,
        added: impl FnOnce(&BatchReply<W>, u32),
    ) -> Added {
        let SubmitOptions {
            urgent,
            deadline,
            expires_at,
            ..
        } = options;
        let place = if urgent && self.keeps_slots {
            URGENT
        } else {
            NORMAL
        };
        let extent = self.batchers[place].admit(extent);
        let closed_before =
            !self.batchers[place].has_room(&extent) && self.close(shared, place, place == URGENT);
        let is_first = !self.batchers[place].is_open();
        if self.run.is_none() {
            let open = self.batchers[place].open();
            let reply = open.reply.get_or_insert_with(|| self.answers.take());
            added(reply, open.entries.len() as u32);
        }
        let is_full = self.batchers[place].add(item, extent, Instant::now, &options);
        let closes = is_full || urgent && place == NORMAL;
        let has_closed = closes && self.close(shared, place, urgent);
        let is_timed = place == NORMAL && self.closes_by_time();
        Added {
            has_closed: closed_before || has_closed,
            changes_due: (is_first || deadline.is_some()) && !has_closed && is_timed,
            expires_first: expires_at.is_some() && self.note_expiry(expires_at),
        }
    }

    /// Takes items out of the batch with these answers, if it is here.
    pub(super) fn cancel(
        &mut self,
        shared: &Shared<W>,
        answers: &Answers<W>,
        items: Range<u32>,
        mut take: impl FnMut(W::Item),
    ) -> Cancelled<W> {
        let mut is_taken = false;
        let mut take = |item| {
            is_taken = true;
            take(item);
        };
        let is_of = |batch: &Batch<W>| {
            batch
                .reply
                .as_ref()
                .is_some_and(|reply| reply.is_of(answers))
        };
        for (place, batcher) in self.batchers.iter_mut().enumerate() {
            if is_of(batcher.open()) {
                batcher.open().cancel(items, &mut take);
                if !is_taken {
                    return Cancelled::Late;
                }
                if !batcher.open().is_emptied() {
                    return Cancelled::Taken;
                }
                let emptied = self.take_open(shared, place);
                return Cancelled::Emptied(emptied.expect("the open batch has the items"));
            }
        }
        for closed in [&mut self.urgent, &mut self.normal] {
            let Some(position) = closed.iter().position(|batch| is_of(batch)) else {
                continue;
            };
            closed[position].cancel(items, &mut take);
            return if !is_taken {
                Cancelled::Late
            } else if closed[position].is_emptied() {
                Cancelled::Emptied(closed.remove(position).expect("a batch was found there"))
            } else {
                Cancelled::Taken
            };
        }
        Cancelled::Late
    }

    /// Closes what is open.
    pub(super) fn flush(&mut self, shared: &Shared<W>) {
        self.close(shared, URGENT, true);
        self.close(shared, NORMAL, false);
    }

    /// Changes uniforms for the items that are added from now on. If a value changes, the items that
    /// are here keep the old one, so what is open is closed.
    pub(super) fn set_uniforms(&mut self, shared: &Shared<W>, changes: &[Change]) {
        // Both batchers have the same values.
        if !self.batchers[NORMAL].would_change(changes) {
            return;
        }
        for (place, is_urgent) in [(URGENT, true), (NORMAL, false)] {
            let closed = self.close(shared, place, is_urgent);
            add(
                &shared.counters.submitted.batches_closed_by_uniforms,
                usize::from(closed),
            );
            self.batchers[place].set_uniforms(changes);
        }
    }

    /// Changes the contents of the resident buffers for the items that are added from now on. The items that
    /// are here keep the old ones, so what is open is closed.
    pub(super) fn set_resident(&mut self, shared: &Shared<W>, version: &Arc<ResidentVersion>) {
        self.flush(shared);
        for batcher in &mut self.batchers {
            batcher.set_resident(version);
        }
    }

    /// Closes what is open. The next items belong to a run with these results, or to none.
    /// Returns the results of the run before, to be dropped when the queue is not locked.
    pub(super) fn set_run(
        &mut self,
        shared: &Shared<W>,
        results: Option<Arc<dyn RunSink<W>>>,
    ) -> Option<Arc<dyn RunSink<W>>> {
        self.flush(shared);
        let run = results.map(|results| OrderedRun {
            results,
            batches: 0,
        });
        std::mem::replace(&mut self.run, run).map(|run| run.results)
    }

    /// When the open batch is due, if it closes by time.
    pub(super) fn closes_at(&self) -> Option<Instant> {
        self.batchers[NORMAL]
            .closes_at()
            .filter(|_| self.closes_by_time())
    }

    fn closes_by_time(&self) -> bool {
        self.close == Close::Full && self.run.is_none()
    }

    /// Whether the open batch closes because a slot is free.
    fn closes_when_idle(&self) -> bool {
        // Urgent batches that wait do not hold up the others where slots are kept for them.
        let none_waits = self.normal.is_empty() && (self.keeps_slots || self.urgent.is_empty());
        none_waits
            && self.close == Close::Idle
            && self.run.is_none()
            && self.batchers[NORMAL].is_open()
            && self.free.iter().any(|slot| self.can_start_on(slot))
    }

    /// Whether the open batch of urgent items closes because a slot is free.
    fn closes_urgent(&self) -> bool {
        self.urgent.is_empty()
            && self.batchers[URGENT].is_open()
            && (self.free_urgent.iter().chain(&self.free)).any(|slot| self.can_start_on(slot))
    }

    fn can_start_on(&self, slot: &Slot<Free>) -> bool {
        !self.suspended[slot.device()]
    }

    /// Takes the open batch of a batcher, if there is one, and gives the batcher a used one, so that
    /// batches that were answered do not pile up.
    fn take_open(&mut self, shared: &Shared<W>, place: usize) -> Option<Box<Batch<W>>> {
        let batcher = &mut self.batchers[place];
        let batch = batcher.flush()?;
        self.closed += 1;
        if let Some(used) = shared.batches.take() {
            batcher.recycle(used);
        }
        Some(batch)
    }

    /// Closes the open batch of a batcher. Returns whether there was one.
    fn close(&mut self, shared: &Shared<W>, place: usize, is_urgent: bool) -> bool {
        let Some(mut batch) = self.take_open(shared, place) else {
            return false;
        };
        if let Some(run) = &mut self.run {
            batch.ordered = Some(Ordered {
                number: run.batches,
                results: Arc::clone(&run.results),
            });
            run.batches += 1;
        }
        if is_urgent {
            self.urgent.push_back(batch)
        } else {
            self.normal.push_back(batch)
        }
        true
    }

    /// The next batch and its slot, if there are both. Adds items that wait for room where there is some.
    #[inline]
    pub(super) fn next(&mut self, shared: &Shared<W>) -> NextSteps<W> {
        if self.has_nothing_to_start() {
            NextSteps::default()
        } else {
            self.find_next(shared)
        }
    }

    /// Whether no batch waits for a slot, none would close for a free one, and no item waits for room.
    #[inline]
    fn has_nothing_to_start(&self) -> bool {
        let is_slot_free = !self.free.is_empty() || !self.lent.is_empty();
        let closes = self.batchers[URGENT].is_open()
            || is_slot_free && self.close == Close::Idle && self.batchers[NORMAL].is_open();
        self.is_empty() && !closes && !self.waiting_items.is_some()
    }

    /// Adds items that wait for room, frees slots that results have given back, closes what a free slot
    /// closes, and takes the next batch with its slot.
    fn find_next(&mut self, shared: &Shared<W>) -> NextSteps<W> {
        let mut admitted = self.admit_waiting(shared);
        self.free_returned();
        if self.closes_urgent() {
            self.close(shared, URGENT, true);
        }
        if self.closes_when_idle() {
            self.close(shared, NORMAL, false);
        }
        let mut start = self.take_next(shared);
        if let Some(start) = &mut start {
            // The room that this start makes is for threads that sleep, and the next for items that
            // wait.
            self.is_turn_of_threads = self.sleeping > 0 && !self.is_turn_of_threads;
            if !self.is_turn_of_threads && self.waiting_items.is_some() {
                let admitted = admitted.get_or_insert_default();
                let before = admitted.wakers.len();
                self.admit(shared, admitted);
                start.has_more |= admitted.wakers.len() > before;
            }
        }
        if !self.is_empty() {
            self.note_waiting();
        }
        NextSteps { start, admitted }
    }

    /// Takes the batch that comes next, and a slot for it: an urgent one where a slot is kept for such
    /// batches, then one whose device was lost, then an urgent one, or a normal one after [`URGENT_MAX`]
    /// urgent ones in a row.
    fn take_next(&mut self, shared: &Shared<W>) -> Option<BatchStart<W>> {
        if !self.urgent.is_empty()
            && let Some(position) = usable(&mut self.free_urgent, &self.suspended, shared)
        {
            let slot = self.free_urgent.remove(position)?;
            let batch = self.urgent.pop_front()?;
            return Some(self.make_start(slot, batch));
        }
        let is_urgent = match (self.urgent.is_empty(), self.normal.is_empty()) {
            (true, true) if self.lost.is_empty() => return None,
            (false, false) => self.urgent_in_a_row < URGENT_MAX,
            (_, normal_is_empty) => normal_is_empty,
        };
        let position = usable(&mut self.free, &self.suspended, shared)?;
        if let Some(batch) = self.lost.pop_front() {
            let slot = self.free.remove(position)?;
            return Some(self.make_start(slot, batch));
        }
        let queue = if is_urgent {
            &mut self.urgent
        } else {
            &mut self.normal
        };
        if let Some(Ordered { results, .. }) = &queue.front()?.ordered {
            if !results.begin() {
                self.held_since.get_or_insert_with(Instant::now);
                return None;
            }
            if let Some(since) = self.held_since.take() {
                add_since(&shared.counters.submitted.output_ns, since);
            }
        }
        let batch = queue.pop_front()?;
        let slot = self.free.remove(position)?;
        self.urgent_in_a_row = if is_urgent {
            self.urgent_in_a_row + 1
        } else {
            0
        };
        Some(self.make_start(slot, batch))
    }

    /// A start of a batch in a slot, both of which were taken out.
    fn make_start(&self, slot: Slot<Free>, batch: Box<Batch<W>>) -> BatchStart<W> {
        let urgent_waits = !self.urgent.is_empty() || self.batchers[URGENT].is_open();
        let waits = urgent_waits
            || !self.lost.is_empty()
            || !self.normal.is_empty()
            || self.batchers[NORMAL].is_open();
        let has_more =
            !self.free.is_empty() && waits || !self.free_urgent.is_empty() && urgent_waits;
        BatchStart {
            slot,
            batch,
            has_more,
        }
    }

    /// Takes a batch back whose device was lost.
    pub(super) fn put_back(&mut self, batch: Box<Batch<W>>) {
        self.lost.push_back(batch);
    }

    /// Whether no closed batch waits for a slot.
    fn is_empty(&self) -> bool {
        self.urgent.is_empty() && self.normal.is_empty() && self.lost.is_empty()
    }

    /// Notes when batches begin to wait for a slot. The latest are last.
    fn note_waiting(&mut self) {
        let mut now = None;
        for queue in [&mut self.urgent, &mut self.normal] {
            let latest = queue.iter_mut().rev();
            for batch in latest.take_while(|batch| batch.closed_at.is_none()) {
                batch.closed_at = Some(*now.get_or_insert_with(Instant::now));
            }
        }
    }

    /// Takes all batches out, to be dropped or answered.
    pub(super) fn clear(&mut self) -> impl Iterator<Item = Box<Batch<W>>> + use<W> {
        self.run = None;
        let open = self.batchers.each_mut().map(Batcher::flush);
        // They count as closed, as those that were do: each is answered once.
        self.closed += open.iter().flatten().count() as u64;
        let queues = [&mut self.lost, &mut self.urgent, &mut self.normal].map(std::mem::take);
        let closed = queues.into_iter().flatten();
        closed.chain(open.into_iter().flatten())
    }

    /// Frees the slots that no result borrows any more.
    fn free_returned(&mut self) {
        while let Some(position) = self.lent.iter_mut().position(Slot::take_back) {
            let slot = self.lent.remove(position);
            // `find_next`, which calls this, starts a batch in the slot if there is one.
            self.put_free(slot);
        }
    }

    /// Gives a slot back. Returns whether a submission that waits for room will use it, so that the
    /// thread that freed the slot need not fill it. One slot at most is left to submissions, since
    /// their threads may have lost their cores.
    pub(super) fn put_free(&mut self, slot: Slot<Free>) -> bool {
        if slot.is_lent() {
            self.lent.push(slot);
            return false;
        }
        if slot.is_urgent() {
            self.free_urgent.push_back(slot);
            return false;
        }
        self.free.push_back(slot);
        self.spinning > 0 && self.free.len() == 1
    }

    /// Gives no batch to a device from now on. Its slots stay here meanwhile.
    pub(super) fn suspend(&mut self, device: usize) {
        self.suspended[device] = true;
    }

    /// Ends [`Queue::suspend`].
    pub(super) fn resume(&mut self, device: usize) {
        self.suspended[device] = false;
    }
}

/// The position of a slot that a batch can start in. Slots of lost devices are dropped.
fn usable<W: Workload>(
    free: &mut VecDeque<Slot<Free>>,
    suspended: &[bool],
    shared: &Shared<W>,
) -> Option<usize> {
    loop {
        let position = free.iter().position(|slot| !suspended[slot.device()])?;
        if shared.is_usable(&free[position]) {
            return Some(position);
        }
        free.remove(position);
    }
}
