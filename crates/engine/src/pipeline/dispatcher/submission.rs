//! How items come in: threads that wait for room or do not, and tasks that await it.

use super::Dispatcher;
use crate::error::Result;
use crate::pipeline::config::{SubmitOptions, TrySubmitError};
use crate::pipeline::counters::add_since;
use crate::pipeline::queue::{Queue, WaitingId};
use crate::pipeline::sync::{Guard, spin_unlocked};
use crate::pipeline::ticket::{BatchReply, Ticket};
use crate::pipeline::unwinding::catch_and_log;
use crate::workload::{Extent, Workload};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Poll, Waker};
use std::time::Instant;

/// An item on its way into the engine.
pub(in crate::pipeline) enum Incoming<W: Workload> {
    New(W::Item, Result<Extent>),
    Waiting(WaitingId),
    Done,
}

impl<W: Workload> Dispatcher<W> {
    /// Takes an item. Without room for it, waits if `waits`.
    ///
    /// # Errors
    /// [`TrySubmitError::Closed`] when the engine has ended or in a child of its process, and
    /// [`TrySubmitError::Full`] if it does not wait.
    pub(in crate::pipeline) fn submit(
        self: &Arc<Self>,
        item: W::Item,
        extent: Result<Extent>,
        options: SubmitOptions,
        waits: bool,
    ) -> Result<Ticket<W>, TrySubmitError<W::Item>> {
        if let Err(forked) = self.check_process() {
            return Err(TrySubmitError::Closed(item, forked));
        }
        let mut queue = self.queue.lock();
        let mut has_waited = false;
        loop {
            if self.shared.ended.has_ended() {
                drop(queue);
                return Err(TrySubmitError::Closed(item, self.shared.ended.error()));
            }
            if queue.has_room_for_thread(options.urgent, has_waited) {
                break;
            }
            if !waits {
                return Err(TrySubmitError::Full(item));
            }
            if options
                .expires_at
                .is_some_and(|time| time <= Instant::now())
            {
                let ticket = queue.answer_expired(item);
                queue.end_turn();
                self.unlock_and_start(queue);
                self.shared.counters.add_expired(1);
                return Ok(ticket);
            }
            queue = self.wait_for_room(queue, options.expires_at);
            has_waited = true;
        }
        let (ticket, expires_first) = self.add(&mut queue, item, extent, options);
        if has_waited {
            queue.end_turn();
        }
        let next = self.next(&mut queue);
        drop(queue);
        if expires_first {
            self.wake_timer();
        }
        self.start_all(next);
        Ok(ticket)
    }

    /// Adds an item to the queue, which is locked, and wakes the devices' threads if the open batch
    /// is due earlier. Returns the ticket, and whether the item expires before all others.
    fn add(
        &self,
        queue: &mut Queue<W>,
        item: W::Item,
        extent: Result<Extent>,
        options: SubmitOptions,
    ) -> (Ticket<W>, bool) {
        let mut ticket = None;
        let added = queue.add(&self.shared, item, extent, options, |batch, index| {
            ticket = Some(Ticket(batch.ticket(index..index + 1)));
        });
        if added.changes_due {
            self.devices.wake_all();
        }
        let ticket = ticket.expect("an item outside of a run has a ticket");
        (ticket, added.expires_first)
    }

    /// Takes an item of a task, or lets it wait for room, in turn. `incoming` is done when this is ready.
    ///
    /// # Errors
    /// [`ErrorKind::Closed`](crate::ErrorKind::Closed) when the engine has ended, and the error of a child
    /// of its process.
    pub(in crate::pipeline) fn poll_submit(
        self: &Arc<Self>,
        incoming: &mut Incoming<W>,
        options: SubmitOptions,
        waker: &Waker,
    ) -> Poll<Result<Ticket<W>>> {
        self.check_process()?;
        // Cloned, and below dropped, without the lock: a waker runs the code of an executor.
        let waker = waker.clone();
        let mut queue = self.queue.lock();
        if let Incoming::Waiting(id) = *incoming {
            if let Some(outcome) = queue.outcome(id) {
                *incoming = Incoming::Done;
                drop(queue);
                catch_and_log(|| drop(waker));
                return Poll::Ready(outcome);
            }
            let before = queue.rewake(id, waker);
            drop(queue);
            catch_and_log(|| drop(before));
            return Poll::Pending;
        }
        let Incoming::New(item, extent) = std::mem::replace(incoming, Incoming::Done) else {
            panic!("it was ready before");
        };
        let has_ended = self.shared.ended.has_ended();
        if !has_ended && !queue.has_room_for_thread(options.urgent, false) {
            let (id, expires_first) = queue.wait((item, extent), options, waker);
            *incoming = Incoming::Waiting(id);
            drop(queue);
            if expires_first {
                self.wake_timer();
            }
            return Poll::Pending;
        }
        if has_ended {
            drop(queue);
            catch_and_log(|| drop((item, waker)));
            return Poll::Ready(Err(self.shared.ended.error()));
        }
        let (ticket, expires_first) = self.add(&mut queue, item, extent, options);
        let next = self.next(&mut queue);
        drop(queue);
        if expires_first {
            self.wake_timer();
        }
        catch_and_log(|| drop(waker));
        self.start_all(next);
        Poll::Ready(Ok(ticket))
    }

