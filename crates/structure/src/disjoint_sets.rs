//! Disjoint sets of items that are joined pair by pair (union-find).

/// Disjoint sets of the items `0..n`.
pub(super) struct DisjointSets {
    /// For each item another item of its set, or itself for the root, which is the lowest item.
    parent: Vec<u32>,
}

impl DisjointSets {
    /// A set for each of `count` items.
    pub(super) fn new(count: usize) -> Self {
        DisjointSets {
            parent: (0..count as u32).collect(),
        }
    }

    /// Joins the sets of two items.
    pub(super) fn join(&mut self, one: u32, other: u32) {
        let (one, other) = (self.root(one), self.root(other));
        self.parent[one.max(other) as usize] = one.min(other);
    }

    /// The lowest item of the set that holds `item`. Halves the path to it, so that all calls together take
    /// nearly linear time.
    pub(super) fn root(&mut self, mut item: u32) -> u32 {
        while self.parent[item as usize] != item {
            let parent = self.parent[self.parent[item as usize] as usize];
            self.parent[item as usize] = parent;
            item = parent;
        }
        item
    }
}
