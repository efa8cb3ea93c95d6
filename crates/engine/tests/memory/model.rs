//! Statistics against a model that keeps nothing but lists.

use super::{Bytes, SPACES, backend, limits, roomy, stats, take};
use std::time::{Duration, Instant};
use tapeloop_engine::backend::{AllocationView, Space};
use tapeloop_engine::memory::{Limits, Pool, SpaceStats};

/// One kind of memory, as the documentation tells it.
struct Model {
    limits: Limits,
    /// Number, size asked for, size of the allocation.
    live: Vec<(u64, u64, u64)>,
    /// Number, and size.
    parked: Vec<(u64, u64)>,
    /// In the order in which they came free.
    free: Vec<u64>,
    counts: SpaceStats,
}

/// Four sizes a doubling from 256 on.
fn allocation(bytes: u64) -> u64 {
    let sizes = (6..).flat_map(|doubling| (4..8).map(move |quarters| quarters << doubling));
    sizes.into_iter().find(|size| *size >= bytes).unwrap()
}

impl Model {
    fn allocate(&mut self, number: u64, bytes: u64) -> bool {
        let size = allocation(bytes);
        let held = |model: &Model| -> u64 {
            let live = model.live.iter().map(|live| live.2);
            let parked = model.parked.iter().map(|parked| parked.1);
            live.chain(parked).sum()
        };
        if let Some(at) = self.free.iter().rposition(|free| *free == size) {
            self.free.remove(at);
            self.counts.hits += 1;
        } else {
            let max = self.limits.bytes_max.unwrap_or(u64::MAX);
            if held(self) + size > max {
                self.counts.refused += 1;
                return false;
            }
            while held(self) + self.free.iter().sum::<u64>() + size > max {
                self.free.remove(0);
                self.counts.trims += 1;
                self.counts.releases += 1;
            }
            self.counts.misses += 1;
        }
        self.live.push((number, bytes, size));
        self.counts.total_bytes += size;
        let in_use: u64 = self.live.iter().map(|live| live.2).sum();
        let all = held(self) + self.free.iter().sum::<u64>();
        self.counts.in_use_bytes_peak = self.counts.in_use_bytes_peak.max(in_use);
        self.counts.held_bytes_peak = self.counts.held_bytes_peak.max(all);
        true
    }

    fn free(&mut self, number: u64) {
        let at = self.live.iter().position(|live| live.0 == number).unwrap();
        let (_, _, size) = self.live.remove(at);
        self.parked.push((number, size));
    }

    /// Parked allocations are free once no view is left of them.
    fn take_back_idle(&mut self, viewed: &[(u64, AllocationView)]) {
        let is_viewed = |number: u64| viewed.iter().any(|view| view.0 == number);
        for (number, size) in std::mem::take(&mut self.parked) {
            let kept = self.free.iter().filter(|free| **free == size).count();
            if is_viewed(number) {
                self.parked.push((number, size));
            } else if kept < self.limits.cached_max_per_class {
                self.free.push(size);
            } else {
                self.counts.releases += 1;
            }
        }
    }

    fn give_all(&mut self) -> u64 {
        self.counts.trims += self.free.len() as u64;
        self.counts.releases += self.free.len() as u64;
        self.free.drain(..).sum()
    }

    fn stats(&self) -> SpaceStats {
        let mut stats = self.counts;
        stats.buffers = self.live.len() as u64;
        stats.requested_bytes = self.live.iter().map(|live| live.1).sum();
        stats.in_use_bytes = self.live.iter().map(|live| live.2).sum();
        stats.parked_bytes = self.parked.iter().map(|parked| parked.1).sum();
        stats.cached_bytes = self.free.iter().sum();
        stats.largest_free_bytes = self.free.iter().copied().max().unwrap_or(0);
        stats
    }
}

/// Small numbers from a seed (xorshift).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % sides
    }
}

