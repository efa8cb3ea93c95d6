//! What an engine would replay, drawn without starting one.

use super::engine::EngineConfig;
use super::recorded::record_buckets;
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::replay::{Choices, Executor, Policy};
use crate::workload::Workload;
use std::sync::Arc;

/// What a bucket of a workload replays on a device, in Graphviz's DOT; of the bucket
/// that an ordinary batch runs in where none is given. Takes the memory of one slot
/// for it. Mode auto has chosen nothing yet: it is drawn as the graph that it starts
/// from. See [`Executor::dot`].
///
/// # Errors
/// What is wrong with the configuration or the recording, a bucket that is not
/// there, a kernel that cannot be loaded, memory that is not there.
pub fn dot<W: Workload>(
    workload: &W,
    backend: &Arc<dyn Backend>,
    config: &EngineConfig,
    bucket: Option<usize>,
) -> Result<String> {
    config.check()?;
    let (buckets, _) = record_buckets(workload, &config.buckets, backend.device())?;
    let ordinary = || buckets.find(config.batch).expect("checked above");
    let bucket = bucket.unwrap_or_else(ordinary);
    let count = buckets.as_slice().len();
    if bucket >= count {
        let message = format!("there is no bucket {bucket}");
        return Err(Error::usage(message).fix(format!("give 0 to {}", count - 1)));
    }
    let policy = Policy {
        warm_up: false,
        ..config.policy
    };
    let buffers = buckets.largest().recording.buffers();
    let mut device_slots = backend.open_slots(buffers, 1, policy.streams)?;
    let device_slot = &mut *device_slots[0];
    let mut executor = Executor::choosing(
        backend,
        device_slot,
        &Arc::new(buckets),
        &policy,
        &Choices::default(),
    )?;
    executor.dot(device_slot, bucket)
}
