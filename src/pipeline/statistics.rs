//! Where the time of a run goes: busy stages, slots in flight, latencies, and what
//! bounds.
//!
//! Stage one has three states, and their shares of the wall time say where to
//! look: it *fills*, it *stalls* because no slot is free, or it waits for *items*.
//! The largest is what holds a run up; if that is the stall, what comes behind
//! stage one does: the device, unpacking, or whoever takes results.

use super::batch::Batch;
use super::counters::Counters;
use crate::workload::Workload;
use hdrhistogram::Histogram;
use parking_lot::Mutex;
use std::fmt;
use std::time::{Duration, Instant};

/// The longest latency that is told from longer ones: an hour.
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;

/// Digits that a latency is kept to.
const LATENCY_DIGITS: u8 = 2;

/// What can hold the others up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Whoever gives items.
    Input,
    /// Stage one: items are written into pinned memory and given to the device.
    Fill,
    /// Stage two: batches are on the device.
    Device,
    /// Stage three: results are read out.
    Unpack,
    /// Whoever takes results.
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

/// The time that something took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StageTime {
    /// In nanoseconds.
    pub busy_ns: u64,
    /// Of the wall time, 0 to 1.
    pub share: f64,
    /// Batches that it was taken for.
    pub batches: u64,
}

/// Latencies as a histogram, each kept to two digits, up to an hour.
#[derive(Clone, PartialEq)]
pub struct Latencies(Histogram<u64>);

impl Latencies {
    fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LATENCY_NS_MAX, LATENCY_DIGITS);
        Latencies(histogram.expect("the bounds are in order and the digits below 6"))
    }

    /// Takes room for nothing: every latency up to the longest has its count.
    fn add(&mut self, latency: Duration) {
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.0.saturating_record(ns.max(1));
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The latency in nanoseconds that a share `quantile` of them, 0 to 1, does not
    /// exceed; 0 if there are none.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        self.0.value_at_quantile(quantile)
    }

    /// The longest in nanoseconds.
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
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// From the first closed batch to the last one's results, or to now while one
    /// is on the device; without the time that batches were verified in, or ways to
    /// replay tried. Shares are of this.
    pub wall_ns: u64,
    /// Stage one at work: writing items, and giving batches to the device.
    pub fill: StageTime,
    /// While at least one batch was on the device: from its submission to the
    /// moment it was seen done.
    pub device: StageTime,
    /// Stage three at work: reading results out.
    pub unpack: StageTime,
    /// Stage one with a closed batch and no free slot.
    pub stall: StageTime,
    /// Stage one with nothing to do, and more to come: no items, or not enough to
    /// close a batch.
    pub input: StageTime,
    /// Stage three with results that nobody took yet.
    pub output: StageTime,
    /// Slots of all devices.
    pub slots: usize,
    /// Slots on the device on average: the sum over slots of the time that they
    /// were in flight, by the wall time.
    pub slots_in_flight: f64,
    /// Busy time of filling, the device and unpacking together, by the wall time: 1
    /// is one stage after the other, 3 is all three always.
    pub overlap: f64,
    /// [`Timeline::device_overlap`](super::Timeline::device_overlap) of the batches
    /// that were sampled, if any were.
    pub device_overlap: Option<f64>,
    /// What holds the others up; `None` before the first batch.
    pub bound: Option<Stage>,
    /// Of batches, from submission to the moment they were seen done.
    pub batch_latency: Latencies,
    /// Of items, from the moment that stage one took them to their result.
    pub item_latency: Latencies,
}

impl Statistics {
    /// What a stage took.
    pub fn time(&self, stage: Stage) -> StageTime {
        match stage {
            Stage::Input => self.input,
            Stage::Fill => self.fill,
            Stage::Device => self.device,
            Stage::Unpack => self.unpack,
            Stage::Output => self.output,
        }
    }

