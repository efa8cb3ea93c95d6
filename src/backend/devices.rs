//! The GPUs that a program may use: what each is, and which one is meant.

use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// A GPU that the driver shows, in its order. CUDA_VISIBLE_DEVICES hides GPUs and
/// reorders them before a program counts them.
#[derive(Clone, Debug)]
pub struct DeviceEntry {
    /// Its number among the visible ones, from 0.
    pub ordinal: usize,
    /// The product's name.
    pub name: String,
    /// `GPU-` and 36 characters, as `nvidia-smi -L` prints it; `MIG-` for a part of
    /// a card.
    pub uuid: String,
    /// Domain, bus, device and function, as in `0000:1a:00.0`.
    pub pci_bus_id: String,
    /// Major and minor compute capability.
    pub compute_capability: (u32, u32),
    /// Free memory, or why no context could be made on the device to ask.
    pub memory_free_bytes: Result<u64>,
    /// All of its memory.
    pub memory_bytes: u64,
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Shared memory that a block has without asking.
    pub block_shared_bytes: u32,
    /// Shared memory that a block may opt in to.
    pub block_shared_bytes_max: u32,
    /// Shared memory that the blocks on a multiprocessor have together.
    pub multiprocessor_shared_bytes: u32,
    /// Copies that it can make beside kernels at once.
    pub copy_engines: u32,
    /// The PCIe link as it is now, which is slower while the device is idle; `None`
    /// where the system does not tell.
    pub link: Option<PcieLink>,
    /// The best link that the device and its place can have.
    pub link_max: Option<PcieLink>,
    /// The driver's version as CUDA counts it (13000 is 13.0).
    pub driver_version: u32,
}

/// How a device is connected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PcieLink {
    /// Transfers of one lane, in 10^9 a second.
    pub gigatransfers_per_s: f64,
    /// Lanes.
    pub lanes: u32,
}

impl fmt::Display for PcieLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} GT/s x{}", self.gigatransfers_per_s, self.lanes)
    }
}

/// The visible GPUs in the driver's order, or why there is none: no driver, or no
/// device in its sight. Asking for free memory makes a context on each, for a
/// moment.
///
/// # Errors
/// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) for a driver that is
/// there and cannot be used.
pub fn devices() -> Result<Result<Vec<DeviceEntry>, String>> {
    list()
}

#[cfg(feature = "cuda")]
use super::cuda::list_devices as list;

#[cfg(not(feature = "cuda"))]
fn list() -> Result<Result<Vec<DeviceEntry>, String>> {
    Ok(Err(super::select::WITHOUT_CUDA.to_owned()))
}

/// Which of the visible GPUs is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
pub enum DeviceChoice {
    /// The one with this number, from 0.
    Ordinal(usize),
    /// The one whose UUID is this or begins with it, in any case: `GPU-5cf1`.
    Uuid(String),
    /// The one with most free memory now; of equals the first.
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
            Error::config(format!("{text:?} names no device")).fix(format!(
                "give a number from 0, a UUID or its beginning (GPU-... or MIG-...), or {MOST_FREE:?}"
            ))
        })
    }
}

/// What follows the `GPU-` or `MIG-` of a UUID.
fn uuid_digits(text: &str) -> Option<&str> {
    let (kind, digits) = text.split_at_checked(4)?;
    let is_kind = |known: &str| kind.eq_ignore_ascii_case(known);
    (is_kind("GPU-") || is_kind("MIG-")).then_some(digits)
}

/// CUDA_VISIBLE_DEVICES as the program was started with it.
pub fn visible_variable() -> Option<String> {
    let value = std::env::var_os("CUDA_VISIBLE_DEVICES");
    value.map(|value| value.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

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
