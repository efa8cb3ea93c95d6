//! Allocates memory, and copies it outside of slots.

use super::context::PrimaryContext;
use super::driver::Driver;
use super::memory::{DeviceMemory, PinnedMemory};
use super::stream::Stream;
use crate::backend::{Allocation, Call, Lease, Region, Space};
use crate::error::Result;
use crate::record::Access;
use cudarc::driver::sys;
use parking_lot::Mutex;
use std::any::Any;
use std::sync::Arc;

/// Size of the staging memory in bytes: what a backend keeps pinned for copies. Larger ones go through
/// it part by part.
const STAGING_BYTES: usize = 1 << 20;

/// Allocates and copies on a stream of its own, one call at a time.
///
/// The device never accesses the caller's memory, which may be freed as soon as a call returns,
/// also with an error: bytes go through pinned staging memory of the copier.
pub(super) struct Copier {
    stream: Mutex<CopyStream>,
    context: Arc<PrimaryContext>,
}

/// The stream and the staging memory, used by one copy at a time.
struct CopyStream {
    stream: Stream,
    /// Allocated by the first copy that needs it.
    staging: Option<PinnedMemory>,
}

/// Memory that the device may use while a copy runs.
struct InUse {
    staging: PinnedMemory,
    lease: Lease,
}

impl Copier {
    pub(super) fn new(context: &Arc<PrimaryContext>) -> Result<Copier> {
        Ok(Copier {
            stream: Mutex::new(CopyStream {
                stream: Stream::new(context)?,
                staging: None,
            }),
            context: Arc::clone(context),
        })
    }

    /// An allocation of zeros.
    pub(super) fn allocate(&self, space: Space, bytes: usize) -> Result<Allocation> {
        // The driver refuses to allocate nothing.
        let taken = bytes.max(1);
        let (address, region): (u64, Box<dyn Region>) = match space {
            Space::Device => {
                let memory = self.zero(DeviceMemory::new(&self.context, taken)?)?;
                (memory.start(), Box::new(memory))
            }
            Space::Pinned => {
                let memory = PinnedMemory::zeroed(&self.context, taken)?;
                let address = memory.start().as_ptr() as u64;
                (address, Box::new(PinnedRegion { memory, bytes }))
            }
        };
        Ok(Allocation::new(
            self.context.allocation_key,
            space,
            address,
            bytes,
            region,
        ))
    }

