//! Drawings of what an engine would replay.

use super::config::EngineConfig;
use super::recorded::record_config;
use super::resident::ResidentContents;
use crate::backend::{Backend, DeviceSlot, Priority};
use crate::error::{Error, Result};
use crate::replay::{Executor, Policy};
use crate::workload::Workload;
use std::sync::Arc;

/// Draws what a bucket of a workload replays on a device, in Graphviz's DOT language. `bucket` is
/// an index into the buckets; `None` takes the bucket of an ordinary batch. Allocates the memory of
/// one slot. See [`Executor::dot`].
///
/// # Errors
/// - [`ErrorKind::Config`](crate::ErrorKind::Config) for a configuration that is not valid.
/// - [`ErrorKind::Usage`](crate::ErrorKind::Usage) for a recording that is not valid, or a bucket
///   that does not exist.
/// - [`ErrorKind::Kernel`](crate::ErrorKind::Kernel) for a kernel that cannot be loaded.
/// - [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if memory runs out.
pub fn dot<W: Workload>(
    workload: &W,
    backend: &Arc<dyn Backend>,
    config: &EngineConfig,
    bucket: Option<usize>,
) -> Result<String> {
    draw_bucket(workload, backend, config, bucket, Executor::dot_of_size)
}

/// Draws the same as an SVG file of page width, by stages. See [`Executor::svg`].
///
/// # Errors
/// The errors of [`dot`].
pub fn graph_svg<W: Workload>(
    workload: &W,
    backend: &Arc<dyn Backend>,
    config: &EngineConfig,
    bucket: Option<usize>,
) -> Result<String> {
    draw_bucket(workload, backend, config, bucket, Executor::svg_of_size)
}

/// Records the workload, opens one slot, makes the bucket ready in it without a warm-up of the
/// others, and draws it. [`ErrorKind::Usage`](crate::ErrorKind::Usage) if there is no such bucket.
fn draw_bucket<W: Workload>(
    workload: &W,
    backend: &Arc<dyn Backend>,
    config: &EngineConfig,
    bucket: Option<usize>,
    draw: fn(&mut Executor, &mut dyn DeviceSlot, usize, &str) -> Result<String>,
) -> Result<String> {
    config.check()?;
    let (mut buckets, _) = record_config(workload, config, backend.device())?;
    let ordinary = || {
        buckets
            .find(config.batch)
            .expect("`EngineConfig::check` checks it")
    };
    let bucket = bucket.unwrap_or_else(ordinary);
    let count = buckets.as_slice().len();
    if bucket >= count {
        let message = format!("there is no bucket {bucket}");
        return Err(Error::usage(message).fix(format!("give 0 to {}", count - 1)));
    }
    let lengths = buckets.as_slice()[bucket].capacity;
    let axes = workload.axes().iter().zip(lengths.as_slice());
    let size: Vec<String> = axes
        .map(|(axis, length)| format!("{length} {}", axis.replace('_', " ")))
        .collect();
    // Zeros: what resident buffers hold is not drawn.
    let recording = &buckets.largest().recording;
    if let Some(zeros) = ResidentContents::new(recording, 1, backend.is_supervised())? {
        buckets = zeros.upload(&**backend, buckets, &mut Vec::new())?;
    }
    let policy = Policy {
        warm_up: false,
        ..config.policy
    };
    let buffers = buckets.largest().recording.buffers();
    let mut device_slots = backend.open_slots(buffers, 1, Priority::Normal)?;
    let device_slot = &mut *device_slots[0];
    let mut executor = Executor::of_any(backend, device_slot, &Arc::new(buckets), &policy)?;
    draw(&mut executor, device_slot, bucket, &size.join(", "))
}
