//! Host memory that serves as device memory.

use super::Region;
use crate::error::{Error, ErrorKind, Result};

/// Bytes aligned for every element type.
pub struct Storage {
    memory: StorageMemory,
    bytes: usize,
}

enum StorageMemory {
    Own(Vec<u128>),
    /// Memory that another process maps too, and at least as long as the bytes.
    #[cfg(all(feature = "supervise", target_os = "linux"))]
    Shared(super::worker::ArenaPart),
}

impl Storage {
    /// Zeros.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    pub fn zeroed(bytes: usize) -> Result<Self> {
        Self::with_room(bytes, bytes)
    }

    /// `bytes` zeros in memory for `room`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    pub(super) fn with_room(bytes: usize, room: usize) -> Result<Self> {
        let words = room.div_ceil(size_of::<u128>());
        // A vector aborts the process if it gets no memory, so that is tried first. `vec![0]`
        // then takes zeroed pages that use no memory until they are touched.
        let refused = Vec::<u128>::new().try_reserve_exact(words).is_err();
        if refused {
            let message = format!("{bytes} bytes of memory were refused");
            return Err(Error::new(ErrorKind::OutOfMemory, message)
                .fix("take fewer slots or smaller batches"));
        }
        Ok(Storage {
            memory: StorageMemory::Own(vec![0; words]),
            bytes,
        })
    }

    /// The first `bytes` bytes of shared memory.
    #[cfg(all(feature = "supervise", target_os = "linux"))]
    pub(super) fn shared(part: super::worker::ArenaPart, bytes: usize) -> Self {
        let memory = StorageMemory::Shared(part);
        Storage { memory, bytes }
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        let all = match &self.memory {
            StorageMemory::Own(words) => bytemuck::cast_slice(words),
            #[cfg(all(feature = "supervise", target_os = "linux"))]
            StorageMemory::Shared(part) => part.as_slice(),
        };
        &all[..self.bytes]
    }

    /// The bytes.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        let all = match &mut self.memory {
            StorageMemory::Own(words) => bytemuck::cast_slice_mut(words),
            #[cfg(all(feature = "supervise", target_os = "linux"))]
            StorageMemory::Shared(part) => part.as_mut_slice(),
        };
        &mut all[..self.bytes]
    }
}

#[cfg(test)]
impl Storage {
    /// The size of its memory in bytes.
    pub(super) fn room(&self) -> usize {
        match &self.memory {
            StorageMemory::Own(words) => size_of_val(&**words),
            #[cfg(all(feature = "supervise", target_os = "linux"))]
            StorageMemory::Shared(part) => part.as_slice().len(),
        }
    }
}

impl AsRef<[u8]> for Storage {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl Region for Storage {
    fn bytes(&self) -> Option<&[u8]> {
        Some(self.as_slice())
    }

    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        Some(self.as_mut_slice())
    }
}