    /// The largest of what stage one does, if it hardly waits for those behind, or has
    /// not given them its last batch long ago (`drained_ns`); else the largest of those.
    fn find_bound(&self, threads: Threads, drained_ns: u64) -> Stage {
        let longest = |stages: &[Stage]| {
            let longest = stages.iter().max_by_key(|stage| self.time(**stage).busy_ns);
            *longest.expect("there are some")
        };
        let first = match threads {
            Threads::Own => longest(&[Stage::Fill, Stage::Input]),
            Threads::Caller => longest(&[Stage::Fill, Stage::Input, Stage::Unpack]),
        };
        // What bounds is at work nearly all the time; items that do not come are not.
        let waits = match first {
            Stage::Input => 1,
            _ => 3,
        };
        let stall = self.stall.busy_ns;
        if self.time(first).busy_ns >= (waits * stall).max(stall + drained_ns) {
            return first;
        }
        // Slots that stage three holds are not on the device.
        match self.unpack.busy_ns + self.output.busy_ns > self.device.busy_ns {
            true => longest(&[Stage::Unpack, Stage::Output]),
            false => Stage::Device,
        }
    }

    /// Which stage bounds the run, in a sentence.
    pub fn sentence(&self) -> String {
        let Some(bound) = self.bound else {
            return "no batch has run".to_owned();
        };
        let share = |stage: Stage| percent(self.time(stage).share);
        let own = share(bound);
        let start = match bound {
            Stage::Input => format!("input-bound: {own} of the time no input was ready"),
            Stage::Fill => format!("fill-bound: filling took {own} of the time"),
            Stage::Device => format!("device-bound: the device was busy {own} of the time"),
            Stage::Unpack => format!("unpack-bound: unpacking took {own} of the time"),
            Stage::Output => format!("output-bound: {own} of the time results waited to be taken"),
        };
        let named = [
            (Stage::Fill, "filling"),
            (Stage::Device, "device"),
            (Stage::Unpack, "unpacking"),
        ];
        let others = named.iter().filter(|(stage, _)| *stage != bound);
        let others: Vec<String> = others
            .map(|(stage, name)| format!("{name} {}", share(*stage)))
            .collect();
        format!("{start}; {}", others.join(", "))
    }
}

fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

/// What the stages note while they run.
pub(super) struct Meter {
    flight: Mutex<Flight>,
    items: Mutex<Items>,
    slots: usize,
}

/// The items that have their results.
#[derive(Clone, Default)]
struct Items {
    latencies: Latencies,
    batches: u64,
    last: Option<Instant>,
}

/// The batches on the device, summed over time.
#[derive(Clone)]
struct Flight {
    /// When the first batch closed, and when the last was heard of.
    first: Option<Instant>,
    last: Option<Instant>,
    last_submitted: Option<Instant>,
    in_flight: u32,
    /// With any in flight.
    busy: Duration,
    /// By slot.
    slot_time: Duration,
    latencies: Latencies,
}

impl Flight {
    /// Adds what was in flight until `now`.
    fn sum(&mut self, now: Instant) {
        let last = self.last.unwrap_or(now);
        if self.in_flight > 0 {
            let since = now.saturating_duration_since(last);
            self.busy += since;
            self.slot_time += since * self.in_flight;
        }
        self.last = Some(last.max(now));
    }
}

impl Meter {
    pub(super) fn new(slots: usize) -> Self {
        Meter {
            flight: Mutex::new(Flight {
                first: None,
                last: None,
                last_submitted: None,
                in_flight: 0,
                busy: Duration::ZERO,
                slot_time: Duration::ZERO,
                latencies: Latencies::new(),
            }),
            items: Mutex::default(),
            slots,
        }
    }

    /// Slots of all devices.
    pub(super) fn slots(&self) -> usize {
        self.slots
    }

