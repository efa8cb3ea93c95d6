//! Memory that is short while an engine is built: it takes less, and says so, or says
//! what it needs.

use crate::scale::{Scale, doubled, vectors};
use crate::seeds::simulated::{assert_clean, device_with};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::Arc;
use tapeloop_conformance::program::policies;
use tapeloop_engine::ErrorKind;
use tapeloop_engine::backend::Backend;
use tapeloop_engine::pipeline::{Engine, EngineConfig, MemoryPlan, Pipeline, Shrunk};
use tapeloop_engine::workload::Extent;
use tapeloop_sim::{Fault, SimBackend, SimOptions};

fn short(fault: Fault) -> (Arc<SimBackend>, Arc<dyn Backend>) {
    device_with(SimOptions {
        faults: vec![fault],
        ..SimOptions::seeded(5)
    })
}

fn pool() -> Arc<ThreadPool> {
    Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap())
}

fn config() -> EngineConfig {
    let mut config = EngineConfig::new([64, 8]);
    config.buckets = [[16, 8], [64, 8], [1024, 64]].map(Extent::from).to_vec();
    config
}

fn plan(slots: usize, largest: Extent) -> MemoryPlan {
    let mut config = config();
    config.slots = slots;
    config
        .buckets
        .retain(|smaller| smaller.fits(largest) && *smaller != largest);
    config.buckets.push(largest);
    let (_, backend) = device_with(SimOptions::seeded(0));
    Engine::memory_plan(&Scale::new(2.0), backend.device(), 1, &config).unwrap()
}

/// All that an engine may come to, from what was asked for to the least.
fn sizes() -> Vec<(usize, Extent)> {
    let largest = [1024, 512, 256, 128, 64].iter().zip([64, 32, 16, 8, 8]);
    let buckets = largest.map(|(elements, vectors)| (1, Extent::from([*elements, vectors])));
    let slots = [3, 2].map(|slots| (slots, Extent::from([1024, 64])));
    slots.into_iter().chain(buckets).collect()
}

fn run(engine: &mut Pipeline<Scale>) {
    let items = vectors(20);
    for item in &items {
        let mut item = item.clone();
        while let Err(refused) = engine.submit(item) {
            item = refused.into_item();
            let (_, done) = engine.wait().unwrap();
            assert_eq!(done.result.unwrap().0, doubled(&done.item));
        }
    }
    while let Some((_, done)) = engine.wait() {
        assert_eq!(done.result.unwrap().0, doubled(&done.item));
    }
}

#[test]
fn an_allocation_that_fails_costs_a_slot_and_nothing_else() {
    for policy in policies() {
        let mut allocation = 0;
        // Each allocation in turn, until there are no more.
        loop {
            let (sim, backend) = short(Fault::OutOfMemory { allocation });
            let mut config = config();
            config.policy = policy;
            let mut engine = Pipeline::new(Scale::new(2.0), &[backend], pool(), &config).unwrap();
            let expected: &[Shrunk] = if engine.shrunk().is_empty() {
                &[]
            } else {
                &[Shrunk::Slots { from: 3, to: 2 }]
            };
            assert_eq!(engine.shrunk(), expected);
            assert_eq!(engine.memory().slots, 3 - expected.len());
            run(&mut engine);
            drop(engine);
            assert_clean(&sim);
            if expected.is_empty() {
                break;
            }
            allocation += 1;
        }
        assert!(allocation >= 2, "device and pinned memory at least");
    }
}

#[test]
fn the_engine_takes_what_there_is_to_the_byte() {
    let sizes = sizes();
    for (step, (slots, largest)) in sizes.iter().enumerate() {
        let plan = plan(*slots, *largest);
        let most = plan.device_bytes().max(plan.host_bytes()) as usize;
        for bytes_max in [most, most - 1] {
            let (sim, backend) = short(Fault::Scarce { bytes_max });
            let built = Pipeline::new(Scale::new(2.0), &[backend], pool(), &config());
            let fits = step + usize::from(bytes_max < most);
            match (built, sizes.get(fits)) {
                (Ok(mut engine), Some((slots, largest))) => {
                    assert_eq!(engine.memory(), &self::plan(*slots, *largest));
                    assert_eq!(engine.shrunk().len(), fits, "a step for each");
                    run(&mut engine);
                }
                (Err(error), None) => {
                    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
                    let text = error.to_string();
                    assert!(text.contains(&plan.to_string()), "{text}");
                    assert!(text.contains("least"), "{text}");
                }
                (Ok(engine), None) => panic!("took {}", engine.memory()),
                (Err(error), Some(_)) => panic!("{error}"),
            }
            assert_clean(&sim);
        }
    }
}

#[test]
fn a_plan_within_a_budget_is_taken_as_it_is_or_not_at_all() {
    let (sim, backend) = short(Fault::OutOfMemory { allocation: 1 });
    let mut config = config();
    config.memory_bytes_max = Some(1 << 30);
    let built = Engine::new(Scale::new(2.0), &[backend], pool(), &config);
    let error = built.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    let text = error.to_string();
    assert!(text.contains("which is not made smaller"), "{text}");
    assert!(
        text.contains(&plan(3, Extent::from([1024, 64])).to_string()),
        "{text}"
    );
    assert_clean(&sim);
}
