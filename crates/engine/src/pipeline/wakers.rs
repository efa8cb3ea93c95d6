//! Tasks that wait for an event, in the order in which they came.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::Waker;

/// Identifies a task that waits. A smaller one came earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TaskId(u64);

impl TaskId {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        TaskId(NEXT.fetch_add(1, Relaxed))
    }
}

/// The tasks. Their wakers' code, which also runs when they are dropped, must not run under a lock of the
/// engine, so whatever takes a waker out returns it.
#[derive(Default)]
pub(super) struct Wakers(VecDeque<(TaskId, Waker)>);

impl Wakers {
    /// Adds a task in its place. Returns its waker of before.
    #[must_use]
    pub(super) fn add(&mut self, task: TaskId, waker: Waker) -> Option<Waker> {
        match self.0.binary_search_by_key(&task, |(known, _)| *known) {
            Ok(place) => Some(std::mem::replace(&mut self.0[place].1, waker)),
            Err(place) => {
                self.0.insert(place, (task, waker));
                None
            }
        }
    }

    #[must_use]
    pub(super) fn remove(&mut self, task: TaskId) -> Option<Waker> {
        let place = self.0.binary_search_by_key(&task, |(known, _)| *known);
        self.0.remove(place.ok()?).map(|(_, waker)| waker)
    }

    /// Whether no other task came before this one.
    pub(super) fn is_before_all(&self, task: TaskId) -> bool {
        self.0.front().is_none_or(|(first, _)| task <= *first)
    }

    /// The waker of the task that came first.
    #[must_use]
    pub(super) fn first(&mut self) -> Option<Waker> {
        self.0.pop_front().map(|(_, waker)| waker)
    }

    /// All of them.
    #[must_use]
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Waker> + use<> {
        let all = std::mem::take(&mut self.0);
        all.into_iter().map(|(_, waker)| waker)
    }
}
