//! Blocks of memory, and copies between them and the host outside of lanes.

use super::context::Context;
use super::driver::Driver;
use super::memory::{DeviceMemory, Pinned};
use super::stream::Stream;
use crate::backend::{Block, Call, Lease, Region, Space};
use crate::error::Result;
use crate::record::Access;
use cudarc::driver::sys;
use parking_lot::Mutex;
use std::sync::Arc;

/// Makes blocks and copies them, one thing at a time, on a stream of its own.
pub(super) struct Copier {
    stream: Mutex<Stream>,
    context: Arc<Context>,
}

impl Copier {
    pub(super) fn new(context: &Arc<Context>) -> Result<Copier> {
        Ok(Copier {
            stream: Mutex::new(Stream::new(context)?),
            context: Arc::clone(context),
        })
    }

    /// A block of zeros.
    pub(super) fn allocate(&self, space: Space, bytes: usize) -> Result<Block> {
        // The driver refuses to allocate nothing.
        let taken = bytes.max(1);
        let (address, region): (u64, Box<dyn Region>) = match space {
            Space::Device => {
                let memory = DeviceMemory::new(&self.context, taken)?;
                self.zero(&memory)?;
                (memory.start(), Box::new(memory))
            }
            Space::Pinned => {
                let memory = Pinned::zeroed(&self.context, taken)?;
                let address = memory.start().as_ptr() as u64;
                (address, Box::new(PinnedRegion { memory, bytes }))
            }
        };
        Ok(Block::new(self.context.home, space, address, bytes, region))
    }

    fn zero(&self, memory: &DeviceMemory) -> Result<()> {
        let (start, bytes) = (memory.start(), memory.bytes());
        // SAFETY: the memory is of this size, and lives longer than `run`.
        self.run(Vec::new(), "cuMemsetD8Async", |driver, stream| unsafe {
            (driver.cuMemsetD8Async)(start, 0, bytes, stream)
        })
    }

    pub(super) fn write(&self, from: &[u8], to: &Block, to_offset: usize) -> Result<()> {
        to.check_home(self.context.home)?;
        to.check_range(to_offset, from.len())?;
        let mut lease = to.lease(Access::Write)?;
        if to.space() == Space::Pinned {
            lease.exclusive()[to_offset..to_offset + from.len()].copy_from_slice(from);
            return Ok(());
        }
        let (to, bytes) = (to.address() + to_offset as u64, from.len());
        // SAFETY: `from` is a slice of this length that is borrowed longer than
        // `run`, and the range was checked to be in the block, which is leased.
        self.run(vec![lease], "cuMemcpyHtoDAsync", |driver, stream| unsafe {
            (driver.cuMemcpyHtoDAsync_v2)(to, from.as_ptr().cast(), bytes, stream)
        })
    }

    pub(super) fn read(&self, from: &Block, from_offset: usize, to: &mut [u8]) -> Result<()> {
        from.check_home(self.context.home)?;
        from.check_range(from_offset, to.len())?;
        let lease = from.lease(Access::Read)?;
        if from.space() == Space::Pinned {
            to.copy_from_slice(&lease.shared()[from_offset..from_offset + to.len()]);
            return Ok(());
        }
        let (from, bytes) = (from.address() + from_offset as u64, to.len());
        // SAFETY: as for `write`, with `to` borrowed mutably.
        self.run(vec![lease], "cuMemcpyDtoHAsync", |driver, stream| unsafe {
            (driver.cuMemcpyDtoHAsync_v2)(to.as_mut_ptr().cast(), from, bytes, stream)
        })
    }

    pub(super) fn copy(
        &self,
        from: &Block,
        from_offset: usize,
        to: &Block,
        to_offset: usize,
        bytes: usize,
    ) -> Result<()> {
        from.check_home(self.context.home)?;
        to.check_home(self.context.home)?;
        from.check_range(from_offset, bytes)?;
        to.check_range(to_offset, bytes)?;
        let mut leases = Vec::new();
        match from.is(to) {
            true => Block::check_disjoint(from_offset, to_offset, bytes)?,
            false => leases.push(from.lease(Access::Read)?),
        }
        leases.push(to.lease(Access::Write)?);
        if (from.space(), to.space()) == (Space::Pinned, Space::Pinned) {
            let range = from_offset..from_offset + bytes;
            let (to, from) = leases.split_last_mut().expect("the target is leased");
            let to = to.exclusive();
            match from.first() {
                None => to.copy_within(range, to_offset),
                Some(from) => {
                    to[to_offset..to_offset + bytes].copy_from_slice(&from.shared()[range]);
                }
            }
            return Ok(());
        }
        let from = from.address() + from_offset as u64;
        let to = to.address() + to_offset as u64;
        // SAFETY: both ranges were checked to be in their blocks, which are
        // leased; the driver knows all blocks by their addresses.
        self.run(leases, "cuMemcpyAsync", |driver, stream| unsafe {
            (driver.cuMemcpyAsync)(to, from, bytes, stream)
        })
    }

    /// Gives one call to the stream and waits for it, with `leases` kept. Where
    /// the wait fails the work may go on for ever, so they are never given back,
    /// and nothing of the context is freed any more.
    fn run(
        &self,
        leases: Vec<Lease>,
        call: &str,
        give: impl FnOnce(&Driver, sys::CUstream) -> i32,
    ) -> Result<()> {
        let stream = self.stream.lock();
        let driver = self.context.bind_for(Call::Submission)?;
        let given = self.context.check(call, give(driver, stream.raw()));
        // Also after an error: it does not say that nothing was started.
        let finished = stream.synchronize();
        if let Err(error) = &finished {
            self.context.lose(error);
            std::mem::forget(leases);
        }
        given.and(finished)
    }
}

/// Pinned memory of which a block's lock keeps host and device apart.
struct PinnedRegion {
    memory: Pinned,
    /// What was asked for, at most what was taken.
    bytes: usize,
}

impl Region for PinnedRegion {
    fn bytes(&self) -> Option<&[u8]> {
        let start = self.memory.start().as_ptr();
        // SAFETY: `Pinned` zeroed at least as many bytes, which live as long as it.
        // The block around this locks it: `&self` keeps writers of the host away,
        // and a lane's lease to write those of the device.
        Some(unsafe { std::slice::from_raw_parts(start, self.bytes) })
    }

    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        let start = self.memory.start().as_ptr();
        // SAFETY: as for `bytes`, with `&mut self` and any lease at all.
        Some(unsafe { std::slice::from_raw_parts_mut(start, self.bytes) })
    }
}

impl Region for DeviceMemory {
    fn bytes(&self) -> Option<&[u8]> {
        None
    }

    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        None
    }
}
