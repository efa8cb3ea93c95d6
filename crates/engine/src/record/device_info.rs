//! What is known of a device.

/// A device, as backends report it and recordings depend on it.
///
/// ```
/// use tapeloop_engine::{Backend, DeviceInfo, backend::cpu::CpuBackend};
///
/// let cpu = CpuBackend::inline();
/// let device: &DeviceInfo = cpu.device();
/// assert!(device.shares_host_memory && device.compute_capability.is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct DeviceInfo {
    /// `"cuda"`, `"cpu"` or `"sim"`.
    // A static name of this program: the worker's protocol sends it separately.
    #[cfg_attr(feature = "supervise", serde(skip))]
    pub backend: &'static str,
    /// The device's product name.
    pub name: String,
    /// Compute capability, `None` on a CPU.
    pub compute_capability: Option<(u32, u32)>,
    /// Multiprocessors; on a CPU, threads of the pool.
    pub multiprocessors: u32,
    /// Memory in bytes. 0 if that is unknown.
    pub memory_bytes: u64,
    /// The driver's version as CUDA counts it (13000 is 13.0), 0 on a CPU.
    pub driver_version: u32,
    /// Whether both sides of a buffer are the same memory, so that no copies are made.
    pub shares_host_memory: bool,
    /// The UUID, as `nvidia-smi -L` prints it; `None` on a CPU.
    pub uuid: Option<String>,
    /// Domain, bus, device and function, as in `0000:1a:00.0`; `None` if it is not a PCI device.
    pub pci_bus_id: Option<String>,
}

impl DeviceInfo {
    /// A device of one multiprocessor of which nothing else is known. `backend` names the kind of
    /// device in reports.
    pub fn new(backend: &'static str, name: impl Into<String>) -> Self {
        DeviceInfo {
            backend,
            name: name.into(),
            compute_capability: None,
            multiprocessors: 1,
            memory_bytes: 0,
            driver_version: 0,
            shares_host_memory: false,
            uuid: None,
            pci_bus_id: None,
        }
    }
}
