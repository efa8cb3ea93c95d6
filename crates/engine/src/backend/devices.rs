//! The description of a visible GPU, and how a caller names one or several.

use super::DeviceInfo;
use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// A visible GPU. CUDA_VISIBLE_DEVICES hides GPUs and reorders them before the driver numbers
/// them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeviceEntry {
    /// The number among the visible GPUs, from 0.
    pub ordinal: usize,
    /// The product name.
    pub name: String,
    /// `GPU-` and 36 characters, as `nvidia-smi -L` prints it; `MIG-` for a part of a GPU.
    pub uuid: String,
    /// Domain, bus, device and function, as in `0000:1a:00.0`.
    pub pci_bus_id: String,
    /// Major and minor compute capability.
    pub compute_capability: (u32, u32),
    /// Free memory in bytes; an error if no context could be made on the device.
    pub memory_free_bytes: Result<u64>,
    /// Total memory in bytes.
    pub memory_bytes: u64,
    /// Number of multiprocessors.
    pub multiprocessors: u32,
    /// Shared memory of a block in bytes, without opting in to more.
    pub block_shared_bytes: u32,
    /// Shared memory in bytes that a block can opt in to.
    pub block_shared_bytes_max: u32,
    /// Shared memory of all blocks on a multiprocessor in bytes.
    pub multiprocessor_shared_bytes: u32,
    /// Number of copies that can run at the same time as kernels.
    pub copy_engines: u32,
    /// The current PCIe link, which is slower while the device is idle; `None` if unknown.
    pub link: Option<PcieLink>,
    /// The fastest link of the device in its PCIe slot; `None` if unknown.
    pub link_max: Option<PcieLink>,
    /// The driver's version as CUDA counts it (13000 is 13.0).
    pub driver_version: u32,
}

impl DeviceEntry {
    /// A made-up H200, for tests of what shows entries.
    #[doc(hidden)]
    pub fn made_up(memory_free_bytes: Result<u64>) -> Self {
        DeviceEntry {
            ordinal: 1,
            name: "NVIDIA H200".to_owned(),
            uuid: "GPU-5cf1a000-0000-0000-0000-000000000001".to_owned(),
            pci_bus_id: "0000:1A:00.0".to_owned(),
            compute_capability: (9, 0),
            memory_free_bytes,
            memory_bytes: 140 << 30,
            multiprocessors: 132,
            block_shared_bytes: 48 << 10,
            block_shared_bytes_max: 227 << 10,
            multiprocessor_shared_bytes: 228 << 10,
            copy_engines: 3,
            link: Some(PcieLink {
                gigatransfers_per_s: 2.5,
                lanes: 16,
            }),
            link_max: None,
            driver_version: 13_000,
        }
    }
}

/// A PCIe connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PcieLink {
    /// Transfers of one lane in 10^9 per second.
    pub gigatransfers_per_s: f64,
    /// Number of lanes.
    pub lanes: u32,
}

impl fmt::Display for PcieLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} GT/s x{}", self.gigatransfers_per_s, self.lanes)
    }
}

/// Names one of the visible GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
pub enum DeviceChoice {
    /// The GPU with this number, from 0.
    Ordinal(usize),
    /// The GPU whose UUID begins with this text, such as `GPU-5cf1`; case is ignored.
    Uuid(String),
    /// The GPU with the most free memory; the first of equals.
    MostFree,
}

const MOST_FREE: &str = "most_free";

impl Default for DeviceChoice {
    fn default() -> Self {
        DeviceChoice::Ordinal(0)
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceChoice::Ordinal(ordinal) => write!(f, "{ordinal}"),
            DeviceChoice::Uuid(uuid) => f.write_str(uuid),
            DeviceChoice::MostFree => f.write_str(MOST_FREE),
        }
    }
}

impl FromStr for DeviceChoice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == MOST_FREE {
            return Ok(DeviceChoice::MostFree);
        }
        if uuid_digits(text).is_some_and(|digits| !digits.is_empty()) {
            return Ok(DeviceChoice::Uuid(text.to_owned()));
        }
        text.parse().map(DeviceChoice::Ordinal).map_err(|_| {
            let of_pytorch = match text.split_once(':').unwrap_or((text, "")) {
                ("cpu", _) => "for the CPU set backend = \"cpu\"; ",
                ("cuda", _) => "for a GPU set backend = \"cuda\"; ",
                _ => "",
            };
            Error::config(format!("{text:?} names no device")).fix(format!(
                "{of_pytorch}give a number from 0, a UUID or its beginning (GPU-... or MIG-...), or {MOST_FREE:?}"
            ))
        })
    }
}

/// Names the GPUs that an engine uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceSet {
    /// All visible GPUs, in the driver's order.
    All,
    /// These GPUs, in this order.
    Named(Vec<DeviceChoice>),
}

impl Default for DeviceSet {
    fn default() -> Self {
        DeviceChoice::default().into()
    }
}

impl From<DeviceChoice> for DeviceSet {
    fn from(choice: DeviceChoice) -> Self {
        DeviceSet::Named(vec![choice])
    }
}

/// The names of devices, each once: `NVIDIA H200`, or `2 x NVIDIA H200` for two of that name.
pub fn device_names<'a>(devices: impl IntoIterator<Item = &'a DeviceInfo>) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for DeviceInfo { name, .. } in devices {
        match counts.iter_mut().find(|(known, _)| known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    let names = counts.into_iter().map(|(name, count)| match count {
        1 => name.to_owned(),
        _ => format!("{count} x {name}"),
    });
    names.collect::<Vec<_>>().join(" and ")
}

/// The part of a UUID after `GPU-` or `MIG-`; `None` for a text that begins otherwise.
fn uuid_digits(text: &str) -> Option<&str> {
    let (kind, digits) = text.split_at_checked(4)?;
    let is_kind = |known: &str| kind.eq_ignore_ascii_case(known);
    (is_kind("GPU-") || is_kind("MIG-")).then_some(digits)
}

/// The value of CUDA_VISIBLE_DEVICES.
pub fn visible_variable() -> Option<String> {
    let value = std::env::var_os("CUDA_VISIBLE_DEVICES");
    value.map(|value| value.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn devices_of_one_name_are_counted() {
        use crate::backend::{Backend, cpu::CpuBackend};
        let named = |name: &str| DeviceInfo {
            name: name.to_owned(),
            ..CpuBackend::inline().device().clone()
        };
        let [a, b] = ["A", "B"].map(named);
        assert_eq!(device_names([&a]), "A");
        assert_eq!(device_names([&a, &b, &a]), "2 x A and B");
    }

    #[test]
    fn a_choice_is_read_from_text_and_printed_as_it() {
        for text in ["0", "17", "GPU-5cf1", "mig-7", "most_free"] {
            let choice: DeviceChoice = text.parse().unwrap();
            assert_eq!(choice.to_string(), text);
        }
        for text in [
            "",
            "-1",
            "1.5",
            "GPU-",
            "GPU",
            "5cf1",
            "most free",
            "1,0",
            "é0",
        ] {
            let error = text.parse::<DeviceChoice>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config);
            assert!(error.fix_text().unwrap().contains("most_free"), "{error}");
        }
        assert_eq!(DeviceChoice::default().to_string(), "0");
    }
}
