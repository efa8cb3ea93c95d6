//! Where the time of a run goes: busy stages, slots in flight, latencies, and the stage that bounds
//! the run.
//!
//! If there is no closed batch for most of the time, the input bounds the run. If the thread that
//! submits items writes batches for most of the time, and these hardly wait for a slot, that bounds it.
//! Else all slots are in use, and the stage that holds them for the longest bounds the run, or the
//! consumer of results. A batch that waits for a worker is in the stage that the worker is needed for.

use super::counters::Counters;
use super::meter::{Finished, Submitted, ns};
use hdrhistogram::Histogram;
use std::fmt;
use std::time::Duration;

/// The longest latency that the histograms resolve: an hour. A longer one counts as that.
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;

/// The least share of batches closed by changes of uniforms that the sentence mentions: from here on most
/// batches are smaller than they need be.
const CLOSED_BY_UNIFORMS_MIN: f64 = 0.5;

/// Significant digits of a latency. A quantile is right to 1%; a digit more would take eight times
/// the memory.
const LATENCY_DIGITS: u8 = 2;

/// A stage of the pipeline, its input or its output. One of them bounds a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The source of items.
    Input,
    /// Stage one: writes items into pinned memory and submits batches.
    Fill,
    /// Stage two: batches run on the device.
    Device,
    /// Stage three: reads results.
    Unpack,
    /// The consumer of results.
    Output,
}

impl Stage {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Input => "input",
            Stage::Fill => "fill",
            Stage::Device => "device",
            Stage::Unpack => "unpack",
            Stage::Output => "output",
        }
    }
}

/// The time that a stage was busy.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct StageTime {
    /// In nanoseconds.
    pub busy_ns: u64,
    /// Its share of the wall time, 0 to 1.
    pub share: f64,
    /// The number of batches.
    pub batches: u64,
}

/// How one of an engine's devices spent the time since the first batch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct DeviceStatistics {
    /// Time that at least one of its batches was in flight, with the repetitions of verification.
    pub time: StageTime,
    /// Its slots.
    pub slots: usize,
    /// The average number of its slots in flight.
    pub slots_in_flight: f64,
    /// Whether it was taken out of use, because it was lost and could not be restarted.
    pub is_lost: bool,
}

/// A histogram of latencies, each with two significant digits, up to an hour.
#[derive(Clone, PartialEq)]
pub struct Latencies(Histogram<u64>);

impl Latencies {
    fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LATENCY_NS_MAX, LATENCY_DIGITS);
        Latencies(histogram.expect("the bounds are in order and the digits below 6"))
    }

    /// Never allocates: the histogram has a count for every latency up to the longest.
    pub(super) fn add(&mut self, latency: Duration) {
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.0.saturating_record(ns.max(1));
    }

    /// The number of latencies.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The quantile `quantile`, 0 to 1, in nanoseconds; 0 if there are no latencies.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        self.0.value_at_quantile(quantile)
    }

    /// The longest latency in nanoseconds; 0 if there are none.
    pub fn max_ns(&self) -> u64 {
        self.0.max()
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Latencies::new()
    }
}

impl fmt::Debug for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Latencies")
            .field("count", &self.count())
            .field("p50_ns", &self.quantile_ns(0.5))
            .field("p90_ns", &self.quantile_ns(0.9))
            .field("p99_ns", &self.quantile_ns(0.99))
            .field("max_ns", &self.max_ns())
            .finish()
    }
}

