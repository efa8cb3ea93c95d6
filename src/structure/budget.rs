//! The memory that readers on several threads share.

use parking_lot::{Condvar, Mutex};

/// How many bytes of files and of their text several [`Reader`](super::Reader)s may hold at
/// once. A reader takes bytes before it fills them, waits while there are too few, and gives
/// all back when the file is read.
///
/// One reader always goes on: a file that is larger than the whole budget is read while all
/// others wait. So the readers never hold more than the budget and one file.
pub struct ReadBudget {
    bytes_max: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    bytes: u64,
    /// Readers that hold a share and do not wait for more.
    active: usize,
}

impl ReadBudget {
    /// A budget of `bytes_max` bytes.
    pub fn new(bytes_max: u64) -> Self {
        ReadBudget {
            bytes_max,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }
}

/// What one reader holds of a budget, if there is one, until it is dropped.
pub(super) struct Share<'a> {
    budget: Option<&'a ReadBudget>,
    bytes: u64,
}

impl<'a> Share<'a> {
    pub(super) fn new(budget: Option<&'a ReadBudget>) -> Self {
        Share { budget, bytes: 0 }
    }

    /// Takes `more` bytes, at least one, and waits for them unless no other reader is
    /// active.
    pub(super) fn grow(&mut self, more: u64) {
        let Some(budget) = self.budget else {
            return;
        };
        let mut state = budget.state.lock();
        if self.bytes > 0 {
            state.active -= 1;
        }
        while state.active > 0 && state.bytes.saturating_add(more) > budget.bytes_max {
            budget.changed.wait(&mut state);
        }
        state.active += 1;
        state.bytes += more;
        self.bytes += more;
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        if let Some(budget) = self.budget
            && self.bytes > 0
        {
            let mut state = budget.state.lock();
            state.active -= 1;
            state.bytes -= self.bytes;
            budget.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

    #[test]
    fn readers_hold_no_more_than_the_budget_and_one_file() {
        let budget = ReadBudget::new(100);
        let (held, most) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (budget, held, most) = (&budget, &held, &most);
                scope.spawn(move || {
                    for file in 0..200 {
                        let steps = [20 + thread, 30, 200 * u64::from(file % 50 == thread)];
                        let mut share = Share::new(Some(budget));
                        for bytes in steps.into_iter().filter(|&bytes| bytes > 0) {
                            share.grow(bytes);
                            let now = held.fetch_add(bytes, SeqCst) + bytes;
                            most.fetch_max(now, SeqCst);
                            std::thread::yield_now();
                        }
                        held.fetch_sub(steps.iter().sum(), SeqCst);
                    }
                });
            }
        });
        let most = most.into_inner();
        // The largest file has 257 bytes.
        assert!((200..=357).contains(&most), "{most}");
        let state = budget.state.into_inner();
        assert_eq!((state.bytes, state.active), (0, 0));
    }
}
