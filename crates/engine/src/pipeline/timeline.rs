//! [`Timeline`]: what slots and stages did when, for a sample of the batches.
//!
//! Batches are sampled in windows of consecutive ones, to show how neighbours overlap. The stages
//! record the spans of the host; the spans of the device come from the timestamps of a timed replay
//! (`crate::replay::timed`).

mod chrome;
mod drawing;

use crate::backend::{TIMESTAMPS, Timestamps, host_ns};
use crate::error::{Error, Result};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;
use tapeloop_error::internal::LaterFields;

/// The spans for which a timeline has memory from the start, 2.6 MB; it takes more where they are more.
const SPANS_RESERVED: usize = 1 << 16;

/// The most spans of a batch: one of each kind, and a second wait for a worker.
const SPANS_OF_BATCH_MAX: usize = SpanKind::ALL.len() + 1;

/// Which batches a timeline samples. Later versions may add fields: end a literal with
/// `..TimelineConfig::default()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelineConfig {
    /// The number of batches from one window to the next.
    pub every: u64,
    /// The number of consecutive batches in a window; `None` for two per slot plus two.
    pub window: Option<u64>,
    /// The largest number of spans that are kept; beyond it the oldest are dropped. A batch has up
    /// to eleven.
    pub spans_max: usize,
    #[doc(hidden)]
    pub later: LaterFields,
}

impl Default for TimelineConfig {
    /// A window in 8,192 batches costs less than half a percent (`DECISIONS.md#times-and-timelines`).
    fn default() -> Self {
        TimelineConfig {
            every: 8192,
            window: None,
            spans_max: 1 << 16,
            later: LaterFields::NONE,
        }
    }
}

impl TimelineConfig {
    /// Checks the settings of a timeline.
    ///
    /// # Errors
    /// `ErrorKind::Config`.
    pub(super) fn check(&self) -> Result<()> {
        let config_error = |text: String, fix: &str| Err(Error::config(text).fix(fix));
        if self.every == 0 || self.window == Some(0) {
            let text = "a timeline with every = 0 or window = 0 samples no batch";
            return config_error(text.to_owned(), "set at least 1");
        }
        if self.spans_max < SPANS_OF_BATCH_MAX {
            let text = format!("spans_max = {} does not hold one batch", self.spans_max);
            let fix = format!("set at least {SPANS_OF_BATCH_MAX}, or leave the timeline out");
            return config_error(text, &fix);
        }
        Ok(())
    }
}

/// The activity of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpanKind {
    /// A closed batch waits for a free slot.
    Stall,
    /// A batch in a slot waits for one of the engine's workers, to write or to read it, or on the CPU for a
    /// thread of the pool. Small batches are written and read without them.
    Worker,
    /// Stage one writes items into pinned memory.
    Fill,
    /// Stage one submits the batch to the device.
    Submit,
    /// The batch is in flight, from submission until it was found done.
    Flight,
    /// Stage three reads the results.
    Unpack,
    /// The device uploads: from its start to its last upload.
    Upload,
    /// The device runs kernels: from the last upload to the last kernel.
    Kernels,
    /// The device downloads: from the last kernel to the last download.
    Download,
    /// The consumer of a run takes the results.
    Take,
}

impl SpanKind {
    /// All of them.
    pub const ALL: &'static [SpanKind] = &[
        SpanKind::Stall,
        SpanKind::Worker,
        SpanKind::Fill,
        SpanKind::Submit,
        SpanKind::Flight,
        SpanKind::Unpack,
        SpanKind::Upload,
        SpanKind::Kernels,
        SpanKind::Download,
        SpanKind::Take,
    ];

    /// The activities of the device, in order.
    pub const OF_DEVICE: [SpanKind; 3] = [SpanKind::Upload, SpanKind::Kernels, SpanKind::Download];

    /// The name in traces.
    pub fn name(self) -> &'static str {
        match self {
            SpanKind::Stall => "stall",
            SpanKind::Worker => "wait for a worker",
            SpanKind::Fill => "fill",
            SpanKind::Submit => "submit",
            SpanKind::Flight => "in flight",
            SpanKind::Unpack => "unpack",
            SpanKind::Upload => "upload",
            SpanKind::Kernels => "kernels",
            SpanKind::Download => "download",
            SpanKind::Take => "take",
        }
    }

    /// Whether this is an activity of the device.
    pub fn is_of_device(self) -> bool {
        SpanKind::OF_DEVICE.contains(&self)
    }
}

/// An activity of one batch, from start to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Span {
    /// The batch's number among all batches that were submitted, counted from 0.
    pub batch: u64,
    /// Its slot, counted over all devices.
    pub slot: usize,
    /// The activity.
    pub kind: SpanKind,
    /// The start, in nanoseconds of [`host_ns`].
    pub start_ns: u64,
    /// The end, in nanoseconds of [`host_ns`].
    pub end_ns: u64,
}