    /// A batch that closed at `closed_at` is about to go to the device.
    pub(super) fn submitted(&self, closed_at: Instant, now: Instant) {
        let mut flight = self.flight.lock();
        flight.first.get_or_insert(closed_at);
        flight.sum(now);
        flight.last_submitted = Some(now);
        flight.in_flight += 1;
    }

    /// The last one was tried until `begun`, and is on the device only from there.
    pub(super) fn tried(&self, begun: Instant) {
        self.flight.lock().last_submitted = Some(begun);
    }

    /// The device did not take it.
    pub(super) fn refused(&self) {
        let mut flight = self.flight.lock();
        flight.sum(Instant::now());
        flight.in_flight -= 1;
    }

    /// It came back, one way or the other.
    pub(super) fn seen(&self, submitted_at: Instant, now: Instant) {
        let mut flight = self.flight.lock();
        flight.sum(now);
        flight.in_flight -= 1;
        flight
            .latencies
            .add(now.saturating_duration_since(submitted_at));
    }

    /// Its items have their results.
    pub(super) fn unpacked<W: Workload>(&self, batch: &Batch<W>, now: Instant) {
        let mut items = self.items.lock();
        items.batches += 1;
        items.last = Some(now);
        for entry in &batch.entries {
            let latency = now.saturating_duration_since(entry.accepted_at);
            items.latencies.add(latency);
        }
    }

    /// The statistics so far, for stages of one thread or of several.
    pub(super) fn statistics(&self, counters: &Counters, threads: Threads) -> Statistics {
        let mut flight = self.flight.lock().clone();
        if flight.in_flight > 0 {
            flight.sum(Instant::now());
        }
        let items = self.items.lock().clone();
        statistics(flight, items, counters, self.slots, threads)
    }
}

/// Who runs the stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Threads {
    /// The caller runs all of them, one after the other.
    Caller,
    /// Each has its own.
    Own,
}

fn statistics(
    flight: Flight,
    items: Items,
    counters: &Counters,
    slots: usize,
    threads: Threads,
) -> Statistics {
    let last = flight.last.max(items.last);
    let wall = match (flight.first, last) {
        (Some(first), Some(last)) => last.saturating_duration_since(first),
        _ => Duration::ZERO,
    };
    // Stage one waits meanwhile, and the batch counts as in flight.
    let aside = Duration::from_nanos(counters.aside_ns());
    let wall_ns = ns(wall.saturating_sub(aside));
    let drained = match (flight.last_submitted, last) {
        (Some(given), Some(last)) => last.saturating_duration_since(given),
        _ => Duration::ZERO,
    };
    let drained_ns = ns(drained);
    let share = |ns: u64| ns as f64 / wall_ns.max(1) as f64;
    let time = |busy_ns: u64, batches: u64| StageTime {
        busy_ns,
        share: share(busy_ns),
        batches,
    };
    let fill = time(counters.fill_ns + counters.submit_ns, counters.batches);
    let busy = flight.busy.saturating_sub(aside);
    let device = time(ns(busy), flight.latencies.count());
    let unpack = time(counters.unpack_ns, items.batches);
    let stall = time(counters.stall_ns, counters.batches);
    let output = time(counters.output_ns, items.batches);
    let own = match threads {
        Threads::Own => 0,
        Threads::Caller => unpack.busy_ns,
    };
    let busy = fill.busy_ns + stall.busy_ns + own + drained_ns;
    let mut statistics = Statistics {
        wall_ns,
        fill,
        device,
        unpack,
        stall,
        input: time(wall_ns.saturating_sub(busy), counters.batches),
        output,
        slots,
        slots_in_flight: share(ns(flight.slot_time.saturating_sub(aside))),
        overlap: fill.share + device.share + unpack.share,
        device_overlap: None,
        bound: None,
        batch_latency: flight.latencies,
        item_latency: items.latencies,
    };
    statistics.bound = (wall_ns > 0).then(|| statistics.find_bound(threads, drained_ns));
    statistics
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
