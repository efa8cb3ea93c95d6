//! The memory that an engine will allocate. Sums saturate: one that overflows is over any budget.

use super::config::EngineConfig;
use crate::backend::Layout;
use crate::error::{Error, ErrorKind, Result};
use crate::record::{BufferDecl, DeviceInfo, Recording, View};
use crate::replay::{Buckets, Mode};
use std::fmt;

/// The memory of one buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryLine {
    /// The buffer's name. The last line is the padding that aligns buffers.
    pub name: String,
    /// Device memory in one slot, in bytes; on the CPU backend, host memory.
    pub slot_device_bytes: u64,
    /// Pinned memory in one slot, in bytes; 0 on the CPU backend.
    pub slot_host_bytes: u64,
}

/// The memory of all slots, exact to the byte, and about what the driver takes for their graphs and
/// streams.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryPlan {
    /// A line for each buffer of a slot, then one for the alignment.
    pub lines: Vec<MemoryLine>,
    /// Slots of all devices.
    pub slots: usize,
    /// Whether host and device share their memory, as on the CPU backend.
    pub shared: bool,
    /// Resident buffers of one device, each with its name and size in bytes: of both copies if it can be
    /// replaced.
    pub resident: Vec<(String, u64)>,
    /// Devices, each with its own copy of the resident buffers.
    pub devices: usize,
    /// Device memory that the driver of CUDA takes for the graphs and streams of all slots, in bytes; 0 on
    /// other devices. It is as measured on an H200 (driver 580), and as if every bucket that may be ready were.
    pub driver_bytes: u64,
}

/// Bytes of a graph without kernels, and more for each kernel; a graph takes at least
/// [`GRAPH_BYTES_MIN`]. Fitted to 48 graphs of 20, 50, 100 and 300 kernels on an H200
/// (`DECISIONS.md#measured`, as are the next two).
const GRAPH_BYTES: u64 = 70 << 10;
const NODE_BYTES: u64 = 2_765;
const GRAPH_BYTES_MIN: u64 = 128 << 10;
/// Bytes of a stream.
const STREAM_BYTES: u64 = 512 << 10;
/// The driver takes memory in steps of this many bytes.
const DRIVER_STEP_BYTES: u64 = 2 << 20;
/// Kernels that do the small copies and memsets of a graph. One before the other kernels and one
/// after them.
const COPY_KERNELS: u64 = 2;

/// Device memory that the driver takes on each device for `slots` slots, with graphs of `recording` for
/// `buckets` buckets each.
fn driver_bytes(recording: &Recording, buckets: usize, slots: u64, config: &EngineConfig) -> u64 {
    let policy = &config.policy;
    let graphs = match policy.mode {
        Mode::Stream => 0,
        Mode::Graph | Mode::Resident => buckets.min(policy.ready_max) as u64,
    };
    // A batch that the timeline samples runs in a graph with timestamps.
    let graphs = graphs * (1 + u64::from(config.timeline.is_some()));
    let kernels = recording.launches().count() as u64 + COPY_KERNELS;
    let graph = (GRAPH_BYTES + NODE_BYTES * kernels).max(GRAPH_BYTES_MIN);
    let slot = graphs.saturating_mul(graph).saturating_add(STREAM_BYTES);
    let all = slots.saturating_mul(slot);
    all.div_ceil(DRIVER_STEP_BYTES)
        .saturating_mul(DRIVER_STEP_BYTES)
}

impl MemoryPlan {
    /// What an engine allocates for `slots` slots on each of `devices` devices such as `device`, and what
    /// the driver takes for graphs of these buckets.
    pub(crate) fn of_engine(
        buckets: &Buckets,
        slots: usize,
        devices: usize,
        device: &DeviceInfo,
        config: &EngineConfig,
    ) -> Self {
        let recording = &buckets.largest().recording;
        let (buffers, shared) = (recording.buffers(), device.shares_host_memory);
        let all = slots.saturating_mul(devices);
        let mut plan = MemoryPlan::new(buffers, all, devices, shared);
        if device.compute_capability.is_some() {
            let count = buckets.as_slice().len();
            let each = driver_bytes(recording, count, slots as u64, config);
            plan.driver_bytes = each.saturating_mul(devices as u64);
        }
        plan
    }