/// How the stages spent the time since the first batch.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/double.rs"));
/// # use tapeloop_engine::*;
/// # fn main() -> Result<()> {
/// let mut engine = Engine::auto(Double::new()?, &EngineConfig::new([1 << 20]))?;
/// let items = (0..1000).map(|number| vec![number as f32]);
/// engine.run(items, &mut |done: Completion<Double>| done.result.map(drop))?;
/// let statistics = engine.statistics();
/// println!("{}", statistics.sentence());
/// assert!(statistics.device.busy_ns <= statistics.wall_ns);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Statistics {
    /// Wall time in nanoseconds, of which all shares are: from the first closed batch to the
    /// results of the last, or to now while a batch is in flight. Without verification.
    pub wall_ns: u64,
    /// Time that at least one batch was written or submitted.
    pub fill: StageTime,
    /// Time that at least one batch was in flight, from submission until it was found done.
    pub device: StageTime,
    /// Time that the results of at least one batch were read.
    pub unpack: StageTime,
    /// Time that at least one closed batch waited for a slot.
    pub stall: StageTime,
    /// Time that stage one waited for items. If workers fill slots, time that no batch waited for a
    /// slot.
    pub input: StageTime,
    /// Time that a batch of a run waited for the consumer of results while a slot was free.
    pub output: StageTime,
    /// Time without a closed batch.
    pub(super) idle_ns: u64,
    /// Whether batches are computed on the CPU backend, so that "the device" is the processor.
    pub on_cpu: bool,
    /// Slots of all devices.
    pub slots: usize,
    /// The average number of slots in flight.
    pub slots_in_flight: f64,
    /// The average number of slots that are written or submitted. Each keeps a thread busy.
    pub slots_filling: f64,
    /// The average number of slots whose results are read. Each keeps a thread busy.
    pub slots_unpacking: f64,
    /// The average number of slots that wait for a worker or a thread of the pool, to be written or read.
    pub slots_awaiting_worker: f64,
    /// The average number of threads that map results
    /// ([`Engine::run_mapped`](super::Engine::run_mapped)).
    pub threads_mapping: f64,
    /// The engine's own threads that write and read large batches; 0 if the callers', the devices' and
    /// the pool's threads do all of it.
    pub workers: usize,
    /// Busy time of filling, the device and unpacking together, divided by the wall time: 1 if the
    /// stages run in sequence, 3 if all three are always busy.
    pub overlap: f64,
    /// [`Timeline::device_overlap`](super::Timeline::device_overlap) of the sampled batches; `None`
    /// if there are none.
    pub device_overlap: Option<f64>,
    /// Share of the batches that a change of uniforms closed before they were full, 0 to 1.
    pub closed_by_uniforms: f64,
    /// The stage that bounds the run; `None` before the first batch.
    pub bound: Option<Stage>,
    /// Each device, in the order of the backends.
    pub devices: Vec<DeviceStatistics>,
    /// Latencies of batches, from submission until they were found done.
    pub batch_latency: Latencies,
    /// Latencies of items, from their submission to the result: of the first item of each batch, and
    /// of every 64th after it, unless it was cancelled.
    pub item_latency: Latencies,
}

impl Statistics {
    /// The time of a stage.
    pub fn time(&self, stage: Stage) -> StageTime {
        match stage {
            Stage::Input => self.input,
            Stage::Fill => self.fill,
            Stage::Device => self.device,
            Stage::Unpack => self.unpack,
            Stage::Output => self.output,
        }
    }

    /// Filling or input, if batches wait little for slots compared with it, and if the last was not
    /// submitted long ago (`drained_ns`). Otherwise the stage that holds slots for the longest, `held`,
    /// or the output.
    fn find_bound(&self, threads: StageThreads, drained_ns: u64, held: HeldTime) -> Stage {
        let longest = |stages: &[Stage]| {
            let longest = stages.iter().max_by_key(|stage| self.time(**stage).busy_ns);
            *longest.expect("there are some")
        };
        let first = match threads {
            StageThreads::Own { .. } if held.by_workers => Stage::Input,
            StageThreads::Own { .. } => longest(&[Stage::Fill, Stage::Input]),
            StageThreads::Caller => longest(&[Stage::Fill, Stage::Input, Stage::Unpack]),
        };
        // A stage that bounds is busy for three quarters of the time or more, in which batches wait for a
        // slot for one; waiting for input need only exceed that.
        let waits = match first {
            Stage::Input => 1,
            _ => 3,
        };
        let stall = self.stall.busy_ns;
        if self.time(first).busy_ns >= (waits * stall).max(stall + drained_ns) {
            return first;
        }
        let HeldTime {
            fill,
            device,
            unpack,
            ..
        } = held;
        // A slot in stage three is not in flight.
        // So what comes after the device may be busy for longer than it: then the device waits for
        // that.
        let later = self.unpack.busy_ns + self.output.busy_ns;
        if self.output.busy_ns > self.unpack.busy_ns && later > self.device.busy_ns {
            return Stage::Output;
        }
        if unpack > device.max(fill) {
            return Stage::Unpack;
        }
        if fill > device {
            Stage::Fill
        } else if later > self.device.busy_ns {
            Stage::Unpack
        } else {
            Stage::Device
        }
    }

