//! Memory that an embedder owns, apart from the arenas of slots.
//!
//! The lock of an allocation keeps host and device apart: a guard gives it to the host, a
//! [`Lease`] to the device. A request for an allocation that is taken is refused; it never waits.

use crate::error::{Error, Result};
use crate::record::Access;
use parking_lot::lock_api::{ArcRwLockReadGuard, ArcRwLockWriteGuard};
use parking_lot::{
    MappedRwLockReadGuard, MappedRwLockWriteGuard, RawRwLock, RwLock, RwLockReadGuard,
    RwLockWriteGuard,
};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// Memory of the device.
    Device,
    /// Page-locked memory of the host, which the device can access.
    Pinned,
}

impl Space {
    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Space::Device => "device",
            Space::Pinned => "pinned",
        }
    }
}

/// Proves that an allocation was made by the backend that holds the key.
///
/// A backend keeps its key to itself, unlike its [`BackendId`](super::BackendId): slots use any
/// allocation that has the backend's key, so code with the key could make one of memory that is
/// not the backend's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationKey(u64);

impl AllocationKey {
    /// A key that no other backend has.
    #[allow(clippy::new_without_default, reason = "every call gives another value")]
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        AllocationKey(NEXT.fetch_add(1, Relaxed))
    }
}

/// The memory of an allocation. Dropping it frees the memory.
pub trait Region: Send + Sync {
    /// The bytes to read; `None`, the default, for memory that the host cannot access.
    fn bytes(&self) -> Option<&[u8]> {
        None
    }

    /// The bytes to write; `None`, the default, for memory that the host cannot access.
    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        None
    }
}

type Locked = RwLock<Box<dyn Region>>;

/// Pinned elements that the host has locked to read.
#[derive(Debug)]
pub struct ReadGuard<'a, T = u8>(MappedRwLockReadGuard<'a, [T]>);

/// Pinned elements that the host has locked to write.
#[derive(Debug)]
pub struct WriteGuard<'a, T = u8>(MappedRwLockWriteGuard<'a, [T]>);

impl<'a, T> ReadGuard<'a, T> {
    pub(crate) fn map<U>(self, part: impl FnOnce(&[T]) -> &[U]) -> ReadGuard<'a, U> {
        ReadGuard(MappedRwLockReadGuard::map(self.0, part))
    }
}

impl<'a, T> WriteGuard<'a, T> {
    pub(crate) fn map<U>(self, part: impl FnOnce(&mut [T]) -> &mut [U]) -> WriteGuard<'a, U> {
        WriteGuard(MappedRwLockWriteGuard::map(self.0, part))
    }
}

impl<T> Deref for ReadGuard<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> Deref for WriteGuard<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for WriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

/// An allocation of memory. Clones are handles of the same memory; the last of them frees it.
#[derive(Clone)]
pub struct Allocation {
    key: AllocationKey,
    space: Space,
    address: u64,
    bytes: usize,
    is_read_only: bool,
    region: Arc<Locked>,
}

/// Gives an allocation to the device for as long as this value lives.
pub struct Lease(Turn);

enum Turn {
    /// Others may read too.
    Read(ArcRwLockReadGuard<RawRwLock, Box<dyn Region>>),
    /// No other lease and no guard exists.
    Write(ArcRwLockWriteGuard<RawRwLock, Box<dyn Region>>),
}

impl Allocation {
    /// An allocation of `bytes` bytes at `address`, as operations of the backend with this key
    /// address it.
    pub fn new(
        key: AllocationKey,
        space: Space,
        address: u64,
        bytes: usize,
        region: Box<dyn Region>,
    ) -> Self {
        Allocation {
            key,
            space,
            address,
            bytes,
            is_read_only: false,
            region: Arc::new(RwLock::new(region)),
        }
    }

