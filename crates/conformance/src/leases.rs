//! Results that borrow the memory of their slot. A slot that took a batch while results borrow it would change them.

use crate::leasing::{Leasing, assert_right, counts, result};
use crate::program::accepted_policies;
use crate::scale::{Scale, doubled, vectors};
use crate::threads;
use std::sync::Arc;
use tapeloop_engine::backend::Backend;
use tapeloop_engine::pipeline::{Engine, EngineConfig, Wait};
use tapeloop_engine::replay::Policy;
use tapeloop_engine::workload::{Extent, Leased};

fn engine(backend: &Arc<dyn Backend>, slots: usize, policy: Policy) -> Engine<Leasing> {
    let mut config = EngineConfig::new([100, 100]);
    config.buckets = [[20, 100], [100, 100]].map(Extent::from).to_vec();
    (config.slots, config.policy, config.wait) = (slots, policy, Wait::Spin);
    let backends = [Arc::clone(backend)];
    Engine::new(Leasing(Scale::new(2.0)), &backends, threads(1), &config).unwrap()
}

/// All results are held while later batches run in the other slots.
pub fn results_stay_as_they_are_while_later_batches_run(backend: &Arc<dyn Backend>) {
    let items = vectors(40);
    for policy in accepted_policies(backend) {
        let engine = engine(backend, 6, policy);
        let mut held = Vec::new();
        for item in &items {
            held.push(result(&engine, item));
            assert_right(&held, &items);
        }
        // Two slots of six are never lent.
        assert_eq!(counts(&engine.counters()), (4, 36), "{policy:?}");
    }
}

/// No result is copied if those before it are dropped.
pub fn a_slot_is_lent_again_when_its_results_are_dropped(backend: &Arc<dyn Backend>) {
    for policy in accepted_policies(backend) {
        let engine = engine(backend, 3, policy);
        for item in &vectors(20) {
            let leased = result(&engine, item);
            let clone = leased.clone();
            drop(leased);
            assert_eq!(clone[..], doubled(item));
        }
        assert_eq!(counts(&engine.counters()), (20, 0), "{policy:?}");
    }
}

/// The memory of a slot lives as long as the results that borrow it.
pub fn results_outlive_their_engine_and_go_to_other_threads(backend: &Arc<dyn Backend>) {
    let items = vectors(3);
    for policy in accepted_policies(backend) {
        let engine = engine(backend, 5, policy);
        let results: Vec<_> = items.iter().map(|item| result(&engine, item)).collect();
        assert_eq!(counts(&engine.counters()), (3, 0));
        drop(engine);
        assert_right(&results, &items);
        std::thread::scope(|scope| {
            for (result, item) in results.into_iter().zip(&items) {
                let clone = result.clone();
                scope.spawn(move || assert_eq!(result[..], doubled(item)));
                scope.spawn(move || assert_eq!(clone[..], doubled(item)));
            }
        });
    }
}

/// The engine and its results are dropped by different threads.
pub fn an_engine_and_the_results_that_it_lent_are_dropped_at_once(backend: &Arc<dyn Backend>) {
    let items = vectors(3);
    for _ in 0..20 {
        let engine = engine(backend, 5, Policy::default());
        let results: Vec<_> = items.iter().map(|item| result(&engine, item)).collect();
        std::thread::scope(|scope| {
            scope.spawn(move || drop(engine));
            for result in results {
                scope.spawn(move || drop(result));
            }
        });
    }
}

/// Four threads hold different numbers of results of different lengths.
pub fn many_threads_hold_and_drop_results_of_large_and_small_batches(backend: &Arc<dyn Backend>) {
    const LENGTHS: [usize; 3] = [10, 1_000, 40_000];
    let mut config = EngineConfig::new([LENGTHS[2] as u32, 100]);
    (config.slots, config.wait) = (5, Wait::Spin);
    let backends = [Arc::clone(backend)];
    let workload = Leasing(Scale::new(2.0));
    let engine = Engine::new(workload, &backends, threads(3), &config).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let engine = &engine;
            scope.spawn(move || {
                let mut held: Vec<(f32, usize, Leased<f32>)> = Vec::new();
                for number in 0..30 {
                    let length = LENGTHS[(number + thread) % 3];
                    let value = (100 * thread + number) as f32;
                    let leased = result(engine, &vec![value; length]);
                    held.push((value, length, leased));
                    if held.len() > thread {
                        let (value, length, leased) = held.swap_remove(number % held.len());
                        assert_eq!(leased[..], vec![2.0 * value; length]);
                    }
                }
            });
        }
    });
    let (leased, copied) = counts(&engine.counters());
    assert_eq!(leased + copied, 120);
    assert!(leased > 0);
}
