//! Tickets for the results of submitted items. The tickets of a batch share its [`Answers`].

mod answers;

use super::unwinding::catch_and_log;
#[cfg(doc)]
use crate::error::ErrorKind;
use crate::error::{Error, Result};
use crate::workload::{Completion, Workload};
pub(crate) use answers::{Answers, AnswersPool, BatchReply, Early, EngineRef, TicketEngine};
use std::fmt;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, Waker, ready};
use std::time::{Duration, Instant};

/// A share in a batch's answers. Dropping it drops its completions.
pub(crate) struct AnswersShare<W: Workload> {
    answers: Arc<Answers<W>>,
    /// Empty once the completions were taken.
    items: Range<u32>,
    /// Whether dropping it takes the items back.
    cancels: bool,
}

impl<W: Workload> AnswersShare<W> {
    /// Takes the completions. The batch must be done.
    fn take(&mut self, take: impl FnMut(Completion<W>)) -> Result<()> {
        if self.items.is_empty() {
            let error = Error::usage("the ticket has returned its result");
            return Err(error.fix("wait for a ticket once"));
        }
        self.answers.take(std::mem::take(&mut self.items), take)
    }

    fn is_done(&self) -> bool {
        self.items.is_empty() || self.answers.is_done(self.items.start)
    }

    fn wait(&self, end: Option<Instant>) -> Result<bool> {
        if self.items.is_empty() {
            Ok(true)
        } else {
            self.answers.wait(self.items.start, end)
        }
    }

    fn poll(&self, waker: &Waker) -> Poll<Result<()>> {
        if self.items.is_empty() {
            Poll::Ready(Ok(()))
        } else {
            self.answers.poll(self.items.start, waker)
        }
    }

    /// Takes the items back if their batch has no slot yet. Returns whether they were taken back.
    fn cancel(&mut self, mut take: impl FnMut(W::Item)) -> bool {
        let is_taken = self.answers.cancel(self.items.clone(), &mut take);
        if is_taken {
            self.items = Range::default();
        }
        is_taken
    }
}

impl<W: Workload> Drop for AnswersShare<W> {
    fn drop(&mut self) {
        if self.items.is_empty() {
            return;
        }
        let mut cancelled = Vec::new();
        if self.cancels && self.cancel(|item| cancelled.push(item)) {
            // Dropping an item runs the embedder's code.
            for item in cancelled {
                catch_and_log(|| drop(item));
            }
            return;
        }
        self.answers.leave(self.items.clone());
    }
}

/// A handle to the result of one submitted item.
///
/// Dropping it drops the result, when there is one; the item is computed all the same, as its
/// kernels may update memory that later items read. [`Ticket::cancel`] and [`Ticket::cancel_on_drop`] also
/// save the device's time.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/double.rs"));
/// # use tapeloop_engine::*;
/// # fn main() -> Result<()> {
/// let engine = Engine::auto(Double::new()?, &EngineConfig::new([1 << 20]))?;
/// let ticket = engine.submit(vec![1.5])?;
/// // In a task of an executor: `ticket.await?`.
/// let done = ticket.wait()?;
/// assert_eq!((done.item, done.result?), (vec![1.5], vec![3.0]));
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping a ticket drops the item's result; the item is computed all the same"]
pub struct Ticket<W: Workload>(pub(super) AnswersShare<W>);

impl<W: Workload> Ticket<W> {
    /// Whether [`Ticket::wait`] would return at once.
    pub fn is_done(&self) -> bool {
        self.0.is_done()
    }

    /// Waits for the item and its result. [`Completion::result`] holds the item's own error.
    ///
    /// # Errors
    /// - [`ErrorKind::Closed`] if the engine ended without a result; the item is lost then.
    /// - [`ErrorKind::Usage`] in the engine's own code, such as [`Workload::read`], if the result
    ///   is not ready: the engine would wait for itself.
    pub fn wait(mut self) -> Result<Completion<W>> {
        self.0.wait(None)?;
        self.take()
    }

    /// Waits for the item and its result, but not for longer than `timeout`. `None` if the result is
    /// not ready then; the ticket can be waited for again.
    ///
    /// On the CPU [`Ticket::wait`] computes small batches that no other thread has begun, which nothing
    /// interrupts. So this does not: the engine's own thread computes them, one after the other.
    ///
    /// # Errors
    /// The errors of [`Ticket::wait`], and [`ErrorKind::Usage`] if the ticket has returned its
    /// result.
    pub fn wait_timeout(&mut self, timeout: Duration) -> Result<Option<Completion<W>>> {
        // A timeout beyond the clock's range never ends.
        let end = Instant::now().checked_add(timeout);
        if self.0.wait(end)? {
            self.take().map(Some)
        } else {
            Ok(None)
        }
    }

