//! A point that is set up to run: each of the engine's fronts as a [`Runner`].

mod engine;
mod pipeline;
mod ring;

use super::benchmark::Benchmark;
use super::machine::{CpuClock, core_time};
use super::point::{Front, Point};
use super::record::Amounts;
use hdrhistogram::Histogram;
use rayon::ThreadPool;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tapeloop_engine::backend::Backend;
use tapeloop_engine::error::{Error, ErrorKind, Result};
use tapeloop_engine::pipeline::{Counters, EngineConfig, Packer, Wait};
use tapeloop_engine::record::View;
use tapeloop_engine::replay::Buckets;
use tapeloop_engine::workload::Workload;

/// The longest latency that the histograms resolve: a minute. A longer one counts as a minute.
const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// Significant digits of a latency.
const LATENCY_DIGITS: u8 = 3;

/// An item of a benchmark's workload.
type ItemOf<S> = <<S as Benchmark>::Workload as Workload>::Item;

/// An output of a benchmark's workload.
type OutputOf<S> = <<S as Benchmark>::Workload as Workload>::Output;

/// The devices and host threads that points run on.
#[derive(Clone)]
pub struct Machine {
    /// The devices, one at least. Rings use the first alone, the other fronts all of them.
    pub backends: Vec<Arc<dyn Backend>>,
    /// The host threads that pack, read, and compute on the CPU.
    pub pool: Arc<ThreadPool>,
}

impl Machine {
    /// The first device.
    ///
    /// # Panics
    /// If there are none.
    pub fn first(&self) -> &Arc<dyn Backend> {
        &self.backends[0]
    }

    /// The number of devices that a point uses.
    pub(super) fn devices_of(&self, front: Front) -> usize {
        match front {
            Front::Ring => 1,
            Front::Pipeline | Front::Engine => self.backends.len(),
        }
    }
}

/// A point with its slots, graphs and items.
pub trait Runner {
    /// The work and the bytes of a batch of the point.
    fn batch_facts(&self) -> BatchFacts;

    /// Runs a batch of new items in every slot, and compares all outputs.
    ///
    /// # Errors
    /// [`ErrorKind::Mismatch`] for a wrong output, and the errors of the device.
    fn check(&mut self) -> Result<()> {
        self.run_closed_loop(0).map(drop)
    }

    /// Runs batches in a closed loop, in which every slot is always in use, over items that no
    /// earlier run had. Runs at least one batch per slot. Compares the outputs of the last batches.
    ///
    /// # Errors
    /// [`ErrorKind::Mismatch`] for a wrong output, and the errors of the device.
    fn run_closed_loop(&mut self, batches: u64) -> Result<Closed>;

    /// Runs batches that arrive at `arrivals`, in ascending order, each in any slot that is free, or as soon
    /// as one is. `None` if this front has no open loop.
    ///
    /// # Errors
    /// The errors of the device.
    fn run_open_loop(&mut self, arrivals: &[Duration]) -> Result<Option<Opened>> {
        let _ = arrivals;
        Ok(None)
    }

    /// Runs `batches` in a closed loop, at least one per slot, and returns their times on the device; nothing
    /// if this front or the device does not measure them.
    ///
    /// # Errors
    /// [`ErrorKind::Mismatch`] for a wrong output, and the errors of the device.
    fn run_timed(&mut self, batches: usize) -> Result<Vec<TimedBatch>> {
        let _ = batches;
        Ok(Vec::new())
    }
}

/// The work and the bytes of a batch.
#[derive(Clone, Copy, Debug, Default)]
pub struct BatchFacts {
    /// Kernel launches.
    pub kernels: usize,
    /// Bytes uploaded for a full batch.
    pub upload_bytes: u64,
    /// Bytes downloaded for a full batch.
    pub download_bytes: u64,
    /// What a batch holds on average. Bytes are those that are copied, which depends on the bucket.
    pub amounts: Amounts,
}

impl BatchFacts {
    /// Sets the bytes that a batch copies on average, uploads and downloads together. Splits them in
    /// the ratio of a full batch, since both shrink alike.
    fn set_copied_bytes(&mut self, bytes: f64) {
        let (up, down) = (self.upload_bytes as f64, self.download_bytes as f64);
        let share = up / (up + down).max(1.0);
        self.amounts.upload_bytes = bytes * share;
        self.amounts.download_bytes = bytes * (1.0 - share);
    }
}

