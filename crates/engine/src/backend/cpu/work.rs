//! The work of a slot, and the memory that it runs on. Both move to the pool together.

use super::CpuShared;
use super::memory::{Leases, MemoryPlace, in_own};
use crate::backend::storage::Storage;
use crate::backend::twin_launch::TwinCall;
use crate::backend::{Allocation, FunctionId, Op, TIMESTAMPS, Timestamps, host_ns};
use crate::error::Result;
use crate::record::Access;
use std::sync::Arc;
use std::time::Instant;

/// An operation with the allocations that it uses.
#[derive(Clone)]
pub(super) struct CheckedOp {
    pub(super) op: Op,
    pub(super) uses: Vec<(Allocation, Access)>,
}

/// What was given to a slot's queue.
pub(super) enum QueuedWork {
    Op(CheckedOp),
    Graph(Arc<Vec<CheckedOp>>),
}

impl QueuedWork {
    pub(super) fn ops(&self) -> impl Iterator<Item = &Op> {
        let checked = match self {
            QueuedWork::Op(op) => std::slice::from_ref(op),
            QueuedWork::Graph(ops) => ops,
        };
        checked.iter().map(|checked| &checked.op)
    }
}

/// The memory that work runs on.
pub(super) struct WorkMemory {
    pub(super) buffers: Vec<Storage>,
    pub(super) leases: Leases,
    pub(super) timestamps: Timestamps,
}

impl WorkMemory {
    pub(super) fn new(buffers: Vec<Storage>) -> Self {
        WorkMemory {
            buffers,
            leases: Leases::default(),
            timestamps: [None; TIMESTAMPS],
        }
    }

    /// Runs work, the oldest first, up to the first error. Twins run in the pool, which all of them
    /// enter together, as a thread outside of it wakes one inside and is woken by it.
    ///
    /// # Errors
    /// [`ErrorKind::Kernel`](crate::ErrorKind::Kernel) if a twin panics, and
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for a function that does not exist.
    pub(super) fn run_all(&mut self, queue: &[QueuedWork], shared: &CpuShared) -> Result<()> {
        let ops = || queue.iter().flat_map(QueuedWork::ops);
        let has_twins = ops().any(|op| matches!(op, Op::Launch { .. }));
        let mut run = || ops().try_for_each(|op| self.run(op, shared));
        match &shared.pool {
            Some(pool) if has_twins => pool.install(run),
            _ => run(),
        }
    }

    /// Runs one operation, whose addresses were checked when it was queued, on this thread.
    fn run(&mut self, op: &Op, shared: &CpuShared) -> Result<()> {
        match op {
            &Op::Upload {
                host,
                device,
                bytes,
            } => self.copy(host, device, bytes),
            &Op::Download {
                device,
                host,
                bytes,
            } => self.copy(device, host, bytes),
            &Op::Copy { from, to, bytes } => self.copy(from, to, bytes),
            &Op::Memset {
                device,
                byte,
                bytes,
            } => {
                let location = self.locate_leased(device);
                self.bytes_mut(location)[..bytes].fill(byte);
                Ok(())
            }
            Op::Launch {
                function,
                grid,
                args,
                ..
            } => self.launch(*function, *grid, args, shared),
            &Op::Timestamp { timestamp } => {
                self.timestamps[timestamp as usize] = Some(host_ns(Instant::now()));
                Ok(())
            }
        }
    }

    /// Runs a kernel's twin over the memory that its pointers point into. The borrow checker lets a
    /// twin have one reference to each buffer or allocation, so the pointers into one are handed
    /// over together.
    fn launch(
        &mut self,
        function: FunctionId,
        grid: [u32; 3],
        args: &[u64],
        shared: &CpuShared,
    ) -> Result<()> {
        let kernel = shared.functions.get(function)?;
        // Where each pointer points to, in the order of the memory: a slot has many more buffers than a
        // kernel has pointers.
        let (mut in_slot, mut leased) = (Vec::new(), Vec::new());
        for (index, pointer) in kernel.pointers().enumerate() {
            match self.locate_leased(args[pointer.word]) {
                MemoryPlace::Own {
                    index: buffer,
                    offset,
                } => in_slot.push((buffer, offset, index)),
                MemoryPlace::Allocation { allocation, offset } => {
                    leased.push((allocation, offset, index));
                }
            }
        }
        in_slot.sort_unstable();
        let mut launch = TwinCall::new(&kernel, grid, args);
        let mut pointers = Vec::new();
        let (mut buffers, mut passed) = (self.buffers.iter_mut(), 0);
        for same in in_slot.chunk_by(|one, other| one.0 == other.0) {
            let buffer = same[0].0;
            let storage = buffers.nth(buffer - passed).expect("a checked address");
            passed = buffer + 1;
            pointers.clear();
            pointers.extend(same.iter().map(|&(_, offset, arg)| (offset, arg)));
            if launch.writes_any(&pointers) {
                launch.add_exclusive(&mut pointers, storage.as_mut_slice())?;
            } else {
                launch.add_shared(&pointers, storage.as_slice());
            }
        }
        for (address, lease) in self.leases.iter_mut().filter(|_| !leased.is_empty()) {
            let same = leased.iter().filter(|place| place.0 == address);
            pointers.clear();
            pointers.extend(same.map(|&(_, offset, arg)| (offset, arg)));
            if launch.writes_any(&pointers) {
                launch.add_exclusive(&mut pointers, lease.exclusive())?;
            } else {
                launch.add_shared(&pointers, lease.shared());
            }
        }
        launch.run()
    }

    /// The memory at an address that the slot has checked.
    fn locate_leased(&self, address: u64) -> MemoryPlace {
        match in_own(address) {
            Some((index, offset)) => MemoryPlace::Own { index, offset },
            None => self.leases.locate(address),
        }
    }

    /// The bytes of a location from its offset on, to write.
    fn bytes_mut(&mut self, location: MemoryPlace) -> &mut [u8] {
        match location {
            MemoryPlace::Own { index, offset } => &mut self.buffers[index].as_mut_slice()[offset..],
            MemoryPlace::Allocation { allocation, offset } => {
                &mut self.leases.bytes_mut(allocation)[offset..]
            }
        }
    }

    fn bytes(&self, location: MemoryPlace) -> &[u8] {
        match location {
            MemoryPlace::Own { index, offset } => &self.buffers[index].as_slice()[offset..],
            MemoryPlace::Allocation { allocation, offset } => {
                &self.leases.bytes(allocation)[offset..]
            }
        }
    }

    /// Copies between two locations, by way of a copy, as both may be in one buffer.
    fn copy(&mut self, from: u64, to: u64, bytes: usize) -> Result<()> {
        // Both sides of a slot's buffer are the same memory.
        if from != to {
            let (from, to) = (self.locate_leased(from), self.locate_leased(to));
            let copied = self.bytes(from)[..bytes].to_vec();
            self.bytes_mut(to)[..bytes].copy_from_slice(&copied);
        }
        Ok(())
    }
}
