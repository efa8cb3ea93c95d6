//! Long runs: what comes out, what it costs, and what it keeps.

use super::mix::{Buffers, Item, Mix, UNIFORMS};
use super::target::{Target, resident_bytes, say};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tapeloop_engine::backend::DriverCalls;
use tapeloop_engine::pipeline::{
    Close, Engine, EngineConfig, Filling, Pipeline, Ring, Slot, SubmitOptions, Wait,
};
use tapeloop_engine::record::Recorder;
use tapeloop_engine::replay::{Buckets, Mode, Policy, Verify};
use tapeloop_engine::workload::{Extent, Workload};

const ELEMENTS: usize = 256;
const ITEMS: usize = 4;

/// What a long run may add to the process: the system counts in pages, and its
/// allocator keeps some.
const GROWTH_BYTES_MAX: u64 = 4 << 20;

/// All that a run may have taken or called.
struct Held {
    calls: DriverCalls,
    free: Option<u64>,
    resident: Option<u64>,
}

impl Held {
    fn now(target: &Target) -> Self {
        Held {
            calls: target.backend.driver_calls(),
            free: target.free_bytes(),
            resident: resident_bytes(),
        }
    }

    /// Returns the submissions and the polls since.
    fn assert_steady(&self, target: &Target) -> (u64, u64) {
        let now = Held::now(target);
        assert_eq!(now.calls.allocations, self.calls.allocations);
        assert_eq!(now.calls.graph_edits, self.calls.graph_edits);
        assert_eq!(now.free, self.free, "the card's memory");
        if let (Some(now), Some(before), true) = (now.resident, self.resident, target.is_steady) {
            let grown = now.saturating_sub(before);
            assert!(grown < GROWTH_BYTES_MAX, "{grown} bytes more in memory");
        }
        let (now, before) = (now.calls, self.calls);
        (
            now.submissions - before.submissions,
            now.polls - before.polls,
        )
    }
}

/// Batch `batch` of a long run: values and uniforms of its own.
struct Batch(u32);

impl Batch {
    fn uniforms(&self) -> (f32, u32) {
        ((self.0 % 97) as f32 * 0.5, self.0)
    }

    fn x(&self, i: usize) -> f32 {
        (self.0.wrapping_mul(31).wrapping_add(i as u32 * 17) % 8192) as f32 * 0.37
    }

    fn item(&self, j: usize) -> Item {
        let per_item = ELEMENTS / ITEMS;
        let mut item = Item::new(self.0.wrapping_mul(ITEMS as u32) + j as u32, 0);
        item.x = (j * per_item..(j + 1) * per_item)
            .map(|i| self.x(i))
            .collect();
        item
    }

    fn fill(&self, slot: &mut Slot<Filling>, buffers: &Buffers) {
        let (factor, salt) = self.uniforms();
        let extent = Extent::from([ELEMENTS as u32, ITEMS as u32]);
        slot.write_header(extent, ITEMS as u32);
        slot.write_uniform(buffers.factor, factor);
        slot.write_uniform(buffers.salt, salt);
        let x = slot.write(buffers.x).iter_mut().enumerate();
        x.for_each(|(i, x)| *x = self.x(i));
        let owner = slot.write(buffers.owner).iter_mut().enumerate();
        owner.for_each(|(i, owner)| *owner = (i / (ELEMENTS / ITEMS)) as u32);
        let bias = slot.write(buffers.bias).iter_mut().enumerate();
        bias.for_each(|(j, bias)| *bias = self.item(j).bias);
    }

    fn check(&self, y: &[u32], z: &[u32]) {
        for j in 0..ITEMS {
            let (own_y, own_z) = self.item(j).output(self.uniforms());
            let part = &y[j * own_y.len()..][..own_y.len()];
            assert!(part == own_y && z[j] == own_z, "batch {}", self.0);
        }
    }
}