/// The spans of the sampled batches. Its owner may change them: the methods take any spans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// The spans, sorted by start.
    pub spans: Vec<Span>,
    /// Slots of all devices. Each device has as many, those of the first one first.
    pub slots: usize,
    /// The names of the devices.
    pub devices: Vec<String>,
    /// The number of batches that were submitted, sampled or not.
    pub batches: u64,
    /// The number of spans that were dropped to make room.
    pub spans_dropped: u64,
}

impl Timeline {
    /// The average number of activities of a device at the same time, while there is any: the sum
    /// of all device spans divided by the time that they cover, device by device. 1 means that they
    /// run in sequence. `None` without device spans.
    pub fn device_overlap(&self) -> Option<f64> {
        let of_device = || self.spans.iter().filter(|span| span.kind.is_of_device());
        let length = |span: &Span| span.end_ns.saturating_sub(span.start_ns) as f64;
        let sum: f64 = of_device().map(length).sum();
        // Without names of devices there is one.
        let covered: f64 = (0..self.devices.len().max(1))
            .map(|device| {
                let of_this_device = of_device().filter(|span| self.device_of(span.slot) == device);
                covered_ns(
                    of_this_device
                        .map(|span| (span.start_ns, span.end_ns))
                        .collect(),
                ) as f64
            })
            .sum();
        (covered > 0.0).then(|| sum / covered)
    }

    /// The device of a slot, as its place in [`Timeline::devices`].
    pub fn device_of(&self, slot: usize) -> usize {
        match self.devices.len() {
            0 | 1 => 0,
            devices => slot / (self.slots / devices).max(1),
        }
    }

    /// How several devices are called: `device 1 (NVIDIA H200)`. `None` if there is only one.
    fn device_title(&self, device: usize) -> Option<String> {
        let name = self.devices.get(device).filter(|_| self.devices.len() > 1);
        name.map(|name| format!("device {device} ({name})"))
    }

    /// The numbers of the sampled batches, as ranges.
    pub fn windows(&self) -> Vec<std::ops::Range<u64>> {
        let mut batches: Vec<u64> = self.spans.iter().map(|span| span.batch).collect();
        batches.sort_unstable();
        batches.dedup();
        let mut windows: Vec<std::ops::Range<u64>> = Vec::new();
        for batch in batches {
            let end = batch.saturating_add(1);
            match windows.last_mut() {
                Some(window) if window.end == batch => window.end = end,
                _ => windows.push(batch..end),
            }
        }
        windows
    }
}

/// The length of the union of ranges.
fn covered_ns(mut ranges: Vec<(u64, u64)>) -> u64 {
    ranges.sort_unstable();
    let (mut covered, mut reached) = (0, 0);
    for (start, end) in ranges {
        covered += end.saturating_sub(start.max(reached));
        reached = reached.max(end);
    }
    covered
}

/// Selects the batches to sample, and keeps their spans.
pub(super) struct Sampler {
    every: u64,
    window: u64,
    /// The number of batches until every slot has used its graphs and made those with timestamps.
    warm: u64,
    slots: usize,
    devices: Vec<String>,
    spans_max: usize,
    spans: Mutex<VecDeque<Span>>,
    spans_dropped: AtomicU64,
}

impl Sampler {
    /// For `slots` slots of all `devices`, which are names.
    pub(super) fn new(config: &TimelineConfig, slots: usize, devices: Vec<String>) -> Self {
        // The clock of `host_ns` starts at its first call.
        host_ns(Instant::now());
        Sampler {
            every: config.every,
            // So that a round of all slots is left when the batches before the window have left
            // them.
            window: config.window.unwrap_or(2 * slots as u64 + 2),
            warm: 2 * slots as u64,
            slots,
            devices,
            spans_max: config.spans_max,
            spans: Mutex::new(VecDeque::with_capacity(
                config.spans_max.min(SPANS_RESERVED),
            )),
            spans_dropped: AtomicU64::new(0),
        }
    }

    /// Whether to sample a batch. The first batches are sampled, for the sake of short runs, and
    /// then windows after the warm-up.
    pub(super) fn wants(&self, batch: u64) -> bool {
        match batch.checked_sub(self.warm) {
            None => true,
            Some(place) => place % self.every < self.window,
        }
    }

    /// Keeps a span of the host.
    pub(super) fn add(
        &self,
        (batch, slot): (u64, usize),
        kind: SpanKind,
        start: Instant,
        end: Instant,
    ) {
        self.keep(Span {
            batch,
            slot,
            kind,
            start_ns: host_ns(start),
            end_ns: host_ns(end),
        });
    }

    /// Keeps the device spans of a batch that was in flight from `submitted` to `seen`.
    pub(super) fn add_timestamps(
        &self,
        (batch, slot): (u64, usize),
        timestamps: Timestamps,
        submitted: Instant,
        seen: Instant,
    ) {
        let Some(moments) = moments(timestamps, host_ns(submitted), host_ns(seen)) else {
            return;
        };
        for (kind, ends) in SpanKind::OF_DEVICE.into_iter().zip(moments.windows(2)) {
            let (start_ns, end_ns) = (ends[0], ends[1]);
            self.keep(Span {
                batch,
                slot,
                kind,
                start_ns,
                end_ns,
            });
        }
    }

