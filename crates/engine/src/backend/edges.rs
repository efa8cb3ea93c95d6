//! Edges of a graph.

/// What each node of a graph runs after, without edges that follow from others.
#[derive(Default)]
pub(crate) struct Edges {
    after: Vec<Vec<usize>>,
    /// By node: all nodes that it runs after, directly or not.
    reached: Vec<Vec<bool>>,
}

impl Edges {
    /// Adds a node that runs after the nodes `direct`, which were added before.
    pub(crate) fn add(&mut self, mut direct: Vec<usize>) {
        // Latest first: what an earlier edge already implies needs no edge of its own.
        direct.sort_unstable_by(|a, b| b.cmp(a));
        direct.dedup();
        let mut reach = vec![false; self.after.len()];
        direct.retain(|&earlier| {
            let is_new = !reach[earlier];
            if is_new {
                reach[earlier] = true;
                let further = self.reached[earlier].iter().enumerate();
                further.for_each(|(index, &reached)| reach[index] |= reached);
            }
            is_new
        });
        direct.reverse();
        self.after.push(direct);
        self.reached.push(reach);
    }

    /// For each node, in the order in which they were added, the nodes that it runs after, ascending.
    pub(crate) fn into_after(self) -> Vec<Vec<usize>> {
        self.after
    }
}
