//! Connected components as trees, as kernels/forest.cuh has them: a node's parent is before it, and
//! a root is its own parent.

/// The parent of a node that is in no tree.
pub(in super::super) const NO_TREE: u32 = u32::MAX;

/// The root of a node's tree, among the parents of all nodes of the batch.
pub(in super::super) fn root_of(parents: &[u32], mut node: usize) -> usize {
    loop {
        let parent = parents[node] as usize;
        if parent == node {
            return node;
        }
        node = parent;
    }
}

/// Trees of some nodes of one structure, whose first is node `start` of the batch.
pub(in super::super) struct Forest<'a> {
    pub(in super::super) parents: &'a mut [u32],
    pub(in super::super) start: usize,
}

impl Forest<'_> {
    /// The root of a node's tree. Halves the path to the root on the way: nodes get their
    /// grandparents as parents.
    pub(in super::super) fn root(&mut self, node: usize) -> usize {
        let mut node = node - self.start;
        loop {
            let parent = self.parents[node] as usize - self.start;
            if parent == node {
                return node + self.start;
            }
            self.parents[node] = self.parents[parent];
            node = parent;
        }
    }

    /// Joins the trees of two nodes, each of which is in one. The root is the first node of both.
    pub(in super::super) fn join(&mut self, a: usize, b: usize) {
        if self.parents[a - self.start] == self.parents[b - self.start] {
            return;
        }
        let (a, b) = (self.root(a), self.root(b));
        self.parents[a.max(b) - self.start] = a.min(b) as u32;
    }
}