    /// Keeps a span, in place of the oldest if the timeline is full.
    fn keep(&self, span: Span) {
        let mut spans = self.spans.lock();
        if spans.len() == self.spans_max {
            spans.pop_front();
            self.spans_dropped.fetch_add(1, Relaxed);
        }
        spans.push_back(span);
    }

    /// The timeline so far.
    pub(super) fn timeline(&self, batches: u64) -> Timeline {
        let mut spans: Vec<Span> = self.spans.lock().iter().copied().collect();
        spans.sort_by_key(|span| (span.start_ns, span.end_ns));
        Timeline {
            spans,
            slots: self.slots,
            devices: self.devices.clone(),
            batches,
            spans_dropped: self.spans_dropped.load(Relaxed),
        }
    }
}

/// Makes timestamps monotonic: each is at least the one before. `None` if one is missing, or if all
/// lie outside the flight, as those of a simulated device do.
fn moments(timestamps: Timestamps, submitted: u64, seen: u64) -> Option<[u64; TIMESTAMPS]> {
    let mut moments = [0; TIMESTAMPS];
    let mut reached = 0;
    for (moment, timestamp) in moments.iter_mut().zip(timestamps) {
        reached = timestamp?.max(reached);
        *moment = reached;
    }
    let is_inside = moments[0] <= seen && submitted <= moments[TIMESTAMPS - 1];
    is_inside.then_some(moments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn sampler(config: TimelineConfig) -> Sampler {
        Sampler::new(&config, 3, vec!["GPU".to_owned()])
    }

    #[test]
    fn windows_come_after_the_first_batches_and_then_now_and_again() {
        let sampler = sampler(TimelineConfig {
            every: 100,
            window: Some(4),
            ..TimelineConfig::default()
        });
        let sampled: Vec<u64> = (0..220).filter(|batch| sampler.wants(*batch)).collect();
        let expected: Vec<u64> = (0..10).chain(106..110).chain(206..210).collect();
        assert_eq!(sampled, expected);
        let default = Sampler::new(&TimelineConfig::default(), 3, Vec::new());
        let sampled = (0..6 + 8192).filter(|batch| default.wants(*batch)).count();
        assert_eq!(sampled, 6 + 8);
    }

    #[test]
    fn the_latest_spans_are_kept() {
        let config = TimelineConfig {
            spans_max: 12,
            ..TimelineConfig::default()
        };
        let (sampler, now) = (sampler(config), Instant::now());
        for batch in 0..20 {
            let end = now + Duration::from_nanos(batch);
            sampler.add((batch, 0), SpanKind::Fill, now, end);
        }
        let timeline = sampler.timeline(20);
        assert_eq!(timeline.spans.len(), 12);
        assert_eq!(timeline.spans_dropped, 8);
        assert_eq!(timeline.windows().first(), Some(&(8..20)));
    }

    #[test]
    fn timestamps_become_spans_that_follow_each_other() {
        let timestamps = [Some(10), Some(25), Some(20), Some(40)];
        assert_eq!(moments(timestamps, 5, 50), Some([10, 25, 25, 40]));
        assert_eq!(moments(timestamps, 41, 50), None, "before submission");
        assert_eq!(moments([Some(1), None, Some(2), Some(3)], 0, 9), None);
    }

    #[test]
    fn overlap_is_the_sum_of_spans_by_what_they_cover() {
        let span = |kind, start_ns, end_ns| Span {
            batch: 0,
            slot: 0,
            kind,
            start_ns,
            end_ns,
        };
        let mut timeline = Timeline {
            slots: 2,
            ..Timeline::default()
        };
        assert_eq!(timeline.device_overlap(), None);
        timeline.spans = vec![
            span(SpanKind::Fill, 0, 1000),
            span(SpanKind::Upload, 0, 10),
            span(SpanKind::Kernels, 5, 20),
            span(SpanKind::Download, 30, 35),
        ];
        assert_eq!(timeline.device_overlap(), Some(30.0 / 25.0));
        // The work of another device at the same time does not overlap with this one's.
        timeline.devices = vec!["A".to_owned(), "B".to_owned()];
        timeline.spans.push(Span {
            slot: 1,
            ..span(SpanKind::Kernels, 0, 35)
        });
        assert_eq!([0, 1].map(|slot| timeline.device_of(slot)), [0, 1]);
        assert_eq!(timeline.device_overlap(), Some(65.0 / 60.0));
    }

    #[test]
    fn a_timeline_of_nothing_is_refused() {
        let default = TimelineConfig::default();
        assert!(default.check().is_ok());
        for config in [
            TimelineConfig {
                every: 0,
                ..default
            },
            TimelineConfig {
                window: Some(0),
                ..default
            },
            TimelineConfig {
                spans_max: SPANS_OF_BATCH_MAX - 1,
                ..default
            },
        ] {
            let error = config.check().unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Config);
            assert!(error.fix_text().is_some());
        }
    }
}
