//! Structures that no bucket of a run's engine holds. A thread computes them one by one, each in a bucket of
//! its size that the next ones use again, while the engine goes on with the others. The values are those that
//! the engine would compute, so the tables do not depend on the size of its buckets.

use super::config::{Config, STRUCTURE_RESIDUES_MAX};
use super::plan::Plan;
use super::run_counters::{LossesAlone, RunCounters};
use super::selection;
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use parking_lot::Mutex;
use rayon::ThreadPool;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tapeloop::backend::{Backend, Choice, select};
use tapeloop::error::{Error, ErrorKind, ErrorScope, Result};
use tapeloop::features::{Features, Input};
use tapeloop::pipeline::{Engine, EngineConfig, MemoryPlan, Pipeline, TrySubmitError};
use tapeloop::replay::{Mode, Policy};
use tapeloop::workload::{Completion, Extent, Workload};
use tapeloop_error::internal::{thread, thread_error};

/// The bucket has room for this many times the usual number of contacts, hydrogen bonds and other rows of pairs:
/// the limits of docs/LIMITS.md.
const PAIR_ROOM_FACTOR: u32 = 16;

/// The most memory of buckets that wait for the next structure of their size. Beyond it the oldest
/// are freed, and made again if they are needed.
const KEPT_BYTES_MAX: u64 = 1 << 30;

/// Runs `inputs` through `engine`, and those that it rejects for their size alone. `accept` gets what `make`
/// makes of each result, in the order of the inputs. The engine closes a batch at such a structure, so that
/// few of them are in memory; `accept` gets no later result before the one of that structure, for which this waits.
/// `counters` count the structures that ran alone.
///
/// # Errors
/// The errors of [`Engine::run_mapped`], of `accept`, and of a device that failed in a structure
/// that ran alone.
pub fn run<T: Send + 'static>(
    engine: &mut Engine<Features>,
    plan: &Plan,
    inputs: impl Iterator<Item = Input> + Send,
    counters: &RunCounters,
    make: impl Fn(Completion<Features>) -> T + Clone + Send + Sync + 'static,
    mut accept: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    let mut thread = AloneThread::start(Oversized::new(plan)?, make.clone())?;
    let jobs = Arc::clone(&thread.jobs);
    let map = move |completion: Completion<Features>| {
        if !is_too_large(&completion) {
            return Routed::Made(make(completion));
        }
        let (reply, result) = bounded(1);
        if let Some(jobs) = &*jobs.lock() {
            // If the thread has panicked, there is no reply.
            let _ = jobs.send(Job { completion, reply });
        }
        Routed::Alone(result)
    };
    let streamed = engine.run_mapped(inputs, map, |routed| {
        let (made, ran) = match routed {
            Routed::Made(made) => (made, false),
            Routed::Alone(result) => {
                let text = "the thread of large structures ended";
                let ended = |_| Error::new(ErrorKind::Closed, text);
                result.recv().map_err(ended)??
            }
        };
        // A run that has failed computes no further structure.
        accept(made).inspect_err(|_| thread.close())?;
        // `accept` may have ended the part before this input.
        if ran {
            counters.add_alone();
        }
        Ok(())
    });
    thread.close();
    counters.set_losses_alone(thread.join());
    streamed
}

/// The sender of the thread's jobs; `None` once the run has ended, when the engine may still map batches
/// whose results are dropped.
type Jobs<T> = Arc<Mutex<Option<Sender<Job<T>>>>>;

/// The thread that computes the structures; it ends, at the latest, when this is dropped.
struct AloneThread<T> {
    jobs: Jobs<T>,
    /// `None` after `join`.
    handle: Option<JoinHandle<LossesAlone>>,
}

impl<T: Send + 'static> AloneThread<T> {
    /// Starts the thread that computes structures which are larger than a batch, one at a time, and
    /// makes their rows.
    fn start(
        mut oversized: Oversized,
        make: impl Fn(Completion<Features>) -> T + Send + 'static,
    ) -> Result<Self> {
        let (sender, receiver) = unbounded();
        let jobs = Arc::new(Mutex::new(Some(sender)));
        let run_jobs = Arc::clone(&jobs);
        let compute = move || {
            for Job { completion, reply } in receiver {
                if run_jobs.lock().is_none() {
                    break;
                }
                let done = oversized.complete(completion);
                // The receiver was dropped if the run has ended.
                let _ = reply.send(done.map(|(completion, ran)| (make(completion), ran)));
            }
            oversized.losses()
        };
        let thread = thread("tapeloop-alone").spawn(compute);
        let handle = Some(thread.map_err(thread_error)?);
        Ok(AloneThread { jobs, handle })
    }
}

impl<T> AloneThread<T> {
    /// Lets the thread end after the structure that it computes now.
    fn close(&self) {
        self.jobs.lock().take();
    }

