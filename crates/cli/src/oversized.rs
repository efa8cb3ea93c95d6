//! Structures that no bucket of the engine holds. They run alone, in a bucket of their own that the
//! next ones of the same size use again. The values are those that the engine would compute, so the tables do not
//! depend on the size of its buckets.

use super::plan::Plan;
use super::selection;
use std::sync::Arc;
use std::time::Duration;
use tapeloop::backend::{Backend, Choice, select};
use tapeloop::error::{Error, ErrorKind, ErrorScope, Result};
use tapeloop::features::{Features, Input};
use tapeloop::pipeline::{Delivery, Engine, EngineConfig, MemoryPlan, Pipeline, TrySubmitError};
use tapeloop::replay::{Mode, Policy};
use tapeloop::workload::{Completion, Extent, Workload};

/// So many times the usual number of contacts and hydrogen bonds fit in the bucket.
const PAIR_ROOM_FACTOR: u32 = 16;

/// The most memory of buckets that wait for the next structure of their size.
const KEPT_BYTES_MAX: u64 = 1 << 30;

/// Computes structures that the engine rejected for their size.
pub struct Oversized<'a> {
    plan: &'a Plan,
    /// Computes the extents.
    workload: Features,
    /// The run's first device, or a worker process of its own: an engine has its worker to itself.
    /// Selected when it is needed.
    device: Option<Arc<dyn Backend>>,
    /// The latest last.
    kept: Vec<Bucket>,
}

/// A pipeline with one slot and one bucket.
struct Bucket {
    pipeline: Pipeline<Features>,
    capacity: Extent,
}

impl Bucket {
    fn bytes(&self) -> u64 {
        let memory = self.pipeline.memory();
        memory.device_bytes() + memory.host_bytes()
    }
}

impl<'a> Oversized<'a> {
    /// Takes no memory for batches before the first of these structures.
    ///
    /// # Errors
    /// The features' settings are wrong.
    pub fn new(plan: &'a Plan) -> Result<Self> {
        Ok(Oversized {
            plan,
            workload: features(plan)?,
            device: None,
            kept: Vec::new(),
        })
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
        self.kept.push(bucket);
        self.free(0);
        Ok((Completion { item, result }, true))
    }

    /// Frees the oldest kept buckets until there is room for so many bytes.
    fn free(&mut self, bytes: u64) {
        let kept = |all: &[Bucket]| all.iter().map(Bucket::bytes).sum::<u64>();
        while !self.kept.is_empty() && kept(&self.kept).saturating_add(bytes) > KEPT_BYTES_MAX {
            self.kept.remove(0);
        }
    }

    /// A kept bucket for structures of this size, or a new one.
    ///
    /// # Errors
    /// [`ErrorKind::Capacity`] if the structure is over the limit, or there is not enough memory.
    fn bucket_for(&mut self, item: &Input) -> Result<Bucket> {
        let plan = self.plan;
        let structure = item.structure.as_ref().map_err(Clone::clone)?;
        let extent = self.workload.extent(item)?;
        let residues_max = plan.config.batch.structure_residues_max;
        let limit = Features::capacity(residues_max);
        if let Some(axis) = extent.first_excess(limit) {
            let (length, most, name) = (extent[axis], limit[axis], self.workload.axes()[axis]);
            let message = format!(
                "the structure has {length} {name}, over {most}: \
                 limits.structure_residues_max is {residues_max}"
            );
            return Err(Error::new(ErrorKind::Capacity, message)
                .fix("raise limits.structure_residues_max if the file is as it should be"));
        }
        let capacity = capacity_for(extent, structure.residues.len() as u32, residues_max);
        // One of another size has room for more pairs or fewer, and whether a structure is rejected for
        // its pairs must not depend on those before it.
        let same = |bucket: &Bucket| bucket.capacity == capacity;
        if let Some(position) = self.kept.iter().position(same) {
            return Ok(self.kept.remove(position));
        }
        let device = self.device()?;
        let config = bucket_config(plan, capacity, plan.config.policy.deadline);
        let memory = Engine::memory_plan(&self.workload, device.device(), 1, &config)?;
        match device.is_supervised() {
            // A pipeline has its worker process to itself.
            true => self.kept.clear(),
            false => self.free(memory.device_bytes() + memory.host_bytes()),
        }
        let mut made = open(plan, &device, &config);
        if made.as_ref().is_err_and(is_for_room) && !self.kept.is_empty() {
            self.kept.clear();
            made = open(plan, &device, &config);
        }
        let error = match made {
            Err(error) if is_for_room(&error) => error,
            made => return made,
        };
        // A kernel of one's own has no CPU twin.
        if let Some(kernel) = plan.config.features.own_kernels.first() {
            let (message, kernel) = (error.message(), kernel.name());
            let message = format!("{message}, and {kernel} runs on the GPU alone");
            return Err(Error::new(ErrorKind::Capacity, message).fix("raise batch.residues_max"));
        }
        tracing::warn!(%error, "a large structure runs on the CPU");
        // Nothing interrupts the CPU, and a missed deadline would end the run.
        open(plan, &cpu(plan)?, &bucket_config(plan, capacity, None))
    }

