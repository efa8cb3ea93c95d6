//! The CUDA backend: one device, its primary context, a stream for each lane.
//!
//! This folder is the home of the crate's unsafe code. It rests on three rules:
//!
//! - The driver's functions come from one table whose signatures are checked
//!   against the bindings at compile time (`driver`); handles live in types
//!   that own them and hold their context (`context`).
//! - A lane gives the device no host or device address but its own (`share`),
//!   and shows the host side of its memory only while nothing is in flight
//!   (`lane`); dropping it waits first.
//! - After an error that loses the context nothing on the device is touched or
//!   freed any more, only leaked.

mod cache;
mod code;
mod compile;
mod context;
mod doctor;
mod driver;
mod format;
mod lane;
mod memory;
mod module;
mod nvrtc;
mod share;
mod stream;

use super::{Backend, CudaOptions, DeviceInfo, FunctionId, Lane, Layout};
use crate::error::{Error, ErrorKind, Result};
use crate::record::{BufferDecl, Kernel};
pub use code::Code;
use context::{Context, Device};
pub(super) use doctor::gpu_findings;
use driver::OR_CPU;
use lane::CudaLane;
use memory::{DeviceMemory, Pinned, out_of_memory};
use share::Share;
use std::sync::Arc;

/// One CUDA device.
pub struct CudaBackend {
    info: DeviceInfo,
    context: Arc<Context>,
    functions: Arc<module::Functions>,
    blocking_wait: bool,
}

impl CudaBackend {
    /// Opens the device that `options` name.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`], with what to install or to set.
    pub fn open(options: &CudaOptions) -> Result<CudaBackend> {
        CudaBackend::find(options)?.map_err(|absent| {
            Error::new(ErrorKind::Unavailable, absent)
                .fix(format!("install the NVIDIA driver, {OR_CPU}"))
        })
    }

    /// Opens the device, or says why there is none at all: no driver library,
    /// or no device in its sight.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] for a device that is there and cannot be used,
    /// with what to install or to set.
    pub fn find(options: &CudaOptions) -> Result<Result<CudaBackend, String>> {
        let device = match Device::find(options.device_ordinal)? {
            Ok(device) => device,
            Err(absent) => return Ok(Err(absent.to_owned())),
        };
        let context = Context::retain(device)?;
        let compiler = compile::Compiler::new(options, device.driver.version);
        Ok(Ok(CudaBackend {
            info: device.info(),
            functions: Arc::new(module::Functions::new(&context, compiler)),
            context,
            blocking_wait: options.blocking_wait,
        }))
    }
}

impl Backend for CudaBackend {
    fn device(&self) -> &DeviceInfo {
        &self.info
    }

    fn load(&self, kernel: &Kernel) -> Result<FunctionId> {
        self.functions.load(kernel)
    }

    fn open_lanes(&self, buffers: &[BufferDecl], lanes: usize) -> Result<Vec<Box<dyn Lane>>> {
        let total = |bytes: usize| bytes.checked_mul(lanes);
        let sums = Layout::new(buffers).and_then(|layout| {
            let sums = (total(layout.device_bytes)?, total(layout.host_bytes)?);
            Some((layout, sums))
        });
        let Some((layout, (device_bytes, host_bytes))) = sums else {
            let message = "the buffers of all slots are larger than the address space";
            return Err(out_of_memory(message.to_owned()).fix("lower the batch capacity"));
        };
        // The driver refuses to allocate nothing.
        let pinned = Pinned::zeroed(&self.context, host_bytes.max(1))?;
        let device = DeviceMemory::new(&self.context, device_bytes.max(1))?;
        Share::cut(layout, pinned, device, lanes)
            .map(|share| -> Result<Box<dyn Lane>> {
                let lane =
                    CudaLane::open(&self.context, &self.functions, share, self.blocking_wait)?;
                Ok(Box::new(lane))
            })
            .collect()
    }
}