    /// Waits for the end of the thread.
    ///
    /// # Panics
    /// If the thread panicked, with its payload.
    fn join(&mut self) -> LossesAlone {
        let handle = self.handle.take().expect("joined once");
        handle.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}

/// For a run that panics: the thread would otherwise compute what is left.
impl<T> Drop for AloneThread<T> {
    fn drop(&mut self) {
        self.close();
        if let Some(handle) = self.handle.take() {
            let _ = handle.join();
        }
    }
}

/// A structure that the engine rejected for its size, and where to send its result and whether it ran.
struct Job<T> {
    completion: Completion<Features>,
    reply: Sender<Result<(T, bool)>>,
}

/// A result, or where it will come from.
enum Routed<T> {
    Made(T),
    Alone(Receiver<Result<(T, bool)>>),
}

/// Whether the engine rejected a structure that was read because no bucket holds it.
fn is_too_large(completion: &Completion<Features>) -> bool {
    let error = completion.result.as_ref().err();
    completion.item.structure.is_ok()
        && error.is_some_and(|error| error.kind() == ErrorKind::Capacity)
}

/// Computes structures that the engine rejected for their size.
struct Oversized {
    config: Config,
    pool: Arc<ThreadPool>,
    /// Computes the extents.
    workload: Features,
    /// The run's first device.
    first: Arc<dyn Backend>,
    /// The device of these structures: the first one, or a worker process of their own, as an engine has its
    /// worker to itself. Selected when it is needed.
    device: Option<Arc<dyn Backend>>,
    /// The latest last.
    kept: Vec<OversizedPipeline>,
    /// The losses of buckets that are no longer kept.
    losses: LossesAlone,
}

/// A pipeline with one slot and one bucket.
struct OversizedPipeline {
    pipeline: Pipeline<Features>,
    capacity: Extent,
}

impl OversizedPipeline {
    fn bytes(&self) -> u64 {
        let memory = self.pipeline.memory();
        memory.bytes()
    }
}

impl Oversized {
    /// Takes no memory for batches before the first of these structures.
    fn new(plan: &Plan) -> Result<Self> {
        Ok(Oversized {
            config: plan.config.clone(),
            pool: Arc::clone(&plan.pool),
            workload: features(&plan.config)?,
            first: Arc::clone(&plan.backends[0]),
            device: None,
            kept: Vec::new(),
            losses: LossesAlone::default(),
        })
    }

    /// Computes a structure that the engine rejected. Returns whether it ran.
    ///
    /// # Errors
    /// That of a device that failed, which is no fault of the structure's file: the run has to end.
    fn complete(
        &mut self,
        completion: Completion<Features>,
    ) -> Result<(Completion<Features>, bool)> {
        let item = completion.item;
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
        let done = bucket.pipeline.wait();
        let (_, completion) = done.expect("an item is in flight");
        let ended = bucket.pipeline.ended();
        // Kept if its device failed, too: `losses` counts its restarts.
        self.kept.push(bucket);
        if let Some(error) = ended {
            return Err(error);
        }
        self.free_kept_for(0);
        Ok((completion, true))
    }

    /// The losses of all buckets so far.
    fn losses(&self) -> LossesAlone {
        self.kept.iter().fold(self.losses, |losses, bucket| {
            let counters = bucket.pipeline.counters();
            LossesAlone {
                restarts: losses.restarts + counters.restarts,
                quarantined: losses.quarantined + counters.items_quarantined,
            }
        })
    }

    /// Drops the oldest `buckets` of the kept ones.
    fn drop_oldest(&mut self, buckets: usize) {
        let rest = self.kept.split_off(buckets);
        self.losses = self.losses();
        self.kept = rest;
    }

    /// Frees the oldest kept buckets until there is room for `bytes` more.
    fn free_kept_for(&mut self, bytes: u64) {
        let kept =
            |all: &[OversizedPipeline]| all.iter().map(OversizedPipeline::bytes).sum::<u64>();
        while !self.kept.is_empty() && kept(&self.kept).saturating_add(bytes) > KEPT_BYTES_MAX {
            self.drop_oldest(1);
        }
    }