/// The result of a closed loop.
pub struct Closed {
    /// From the first submission to the end of the last batch.
    pub elapsed: Duration,
    /// The number of batches.
    pub batches: u64,
    /// Host time of all submissions.
    pub host: Duration,
    /// Driver calls of all submissions.
    pub calls: u64,
    /// CPU time divided by wall time; 1 if the clock is unavailable. The CPU time is that of the
    /// submitting thread, or of the whole process if other threads work for it. A thread that spins and
    /// stays below 1 has slept, or lost its core.
    pub busy: f64,
    /// The latency of each batch, from its submission to its end.
    pub(super) latencies: Histogram<u64>,
}

/// The result of an open loop.
pub struct Opened {
    /// From the first arrival to the end of the last batch.
    pub elapsed: Duration,
    /// The latency of each batch, from its arrival to its end.
    pub(super) latencies: Histogram<u64>,
}

/// The times of a batch's stages, in nanoseconds on the host's clock.
#[derive(Clone, Copy, Debug)]
pub struct TimedBatch {
    /// Its slot.
    pub slot: usize,
    /// When the host's submission began and ended.
    pub submit_ns: (u64, u64),
    /// When the device began, and when uploads, kernels and downloads ended.
    pub timestamps_ns: [u64; 4],
}

/// An empty histogram of latencies.
pub(super) fn latencies() -> Histogram<u64> {
    let histogram = Histogram::new_with_bounds(1, LATENCY_NS_MAX, LATENCY_DIGITS);
    histogram.expect("the bounds are in order and the digits below 6")
}

/// Adds a latency to a histogram, which begins at 1 ns.
fn add_latency(latencies: &mut Histogram<u64>, latency: Duration) {
    let ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
    latencies.saturating_record(ns.max(1));
}

/// Sets up a point, and checks it once.
///
/// # Errors
/// [`ErrorKind::Config`] for settings that do not go together, [`ErrorKind::Mismatch`] for a wrong
/// output, and the errors of the device.
pub fn open<S: Benchmark>(
    machine: &Machine,
    benchmark: &Arc<S>,
    point: &Point,
) -> Result<Box<dyn Runner>> {
    let mut runner: Box<dyn Runner> = match point.front {
        Front::Ring => Box::new(ring::RingRunner::open(machine, benchmark, point)?),
        Front::Pipeline => Box::new(pipeline::PipelineRunner::open(machine, benchmark, point)?),
        Front::Engine => Box::new(engine::EngineRunner::open(machine, benchmark, point)?),
    };
    runner.check()?;
    Ok(runner)
}

/// How full the batch of a slot is, 0 to 1. Batches of a mixed point need different buckets: each bucket is
/// half as large as the next, so these shares are the buckets of a ladder of four, not in ascending order.
fn fill_share(point: &Point, slot: usize) -> f64 {
    if point.is_mixed {
        [0.125, 1.0, 0.25, 0.5][slot % 4]
    } else {
        1.0
    }
}

/// Records the workload for the largest bucket of a point, without slots: what its batches are, before any has
/// run.
///
/// # Errors
/// [`ErrorKind::Config`] for settings that do not go together.
pub(super) fn batch_facts<S: Benchmark>(
    machine: &Machine,
    benchmark: &Arc<S>,
    point: &Point,
) -> Result<BatchFacts> {
    if point.batch == 0 {
        return Err(Error::config("batch = 0 leaves nothing to measure").fix("set at least 1"));
    }
    let ladder = benchmark.ladder(point.buckets);
    let pool = Arc::clone(&machine.pool);
    let packer = Packer::new(benchmark.workload()?, &ladder, machine.first(), pool)?;
    Ok(largest_batch(&packer.buckets()))
}

/// The work and the bytes of a batch of the largest bucket, before any batch has run.
fn largest_batch(buckets: &Buckets) -> BatchFacts {
    let recording = &buckets.largest().recording;
    let bytes = |view: View| -> u64 {
        let buffers = recording.buffers().iter();
        let of_view = buffers.filter(|decl| decl.view == view);
        of_view.map(|decl| decl.size_bytes() as u64).sum()
    };
    BatchFacts {
        kernels: recording.launches().count(),
        upload_bytes: bytes(View::Upload),
        download_bytes: bytes(View::Download),
        amounts: Amounts::default(),
    }
}

