//! Measures which way to replay a bucket is fastest, with the bucket's first batch.
//!
//! That batch is replayed in every way before it runs: a few times in a row, then waited for, so
//! that the time of the host's calls and the device's time both count. The ways take turns, so
//! that a change of clock rates or of other load affects all of them. Disturbances only add time,
//! so the shortest time of each way is compared. The policy's deadline holds for each replay. The
//! slots of a device share the choices.

use super::audit::AllowedMemory;
use super::deadline::wait_within;
use super::graph_retry::is_of_graph;
use super::ready_batch::{ReadyBatch, fence_all};
use super::shadow_check::{restore, updated_inputs};
use super::{Bindings, Buckets, Mode, Policy, Replay, Way};
use crate::backend::{Backend, DeviceSlot, Queue, Streams};
use crate::error::{Context, Result};
use crate::record::BufferId;
use crate::workload::Extent;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// How much faster another way has to be than the first, in percent of the first one's time.
const MARGIN_PERCENT: u64 = 3;
/// The most replays in a row.
const BURST_MAX: u64 = 4;
/// The longest time that replays in a row may take, in nanoseconds.
const BURST_NS: u64 = 2_000_000;
/// Measurements of each way: at least `TURNS_MIN`, and up to `TURNS_MAX` while all of them
/// together take no longer than `TURNS_NS` nanoseconds.
const TURNS_MIN: u32 = 2;
const TURNS_MAX: u32 = 9;
const TURNS_NS: u128 = 20_000_000;

/// What [`Mode::Auto`](super::Mode::Auto) chose for the batches of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Chosen {
    /// The index of the device in its engine; 0 without an engine.
    pub device: usize,
    /// The index of the bucket; 0 is the smallest.
    pub bucket: usize,
    /// The largest extent of its batches.
    pub capacity: Extent,
    /// How they are replayed.
    pub way: Way,
    /// The measurements of all ways. Empty if a batch cannot run twice, because its kernels may
    /// write declared memory or change an input that is uploaded in part.
    pub tried: Vec<Tried>,
}

/// A way to replay, and how fast it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tried {
    /// The way.
    pub way: Way,
    /// The time from one batch to the next in nanoseconds; `None` if the device refused the
    /// graph.
    pub period_ns: Option<u64>,
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bucket {}: {}", self.capacity, self.way)?;
        if self.tried.is_empty() {
            return f.write_str(", not measured: a batch changes its inputs, and cannot run twice");
        }
        let time = |tried: &Tried| match tried.period_ns {
            Some(ns) if ns >= 10_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
            Some(ns) => format!("{:.1} us", ns as f64 / 1e3),
            None => "refused".to_owned(),
        };
        let (own, others): (Vec<_>, Vec<_>) =
            self.tried.iter().partition(|tried| tried.way == self.way);
        for tried in own {
            write!(f, " {} a batch", time(tried))?;
        }
        for (place, tried) in others.into_iter().enumerate() {
            let before = if place == 0 { "; " } else { ", " };
            write!(f, "{before}{} {}", tried.way, time(tried))?;
        }
        Ok(())
    }
}

/// The choices for one device, shared by its slots.
#[derive(Clone, Default)]
pub(crate) struct Choices(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    /// The buckets that have been measured.
    buckets: Option<Arc<Buckets>>,
    chosen: Vec<Option<Chosen>>,
}

impl Table {
    fn is_of(&self, buckets: &Arc<Buckets>) -> bool {
        let own = self.buckets.as_ref();
        own.is_some_and(|own| Arc::ptr_eq(own, buckets))
    }
}

impl Choices {
    /// Forgets choices for other buckets than these. Returns the way of each bucket, if chosen.
    pub(super) fn start(&self, buckets: &Arc<Buckets>) -> Vec<Option<Way>> {
        let mut table = self.0.lock();
        if !table.is_of(buckets) {
            table.buckets = Some(Arc::clone(buckets));
            table.chosen = vec![None; buckets.as_slice().len()];
        }
        let way = |chosen: &Option<Chosen>| chosen.as_ref().map(|chosen| chosen.way);
        table.chosen.iter().map(way).collect()
    }

    pub(super) fn way(&self, buckets: &Arc<Buckets>, bucket: usize) -> Option<Way> {
        let table = self.0.lock();
        let known = table.chosen.get(bucket).filter(|_| table.is_of(buckets));
        known?.as_ref().map(|chosen| chosen.way)
    }

