//! Resolves operations to the memory that they access.

use super::device::Device;
use super::memory::Missing;
use super::violation::{Action, Actor, Violation, ViolationKind};
use crate::backend::twin_launch::check_words;
use crate::backend::{Allocation, Op, Queue, Space, TIMESTAMPS, no_timestamp};
use crate::error::Result;
use crate::record::{Access, Kernel, Pointer};
use std::ops::Range;
use std::sync::Arc;

/// Bytes that an operation accesses.
#[derive(Clone, Debug)]
pub(super) struct Touch {
    /// The start address of the memory.
    pub(super) memory: u64,
    pub(super) range: Range<usize>,
    pub(super) access: Access,
    /// A kernel gets an address without a length: its range ends at the next address that the same
    /// launch passes, or at the end of the memory.
    open_end: bool,
    /// Whether reading it before a write is a violation.
    pub(super) expects: bool,
}

/// An operation whose addresses were checked.
#[derive(Clone)]
pub(super) struct ResolvedOp {
    pub(super) op: Op,
    pub(super) touches: Vec<Touch>,
    /// The allocations that it accesses.
    pub(super) uses: Vec<(Allocation, Access)>,
    /// Whose it is.
    pub(super) slot: u32,
}

impl ResolvedOp {
    pub(super) fn action(&self) -> Action {
        match self.op {
            Op::Upload { .. } => Action::Upload,
            Op::Download { .. } => Action::Download,
            Op::Memset { .. } => Action::Memset,
            Op::Launch { function, .. } => Action::Kernel(function),
            Op::Timestamp { .. } => Action::Timestamp,
        }
    }

    pub(super) fn actor(&self, slot: u32, queue: Queue, node: Option<usize>) -> Actor {
        Actor {
            slot,
            queue: Some(queue),
            node: node.map(|node| node as u32),
            action: self.action(),
        }
    }
}

/// The accesses of operations that are submitted together, each with the index of its operation.
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
    for (_, touch) in all.iter_mut().filter(|(_, touch)| touch.open_end) {
        let after = starts.partition_point(|start| *start <= (touch.memory, touch.range.start));
        if let Some(&(memory, next)) = starts.get(after)
            && memory == touch.memory
        {
            touch.range.end = next;
        }
    }
    all
}

/// An address that an operation names.
struct Operand {
    address: u64,
    /// `None` for an argument of a kernel.
    bytes: Option<usize>,
    access: Access,
    space: Option<Space>,
    expects: bool,
}

impl Operand {
    fn copied(address: u64, bytes: usize, access: Access, space: Space) -> Self {
        Operand {
            address,
            bytes: Some(bytes),
            access,
            space: Some(space),
            expects: access == Access::Read && space == Space::Device,
        }
    }
}

fn operands(op: &Op, kernel: Option<&Kernel>) -> Vec<Operand> {
    match op {
        &Op::Upload {
            host,
            device,
            bytes,
        } => vec![
            Operand::copied(host, bytes, Access::Read, Space::Pinned),
            Operand::copied(device, bytes, Access::Write, Space::Device),
        ],
        &Op::Download {
            device,
            host,
            bytes,
        } => vec![
            Operand::copied(device, bytes, Access::Read, Space::Device),
            Operand::copied(host, bytes, Access::Write, Space::Pinned),
        ],
        &Op::Memset { device, bytes, .. } => {
            vec![Operand::copied(device, bytes, Access::Write, Space::Device)]
        }
        Op::Launch { args, .. } => {
            let operand = |pointer: Pointer| Operand {
                address: args[pointer.word],
                bytes: None,
                access: pointer.access,
                space: None,
                expects: pointer.access.reads(),
            };
            let pointers = kernel.iter().flat_map(|kernel| kernel.pointers());
            pointers.map(operand).collect()
        }
        Op::Timestamp { .. } => Vec::new(),
    }
}

impl Device {
    /// Checks every address of an operation, and finds the memory behind it.
    pub(super) fn resolve(&mut self, slot: u32, op: &Op) -> Result<ResolvedOp> {
        let kernel: Option<Arc<Kernel>> = match op {
            Op::Launch { function, args, .. } => {
                let kernel = self.functions.get(*function)?;
                check_words(&kernel, args)?;
                Some(kernel)
            }
            Op::Timestamp { timestamp } if *timestamp as usize >= TIMESTAMPS => {
                return Err(no_timestamp(*timestamp));
            }
            _ => None,
        };
        let mut step = ResolvedOp {
            op: op.clone(),
            touches: Vec::new(),
            uses: Vec::new(),
            slot,
        };
        for operand in operands(op, kernel.as_deref()) {
            self.resolve_operand(slot, &operand, &mut step)?;
        }
        Ok(step)
    }

    fn resolve_operand(
        &mut self,
        slot: u32,
        operand: &Operand,
        step: &mut ResolvedOp,
    ) -> Result<()> {
        let address = operand.address;
        let what = self.operation(step.action());
        let refused = |kind, why: String| {
            let message = format!("{what} on slot {slot} is given {address:#x}, {why}");
            Violation::new(kind, message)
        };
        let start = match self.memory.find(address) {
            Ok(start) => start,
            // Without memory the operation cannot run, whatever the options.
            Err(missing) => {
                let violation = match missing {
                    Missing::Freed(name) => {
                        refused(ViolationKind::Freed, format!("which was {name}"))
                    }
                    Missing::Unknown => {
                        refused(ViolationKind::Foreign, "where nothing is".to_owned())
                    }
                };
                let error = violation.error();
                self.violate(violation)?;
                return Err(error);
            }
        };
        let memory = self.memory.at(start);
        let (own, space, name) = (memory.slot, memory.space, memory.name.clone());
        let kernels_expect = memory.kernels_expect;
        let offset = (address - start) as usize;
        let room = memory.bytes.as_slice().len() - offset;
        let bytes = operand.bytes.unwrap_or(room);
        if bytes > room {
            let why = format!("with {bytes} bytes from there, and {name} has {room}");
            let violation = refused(ViolationKind::Foreign, why);
            let error = violation.error();
            self.violate(violation)?;
            return Err(error);
        }
        let allocation = self.slot(slot).adopted.get(&start).cloned();
        if own != Some(slot) && allocation.is_none() {
            let why = format!("which is {name}, and neither its own nor adopted");
            self.violate(refused(ViolationKind::Foreign, why))?;
        }
        if operand.space.is_some_and(|wanted| wanted != space) {
            let why = format!("which is {name}, in place of the other side");
            self.violate(refused(ViolationKind::Foreign, why))?;
        }
        step.uses
            .extend(allocation.map(|allocation| (allocation, operand.access)));
        step.touches.push(Touch {
            memory: start,
            range: offset..offset + bytes,
            access: operand.access,
            open_end: operand.bytes.is_none(),
            expects: operand.expects && (operand.bytes.is_some() || kernels_expect),
        });
        Ok(())
    }
}
