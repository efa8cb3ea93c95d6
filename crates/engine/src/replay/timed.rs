//! Timed batches: when the device began, and when uploads, kernels and downloads were over.
//!
//! A graph gets a second one of the same commands for the first timed batch, with a timestamp behind
//! each stage. In an explicit graph timestamps are leaves: nothing waits for them, so independent
//! commands still run at the same time, and a device may take any of them late. So those of a batch need
//! not ascend. Single launches have the timestamps between the calls. A loop
//! on the device notes the beginning and the end of each batch, and needs nothing of this.

use super::audit::{AllowedMemory, check_held};
use super::graph::edges;
use super::submit::{NodeSource, make_graph};
use super::{Build, Lowered};
use crate::backend::{DeviceSlot, GraphId, Op, TIMESTAMPS};
use crate::error::{Context, Result};

/// The timestamp before everything; in an explicit graph nothing waits for it.
pub const BEGUN: u32 = 0;
/// The timestamp after all uploads.
pub const UPLOADED: u32 = 1;
/// The timestamp after all kernels and memsets.
pub const COMPUTED: u32 = 2;
/// The timestamp after all downloads.
pub const DOWNLOADED: u32 = 3;

const _: () = assert!(DOWNLOADED as usize + 1 == TIMESTAMPS);

/// Commands in their order with all timestamps: [`BEGUN`] before them, [`UPLOADED`] after the last
/// upload, [`COMPUTED`] after the last kernel, and [`DOWNLOADED`] after them.
pub(super) fn timed_line(commands: &[Lowered]) -> Vec<NodeSource<'_>> {
    let after_uploads = after_last(commands, UPLOADED);
    let after_kernels = after_last(commands, COMPUTED).max(after_uploads);
    let mut line = Vec::with_capacity(commands.len() + TIMESTAMPS);
    line.push(NodeSource::Timestamp(BEGUN));
    for place in 0..=commands.len() {
        if place == after_uploads {
            line.push(NodeSource::Timestamp(UPLOADED));
        }
        if place == after_kernels {
            line.push(NodeSource::Timestamp(COMPUTED));
        }
        line.extend(commands.get(place).map(NodeSource::Command));
    }
    line.push(NodeSource::Timestamp(DOWNLOADED));
    line
}

/// The timestamp that an operation comes before.
fn timestamp_of(op: &Op) -> u32 {
    match op {
        Op::Upload { .. } | Op::Copy { .. } => UPLOADED,
        Op::Memset { .. } | Op::Launch { .. } => COMPUTED,
        Op::Download { .. } => DOWNLOADED,
        Op::Timestamp { timestamp } => *timestamp,
    }
}

/// The place after the last operation of a stage; the start if there is none.
fn after_last(body: &[Lowered], timestamp: u32) -> usize {
    let last = body
        .iter()
        .rposition(|lowered| timestamp_of(lowered.op()) == timestamp);
    last.map_or(0, |last| last + 1)
}

/// Makes a graph of `body` with timestamps, and audits it as the graph without.
///
/// # Errors
/// The errors of [`make_graph`](super::graph::make_graph).
pub(super) fn make_timed_graph(
    slot: &mut dyn DeviceSlot,
    memory: &AllowedMemory<'_>,
    body: &[Lowered],
    build: Build,
) -> Result<GraphId> {
    let nodes = match build {
        Build::Capture => {
            let line = timed_line(body).into_iter();
            line.map(|node| (node, Vec::new())).collect()
        }
        Build::Explicit => explicit_nodes(body, &edges(memory, body, build)),
    };
    let place = || "make the graph with timestamps";
    let (graph, _) = make_graph(slot, &nodes, build, None).within(place)?;
    let audited = slot.graph_ops(graph).and_then(|mut held| {
        held.retain(|op| !matches!(op, Op::Timestamp { .. }));
        check_held(body, &held, memory)
    });
    if audited.is_err() {
        slot.drop_graph(graph);
    }
    audited.map(|()| graph).within(place)
}

/// A node, and the places of those that it runs after.
type TimedNode<'a> = (NodeSource<'a>, Vec<usize>);