    /// The device of these structures; the CPU if a worker process for them cannot be started.
    ///
    /// # Errors
    /// It cannot be, and there are kernels of the user's own, which the CPU cannot run.
    fn device(&mut self) -> Result<Arc<dyn Backend>> {
        let plan = self.plan;
        let device = match &self.device {
            Some(device) => Arc::clone(device),
            None if plan.config.supervise => match worker(plan) {
                Err(error) if plan.config.features.own_kernels.is_empty() => {
                    tracing::warn!(%error, "large structures run on the CPU");
                    cpu(plan)?
                }
                started => started?,
            },
            None => Arc::clone(&plan.backends[0]),
        };
        self.device = Some(Arc::clone(&device));
        Ok(device)
    }
}

/// Starts a worker process that holds the run's first device.
fn worker(plan: &Plan) -> Result<Arc<dyn Backend>> {
    let choice = match plan.first_device().backend {
        "cpu" => Choice::Cpu,
        _ => Choice::Cuda,
    };
    Ok(selection::worker(&plan.config, choice)?.backend)
}

fn cpu(plan: &Plan) -> Result<Arc<dyn Backend>> {
    Ok(select(Choice::Cpu, &plan.pool)?.backend)
}

fn features(plan: &Plan) -> Result<Features> {
    Features::new(plan.config.features.clone())
}

/// The bucket of a structure of this extent. The sizes are powers of two, so that the next structure
/// is likely to fit, and a recording has no axis of length 0.
fn capacity_for(extent: Extent, residues: u32, residues_max: u32) -> Extent {
    let residues = residues.next_power_of_two().min(residues_max);
    let capacity = extent.max(Features::capacity(residues));
    // The structure may be here because its pairs have outgrown the largest bucket.
    Features::with_pair_room(capacity, PAIR_ROOM_FACTOR)
}

fn open(plan: &Plan, device: &Arc<dyn Backend>, config: &EngineConfig) -> Result<Bucket> {
    let (workload, devices) = (features(plan)?, [Arc::clone(device)]);
    let pipeline = Pipeline::new(workload, &devices, Arc::clone(&plan.pool), config)?;
    Ok(Bucket {
        pipeline,
        capacity: config.batch,
    })
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
    let residues_max = plan.config.batch.structure_residues_max;
    let capacity = capacity_for(Extent::default(), residues_max, residues_max);
    let config = bucket_config(plan, capacity, None);
    Engine::memory_plan(&features(plan)?, plan.first_device(), 1, &config)
}

/// A graph would be replayed a few times, so there is none.
fn bucket_config(plan: &Plan, capacity: Extent, deadline: Option<Duration>) -> EngineConfig {
    EngineConfig {
        slots: 1,
        policy: Policy {
            mode: Mode::Stream,
            deadline,
            ..Policy::default()
        },
        restarts_max: plan.config.restarts_max,
        ..EngineConfig::new(capacity)
    }
}
