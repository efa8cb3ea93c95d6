//! Structures that no bucket of the engine holds. Each runs alone, on the CPU, in a bucket of its
//! own size that is freed afterwards. The values are those that the engine would compute, so the
//! tables do not depend on the size of its buckets.

use super::plan::Plan;
use std::sync::Arc;
use tapeloop::backend::{Backend, Choice, select};
use tapeloop::error::{Error, ErrorKind, Result};
use tapeloop::features::{Features, Input};
use tapeloop::pipeline::{Delivery, Engine, EngineConfig, MemoryPlan, Pipeline};
use tapeloop::replay::{Mode, Policy};
use tapeloop::workload::{Completion, Extent, Workload};

/// Computes `completion` if the engine rejected its structure for its size. Returns whether the
/// structure ran alone.
pub fn complete(plan: &Plan, completion: Completion<Features>) -> (Completion<Features>, bool) {
    let Completion { item, result } = completion;
    let is_too_large = matches!(&result, Err(error) if error.kind() == ErrorKind::Capacity);
    if !is_too_large || item.structure.is_err() {
        return (Completion { item, result }, false);
    }
    if let Some(kernel) = plan.config.features.own_kernels.first() {
        // It has no CPU twin.
        let result = result.map_err(|error| {
            let message = format!(
                "{}, and {} runs on the GPU alone",
                error.message(),
                kernel.name()
            );
            Error::new(ErrorKind::Capacity, message).fix("raise batch.residues_max")
        });
        return (Completion { item, result }, false);
    }
    let mut pipeline = match pipeline_for(plan, &item) {
        Ok(pipeline) => pipeline,
        Err(error) => {
            let result = Err(error);
            return (Completion { item, result }, false);
        }
    };
    let submitted = pipeline.submit(item);
    submitted.expect("the slot is free");
    let Delivery { item, result, .. } = pipeline.wait().expect("an item is in flight");
    (Completion { item, result }, true)
}

/// So many times the usual number of contacts and hydrogen bonds fit in the bucket.
const PAIR_ROOM_FACTOR: u32 = 16;

/// A pipeline on the CPU whose only bucket holds the item and little more.
///
/// # Errors
/// [`ErrorKind::Capacity`] if the structure is over the limit, or there is not enough memory.
fn pipeline_for(plan: &Plan, item: &Input) -> Result<Pipeline<Features>> {
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
    let backend = cpu(plan)?;
    // A recording has no axis of length 0. The structure may be here because its pairs have outgrown
    // the largest bucket.
    let capacity = extent.max(Features::capacity(1));
    let config = config(Features::with_pair_room(capacity, PAIR_ROOM_FACTOR));
    Pipeline::new(workload, &[backend], Arc::clone(&plan.pool), &config)
}

/// The memory for a structure as large as the limit.
///
/// # Errors
/// The features' settings are wrong.
pub fn memory_max(plan: &Plan) -> Result<MemoryPlan> {
    let workload = Features::new(plan.config.features.clone())?;
    let capacity = Features::capacity(plan.config.batch.structure_residues_max);
    Engine::memory_plan(&workload, cpu(plan)?.device(), 1, &config(capacity))
}

fn cpu(plan: &Plan) -> Result<Arc<dyn Backend>> {
    Ok(select(Choice::Cpu, &plan.pool)?.backend)
}

/// A graph would be replayed once, so there is none.
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