    pub(super) fn add(&self, buckets: &Arc<Buckets>, chosen: Chosen) {
        let mut table = self.0.lock();
        if table.is_of(buckets) {
            let place = chosen.bucket;
            table.chosen[place] = Some(chosen);
        }
    }

    /// All choices, in the order of buckets.
    pub(crate) fn to_vec(&self) -> Vec<Chosen> {
        self.0.lock().chosen.iter().flatten().cloned().collect()
    }

    /// The choices for all devices of an engine.
    pub(crate) fn of_devices(devices: &[Choices]) -> Vec<Chosen> {
        let of = |(device, choices): (usize, &Choices)| {
            let chosen = choices.to_vec().into_iter();
            chosen.map(move |chosen| Chosen { device, ..chosen })
        };
        devices.iter().enumerate().flat_map(of).collect()
    }
}

/// A batch in a slot that is replayed in every way.
pub(super) struct Measurement<'a> {
    pub(super) backend: &'a dyn Backend,
    pub(super) bindings: &'a Bindings,
    pub(super) memory: AllowedMemory<'a>,
    pub(super) live: Extent,
    pub(super) policy: &'a Policy,
}

/// A way to replay, ready unless the device refused its graph.
struct Candidate {
    tried: Tried,
    ready: Option<ReadyBatch>,
}

impl Measurement<'_> {
    /// Makes the batch ready in every way, measures each, and leaves the batch as it was. Returns
    /// the way to take, ready, and all measurements.
    ///
    /// # Errors
    /// As [`ReadyBatch::make`] and [`ReadyBatch::submit`], but for graphs that the device
    /// refuses; [`ErrorKind::Deadline`](crate::ErrorKind::Deadline).
    pub(super) fn run(&self, slot: &mut dyn DeviceSlot) -> Result<(Way, ReadyBatch, Vec<Tried>)> {
        let mut candidates = Vec::new();
        let measured = self
            .make_candidates(slot, &mut candidates)
            .and_then(|()| self.measure(slot, &mut candidates));
        if let Err(error) = measured {
            discard(slot, candidates);
            return Err(error);
        }
        let tried: Vec<Tried> = candidates.iter().map(|it| it.tried).collect();
        let picked = candidates.remove(pick(&tried));
        discard(slot, candidates);
        let ready = picked.ready.expect("only a measured way is picked");
        Ok((picked.tried.way, ready, tried))
    }

    fn make_candidates(
        &self,
        slot: &mut dyn DeviceSlot,
        candidates: &mut Vec<Candidate>,
    ) -> Result<()> {
        for way in self.policy.ways() {
            let made = ReadyBatch::make(slot, self.bindings, &self.memory, way, self.policy);
            let ready = match made {
                // The host launches it, as it does in mode graph.
                Ok(ready) if way.mode == Mode::Resident && !ready.is_resident => {
                    ready.discard(slot);
                    continue;
                }
                Ok(ready) => Some(ready),
                Err(error) if is_of_graph(&error) => {
                    tracing::debug!(%way, %error, "the device refuses the graph");
                    None
                }
                Err(error) => return Err(error),
            };
            let period_ns = None;
            let tried = Tried { way, period_ns };
            candidates.push(Candidate { tried, ready });
        }
        Ok(())
    }

    /// Measures the candidates. What was submitted is fenced, also after an error.
    fn measure(&self, slot: &mut dyn DeviceSlot, candidates: &mut [Candidate]) -> Result<()> {
        let measured = self.take_turns(slot, candidates);
        if measured.is_err() {
            // The first error is the one to report.
            let _ = fence_all(slot, self.policy.streams);
        }
        measured
    }

    fn take_turns(&self, slot: &mut dyn DeviceSlot, candidates: &mut [Candidate]) -> Result<()> {
        // The host may read its memory only when no work is in flight.
        fence_all(slot, self.policy.streams).within(|| "earlier work")?;
        wait_within(slot, self.policy.deadline).within(|| "earlier work")?;
        let inputs = updated_inputs(self.backend, &*slot, self.bindings);
        let mut least_ns = u64::MAX;
        for (_, ready) in made(candidates) {
            // The first replay takes longer, as code is loaded.
            least_ns = least_ns.min(self.period_ns(slot, ready, &inputs, 1)?);
        }
        let burst = match inputs.is_empty() {
            true => (BURST_NS / least_ns.max(1)).clamp(1, BURST_MAX),
            // The host has to restore the inputs before each replay.
            false => 1,
        };
        let start = Instant::now();
        for turn in 0..TURNS_MAX {
            if turn >= TURNS_MIN && start.elapsed().as_nanos() > TURNS_NS {
                break;
            }
            for (tried, ready) in made(candidates) {
                let ns = self.period_ns(slot, ready, &inputs, burst)?;
                tried.period_ns = Some(tried.period_ns.map_or(ns, |least| least.min(ns)));
            }
        }
        restore(slot, &inputs);
        Ok(())
    }

    /// Replays the batch `burst` times in a row and waits for the last. Returns the time from
    /// one to the next in nanoseconds.
    fn period_ns(
        &self,
        slot: &mut dyn DeviceSlot,
        ready: &ReadyBatch,
        inputs: &[(BufferId, Vec<u8>)],
        burst: u64,
    ) -> Result<u64> {
        restore(slot, inputs);
        let Policy {
            streams, deadline, ..
        } = *self.policy;
        let start = Instant::now();
        for replay in 0..burst {
            if streams == Streams::PerStage && replay > 0 {
                // The upload overwrites buffers that the replay before still reads.
                slot.join(Queue::Download, Queue::Upload)?;
            }
            let submission = ready.untimed(self.live, streams);
            ready.submit(slot, submission, &mut Replay::default())?;
        }
        let deadline = deadline.map(|deadline| deadline.saturating_mul(burst as u32));
        wait_within(slot, deadline)?;
        Ok(start.elapsed().as_nanos() as u64 / burst)
    }
}

