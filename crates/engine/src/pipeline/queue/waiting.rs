//! Items that wait for room, each with the waker of its task. The queue adds them itself, in their order, as soon as there
//! is room, so that none depends on when its task runs.

use super::{Queue, Shared};
use crate::error::Result;
use crate::pipeline::batch::expiry_error;
use crate::pipeline::config::SubmitOptions;
use crate::pipeline::ticket::Ticket;
use crate::workload::{Completion, Extent, Workload};
use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;
use std::time::Instant;

/// Identifies an item that waits. Smaller ids wait for longer.
pub(in crate::pipeline) type WaitingId = u64;

struct WaitingItem<W: Workload> {
    id: WaitingId,
    item: W::Item,
    extent: Result<Extent>,
    options: SubmitOptions,
    waker: Waker,
}

pub(super) struct Waiting<W: Workload> {
    /// Two queues, each in the order of the ids: of items that are not urgent, and of urgent ones.
    items: [VecDeque<WaitingItem<W>>; 2],
    /// The tickets of items that were added or have expired, or their errors, until their tasks take them.
    outcomes: BTreeMap<WaitingId, Result<Ticket<W>>>,
    next_id: WaitingId,
}

impl<W: Workload> Default for Waiting<W> {
    fn default() -> Self {
        Waiting {
            items: Default::default(),
            outcomes: BTreeMap::new(),
            next_id: 0,
        }
    }
}

impl<W: Workload> Waiting<W> {
    /// Whether no item of the kind waits.
    #[inline]
    pub(super) fn is_empty(&self, is_urgent: bool) -> bool {
        self.items[usize::from(is_urgent)].is_empty()
    }

    /// Whether an item waits.
    #[inline]
    pub(super) fn is_some(&self) -> bool {
        !self.is_empty(false) || !self.is_empty(true)
    }

    fn place(&self, id: WaitingId) -> Option<(usize, usize)> {
        let find = |items: &VecDeque<WaitingItem<W>>| {
            items.binary_search_by_key(&id, |waiting| waiting.id)
        };
        (0..2).find_map(|kind| Some((kind, find(&self.items[kind]).ok()?)))
    }
}

/// What has to be done about items that were added to batches or refused, where the queue is not locked.
#[must_use]
pub(in crate::pipeline) struct Admitted<W: Workload> {
    pub(in crate::pipeline) wakers: Vec<Waker>,
    pub(in crate::pipeline) refused: Vec<W::Item>,
    /// Whether [`Queue::closes_at`] may be earlier than before.
    pub(in crate::pipeline) changes_due: bool,
}

impl<W: Workload> Default for Admitted<W> {
    fn default() -> Self {
        Admitted {
            wakers: Vec::new(),
            refused: Vec::new(),
            changes_due: false,
        }
    }
}

impl<W: Workload> Queue<W> {
    /// Lets an item wait for room. Returns its id, and whether [`Queue::expires_at`] is earlier than before.
    pub(in crate::pipeline) fn wait(
        &mut self,
        (item, extent): (W::Item, Result<Extent>),
        options: SubmitOptions,
        waker: Waker,
    ) -> (WaitingId, bool) {
        let id = self.waiting_items.next_id;
        self.waiting_items.next_id += 1;
        self.waiting_items.items[usize::from(options.urgent)].push_back(WaitingItem {
            id,
            item,
            extent,
            options,
            waker,
        });
        (id, self.note_expiry(options.expires_at))
    }

    /// Replaces the waker of an item that waits. Returns the old one.
    pub(in crate::pipeline) fn rewake(&mut self, id: WaitingId, waker: Waker) -> Option<Waker> {
        let (kind, place) = self.waiting_items.place(id)?;
        let known = &mut self.waiting_items.items[kind][place].waker;
        Some(std::mem::replace(known, waker))
    }

    /// The ticket of an item that waits no longer, or why it was refused.
    pub(in crate::pipeline) fn outcome(&mut self, id: WaitingId) -> Option<Result<Ticket<W>>> {
        self.waiting_items.outcomes.remove(&id)
    }

    /// Removes an item that waits, and returns it with its waker.
    pub(in crate::pipeline) fn take_waiting(&mut self, id: WaitingId) -> Option<(W::Item, Waker)> {
        let (kind, place) = self.waiting_items.place(id)?;
        let taken = self.waiting_items.items[kind].remove(place)?;
        Some((taken.item, taken.waker))
    }

    /// Adds items that wait while there is room. If the engine has ended, refuses all.
    pub(super) fn admit(&mut self, shared: &Shared<W>, admitted: &mut Admitted<W>) {
        let has_ended = shared.ended.has_ended();
        for is_urgent in [true, false] {
            while has_ended || self.has_room(is_urgent) {
                let Some(next) = self.waiting_items.items[usize::from(is_urgent)].pop_front()
                else {
                    break;
                };
                let outcome = if has_ended {
                    admitted.refused.push(next.item);
                    Err(shared.ended.error())
                } else {
                    let mut ticket = None;
                    let (item, extent) = (next.item, next.extent);
                    let added = self.add(shared, item, extent, next.options, |reply, index| {
                        ticket = Some(Ticket(reply.ticket(index..index + 1)));
                    });
                    admitted.changes_due |= added.changes_due;
                    Ok(ticket.expect("an item outside of a run has a ticket"))
                };
                self.waiting_items.outcomes.insert(next.id, outcome);
                admitted.wakers.push(next.waker);
            }
        }
    }

