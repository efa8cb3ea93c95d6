//! The results of a batch, which the tickets of its items share.

use super::AnswersShare;
use crate::backend::fork::Process;
use crate::error::{Error, ErrorKind, Result};
use crate::pipeline::ending::ENGINE;
use crate::pipeline::reentrancy::{EngineId, check_outside, is_inside_any};
use crate::pipeline::sync::{AtomicBool, Condvar, Guard, Mutex, spin};
use crate::pipeline::unwinding::catch_and_log;
use crate::workload::{Completion, Workload};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Weak};
use std::task::{Poll, Waker};
use std::time::Instant;

/// The largest number of answers that are kept for reuse: it bounds what the engine keeps for a program that
/// keeps the tickets of many batches, whose answers are tried again and again.
const ANSWERS_MAX: usize = 4096;

/// The engine of tickets.
pub(crate) trait TicketEngine<W: Workload>: Send + Sync {
    /// If `takes_batches`, computes batches that the engine's own threads have not begun, until `is_over`
    /// or until there is none. A thread of the engine's pool runs other work of the pool then.
    fn help(self: Arc<Self>, takes_batches: bool, is_over: &dyn Fn() -> bool);

    /// Takes `items` out of the batch with these answers and passes them to `take`, which runs none
    /// of the embedder's code. Returns false, and does nothing, if the batch has a slot.
    fn cancel(
        self: Arc<Self>,
        answers: &Answers<W>,
        items: Range<u32>,
        take: &mut dyn FnMut(W::Item),
    ) -> bool;
}

/// How tickets reach their engine.
pub(crate) struct EngineRef<W: Workload> {
    pub(crate) engine: Weak<dyn TicketEngine<W>>,
    /// Whether [`TicketEngine::help`] can do something.
    pub(crate) helps: bool,
}

impl<W: Workload> Clone for EngineRef<W> {
    fn clone(&self) -> Self {
        EngineRef {
            engine: Weak::clone(&self.engine),
            helps: self.helps,
        }
    }
}

/// The results of a batch whose items were submitted for tickets.
pub(crate) struct Answers<W: Workload> {
    state: Mutex<AnswersState<W>>,
    changed: Condvar,
    /// Whether the phase is not [`Phase::Pending`]. Set while the state is locked.
    is_over: AtomicBool,
    /// Whether an item was answered before the batch.
    has_early: AtomicBool,
    process: Process,
    engine: EngineId,
    /// `None` in tests without an engine.
    owner: Option<EngineRef<W>>,
}

struct AnswersState<W: Workload> {
    phase: Phase,
    /// The completions by the item's index in the batch, once the phase is [`Phase::Done`]. `None` if it was taken.
    completions: Vec<Option<Completion<W>>>,
    /// Completions of items that were answered before their batch, each with the item's index, until they
    /// are taken. Their tickets have one item each, as those of `submit_many` do not expire.
    early: Vec<(u32, Completion<W>)>,
    /// The items whose tickets were dropped before.
    unwanted: Vec<Range<u32>>,
    /// Tasks that await a ticket, each with the first item of its ticket. Their code, which also
    /// runs when they are dropped, must not run while the state is locked.
    wakers: Vec<(u32, Waker)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Pending,
    Done,
    /// The engine ended without results.
    Lost,
}

impl<W: Workload> Answers<W> {
    fn new(engine: EngineId, owner: Option<EngineRef<W>>) -> Arc<Self> {
        Arc::new(Answers {
            state: Mutex::new(AnswersState {
                phase: Phase::Pending,
                completions: Vec::new(),
                early: Vec::new(),
                unwanted: Vec::new(),
                wakers: Vec::new(),
            }),
            changed: Condvar::new(),
            is_over: AtomicBool::new(false),
            has_early: AtomicBool::new(false),
            process: Process::current(),
            engine,
            owner,
        })
    }

    fn is_over(&self) -> bool {
        self.is_over.load(SeqCst)
    }

    /// Whether the ticket whose first item is `first` has its results. In a child process it has none.
    pub(super) fn is_done(&self, first: u32) -> bool {
        if !self.process.is_current() {
            return false;
        }
        let is_early = || self.state.lock().early_place(first).is_some();
        self.is_over() || self.has_early.load(SeqCst) && is_early()
    }

    /// Fails if the ticket has no results, and this thread runs the engine's own code.
    fn check_can_wait(&self, first: u32) -> Result<()> {
        self.process.check(ENGINE)?;
        if self.is_done(first) {
            Ok(())
        } else {
            check_outside(
                self.engine,
                "waiting for a ticket",
                "wait on another thread",
            )
        }
    }

    /// Waits for the results of the ticket whose first item is `first`, until `end` if there is one.
    /// Returns false if `end` passed first.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] if this would wait in the engine's own code, and in a child of its
    /// process.
    #[inline]
    pub(super) fn wait(&self, first: u32, end: Option<Instant>) -> Result<bool> {
        self.process.check(ENGINE)?;
        if self.is_over() {
            Ok(true)
        } else {
            self.wait_for(first, end)
        }
    }

