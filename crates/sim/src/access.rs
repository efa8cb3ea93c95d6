//! Operations whose addresses were checked, with the memory that they access.

use super::violation::{Action, Actor};
use std::ops::Range;
use tapeloop_engine::backend::Allocation;
use tapeloop_engine::backend::contract::Op;
use tapeloop_engine::internal::NodeRole;
use tapeloop_engine::record::Access;

/// Bytes that an operation accesses.
#[derive(Clone, Debug)]
pub(super) struct Touch {
    /// The start address of the memory.
    pub(super) memory: u64,
    pub(super) range: Range<usize>,
    pub(super) access: Access,
    /// A kernel gets an address without a length: its range ends at the next address that an
    /// operation of the same submission names, or at the end of the memory.
    pub(super) has_open_end: bool,
    /// Whether reading it before a write is a violation.
    pub(super) must_be_written: bool,
}

/// An operation whose addresses were checked.
#[derive(Clone)]
pub(super) struct ResolvedOp {
    pub(super) op: Op,
    pub(super) touches: Vec<Touch>,
    /// The allocations that it accesses.
    pub(super) uses: Vec<(Allocation, Access)>,
    /// The slot that runs the operation.
    pub(super) slot: u32,
    /// What it is for programmatic dependent launch.
    pub(super) role: NodeRole,
}

impl ResolvedOp {
    /// What the operation is, for messages.
    pub(super) fn action(&self) -> Action {
        match self.op {
            Op::Upload { .. } => Action::Upload,
            Op::Download { .. } => Action::Download,
            Op::Copy { .. } => Action::Copy,
            Op::Memset { .. } => Action::Memset,
            Op::Launch { function, .. } => Action::Kernel(function),
            Op::Timestamp { .. } => Action::Timestamp,
        }
    }

    pub(super) fn actor(&self, slot: u32, node: Option<usize>) -> Actor {
        Actor {
            slot: Some(slot),
            node: node.map(|node| node as u32),
            action: self.action(),
        }
    }
}

/// The accesses of operations that are submitted together, each with the index of its operation.
/// Open ends get their ends here.
pub(super) fn touches(steps: &[ResolvedOp]) -> Vec<(usize, Touch)> {
    let all = steps.iter().enumerate();
    let mut all: Vec<(usize, Touch)> = all
        .flat_map(|(node, step)| step.touches.iter().map(move |touch| (node, touch.clone())))
        .collect();
    let mut starts: Vec<(u64, usize)> = all
        .iter()
        .map(|(_, touch)| (touch.memory, touch.range.start))
        .collect();
    starts.sort_unstable();
    starts.dedup();
    for (_, touch) in all.iter_mut().filter(|(_, touch)| touch.has_open_end) {
        let after = starts.partition_point(|start| *start <= (touch.memory, touch.range.start));
        if let Some(&(memory, next)) = starts.get(after)
            && memory == touch.memory
        {
            touch.range.end = next;
        }
    }
    all
}
