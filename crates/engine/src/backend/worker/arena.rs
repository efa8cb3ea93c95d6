//! Memory that two processes share.

use crate::error::{Error, ErrorKind, Result};
use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Release};

/// An anonymous file, mapped whole. It starts zeroed, and its size is sealed, so an
/// access inside the mapping cannot fail.
///
/// The type is private to the backends, as two mappings of one file in one process would alias.
///
/// ```compile_fail,E0603
/// use tapeloop_engine::backend::worker::Arena;
/// ```
///
/// ```compile_fail,E0603
/// use tapeloop_engine::backend::worker::ArenaPart;
/// ```
///
/// ```
/// use tapeloop_engine::backend::worker::WorkerBackend;
/// ```
pub(in crate::backend) struct Arena {
    file: OwnedFd,
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread; code that makes
// references of its address answers for aliasing.
unsafe impl Send for Arena {}
// SAFETY: as for `Send`.
unsafe impl Sync for Arena {}

impl Arena {
    /// Allocates `bytes`, at least one.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`] if the system refuses the memory.
    pub(super) fn new(bytes: usize) -> Result<Arena> {
        let memory_error = |errno: rustix::io::Errno| {
            let message = format!("{bytes} bytes of shared memory were refused: {errno}");
            Error::new(ErrorKind::OutOfMemory, message).fix("take fewer slots or smaller batches")
        };
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("tapeloop", flags).map_err(memory_error)?;
        ftruncate(&file, bytes.max(1) as u64).map_err(memory_error)?;
        // Neither process changes the size any more: see [`Arena::of_file`].
        let size = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        fcntl_add_seals(&file, size).map_err(memory_error)?;
        Arena::of_file(file, bytes)
    }

    /// Allocates memory with these contents, at least one byte. No process writes it later.
    ///
    /// # Errors
    /// The errors of [`Arena::new`].
    pub(super) fn copy_of(contents: &[u8]) -> Result<Arc<Arena>> {
        let mut parts = Arena::new(contents.len())?.cut([contents.len()]);
        parts[0].as_mut_slice().copy_from_slice(contents);
        Ok(Arc::clone(parts[0].arena()))
    }

    /// Maps the file of another process's arena of `bytes` bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a file of another size, and for one that is not sealed
    /// against shrinking: an access beyond the end of a file ends the process.
    /// [`ErrorKind::OutOfMemory`] if the system refuses the mapping.
    pub(super) fn of_file(file: OwnedFd, bytes: usize) -> Result<Arena> {
        let bytes = bytes.max(1);
        let found = fstat(&file)
            .map_err(|errno| Error::io(errno.into()))?
            .st_size;
        if u64::try_from(found) != Ok(bytes as u64) {
            return Err(Error::usage(format!(
                "the file of shared memory has {found} bytes, not {bytes}"
            )));
        }
        // Files that take no seals have none.
        let seals = fcntl_get_seals(&file).unwrap_or(SealFlags::empty());
        if !seals.contains(SealFlags::SHRINK) {
            return Err(Error::usage(
                "the file of shared memory is not sealed against shrinking",
            ));
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: without an address of its own the call changes no mapping that exists.
        let mapped = unsafe {
            mmap(
                std::ptr::null_mut(),
                bytes,
                access,
                MapFlags::SHARED,
                &file,
                0,
            )
        };
        let start = mapped.map_err(|errno| {
            let message = format!("{bytes} bytes of shared memory cannot be mapped: {errno}");
            Error::new(ErrorKind::OutOfMemory, message)
        })?;
        Ok(Arena {
            file,
            start: NonNull::new(start.cast()).expect("a mapping is not at 0"),
            bytes,
        })
    }

    /// The file, for the other process to map.
    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The first byte, aligned to a page; valid for [`Arena::bytes`] bytes as long as `self` lives.
    #[cfg(feature = "cuda")]
    pub(in crate::backend) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// The size in bytes.
    #[cfg(feature = "cuda")]
    pub(in crate::backend) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Divides the arena into consecutive parts of these sizes in bytes.
    ///
    /// # Panics
    /// If the sum of the sizes is larger than the arena.
    pub(in crate::backend) fn cut(self, sizes: impl IntoIterator<Item = usize>) -> Vec<ArenaPart> {
        let arena = Arc::new(self);
        let mut end = 0_usize;
        let part = |bytes: usize| {
            let offset = end;
            let after = offset.checked_add(bytes);
            end = after
                .filter(|end| *end <= arena.bytes)
                .expect("parts are inside their arena");
            ArenaPart {
                arena: Arc::clone(&arena),
                offset,
                bytes,
            }
        };
        sizes.into_iter().map(part).collect()
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: `start` came from mmap with this size and is given back once, here.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "a mapping of our own");
    }
}

/// A part of an arena, which overlaps no other part of this process. The other process accesses it
/// only while work of the part's slot is in flight, and this process only while none is. Both
/// may read [`Arena::copy_of`] contents, which neither writes.
pub(in crate::backend) struct ArenaPart {
    arena: Arc<Arena>,
    offset: usize,
    bytes: usize,
}

impl ArenaPart {
    /// The arena around it.
    pub(super) fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// The bytes, to read.
    pub(in crate::backend) fn as_slice(&self) -> &[u8] {
        // SAFETY: `cut` put the part inside the arena, which lives as long as it, and
        // apart from all others; `&self` keeps writers of this process away, and the
        // completion flags those of the other, which writes no contents after it sent them.
        unsafe {
            std::slice::from_raw_parts(self.arena.start.as_ptr().add(self.offset), self.bytes)
        }
    }