    /// Notes that the device is the CPU backend. Its threads also read and fill, so the next input
    /// is not ready because batches are computed: these bound the run if they take more of the time.
    pub(super) fn set_on_cpu(&mut self) {
        self.on_cpu = true;
        let is_input = self.bound == Some(Stage::Input);
        if is_input && self.device.busy_ns > self.idle_ns {
            self.bound = Some(Stage::Device);
        }
    }

    /// Which stage bounds the run, in a sentence.
    pub fn sentence(&self) -> String {
        let Some(bound) = self.bound else {
            return "no batch has run".to_owned();
        };
        let share = |stage: Stage| percent(self.time(stage).share);
        let bound_share = share(bound);
        let start = match bound {
            Stage::Input => format!("input-bound: {bound_share} of the time no input was ready"),
            Stage::Fill => format!("fill-bound: filling took {bound_share} of the time"),
            Stage::Device if self.on_cpu => {
                format!("compute-bound: batches were computed {bound_share} of the time")
            }
            Stage::Device => format!("device-bound: the device was busy {bound_share} of the time"),
            Stage::Unpack => format!("unpack-bound: unpacking took {bound_share} of the time"),
            Stage::Output => {
                format!("output-bound: {bound_share} of the time results waited to be taken")
            }
        };
        let named = [
            (Stage::Fill, "filling"),
            (
                Stage::Device,
                if self.on_cpu { "computing" } else { "device" },
            ),
            (Stage::Unpack, "unpacking"),
        ];
        let others = named.iter().filter(|(stage, _)| *stage != bound);
        let others: Vec<String> = others
            .map(|(stage, name)| format!("{name} {}", share(*stage)))
            .collect();
        let mut sentence = format!("{start}; {}", others.join(", "));
        // Small batches cost more for each item in every stage.
        if self.closed_by_uniforms >= CLOSED_BY_UNIFORMS_MIN {
            let closed = percent(self.closed_by_uniforms);
            sentence += &format!("; changes of uniforms closed {closed} of the batches early");
        }
        sentence
    }
}

/// At most 100%: the clocks of several threads may add up to slightly more.
fn percent(share: f64) -> String {
    format!("{:.0}%", share.min(1.0) * 100.0)
}

/// How long the stages held slots, summed over these, with the waits for a worker.
#[derive(Clone, Copy, Debug, Default)]
struct HeldTime {
    /// Whether workers fill most of the slots, so that the thread which submits items gathers the
    /// next batch meanwhile.
    by_workers: bool,
    fill: Duration,
    device: Duration,
    unpack: Duration,
}

/// The threads that run the stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StageThreads {
    /// The caller's thread runs all stages in sequence.
    Caller,
    /// The engine has threads, and this many workers.
    Own { workers: usize },
}

