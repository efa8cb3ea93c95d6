//! Finds the block size with which a kernel fills a device.

use super::context::PrimaryContext;
use super::module::Function;
use crate::backend::Occupancy;
use crate::error::{Error, ErrorKind, Result};
use cudarc::driver::sys::CUdevice_attribute;

/// The block size with the most threads per multiprocessor, for this much dynamic shared memory per
/// block in bytes, and the number of such blocks that the device runs at once.
///
/// # Errors
/// [`ErrorKind::Usage`] for a library call; [`ErrorKind::Kernel`] if no block of the kernel fits on
/// a multiprocessor.
pub(super) fn occupancy(
    context: &PrimaryContext,
    function: &Function,
    shared_bytes: u32,
) -> Result<Occupancy> {
    if function.library().is_some() {
        let error = Error::usage("a library call has no blocks, so none can be chosen");
        return Err(error.fix("record it with Recorder::call"));
    }
    let driver = context.bind()?;
    let (raw, shared) = (function.raw(), shared_bytes as usize);
    let (mut blocks, mut threads) = (0, 0);
    // SAFETY: both outlive the call, the function's module lives as long as the
    // context's functions, and without a callback the size is the one passed.
    context.check("cuOccupancyMaxPotentialBlockSize", unsafe {
        (driver.cuOccupancyMaxPotentialBlockSize)(&mut blocks, &mut threads, raw, None, shared, 0)
    })?;
    let mut resident = 0;
    if threads > 0 {
        // SAFETY: as above.
        context.check("cuOccupancyMaxActiveBlocksPerMultiprocessor", unsafe {
            (driver.cuOccupancyMaxActiveBlocksPerMultiprocessor)(
                &mut resident,
                raw,
                threads,
                shared,
            )
        })?;
    }
    if resident <= 0 {
        let name = context.device.name();
        let message = format!("no block of it, of any size, runs on {name}");
        return Err(Error::new(ErrorKind::Kernel, message)
            .fix("let its code take fewer registers or less shared memory"));
    }
    let multiprocessors = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
    Ok(Occupancy {
        block_threads: threads as u32,
        resident_blocks: resident as u32 * context.device.attribute(multiprocessors),
    })
}
