//! Allocates what an engine needs, or less if memory runs out.

use super::config::EngineConfig;
use super::counters::EngineCounters;
use super::ending::Ending;
use super::exclusive::ExclusiveUse;
use super::leases::LeaseLimits;
use super::meter::Meter;
use super::plan::MemoryPlan;
use super::pool::SparePool;
use super::recorded::{RecordedWorkload, record_buckets, record_config};
use super::recover::{is_of_worker, restart_if_lost};
use super::reentrancy::EngineId;
use super::resident::{BufferCopies, Replaceable, ResidentContents};
use super::slot::{Free, Slot, SlotCount, open_slots};
use super::stages::Shared;
use super::sync::Mutex;
use super::timeline::Sampler;
use crate::backend::Backend;
use crate::error::{Error, ErrorKind, Result};
use crate::replay::Buckets;
use crate::workload::{Extent, Workload};
use rayon::ThreadPool;
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use tracing::debug_span;

/// A reduction that an engine made because memory ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shrunk {
    /// Slots of each device.
    Slots {
        /// The number that did not fit.
        from: usize,
        /// The number that was tried next.
        to: usize,
    },
    /// The largest bucket. Items beyond it are rejected.
    LargestBucket {
        /// The bucket that did not fit.
        from: Extent,
        /// The bucket that was tried next.
        to: Extent,
    },
}

impl fmt::Display for Shrunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shrunk::Slots { from, to } => write!(f, "{from} to {to} slots"),
            Shrunk::LargestBucket { from, to } => write!(f, "largest bucket {from} to {to}"),
        }
    }
}

/// The parts of an engine.
pub(super) struct EngineParts<W: Workload> {
    pub(super) shared: Shared<W>,
    pub(super) slots: Vec<Slot<Free>>,
    pub(super) memory: MemoryPlan,
    pub(super) shrunk: Vec<Shrunk>,
}

/// The slots and buckets that are tried.
struct Size {
    slots: usize,
    ladder: Vec<Extent>,
}

/// Records the workload, allocates all memory and makes all slots ready. After
/// [`ErrorKind::OutOfMemory`] it tries again with less, unless there is a budget.
///
/// # Errors
/// Those of [`Engine::new`](super::Engine::new), but of the threads.
pub(super) fn build<W: Workload>(
    workload: W,
    backends: &[Arc<dyn Backend>],
    pool: Arc<ThreadPool>,
    config: &EngineConfig,
) -> Result<EngineParts<W>> {
    let _span = debug_span!("build", slots = config.slots).entered();
    config.check()?;
    let Some(first) = backends.first() else {
        return Err(Error::usage("the engine has no backend"));
    };
    let device = first.device();
    if backends
        .iter()
        .any(|other| other.device().backend != device.backend)
    {
        return Err(Error::usage("the backends are of different kinds")
            .fix("build an engine for each kind"));
    }
    // Before a device is restarted, which would lose the batches of another engine.
    let exclusive = backends
        .iter()
        .map(|backend| ExclusiveUse::acquire(&**backend));
    let exclusive: Vec<_> = exclusive.collect::<Result<_>>()?;
    let counters = EngineCounters::default();
    // An earlier engine may have given a device up.
    restart_lost(backends, &counters, config)?;
    let (mut buckets, mut handles) = record_config(&workload, config, device)?;
    let recording = &buckets.largest().recording;
    if let Some(input) = recording.device_input()
        && backends.len() > 1
    {
        let message = format!(
            "input buffer {} is filled from the memory of one device, and the engine has {}",
            input.name,
            backends.len()
        );
        return Err(Error::config(message).fix("make an engine for each device"));
    }
    let capacities = buckets.as_slice().iter().map(|bucket| bucket.capacity);
    let mut size = Size {
        slots: config.slots,
        ladder: capacities.collect(),
    };
    let mut shrunk = Vec::new();
    let engine = EngineId::new();
    loop {
        let recorded = Arc::new(buckets);
        let devices = backends.len();
        let memory = MemoryPlan::of_engine(&recorded, size.slots, devices, device, config);
        memory.check_budget(config.memory_bytes_max)?;
        let count = size.count(config.urgent_slots);
        let error = match open(&workload, &handles, backends, &recorded, count, config) {
            Ok((slots, copies)) => {
                let recording = &recorded.largest().recording;
                let replaceable = Replaceable::new(recording, backends, copies);
                let shared = Shared {
                    engine,
                    batch_target: config.batch,
                    batch_max: recorded.largest().capacity,
                    batch_wait: config.batch_wait,
                    program: RecordedWorkload::new(workload, recorded, handles, device, engine),
                    pool,
                    workers: None,
                    counters,
                    meter: Meter::new(slots.len(), backends.len()),
                    batches_given: AtomicU64::new(0),
                    sampler: config.timeline.map(|timeline| {
                        Sampler::new(&timeline, slots.len(), device_names(backends))
                    }),
                    batches: SparePool::default(),
                    outputs: SparePool::default(),
                    lease_limits: LeaseLimits::new(&slots, backends.len()),
                    devices: backends.iter().map(|_| OnceLock::new()).collect(),
                    losing: Mutex::new(()),
                    replaceable,
                    ended: Ending::new(),
                    _exclusive: exclusive,
                    is_supervised: backends.iter().all(|backend| backend.is_supervised()),
                    restarts_max: config.restarts_max,
                };
                return Ok(EngineParts {
                    shared,
                    slots,
                    memory,
                    shrunk,
                });
            }
            Err(error) => error,
        };
        // A kernel may compile for minutes, in which another process can kill the worker.
        if is_of_worker(&error) && restart_lost(backends, &counters, config)? {
            tracing::warn!(%error, "a device was lost before its slots were open; they are opened again");
            (buckets, handles) = record_buckets(&workload, &size.ladder, device)?;
            continue;
        }
        let next = match (error.kind(), config.memory_bytes_max) {
            (ErrorKind::OutOfMemory, None) => size.shrink(config.batch),
            (ErrorKind::OutOfMemory, Some(_)) => None,
            _ => return Err(error),
        };
        let Some(step) = next else {
            return Err(too_little_memory_error(error, &memory, config));
        };
        tracing::warn!(%error, %step, "memory ran out; the engine tries with less");
        shrunk.push(step);
        (buckets, handles) = record_buckets(&workload, &size.ladder, device)?;
    }
}