/// Makes the items for a front that packs them itself, and checks their outputs.
struct ItemSource<S: Benchmark> {
    benchmark: Arc<S>,
    /// Slots of all devices.
    slots: u64,
    seed: u64,
    batch: BatchFacts,
}

impl<S: Benchmark> ItemSource<S> {
    /// A source of items for the point.
    fn open(machine: &Machine, benchmark: &Arc<S>, point: &Point) -> Result<Self> {
        Ok(ItemSource {
            benchmark: Arc::clone(benchmark),
            slots: (point.slots * machine.devices_of(point.front)) as u64,
            seed: 0,
            batch: batch_facts(machine, benchmark, point)?,
        })
    }

    /// The config of a front that spins while it waits, so that a sleep shows in [`Closed::busy`].
    fn config(&self, point: &Point) -> Result<EngineConfig> {
        let ladder = self.benchmark.ladder(point.buckets);
        let largest = *ladder.last().ok_or_else(slot_missing)?;
        Ok(EngineConfig {
            slots: point.slots,
            policy: point.policy,
            buckets: ladder,
            wait: Wait::Spin,
            ..EngineConfig::new(largest)
        })
    }

    /// The items of each of `batches` batches, and notes the amounts of a batch on average. There is one batch
    /// of new items for each slot; these repeat, so that a long loop takes no more memory.
    fn make_batches(&mut self, batches: u64) -> VecDeque<Vec<ItemOf<S>>> {
        let first = self.seed + 1;
        self.seed += self.slots;
        let distinct: Vec<_> = (first..first + self.slots)
            .map(|seed| self.benchmark.items(seed, 1.0))
            .collect();
        let load = distinct.iter().cycle().take(batches as usize).cloned();
        let load: VecDeque<Vec<ItemOf<S>>> = load.collect();
        let amounts = load
            .iter()
            .map(|items| sum_amounts(&*self.benchmark, items));
        let total = amounts.fold(Amounts::default(), |sum, amounts| sum + amounts);
        self.batch.amounts = total * (1.0 / batches.max(1) as f64);
        load
    }

    /// Compares the outputs that were `kept` with the expected ones, and returns the result of a closed
    /// loop, from the front's counters before and after it. Notes the bytes that a batch copied on average.
    ///
    /// # Errors
    /// [`ErrorKind::Mismatch`] for a wrong output.
    fn check_and_summarize(
        &mut self,
        kept: &[(ItemOf<S>, OutputOf<S>)],
        (before, after): (Counters, Counters),
        (elapsed, busy): (Duration, f64),
        latencies: Histogram<u64>,
    ) -> Result<Closed> {
        for (item, output) in kept {
            self.benchmark.check(item, output)?;
        }
        let batches = after.batches - before.batches;
        let copied = (after.copied_bytes - before.copied_bytes) as f64;
        self.batch.set_copied_bytes(copied / batches.max(1) as f64);
        Ok(Closed {
            elapsed,
            batches,
            busy,
            host: Duration::from_nanos(after.submit_ns - before.submit_ns),
            calls: after.driver_calls - before.driver_calls,
            latencies,
        })
    }
}

/// Measures wall time and CPU time.
struct Stopwatch {
    start: Instant,
    threads: CpuClock,
    on_core: Option<Duration>,
}

impl Stopwatch {
    /// Starts to measure.
    fn start(threads: CpuClock) -> Self {
        let on_core = core_time(threads);
        Stopwatch {
            start: Instant::now(),
            threads,
            on_core,
        }
    }

    /// The wall time, and CPU time divided by it; 1 if the clock is unavailable.
    fn stop(self) -> (Duration, f64) {
        let elapsed = self.start.elapsed();
        let on_core = core_time(self.threads).zip(self.on_core);
        let on_core = on_core.map(|(now, then)| now.saturating_sub(then));
        let share = |time: Duration| time.as_secs_f64() / elapsed.as_secs_f64().max(1e-9);
        (elapsed, on_core.map_or(1.0, share))
    }
}

/// The amounts of all items together.
fn sum_amounts<S: Benchmark>(benchmark: &S, items: &[ItemOf<S>]) -> Amounts {
    let amounts = items.iter().map(|item| benchmark.amounts(item));
    amounts.fold(Amounts::default(), |sum, amounts| sum + amounts)
}

/// The error of a ring that lacks a slot which it should have.
pub fn slot_missing() -> Error {
    Error::new(
        ErrorKind::Device,
        "the ring lacks a slot that it should have",
    )
}
