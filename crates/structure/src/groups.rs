//! Groups of items that are joined pair by pair.

/// Disjoint groups of the items `0..n`.
pub(super) struct Groups {
    /// For each item another one of its group, or itself. The lowest item of a group is its root.
    above: Vec<u32>,
}

impl Groups {
    /// A group for each of `count` items.
    pub(super) fn new(count: usize) -> Self {
        Groups {
            above: (0..count as u32).collect(),
        }
    }

    /// Joins the groups of two items.
    pub(super) fn join(&mut self, one: u32, other: u32) {
        let (one, other) = (self.root(one), self.root(other));
        self.above[one.max(other) as usize] = one.min(other);
    }

    /// The lowest item of an item's group. Halves the path to it, so that all calls together take
    /// nearly linear time.
    pub(super) fn root(&mut self, mut at: u32) -> u32 {
        while self.above[at as usize] != at {
            let above = self.above[self.above[at as usize] as usize];
            self.above[at as usize] = above;
            at = above;
        }
        at
    }
}