/// Computes the statistics of a run from the times that its stages added up.
pub(super) fn statistics(
    submitted: Submitted,
    finished: Finished,
    counters: &Counters,
    slots: usize,
    devices: usize,
    threads: StageThreads,
) -> Statistics {
    let last = finished.flight.until().max(finished.last);
    let wall = match (submitted.first, last) {
        (Some(first), Some(last)) => last.saturating_duration_since(first),
        _ => Duration::ZERO,
    };
    // Stage one waits meanwhile, and the batch counts as in flight, so both are reduced by this.
    let aside = Duration::from_nanos(counters.verify_ns);
    let wall_ns = ns(wall.saturating_sub(aside));
    let drained = match (submitted.last_given, last) {
        (Some(given), Some(last)) => last.saturating_duration_since(given),
        _ => Duration::ZERO,
    };
    let drained_ns = ns(drained);
    let share = |ns: u64| ns as f64 / wall_ns.max(1) as f64;
    let without_aside = |time: Duration| ns(time.saturating_sub(aside));
    // Several batches may be in a stage at a time, so their times may add up to more than the wall.
    let time = |busy_ns: u64, batches: u64| StageTime {
        busy_ns: busy_ns.min(wall_ns),
        share: share(busy_ns.min(wall_ns)),
        batches,
    };
    let closed_ns = without_aside(submitted.closed.busy());
    let fill = time(without_aside(submitted.starting.busy()), counters.batches);
    let flights = finished.batch_latency.count();
    let device = time(without_aside(finished.flight.busy()), flights);
    let unpack = time(ns(finished.unpacking.busy()), finished.batches);
    let filling = submitted.starting.summed.saturating_sub(aside);
    let held = HeldTime {
        by_workers: 2 * submitted.handed_over > counters.batches,
        fill: filling + submitted.worker,
        device: finished.flight.summed.saturating_sub(aside),
        unpack: finished.unpacking.summed + finished.worker,
    };
    let slots_in_flight = share(ns(held.device));
    let by_device = match &finished.by_device[..] {
        // The only device: the sums are its figures.
        [] => vec![(device, slots_in_flight)],
        all => all
            .iter()
            .map(|one| {
                let busy_ns = ns(one.flight.busy());
                let in_flight = share(ns(one.flight.summed));
                (time(busy_ns, one.batches), in_flight)
            })
            .collect(),
    };
    let of_device = |(time, slots_in_flight)| DeviceStatistics {
        time,
        slots: slots / devices,
        slots_in_flight,
        is_lost: false,
    };
    let stall = time(
        // What was set aside may be more than batches were closed without waiting.
        ns(submitted.stalled.busy()).min(closed_ns),
        counters.batches,
    );
    // Of the caller's thread, reading results is no time without input.
    let (unpack_ns, workers) = match threads {
        StageThreads::Own { workers } => (0, workers),
        StageThreads::Caller => (unpack.busy_ns, 0),
    };
    let idle_ns = wall_ns.saturating_sub(closed_ns + unpack_ns + drained_ns);
    let input_ns = if held.by_workers {
        wall_ns.saturating_sub(stall.busy_ns + drained_ns)
    } else {
        idle_ns
    };
    let mut statistics = Statistics {
        wall_ns,
        fill,
        device,
        unpack,
        stall,
        input: time(input_ns, counters.batches),
        idle_ns,
        output: time(counters.output_ns, finished.batches),
        slots,
        slots_in_flight,
        slots_filling: share(ns(filling)),
        slots_unpacking: share(ns(finished.unpacking.summed)),
        threads_mapping: share(counters.map_ns),
        slots_awaiting_worker: share(ns(submitted.worker + finished.worker)),
        workers,
        devices: by_device.into_iter().map(of_device).collect(),
        overlap: fill.share + device.share + unpack.share,
        device_overlap: None,
        // At most 1: the two counters are not read at the same moment.
        closed_by_uniforms: (counters.batches_closed_by_uniforms as f64
            / counters.batches.max(1) as f64)
            .min(1.0),
        on_cpu: false,
        bound: None,
        batch_latency: finished.batch_latency,
        item_latency: finished.item_latency,
    };
    statistics.bound = (wall_ns > 0).then(|| statistics.find_bound(threads, drained_ns, held));
    statistics
}

#[cfg(test)]
mod tests;
