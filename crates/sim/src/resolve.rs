//! Resolves operations to the memory that they access.

use super::access::{ResolvedOp, Touch};
use super::device::SimDevice;
use super::memory::NoMemory;
use super::violation::{Violation, ViolationKind};
use std::sync::Arc;
use tapeloop_engine::backend::Space;
use tapeloop_engine::backend::contract::Pointer;
use tapeloop_engine::backend::contract::{Op, TIMESTAMPS};
use tapeloop_engine::error::Result;
use tapeloop_engine::internal::{NodeRole, check_words, no_timestamp};
use tapeloop_engine::record::{Access, Kernel};

/// An address that an operation names.
struct Operand {
    address: u64,
    /// `None` for an argument of a kernel.
    bytes: Option<usize>,
    access: Access,
    space: Option<Space>,
    must_be_written: bool,
}

impl Operand {
    /// An operand of a copy, which must be in `space`.
    fn copied(address: u64, bytes: usize, access: Access, space: Space) -> Self {
        Operand {
            address,
            bytes: Some(bytes),
            access,
            space: Some(space),
            must_be_written: access == Access::Read && space == Space::Device,
        }
    }
}

/// The memory that an operation accesses.
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
        &Op::Copy { from, to, bytes } => vec![
            Operand::copied(from, bytes, Access::Read, Space::Device),
            Operand::copied(to, bytes, Access::Write, Space::Device),
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
                must_be_written: pointer.access.reads(),
            };
            let pointers = kernel.iter().flat_map(|kernel| kernel.pointers());
            pointers.map(operand).collect()
        }
        Op::Timestamp { .. } => Vec::new(),
    }
}

impl SimDevice {
    /// Checks every address of an operation, and finds the memory behind it.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](tapeloop_engine::error::ErrorKind::Usage) for an unknown function or
    /// timestamp, another number of words than the kernel takes, and a violation.
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
            role: kernel.as_deref().map_or(NodeRole::Other, NodeRole::of),
        };
        for operand in operands(op, kernel.as_deref()) {
            self.resolve_operand(slot, &operand, &mut step)?;
        }
        Ok(step)
    }

    /// Finds the memory behind an operand, and adds the access to `step`. Memory that was freed,
    /// is too short, is not the slot's, or is on the other side is a violation. The first two have no
    /// access that could be added, and are an error even where violations are not refused.
    fn resolve_operand(
        &mut self,
        slot: u32,
        operand: &Operand,
        step: &mut ResolvedOp,
    ) -> Result<()> {
        let address = operand.address;
        let operation = self.operation(step.action());
        let violation = |kind, why: String| {
            let message = format!("{operation} on slot {slot} is given {address:#x}, {why}");
            Violation::new(kind, message)
        };
        let start = match self.memory.find(address) {
            Ok(start) => start,
            // An operation without memory cannot run, whatever the options.
            Err(missing) => {
                let violation = match missing {
                    NoMemory::Freed(name) => {
                        violation(ViolationKind::Freed, format!("which was {name}"))
                    }
                    NoMemory::Unknown => {
                        violation(ViolationKind::Foreign, "where nothing is".to_owned())
                    }
                };
                return Err(self.refuse(violation));
            }
        };
        let memory = self.memory.at(start);
        let (owner, space, name) = (memory.slot, memory.space, memory.name.clone());
        let kernels_read_only_written = memory.kernels_read_only_written;
        let offset = (address - start) as usize;
        let room = memory.bytes.as_slice().len() - offset;
        let bytes = operand.bytes.unwrap_or(room);
        if bytes > room {
            let why = format!("with {bytes} bytes from there, and {name} has {room}");
            return Err(self.refuse(violation(ViolationKind::Foreign, why)));
        }
        let allocation = self.slot(slot).adopted.get(&start).cloned();
        if owner != Some(slot) && allocation.is_none() {
            let why = format!("which is {name}, and neither its own nor adopted");
            self.violate(violation(ViolationKind::Foreign, why))?;
        }
        if operand.space.is_some_and(|wanted| wanted != space) {
            let why = format!("which is {name}, in place of the other side");
            self.violate(violation(ViolationKind::Foreign, why))?;
        }
        step.uses
            .extend(allocation.map(|allocation| (allocation, operand.access)));
        step.touches.push(Touch {
            memory: start,
            range: offset..offset + bytes,
            access: operand.access,
            has_open_end: operand.bytes.is_none(),
            must_be_written: operand.must_be_written
                && (operand.bytes.is_some() || kernels_read_only_written),
        });
        Ok(())
    }
}
