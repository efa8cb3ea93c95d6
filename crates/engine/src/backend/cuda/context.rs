//! A device and its primary context.

use super::driver::{self, Driver};
use super::programmatic_launch::ProgrammaticLaunch;
use super::result_codes::{self, Code};
use super::thread_guard::{Relaxed, ThreadGuard};
use crate::backend::crate_threads;
use crate::backend::{AllocationKey, BackendId, Call, CallCounters, DeviceInfo};
use crate::error::{Error, Result};
use cudarc::driver::sys::{self, CUdevice_attribute};
use std::ffi::CStr;
use std::sync::{Arc, OnceLock};

/// A device of the driver, without a context.
#[derive(Clone, Copy)]
pub(super) struct DriverDevice {
    pub(super) driver: &'static Driver,
    raw: sys::CUdevice,
}

impl DriverDevice {
    /// The device with this ordinal, from 0.
    /// [`ErrorKind::Unavailable`](crate::error::ErrorKind::Unavailable), with the driver's code, if
    /// there is none.
    pub(super) fn open(driver: &'static Driver, ordinal: u32) -> Result<DriverDevice> {
        let mut raw = 0;
        // SAFETY: `raw` outlives the call, and a `Driver` is initialised.
        let result = unsafe { (driver.cuDeviceGet)(&mut raw, ordinal as i32) };
        match result {
            result_codes::SUCCESS => Ok(DriverDevice { driver, raw }),
            _ => Err(driver::unusable_error("cuDeviceGet", Code::of(result))),
        }
    }

    /// The driver's handle.
    pub(super) fn handle(self) -> sys::CUdevice {
        self.raw
    }

    /// An attribute; 0 if the driver does not know it.
    pub(super) fn attribute(self, attribute: CUdevice_attribute) -> u32 {
        let mut value = 0;
        // SAFETY: `value` outlives the call, and `raw` came from cuDeviceGet.
        unsafe { (self.driver.cuDeviceGetAttribute)(&mut value, attribute, self.raw) };
        value.max(0) as u32
    }

    /// Major and minor compute capability.
    pub(super) fn capability(self) -> (u32, u32) {
        use CUdevice_attribute as A;
        (
            self.attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            self.attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        )
    }

    /// Describes the device. What the driver does not tell is 0 or empty.
    pub(super) fn info(self) -> DeviceInfo {
        let mut memory_bytes = 0;
        // SAFETY: `memory_bytes` outlives the call, and `raw` came from cuDeviceGet.
        unsafe { (self.driver.cuDeviceTotalMem_v2)(&mut memory_bytes, self.raw) };
        DeviceInfo {
            backend: "cuda",
            name: self.name(),
            compute_capability: Some(self.capability()),
            multiprocessors: self
                .attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
            memory_bytes: memory_bytes as u64,
            driver_version: self.driver.version,
            shares_host_memory: false,
            uuid: Some(self.uuid()),
            pci_bus_id: Some(self.pci_bus_id()),
        }
    }

    /// The product name.
    pub(super) fn name(self) -> String {
        // As long as the name in the runtime's `cudaDeviceProp`.
        let mut text = [0; 256];
        // SAFETY: the driver writes at most the length passed, terminator included.
        unsafe {
            (self.driver.cuDeviceGetName)(text.as_mut_ptr(), text.len() as i32, self.raw);
        }
        c_text(&text)
    }

    /// The PCI bus id; empty if the driver does not tell it.
    pub(super) fn pci_bus_id(self) -> String {
        // An id, such as `0000:3b:00.0`, takes 13 bytes with its terminator.
        let mut text = [0; 32];
        // SAFETY: the driver writes at most the length passed, terminator included.
        unsafe {
            (self.driver.cuDeviceGetPCIBusId)(text.as_mut_ptr(), text.len() as i32, self.raw);
        }
        c_text(&text)
    }

    /// The UUID, as `nvidia-smi -L` prints it.
    pub(super) fn uuid(self) -> String {
        let mut uuid = sys::CUuuid { bytes: [0; 16] };
        // A UUID that the driver does not tell stays zeros: it names the device in messages and choices.
        // SAFETY: `uuid` outlives the call, and `raw` came from cuDeviceGet.
        unsafe { (self.driver.cuDeviceGetUuid_v2)(&mut uuid, self.raw) };
        let hex: String = uuid.bytes.iter().map(|b| format!("{b:02x}")).collect();
        // Only the name shows whether this is a MIG part of a GPU.
        let kind = if self.name().contains(" MIG ") {
            "MIG"
        } else {
            "GPU"
        };
        format!(
            "{kind}-{}-{}-{}-{}-{}",
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..]
        )
    }
}

/// The text up to the terminator.
fn c_text(text: &[std::ffi::c_char]) -> String {
    let bytes: Vec<u8> = text.iter().map(|&c| c as u8).collect();
    CStr::from_bytes_until_nul(&bytes).map_or_else(
        |_| String::new(),
        |text| text.to_string_lossy().into_owned(),
    )
}

/// The primary context of a device, retained. It is the one that the CUDA
/// runtime uses too, so memory can be shared with an embedder's own code.
pub(super) struct PrimaryContext {
    pub(super) device: DriverDevice,
    /// Identifies the backend of functions and slots.
    pub(super) id: BackendId,
    /// Identifies the allocations of the backend.
    pub(super) allocation_key: AllocationKey,
    /// Counts driver calls.
    pub(super) calls: CallCounters,
    pub(super) programmatic: ProgrammaticLaunch,
    raw: sys::CUcontext,
    /// The error that lost the context.
    lost: OnceLock<Error>,
}