/// Depends on every bit and its place.
fn checksum(y: &[u32], z: &[u32]) -> u64 {
    let mix = |sum: u64, value: &u32| {
        (sum.rotate_left(5) ^ u64::from(*value)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    };
    y.iter().chain(z).fold(1, mix)
}

pub(super) struct Rounds {
    ring: Ring<u32>,
    buffers: Buffers,
}

impl Rounds {
    pub(super) fn new(target: &Target, mode: Mode) -> Self {
        let mut recorder = Recorder::new(&[ELEMENTS as u32, ITEMS as u32]);
        let device = target.backend.device();
        let buffers = Mix::new().record(&mut recorder, device).unwrap();
        let buckets = Arc::new(Buckets::single(recorder.finish().unwrap()));
        let policy = Policy::new(mode);
        let ring = Ring::new(&target.backend, &buckets, 3, &policy, Wait::Block);
        let ring = ring.unwrap();
        Rounds { ring, buffers }
    }

    /// Runs batches, checks each against the twins' arithmetic, and hands its
    /// checksum on. Returns the calls that they say they took.
    pub(super) fn run(
        &mut self,
        batches: std::ops::Range<u32>,
        mut each: impl FnMut(u32, u64),
    ) -> u64 {
        let live = Extent::from([ELEMENTS as u32, ITEMS as u32]);
        let (mut next, mut calls) = (batches.start, 0);
        loop {
            while next < batches.end
                && let Some(mut slot) = self.ring.acquire()
            {
                Batch(next).fill(&mut slot, &self.buffers);
                calls += self.ring.submit(slot, live, next).unwrap().calls as u64;
                next += 1;
            }
            let Some(finished) = self.ring.wait() else {
                return calls;
            };
            let slot = finished.as_ref().expect("the device does not fail");
            let (y, z) = (slot.read(self.buffers.y), slot.read(self.buffers.z));
            Batch(*slot.batch()).check(y, z);
            each(*slot.batch(), checksum(y, z));
            let (_, error) = self.ring.release(finished);
            assert!(error.is_none());
        }
    }
}

pub(crate) fn a_long_run_of_replays_is_eager_to_the_byte_and_takes_nothing(target: &Target) {
    let warm = target.replays / 50;
    let batches = warm..warm + target.replays;
    let mut eager = vec![0; batches.end as usize];
    let note = |batch: u32, sum: u64| eager[batch as usize] = sum;
    Rounds::new(target, Mode::Stream).run(0..batches.end, note);

    let same = |batch: u32, sum: u64| assert_eq!(sum, eager[batch as usize], "batch {batch}");
    let mut rounds = Rounds::new(target, Mode::Graph);
    rounds.run(0..warm, same);
    let (before, start) = (Held::now(target), Instant::now());
    let calls = rounds.run(batches, same);
    let took = start.elapsed();
    let (submissions, polls) = before.assert_steady(target);
    let replays = u64::from(target.replays);
    assert_eq!(submissions, calls);
    assert_eq!(calls, 2 * replays, "a launch and a mark each");
    assert!(polls >= replays, "{polls} polls");
    let (name, each) = (target.backend.device().backend, took / target.replays);
    say(&format!(
        "{name}: {replays} replays, {each:?} each, checked"
    ));
}

pub(crate) fn a_long_run_of_items_takes_nothing(target: &Target) {
    let mut config = EngineConfig::new([64, 8]);
    config.buckets = [[16, 8], [64, 8]].map(Extent::from).to_vec();
    // The first batch of a bucket in a slot may come at any time.
    config.policy.verify = Verify::Off;
    let (backend, pool) = (Arc::clone(&target.backend), Arc::clone(&target.pool));
    let mut pipeline = Pipeline::new(Mix::new(), &[backend], pool, &config).unwrap();
    let now = Instant::now();
    let mut run = |count: u32| {
        let (mut next, mut back) = (0, 0);
        while back < count {
            if next < count {
                let options = SubmitOptions {
                    urgent: next % 3 == 0,
                    ..SubmitOptions::default()
                };
                let item = Item::new(next, 1 + next as usize % 40);
                match pipeline.submit_at(item, options, now) {
                    Ok(_) => next += 1,
                    Err(refused) => assert_eq!(refused.into_item().id, next),
                }
            }
            let done = if next < count {
                pipeline.poll_at(now)
            } else {
                pipeline.wait()
            };
            if let Some((_, done)) = done {
                let expected = done.item.output(UNIFORMS);
                assert_eq!(done.result.unwrap(), expected);
                back += 1;
            }
        }
        pipeline.counters()
    };
    let warm = run(target.replays / 20);
    let before = Held::now(target);
    let after = run(target.replays / 5);
    let (submissions, _) = before.assert_steady(target);
    assert_eq!(submissions, after.driver_calls - warm.driver_calls);
    assert_eq!(submissions, 2 * (after.batches - warm.batches));
    assert_eq!(after.bucket_misses, 0);
}

pub(crate) fn items_that_are_cancelled_take_nothing(target: &Target) {
    let mut config = EngineConfig::new([64, 8]);
    // No batch closes before its item is cancelled.
    (config.close, config.batch_wait) = (Close::Full, Duration::MAX);
    let (backends, pool) = ([Arc::clone(&target.backend)], Arc::clone(&target.pool));
    let engine = Engine::new(Mix::new(), &backends, pool, &config).unwrap();
    let cancel = |count: u32| {
        for id in 0..count {
            let ticket = engine.submit(Item::new(id, 1)).unwrap();
            assert_eq!(ticket.cancel().ok().map(|item| item.id), Some(id));
        }
    };
    cancel(1_000);
    let before = resident_bytes();
    cancel(100_000);
    if let (Some(now), Some(before)) = (resident_bytes(), before) {
        let grown = now.saturating_sub(before);
        assert!(grown < GROWTH_BYTES_MAX, "{grown} bytes more in memory");
    }
}