    /// The bytes, to write.
    pub(in crate::backend) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as for `as_slice`, with `&mut self`.
        unsafe {
            std::slice::from_raw_parts_mut(self.arena.start.as_ptr().add(self.offset), self.bytes)
        }
    }
}

/// The progress of one slot, which the worker writes and the slot's process reads.
#[derive(Default)]
#[repr(C, align(64))]
pub(super) struct CompletionFlag {
    /// The number of the last fence that was reached. Waiting threads sleep on it.
    pub(super) done: AtomicU32,
    /// One of [`NO_FAILURE`], [`BATCH_FAILED`] and [`DEVICE_FAILED`], written before
    /// `done`.
    pub(super) failure: AtomicU32,
}

impl CompletionFlag {
    /// Clears a failure. Only the worker may do so, or this process once the worker has ended.
    pub(super) fn clear_failure(&self) {
        self.failure.store(NO_FAILURE, Release);
    }
}

/// Nothing failed since the worker was last asked.
pub(super) const NO_FAILURE: u32 = 0;
/// A batch failed; its fence is reached all the same.
pub(super) const BATCH_FAILED: u32 = 1;
/// The device failed: no later fence is reached.
pub(super) const DEVICE_FAILED: u32 = 2;

/// The completion flags of slots that are opened together. Each group has its own memory, so a flag
/// that the worker stores late for a closed slot affects no other slot.
pub(super) struct CompletionFlags {
    arena: Arena,
    slots: usize,
}

impl CompletionFlags {
    /// Allocates flags, all zero.
    ///
    /// # Errors
    /// The errors of [`Arena::new`].
    pub(super) fn new(slots: usize) -> Result<CompletionFlags> {
        let arena = Arena::new(CompletionFlags::bytes(slots))?;
        Ok(CompletionFlags { arena, slots })
    }

    /// Maps the flags of another process.
    ///
    /// # Errors
    /// The errors of [`Arena::of_file`].
    pub(super) fn of_file(file: OwnedFd, slots: usize) -> Result<CompletionFlags> {
        let arena = Arena::of_file(file, CompletionFlags::bytes(slots))?;
        Ok(CompletionFlags { arena, slots })
    }

    fn bytes(slots: usize) -> usize {
        slots.saturating_mul(size_of::<CompletionFlag>())
    }

    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.arena.file()
    }

    /// The flag of the `index`-th slot of the group.
    ///
    /// # Panics
    /// If the group has no such slot.
    pub(super) fn slot(&self, index: usize) -> &CompletionFlag {
        assert!(index < self.slots, "the group has no such slot");
        let flags = self.arena.start.cast::<CompletionFlag>();
        // SAFETY: the arena holds `slots` flags, and the assert puts this one inside; a
        // page is aligned for it, any bytes are values of its atomics, and both
        // processes use it by those alone.
        unsafe { flags.add(index).as_ref() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn two_mappings_are_the_same_memory() {
        let here = Arena::new(10_000).unwrap();
        let file = here.file().try_clone_to_owned().unwrap();
        let there = Arena::of_file(file, 10_000).unwrap();
        let mut here = here.cut([4096, 5904]);
        let there = there.cut([4096, 5904]);
        here[1].as_mut_slice()[5903] = 7;
        assert_eq!(there[1].as_slice()[5903], 7);
        assert!(there[0].as_slice().iter().all(|byte| *byte == 0));
    }

    #[test]
    fn the_size_of_an_arena_cannot_change() {
        let arena = Arena::new(10_000).unwrap();
        for bytes in [0, 9_999, 10_001] {
            let changed = ftruncate(arena.file(), bytes);
            assert_eq!(changed, Err(rustix::io::Errno::PERM), "to {bytes} bytes");
        }
    }

    #[test]
    fn a_file_of_another_size_is_refused() {
        for bytes in [9_999, 10_001, usize::MAX] {
            let arena = Arena::new(10_000).unwrap();
            let file = arena.file().try_clone_to_owned().unwrap();
            let error = Arena::of_file(file, bytes).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Usage);
            assert!(error.to_string().contains("10000 bytes"), "{error}");
        }
    }

    #[test]
    fn a_file_that_may_shrink_is_refused() {
        let unsealed = memfd_create("unsealed", MemfdFlags::ALLOW_SEALING).unwrap();
        let sealable_not = memfd_create("unsealable", MemfdFlags::CLOEXEC).unwrap();
        let plain: OwnedFd = tempfile::tempfile().unwrap().into();
        for file in [unsealed, sealable_not, plain] {
            ftruncate(&file, 4096).unwrap();
            let error = Arena::of_file(file, 4096).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Usage);
            assert!(error.to_string().contains("not sealed"), "{error}");
        }
    }

    #[test]
    #[should_panic(expected = "parts are inside their arena")]
    fn parts_whose_sum_overflows_are_refused() {
        Arena::new(4096).unwrap().cut([4096, usize::MAX]);
    }

    #[test]
    fn flags_of_slots_are_apart() {
        let here = CompletionFlags::new(3).unwrap();
        let file = here.file().try_clone_to_owned().unwrap();
        let there = CompletionFlags::of_file(file, 3).unwrap();
        there.slot(0).done.store(3, Relaxed);
        there.slot(2).failure.store(BATCH_FAILED, Relaxed);
        assert_eq!(here.slot(0).done.load(Relaxed), 3);
        assert_eq!(here.slot(1).done.load(Relaxed), 0);
        assert_eq!(here.slot(2).failure.load(Relaxed), BATCH_FAILED);
    }

    #[test]
    #[should_panic(expected = "no such slot")]
    fn a_flag_beyond_the_group_is_refused() {
        CompletionFlags::new(3).unwrap().slot(3);
    }
}
