//! [`Ending`]: why an engine takes no more items, and the tasks that await its end.

use super::sync::{AtomicBool, AtomicU64, Mutex};
use super::unwinding::catch_and_log;
use crate::backend::fork::Process;
use crate::error::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

/// What the errors of a child process call it.
pub(super) const ENGINE: &str = "the engine";

pub(super) struct Ending {
    process: Process,
    /// Whether it takes no more items. Set after the reason.
    has_ended: AtomicBool,
    reason: OnceLock<Error>,
    /// Each with the number of its future.
    tasks: Mutex<Vec<(u64, Waker)>>,
    futures: AtomicU64,
}

impl Ending {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Ending {
            process: Process::current(),
            has_ended: AtomicBool::new(false),
            reason: OnceLock::new(),
            tasks: Mutex::new(Vec::new()),
            futures: AtomicU64::new(0),
        })
    }

    pub(super) fn process(&self) -> Process {
        self.process
    }

    /// Whether the engine takes no more items.
    #[inline]
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(SeqCst)
    }

    /// The error that ended the engine.
    pub(super) fn get(&self) -> Option<&Error> {
        self.reason.get()
    }

    /// [`Ending::get`], or the error of a child process.
    pub(super) fn reason(&self) -> Option<Error> {
        match self.process.check(ENGINE) {
            Ok(()) => self.get().cloned(),
            Err(forked) => Some(forked),
        }
    }

    /// The error of a call to an engine that has ended.
    #[cold]
    pub(super) fn error(&self) -> Error {
        match self.reason.get() {
            Some(reason) if reason.kind() == ErrorKind::Closed => reason.clone(),
            Some(reason) => {
                let message = format!("the engine has ended: {}", reason.message());
                Error::new(ErrorKind::Closed, message)
                    .fix("see the error that ended it, then make another engine")
            }
            None => Error::new(ErrorKind::Closed, "the engine was closed"),
        }
    }

    /// Fails if the engine has ended, or if this is a child of the process that made it.
    #[inline]
    pub(super) fn check(&self) -> Result<()> {
        self.process.check(ENGINE)?;
        if self.has_ended() {
            Err(self.error())
        } else {
            Ok(())
        }
    }

    /// Lets the engine take no more items. What was submitted is answered.
    pub(super) fn close(&self) {
        self.has_ended.store(true, SeqCst);
    }

    /// Ends the engine, if it has not ended yet, and wakes the tasks that await it.
    pub(super) fn end(&self, reason: Error) {
        if self.set(reason) {
            self.wake_tasks();
        }
    }

    /// Ends the engine. Returns whether it had not ended before; then call [`Ending::wake_tasks`] where no
    /// lock is held.
    #[must_use]
    pub(super) fn set(&self, reason: Error) -> bool {
        let is_first = self.reason.set(reason).is_ok();
        self.has_ended.store(true, SeqCst);
        is_first
    }

    pub(super) fn wake_tasks(&self) {
        let tasks = std::mem::take(&mut *self.tasks.lock());
        for (_, waker) in tasks {
            catch_and_log(|| waker.wake());
        }
    }
}

/// Awaits the end of an engine, and its reason, on any executor: [`Engine::until_ended`](super::Engine::until_ended).
#[must_use = "a future does nothing unless it is awaited"]
pub struct Ended {
    ending: Arc<Ending>,
    number: u64,
}

impl Ended {
    pub(super) fn new(ending: &Arc<Ending>) -> Self {
        Ended {
            ending: Arc::clone(ending),
            number: ending.futures.fetch_add(1, SeqCst),
        }
    }
}

impl Future for Ended {
    type Output = Error;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Error> {
        if let Err(forked) = self.ending.process.check(ENGINE) {
            return Poll::Ready(forked);
        }
        let waker = context.waker().clone();
        let mut tasks = self.ending.tasks.lock();
        // Looked at under the lock: `wake_tasks` takes the list after the reason was set.
        if let Some(reason) = self.ending.get() {
            drop(tasks);
            return Poll::Ready(reason.clone());
        }
        let known = tasks.iter_mut().find(|(number, _)| *number == self.number);
        let before = match known {
            Some((_, known)) => Some(std::mem::replace(known, waker)),
            None => {
                tasks.push((self.number, waker));
                None
            }
        };
        drop(tasks);
        // Dropping a waker may run the embedder's code.
        catch_and_log(|| drop(before));
        Poll::Pending
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        if self.ending.process.is_current() {
            let waker = {
                let mut tasks = self.ending.tasks.lock();
                let place = tasks.iter().position(|(number, _)| *number == self.number);
                place.map(|place| tasks.swap_remove(place))
            };
            catch_and_log(|| drop(waker));
        }
    }
}
