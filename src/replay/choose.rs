//! Which way to replay is fastest, measured with a bucket's first batch.
//!
//! That batch is replayed in every way before it runs: some times in a row and then
//! waited for, so that both what the host's calls take and what the device takes
//! count, the ways in turns, so that a change of clocks or of other work meets all of
//! them. What disturbs only adds time, so the least time of a way is the one to
//! compare. The policy's deadline holds for each replay. The slots of a device share
//! what was chosen.

use super::deadline::wait_within;
use super::executor::{Executor, Ready, Replay, mark_all};
use super::fallback::is_of_graph;
use super::timed::Times;
use super::verify::{restore, updated_inputs};
use super::{Bindings, Buckets, Policy, Way};
use crate::backend::{Backend, DeviceSlot, Queue, Streams};
use crate::error::{Context, Result};
use crate::record::BufferId;
use crate::workload::Extent;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// By how much another way has to be faster than the first, in percent of its time.
const MARGIN_PERCENT: u64 = 3;
/// The most replays in a row.
const BURST_MAX: u64 = 4;
/// Batches are replayed in a row while that takes no longer.
const BURST_NS: u64 = 2_000_000;
/// Turns that count: at least so many, and more while they take no longer than
/// [`TURNS_NS`].
const TURNS_MIN: u32 = 2;
const TURNS_MAX: u32 = 9;
const TURNS_NS: u128 = 20_000_000;

/// What [`Mode::Auto`](super::Mode::Auto) chose for the batches of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The place of the device among those of its engine, which each choose; else 0.
    pub device: usize,
    /// The place of the bucket, from 0, the smallest.
    pub bucket: usize,
    /// The most that its batches span.
    pub capacity: Extent,
    /// How they are replayed.
    pub way: Way,
    /// All ways as they were measured; none where a batch cannot run twice, as its kernels
    /// may write declared memory or change an input that is uploaded in part.
    pub tried: Vec<Tried>,
}

/// A way to replay, and how fast it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tried {
    /// The way.
    pub way: Way,
    /// The time from one batch to the next in nanoseconds; `None` where the device
    /// refused the graph.
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

/// What was chosen on one device.
#[derive(Clone, Default)]
pub(crate) struct Choices(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    /// Those that the choices are of.
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
    /// Forgets what was chosen for other buckets. Returns what is for these.
    pub(super) fn start(&self, buckets: &Arc<Buckets>) -> Vec<Option<Way>> {
        let mut table = self.0.lock();
        if !table.is_of(buckets) {
            table.buckets = Some(Arc::clone(buckets));
            table.chosen = vec![None; buckets.as_slice().len()];
        }
        let way = |chosen: &Option<Chosen>| chosen.as_ref().map(|chosen| chosen.way);
        table.chosen.iter().map(way).collect()
    }

    fn way(&self, buckets: &Arc<Buckets>, bucket: usize) -> Option<Way> {
        let table = self.0.lock();
        let known = table.chosen.get(bucket).filter(|_| table.is_of(buckets));
        known?.as_ref().map(|chosen| chosen.way)
    }

    fn add(&self, buckets: &Arc<Buckets>, chosen: Chosen) {
        let mut table = self.0.lock();
        if table.is_of(buckets) {
            let place = chosen.bucket;
            table.chosen[place] = Some(chosen);
        }
    }

    /// By bucket.
    pub(crate) fn to_vec(&self) -> Vec<Chosen> {
        self.0.lock().chosen.iter().flatten().cloned().collect()
    }

    /// What was chosen on several devices.
    pub(crate) fn of_devices(devices: &[Choices]) -> Vec<Chosen> {
        let of = |(device, choices): (usize, &Choices)| {
            let chosen = choices.to_vec().into_iter();
            chosen.map(move |chosen| Chosen { device, ..chosen })
        };
        devices.iter().enumerate().flat_map(of).collect()
    }
}

impl Executor {
    /// Chooses how a bucket is replayed, if that is open, with a batch that spans
    /// `live`; the batch is then as it was. Whoever was first with the bucket has
    /// chosen for all slots.
    pub(super) fn choose(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
        live: Extent,
        replay: &mut Replay,
    ) -> Result<()> {
        if self.ways[bucket].is_some() {
            return Ok(());
        }
        self.check_slot(slot)?;
        if let Some(way) = self.choices.way(self.buckets(), bucket) {
            self.ways[bucket] = Some(way);
            return Ok(());
        }
        let mut chosen = Chosen {
            device: 0,
            bucket,
            capacity: self.buckets().as_slice()[bucket].capacity,
            way: self.policy.first_way(),
            tried: Vec::new(),
        };
        if !self.runs_once(bucket) {
            let start = Instant::now();
            let tried = self.try_ways(slot, bucket, live, replay);
            (chosen.way, chosen.tried) = tried.within(|| format!("trial in bucket {bucket}"))?;
            replay.made += 1;
            replay.tried = 1;
            replay.trial_ns += start.elapsed().as_nanos() as u64;
        }
        let device = self.backend.device();
        tracing::info!(device = device.name, "mode auto: {chosen}");
        self.ways[bucket] = Some(chosen.way);
        self.choices.add(self.buckets(), chosen);
        Ok(())
    }