/// Restarts the supervised devices that are lost. Returns whether there was one.
///
/// # Errors
/// The errors of [`restart_if_lost`].
fn restart_lost(
    backends: &[Arc<dyn Backend>],
    counters: &EngineCounters,
    config: &EngineConfig,
) -> Result<bool> {
    let mut any = false;
    for backend in backends.iter().filter(|backend| backend.is_supervised()) {
        any |= restart_if_lost(&**backend, counters, config.restarts_max)?;
    }
    Ok(any)
}

/// Allocates the resident buffers of each device, fills them by the workload, and opens all slots.
/// Returns the slots, by device, and both copies of each replaceable buffer.
fn open<W: Workload>(
    workload: &W,
    handles: &W::Buffers,
    backends: &[Arc<dyn Backend>],
    buckets: &Arc<Buckets>,
    count: SlotCount,
    config: &EngineConfig,
) -> Result<(Vec<Slot<Free>>, BufferCopies)> {
    let all = count.all * backends.len();
    let is_supervised = backends.iter().any(|backend| backend.is_supervised());
    let recording = &buckets.largest().recording;
    let mut contents = ResidentContents::new(recording, all, is_supervised)?;
    if let Some(contents) = &mut contents {
        contents.fill(workload, handles)?;
    }
    let (mut slots, mut copies) = (Vec::with_capacity(all), Vec::new());
    for (device, backend) in backends.iter().enumerate() {
        let buckets = match &contents {
            None => Arc::clone(buckets),
            Some(contents) => {
                Arc::new(contents.upload(&**backend, (**buckets).clone(), &mut copies)?)
            }
        };
        open_slots(backend, &buckets, count, &config.policy, device, &mut slots)?;
    }
    Ok((slots, copies))
}

/// The names of the devices, for the timeline.
fn device_names(backends: &[Arc<dyn Backend>]) -> Vec<String> {
    let names = backends.iter().map(|backend| backend.device().name.clone());
    names.collect()
}

/// The error of memory that does not suffice for the smallest plan, which it lists.
fn too_little_memory_error(error: Error, memory: &MemoryPlan, config: &EngineConfig) -> Error {
    let least = match config.memory_bytes_max {
        None => "the least that the engine takes",
        Some(_) => "the plan that memory_bytes_max allows, which is not made smaller,",
    };
    let message = format!("{error}\n{least} is\n{memory}");
    let mut too_little = Error::new(ErrorKind::OutOfMemory, message);
    if let Some(code) = error.code() {
        too_little = too_little.with_code(code);
    }
    too_little.fix("free memory on the device, or take smaller batches")
}

impl Size {
    /// The slots of a device. At least one takes batches that are not urgent.
    fn count(&self, urgent: usize) -> SlotCount {
        SlotCount {
            all: self.slots,
            urgent: urgent.min(self.slots - 1),
        }
    }

    /// Takes away a slot, or half of the largest bucket; `None` at one slot and a bucket that holds
    /// no more than a batch. Slots go first: fewer cost overlap, and a smaller bucket rejects items.
    fn shrink(&mut self, batch: Extent) -> Option<Shrunk> {
        if self.slots > 1 {
            self.slots -= 1;
            let (from, to) = (self.slots + 1, self.slots);
            return Some(Shrunk::Slots { from, to });
        }
        let from = self.ladder.pop()?;
        let to = from.half().max(batch);
        self.ladder
            .retain(|smaller| smaller.fits(to) && *smaller != to);
        self.ladder.push(to);
        (to != from).then_some(Shrunk::LargestBucket { from, to })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_go_first_then_the_largest_bucket_down_to_a_batch() {
        let extent = |length: u32| Extent::from([length, 3]);
        let mut size = Size {
            slots: 3,
            ladder: [10, 100, 450].map(extent).to_vec(),
        };
        let urgent = |size: &Size| size.count(2).urgent;
        assert_eq!(urgent(&size), 2);
        let mut steps = Vec::new();
        while let Some(step) = size.shrink(extent(100)) {
            steps.push(step.to_string());
        }
        let expected = [
            "3 to 2 slots",
            "2 to 1 slots",
            "largest bucket [450, 3] to [225, 3]",
            "largest bucket [225, 3] to [112, 3]",
            "largest bucket [112, 3] to [100, 3]",
        ];
        assert_eq!(steps, expected);
        assert_eq!(urgent(&size), 0, "the last slot takes all batches");
        assert_eq!(size.ladder, [10, 100].map(extent));
    }
}
