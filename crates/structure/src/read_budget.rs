//! The memory that readers on several threads share.

use std::io::Read;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use super::read_limits::reserve;
use crate::{Error, Result};

/// How many bytes of files and of their unpacked text several [`Reader`](super::Reader)s may
/// hold at once.
///
/// A reader takes bytes from the budget before it reads them, waits while there are too few,
/// and returns all of them once the file is read. One reader never waits: if a file is larger
/// than the whole budget, that reader reads it while all others wait. So the readers hold at
/// most the budget and one file.
#[derive(Debug)]
pub struct ReadBudget {
    bytes_max: u64,
    state: Mutex<BudgetState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct BudgetState {
    /// Bytes that the readers hold.
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

/// The bytes that one reader holds of a budget until the share is dropped. Taking more waits while the
/// budget has too few and another reader is active. Without a budget a share has no bounds.
pub struct BudgetShare {
    budget: Option<Arc<ReadBudget>>,
    bytes: u64,
}

/// The least number of bytes that is read at once from a source larger than its stated size, so
/// that a pipe, whose size is 0, takes few steps.
const STEP_BYTES_MIN: u64 = 64 << 10;

impl BudgetShare {
    /// A share of nothing yet.
    pub fn new(budget: Option<Arc<ReadBudget>>) -> Self {
        BudgetShare { budget, bytes: 0 }
    }

    /// Takes `more` bytes, at least one, as a reader that holds bytes counts as active. Waits for them as
    /// long as another reader is active.
    fn grow(&mut self, more: u64) {
        let Some(budget) = &self.budget else {
            return;
        };
        let mut state = budget.state.lock();
        // A reader that waits is not active. No other reader is woken for this: if no reader is active any
        // more, this one does not wait, and is active again before the lock is free.
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

    /// Takes a share of `bytes` bytes, at least one. Waits until the budget has them.
    pub fn taking(budget: Arc<ReadBudget>, bytes: u64) -> Self {
        let mut share = BudgetShare::new(Some(budget));
        share.grow(bytes.max(1));
        share
    }

    /// An empty vector with room for the bytes of this share.
    ///
    /// # Errors
    /// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if there is no memory for the bytes.
    pub fn buffer(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        reserve(&mut bytes, self.bytes as usize)?;
        Ok(bytes)
    }

    /// Makes `bytes` `len` long. What they hold is unspecified. May wait for the budget.
    ///
    /// # Errors
    /// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if there is no memory for the bytes.
    pub fn make_room(&mut self, bytes: &mut Vec<u8>, len: u64) -> Result<()> {
        self.grow(len.max(1));
        let more = (len as usize).saturating_sub(bytes.len());
        reserve(bytes, more)?;
        bytes.resize(len as usize, 0);
        Ok(())
    }

    /// Replaces `bytes` by the content of `source`. `size` is the stated size of `source`, which may be
    /// wrong. Returns false if the source has more than `max` bytes, of which `bytes` then has a part.
    /// `refused` makes the error if `source` cannot be read. May wait for the budget at each step, with
    /// what it has read so far.
    ///
    /// # Errors
    /// Those of `refused` if `source` cannot be read,
    /// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if there is no memory for its bytes.
    pub fn fill(
        &mut self,
        bytes: &mut Vec<u8>,
        mut source: impl Read,
        size: u64,
        max: u64,
        refused: impl Fn(std::io::Error) -> Error,
    ) -> Result<bool> {
        bytes.clear();
        // One byte more than the stated size shows whether there are more, one more than `max`
        // whether there are too many.
        let mut step = size.min(max) + 1;
        loop {
            self.grow(step);
            reserve(bytes, step as usize)?;
            let read = source.by_ref().take(step).read_to_end(bytes);
            if (read.map_err(&refused)? as u64) < step {
                return Ok(true);
            }
            let len = bytes.len() as u64;
            if len > max {
                return Ok(false);
            }
            // As many again, so that the steps are few.
            step = len.max(STEP_BYTES_MIN).min(max + 1 - len);
        }
    }
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        if let Some(budget) = &self.budget
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
        let budget = Arc::new(ReadBudget::new(100));
        let (held, most) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (budget, held, most) = (&budget, &held, &most);
                scope.spawn(move || {
                    for file in 0..200 {
                        let steps = [20 + thread, 30, 200 * u64::from(file % 50 == thread)];
                        let mut share = BudgetShare::new(Some(Arc::clone(budget)));
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
        let state = budget.state.lock();
        assert_eq!((state.bytes, state.active), (0, 0));
    }
}