    /// Makes a bucket ready in every way, measures them, and keeps what it takes, which
    /// it returns with what it measured.
    fn try_ways(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
        live: Extent,
        replay: &mut Replay,
    ) -> Result<(Way, Vec<Tried>)> {
        self.drop_ready(slot, bucket);
        replay.dropped += self.make_room(slot);
        self.bind(slot, bucket)?;
        let mut candidates = self.candidates(slot, bucket)?;
        let bindings = self.bindings[bucket].as_ref().expect("bound above");
        let measured = measure(
            &*self.backend,
            slot,
            &mut candidates,
            bindings,
            live,
            &self.policy,
        );
        if let Err(error) = measured {
            // The first failure is the one to tell.
            let _ = mark_all(slot, self.policy.streams == Streams::PerStage);
            discard(slot, candidates);
            return Err(error);
        }
        let tried = candidates.iter().map(|candidate| candidate.tried);
        let tried: Vec<Tried> = tried.collect();
        let picked = candidates.remove(pick(&tried));
        discard(slot, candidates);
        let ready = picked.ready.expect("only what was measured is picked");
        self.set_ready(bucket, ready);
        Ok((picked.tried.way, tried))
    }

    /// A bucket that is bound, ready in every way that the device does not refuse.
    fn candidates(&self, slot: &mut dyn DeviceSlot, bucket: usize) -> Result<Vec<Candidate>> {
        let mut candidates = Vec::new();
        for way in self.policy.ways() {
            let ready = match self.make(slot, bucket, way) {
                Ok(ready) => Some(ready),
                Err(error) if is_of_graph(&error) => {
                    tracing::debug!(bucket, %way, %error, "the device refuses the graph");
                    None
                }
                Err(error) => {
                    discard(slot, candidates);
                    return Err(error);
                }
            };
            let period_ns = None;
            let tried = Tried { way, period_ns };
            candidates.push(Candidate { tried, ready });
        }
        Ok(candidates)
    }
}

/// A way with all that it takes, unless the device refused that.
struct Candidate {
    tried: Tried,
    ready: Option<Ready>,
}

fn discard(slot: &mut dyn DeviceSlot, candidates: Vec<Candidate>) {
    let ready = candidates.into_iter().filter_map(|it| it.ready);
    ready.for_each(|ready| ready.discard(slot));
}

/// The first way, unless another is faster by more than noise.
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

/// Measures the candidates with a batch that is in the slot, and leaves it as it was.
fn measure(
    backend: &dyn Backend,
    slot: &mut dyn DeviceSlot,
    candidates: &mut [Candidate],
    bindings: &Bindings,
    live: Extent,
    policy: &Policy,
) -> Result<()> {
    // Host memory may be looked at once all is done that anybody gave.
    mark_all(slot, policy.streams == Streams::PerStage).within(|| "earlier work")?;
    wait_within(slot, policy.deadline).within(|| "earlier work")?;
    let trial = Trial {
        inputs: updated_inputs(backend, &*slot, bindings),
        live,
        policy,
    };
    let mut least_ns = u64::MAX;
    for (_, ready) in made(candidates) {
        // The first time takes longer, as code is loaded.
        least_ns = least_ns.min(trial.period_ns(slot, ready, 1)?);
    }
    let burst = match trial.inputs.is_empty() {
        true => (BURST_NS / least_ns.max(1)).clamp(1, BURST_MAX),
        // The host has to bring them back before each.
        false => 1,
    };
    let start = Instant::now();
    for turn in 0..TURNS_MAX {
        if turn >= TURNS_MIN && start.elapsed().as_nanos() > TURNS_NS {
            break;
        }
        for (tried, ready) in made(candidates) {
            let ns = trial.period_ns(slot, ready, burst)?;
            tried.period_ns = Some(tried.period_ns.map_or(ns, |least| least.min(ns)));
        }
    }
    restore(slot, &trial.inputs);
    Ok(())
}

/// Those that were not refused.
fn made(candidates: &mut [Candidate]) -> impl Iterator<Item = (&mut Tried, &Ready)> {
    let candidates = candidates.iter_mut();
    candidates.filter_map(|it| Some((&mut it.tried, it.ready.as_ref()?)))
}

/// A batch that is replayed again and again.
struct Trial<'a> {
    /// What kernels change of it, as it was.
    inputs: Vec<(BufferId, Vec<u8>)>,
    live: Extent,
    policy: &'a Policy,
}

impl Trial<'_> {
    /// Replays the batch `burst` times in a row and waits for the last. Returns the
    /// nanoseconds from one to the next.
    fn period_ns(&self, slot: &mut dyn DeviceSlot, ready: &Ready, burst: u64) -> Result<u64> {
        restore(slot, &self.inputs);
        let per_stage = self.policy.streams == Streams::PerStage;
        let start = Instant::now();
        for replay in 0..burst {
            if per_stage && replay > 0 {
                // The one before has to be done with what this one uploads over.
                slot.join(Queue::Download, Queue::Upload)?;
            }
            let (graph, replay) = (ready.graph, &mut Replay::default());
            ready.give(slot, graph, self.live, per_stage, Times::None, replay)?;
        }
        let deadline = self.policy.deadline;
        let deadline = deadline.map(|deadline| deadline.saturating_mul(burst as u32));
        wait_within(slot, deadline)?;
        Ok(start.elapsed().as_nanos() as u64 / burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::Mode;

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
    fn what_was_chosen_is_told_in_words_with_figures() {
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
