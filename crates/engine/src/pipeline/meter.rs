//! [`Meter`]: collects the times of the stages while they run.
//!
//! A thread that submits batches and a thread that finishes them write to parts of their own, so
//! that they do not wait for each other.

use super::batch::Batch;
use super::counters::Counters;
use super::statistics::{Latencies, StageThreads, Statistics, statistics};
use crate::workload::Workload;
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The number of latest intervals that a [`BusyTime`] keeps apart. An interval that begins before them
/// counts shorter, and each addition may look at all of them.
const RECENT_MAX: usize = 32;

/// The time during which at least one of several batches was in a stage.
///
/// Intervals are added when they end, and several threads add them, so one may begin before the
/// latest that were added. The latest are kept apart for that.
#[derive(Clone)]
pub(super) struct BusyTime {
    /// Disjoint intervals, in order.
    recent: Vec<(Instant, Instant)>,
    /// The summed length of the disjoint intervals before `recent`, and the end of the last of those.
    before: Duration,
    before_until: Option<Instant>,
    /// The lengths of all intervals that were added, summed.
    pub(super) summed: Duration,
}

impl Default for BusyTime {
    /// Allocates for [`RECENT_MAX`] intervals, so that [`BusyTime::add`] never does.
    fn default() -> Self {
        BusyTime {
            recent: Vec::with_capacity(RECENT_MAX),
            before: Duration::ZERO,
            before_until: None,
            summed: Duration::ZERO,
        }
    }
}

impl BusyTime {
    /// Adds an interval. The latest intervals are kept and merged, which gives the time in which at
    /// least one ran. When the list is full its older half becomes a sum: a later interval that
    /// begins before the end of that half counts from there on.
    pub(super) fn add(&mut self, start: Instant, end: Instant) {
        self.summed += end.saturating_duration_since(start);
        if self.recent.len() == RECENT_MAX {
            for (from, until) in self.recent.drain(..RECENT_MAX / 2) {
                self.before += until - from;
                self.before_until = Some(until);
            }
        }
        let mut start = self.before_until.map_or(start, |until| until.max(start));
        let mut end = end.max(start);
        let mut position = self.recent.len();
        while position > 0 && self.recent[position - 1].1 >= start {
            position -= 1;
            let (from, until) = self.recent[position];
            if from <= end {
                (start, end) = (start.min(from), end.max(until));
                self.recent.remove(position);
            }
        }
        self.recent.insert(position, (start, end));
    }

    /// The length of the union of all intervals.
    pub(super) fn busy(&self) -> Duration {
        let recent = self.recent.iter();
        self.before + recent.map(|&(from, until)| until - from).sum::<Duration>()
    }

    /// When the last interval ended.
    pub(super) fn until(&self) -> Option<Instant> {
        self.recent.last().map(|&(_, until)| until)
    }
}

/// The times of stage one, in which a batch gets a slot, is written and is submitted.
#[derive(Clone, Default)]
pub(super) struct Submitted {
    /// When the first batch closed.
    pub(super) first: Option<Instant>,
    /// When the last batch was written and given to its device: what follows is the drain.
    pub(super) last_given: Option<Instant>,
    /// Batches that are closed and not submitted.
    pub(super) closed: BusyTime,
    /// Closed batches that wait for a slot.
    pub(super) stalled: BusyTime,
    /// Closed batches that are being written or submitted.
    pub(super) starting: BusyTime,
    /// The time that batches with a slot waited for a worker, summed, and the number of these batches.
    pub(super) worker: Duration,
    pub(super) handed_over: u64,
}

/// The times of the other stages.
#[derive(Clone, Default)]
pub(super) struct Finished {
    pub(super) flight: BusyTime,
    /// `flight` by device; empty if there is only one device.
    pub(super) by_device: Vec<DeviceFlights>,
    pub(super) batch_latency: Latencies,
    pub(super) unpacking: BusyTime,
    /// The time that batches which were done waited for a worker, summed.
    pub(super) worker: Duration,
    pub(super) item_latency: Latencies,
    /// Batches whose items have their results.
    pub(super) batches: u64,
    /// When the last items had their results.
    pub(super) last: Option<Instant>,
}

