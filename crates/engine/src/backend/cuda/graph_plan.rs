//! Which nodes a graph has for its operations.

use super::copies::{MEAN_BYTES_MAX, PIECES_MAX, bytes};
use crate::backend::edges::Edges;
use crate::backend::{GraphSource, Node, Op};

/// A node of a graph.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NodePlan {
    /// The indices of its operations among those of the graph.
    pub(super) places: Vec<usize>,
    /// Whether one launch does its operations, which are copies and memsets. Otherwise the node has one
    /// operation.
    pub(super) copies: bool,
    /// The nodes that it runs after; empty in a captured graph.
    pub(super) after: Vec<usize>,
}

/// A node for each operation.
pub(super) fn one_each(source: GraphSource<'_>) -> Vec<NodePlan> {
    let after = |place: usize| match source {
        GraphSource::Captured(_) => Vec::new(),
        GraphSource::Explicit(nodes) => nodes[place].after.to_vec(),
    };
    let node = |place| NodePlan {
        places: vec![place],
        copies: false,
        after: after(place),
    };
    (0..source.ops().len()).map(node).collect()
}

/// The nodes of a graph. Where its copies and memsets are several and small, launches do them, as
/// few as possible.
pub(super) fn plan(source: GraphSource<'_>) -> Vec<NodePlan> {
    let sizes: Vec<usize> = source.ops().filter_map(bytes).collect();
    let sum = sizes.iter().copied().fold(0, usize::saturating_add);
    if sizes.len() < 2 || sum / sizes.len() > MEAN_BYTES_MAX {
        return one_each(source);
    }
    match source {
        GraphSource::Captured(ops) => plan_line(ops),
        GraphSource::Explicit(nodes) => plan_explicit(nodes),
    }
}

/// Merges neighbours. Operations of a line may depend on those before them.
fn plan_line(ops: &[&Op]) -> Vec<NodePlan> {
    let mut nodes: Vec<NodePlan> = Vec::new();
    for (place, op) in ops.iter().enumerate() {
        let joins = |node: &NodePlan| {
            let mut others = node.places.iter().map(|&other| ops[other]);
            node.copies
                && node.places.len() < PIECES_MAX
                && others.all(|other| is_download(op) == is_download(other) && are_apart(op, other))
        };
        let copies = bytes(op).is_some();
        match nodes.last_mut().filter(|last| copies && joins(last)) {
            Some(last) => last.places.push(place),
            None => nodes.push(NodePlan {
                places: vec![place],
                copies,
                after: Vec::new(),
            }),
        }
    }
    nodes
}