    /// The allocation as memory that no work and no copy writes; for backends that restore its
    /// contents.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.is_read_only = true;
        self
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// Refuses an allocation that was made with another key.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for an allocation of another backend.
    pub fn check_key(&self, key: AllocationKey) -> Result<()> {
        if self.key == key {
            Ok(())
        } else {
            Err(Error::usage("the memory is of another backend"))
        }
    }

    /// The kind of memory.
    pub fn space(&self) -> Space {
        self.space
    }

    /// The address of the first byte, as operations take it.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether `other` is a handle of the same memory.
    pub fn is(&self, other: &Allocation) -> bool {
        Arc::ptr_eq(&self.region, &other.region)
    }

    /// Whether this is the only handle, and neither a guard nor a lease holds the memory.
    pub fn is_idle(&mut self) -> bool {
        Arc::get_mut(&mut self.region).is_some_and(|region| !region.is_locked())
    }

    /// Whether `bytes` bytes at `address` lie inside.
    pub fn contains(&self, address: u64, bytes: usize) -> bool {
        address
            .checked_sub(self.address)
            .and_then(|offset| offset.checked_add(bytes as u64))
            .is_some_and(|end| end <= self.bytes as u64)
    }

    /// Refuses a range that does not lie inside. Both numbers are in bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage), with the range and the size.
    pub fn check_range(&self, offset: usize, bytes: usize) -> Result<()> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.bytes => Ok(()),
            _ => Err(self.out_of_range_error(offset, bytes)),
        }
    }

    /// Refuses contents that are not as large as the allocation, in bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage), with both sizes.
    pub fn check_size(&self, bytes: usize) -> Result<()> {
        if bytes == self.bytes {
            return Ok(());
        }
        let message = format!(
            "contents of {bytes} bytes for an allocation of {}",
            self.bytes
        );
        Err(Error::usage(message))
    }

    /// Refuses a copy within one allocation whose ranges overlap. CUDA leaves undefined what such a
    /// copy writes.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage).
    pub fn check_disjoint(from: usize, to: usize, bytes: usize) -> Result<()> {
        if from.abs_diff(to) >= bytes {
            Ok(())
        } else {
            Err(Error::usage(format!(
                "a copy of {bytes} bytes from {from} to {to} of one allocation overlaps itself"
            )))
        }
    }

    pub(super) fn out_of_range_error(&self, offset: usize, bytes: usize) -> Error {
        let (all, space) = (self.bytes, self.space.name());
        Error::usage(format!(
            "{bytes} bytes from {offset} are not inside {all} bytes of {space} memory"
        ))
    }

    /// Locks pinned memory for the host to read.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for device memory, and while
    /// work in flight or another guard writes the allocation.
    pub fn read(&self) -> Result<ReadGuard<'_>> {
        self.expect_pinned()?;
        let guard = self.region.try_read().ok_or_else(|| self.in_use_error())?;
        Ok(ReadGuard(RwLockReadGuard::map(guard, |region| {
            region.bytes().expect("the host sees pinned memory")
        })))
    }

    /// Locks pinned memory for the host to write.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for device memory, and while
    /// work in flight or another guard uses the allocation.
    pub fn write(&self) -> Result<WriteGuard<'_>> {
        self.expect_pinned()?;
        self.check_access(Access::Write)?;
        let guard = self.region.try_write().ok_or_else(|| self.in_use_error())?;
        Ok(WriteGuard(RwLockWriteGuard::map(guard, |region| {
            region.bytes_mut().expect("the host sees pinned memory")
        })))
    }

    /// Locks the allocation for the device; for backends.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) while a guard, or other work in flight,
    /// holds it, and for an access that writes [`Allocation::read_only`] memory.
    pub fn lease(&self, access: Access) -> Result<Lease> {
        self.check_access(access)?;
        let turn = if access.writes() {
            self.region.try_write_arc().map(Turn::Write)
        } else {
            self.region.try_read_arc().map(Turn::Read)
        };
        turn.map(Lease).ok_or_else(|| self.in_use_error())
    }

    /// [`Allocation::lease`] for [`Backend::refill`](super::Backend::refill), which writes
    /// [`Allocation::read_only`] memory too.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) while a guard, or work in flight, holds it.
    pub fn lease_to_refill(&self) -> Result<Lease> {
        let turn = self.region.try_write_arc().map(Turn::Write);
        turn.map(Lease).ok_or_else(|| self.in_use_error())
    }

    fn check_access(&self, access: Access) -> Result<()> {
        if self.is_read_only && access.writes() {
            Err(read_only())
        } else {
            Ok(())
        }
    }

    fn expect_pinned(&self) -> Result<()> {
        match self.space {
            Space::Pinned => Ok(()),
            Space::Device => Err(Error::usage("the host cannot see device memory")
                .fix("copy it to pinned memory first")),
        }
    }

    /// The error of a guard or lease that another holder excludes.
    fn in_use_error(&self) -> Error {
        let space = self.space.name();
        let (bytes, address) = (self.bytes, self.address);
        Error::usage(format!(
            "{bytes} bytes of {space} memory at {address:#x} are in use"
        ))
        .fix("wait for the work in flight, and drop guards before giving new work")
    }
}

