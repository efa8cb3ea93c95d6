//! A point set up to be run: the engine's fronts behind one trait.

mod engine;
mod pipeline;
mod ring;

use super::machine::{Threads, core_time};
use super::point::{Front, Point};
use super::record::Amounts;
use super::subject::Subject;
use crate::backend::Backend;
use crate::error::{Error, ErrorKind, Result};
use crate::pipeline::{Counters, EngineConfig, Packer, Wait};
use crate::record::View;
use crate::replay::{Buckets, Chosen};
use crate::workload::Workload;
use hdrhistogram::Histogram;
use rayon::ThreadPool;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest latency that is told from longer ones: a minute.
const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// Digits that a latency is kept to.
const LATENCY_DIGITS: u8 = 3;

/// An item of a subject's workload.
type ItemOf<S> = <<S as Subject>::Workload as Workload>::Item;

/// What runs points.
#[derive(Clone)]
pub struct Machine {
    /// The device.
    pub backend: Arc<dyn Backend>,
    /// Packs, reads, and computes on the CPU.
    pub pool: Arc<ThreadPool>,
}

/// A point with its slots, its graphs and its items.
pub trait Rig {
    /// What a batch of it is.
    fn about(&self) -> About;

    /// What mode auto chose, a sentence for each bucket.
    fn chosen(&self) -> Vec<String>;

    /// Runs a batch of new items in every slot, and looks at all outputs.
    ///
    /// # Errors
    /// What the device says;
    /// [`ErrorKind::Mismatch`] for a wrong output.
    fn check(&mut self) -> Result<()>;

    /// Batches one after the other, every slot always in use, over items that no run
    /// before had; looks at the outputs that the last ones leave.
    ///
    /// # Errors
    /// As [`Rig::check`].
    fn closed(&mut self, batches: u64) -> Result<Closed>;

    /// Batches that arrive at `arrivals`, each given to the first free slot, in order.
    /// `None` where this front is not driven so.
    ///
    /// # Errors
    /// As [`Rig::check`].
    fn open(&mut self, arrivals: &[Duration]) -> Result<Option<Opened>> {
        let _ = arrivals;
        Ok(None)
    }

    /// So many batches in a closed loop, with their times on the device; none where
    /// it does not tell them.
    ///
    /// # Errors
    /// As [`Rig::check`].
    fn timed(&mut self, batches: usize) -> Result<Vec<TimedBatch>> {
        let _ = batches;
        Ok(Vec::new())
    }
}

/// What a batch is.
#[derive(Clone, Copy, Debug, Default)]
pub struct About {
    /// Kernel launches.
    pub kernels: usize,
    /// Bytes that a full one copies to the device.
    pub upload_bytes: u64,
    /// And back.
    pub download_bytes: u64,
    /// What it holds on average; bytes are those of the buckets or of what is live,
    /// as they are moved.
    pub amounts: Amounts,
}

impl About {
    /// Notes the bytes that a batch copied, both ways together; both shrink alike.
    fn copied(&mut self, bytes: f64) {
        let (up, down) = (self.upload_bytes as f64, self.download_bytes as f64);
        let share = up / (up + down).max(1.0);
        self.amounts.upload_bytes = bytes * share;
        self.amounts.download_bytes = bytes * (1.0 - share);
    }
}

/// A closed loop.
pub struct Closed {
    /// From the first submission to the last end.
    pub elapsed: Duration,
    /// How many.
    pub batches: u64,
    /// Host time of all submissions.
    pub host: Duration,
    /// Driver calls of all of them.
    pub calls: u64,
    /// Time that the thread which submits was on a core, or all where others work for it,
    /// by the time that went by; 1 where that is not told.
    pub busy: f64,
    /// Each from its submission to its end.
    pub latencies: Histogram<u64>,
}

/// An open loop.
pub struct Opened {
    /// From the first arrival to the last end.
    pub elapsed: Duration,
    /// Each from its arrival to its end.
    pub latencies: Histogram<u64>,
}

/// A batch with the moments of its stages, in nanoseconds on the host's clock.
#[derive(Clone, Copy, Debug)]
pub struct TimedBatch {
    /// Its slot.
    pub slot: usize,
    /// The host's submission, from and to.
    pub submit_ns: (u64, u64),
    /// When the device began, and when uploads, kernels and downloads were over.
    pub timestamps_ns: [u64; 4],
}

/// No latencies yet.
pub(super) fn latencies() -> Histogram<u64> {
    let histogram = Histogram::new_with_bounds(1, LATENCY_NS_MAX, LATENCY_DIGITS);
    histogram.expect("the bounds are in order and the digits below 6")
}

fn add_latency(latencies: &mut Histogram<u64>, latency: Duration) {
    let ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
    latencies.saturating_record(ns.max(1));
}