    /// A kept bucket for structures of this size, or a new one.
    ///
    /// # Errors
    /// [`ErrorKind::Capacity`] if the structure is over the limit, or there is not enough memory.
    fn bucket_for(&mut self, item: &Input) -> Result<OversizedPipeline> {
        let structure = item.structure.as_ref().map_err(Clone::clone)?;
        let extent = self.workload.extent(item)?;
        let residues_max = self.config.batch.structure_residues_max;
        let limit = Features::capacity(residues_max);
        if let Some(axis) = extent.first_excess(limit) {
            let (length, most, name) = (extent[axis], limit[axis], self.workload.axes()[axis]);
            let message = format!(
                "the structure has {length} {name}, over {most}: \
                 limits.structure_residues_max is {residues_max}"
            );
            return Err(Error::new(ErrorKind::Capacity, message).fix(limit_fix(residues_max)));
        }
        let capacity = capacity_for(extent, structure.residues.len() as u32, residues_max);
        // One of another size has room for more pairs or fewer, and whether a structure is rejected for
        // its pairs must not depend on those before it.
        let same = |bucket: &OversizedPipeline| bucket.capacity == capacity;
        if let Some(position) = self.kept.iter().position(same) {
            return Ok(self.kept.remove(position));
        }
        let device = self.device()?;
        let mut config = bucket_config(&self.config, capacity, self.config.policy.deadline);
        // The bucket may use what is left of the run's restarts.
        config.restarts_max = config.restarts_max.saturating_sub(self.losses().restarts);
        let memory = Engine::memory_plan(&self.workload, device.device(), 1, &config)?;
        if device.is_supervised() {
            // A pipeline has its worker process to itself.
            self.drop_oldest(self.kept.len());
        } else {
            self.free_kept_for(memory.bytes());
        }
        let mut made = self.open(&device, &config);
        if made.as_ref().is_err_and(is_for_room) && !self.kept.is_empty() {
            self.drop_oldest(self.kept.len());
            made = self.open(&device, &config);
        }
        let error = match made {
            Err(error) if is_for_room(&error) => error,
            made => return made,
        };
        // A kernel of one's own has no CPU twin.
        if let Some(kernel) = self.config.features.own_kernels.first() {
            let (message, kernel) = (error.message(), kernel.name());
            let message = format!("{message}, and {kernel} runs on the GPU alone");
            // The structure has what the batches of the others leave.
            return Err(Error::new(ErrorKind::Capacity, message)
                .fix("lower slots or batch.residues_max, or use a GPU with more memory"));
        }
        tracing::warn!(%error, "a large structure runs on the CPU");
        // Nothing interrupts the CPU, and a missed deadline would end the run.
        self.open(&self.cpu()?, &bucket_config(&self.config, capacity, None))
    }

    /// Opens a pipeline with room for one structure of this size on a device.
    fn open(&self, device: &Arc<dyn Backend>, config: &EngineConfig) -> Result<OversizedPipeline> {
        let (workload, devices) = (features(&self.config)?, [Arc::clone(device)]);
        let pipeline = Pipeline::new(workload, &devices, Arc::clone(&self.pool), config)?;
        Ok(OversizedPipeline {
            pipeline,
            capacity: config.batch,
        })
    }

    fn cpu(&self) -> Result<Arc<dyn Backend>> {
        Ok(select(Choice::Cpu, &self.pool)?.backend)
    }

    /// The device of these structures; the CPU if a worker process for them cannot be started.
    ///
    /// # Errors
    /// A worker process cannot be started, and the CPU cannot run the user's own kernels.
    fn device(&mut self) -> Result<Arc<dyn Backend>> {
        let device = match &self.device {
            Some(device) => Arc::clone(device),
            None if self.config.supervise => match self.worker() {
                Err(error) if self.config.features.own_kernels.is_empty() => {
                    tracing::warn!(%error, "large structures run on the CPU");
                    self.cpu()?
                }
                started => started?,
            },
            None => Arc::clone(&self.first),
        };
        self.device = Some(Arc::clone(&device));
        Ok(device)
    }

    /// Starts a worker process that holds the run's first device.
    fn worker(&self) -> Result<Arc<dyn Backend>> {
        let choice = match self.first.device().backend {
            "cpu" => Choice::Cpu,
            _ => Choice::Cuda,
        };
        Ok(selection::worker(&self.config, choice)?.backend)
    }
}

fn features(config: &Config) -> Result<Features> {
    Features::new(config.features.clone())
}

/// The bucket of a structure of this extent. The sizes are powers of two, so that the next structure
/// is likely to fit, and a recording has no axis of length 0.
fn capacity_for(extent: Extent, residues: u32, residues_max: u32) -> Extent {
    let residues = residues.next_power_of_two().min(residues_max);
    let capacity = extent.max(Features::capacity(residues));
    // The structure may be here because its pairs have outgrown the largest bucket.
    Features::with_pair_room(capacity, PAIR_ROOM_FACTOR)
}

/// The fix of a structure that is over the limit of `residues_max`, which may be the highest that there is.
fn limit_fix(residues_max: u32) -> &'static str {
    if residues_max < STRUCTURE_RESIDUES_MAX {
        "raise limits.structure_residues_max if the file is as it should be"
    } else {
        "write its parts into files of their own, as this limit cannot be raised"
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
    let residues_max = plan.config.batch.structure_residues_max;
    let capacity = capacity_for(Extent::default(), residues_max, residues_max);
    let config = bucket_config(&plan.config, capacity, None);
    Engine::memory_plan(&features(&plan.config)?, plan.first_device(), 1, &config)
}

/// A graph would be replayed a few times, so there is none.
fn bucket_config(config: &Config, capacity: Extent, deadline: Option<Duration>) -> EngineConfig {
    EngineConfig {
        slots: 1,
        policy: Policy {
            mode: Mode::Stream,
            deadline,
            ..Policy::default()
        },
        restarts_max: config.restarts_max,
        ..EngineConfig::new(capacity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_raised_only_where_it_can_be() {
        assert!(limit_fix(STRUCTURE_RESIDUES_MAX - 1).starts_with("raise"));
        assert!(!limit_fix(STRUCTURE_RESIDUES_MAX).starts_with("raise"));
    }
}
