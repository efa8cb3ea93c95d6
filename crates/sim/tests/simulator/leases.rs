//! Results that borrow their slot, on a device that shows the host only what it may read.

use crate::leasing::Leasing;
use crate::random::Random;
use crate::scale::{Scale, TWIN_PANICS, doubled, vectors};
use crate::seeds::program::{assert_clean, device_with, policies};
use crate::seeds::{each_seed, wait};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::Arc;
use tapeloop_engine::pipeline::{Engine, EngineConfig};
use tapeloop_engine::replay::Policy;
use tapeloop_engine::workload::{Extent, Leased};
use tapeloop_engine::{ErrorKind, Result};
use tapeloop_sim::SimOptions;

fn pool() -> Arc<ThreadPool> {
    Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap())
}

fn config(random: &mut Random, policy: Policy) -> EngineConfig {
    let mut config = EngineConfig::new([64, 8]);
    config.buckets = [[16, 8], [64, 8]].map(Extent::from).to_vec();
    config.slots = 3 + random.below(3);
    config.policy = policy;
    config.wait = wait(random);
    config
}

/// Submits items in groups, holds their results for a while, and looks at those that are held
/// after each group. Returns what is held at the end, with the items.
fn hold<'a>(
    engine: &Engine<Leasing>,
    random: &mut Random,
    items: &'a [Vec<f32>],
) -> Vec<(&'a [f32], Leased<f32>)> {
    let mut held = Vec::new();
    let mut rest = items;
    while !rest.is_empty() {
        let (group, after) = rest.split_at((1 + random.below(5)).min(rest.len()));
        rest = after;
        let submit = |item: &Vec<f32>| engine.submit(item.clone()).unwrap();
        let tickets: Vec<_> = group.iter().map(submit).collect();
        engine.flush().unwrap();
        for (item, ticket) in group.iter().zip(tickets) {
            match ticket.wait().unwrap().result {
                Ok(leased) => held.push((&item[..], leased)),
                Err(error) => {
                    assert_eq!(item[0], TWIN_PANICS, "{error}");
                    assert_eq!(error.kind(), ErrorKind::Quarantined, "{error}");
                }
            }
        }
        check(&held);
        while held.len() > 12 || (!held.is_empty() && random.below(3) == 0) {
            held.swap_remove(random.below(held.len()));
        }
    }
    held
}

fn check(held: &[(&[f32], Leased<f32>)]) {
    for (item, leased) in held {
        assert_eq!(leased[..], doubled(item));
    }
}

/// Runs an engine whose results outlive it. Returns the numbers of results that were lent and copied.
fn run(options: SimOptions, policy: Policy, items: &[Vec<f32>]) -> Result<[u64; 2]> {
    let seed = options.seed;
    let mut random = Random::new(seed);
    let (sim, backend) = device_with(options);
    let config = config(&mut random, policy);
    let engine = Engine::new(Leasing(Scale::new(2.0)), &[backend], pool(), &config)?;
    let held = hold(&engine, &mut random, items);
    let counters = engine.counters();
    drop(engine);
    check(&held);
    drop(held);
    assert_clean(&sim);
    Ok([counters.results_leased, counters.results_copied])
}

#[test]
fn results_that_are_held_stay_right_in_every_way_to_replay() {
    let policies = policies();
    let (mut leased, mut copied) = (0, 0);
    for (seed, policy) in policies.iter().enumerate() {
        let options = SimOptions {
            poisoned: seed % 2 == 1,
            ..SimOptions::seeded(seed as u64)
        };
        let [more, others] = run(options, *policy, &vectors(40)).unwrap();
        (leased, copied) = (leased + more, copied + others);
    }
    assert!(leased > 0 && copied > 0, "{leased} leased, {copied} copied");
}

#[test]
fn results_that_are_held_stay_right_when_their_device_is_lost() {
    each_seed(40, |seed| {
        let mut items = vectors(40);
        items[(7 * seed as usize + 5) % 40][0] = TWIN_PANICS;
        let options = SimOptions {
            supervised: true,
            ..SimOptions::seeded(seed)
        };
        let policies = policies();
        let policy = policies[seed as usize % policies.len()];
        run(options, policy, &items).unwrap();
    });
}

#[test]
fn a_result_keeps_its_slot_after_the_engine_and_nothing_else() {
    let (sim, backend) = device_with(SimOptions::seeded(1));
    let config = config(&mut Random::new(1), Policy::default());
    let engine = Engine::new(Leasing(Scale::new(2.0)), &[backend], pool(), &config).unwrap();
    let done = engine.submit(vec![1.0, 2.0]).unwrap().wait().unwrap();
    let leased = done.result.unwrap();
    assert_eq!(engine.counters().results_leased, 1);
    assert_eq!(sim.live().slots, config.slots);
    drop(engine);
    assert_eq!(sim.live().slots, 1);
    assert_eq!(leased[..], [2.0, 4.0]);
    drop(leased);
    assert_clean(&sim);
}
