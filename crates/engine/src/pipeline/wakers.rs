//! Tasks that wait for an event, in the order in which they came.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::Waker;

/// Identifies a task that waits. Smaller ids were made earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TaskId(u64);

impl TaskId {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        TaskId(NEXT.fetch_add(1, Relaxed))
    }
}

/// The tasks in their order. A task that was woken stays until it is removed or added again. The wakers'
/// code, which also runs when they are dropped, must not run under a lock of the engine, so whatever
/// takes a waker out returns it.
#[derive(Default)]
pub(super) struct Wakers(VecDeque<(TaskId, Option<Waker>)>);

impl Wakers {
    fn place(&self, task: TaskId) -> Result<usize, usize> {
        self.0.binary_search_by_key(&task, |(known, _)| *known)
    }

    /// Adds a task in its place, to be woken. Returns the waker that this replaces.
    #[must_use]
    pub(super) fn add(&mut self, task: TaskId, waker: Waker) -> Option<Waker> {
        match self.place(task) {
            Ok(place) => self.0[place].1.replace(waker),
            Err(place) => {
                self.0.insert(place, (task, Some(waker)));
                None
            }
        }
    }

    /// Removes a task. Returns its waker, unless the task was woken.
    #[must_use]
    pub(super) fn remove(&mut self, task: TaskId) -> Option<Waker> {
        let place = self.place(task).ok()?;
        self.0.remove(place).and_then(|(_, waker)| waker)
    }

    /// Whether it is a task's turn: it was woken, or no other task came before it.
    pub(super) fn is_turn_of(&self, task: TaskId) -> bool {
        match self.place(task) {
            Ok(place) => place == 0 || self.0[place].1.is_none(),
            Err(_) => self.0.is_empty(),
        }
    }

    /// Takes the wakers of the first `count` tasks out that were not woken yet.
    #[must_use]
    pub(super) fn wake_first(&mut self, count: usize) -> impl Iterator<Item = Waker> {
        let wakers = self.0.iter_mut().filter_map(|(_, waker)| waker.take());
        wakers.take(count)
    }

    /// Takes all wakers out, and forgets the tasks.
    #[must_use]
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Waker> + use<> {
        let all = std::mem::take(&mut self.0);
        all.into_iter().filter_map(|(_, waker)| waker)
    }
}
