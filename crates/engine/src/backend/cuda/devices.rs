//! Describes the visible devices, and chooses one.

use super::context::{DriverDevice, PrimaryContext};
use super::driver::{self, Driver, Presence};
use crate::backend::visible_devices::{KnownDevice, Visible};
use crate::backend::{DeviceChoice, DeviceEntry, DeviceSet, PcieLink, visible_variable};
use crate::error::Result;
use cudarc::driver::sys::CUdevice_attribute as A;
use std::path::Path;

/// The folder of Linux that lists PCI devices.
const PCI_DEVICES: &str = "/sys/bus/pci/devices";

/// The implementation of [`devices`](crate::backend::devices()); the inner error says why there is no
/// driver or no device.
pub(in crate::backend) fn list_devices() -> Result<Result<Vec<DeviceEntry>, String>> {
    match driver::find()? {
        Presence::Ready { driver, devices } => {
            let all = handles(driver, devices)?.into_iter().enumerate();
            Ok(Ok(all.map(|(n, device)| describe(n, device)).collect()))
        }
        Presence::Absent(reason) => Ok(Err(reason)),
    }
}

/// The chosen device; the inner error says why there is no driver or no device.
pub(super) fn find(choice: &DeviceChoice) -> Result<Result<DriverDevice, String>> {
    find_with(|visible, devices| Ok(devices[visible.choose(choice, free_bytes_of(devices))?]))
}

/// The UUIDs of the devices of `set`, each once; the inner error says why there is no driver or no
/// device. Makes no context, unless the set has [`DeviceChoice::MostFree`].
pub(in crate::backend) fn find_uuids(set: &DeviceSet) -> Result<Result<Vec<String>, String>> {
    find_with(|visible, devices| {
        let ordinals = visible.choose_all(set, free_bytes_of(devices))?.into_iter();
        Ok(ordinals.map(|ordinal| devices[ordinal].uuid()).collect())
    })
}

/// Finds the visible devices, and lets `choose` take what it needs of them. The inner error is the
/// reason why there is no driver or no device.
fn find_with<T>(
    choose: impl FnOnce(&Visible, &[DriverDevice]) -> Result<T>,
) -> Result<Result<T, String>> {
    let (driver, count) = match driver::find()? {
        Presence::Ready { driver, devices } => (driver, devices),
        Presence::Absent(reason) => return Ok(Err(reason)),
    };
    let devices = handles(driver, count)?;
    let known = |device: &DriverDevice| KnownDevice {
        name: device.name(),
        uuid: device.uuid(),
    };
    let visible = Visible {
        devices: devices.iter().map(known).collect(),
        variable: visible_variable(),
    };
    choose(&visible, &devices).map(Ok)
}

fn free_bytes_of(devices: &[DriverDevice]) -> impl Fn(usize) -> Result<u64> {
    |ordinal| Ok(PrimaryContext::memory_bytes_of(devices[ordinal])?.0)
}

fn handles(driver: &'static Driver, count: u32) -> Result<Vec<DriverDevice>> {
    (0..count).map(|n| DriverDevice::open(driver, n)).collect()
}

/// Asks the driver and the PCI files of Linux for what `tapeloop devices` lists of a device. Takes
/// a context of the device for the free memory.
fn describe(ordinal: usize, device: DriverDevice) -> DeviceEntry {
    let pci_bus_id = device.pci_bus_id();
    let link = |which| read_link(Path::new(PCI_DEVICES), &pci_bus_id, which);
    let info = device.info();
    DeviceEntry {
        ordinal,
        name: info.name,
        uuid: device.uuid(),
        compute_capability: device.capability(),
        memory_free_bytes: PrimaryContext::memory_bytes_of(device).map(|(free, _)| free),
        memory_bytes: info.memory_bytes,
        multiprocessors: info.multiprocessors,
        block_shared_bytes: device.attribute(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
        block_shared_bytes_max: device
            .attribute(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
        multiprocessor_shared_bytes: device
            .attribute(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
        copy_engines: device.attribute(A::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT),
        link: link("current"),
        link_max: link("max"),
        driver_version: info.driver_version,
        pci_bus_id,
    }
}

/// The PCIe link of the device with this PCI id, from the folder of Linux that lists devices;
/// `which` is `current` or `max`. `None` if the files are missing.
fn read_link(devices: &Path, pci_bus_id: &str, which: &str) -> Option<PcieLink> {
    let folder = devices.join(pci_bus_id.to_ascii_lowercase());
    let field = |name: &str| {
        let text = std::fs::read_to_string(folder.join(format!("{which}_link_{name}")));
        Some(text.ok()?.split_whitespace().next()?.to_owned())
    };
    let link = PcieLink {
        // The number comes first: `32.0 GT/s PCIe`.
        gigatransfers_per_s: field("speed")?.parse().ok()?,
        lanes: field("width")?.parse().ok()?,
    };
    // PCIe has links of up to 32 lanes. Linux lists one that is down with none, or with all bits set.
    (1..=32).contains(&link.lanes).then_some(link)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_read_where_the_system_tells_them() {
        let folder = tempfile::tempdir().unwrap();
        let device = folder.path().join("0000:1a:00.0");
        std::fs::create_dir(&device).unwrap();
        let write = |name: &str, text: &str| std::fs::write(device.join(name), text).unwrap();
        let read = |which| read_link(folder.path(), "0000:1A:00.0", which);
        write("max_link_speed", "32.0 GT/s PCIe\n");
        assert_eq!(read("max"), None, "a speed without a width");
        write("max_link_width", "16\n");
        assert_eq!(read("max").unwrap().to_string(), "32 GT/s x16");
        assert_eq!(read("current"), None);
        write("current_link_speed", "2.5 GT/s PCIe\n");
        write("current_link_width", "8\n");
        assert_eq!(read("current").unwrap().to_string(), "2.5 GT/s x8");
        write("current_link_speed", "Unknown\n");
        assert_eq!(read("current"), None);
        for down in ["0\n", "63\n"] {
            write("max_link_width", down);
            assert_eq!(read("max"), None, "a link that is down");
        }
        assert_eq!(read_link(folder.path(), "0000:ff:00.0", "max"), None);
    }
}
