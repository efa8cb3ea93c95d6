//! Pinned and device memory: one arena of each for all lanes, cut up by a plan.

use super::code;
use super::context::Context;
use crate::error::{Error, ErrorKind, Result};
use crate::record::{BufferDecl, View};
use std::ptr::NonNull;
use std::sync::Arc;

/// Every buffer starts at a multiple of this, as cuMemAlloc's own blocks do, so
/// that kernels may read vectors and coalesce from a buffer's first element.
const ALIGN_BYTES: usize = 256;

/// Where one buffer lies in its lane's share of the arenas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) bytes: usize,
    pub(super) device: usize,
    /// `None` for buffers that the host does not see.
    pub(super) host: Option<usize>,
}

/// How a lane's share is cut up. Places of one arena do not overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) places: Vec<Place>,
    pub(super) device_bytes: usize,
    pub(super) host_bytes: usize,
}

impl Layout {
    /// `None` if the sum overflows.
    pub(super) fn new(buffers: &[BufferDecl]) -> Option<Layout> {
        let mut layout = Layout {
            places: Vec::with_capacity(buffers.len()),
            device_bytes: 0,
            host_bytes: 0,
        };
        for buffer in buffers {
            let bytes = buffer.len.checked_mul(buffer.dtype.size_bytes())?;
            let take = |end: &mut usize| {
                let start = *end;
                *end = start
                    .checked_add(bytes)?
                    .checked_next_multiple_of(ALIGN_BYTES)?;
                Some(start)
            };
            let device = take(&mut layout.device_bytes)?;
            let host = match buffer.view {
                View::Device => None,
                View::Upload | View::Download => Some(take(&mut layout.host_bytes)?),
            };
            layout.places.push(Place {
                bytes,
                device,
                host,
            });
        }
        Some(layout)
    }
}

/// Page-locked host memory, zeroed.
pub(super) struct Pinned {
    context: Arc<Context>,
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory belongs to the process, not to a thread; `Pinned` hands out
// its address alone, and whoever makes references of it answers for aliasing.
unsafe impl Send for Pinned {}
// SAFETY: as for `Send`.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// Takes `bytes`, at least one. Without flags: write-combined memory would
    /// be very slow to read back, and the rest is so by unified addressing.
    pub(super) fn zeroed(context: &Arc<Context>, bytes: usize) -> Result<Pinned> {
        let driver = context.bind()?;
        let mut start = std::ptr::null_mut();
        // SAFETY: `start` outlives the call, and the context is current.
        let result = unsafe { (driver.cuMemHostAlloc)(&mut start, bytes, 0) };
        if result == code::OUT_OF_MEMORY {
            let message = format!("{} of pinned host memory were refused", size_text(bytes));
            return Err(out_of_memory(message)
                .fix("lower slots or the batch capacity, or raise the locked-memory limit"));
        }
        context.check("cuMemHostAlloc", result)?;
        let start = NonNull::new(start.cast::<u8>()).expect("success comes with an address");
        // SAFETY: the call gave `bytes` bytes at `start`, which nobody else has.
        unsafe { start.write_bytes(0, bytes) };
        Ok(Pinned {
            context: Arc::clone(context),
            start,
            bytes,
        })
    }

    /// The first byte; valid for [`Pinned::bytes`] as long as `self` lives.
    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(driver) = self.context.bind_to_free() {
            // SAFETY: `start` came from cuMemHostAlloc and is freed once, here.
            unsafe { (driver.cuMemFreeHost)(self.start.as_ptr().cast()) };
        }
    }
}

/// Device memory.
pub(super) struct DeviceMemory {
    context: Arc<Context>,
    start: u64,
    bytes: usize,
}

impl DeviceMemory {
    /// Takes `bytes`, at least one.
    pub(super) fn new(context: &Arc<Context>, bytes: usize) -> Result<DeviceMemory> {
        let driver = context.bind()?;
        let mut start = 0;
        // SAFETY: `start` outlives the call, and the context is current.
        let result = unsafe { (driver.cuMemAlloc_v2)(&mut start, bytes) };
        if result == code::OUT_OF_MEMORY {
            let free = context.memory_bytes().map_or_else(
                |_| String::new(),
                |(free, total)| {
                    let (free, total) = (size_text(free as usize), size_text(total as usize));
                    format!(", with {free} of {total} free")
                },
            );
            let message = format!("{} of device memory were refused{free}", size_text(bytes));
            return Err(out_of_memory(message).fix("lower slots or the batch capacity"));
        }
        context.check("cuMemAlloc", result)?;
        Ok(DeviceMemory {
            context: Arc::clone(context),
            start,
            bytes,
        })
    }

    /// The first byte's address on the device.
    pub(super) fn start(&self) -> u64 {
        self.start
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        if let Some(driver) = self.context.bind_to_free() {
            // SAFETY: `start` came from cuMemAlloc and is freed once, here.
            unsafe { (driver.cuMemFree_v2)(self.start) };
        }
    }
}

/// The error of an allocation that cannot be had.
pub(super) fn out_of_memory(message: String) -> Error {
    Error::new(ErrorKind::OutOfMemory, message).with_code(code::OUT_OF_MEMORY)
}

/// A size with its exact number of bytes.
pub(super) fn size_text(bytes: usize) -> String {
    let mib = bytes as f64 / f64::from(1 << 20);
    format!("{bytes} bytes ({mib:.1} MiB)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{DType, Unit};

    fn decl(len: usize, view: View) -> BufferDecl {
        BufferDecl {
            name: "b".to_owned(),
            dtype: DType::F32,
            unit: Unit::PerBatch { elements: len },
            view,
            len,
        }
    }

    #[test]
    fn buffers_start_aligned_and_only_visible_ones_have_a_host_side() {
        let buffers = [
            decl(1, View::Upload),
            decl(65, View::Device),
            decl(64, View::Download),
        ];
        let layout = Layout::new(&buffers).unwrap();
        let starts: Vec<_> = layout.places.iter().map(|p| (p.device, p.host)).collect();
        assert_eq!(starts, [(0, Some(0)), (256, None), (768, Some(256))]);
        assert_eq!((layout.device_bytes, layout.host_bytes), (1024, 512));
    }

    #[test]
    fn a_size_beyond_the_address_space_is_no_layout() {
        assert_eq!(Layout::new(&[decl(usize::MAX, View::Device)]), None);
        assert_eq!(Layout::new(&[decl(usize::MAX / 4, View::Device)]), None);
    }
}