    /// Waits until entry `first` is answered, or until `end`; returns whether it is answered. Runs
    /// work of the engine meanwhile if there is some, then polls for a moment, and sleeps at last.
    fn wait_for(&self, first: u32, end: Option<Instant>) -> Result<bool> {
        self.check_can_wait(first)?;
        let is_over = || end.is_some_and(|end| Instant::now() >= end);
        // Nothing interrupts a batch that this thread computes, so `end` would pass unseen.
        self.help(end.is_none(), &|| self.is_done(first) || is_over());
        spin(|| self.is_done(first) || is_over());
        let mut state = self.state.lock();
        while state.is_pending(first) {
            match end {
                None => self.changed.wait(&mut state),
                Some(_) if is_over() => return Ok(false),
                Some(end) => drop(self.changed.wait_until(&mut state, end)),
            }
        }
        Ok(true)
    }

    /// Lets the engine use this thread ([`TicketEngine::help`]), unless it runs an engine's code.
    fn help(&self, takes_batches: bool, is_over: &dyn Fn() -> bool) {
        let owner = self.owner.as_ref();
        let owner = owner.filter(|owner| owner.helps && !is_inside_any());
        if let Some(engine) = owner.and_then(|owner| owner.engine.upgrade()) {
            engine.help(takes_batches, is_over);
        }
    }

    /// Takes `items` back, if their batch has no slot yet. Returns whether it did.
    pub(super) fn cancel(&self, items: Range<u32>, take: &mut dyn FnMut(W::Item)) -> bool {
        let can_cancel = self.process.is_current() && !self.is_done(items.start);
        let owner = self.owner.as_ref().filter(|_| can_cancel);
        let engine = owner.and_then(|owner| owner.engine.upgrade());
        let first = items.start;
        let is_taken = engine.is_some_and(|engine| engine.cancel(self, items, take));
        if is_taken {
            self.forget(first, self.state.lock());
        }
        is_taken
    }

    /// Drops the waker of the task that awaits the ticket whose first item is `first`.
    fn forget(&self, first: u32, mut state: Guard<'_, AnswersState<W>>) {
        let known = state.wakers.iter().position(|(item, _)| *item == first);
        let waker = known.map(|index| state.wakers.swap_remove(index));
        drop(state);
        catch_and_log(|| drop(waker));
    }

    /// Wakes the task of `waker` when the batch is done, if it is not done yet. The task awaits the
    /// ticket whose first item is `first`.
    pub(super) fn poll(&self, first: u32, waker: &Waker) -> Poll<Result<()>> {
        self.check_can_wait(first)?;
        // Without the lock, as it runs the code of an executor.
        let mut waker = waker.clone();
        let mut state = self.state.lock();
        if !state.is_pending(first) {
            drop(state);
            return Poll::Ready(Ok(()));
        }
        match state.wakers.iter_mut().find(|(item, _)| *item == first) {
            Some((_, known)) => std::mem::swap(known, &mut waker),
            None => {
                state.wakers.push((first, waker));
                return Poll::Pending;
            }
        }
        drop(state);
        catch_and_log(|| drop(waker));
        Poll::Pending
    }

    /// Passes the completions of `items` on, in order. The batch must be done.
    ///
    /// # Errors
    /// [`ErrorKind::Closed`] if the engine ended without results.
    pub(super) fn take(
        &self,
        items: Range<u32>,
        mut take: impl FnMut(Completion<W>),
    ) -> Result<()> {
        let mut state = self.state.lock();
        if let Some(place) = state.early_place(items.start) {
            take(state.early.swap_remove(place).1);
            return Ok(());
        }
        if state.phase == Phase::Lost {
            let message = "the engine ended before this item";
            return Err(Error::new(ErrorKind::Closed, message));
        }
        for completion in &mut state.completions[as_indices(items)] {
            take(completion.take().expect("a ticket takes its results once"));
        }
        Ok(())
    }

    /// Drops the completions of `items`, or has them dropped when they come.
    pub(super) fn leave(&self, items: Range<u32>) {
        if !self.process.is_current() {
            return;
        }
        let mut state = self.state.lock();
        if let Some(place) = state.early_place(items.start) {
            let completion = state.early.swap_remove(place);
            drop(state);
            catch_and_log(|| drop(completion));
            return;
        }
        match state.phase {
            Phase::Pending => {
                let first = items.start;
                state.unwanted.push(items);
                self.forget(first, state);
            }
            Phase::Lost => {}
            Phase::Done => {
                for index in as_indices(items) {
                    // A batch of which all items were taken out has no completions.
                    let completion = state.completions.get_mut(index).and_then(Option::take);
                    if completion.is_some() {
                        // Dropping it runs the embedder's code.
                        drop(state);
                        catch_and_log(|| drop(completion));
                        state = self.state.lock();
                    }
                }
            }
        }
    }

    /// Ends the batch, and wakes all that wait for it. Returns the items without a ticket.
    fn end(&self, phase: Phase, mut state: Guard<'_, AnswersState<W>>) -> Vec<Range<u32>> {
        state.phase = phase;
        self.is_over.store(true, SeqCst);
        let unwanted = std::mem::take(&mut state.unwanted);
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        self.changed.notify_all();
        for (_, waker) in wakers {
            catch_and_log(|| waker.wake());
        }
        unwanted
    }
}