fn discard(slot: &mut dyn DeviceSlot, candidates: Vec<Candidate>) {
    let ready = candidates.into_iter().filter_map(|it| it.ready);
    ready.for_each(|ready| ready.discard(slot));
}

/// The candidates that the device did not refuse.
fn made(candidates: &mut [Candidate]) -> impl Iterator<Item = (&mut Tried, &ReadyBatch)> {
    let candidates = candidates.iter_mut();
    candidates.filter_map(|it| Some((&mut it.tried, it.ready.as_ref()?)))
}

/// The index of the first way, unless another is faster by more than noise.
fn pick(tried: &[Tried]) -> usize {
    let known = || {
        let places = tried.iter().enumerate();
        places.filter_map(|(place, tried)| Some((place, tried.period_ns?)))
    };
    let first = known().next().expect("nothing refuses plain calls");
    let best = known().min_by_key(|(_, ns)| *ns).expect("there is a first");
    match best.1 * 100 < first.1 * (100 - MARGIN_PERCENT) {
        true => best.0,
        false => first.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(periods_ns: [Option<u64>; 4]) -> Vec<Tried> {
        let policy = Policy::of(Mode::Auto);
        let pairs = policy.ways().zip(periods_ns);
        pairs
            .map(|(way, period_ns)| Tried { way, period_ns })
            .collect()
    }

    #[test]
    fn the_first_way_is_taken_unless_another_is_faster_by_more_than_noise() {
        for (periods_ns, picked) in [
            ([Some(1000), Some(1000), Some(1000), Some(1000)], 0),
            ([Some(1000), Some(975), Some(971), Some(970)], 0),
            ([Some(1000), Some(980), Some(969), Some(2000)], 2),
            ([Some(1000), Some(100), Some(100), Some(99)], 3),
            ([None, Some(1000), Some(990), Some(500)], 3),
            ([None, None, Some(1000), Some(999)], 2),
        ] {
            assert_eq!(pick(&tried(periods_ns)), picked, "{periods_ns:?}");
        }
    }

    #[test]
    fn a_choice_is_printed_with_its_measurements() {
        let tried = tried([Some(1_030_000), None, Some(90_040_000), Some(812_000)]);
        let mut chosen = Chosen {
            device: 0,
            bucket: 1,
            capacity: Extent::from([16384, 64]),
            way: tried[3].way,
            tried,
        };
        assert_eq!(
            chosen.to_string(),
            "bucket [16384, 64]: stream/kernels 812.0 us a batch; graph/batch 1030.0 us, \
             graph/kernels refused, stream/batch 90.0 ms"
        );
        (chosen.way, chosen.tried) = (chosen.tried[0].way, Vec::new());
        assert_eq!(
            chosen.to_string(),
            "bucket [16384, 64]: graph/batch, not measured: a batch changes its inputs, and cannot \
             run twice"
        );
    }
}