// SAFETY: a CUcontext is a handle that the driver lets any thread use; `raw` is
// set once, and the rest is `Send` and `Sync` by itself.
unsafe impl Send for PrimaryContext {}
// SAFETY: as for `Send`.
unsafe impl Sync for PrimaryContext {}

impl PrimaryContext {
    /// Takes a reference to the device's primary context, which this process then shares with other
    /// users of the device, and checks that it can be bound.
    /// [`ErrorKind::Unavailable`](crate::error::ErrorKind::Unavailable), with the driver's code, if
    /// that cannot be made.
    pub(super) fn retain(device: DriverDevice) -> Result<Arc<PrimaryContext>> {
        let mut raw = std::ptr::null_mut();
        // Creating a context is refused during captures of other threads. Without a current context
        // the driver may refuse to change the mode: then the call is made without.
        let relaxed = Relaxed::new(device.driver).ok();
        // SAFETY: `raw` outlives the call, and the device came from cuDeviceGet.
        let result = unsafe { (device.driver.cuDevicePrimaryCtxRetain)(&mut raw, device.raw) };
        drop(relaxed);
        if result != result_codes::SUCCESS {
            let code = Code::of(result);
            return Err(driver::unusable_error("cuDevicePrimaryCtxRetain", code));
        }
        let context = Arc::new(PrimaryContext {
            device,
            id: BackendId::new(),
            allocation_key: AllocationKey::new(),
            calls: CallCounters::default(),
            programmatic: ProgrammaticLaunch::default(),
            raw,
            lost: OnceLock::new(),
        });
        drop(context.bind()?);
        Ok(context)
    }

    /// The driver, with this context current on the calling thread and the thread
    /// in the relaxed mode of captures, until the guard is dropped.
    ///
    /// Slots move between threads, and an embedder's thread may have made another context current
    /// since, so the driver is asked each time. A lost context is refused without asking.
    pub(super) fn bind(&self) -> Result<ThreadGuard> {
        self.check_lost()?;
        let bound = ThreadGuard::new(self.device.driver, self.raw);
        bound.map_err(|(call, raw)| self.check(call, raw).expect_err("it was refused"))
    }

    /// Binds the context for several calls, each of which binds it again: on an embedder's thread
    /// the state of the thread is then changed and restored once. `None` if that gains nothing, or
    /// if the calls will be refused.
    pub(super) fn enter(&self) -> Option<ThreadGuard> {
        if crate_threads::is_registered() {
            None
        } else {
            self.bind().ok()
        }
    }

    /// [`PrimaryContext::bind`] for a call that counts as `call`.
    pub(super) fn bind_for(&self, call: Call) -> Result<ThreadGuard> {
        self.calls.add(call);
        self.bind()
    }

    /// The handle, valid as long as `self` lives.
    pub(super) fn raw(&self) -> sys::CUcontext {
        self.raw
    }

    /// The driver, bound to free something on the device; `None` if the context is lost, as
    /// everything is then leaked.
    pub(super) fn bind_to_free(&self) -> Option<ThreadGuard> {
        self.bind().ok()
    }

    /// Turns a result code into a result, and notes the loss of the context. The error is
    /// [`Code::error`].
    pub(super) fn check(&self, call: &str, raw: i32) -> Result<()> {
        if raw == result_codes::SUCCESS {
            return Ok(());
        }
        let code = Code::of(raw);
        let error = code.error(call);
        if code.loses_context {
            self.lose(&error);
        }
        Err(error)
    }

    /// Marks the context as lost. Returns the first reason, which is the one that is reported.
    pub(super) fn lose(&self, error: &Error) -> Error {
        self.lost.get_or_init(|| error.clone()).clone()
    }

    /// Fails with the reason of the loss, if the context is lost, as it is in a child of the process that
    /// made it. It makes no call to the driver.
    pub(super) fn check_lost(&self) -> Result<()> {
        self.id.check_process()?;
        self.lost.get().cloned().map_or(Ok(()), Err)
    }

    pub(super) fn is_lost(&self) -> bool {
        self.check_lost().is_err()
    }

    /// Free and total memory of a device in bytes, through a context that is released at once.
    pub(super) fn memory_bytes_of(device: DriverDevice) -> Result<(u64, u64)> {
        PrimaryContext::retain(device).and_then(|context| context.memory_bytes())
    }

    /// Free and total device memory in bytes.
    pub(super) fn memory_bytes(&self) -> Result<(u64, u64)> {
        let driver = self.bind()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both outlive the call, and the context is current.
        self.check("cuMemGetInfo", unsafe {
            (driver.cuMemGetInfo_v2)(&mut free, &mut total)
        })?;
        Ok((free as u64, total as u64))
    }
}

impl Drop for PrimaryContext {
    fn drop(&mut self) {
        if !self.is_lost() {
            // Relaxes the capture mode of the thread, as `retain` does.
            let _relaxed = Relaxed::new(self.device.driver).ok();
            // SAFETY: `retain` took the one reference that is given back here,
            // and all that lives in the context holds an Arc of `self`.
            unsafe { (self.device.driver.cuDevicePrimaryCtxRelease_v2)(self.device.raw) };
        }
    }
}