impl<W: Workload> AnswersState<W> {
    /// Where the early answer of an item is.
    fn early_place(&self, item: u32) -> Option<usize> {
        self.early
            .iter()
            .position(|(answered, _)| *answered == item)
    }

    fn is_pending(&self, first: u32) -> bool {
        self.phase == Phase::Pending && self.early_place(first).is_none()
    }
}

/// The wake and the drop that follow an early answer: call [`Early::finish`] without a lock.
#[must_use]
pub(crate) struct Early<W: Workload> {
    waker: Option<Waker>,
    /// The answer, if its ticket was dropped.
    unwanted: Option<Completion<W>>,
}

impl<W: Workload> Early<W> {
    /// Wakes the task that awaits the ticket.
    pub(crate) fn finish(self) {
        if let Some(waker) = self.waker {
            catch_and_log(|| waker.wake());
        }
        catch_and_log(|| drop(self.unwanted));
    }
}

fn as_indices(items: Range<u32>) -> Range<usize> {
    items.start as usize..items.end as usize
}

/// The engine's end of a batch's answers. Dropping it without completions loses the items.
pub(crate) struct BatchReply<W: Workload>(pub(super) Arc<Answers<W>>);

impl<W: Workload> BatchReply<W> {
    /// A ticket for `items` of the batch.
    #[inline]
    pub(crate) fn ticket(&self, items: Range<u32>) -> AnswersShare<W> {
        AnswersShare {
            answers: Arc::clone(&self.0),
            items,
            cancels: false,
        }
    }

    /// Answers an item before its batch. It runs none of the embedder's code.
    pub(crate) fn answer_early(&self, item: u32, completion: Completion<W>) -> Early<W> {
        let mut state = self.0.state.lock();
        let is_unwanted = |items: &Range<u32>| items.contains(&item);
        if state.unwanted.iter().any(is_unwanted) {
            return Early {
                waker: None,
                unwanted: Some(completion),
            };
        }
        state.early.push((item, completion));
        self.0.has_early.store(true, SeqCst);
        let known = state
            .wakers
            .iter()
            .position(|(waiting, _)| *waiting == item);
        let waker = known.map(|place| state.wakers.swap_remove(place).1);
        drop(state);
        self.0.changed.notify_all();
        Early {
            waker,
            unwanted: None,
        }
    }

    /// Whether these are the answers of its batch.
    pub(crate) fn is_of(&self, answers: &Answers<W>) -> bool {
        std::ptr::eq(&*self.0, answers)
    }

    /// Gives the completions, one for each item of the batch, to the tickets. Items that were taken out
    /// have none.
    pub(crate) fn complete(self, completions: impl Iterator<Item = Option<Completion<W>>>) {
        let mut state = self.0.state.lock();
        debug_assert!(state.completions.is_empty(), "cleared before its use");
        // Extending the list does not run the embedder's code: the items and results are only moved.
        state.completions.extend(completions);
        for items in self.0.end(Phase::Done, state) {
            self.0.leave(items);
        }
    }
}

impl<W: Workload> Drop for BatchReply<W> {
    // Runs after `complete` too, where it changes nothing.
    fn drop(&mut self) {
        if !self.0.is_over() {
            self.0.end(Phase::Lost, self.0.state.lock());
        }
    }
}

/// Answers that are used again, so that batches do not allocate in the long run. Those of a batch
/// are free once its tickets and its reply are dropped.
pub(crate) struct AnswersPool<W: Workload> {
    engine: EngineId,
    owner: Option<EngineRef<W>>,
    /// In the order of their last use.
    answers: VecDeque<Arc<Answers<W>>>,
}

impl<W: Workload> AnswersPool<W> {
    pub(crate) fn new(engine: EngineId, owner: Option<EngineRef<W>>) -> Self {
        AnswersPool {
            engine,
            owner,
            answers: VecDeque::new(),
        }
    }

    fn new_answers(&self) -> Arc<Answers<W>> {
        Answers::new(self.engine, self.owner.clone())
    }

    /// The reply of a new batch.
    pub(crate) fn take(&mut self) -> BatchReply<W> {
        let mut answers = match self.answers.pop_front() {
            Some(answers) => answers,
            None => self.new_answers(),
        };
        match Arc::get_mut(&mut answers) {
            Some(_) => {
                let mut state = answers.state.lock();
                // Early results and wakers went with the tickets, of which none is left.
                state.phase = Phase::Pending;
                answers.is_over.store(false, SeqCst);
                answers.has_early.store(false, SeqCst);
                state.completions.clear();
                state.unwanted.clear();
            }
            None => {
                // Its tickets may be kept for long, so the others are tried first.
                if self.answers.len() < ANSWERS_MAX {
                    self.answers.push_back(answers);
                }
                answers = self.new_answers();
            }
        }
        self.answers.push_back(Arc::clone(&answers));
        BatchReply(answers)
    }
}