/// Merges the uploads and memsets that run after nothing, and the downloads that no other work
/// runs after.
fn plan_explicit(nodes: &[Node<'_>]) -> Vec<NodePlan> {
    let mut has_later = vec![false; nodes.len()];
    for node in nodes {
        node.after.iter().for_each(|&place| has_later[place] = true);
    }
    // Whether at most timestamps run after a node, for which nothing waits in turn.
    let mut is_last = vec![true; nodes.len()];
    for (place, node) in nodes.iter().enumerate() {
        if has_later[place] || !matches!(node.op, Op::Timestamp { .. }) {
            node.after.iter().for_each(|&place| is_last[place] = false);
        }
    }
    let all = || nodes.iter().enumerate();
    let first = all().filter(|(_, node)| {
        bytes(node.op).is_some() && !is_download(node.op) && node.after.is_empty()
    });
    let last = all().filter(|(place, node)| is_download(node.op) && is_last[*place]);
    let first: Vec<usize> = first.map(|(place, _)| place).collect();
    let last: Vec<usize> = last.map(|(place, _)| place).collect();
    // Timestamps that run after merged downloads become the last nodes.
    let (timestamps, between): (Vec<usize>, Vec<usize>) = (0..nodes.len())
        .filter(|place| !first.contains(place) && !last.contains(place))
        .partition(|&place| nodes[place].after.iter().any(|after| last.contains(after)));
    let single = |place| (vec![place], false);
    let merged = |places: &[usize]| {
        let launches = places.chunks(PIECES_MAX);
        let launches = launches.map(|places| (places.to_vec(), true));
        launches.collect::<Vec<_>>()
    };
    let order = merged(&first)
        .into_iter()
        .chain(between.into_iter().map(single))
        .chain(merged(&last))
        .chain(timestamps.into_iter().map(single));
    let order: Vec<(Vec<usize>, bool)> = order.collect();
    let mut node_of = vec![0; nodes.len()];
    for (index, (places, _)) in order.iter().enumerate() {
        places.iter().for_each(|&place| node_of[place] = index);
    }
    let mut edges = Edges::default();
    for (places, _) in &order {
        let after = places.iter().flat_map(|&place| nodes[place].after);
        edges.add(after.map(|&place| node_of[place]).collect());
    }
    let pairs = order.into_iter().zip(edges.into_after());
    pairs
        .map(|((places, copies), after)| NodePlan {
            places,
            copies,
            after,
        })
        .collect()
}

fn is_download(op: &Op) -> bool {
    matches!(op, Op::Download { .. })
}

/// Whether neither of two copies or memsets writes what the other one accesses.
fn are_apart(one: &Op, other: &Op) -> bool {
    // By access: its first address, the address after its last byte, and whether it writes.
    let accesses = |op: &Op| {
        let range = |start: u64, writes: bool| {
            (
                start,
                start.saturating_add(bytes(op).unwrap_or_default() as u64),
                writes,
            )
        };
        match *op {
            Op::Upload { host, device, .. } => vec![range(host, false), range(device, true)],
            Op::Download { host, device, .. } => vec![range(device, false), range(host, true)],
            Op::Memset { device, .. } => vec![range(device, true)],
            Op::Copy { .. } | Op::Launch { .. } | Op::Timestamp { .. } => Vec::new(),
        }
    };
    let others = accesses(other);
    accesses(one).iter().all(|one| {
        let mut others = others.iter();
        others.all(|other| one.1 <= other.0 || other.1 <= one.0 || !(one.2 || other.2))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::FunctionId;

    const BYTES: u64 = 64;

    fn upload(offset: u64) -> Op {
        Op::Upload {
            host: 0x1000 + offset,
            device: 0x2000 + offset,
            bytes: BYTES as usize,
        }
    }

    fn download(offset: u64) -> Op {
        Op::Download {
            device: 0x3000 + offset,
            host: 0x4000 + offset,
            bytes: BYTES as usize,
        }
    }

    fn memset(device: u64) -> Op {
        Op::Memset {
            device,
            byte: 0,
            bytes: BYTES as usize,
        }
    }

    fn kernel() -> Op {
        Op::Launch {
            function: FunctionId(0),
            grid: [1; 3],
            block: [1; 3],
            shared_bytes: 0,
            args: Box::default(),
        }
    }

    fn explicit(ops: &[Op], after: &[&[usize]]) -> Vec<(Vec<usize>, Vec<usize>)> {
        let nodes = ops.iter().zip(after);
        let nodes: Vec<_> = nodes.map(|(op, after)| Node { op, after }).collect();
        let planned = plan(GraphSource::Explicit(&nodes)).into_iter();
        planned.map(|node| (node.places, node.after)).collect()
    }

    fn line(ops: &[Op]) -> Vec<Vec<usize>> {
        let ops: Vec<&Op> = ops.iter().collect();
        let planned = plan(GraphSource::Captured(&ops)).into_iter();
        planned.map(|node| node.places).collect()
    }

    #[test]
    fn what_nothing_comes_before_or_after_is_merged_in_an_explicit_graph() {
        let ops = [
            upload(0),
            upload(BYTES),
            memset(0x8000),
            kernel(),
            kernel(),
            download(0),
            // A memset of what the second kernel reads, and a download of it.
            memset(0x8000),
            Op::Timestamp { timestamp: 2 },
            download(BYTES),
            Op::Timestamp { timestamp: 3 },
        ];
        let after: [&[usize]; 10] = [
            &[],
            &[],
            &[],
            &[0, 2],
            &[1, 3],
            &[3],
            &[4],
            &[4],
            &[6],
            &[5, 8],
        ];
        let expected: [(&[usize], &[usize]); 7] = [
            (&[0, 1, 2], &[]),
            (&[3], &[0]),
            // The edge from the uploads follows from the one before.
            (&[4], &[1]),
            (&[6], &[2]),
            (&[7], &[2]),
            (&[5, 8], &[3]),
            (&[9], &[5]),
        ];
        let expected = expected.map(|(places, after)| (places.to_vec(), after.to_vec()));
        assert_eq!(explicit(&ops, &after), expected);
    }

    #[test]
    fn a_download_that_work_waits_for_stays_in_its_place() {
        let ops = [kernel(), download(0), download(BYTES), upload(2 * BYTES)];
        let planned = explicit(&ops, &[&[], &[0], &[0], &[1]]);
        let places: Vec<_> = planned.into_iter().map(|(places, _)| places).collect();
        assert_eq!(places, [[0], [1], [3], [2]]);
        // Work waits for a timestamp behind it.
        let ops = [download(0), Op::Timestamp { timestamp: 3 }, kernel()];
        let ops = [&ops[..], &[download(BYTES)]].concat();
        let planned = explicit(&ops, &[&[], &[0], &[1], &[2]]);
        let expected = [
            (vec![0], vec![]),
            (vec![1], vec![0]),
            (vec![2], vec![1]),
            (vec![3], vec![2]),
        ];
        assert_eq!(planned, expected);
    }

    #[test]
    fn neighbours_in_a_line_are_merged_unless_one_uses_what_another_writes() {
        let ops = [
            upload(0),
            upload(BYTES),
            kernel(),
            download(0),
            download(BYTES),
        ];
        assert_eq!(line(&ops), [vec![0, 1], vec![2], vec![3, 4]]);
        let ops = [
            upload(0),
            upload(BYTES),
            memset(0x2000 + BYTES),
            memset(0x8000),
        ];
        assert_eq!(line(&ops), [vec![0, 1], vec![2, 3]]);
        // An upload from where a download goes.
        let from = Op::Upload {
            host: 0x4000,
            device: 0x9000,
            bytes: BYTES as usize,
        };
        assert_eq!(line(&[download(0), from]), [[0], [1]]);
    }

    #[test]
    fn large_copies_and_a_single_one_are_nodes_of_their_own() {
        let large = |device| Op::Memset {
            device,
            byte: 0,
            bytes: MEAN_BYTES_MAX + 1,
        };
        let ops = [large(0), large(2 * MEAN_BYTES_MAX as u64)];
        assert_eq!(line(&ops), [[0], [1]]);
        assert_eq!(explicit(&ops, &[&[], &[]]).len(), 2);
        assert!(!plan(GraphSource::Captured(&[&upload(0), &kernel()]))[0].copies);
        assert!(
            plan(GraphSource::Captured(&[
                &upload(0),
                &kernel(),
                &download(0)
            ]))[0]
                .copies
        );
    }

    #[test]
    fn a_launch_takes_as_many_as_its_arguments_hold() {
        let many: Vec<Op> = (0..=PIECES_MAX as u64)
            .map(|index| memset(index * BYTES))
            .collect();
        let sizes: Vec<usize> = line(&many).iter().map(Vec::len).collect();
        assert_eq!(sizes, [PIECES_MAX, 1]);
        let after = vec![&[][..]; many.len()];
        let sizes: Vec<usize> = explicit(&many, &after)
            .iter()
            .map(|(places, _)| places.len())
            .collect();
        assert_eq!(sizes, [PIECES_MAX, 1]);
    }
}