    /// What [`Backend::open_slots`](crate::backend::Backend::open_slots) allocates for `slots`
    /// slots of all devices with these buffers, and the resident buffers of each device.
    fn new(buffers: &[BufferDecl], slots: usize, devices: usize, shared: bool) -> Self {
        let bytes_of = |decl: &BufferDecl| {
            let element_bytes = decl.dtype.size_bytes() as u64;
            (decl.len as u64).saturating_mul(element_bytes)
        };
        let line = |decl: &BufferDecl| {
            let bytes = bytes_of(decl);
            let on_host = decl.view.is_on_host() && !shared;
            MemoryLine {
                name: decl.name.clone(),
                slot_device_bytes: bytes,
                slot_host_bytes: if on_host { bytes } else { 0 },
            }
        };
        let is_resident = |decl: &&BufferDecl| decl.view == View::Resident;
        let resident = buffers.iter().filter(is_resident);
        let mut plan = MemoryPlan {
            lines: buffers
                .iter()
                .filter(|decl| !is_resident(decl))
                .map(line)
                .collect(),
            slots,
            shared,
            resident: resident
                .map(|decl| {
                    let copies = 1 + u64::from(decl.is_replaceable);
                    (decl.name.clone(), bytes_of(decl).saturating_mul(copies))
                })
                .collect(),
            devices,
            driver_bytes: 0,
        };
        // Buffers without a layout exceed the address space.
        let (device, host) = Layout::new(buffers).map_or((u64::MAX, u64::MAX), |layout| {
            (layout.device_bytes as u64, layout.host_bytes as u64)
        });
        let host = if shared { 0 } else { host };
        // Result buffers are allocations of their own: lines have them, and the layout does not.
        let results = buffers
            .iter()
            .filter(|decl| decl.view == View::DeviceResult);
        let results = results.map(bytes_of).fold(0, u64::saturating_add);
        plan.lines.push(MemoryLine {
            name: "alignment".to_owned(),
            slot_device_bytes: device
                .saturating_add(results)
                .saturating_sub(plan.slot_sum(DEVICE)),
            slot_host_bytes: host.saturating_sub(plan.slot_sum(HOST)),
        });
        plan
    }

    /// Device memory of all slots and resident buffers, in bytes; on the CPU backend, host memory.
    pub fn device_bytes(&self) -> u64 {
        let resident = self.resident.iter().map(|(_, bytes)| *bytes);
        let resident = resident.fold(0, u64::saturating_add);
        let slots = self.slot_sum(DEVICE).saturating_mul(self.slots as u64);
        slots.saturating_add(resident.saturating_mul(self.devices as u64))
    }

    /// Pinned host memory of all slots, in bytes; 0 on the CPU backend.
    pub fn host_bytes(&self) -> u64 {
        self.slot_sum(HOST).saturating_mul(self.slots as u64)
    }

    /// All memory of both kinds and of the driver, in bytes: what counts against
    /// [`EngineConfig::memory_bytes_max`](crate::EngineConfig::memory_bytes_max).
    pub fn bytes(&self) -> u64 {
        let memory = self.device_bytes().saturating_add(self.host_bytes());
        memory.saturating_add(self.driver_bytes)
    }

    fn slot_sum(&self, side: fn(&MemoryLine) -> u64) -> u64 {
        self.lines.iter().map(side).fold(0, u64::saturating_add)
    }

    /// Refuses a plan that is over the budget.
    ///
    /// # Errors
    /// [`ErrorKind::Capacity`], with the plan.
    pub(crate) fn check_budget(&self, budget: Option<u64>) -> Result<()> {
        match budget {
            Some(max) if self.bytes() > max => Err(Error::new(
                ErrorKind::Capacity,
                format!("the memory plan exceeds the budget of {max} bytes\n{self}"),
            )
            .fix("raise memory_bytes_max, or use fewer slots or smaller batches")),
            _ => Ok(()),
        }
    }
}