    /// Takes the item of a task that gives up back, if it has no slot yet, and drops it.
    pub(in crate::pipeline) fn take_back(&self, id: WaitingId) {
        if self.check_process().is_err() {
            return;
        }
        let (waiting, outcome) = {
            let mut queue = self.queue.lock();
            (queue.take_waiting(id), queue.outcome(id))
        };
        catch_and_log(|| drop(waiting));
        // The item may have been added meanwhile.
        catch_and_log(|| drop(outcome.map(|ticket| ticket.map(Ticket::cancel_on_drop))));
    }

    /// Takes items in order, and waits for room between them. `added` gets the reply of its batch
    /// and the index of each item that is not of a run.
    ///
    /// # Errors
    /// [`ErrorKind::Closed`](crate::ErrorKind::Closed) when the engine has ended, and the error of a child
    /// of its process. The remaining items are dropped then.
    pub(in crate::pipeline) fn submit_many(
        self: &Arc<Self>,
        items: impl IntoIterator<Item = (W::Item, Result<Extent>)>,
        mut added: impl FnMut(&BatchReply<W>, u32),
    ) -> Result<()> {
        let options = SubmitOptions::default();
        self.check_process()?;
        let mut queue = self.queue.lock();
        for (item, extent) in items {
            let mut has_waited = false;
            loop {
                if self.shared.ended.has_ended() {
                    drop(queue);
                    catch_and_log(|| drop(item));
                    return Err(self.shared.ended.error());
                }
                if queue.has_room_for_thread(false, has_waited) {
                    break;
                }
                queue = self.wait_for_room(queue, None);
                has_waited = true;
            }
            if has_waited {
                queue.end_turn();
            }
            let added = queue.add(&self.shared, item, extent, options, &mut added);
            if added.changes_due {
                self.devices.wake_all();
            }
            if added.has_closed {
                self.unlock_and_start(queue);
                queue = self.queue.lock();
            }
        }
        self.unlock_and_start(queue);
        Ok(())
    }

    /// Waits until a batch is given a slot, the engine ends, or `end`: spins for some microseconds, then
    /// sleeps. If a slot becomes free meanwhile, this thread fills it: it has nothing else to do, and the
    /// thread that freed it reads results.
    fn wait_for_room<'a>(
        self: &'a Arc<Self>,
        mut queue: Guard<'a, Queue<W>>,
        end: Option<Instant>,
    ) -> Guard<'a, Queue<W>> {
        let start = Instant::now();
        let room_ns = &self.shared.counters.submitted.room_ns;
        let changes = self.changes.load(SeqCst);
        let has_changed = || self.changes.load(SeqCst) != changes || self.shared.ended.has_ended();
        queue.spinning += 1;
        spin_unlocked(&mut queue, has_changed);
        queue.spinning -= 1;
        // Threads had their turn, and this one found no room.
        queue.end_turn();
        let next = self.next(&mut queue);
        if next.start.is_some() || next.admitted.is_some() {
            drop(queue);
            add_since(room_ns, start);
            self.start_all(next);
            return self.queue.lock();
        }
        if !has_changed() {
            queue.sleeping += 1;
            match end {
                None => self.room.wait(&mut queue),
                Some(end) => drop(self.room.wait_until(&mut queue, end)),
            }
            queue.sleeping -= 1;
        }
        add_since(room_ns, start);
        queue
    }
}
