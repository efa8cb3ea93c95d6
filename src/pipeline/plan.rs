//! What memory an engine takes, before it takes it.

use crate::error::{Error, ErrorKind, Result};
use crate::record::{BufferDecl, View};
use std::fmt;

/// One buffer's share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryLine {
    /// The buffer's name.
    pub name: String,
    /// Its size in one slot, in bytes.
    pub slot_bytes: u64,
    /// Whether it has a pinned host side beside the device side.
    pub on_host: bool,
}

/// The derived sum of all buffers of all slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryPlan {
    /// By buffer.
    pub lines: Vec<MemoryLine>,
    /// Slots of all devices.
    pub slots: usize,
    /// Whether host and device sides are one (the CPU backend).
    pub shared: bool,
}

impl MemoryPlan {
    pub(crate) fn new(buffers: &[BufferDecl], slots: usize, shared: bool) -> Self {
        let line = |decl: &BufferDecl| MemoryLine {
            name: decl.name.clone(),
            slot_bytes: decl.size_bytes() as u64,
            on_host: decl.view != View::Device,
        };
        MemoryPlan {
            lines: buffers.iter().map(line).collect(),
            slots,
            shared,
        }
    }

    /// Device memory of all slots, in bytes; on a CPU, the memory.
    pub fn device_bytes(&self) -> u64 {
        self.sum(|_| true)
    }

    /// Pinned host memory of all slots, in bytes; on a CPU none beside the
    /// device side.
    pub fn host_bytes(&self) -> u64 {
        if self.shared {
            0
        } else {
            self.sum(|line| line.on_host)
        }
    }

    fn sum(&self, counts: impl Fn(&MemoryLine) -> bool) -> u64 {
        let counted = self.lines.iter().filter(|line| counts(line));
        let slot = counted
            .map(|line| line.slot_bytes)
            .fold(0, u64::saturating_add);
        slot.saturating_mul(self.slots as u64)
    }

    pub(crate) fn within_budget(&self, budget: Option<u64>) -> Result<()> {
        match budget {
            Some(max) if self.device_bytes().saturating_add(self.host_bytes()) > max => {
                Err(Error::new(
                    ErrorKind::Capacity,
                    format!("the plan takes more than the budget of {max} bytes\n{self}"),
                )
                .fix("raise memory_bytes_max, or take fewer slots or smaller batches"))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for MemoryPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.lines {
            let sides = match (self.shared, line.on_host) {
                (false, true) => "device and pinned",
                (false, false) => "device",
                (true, _) => "memory",
            };
            writeln!(
                f,
                "  {:<24} {:>14} B a slot  {sides}",
                line.name, line.slot_bytes
            )?;
        }
        if self.shared {
            write!(
                f,
                "  {} slots: {} B of memory",
                self.slots,
                self.device_bytes()
            )
        } else {
            write!(
                f,
                "  {} slots: {} B on the device, {} B pinned",
                self.slots,
                self.device_bytes(),
                self.host_bytes()
            )
        }
    }
}