/// Sets a point up.
///
/// # Errors
/// What is wrong with its settings, memory that is not there, what the device says.
pub fn open<S: Subject>(
    machine: &Machine,
    subject: &Arc<S>,
    point: &Point,
) -> Result<Box<dyn Rig>> {
    Ok(match point.front {
        Front::Ring => Box::new(ring::RingRig::open(machine, subject, point)?),
        Front::Pipeline => Box::new(pipeline::PipelineRig::open(machine, subject, point)?),
        Front::Engine => Box::new(engine::EngineRig::open(machine, subject, point)?),
    })
}

/// How full the batch of a slot is.
fn fill(point: &Point, slot: usize) -> f64 {
    match point.is_mixed {
        true => [0.125, 1.0, 0.25, 0.5][slot % 4],
        false => 1.0,
    }
}

fn engine_config<S: Subject>(subject: &S, point: &Point) -> Result<EngineConfig> {
    let ladder = subject.ladder(point.buckets);
    let largest = *ladder.last().ok_or_else(lost)?;
    Ok(EngineConfig {
        slots: point.slots,
        policy: point.policy,
        buckets: ladder,
        wait: Wait::Spin,
        ..EngineConfig::new(largest)
    })
}

/// What the largest bucket of a point is, without amounts.
fn about<S: Subject>(machine: &Machine, subject: &S, point: &Point) -> Result<About> {
    let ladder = subject.ladder(point.buckets);
    let pool = Arc::clone(&machine.pool);
    let packer = Packer::new(subject.workload()?, &ladder, &machine.backend, pool)?;
    Ok(about_buckets(&packer.buckets()))
}

fn about_buckets(buckets: &Buckets) -> About {
    let recording = &buckets.largest().recording;
    let bytes = |view: View| -> u64 {
        let buffers = recording.buffers().iter();
        let of_view = buffers.filter(|decl| decl.view == view);
        of_view.map(|decl| decl.size_bytes() as u64).sum()
    };
    About {
        kernels: recording.launches().count(),
        upload_bytes: bytes(View::Upload),
        download_bytes: bytes(View::Download),
        amounts: Amounts::default(),
    }
}

/// Items of batches that none before had, as many sorts as there are slots, over and
/// over; and what a batch holds on average.
fn load<S: Subject>(
    subject: &S,
    seed: &mut u64,
    slots: u64,
    batches: u64,
) -> (VecDeque<Vec<ItemOf<S>>>, Amounts) {
    let first = *seed + 1;
    *seed += slots;
    let sorts: Vec<_> = (first..first + slots)
        .map(|seed| subject.items(seed, 1.0))
        .collect();
    let load: VecDeque<_> = sorts
        .iter()
        .cycle()
        .take(batches as usize)
        .cloned()
        .collect();
    let amounts = load.iter().map(|items| sum(subject, items));
    let total = amounts.fold(Amounts::default(), |sum, one| sum + one);
    (load, total * (1.0 / batches.max(1) as f64))
}

/// Time that goes by, and the share of it that the work is on a core.
struct Stopwatch {
    start: Instant,
    threads: Threads,
    on_core: Option<Duration>,
}

impl Stopwatch {
    fn start(threads: Threads) -> Self {
        let on_core = core_time(threads);
        Stopwatch {
            start: Instant::now(),
            threads,
            on_core,
        }
    }

    fn stop(self) -> (Duration, f64) {
        let elapsed = self.start.elapsed();
        let on_core = core_time(self.threads).zip(self.on_core);
        let on_core = on_core.map(|(now, then)| now.saturating_sub(then));
        let share = |time: Duration| time.as_secs_f64() / elapsed.as_secs_f64().max(1e-9);
        (elapsed, on_core.map_or(1.0, share))
    }
}

/// A closed loop by what a front counted before and after.
fn closed(
    about: &mut About,
    amounts: Amounts,
    (before, after): (Counters, Counters),
    (elapsed, busy): (Duration, f64),
    latencies: Histogram<u64>,
) -> Closed {
    let batches = after.batches - before.batches;
    about.amounts = amounts;
    about.copied((after.copied_bytes - before.copied_bytes) as f64 / batches.max(1) as f64);
    Closed {
        elapsed,
        batches,
        busy,
        host: Duration::from_nanos(after.submit_ns - before.submit_ns),
        calls: after.driver_calls - before.driver_calls,
        latencies,
    }
}

/// The amounts of all items together.
fn sum<S: Subject>(subject: &S, items: &[ItemOf<S>]) -> Amounts {
    let amounts = items.iter().map(|item| subject.amounts(item));
    amounts.fold(Amounts::default(), |sum, one| sum + one)
}

fn sentences(chosen: Vec<Chosen>) -> Vec<String> {
    chosen.iter().map(Chosen::to_string).collect()
}

/// The error of a ring without a slot that it should have.
pub(super) fn lost() -> Error {
    Error::new(ErrorKind::Device, "a slot is gone")
}