const DEVICE: fn(&MemoryLine) -> u64 = |line| line.slot_device_bytes;
const HOST: fn(&MemoryLine) -> u64 = |line| line.slot_host_bytes;

impl fmt::Display for MemoryPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (slots, device, host) = (self.slots, self.device_bytes(), self.host_bytes());
        for line in &self.lines {
            let (name, device, host) = (&line.name, line.slot_device_bytes, line.slot_host_bytes);
            if self.shared {
                writeln!(f, "  {name:<24} {device:>14} B per slot")?
            } else {
                writeln!(
                    f,
                    "  {name:<24} {device:>14} B per slot on the device {host:>14} B pinned"
                )?
            }
        }
        let place = match self.devices {
            1 => "on the device".to_owned(),
            devices => format!("on each of {devices} devices"),
        };
        for (name, bytes) in &self.resident {
            writeln!(f, "  {name:<24} {bytes:>14} B {place}")?;
        }
        if self.driver_bytes > 0 {
            let (name, bytes) = ("graphs and streams", self.driver_bytes);
            writeln!(f, "  {name:<24} {bytes:>14} B on the device, about")?
        }
        if self.shared {
            write!(f, "  {slots} slots: {device} B of memory")
        } else {
            write!(
                f,
                "  {slots} slots: {device} B on the device, {host} B pinned"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{DType, Unit};

    fn decl(name: &str, len: usize, view: View) -> BufferDecl {
        BufferDecl {
            name: name.to_owned(),
            dtype: DType::F32,
            unit: Unit::PerBatch { elements: len },
            view,
            len,
            is_replaceable: false,
        }
    }

    fn buffers() -> [BufferDecl; 3] {
        [
            decl("x", 1, View::Upload),
            decl("work", 65, View::Device),
            decl("y", 128, View::Download),
        ]
    }

    #[test]
    fn the_sum_is_the_layout_of_every_slot() {
        let plan = MemoryPlan::new(&buffers(), 3, 1, false);
        let layout = Layout::new(&buffers()).unwrap();
        assert_eq!(plan.device_bytes(), 3 * layout.device_bytes as u64);
        assert_eq!(plan.host_bytes(), 3 * layout.host_bytes as u64);
        let lines: Vec<_> = plan
            .lines
            .iter()
            .map(|line| (&*line.name, line.slot_device_bytes, line.slot_host_bytes))
            .collect();
        let expected = [
            ("x", 4, 4),
            ("work", 260, 0),
            ("y", 512, 512),
            ("alignment", 504, 252),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn resident_buffers_are_counted_once_a_device() {
        let mut all = buffers().to_vec();
        let without = MemoryPlan::new(&all, 6, 2, false);
        all.insert(1, decl("weights", 1000, View::Resident));
        let plan = MemoryPlan::new(&all, 6, 2, false);
        assert_eq!(plan.device_bytes(), without.device_bytes() + 2 * 4000);
        assert_eq!(plan.host_bytes(), without.host_bytes());
        assert!(plan.to_string().contains("4000 B on each of 2 devices"));
        let plan = MemoryPlan::new(&all, 6, 1, false);
        assert!(plan.to_string().contains("4000 B on the device\n"));
    }

    #[test]
    fn one_memory_is_counted_once() {
        let plan = MemoryPlan::new(&buffers(), 3, 1, true);
        assert_eq!((plan.device_bytes(), plan.host_bytes()), (3 * 1280, 0));
        assert!(plan.to_string().ends_with("3 slots: 3840 B of memory"));
    }

    #[test]
    fn a_sum_beyond_the_address_space_is_beyond_every_budget() {
        let huge = usize::MAX / 8;
        let buffers = [decl("a", huge, View::Device), decl("b", huge, View::Device)];
        let plan = MemoryPlan::new(&buffers, 2, 1, false);
        assert_eq!(plan.device_bytes(), u64::MAX);
        assert!(plan.check_budget(Some(1 << 60)).is_err());
        assert!(plan.check_budget(None).is_ok());
    }
}