    /// Takes the item back if its batch has no slot yet; the device then spends no time on it. There is
    /// room for another batch once all items of a closed batch were taken back.
    ///
    /// It never waits for a device, and may be called anywhere.
    ///
    /// # Errors
    /// The ticket if it is too late: the item is computed, or was, has expired, or its result was taken.
    pub fn cancel(mut self) -> Result<W::Item, Ticket<W>> {
        let mut cancelled = None;
        self.0.cancel(|item| cancelled = Some(item));
        cancelled.ok_or(self)
    }

    /// The same ticket, which [cancels](Ticket::cancel) the item when it is dropped before its result is
    /// taken, as when the task that awaits it ends.
    pub fn cancel_on_drop(mut self) -> Ticket<W> {
        self.0.cancels = true;
        self
    }

    fn take(&mut self) -> Result<Completion<W>> {
        let mut taken = None;
        self.0.take(|completion| taken = Some(completion))?;
        Ok(taken.expect("a ticket has one item"))
    }
}

impl<W: Workload> fmt::Debug for Ticket<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_done() {
            "Ticket(done)"
        } else {
            "Ticket(pending)"
        })
    }
}

/// Awaits the item and its result, on any executor. The task is woken once, when the item's batch is
/// done or the item expires.
///
/// The errors are those of [`Ticket::wait`], and [`ErrorKind::Usage`] if the ticket has returned its
/// result.
impl<W: Workload> Future for Ticket<W> {
    type Output = Result<Completion<W>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut std::task::Context<'_>) -> Poll<Self::Output> {
        ready!(self.0.poll(context.waker()))?;
        Poll::Ready(self.take())
    }
}

/// A handle to the results of items that were submitted together with
/// [`Engine::submit_many`](super::Engine::submit_many).
///
/// Dropping it drops the results, as for a [`Ticket`].
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/double.rs"));
/// # use tapeloop_engine::*;
/// # fn main() -> Result<()> {
/// let engine = Engine::auto(Double::new()?, &EngineConfig::new([100]))?;
/// let tickets = engine.submit_many([vec![1.0], vec![2.0]])?;
/// assert_eq!(tickets.len(), 2);
/// for (done, expected) in tickets.wait()?.into_iter().zip([[2.0], [4.0]]) {
///     assert_eq!(done.result?, expected);
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping the tickets drops the results; the items are computed all the same"]
pub struct Tickets<W: Workload> {
    /// By batch, in the order of the items.
    parts: Vec<AnswersShare<W>>,
}

impl<W: Workload> Tickets<W> {
    pub(super) fn new() -> Self {
        Tickets { parts: Vec::new() }
    }

    /// Adds the next item, which is the batch's item `index`.
    #[inline]
    pub(super) fn add(&mut self, batch: &BatchReply<W>, index: u32) {
        match self.parts.last_mut() {
            Some(last) if Arc::ptr_eq(&last.answers, &batch.0) && last.items.end == index => {
                last.items.end += 1;
            }
            _ => self.parts.push(batch.ticket(index..index + 1)),
        }
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.items.len()).sum()
    }

    /// Whether no items were submitted.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether [`Tickets::wait`] would return at once.
    pub fn is_done(&self) -> bool {
        self.parts.iter().all(AnswersShare::is_done)
    }

    /// Waits for the items and their results, in the order in which they were submitted.
    ///
    /// # Errors
    /// The errors of [`Ticket::wait`]. The results of the other items are dropped then.
    pub fn wait(mut self) -> Result<Vec<Completion<W>>> {
        for part in &self.parts {
            part.wait(None)?;
        }
        self.take()
    }

    /// Takes the items back whose batches have no slot yet, as [`Ticket::cancel`] does. Returns them, in
    /// the order in which they were submitted, and the tickets of the others.
    pub fn cancel(mut self) -> (Vec<W::Item>, Tickets<W>) {
        let mut cancelled = Vec::new();
        self.parts
            .retain_mut(|part| !part.cancel(|item| cancelled.push(item)));
        (cancelled, self)
    }

    /// The same tickets, which [cancel](Tickets::cancel) the items when they are dropped before the results
    /// are taken.
    pub fn cancel_on_drop(mut self) -> Tickets<W> {
        self.parts.iter_mut().for_each(|part| part.cancels = true);
        self
    }

    fn take(&mut self) -> Result<Vec<Completion<W>>> {
        let mut completions = Vec::with_capacity(self.len());
        for mut part in std::mem::take(&mut self.parts) {
            part.take(|completion| completions.push(completion))?;
        }
        Ok(completions)
    }
}

impl<W: Workload> fmt::Debug for Tickets<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tickets({} items)", self.len())
    }
}

/// Awaits the items and their results, in the order in which they were submitted, on any executor.
/// The task is woken once for each batch that has some of the items.
///
/// The errors are those of [`Tickets::wait`]. Tickets that have returned their results return no
/// more.
impl<W: Workload> Future for Tickets<W> {
    type Output = Result<Vec<Completion<W>>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut std::task::Context<'_>) -> Poll<Self::Output> {
        for part in &self.parts {
            ready!(part.poll(context.waker()))?;
        }
        Poll::Ready(self.take())
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