    /// An allocation of memory that `owner` keeps. [`Backend::borrow`](crate::backend::Backend::borrow)
    /// has the contract.
    pub(super) fn borrow(
        &self,
        address: u64,
        bytes: usize,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Allocation {
        let key = self.context.allocation_key;
        Allocation::new(
            key,
            Space::Device,
            address,
            bytes,
            Box::new(Borrowed(owner)),
        )
    }

    /// Sets all of `memory` to zero, and waits for it.
    fn zero(&self, memory: DeviceMemory) -> Result<DeviceMemory> {
        self.context.check_lost()?;
        let (start, bytes) = (memory.start(), memory.bytes());
        let stream = &self.stream.lock().stream;
        // SAFETY: the memory is of this size, and `run` keeps it while it is in use.
        self.run(stream, memory, "cuMemsetD8Async", |driver, stream| unsafe {
            (driver.cuMemsetD8Async)(start, 0, bytes, stream)
        })
    }

    /// Copies bytes into an allocation, and waits for the copies. Device memory gets them by way of
    /// staging memory, a part at a time. Holds the lock of the copier's stream, so one copy is made
    /// at a time.
    pub(super) fn write(&self, from: &[u8], to: &Allocation, to_offset: usize) -> Result<()> {
        self.context.check_lost()?;
        to.check_key(self.context.allocation_key)?;
        to.check_range(to_offset, from.len())?;
        let mut lease = to.lease(Access::Write)?;
        if to.space() == Space::Pinned {
            lease.exclusive()[to_offset..to_offset + from.len()].copy_from_slice(from);
            return Ok(());
        }
        let mut to = to.address() + to_offset as u64;
        let CopyStream { stream, staging } = &mut *self.stream.lock();
        for part in from.chunks(STAGING_BYTES) {
            let (in_use, start) = self.stage(staging, lease, part.len())?;
            // SAFETY: `stage` returned `part.len()` bytes, of which nothing else has a
            // reference and which nothing uses now.
            unsafe { std::slice::from_raw_parts_mut(start, part.len()) }.copy_from_slice(part);
            // SAFETY: the staging memory holds as many bytes, and the range was
            // checked to be in the allocation; `run` keeps both while they are in use.
            let copied = self.run(
                stream,
                in_use,
                "cuMemcpyHtoDAsync",
                |driver, stream| unsafe {
                    (driver.cuMemcpyHtoDAsync_v2)(to, start.cast(), part.len(), stream)
                },
            )?;
            lease = copied.give_back(staging);
            to += part.len() as u64;
        }
        Ok(())
    }

    /// Copies bytes of an allocation to `to`, and waits for them; the way back of [`Self::write`].
    pub(super) fn read(&self, from: &Allocation, from_offset: usize, to: &mut [u8]) -> Result<()> {
        self.context.check_lost()?;
        from.check_key(self.context.allocation_key)?;
        from.check_range(from_offset, to.len())?;
        let mut lease = from.lease(Access::Read)?;
        if from.space() == Space::Pinned {
            to.copy_from_slice(&lease.shared()[from_offset..from_offset + to.len()]);
            return Ok(());
        }
        let mut from = from.address() + from_offset as u64;
        let CopyStream { stream, staging } = &mut *self.stream.lock();
        for part in to.chunks_mut(STAGING_BYTES) {
            let (in_use, start) = self.stage(staging, lease, part.len())?;
            // SAFETY: as for `write`.
            let copied = self.run(
                stream,
                in_use,
                "cuMemcpyDtoHAsync",
                |driver, stream| unsafe {
                    (driver.cuMemcpyDtoHAsync_v2)(start.cast(), from, part.len(), stream)
                },
            )?;
            // SAFETY: `stage` returned `part.len()` bytes, zeroed when they were taken, and
            // `run` returned when the device was done with them.
            part.copy_from_slice(unsafe { std::slice::from_raw_parts(start, part.len()) });
            lease = copied.give_back(staging);
            from += part.len() as u64;
        }
        Ok(())
    }

    /// Copies between two allocations, or within one, and waits for it. Between pinned allocations
    /// the host copies.
    pub(super) fn copy(
        &self,
        from: &Allocation,
        from_offset: usize,
        to: &Allocation,
        to_offset: usize,
        bytes: usize,
    ) -> Result<()> {
        self.context.check_lost()?;
        from.check_key(self.context.allocation_key)?;
        to.check_key(self.context.allocation_key)?;
        from.check_range(from_offset, bytes)?;
        to.check_range(to_offset, bytes)?;
        let mut leases = Vec::new();
        if from.is(to) {
            Allocation::check_disjoint(from_offset, to_offset, bytes)?
        } else {
            leases.push(from.lease(Access::Read)?)
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
        let stream = &self.stream.lock().stream;
        // SAFETY: both ranges were checked to be in their allocations, which are
        // leased, and `run` keeps the leases while the allocations are in use; the driver
        // knows all allocations by their addresses.
        self.run(stream, leases, "cuMemcpyAsync", |driver, stream| unsafe {
            (driver.cuMemcpyAsync)(to, from, bytes, stream)
        })
        .map(drop)
    }

    /// Staging memory for `bytes` bytes, at most [`STAGING_BYTES`], with its start.
    fn stage(
        &self,
        staging: &mut Option<PinnedMemory>,
        lease: Lease,
        bytes: usize,
    ) -> Result<(InUse, *mut u8)> {
        assert!(bytes <= STAGING_BYTES);
        let staging = match staging.take() {
            Some(staging) => staging,
            None => PinnedMemory::zeroed(&self.context, STAGING_BYTES)?,
        };
        let start = staging.start().as_ptr();
        Ok((InUse { staging, lease }, start))
    }

    /// Submits one call, waits for it, and returns the memory that it used. If the wait fails, the
    /// work may never end, so `in_use` is leaked.
    fn run<T>(
        &self,
        stream: &Stream,
        in_use: T,
        call: &str,
        give: impl FnOnce(&Driver, sys::CUstream) -> i32,
    ) -> Result<T> {
        let driver = self.context.bind_for(Call::Submission)?;
        let called = self.context.check(call, give(&driver, stream.raw()));
        // An error does not mean that no work was started, so this waits after one too.
        if let Err(error) = stream.synchronize() {
            std::mem::forget(in_use);
            return Err(called.err().unwrap_or(error));
        }
        called.map(|()| in_use)
    }
}

impl InUse {
    /// Keeps the staging memory for the next copy.
    fn give_back(self, staging: &mut Option<PinnedMemory>) -> Lease {
        *staging = Some(self.staging);
        self.lease
    }
}

/// Device memory of other code, which the value keeps.
struct Borrowed(#[expect(dead_code, reason = "it is only dropped")] Box<dyn Any + Send + Sync>);

impl Region for Borrowed {}

/// Pinned memory whose allocation's lock keeps host and device apart.
struct PinnedRegion {
    memory: PinnedMemory,
    /// The requested size in bytes, at most the allocated one.
    bytes: usize,
}

impl Region for PinnedRegion {
    fn bytes(&self) -> Option<&[u8]> {
        let start = self.memory.start().as_ptr();
        // SAFETY: `PinnedMemory` zeroed at least as many bytes, which live as long as it.
        // The allocation around this locks it: `&self` keeps writers of the host away,
        // and a slot's lease to write those of the device.
        Some(unsafe { std::slice::from_raw_parts(start, self.bytes) })
    }

    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        let start = self.memory.start().as_ptr();
        // SAFETY: as for `bytes`, with `&mut self` and any lease at all.
        Some(unsafe { std::slice::from_raw_parts_mut(start, self.bytes) })
    }
}

impl Region for DeviceMemory {}

#[cfg(test)]
mod tests {
    use super::super::fake_driver::{self, CAPTURE_UNSUPPORTED, FakeDriverUse};
    use super::*;
    use std::ops::Range;

    /// More than one staging buffer, and not a multiple.
    const BYTES: usize = 2 * STAGING_BYTES + 17;

    fn overlaps(range: &Range<*const u8>, start: usize, bytes: usize) -> bool {
        start < range.end as usize && range.start as usize <= start + bytes
    }

    #[test]
    fn bytes_go_through_staging_memory_in_parts() {
        let session = FakeDriverUse::new();
        let copier = Copier::new(&session.context()).unwrap();
        let allocation = copier.allocate(Space::Device, BYTES + 5).unwrap();
        let bytes: Vec<u8> = (0..BYTES).map(|i| (i % 251) as u8).collect();
        copier.write(&bytes, &allocation, 3).unwrap();
        copier.write(&[], &allocation, BYTES + 5).unwrap();
        let mut read = vec![9; BYTES + 5];
        copier.read(&allocation, 0, &mut read).unwrap();
        assert!(read[..3] == [0; 3] && read[3..BYTES + 3] == bytes && read[BYTES + 3..] == [0; 2]);
        // The allocation and one staging memory.
        assert_eq!(fake_driver::state(|state| state.memory.len()), 2);
        drop((copier, allocation));
        assert_eq!(
            fake_driver::state(|state| (state.memory.len(), state.retained)),
            (0, 0)
        );
    }

    #[test]
    fn a_copy_whose_wait_fails_leaves_the_device_no_memory_of_the_caller_s() {
        let session = FakeDriverUse::new();
        let context = session.context();
        let copier = Copier::new(&context).unwrap();
        let new_allocation = || copier.allocate(Space::Device, 64).unwrap();
        let (up, down, from, to) = (
            new_allocation(),
            new_allocation(),
            new_allocation(),
            new_allocation(),
        );
        let (sent, mut received) = ([7; 64], [0; 64]);
        fake_driver::state(|state| state.waits_return = CAPTURE_UNSUPPORTED);
        let refused = |result: Result<()>| result.unwrap_err().code() == Some(CAPTURE_UNSUPPORTED);
        assert!(refused(copier.write(&sent, &up, 0)));
        assert!(refused(copier.read(&down, 0, &mut received)));
        assert!(refused(copier.copy(&from, 0, &to, 0, 64)));
        assert!(copier.allocate(Space::Device, 64).is_err());
        assert!(!context.is_lost(), "others go on");
        let live = fake_driver::state(|state| {
            assert_eq!(state.copies.len(), 3, "the device is still at work");
            for (to, from, bytes) in &state.copies {
                for caller in [sent.as_ptr_range(), received.as_ptr_range()] {
                    assert!(!overlaps(&caller, *to, *bytes) && !overlaps(&caller, *from, *bytes));
                }
            }
            state.waits_return = 0;
            state.memory.len()
        });
        // Four allocations, the one that was being made, and two staging memories.
        assert_eq!(live, 7);
        for (allocation, access) in [
            (&up, Access::Read),
            (&down, Access::Write),
            (&to, Access::Read),
        ] {
            assert!(allocation.lease(access).is_err(), "it is in use for ever");
        }
        drop((up, down, from, to));
        assert_eq!(
            fake_driver::state(|state| state.memory.len()),
            7,
            "nothing of it is freed"
        );
        let allocation = copier.allocate(Space::Device, 64).unwrap();
        copier.write(&sent, &allocation, 0).unwrap();
        copier.read(&allocation, 0, &mut received).unwrap();
        assert_eq!(received, sent);
    }

    #[test]
    fn a_context_that_is_lost_in_mid_copy_frees_nothing() {
        let session = FakeDriverUse::new();
        let context = session.context();
        let copier = Copier::new(&context).unwrap();
        let allocation = copier.allocate(Space::Device, 64).unwrap();
        let live = fake_driver::state(|state| state.memory.len());
        fake_driver::state(|state| state.waits_return = 719);
        assert_eq!(
            copier.write(&[1; 64], &allocation, 0).unwrap_err().code(),
            Some(719)
        );
        drop((copier, allocation, context));
        assert_eq!(fake_driver::state(|state| state.memory.len()), live + 1);
        assert_eq!(
            fake_driver::state(|state| state.retained),
            1,
            "the context stays"
        );
    }
}
