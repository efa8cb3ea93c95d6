//! `tapeloop devices`.
//!
//! Writing to a string cannot fail, so what `write!` returns is ignored.

use serde_json::{Value as Json, json};
use std::fmt::Write;
use tapeloop::backend::cpu::CpuBackend;
use tapeloop::backend::{Backend, DeviceEntry, PcieLink, devices as list, visible_variable};
use tapeloop::error::{Error, Result};
use tapeloop_cli::exit_codes::GOOD;
use tapeloop_cli::terminal::say;

/// Prints the GPUs that a run can use, or why there is none, and returns the exit code.
///
/// # Errors
/// The driver is installed and cannot be used.
pub(super) fn devices(as_json: bool) -> Result<u8> {
    let found = list()?;
    say(&if as_json {
        format!("{:#}\n", json_of(&found))
    } else {
        text_of(&found)
    });
    Ok(GOOD)
}

fn processor() -> (String, usize) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    (CpuBackend::inline().device().name.clone(), threads)
}

/// The GPUs as lines of text, or why there are none.
fn text_of(found: &Result<Vec<DeviceEntry>, String>) -> String {
    let mut text = match found {
        Ok(devices) => devices.iter().map(entry_text).collect(),
        Err(reason) => {
            let (name, threads) = processor();
            format!("No GPU: {reason}.\nRuns compute on the CPU: {name}, {threads} threads.\n")
        }
    };
    if let (Ok(_), Some(variable)) = (found, visible_variable()) {
        let _ = writeln!(text, "CUDA_VISIBLE_DEVICES is {variable:?}.");
    }
    text
}

/// A GPU as lines of text.
fn entry_text(device: &DeviceEntry) -> String {
    let (major, minor) = device.compute_capability;
    let free = match &device.memory_free_bytes {
        Ok(free) => format!("{} free of", gib(*free)),
        Err(error) => format!("cannot be used ({error}),"),
    };
    let kib = |bytes: u32| bytes >> 10;
    let link = |link: Option<PcieLink>| link.map_or("unknown".to_owned(), |link| link.to_string());
    let rows = [
        ("compute capability", format!("{major}.{minor}")),
        ("memory", format!("{free} {}", gib(device.memory_bytes))),
        ("multiprocessors", device.multiprocessors.to_string()),
        (
            "shared memory",
            format!(
                "{} KiB per block, {} by opt-in, {} per multiprocessor",
                kib(device.block_shared_bytes),
                kib(device.block_shared_bytes_max),
                kib(device.multiprocessor_shared_bytes)
            ),
        ),
        ("copy engines", device.copy_engines.to_string()),
        (
            "PCIe link",
            format!("{}, at most {}", link(device.link), link(device.link_max)),
        ),
        ("PCI id", device.pci_bus_id.clone()),
        ("UUID", device.uuid.clone()),
        ("driver", format!("CUDA {}", version(device.driver_version))),
    ];
    let mut text = format!("{}  {}\n", device.ordinal, device.name);
    for (name, value) in rows {
        let _ = writeln!(text, "   {name:<19}{value}");
    }
    text
}

fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}

/// 13000 as `13.0`.
fn version(version: u32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// The GPUs and the processor as JSON.
fn json_of(found: &Result<Vec<DeviceEntry>, String>) -> Json {
    let (name, threads) = processor();
    let devices = found.as_ref().map_or(&[][..], Vec::as_slice);
    json!({
        "devices": devices.iter().map(entry_json).collect::<Vec<_>>(),
        "absent": found.as_ref().err(),
        "cuda_visible_devices": visible_variable(),
        "cpu": { "name": name, "threads": threads },
    })
}

/// A GPU as JSON.
fn entry_json(device: &DeviceEntry) -> Json {
    let link = |link: Option<PcieLink>| {
        link.map(
            |link| json!({ "gigatransfers_per_s": link.gigatransfers_per_s, "lanes": link.lanes }),
        )
    };
    json!({
        "ordinal": device.ordinal,
        "name": device.name,
        "uuid": device.uuid,
        "pci_bus_id": device.pci_bus_id,
        "compute_capability": device.compute_capability,
        "memory_free_bytes": device.memory_free_bytes.as_ref().ok(),
        "problem": device.memory_free_bytes.as_ref().err().map(Error::to_string),
        "memory_bytes": device.memory_bytes,
        "multiprocessors": device.multiprocessors,
        "block_shared_bytes": device.block_shared_bytes,
        "block_shared_bytes_max": device.block_shared_bytes_max,
        "multiprocessor_shared_bytes": device.multiprocessor_shared_bytes,
        "copy_engines": device.copy_engines,
        "link": link(device.link),
        "link_max": link(device.link_max),
        "driver_version": device.driver_version,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tapeloop::error::ErrorKind;

    #[test]
    fn a_device_is_printed_as_a_table() {
        let expected = "\
1  NVIDIA H200
   compute capability 9.0
   memory             139.5 GiB free of 140.0 GiB
   multiprocessors    132
   shared memory      48 KiB per block, 227 by opt-in, 228 per multiprocessor
   copy engines       3
   PCIe link          2.5 GT/s x16, at most unknown
   PCI id             0000:1A:00.0
   UUID               GPU-5cf1a000-0000-0000-0000-000000000001
   driver             CUDA 13.0
";
        assert_eq!(entry_text(&DeviceEntry::made_up(Ok(279 << 29))), expected);
    }

    #[test]
    fn a_device_that_cannot_be_used_is_listed_with_the_reason() {
        let held = DeviceEntry::made_up(Err(Error::new(ErrorKind::Unavailable, "it is held")));
        assert!(entry_text(&held).contains("cannot be used (it is held), 140.0 GiB"));
        let json = entry_json(&held);
        assert_eq!(json["memory_free_bytes"], Json::Null);
        assert_eq!(json["problem"], "it is held");
        assert_eq!(json["link"]["gigatransfers_per_s"], 2.5);
        assert_eq!(json["link_max"], Json::Null);
    }
}