    /// Adds items that wait where there is room, unless it is the turn of threads. If the engine has ended,
    /// refuses them in the turn of threads too, which use none then.
    #[inline]
    pub(in crate::pipeline) fn admit_waiting(&mut self, shared: &Shared<W>) -> Option<Admitted<W>> {
        let is_turn_of_threads = self.is_turn_of_threads && !shared.ended.has_ended();
        if is_turn_of_threads || !self.waiting_items.is_some() {
            return None;
        }
        let mut admitted = Admitted::default();
        self.admit(shared, &mut admitted);
        Some(admitted)
    }

    /// Refuses the items that wait for room, as the engine has ended.
    pub(in crate::pipeline) fn refuse_waiting(&mut self, shared: &Shared<W>) -> Admitted<W> {
        let mut admitted = Admitted::default();
        if shared.ended.has_ended() {
            self.admit(shared, &mut admitted);
        }
        admitted
    }

    /// Answers the items that wait for room and have expired at `now`. Returns how many, and when the next
    /// one expires.
    pub(super) fn expire_waiting(
        &mut self,
        now: Instant,
        admitted: &mut Admitted<W>,
    ) -> (usize, Option<Instant>) {
        let (mut count, mut first) = (0, None);
        for kind in 0..2 {
            let mut place = 0;
            while let Some(waiting) = self.waiting_items.items[kind].get(place) {
                let expires_at = waiting.options.expires_at;
                if expires_at.is_none_or(|time| time > now) {
                    first = [first, expires_at].into_iter().flatten().min();
                    place += 1;
                    continue;
                }
                let expired = self.waiting_items.items[kind].remove(place);
                let expired = expired.expect("an item waits at this place");
                let ticket = self.answer_expired(expired.item);
                self.waiting_items.outcomes.insert(expired.id, Ok(ticket));
                admitted.wakers.push(expired.waker);
                count += 1;
            }
        }
        (count, first)
    }

    /// Answers an item that has expired before there was room for it, and returns its ticket. Wakes no task, as
    /// the caller has no ticket yet.
    pub(in crate::pipeline) fn answer_expired(&mut self, item: W::Item) -> Ticket<W> {
        let reply = self.answers.take();
        let ticket = Ticket(reply.ticket(0..1));
        let result = Err(expiry_error());
        reply.complete(std::iter::once(Some(Completion { item, result })));
        ticket
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::backend::{Backend, cpu::CpuBackend};
    use crate::pipeline::build::build;
    use crate::pipeline::config::EngineConfig;
    use crate::pipeline::dispatcher::Dispatcher;
    use crate::pipeline::ticket::{EngineRef, TicketEngine};
    use crate::record::{Buffer, DeviceInfo, Kernel, Recorder};
    use crate::workload::{ReadViews, WriteViews};
    use std::sync::{Arc, Weak};

    /// Takes no input, and returns a seven.
    struct Sevens;

    impl Workload for Sevens {
        type Item = ();
        type Output = u8;
        type Buffers = Buffer<u8>;

        fn axes(&self) -> &'static [&'static str] {
            &["numbers"]
        }
        fn extent(&self, (): &()) -> Result<Extent> {
            Ok(Extent::from([1]))
        }
        fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<Buffer<u8>> {
            let sevens = Kernel::new("sevens").writes::<u8>("y");
            let sevens = sevens.twin(|launch| launch.write::<u8>().fill(7));
            let y = recorder.download_buffer("y", 0, 1);
            recorder.launch(&sevens, 1, &[y.into()]);
            recorder.download(y);
            Ok(y)
        }
        fn write(&self, _: &Buffer<u8>, (): &(), _: Extent, _: &mut WriteViews<'_>) -> Result<()> {
            Ok(())
        }
        fn read(&self, y: &Buffer<u8>, (): &(), _: Extent, views: &ReadViews<'_>) -> Result<u8> {
            Ok(views.get(*y)[0])
        }
    }

    #[test]
    fn the_end_refuses_items_of_tasks_in_the_turn_of_threads_too() {
        let threads = rayon::ThreadPoolBuilder::new().num_threads(1).build();
        let backends = [Arc::new(CpuBackend::inline()) as Arc<dyn Backend>];
        let config = EngineConfig::new([1]);
        let built = build(Sevens, &backends, Arc::new(threads.unwrap()), &config).unwrap();
        let owner = EngineRef {
            engine: Weak::<Dispatcher<Sevens>>::new() as Weak<dyn TicketEngine<Sevens>>,
            helps: false,
        };
        let mut queue = Queue::new(&built.shared, built.slots, &config, owner);
        let options = SubmitOptions::default();
        let (id, _) = queue.wait(((), Ok(Extent::from([1]))), options, Waker::noop().clone());
        // A thread that sleeps was given the turn, and sees the end when it wakes.
        queue.is_turn_of_threads = true;
        assert!(queue.admit_waiting(&built.shared).is_none());
        built.shared.ended.close();
        let admitted = queue.next(&built.shared).admitted.unwrap();
        assert_eq!((admitted.refused.len(), admitted.wakers.len()), (1, 1));
        assert!(queue.outcome(id).unwrap().is_err());
    }
}
