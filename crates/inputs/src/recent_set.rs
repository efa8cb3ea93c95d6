//! A set that forgets what was added long ago, so that its memory is bounded.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hash, RandomState};

/// The values that were added last, as hashes of 128 bits, which never collide in practice. At least
/// `kept` values are remembered, and at most twice as many.
pub(super) struct RecentSet {
    kept: usize,
    hashers: [RandomState; 2],
    recent: HashSet<u128>,
    older: HashSet<u128>,
}

impl RecentSet {
    pub(super) fn new(kept: usize) -> Self {
        RecentSet {
            kept,
            hashers: [RandomState::new(), RandomState::new()],
            recent: HashSet::new(),
            older: HashSet::new(),
        }
    }

    /// Adds a value. Returns whether it is new.
    pub(super) fn insert(&mut self, value: impl Hash) -> bool {
        let [high, low] = self
            .hashers
            .each_ref()
            .map(|hasher| u128::from(hasher.hash_one(&value)));
        let hash = high << 64 | low;
        if self.recent.contains(&hash) || self.older.contains(&hash) {
            return false;
        }
        if self.recent.len() == self.kept {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_values_are_remembered_in_bounded_memory() {
        const KEPT: usize = 1000;
        let mut set = RecentSet::new(KEPT);
        assert!((0..KEPT).all(|value| set.insert(value)));
        assert!(!set.insert(0_usize) && !set.insert(KEPT - 1));
        assert!((KEPT..3 * KEPT).all(|value| set.insert(value)));
        assert!(!set.insert(2 * KEPT + 1) && set.insert(0_usize));
        assert!(set.recent.len() <= KEPT && set.older.len() <= KEPT);
    }
}