/// The batches of one device that were in flight.
#[derive(Clone, Default)]
pub(super) struct DeviceFlights {
    pub(super) flight: BusyTime,
    /// The number of batches that were found done.
    pub(super) batches: u64,
}

/// A batch on its way to the device.
pub(super) struct StartTimes {
    pub(super) closed_at: Instant,
    pub(super) slot_at: Instant,
    /// When the batch began to be written.
    pub(super) started_at: Instant,
    /// When it was written. It counts as in flight from here on, as the device may begin before the call that
    /// submits it returns; that call counts in both stages.
    pub(super) filled_at: Instant,
}

pub(super) struct Meter {
    submitted: CachePadded<Mutex<Submitted>>,
    finished: CachePadded<Mutex<Finished>>,
    epoch: Instant,
    devices: usize,
    /// By slot: when its batch was submitted, in nanoseconds after the epoch; 0 without one.
    in_flight: Vec<CachePadded<AtomicU64>>,
}

impl Meter {
    /// For `slots` slots of all devices, those of the first device first.
    pub(super) fn new(slots: usize, devices: usize) -> Self {
        let mut finished = Finished::default();
        if devices > 1 {
            finished.by_device = vec![DeviceFlights::default(); devices];
        }
        Meter {
            submitted: CachePadded::default(),
            finished: CachePadded::new(Mutex::new(finished)),
            epoch: Instant::now(),
            devices,
            in_flight: (0..slots).map(|_| CachePadded::default()).collect(),
        }
    }

    /// Slots of all devices.
    pub(super) fn slots(&self) -> usize {
        self.in_flight.len()
    }

    /// The device of a slot.
    fn device_of(&self, slot: usize) -> usize {
        slot / (self.slots() / self.devices)
    }

    /// Notes that a batch was submitted to the device in `slot`, by a call that returned at `end`.
    pub(super) fn note_submitted(&self, slot: usize, start: &StartTimes, end: Instant) {
        let since = start.filled_at.saturating_duration_since(self.epoch);
        self.in_flight[slot].store(ns(since).max(1), Relaxed);
        self.add_start(start, end);
    }

    /// Notes that the device refused the batch in `slot` at `end`. It counts as in flight until then.
    pub(super) fn note_refused(&self, slot: usize, start: &StartTimes, end: Instant) {
        self.add_start(start, end);
        let mut finished = self.finished.lock();
        self.add_flight(&mut finished, slot, start.filled_at, end);
    }

    /// Adds the time of a flight in `slot`.
    fn add_flight(&self, finished: &mut Finished, slot: usize, from: Instant, until: Instant) {
        finished.flight.add(from, until);
        if let Some(device) = finished.by_device.get_mut(self.device_of(slot)) {
            device.flight.add(from, until);
        }
    }

    /// Adds the times of a start that ended at `end`.
    fn add_start(&self, start: &StartTimes, end: Instant) {
        let mut submitted = self.submitted.lock();
        let first = submitted.first.unwrap_or(start.closed_at);
        submitted.first = Some(first.min(start.closed_at));
        submitted.last_given = submitted.last_given.max(Some(start.filled_at));
        submitted.closed.add(start.closed_at, end);
        // Batches that wait for none must not push the latest intervals out.
        if start.slot_at > start.closed_at {
            submitted.stalled.add(start.closed_at, start.slot_at);
        }
        let waited = start.started_at.saturating_duration_since(start.slot_at);
        submitted.worker += waited;
        submitted.handed_over += u64::from(!waited.is_zero());
        submitted.starting.add(start.started_at, end);
    }

