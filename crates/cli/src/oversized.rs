//! Structures that no bucket of the engine holds. They run alone, in a bucket of their own that the
//! next ones use again. The values are those that the engine would compute, so the tables do not
//! depend on the size of its buckets.

use super::plan::Plan;
use std::sync::Arc;
use tapeloop::backend::{Backend, Choice, select};
use tapeloop::error::{Error, ErrorKind, ErrorScope, Result};
use tapeloop::features::{Features, Input};
use tapeloop::pipeline::{Delivery, Engine, EngineConfig, MemoryPlan, Pipeline, TrySubmitError};
use tapeloop::replay::{Mode, Policy};
use tapeloop::workload::{Completion, Extent, Workload};

/// So many times the usual number of contacts and hydrogen bonds fit in the bucket.
const PAIR_ROOM_FACTOR: u32 = 16;

/// A larger bucket is freed before other structures follow: no run needs one often.
const KEPT_BYTES_MAX: u64 = 1 << 30;

/// Computes structures that the engine rejected for their size.
pub struct Oversized<'a> {
    plan: &'a Plan,
    kept: Option<Bucket>,
}

/// A pipeline with one slot and one bucket.
struct Bucket {
    pipeline: Pipeline<Features>,
    capacity: Extent,
}

impl<'a> Oversized<'a> {
    /// Takes no memory before the first of these structures.
    pub fn new(plan: &'a Plan) -> Self {
        Oversized { plan, kept: None }
    }

    /// Computes `completion` if the engine rejected its structure for its size. Returns whether the
    /// structure ran alone.
    ///
    /// # Errors
    /// The device failed, which is no fault of the structure's file: the run has to end.
    pub fn complete(
        &mut self,
        completion: Completion<Features>,
    ) -> Result<(Completion<Features>, bool)> {
        let Completion { item, result } = completion;
        let is_too_large = matches!(&result, Err(error) if error.kind() == ErrorKind::Capacity);
        if !is_too_large || item.structure.is_err() {
            return Ok((Completion { item, result }, false));
        }
        let mut bucket = match self.bucket_for(&item) {
            Ok(bucket) => bucket,
            Err(error) if error.scope() >= ErrorScope::Device => return Err(error),
            Err(error) => {
                let result = Err(error);
                return Ok((Completion { item, result }, false));
            }
        };
        match bucket.pipeline.submit(item) {
            Ok(_) => {}
            Err(TrySubmitError::Full(_)) => unreachable!("the slot is free"),
            Err(TrySubmitError::Closed(_, error)) => return Err(error),
        }
        let delivery = bucket.pipeline.wait();
        let Delivery { item, result, .. } = delivery.expect("an item is in flight");
        if let Some(error) = bucket.pipeline.ended() {
            return Err(error);
        }
        let memory = bucket.pipeline.memory();
        if memory.device_bytes() + memory.host_bytes() <= KEPT_BYTES_MAX {
            self.kept = Some(bucket);
        }
        Ok((Completion { item, result }, true))
    }

    /// The bucket of the last structure if it holds this one, or a new one.
    ///
    /// # Errors
    /// [`ErrorKind::Capacity`] if the structure is over the limit, or there is not enough memory.
    fn bucket_for(&mut self, item: &Input) -> Result<Bucket> {
        let plan = self.plan;
        let structure = item.structure.as_ref().map_err(Clone::clone)?;
        let workload = Features::new(plan.config.features.clone())?;
        let extent = workload.extent(item)?;
        let residues_max = plan.config.batch.structure_residues_max;
        let limit = Features::capacity(residues_max);
        if let Some(axis) = extent.first_excess(limit) {
            let (length, most, name) = (extent[axis], limit[axis], workload.axes()[axis]);
            let message = format!(
                "the structure has {length} {name}, over {most}: \
                 limits.structure_residues_max is {residues_max}"
            );
            return Err(Error::new(ErrorKind::Capacity, message)
                .fix("raise limits.structure_residues_max if the file is as it should be"));
        }
        // The structure may be here because its pairs have outgrown the largest bucket.
        let with_pairs = |extent| Features::with_pair_room(extent, PAIR_ROOM_FACTOR);
        let kept = self.kept.take();
        let holds = |bucket: &Bucket| with_pairs(extent).first_excess(bucket.capacity).is_none();
        if let Some(bucket) = kept.filter(holds) {
            return Ok(bucket);
        }
        // So that the next one is likely to fit. A recording has no axis of length 0.
        let residues = (structure.residues.len() as u32).next_power_of_two();
        let capacity = with_pairs(extent.max(Features::capacity(residues)));
        let config = config(capacity);
        let on = |backend| -> Result<Bucket> {
            let workload = Features::new(plan.config.features.clone())?;
            let pipeline = Pipeline::new(workload, &[backend], Arc::clone(&plan.pool), &config)?;
            Ok(Bucket { pipeline, capacity })
        };
        let error = match on(device(plan)?) {
            Err(error) if is_for_room(&error) => error,
            bucket => return bucket,
        };
        // A kernel of one's own has no CPU twin.
        if let Some(kernel) = plan.config.features.own_kernels.first() {
            let (message, kernel) = (error.message(), kernel.name());
            let message = format!("{message}, and {kernel} runs on the GPU alone");
            return Err(Error::new(ErrorKind::Capacity, message).fix("raise batch.residues_max"));
        }
        tracing::warn!(%error, "a large structure runs on the CPU");
        on(cpu(plan)?)
    }
}

/// Whether there is not enough memory.
fn is_for_room(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::OutOfMemory | ErrorKind::Capacity)
}

/// The memory for a structure as large as the limit.
///
/// # Errors
/// The features' settings are wrong.
pub fn memory_max(plan: &Plan) -> Result<MemoryPlan> {
    let workload = Features::new(plan.config.features.clone())?;
    let capacity = Features::capacity(plan.config.batch.structure_residues_max);
    Engine::memory_plan(&workload, device(plan)?.device(), 1, &config(capacity))
}

/// The run's first device; the CPU if a worker process holds that one.
fn device(plan: &Plan) -> Result<Arc<dyn Backend>> {
    match plan.config.supervise {
        true => cpu(plan),
        false => Ok(Arc::clone(&plan.backends[0])),
    }
}

fn cpu(plan: &Plan) -> Result<Arc<dyn Backend>> {
    Ok(select(Choice::Cpu, &plan.pool)?.backend)
}

/// A graph would be replayed a few times, so there is none.
fn config(capacity: Extent) -> EngineConfig {
    EngineConfig {
        slots: 1,
        policy: Policy {
            mode: Mode::Stream,
            ..Policy::default()
        },
        ..EngineConfig::new(capacity)
    }
}