/// The commands with their edges, and timestamps as leaves. A timestamp is listed right after
/// its stage, so that devices which run nodes in the order of the list take it in time.
fn explicit_nodes<'a>(body: &'a [Lowered], edges: &[Vec<usize>]) -> Vec<TimedNode<'a>> {
    let ends = ends(body, edges);
    let mut nodes: Vec<TimedNode<'_>> = Vec::with_capacity(body.len() + TIMESTAMPS);
    // By command: its place among the nodes.
    let mut places: Vec<usize> = Vec::with_capacity(body.len());
    let mut commands = body.iter().zip(edges);
    for position in 0..=body.len() {
        for (timestamp, ends) in (0..).zip(&ends) {
            if ends.iter().max().map_or(0, |last| last + 1) == position {
                let after = ends.iter().map(|&command| places[command]).collect();
                nodes.push((NodeSource::Timestamp(timestamp), after));
            }
        }
        if let Some((lowered, after)) = commands.next() {
            let after = after.iter().map(|&command| places[command]).collect();
            places.push(nodes.len());
            nodes.push((NodeSource::Command(lowered), after));
        }
    }
    nodes
}

/// For each timestamp, the operations of its stage that no operation of the same stage runs
/// after; for a stage without operations, those of the stage before.
fn ends(body: &[Lowered], edges: &[Vec<usize>]) -> [Vec<usize>; TIMESTAMPS] {
    let stages: Vec<u32> = body
        .iter()
        .map(|lowered| timestamp_of(lowered.op()))
        .collect();
    let mut is_end = vec![true; body.len()];
    for (node, after) in edges.iter().enumerate() {
        for &earlier in after {
            is_end[earlier] &= stages[earlier] != stages[node];
        }
    }
    let mut ends: [Vec<usize>; TIMESTAMPS] = std::array::from_fn(|timestamp| {
        let all = 0..body.len();
        all.filter(|&node| is_end[node] && stages[node] as usize == timestamp)
            .collect()
    });
    for timestamp in 1..TIMESTAMPS {
        if ends[timestamp].is_empty() {
            ends[timestamp] = ends[timestamp - 1].clone();
        }
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::FunctionId;

    fn lowered(ops: &[Op]) -> Vec<Lowered> {
        let lower = |(command, op): (usize, &Op)| Lowered::of_op(command, op.clone());
        ops.iter().enumerate().map(lower).collect()
    }

    fn upload() -> Op {
        Op::Upload {
            host: 0,
            device: 0,
            bytes: 1,
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

    fn download() -> Op {
        Op::Download {
            device: 0,
            host: 0,
            bytes: 1,
        }
    }

    /// The timestamps among commands, each with the number of commands before it.
    fn timestamps_among(body: &[Lowered]) -> Vec<(usize, u32)> {
        let mut commands = 0;
        let line = timed_line(body);
        let timestamp = |node: &NodeSource<'_>| match *node {
            NodeSource::Timestamp(timestamp) => Some((commands, timestamp)),
            NodeSource::Command(_) => {
                commands += 1;
                None
            }
        };
        line.iter().filter_map(timestamp).collect()
    }

    #[test]
    fn in_a_line_timestamps_follow_the_last_of_their_stage() {
        let (begun, downloaded) = ((0, BEGUN), |commands| (commands, DOWNLOADED));
        let body = [upload(), kernel(), upload(), kernel(), download()];
        assert_eq!(
            timestamps_among(&lowered(&body)),
            [begun, (3, UPLOADED), (4, COMPUTED), downloaded(5)]
        );
        // Mapped buffers have no uploads.
        let body = [kernel(), kernel()];
        assert_eq!(
            timestamps_among(&lowered(&body)),
            [begun, (0, UPLOADED), (2, COMPUTED), downloaded(2)]
        );
        let body = [kernel(), upload()];
        assert_eq!(
            timestamps_among(&lowered(&body)),
            [begun, (2, UPLOADED), (2, COMPUTED), downloaded(2)]
        );
    }

    #[test]
    fn a_timestamp_of_a_graph_comes_after_what_ends_its_stage() {
        // Two chains: 0 -> 2 -> 4 -> 6 and 1 -> 3 -> 5.
        let body = [
            upload(),
            upload(),
            kernel(),
            kernel(),
            kernel(),
            download(),
            download(),
        ];
        let edges = [&[][..], &[], &[0], &[1], &[2], &[3], &[4]].map(<[usize]>::to_vec);
        let expected: [&[usize]; TIMESTAMPS] = [&[], &[0, 1], &[3, 4], &[5, 6]];
        assert_eq!(ends(&lowered(&body), &edges), expected);
        // Mapped buffers have no copies.
        let edges = [&[][..], &[0]].map(<[usize]>::to_vec);
        let expected: [&[usize]; TIMESTAMPS] = [&[], &[], &[1], &[1]];
        assert_eq!(ends(&lowered(&[kernel(), kernel()]), &edges), expected);
    }
}