/// A part of an allocation that work can be bound to. It keeps the allocation alive.
#[derive(Clone, Debug)]
pub struct AllocationView {
    allocation: Allocation,
    offset: usize,
    bytes: usize,
}

impl AllocationView {
    /// `bytes` bytes of `allocation` from `offset` on.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for a range that does not lie inside.
    pub fn new(allocation: &Allocation, offset: usize, bytes: usize) -> Result<Self> {
        allocation.check_range(offset, bytes)?;
        Ok(AllocationView {
            allocation: allocation.clone(),
            offset,
            bytes,
        })
    }

    /// The allocation.
    pub fn allocation(&self) -> &Allocation {
        &self.allocation
    }

    /// The address of the first byte.
    pub fn address(&self) -> u64 {
        self.allocation.address() + self.offset as u64
    }

    /// The size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// This part and the next one, which one copy then takes; `None` unless `next` starts where this ends.
    pub(crate) fn followed_by(&self, next: &AllocationView) -> Option<AllocationView> {
        let follows =
            self.allocation.is(&next.allocation) && self.offset + self.bytes == next.offset;
        follows.then(|| AllocationView {
            bytes: self.bytes + next.bytes,
            ..self.clone()
        })
    }

    /// Whether both have a byte in common.
    pub fn overlaps(&self, other: &AllocationView) -> bool {
        let end = |view: &AllocationView| view.offset + view.bytes;
        self.allocation.is(&other.allocation)
            && self.offset < end(other)
            && other.offset < end(self)
    }
}

impl Lease {
    /// Whether the device may write the allocation too.
    pub fn writes(&self) -> bool {
        matches!(self.0, Turn::Write(_))
    }

    /// The bytes, to read.
    ///
    /// # Panics
    /// If the host cannot access them.
    pub fn shared(&self) -> &[u8] {
        let bytes = match &self.0 {
            Turn::Read(guard) => guard.bytes(),
            Turn::Write(guard) => guard.bytes(),
        };
        bytes.expect("memory that the host reaches")
    }

    /// The bytes, to write.
    ///
    /// # Panics
    /// If the lease is for reading, or the host cannot access the bytes.
    pub fn exclusive(&mut self) -> &mut [u8] {
        let bytes = match &mut self.0 {
            Turn::Read(_) => panic!("a lease to read gives nothing to write"),
            Turn::Write(guard) => guard.bytes_mut(),
        };
        bytes.expect("memory that the host reaches")
    }
}

/// The error of a write to [`Allocation::read_only`] memory.
pub(crate) fn read_only() -> Error {
    let message = "work writes memory whose contents a supervised device restores when it restarts";
    Error::usage(message).fix("write a buffer of the slots, or use a device without supervision")
}

impl fmt::Debug for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (space, bytes, address) = (self.space.name(), self.bytes, self.address);
        write!(f, "Allocation({space}, {bytes} bytes at {address:#x})")
    }
}
