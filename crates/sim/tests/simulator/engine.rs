//! The threaded engine on the simulated device, in every way to replay.
//!
//! What threads do between calls is not the seed's choice, so a seed is not the
//! same run every time here; the rules hold for each of them.

use crate::random::Random;
use crate::scale::{READ_FAILS, Scale, WRITE_FAILS, doubled, vectors};
use crate::seeds::simulated::{assert_clean, device};
use crate::seeds::{each_seed, wait};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::Arc;
use tapeloop_conformance::program::policies;
use tapeloop_engine::pipeline::{Engine, EngineConfig};
use tapeloop_engine::replay::Policy;
use tapeloop_engine::workload::{Completion, Extent};

fn pool() -> Arc<ThreadPool> {
    Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap())
}

fn config(random: &mut Random, policy: &Policy) -> EngineConfig {
    let mut config = EngineConfig::new([64, 8]);
    config.buckets = [[16, 8], [64, 8]].map(Extent::from).to_vec();
    config.slots = 1 + random.below(4);
    config.policy = *policy;
    config.wait = wait(random);
    config
}

fn run(seed: u64, policy: &Policy, pool: &Arc<ThreadPool>) {
    let mut random = Random::new(seed);
    let (sim, backend) = device(seed);
    let config = config(&mut random, policy);
    let engine = Engine::new(Scale::new(2.0), &[backend], Arc::clone(pool), &config);
    let mut engine = engine.unwrap();
    let items = vectors(20 + random.below(20));
    let mut seen = 0;
    let mut sink = |done: Completion<Scale>| {
        assert_eq!(done.item, items[seen]);
        assert_eq!(done.result?.0, doubled(&items[seen]), "{policy:?}");
        seen += 1;
        Ok(())
    };
    engine.run(items.iter().cloned(), &mut sink).unwrap();
    assert_eq!(seen, items.len());
    drop(engine);
    assert_clean(&sim);
}

#[test]
fn every_policy_gives_right_results_and_breaks_no_rule() {
    let (pool, policies) = (pool(), policies());
    each_seed(20, |seed| {
        for policy in &policies {
            run(seed, policy, &pool);
        }
    });
}

#[test]
fn one_ready_bucket_of_several_gives_the_same() {
    let (pool, policies) = (pool(), policies());
    each_seed(10, |seed| {
        for policy in &policies {
            let policy = Policy {
                ready_max: 1,
                warm_up: seed % 2 == 0,
                ..*policy
            };
            run(seed, &policy, &pool);
        }
    });
}

#[test]
fn tickets_and_bad_items_break_no_rule() {
    let (pool, policies) = (pool(), policies());
    each_seed(200, |seed| {
        let mut random = Random::new(seed);
        let (sim, backend) = device(seed);
        let policy = *random.pick(&policies);
        let config = config(&mut random, &policy);
        let engine = Engine::new(Scale::new(2.0), &[backend], Arc::clone(&pool), &config);
        let engine = engine.unwrap();
        let mut items = vectors(25);
        (items[3][0], items[11][0]) = (WRITE_FAILS, READ_FAILS);
        let submit = |item: &Vec<f32>| engine.submit(item.clone()).unwrap();
        let tickets: Vec<_> = items.iter().map(submit).collect();
        engine.flush().unwrap();
        for (index, (ticket, item)) in tickets.into_iter().zip(&items).enumerate() {
            let done = ticket.wait().unwrap();
            assert_eq!(&done.item, item);
            match index {
                3 | 11 => assert!(done.result.is_err()),
                _ => assert_eq!(done.result.unwrap().0, doubled(item)),
            }
        }
        drop(engine);
        assert_clean(&sim);
    });
}

#[test]
fn several_simulated_devices_share_the_work() {
    let (pool, policies) = (pool(), policies());
    each_seed(50, |seed| {
        let policy = policies[seed as usize % policies.len()];
        let config = config(&mut Random::new(seed), &policy);
        let ((a, first), (b, second)) = (device(seed), device(seed + 1));
        let backends = [first, second];
        let engine = Engine::new(Scale::new(2.0), &backends, Arc::clone(&pool), &config);
        let mut engine = engine.unwrap();
        let items = vectors(40);
        let mut seen = 0;
        let mut sink = |done: Completion<Scale>| {
            assert_eq!(done.result?.0, doubled(&items[seen]));
            seen += 1;
            Ok(())
        };
        engine.run(items.iter().cloned(), &mut sink).unwrap();
        drop((engine, backends));
        assert_eq!(seen, items.len());
        assert_clean(&a);
        assert_clean(&b);
    });
}
