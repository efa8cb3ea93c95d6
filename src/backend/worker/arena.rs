//! Memory that two processes share.

use crate::error::{Error, ErrorKind, Result};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

/// An anonymous file, mapped whole. It starts zeroed.
pub struct Arena {
    file: OwnedFd,
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread; who makes references
// of its address answers for aliasing.
unsafe impl Send for Arena {}
// SAFETY: as for `Send`.
unsafe impl Sync for Arena {}

impl Arena {
    /// Takes `bytes`, at least one.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`], with what the system says.
    pub fn new(bytes: usize) -> Result<Arena> {
        let refused = |errno: rustix::io::Errno| {
            let message = format!("{bytes} bytes of shared memory were refused: {errno}");
            Error::new(ErrorKind::OutOfMemory, message).fix("take fewer slots or smaller batches")
        };
        let file = memfd_create("tapeloop", MemfdFlags::CLOEXEC).map_err(refused)?;
        ftruncate(&file, bytes.max(1) as u64).map_err(refused)?;
        Arena::of_file(file, bytes)
    }

    /// Maps the file of another process's arena of this size.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`], with what the system says.
    pub fn of_file(file: OwnedFd, bytes: usize) -> Result<Arena> {
        let bytes = bytes.max(1);
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: no address is asked for, so no mapping that is there is touched.
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

    /// What another process maps.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The first byte, on a page; valid for [`Arena::bytes`] as long as `self`
    /// lives.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Its size.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Cuts it into parts of these sizes, one after the other.
    ///
    /// # Panics
    /// If they are more than there is.
    pub fn cut(self, sizes: impl IntoIterator<Item = usize>) -> Vec<Part> {
        let arena = Arc::new(self);
        let mut end = 0;
        let part = |bytes: usize| {
            let offset = end;
            end += bytes;
            assert!(end <= arena.bytes, "parts are inside their arena");
            Part {
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

/// A part of an arena, which no other part of this process overlaps. The other
/// process keeps to the turns that marks give: it touches the part only while this
/// one does not look.
pub struct Part {
    arena: Arc<Arena>,
    offset: usize,
    bytes: usize,
}

impl Part {
    /// The arena around it.
    pub fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// The bytes, to read.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: `cut` put the part inside the arena, which lives as long as it, and
        // apart from all others; `&self` keeps writers of this process away, and the
        // marks those of the other.
        unsafe {
            std::slice::from_raw_parts(self.arena.start.as_ptr().add(self.offset), self.bytes)
        }
    }

    /// The bytes, to write.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as for `as_slice`, with `&mut self`.
        unsafe {
            std::slice::from_raw_parts_mut(self.arena.start.as_ptr().add(self.offset), self.bytes)
        }
    }
}

/// Where the worker says how far a lane has come.
#[derive(Default)]
#[repr(C, align(64))]
pub(super) struct Mark {
    /// The last mark that was reached.
    pub(super) done: AtomicU32,
    /// Whether the lane failed.
    pub(super) failed: AtomicU32,
}

/// The most lanes of a worker.
pub(super) const LANES_MAX: usize = 1024;

/// The marks of all lanes.
pub(super) struct Marks(Arena);

impl Marks {
    pub(super) const BYTES: usize = LANES_MAX * size_of::<Mark>();

    pub(super) fn new(arena: Arena) -> Marks {
        assert!(arena.bytes >= Marks::BYTES, "a mark for each lane");
        Marks(arena)
    }

    pub(super) fn arena(&self) -> &Arena {
        &self.0
    }

    /// # Panics
    /// If there is no such lane.
    pub(super) fn lane(&self, lane: u32) -> &Mark {
        assert!((lane as usize) < LANES_MAX);
        // SAFETY: `new` and the assert put it inside the arena; a page is aligned for
        // it, any bytes are values of its atomics, and both processes use it by those
        // alone.
        unsafe { self.0.start.cast::<Mark>().add(lane as usize).as_ref() }
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
    fn marks_of_lanes_are_apart() {
        let marks = Marks::new(Arena::new(Marks::BYTES).unwrap());
        marks.lane(0).done.store(3, Relaxed);
        marks.lane(LANES_MAX as u32 - 1).done.store(4, Relaxed);
        assert_eq!(marks.lane(0).done.load(Relaxed), 3);
        assert_eq!(marks.lane(1).done.load(Relaxed), 0);
    }
}
