//! Edges of a graph.

use crate::record::{DeviceCode, Kernel};

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

/// A node of a graph, or an operation in a stream, as programmatic dependent launch sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeRole {
    /// No kernel, or a library call.
    Other,
    /// A kernel that starts after all that it runs after has ended.
    Kernel,
    /// A kernel that may start before that, because its code waits for it.
    WaitingKernel,
}

impl NodeRole {
    /// The role of a kernel on a device with programmatic dependent launch.
    pub fn of(kernel: &Kernel) -> NodeRole {
        let attributes = kernel.attributes;
        // All blocks of a cooperative launch start at once, which needs the room of the kernel before.
        if matches!(kernel.code, Some(DeviceCode::Library(_))) {
            NodeRole::Other
        } else if attributes.waits_for_dependencies && !attributes.is_cooperative {
            NodeRole::WaitingKernel
        } else {
            NodeRole::Kernel
        }
    }

    /// Whether it may start before `earlier` has ended, which is the only node that it runs after.
    pub fn may_start_before_end_of(self, earlier: NodeRole) -> bool {
        self == NodeRole::WaitingKernel && earlier != NodeRole::Other
    }
}

/// For each node the one at the start of its programmatic edge, if it has such an edge. `after` are
/// the nodes that each node runs after.
///
/// A programmatic edge is the only edge to its node and the only edge from the node at its start.
/// Other edges stay full. A node that ends has waited for the end of the node before, so that what
/// follows from two edges holds for programmatic edges too.
pub fn programmatic_edges<'a>(
    after: impl Iterator<Item = &'a [usize]> + Clone,
    roles: &[NodeRole],
) -> Vec<Option<usize>> {
    let mut later = vec![0; roles.len()];
    let ends = after.clone().flatten();
    ends.for_each(|&earlier| later[earlier] += 1);
    let nodes = after.zip(roles);
    nodes
        .map(|(after, role)| match *after {
            [earlier] if later[earlier] == 1 => role
                .may_start_before_end_of(roles[earlier])
                .then_some(earlier),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::NodeRole::{Kernel as Plain, Other, WaitingKernel as Waits};
    use super::*;

    #[test]
    fn only_an_edge_between_two_kernels_that_have_no_other_is_programmatic() {
        let edges = |after: &[&[usize]], roles: &[NodeRole]| {
            programmatic_edges(after.iter().copied(), roles)
        };
        // A chain: a kernel that does not wait, and one after a copy, start after the node before.
        let roles = [Other, Waits, Waits, Plain, Waits, Other];
        let chain: [&[usize]; 6] = [&[], &[0], &[1], &[2], &[3], &[4]];
        let expected = [None, None, Some(1), None, Some(3), None];
        assert_eq!(edges(&chain, &roles), expected);
        // A kernel after two others, and two kernels after one.
        let join: [&[usize]; 3] = [&[], &[], &[0, 1]];
        assert_eq!(edges(&join, &[Waits; 3]), [None; 3]);
        let fork: [&[usize]; 3] = [&[], &[0], &[0]];
        assert_eq!(edges(&fork, &[Waits; 3]), [None; 3]);
    }

    #[test]
    fn a_cooperative_kernel_starts_after_all_that_it_runs_after() {
        let kernel = Kernel::new("k").waits_for_dependencies();
        assert_eq!(NodeRole::of(&kernel), Waits);
        assert_eq!(NodeRole::of(&kernel.cooperative()), Plain);
        assert_eq!(NodeRole::of(&Kernel::new("k")), Plain);
    }
}
