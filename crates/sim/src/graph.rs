//! Graphs of a slot: nodes, edges, and the changes that an update allows.

use super::access::{ResolvedOp, Touch, touches};
use std::mem::discriminant;
use std::sync::Arc;
use tapeloop_engine::internal::{NodeRole, programmatic_edges};

/// The accesses of nodes, each with the index of its node.
pub(super) type Touches = Arc<Vec<(usize, Touch)>>;

/// A graph. Launches in flight share it; an update makes another one for later launches.
#[derive(Clone)]
pub(super) struct Graph {
    pub(super) steps: Arc<Vec<ResolvedOp>>,
    pub(super) order: Order,
    /// The edges that order the accesses of nodes, if those are not all of `order`.
    ordering: Option<Arc<Vec<Vec<usize>>>>,
    /// The accesses of the nodes, if they were checked since the last change.
    checked: Option<Touches>,
}

/// The edges of a graph.
#[derive(Clone, PartialEq)]
pub(super) enum Order {
    /// Each node runs after the one before: the graph was captured.
    Line,
    /// Each node runs after those listed, which are earlier: the graph is explicit.
    After(Arc<Vec<Vec<usize>>>),
}

impl Order {
    /// Whether a node may run if the nodes of which `is_done` is true are done.
    pub(super) fn allows(&self, node: usize, is_done: impl Fn(usize) -> bool) -> bool {
        match self {
            Order::Line => node == 0 || is_done(node - 1),
            Order::After(after) => after[node].iter().all(|&earlier| is_done(earlier)),
        }
    }

    pub(super) fn is_captured(&self) -> bool {
        *self == Order::Line
    }
}

impl Graph {
    pub(super) fn new(steps: Vec<ResolvedOp>, order: Order) -> Self {
        Graph {
            steps: Arc::new(steps),
            order,
            ordering: None,
            checked: None,
        }
    }

    /// The graph on a device whose kernels do not wait for their dependencies: over a programmatic edge
    /// nothing but that wait orders two nodes.
    pub(super) fn without_waits(mut self) -> Self {
        let mut after = match &self.order {
            Order::Line => {
                let before = |node: usize| node.checked_sub(1).into_iter().collect();
                (0..self.steps.len()).map(before).collect()
            }
            Order::After(after) => Vec::clone(after),
        };
        let roles: Vec<NodeRole> = self.steps.iter().map(|step| step.role).collect();
        let programmatic = programmatic_edges(after.iter().map(Vec::as_slice), &roles);
        for (after, programmatic) in after.iter_mut().zip(programmatic) {
            after.retain(|earlier| Some(*earlier) != programmatic);
        }
        self.ordering = Some(Arc::new(after));
        self
    }

    /// The first difference in topology from a graph that was made in the same way, captured or explicit; `None`
    /// if this graph can take its operations.
    pub(super) fn difference(&self, other: &Graph) -> Option<String> {
        let pairs = self.steps.iter().zip(&*other.steps).enumerate();
        for (node, (old, new)) in pairs {
            if discriminant(&old.op) != discriminant(&new.op) {
                let (old, new) = (old.op.kind_name(), new.op.kind_name());
                return Some(format!("node {node} was {old}, and is {new}"));
            }
        }
        let (old, new) = (self.steps.len(), other.steps.len());
        if old != new {
            let node = old.min(new);
            return Some(format!(
                "node {node} is of one graph alone: there were {old} nodes, and are {new}"
            ));
        }
        let (Order::After(old), Order::After(new)) = (&self.order, &other.order) else {
            // Captured graphs run their nodes in order.
            return None;
        };
        let node = old.iter().zip(&**new).position(|(old, new)| old != new)?;
        Some(format!(
            "node {node} ran after {:?}, and does after {:?}",
            old[node], new[node]
        ))
    }

    /// Replaces the operation of a node. Returns false for another kind of operation.
    pub(super) fn set(&mut self, node: usize, step: ResolvedOp) -> bool {
        let same = discriminant(&self.steps[node].op) == discriminant(&step.op);
        if same {
            Arc::make_mut(&mut self.steps)[node] = step;
            self.checked = None;
        }
        same
    }

    /// The accesses of the nodes, and two that conflict without an order, unless they were checked
    /// before.
    pub(super) fn touches(&mut self) -> (Touches, Option<[(usize, Touch); 2]>) {
        if let Some(checked) = &self.checked {
            return (Arc::clone(checked), None);
        }
        let all = Arc::new(touches(&self.steps));
        let clash = match (&self.ordering, &self.order) {
            (Some(after), _) | (None, Order::After(after)) => clash(after, &all),
            (None, Order::Line) => None,
        };
        if clash.is_none() {
            self.checked = Some(Arc::clone(&all));
        }
        (all, clash)
    }
}

/// Two nodes that access the same bytes, at least one to write, without a path between them.
fn clash(after: &[Vec<usize>], all: &[(usize, Touch)]) -> Option<[(usize, Touch); 2]> {
    let mut reached: Vec<Vec<bool>> = Vec::with_capacity(after.len());
    for (node, edges) in after.iter().enumerate() {
        let mut reach = vec![false; node];
        for &earlier in edges {
            reach[earlier] = true;
            let further = reached[earlier].iter().enumerate();
            further.for_each(|(index, reached)| reach[index] |= reached);
        }
        reached.push(reach);
    }
    for (place, (later, b)) in all.iter().enumerate() {
        for (earlier, a) in &all[..place] {
            let overlap =
                a.memory == b.memory && a.range.start < b.range.end && b.range.start < a.range.end;
            let writes = a.access.writes() || b.access.writes();
            if earlier != later && overlap && writes && !reached[*later][*earlier] {
                return Some([(*earlier, a.clone()), (*later, b.clone())]);
            }
        }
    }
    None
}
