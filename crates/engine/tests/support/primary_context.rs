//! Calls of the driver on the primary context, as other code of the process makes them.

use std::ptr::null_mut;
use tapeloop_engine::internal::cudarc::driver::sys::{self, CUresult};

pub(crate) fn check(call: &str, result: CUresult) {
    assert_eq!(result, CUresult::CUDA_SUCCESS, "{call}");
}

/// Makes the primary context current on this thread, for `work`.
pub(crate) fn with_primary<T>(work: impl FnOnce() -> T) -> T {
    let (mut device, mut context) = (0, null_mut());
    // SAFETY: both places outlive the calls, and the context is retained until `work`
    // is done.
    unsafe {
        check("cuDeviceGet", sys::cuDeviceGet(&mut device, 0));
        let retained = sys::cuDevicePrimaryCtxRetain(&mut context, device);
        check("cuDevicePrimaryCtxRetain", retained);
        check("cuCtxSetCurrent", sys::cuCtxSetCurrent(context));
        let done = work();
        let released = sys::cuDevicePrimaryCtxRelease_v2(device);
        check("cuDevicePrimaryCtxRelease", released);
        done
    }
}
