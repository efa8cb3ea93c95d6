//! Memory of the host that stands for a device's.

use super::Region;
use crate::error::{Error, ErrorKind, Result};

/// Bytes aligned for every element type.
#[derive(Default)]
pub(super) struct Storage {
    words: Vec<u128>,
    bytes: usize,
}

impl Storage {
    pub(super) fn zeroed(bytes: usize) -> Result<Self> {
        Self::with_room(bytes, bytes)
    }

    /// `bytes` zeros in memory for `room`.
    pub(super) fn with_room(bytes: usize, room: usize) -> Result<Self> {
        let words = room.div_ceil(size_of::<u128>());
        // Asked first, since a plain vector aborts when it is refused. The second
        // comes zeroed from the system and takes no memory until it is touched.
        let refused = Vec::<u128>::new().try_reserve_exact(words).is_err();
        if refused {
            let message = format!("{bytes} bytes of memory were refused");
            return Err(Error::new(ErrorKind::OutOfMemory, message)
                .fix("take fewer slots or smaller batches"));
        }
        Ok(Storage {
            words: vec![0; words],
            bytes,
        })
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.bytes]
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.bytes]
    }
}

#[cfg(test)]
impl Storage {
    /// The memory that it takes.
    pub(super) fn room(&self) -> usize {
        size_of_val(&*self.words)
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
