//! Pinned and device memory.

use super::context::PrimaryContext;
use super::result_codes;
use crate::backend::Call;
#[cfg(all(feature = "supervise", target_os = "linux"))]
use crate::backend::worker::Arena;
use crate::error::{Error, ErrorKind, Result};
use std::ptr::NonNull;
use std::sync::Arc;

/// Page-locked host memory.
pub(super) struct PinnedMemory {
    context: Arc<PrimaryContext>,
    start: NonNull<u8>,
    bytes: usize,
    /// The owner of memory that was only registered.
    #[cfg(all(feature = "supervise", target_os = "linux"))]
    registered: Option<Arena>,
}

// SAFETY: the memory belongs to the process, not to a thread; `PinnedMemory` hands out
// its address alone, and code that makes references of it answers for aliasing.
unsafe impl Send for PinnedMemory {}
// SAFETY: as for `Send`.
unsafe impl Sync for PinnedMemory {}

impl PinnedMemory {
    /// Allocates `bytes` bytes, at least one, zeroed. It needs no flags: write-combined memory
    /// would be slow to read, and unified addressing implies the others.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`] if so much cannot be pinned.
    pub(super) fn zeroed(context: &Arc<PrimaryContext>, bytes: usize) -> Result<PinnedMemory> {
        let driver = context.bind_for(Call::Allocation)?;
        let mut start = std::ptr::null_mut();
        // SAFETY: `start` outlives the call, and the context is current.
        let result = unsafe { (driver.cuMemHostAlloc)(&mut start, bytes, 0) };
        if result == result_codes::OUT_OF_MEMORY {
            let message = format!(
                "{} of pinned host memory could not be allocated",
                size_text(bytes)
            );
            return Err(out_of_memory(message)
                .fix("lower slots or the batch capacity, or raise the locked-memory limit"));
        }
        context.check("cuMemHostAlloc", result)?;
        let start = NonNull::new(start.cast::<u8>()).expect("success comes with an address");
        // SAFETY: the call gave `bytes` bytes at `start`, which no other code has.
        unsafe { start.write_bytes(0, bytes) };
        Ok(PinnedMemory {
            context: Arc::clone(context),
            start,
            bytes,
            #[cfg(all(feature = "supervise", target_os = "linux"))]
            registered: None,
        })
    }

    /// Pins existing memory that is shared with another process.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] if the device takes such memory by other addresses than the host;
    /// [`ErrorKind::OutOfMemory`] if so much cannot be pinned.
    #[cfg(all(feature = "supervise", target_os = "linux"))]
    pub(super) fn registered(context: &Arc<PrimaryContext>, arena: Arena) -> Result<PinnedMemory> {
        use cudarc::driver::sys::CUdevice_attribute as A;
        let same = A::CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM;
        if context.device.attribute(same) == 0 {
            let message = "the device does not take host memory by the host's addresses";
            return Err(Error::new(ErrorKind::Unavailable, message)
                .fix("run without supervision, supervise = false"));
        }
        let driver = context.bind_for(Call::Allocation)?;
        let (start, bytes) = (arena.start(), arena.bytes());
        // SAFETY: the arena is mapped, and lives in the result.
        let result = unsafe { (driver.cuMemHostRegister_v2)(start.as_ptr().cast(), bytes, 0) };
        if result == result_codes::OUT_OF_MEMORY {
            let message = format!("{} of host memory could not be pinned", size_text(bytes));
            return Err(out_of_memory(message)
                .fix("lower slots or the batch capacity, or raise the locked-memory limit"));
        }
        context.check("cuMemHostRegister", result)?;
        Ok(PinnedMemory {
            context: Arc::clone(context),
            start,
            bytes,
            registered: Some(arena),
        })
    }

    /// The first byte; valid for [`PinnedMemory::bytes`] as long as `self` lives.
    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        #[cfg(all(feature = "supervise", target_os = "linux"))]
        if let Some(arena) = self.registered.take() {
            match self.context.bind_to_free() {
                // SAFETY: `start` was registered, and is given back once, here.
                Some(driver) => unsafe {
                    (driver.cuMemHostUnregister)(self.start.as_ptr().cast());
                },
                // The device may still use it.
                None => std::mem::forget(arena),
            }
            return;
        }
        if let Some(driver) = self.context.bind_to_free() {
            // SAFETY: `start` came from cuMemHostAlloc and is freed once, here.
            unsafe { (driver.cuMemFreeHost)(self.start.as_ptr().cast()) };
        }
    }
}

/// Device memory.
pub(super) struct DeviceMemory {
    context: Arc<PrimaryContext>,
    start: u64,
    bytes: usize,
}

impl DeviceMemory {
    /// Allocates `bytes` bytes, at least one.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`], with how much is free.
    pub(super) fn new(context: &Arc<PrimaryContext>, bytes: usize) -> Result<DeviceMemory> {
        let driver = context.bind_for(Call::Allocation)?;
        let mut start = 0;
        // SAFETY: `start` outlives the call, and the context is current.
        let result = unsafe { (driver.cuMemAlloc_v2)(&mut start, bytes) };
        if result == result_codes::OUT_OF_MEMORY {
            let free = context.memory_bytes().map_or_else(
                |_| String::new(),
                |(free, total)| {
                    let (free, total) = (size_text(free as usize), size_text(total as usize));
                    format!(", with {free} of {total} free")
                },
            );
            let message = format!(
                "{} of device memory could not be allocated{free}",
                size_text(bytes)
            );
            return Err(out_of_memory(message).fix("lower slots or the batch capacity"));
        }
        context.check("cuMemAlloc", result)?;
        Ok(DeviceMemory {
            context: Arc::clone(context),
            start,
            bytes,
        })
    }

    /// The address on the device.
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

/// The error of a refused allocation.
pub(super) fn out_of_memory(message: String) -> Error {
    Error::new(ErrorKind::OutOfMemory, message).with_code(result_codes::OUT_OF_MEMORY)
}

/// A size with its exact number of bytes.
pub(super) fn size_text(bytes: usize) -> String {
    let mib = bytes as f64 / f64::from(1 << 20);
    format!("{bytes} bytes ({mib:.1} MiB)")
}