fn check(seed: u64, bytes_max: Option<u64>, cached_max_per_class: usize) {
    let mut config = roomy();
    for space in SPACES {
        limits(&mut config, space).bytes_max = bytes_max;
        limits(&mut config, space).cached_max_per_class = cached_max_per_class;
    }
    // The other kind has other limits, so that a mix-up shows.
    config.pinned.cached_max_per_class += 1;
    let backend = backend();
    let pool = Pool::new(backend.clone(), config);
    let mut models = SPACES.map(|space| Model {
        limits: *limits(&mut config, space),
        live: Vec::new(),
        parked: Vec::new(),
        free: Vec::new(),
        counts: SpaceStats::default(),
    });
    let mut dice = Dice(seed);
    let mut buffers: Vec<(usize, u64, Bytes)> = Vec::new();
    let mut views: Vec<(u64, AllocationView)> = Vec::new();
    for number in 0..4000 {
        let which = dice.roll(2) as usize;
        match dice.roll(10) {
            0..=3 => {
                let bytes = 1 + dice.roll(900) * (1 + dice.roll(3));
                let buffer = take(&pool, SPACES[which], bytes as usize, "model");
                assert_eq!(buffer.is_ok(), models[which].allocate(number, bytes));
                buffers.extend(buffer.ok().map(|buffer| (which, number, buffer)));
            }
            4..=6 if !buffers.is_empty() => {
                let at = dice.roll(buffers.len() as u64) as usize;
                let (which, number, _) = buffers.swap_remove(at);
                models[which].free(number);
            }
            7 if !buffers.is_empty() => {
                let (_, number, buffer) = &buffers[dice.roll(buffers.len() as u64) as usize];
                views.push((*number, buffer.view()));
            }
            8 if !views.is_empty() => {
                views.swap_remove(dice.roll(views.len() as u64) as usize);
            }
            9 if dice.roll(8) == 0 => {
                let later = Instant::now() + Duration::from_secs(dice.roll(2) * 61);
                let idle = later > Instant::now();
                let given: u64 = if idle {
                    models.iter_mut().map(Model::give_all).sum()
                } else {
                    0
                };
                assert_eq!(pool.trim(later), given);
            }
            9 if dice.roll(8) == 0 => {
                let given: u64 = models.iter_mut().map(Model::give_all).sum();
                assert_eq!(pool.clear(), given);
            }
            _ => {}
        }
        for (space, model) in SPACES.into_iter().zip(&mut models) {
            model.take_back_idle(&views);
            let (seen, expected) = (stats(&pool, space), model.stats());
            assert_eq!(seen, expected, "step {number} of seed {seed}, {space:?}");
            check_derived(&seen, &model.free);
            assert!(bytes_max.is_none_or(|max| seen.held_bytes() <= max));
        }
    }
    let misses: u64 = models.iter().map(|model| model.counts.misses).sum();
    assert_eq!(backend.driver_calls().allocations, misses);
    assert!(misses > 100 && models[0].counts.trims > 0);
}

fn check_derived(stats: &SpaceStats, free: &[u64]) {
    let all: u64 = free.iter().sum();
    let fragmentation = match free.iter().max() {
        Some(largest) => 1.0 - *largest as f64 / all as f64,
        None => 0.0,
    };
    assert_eq!(stats.fragmentation(), fragmentation);
    let tried = stats.hits + stats.misses;
    let rate = stats.hits as f64 / tried.max(1) as f64;
    assert_eq!((stats.allocations(), stats.hit_rate()), (tried, rate));
}

#[test]
fn statistics_are_those_of_a_plain_model() {
    for seed in (1..=8_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
        check(seed, None, 3);
        check(seed, Some(16_000), 4);
        check(seed, Some(9_000), 100);
    }
}

#[test]
fn two_threads_share_a_pool_and_never_a_block() {
    let backend = backend();
    let pool = Pool::new(backend.clone(), roomy());
    let work = |seed: u64| {
        let pool = pool.clone();
        move || {
            let mut dice = Dice(seed);
            let mut held: Vec<(u8, Bytes)> = Vec::new();
            for step in 0..4000_u64 {
                if held.len() > 6 || (dice.roll(2) == 0 && !held.is_empty()) {
                    let (mark, buffer) = held.swap_remove(dice.roll(held.len() as u64) as usize);
                    assert!(buffer.get().iter().all(|byte| *byte == mark));
                }
                let space = SPACES[dice.roll(2) as usize];
                let mut buffer = take(&pool, space, 200 << dice.roll(3), "thread").unwrap();
                let mark = (step ^ seed) as u8;
                buffer.fill(mark);
                held.push((mark, buffer));
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work(0x1234_5678));
        scope.spawn(work(0x8765_4321));
    });
    let all = SPACES.map(|space: Space| stats(&pool, space));
    let sum = |of: fn(&SpaceStats) -> u64| all.iter().map(of).sum::<u64>();
    assert_eq!(sum(|stats| stats.in_use_bytes + stats.parked_bytes), 0);
    assert_eq!(sum(SpaceStats::allocations), 2 * 4000);
    assert_eq!(
        sum(|stats| stats.misses),
        backend.driver_calls().allocations
    );
    assert!(pool.leaks().is_empty());
}