    /// Notes that the batch in `slot` has finished or failed.
    pub(super) fn note_batch_finished(&self, slot: usize, submitted_at: Instant, now: Instant) {
        self.in_flight[slot].store(0, Relaxed);
        let mut finished = self.finished.lock();
        self.add_flight(&mut finished, slot, submitted_at, now);
        if let Some(device) = finished.by_device.get_mut(self.device_of(slot)) {
            device.batches += 1;
        }
        let latency = now.saturating_duration_since(submitted_at);
        finished.batch_latency.add(latency);
    }

    /// Notes that the results of a batch, which was found done at `done_at`, were read from `start` on,
    /// and that its items have them.
    pub(super) fn note_unpacked<W: Workload>(
        &self,
        batch: &Batch<W>,
        done_at: Instant,
        start: Instant,
        now: Instant,
    ) {
        let mut finished = self.finished.lock();
        finished.unpacking.add(start, now);
        finished.worker += start.saturating_duration_since(done_at);
        finished.batches += 1;
        finished.last = finished.last.max(Some(now));
        for accepted_at in batch.measured() {
            let latency = now.saturating_duration_since(accepted_at);
            finished.item_latency.add(latency);
        }
    }

    /// The statistics so far. Batches in flight count up to now.
    pub(super) fn statistics(&self, counters: &Counters, threads: StageThreads) -> Statistics {
        let submitted = self.submitted.lock().clone();
        let mut finished = self.finished.lock().clone();
        let now = Instant::now();
        for (slot, since) in self.in_flight.iter().enumerate() {
            let since = since.load(Relaxed);
            if since > 0 {
                let submitted_at = self.epoch + Duration::from_nanos(since);
                self.add_flight(&mut finished, slot, submitted_at, now);
            }
        }
        let (slots, devices) = (self.slots(), self.devices);
        statistics(submitted, finished, counters, slots, devices, threads)
    }
}

pub(super) fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_intervals_count_once_in_any_order_of_their_ends() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut busy = BusyTime::default();
        for (from, until, union, summed) in [
            (10, 20, 10, 10),
            (15, 30, 20, 25),
            (40, 50, 30, 35),
            // This time is earlier than the latest.
            (0, 5, 35, 40),
            (60, 61, 36, 41),
            // Over all but the first.
            (12, 62, 57, 91),
            // Within another.
            (20, 30, 57, 101),
            (5, 10, 62, 106),
        ] {
            busy.add(at(from), at(until));
            let ms = (busy.busy().as_millis(), busy.summed.as_millis());
            assert_eq!(ms, (union, summed), "after {from} to {until}");
        }
        assert_eq!((busy.recent.len(), busy.until()), (1, Some(at(62))));
    }

    #[test]
    fn any_number_of_intervals_adds_up() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut busy = BusyTime::default();
        for interval in 0..1000 {
            busy.add(at(10 * interval), at(10 * interval + 4));
        }
        assert_eq!(busy.busy(), Duration::from_secs(4));
        // What was folded into a sum is not counted again.
        busy.add(at(0), at(9_994));
        assert_eq!(busy.until(), Some(at(9_994)));
        assert!(busy.busy() < Duration::from_millis(9_994));
        assert!(busy.busy() > Duration::from_secs(4));
    }

    #[test]
    fn batches_that_a_device_refused_or_finished_were_in_flight_on_it() {
        let meter = Meter::new(4, 2);
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let times = StartTimes {
            closed_at: at(0),
            slot_at: at(0),
            started_at: at(1),
            filled_at: at(3),
        };
        meter.note_refused(2, &times, at(8));
        meter.note_batch_finished(1, at(10), at(12));
        let finished = meter.finished.lock();
        let busy = finished.by_device.iter().map(|device| device.flight.busy());
        let busy: Vec<u128> = busy.map(|busy| busy.as_millis()).collect();
        assert_eq!((busy, finished.flight.busy().as_millis()), (vec![2, 5], 7));
    }
}
