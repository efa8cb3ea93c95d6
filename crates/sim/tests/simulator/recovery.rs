//! A supervised device that is lost: everything comes back right but the items that
//! lose it, whatever fails and whenever.

mod restart;
mod uniforms;
mod watched;

use crate::random::Random;
use crate::scale::{Scale, TWIN_PANICS, doubled, vectors};
use crate::seeds::simulated::{assert_clean, device_with};
use crate::seeds::{each_seed, wait};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tapeloop_conformance::program::policies;
use tapeloop_engine::backend::DeviceInfo;
use tapeloop_engine::backend::{Backend, Space};
use tapeloop_engine::pipeline::{Close, Counters, Engine, EngineConfig, Pipeline, Ring, Wait};
use tapeloop_engine::record::Recorder;
use tapeloop_engine::replay::{Policy, Verify};
use tapeloop_engine::workload::{Completion, Extent, ReadViews, Workload, WriteViews};
use tapeloop_engine::{Error, ErrorKind, Result};
use tapeloop_sim::{Fault, SimBackend, SimOptions};
use watched::Watched;

type Output = Result<(Vec<f32>, u32)>;

fn supervised(seed: u64, faults: Vec<Fault>) -> (Arc<SimBackend>, Arc<dyn Backend>) {
    device_with(SimOptions {
        faults,
        supervised: true,
        ..SimOptions::seeded(seed)
    })
}

fn config(random: &mut Random, policy: Policy) -> EngineConfig {
    let mut config = EngineConfig::new([64, 8]);
    config.buckets = [[16, 8], [64, 8]].map(Extent::from).to_vec();
    config.slots = 1 + random.below(3);
    config.policy = policy;
    (config.close, config.batch_wait) = (Close::Full, Duration::MAX);
    config.wait = wait(random);
    config
}

fn pool() -> Arc<ThreadPool> {
    Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap())
}

/// Vectors, some of which lose the device.
fn items(random: &mut Random, count: usize, culprits: usize) -> Vec<Vec<f32>> {
    let mut items = vectors(count);
    for _ in 0..culprits {
        items[random.below(count)][0] = TWIN_PANICS;
    }
    items
}

fn is_culprit(item: &[f32]) -> bool {
    item[0] == TWIN_PANICS
}

/// Culprits are told, and all others are right.
fn check(item: &[f32], result: Output) {
    match (result, is_culprit(item)) {
        (Ok((values, _)), false) => assert_eq!(values, doubled(item)),
        (Err(error), true) => assert_eq!(error.kind(), ErrorKind::Quarantined, "{error}"),
        (result, culprit) => panic!("{item:?}, culprit {culprit}: {result:?}"),
    }
}

/// At most 3 + log2(items of a batch) restarts a culprit, and one a fault.
fn check_restarts(counters: &Counters, items: &[Vec<f32>], faults: u64) {
    let culprits = items.iter().filter(|item| is_culprit(item)).count() as u64;
    assert_eq!(counters.items_quarantined, culprits);
    let batch_items_max = 8_u64;
    let allowed = culprits * (3 + u64::from(batch_items_max.ilog2())) + faults;
    assert!(counters.restarts <= allowed, "{counters:?}");
}

fn run_engine(
    backend: Arc<dyn Backend>,
    config: &EngineConfig,
    items: &[Vec<f32>],
) -> Result<Counters> {
    let mut engine = Engine::new(Scale::new(2.0), &[backend], pool(), config)?;
    let mut next = items.iter();
    let mut sink = |done: Completion<Scale>| -> Result<()> {
        assert_eq!(Some(&done.item), next.next(), "in order");
        check(&done.item, done.result);
        Ok(())
    };
    engine.run(items.iter().cloned(), &mut sink).unwrap();
    assert!(next.next().is_none(), "nothing is lost");
    Ok(engine.counters())
}

fn run_pipeline(
    backend: Arc<dyn Backend>,
    config: &EngineConfig,
    items: &[Vec<f32>],
) -> Result<Counters> {
    let mut pipeline = Pipeline::new(Scale::new(2.0), &[backend], pool(), config)?;
    let mut back = vec![false; items.len()];
    let mut take = |number: u64, item: &[f32], result: Output| {
        assert_eq!(items[number as usize], item);
        assert!(!std::mem::replace(&mut back[number as usize], true), "once");
        check(item, result);
    };
    for item in items {
        let mut item = item.clone();
        while let Err(refused) = pipeline.submit(item) {
            item = refused.into_item();
            let (number, done) = pipeline.wait().expect("batches are on the way");
            take(number, &done.item, done.result);
        }
    }
    while let Some((number, done)) = pipeline.wait() {
        take(number, &done.item, done.result);
    }
    let counters = pipeline.counters();
    assert!(back.iter().all(|back| *back), "nothing is lost");
    Ok(counters)
}

fn run_either(
    random: &mut Random,
    backend: Arc<dyn Backend>,
    config: &EngineConfig,
    items: &[Vec<f32>],
) -> Result<Counters> {
    if random.flip() {
        run_engine(backend, config, items)
    } else {
        run_pipeline(backend, config, items)
    }
}

#[test]
fn every_item_comes_back_right_but_those_that_lose_the_device() {
    let policies = policies();
    each_seed(1000, |seed| {
        let mut random = Random::new(seed);
        let policy = policies[seed as usize % policies.len()];
        let count = 1 + random.below(40);
        let culprits = random.below(4);
        let items = items(&mut random, count, culprits);
        let (sim, backend) = supervised(seed, Vec::new());
        let config = config(&mut random, policy);
        let counters = run_either(&mut random, backend, &config, &items).unwrap();
        check_restarts(&counters, &items, 0);
        assert_clean(&sim);
    });
}

#[test]
fn a_fault_that_does_not_come_again_costs_a_restart_and_nothing_else() {
    let policies = policies();
    each_seed(1500, |seed| {
        let mut random = Random::new(seed);
        let policy = policies[seed as usize % policies.len()];
        let items = items(&mut random, 30, 0);
        let fault = match seed % 3 {
            0 => Fault::Kernel {
                launch: random.below(30) as u64,
            },
            1 => Fault::Lost {
                // What is built comes first.
                call: 40 + random.below(200) as u64,
            },
            _ => Fault::Submission {
                submission: random.below(60) as u64,
            },
        };
        let (sim, backend) = supervised(seed, vec![fault]);
        let config = config(&mut random, policy);
        // Nothing is brought back before there is something to lose.
        if let Ok(counters) = run_either(&mut random, backend, &config, &items) {
            check_restarts(&counters, &items, 1);
        }
        assert_clean(&sim);
    });
}

#[test]
fn a_process_that_is_killed_while_it_works_or_starts_costs_restarts_and_no_item() {
    let policies = policies();
    each_seed(1000, |seed| {
        let mut random = Random::new(seed);
        let policy = policies[seed as usize % policies.len()];
        let culprits = random.below(3);
        let items = items(&mut random, 30, culprits);
        // Some of the first forty calls open the slots.
        let killed = (0..4 + random.below(10)).map(|_| Fault::Killed {
            call: random.below(1500) as u64,
        });
        let mut faults: Vec<Fault> = killed.collect();
        faults.extend((0..random.below(4)).map(|_| Fault::KilledStart {
            revival: random.below(8) as u64,
        }));
        let count = faults.len() as u64;
        let (sim, backend) = supervised(seed, faults);
        let config = config(&mut random, policy);
        let counters = run_either(&mut random, backend, &config, &items).unwrap();
        check_restarts(&counters, &items, count);
        assert_clean(&sim);
    });
}

#[test]
fn an_item_that_cannot_be_written_again_gets_that_error_and_the_others_their_results() {
    let (sim, backend) = supervised(11, vec![Fault::Kernel { launch: 0 }]);
    // Those that were written, by their first value.
    let written = Mutex::new(HashSet::new());
    let workload = Watched {
        scale: Scale::new(2.0),
        before_write: move |item: &[f32]| {
            if written.lock().unwrap().insert(item[0].to_bits()) {
                Ok(())
            } else {
                Err(Error::new(ErrorKind::Input, "the file is gone"))
            }
        },
    };
    let config = config(&mut Random::new(11), Policy::default());
    let engine = Engine::new(workload, &[backend], pool(), &config).unwrap();
    // The first batch is lost; later ones are written once.
    let submit = |item: Vec<f32>| (item.clone(), engine.submit(item).unwrap());
    let tickets: Vec<_> = vectors(40).into_iter().map(submit).collect();
    engine.flush().unwrap();
    let mut unwritten = 0;
    for (item, ticket) in tickets {
        match ticket.wait().expect("every ticket is answered").result {
            Ok((values, _)) => assert_eq!(values, doubled(&item)),
            Err(error) => {
                assert!(error.message().contains("the file is gone"), "{error}");
                unwritten += 1;
            }
        }
    }
    assert!((1..40).contains(&unwritten), "{unwritten}");
    assert_eq!(engine.counters().items_quarantined, 0);
    drop(engine);
    assert_clean(&sim);
}

#[test]
fn a_supervised_backend_serves_one_engine() {
    let (_, backend) = supervised(5, Vec::new());
    let config = config(&mut Random::new(5), Policy::default());
    let open = |backends: &[Arc<dyn Backend>]| {
        Engine::new(Scale::new(2.0), backends, pool(), &config).map(drop)
    };
    let twice = [Arc::clone(&backend), Arc::clone(&backend)];
    let is_refused = |opened: Result<()>| {
        let error = opened.expect_err("a second engine is refused");
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.fix_text().is_some(), "{error}");
    };
    is_refused(open(&twice));
    let first = Pipeline::new(Scale::new(2.0), &twice[..1], pool(), &config).unwrap();
    is_refused(open(&twice[..1]));
    drop(first);
    open(&twice[..1]).unwrap();
}

/// Of two devices one is slow, and the other is lost for good while two batches wait for a slot.
#[test]
fn batches_that_wait_keep_their_order_when_a_device_is_lost() {
    let calls = 200;
    let (slow, first) = supervised(11, vec![Fault::Slow { launch: 0, calls }]);
    let faults = vec![Fault::Kernel { launch: 0 }, Fault::Revival { revival: 0 }];
    let (lost, second) = supervised(12, faults);
    let mut config = config(&mut Random::new(11), Policy::default());
    (config.slots, config.policy.verify) = (1, Verify::Off);
    let backends = [first, second];
    let mut pipeline = Pipeline::new(Scale::new(2.0), &backends, pool(), &config).unwrap();
    // The last vector closes the batch of the one before it, and fills its own.
    for elements in [64, 64, 32, 64] {
        pipeline.submit(vec![1.0; elements]).unwrap();
    }
    let done = std::iter::from_fn(|| pipeline.wait());
    let mut numbers: Vec<u64> = done
        .map(|(number, done)| done.result.map(|_| number).unwrap())
        .collect();
    // The first two batches ran at once, and that of the lost device once more on the other one.
    numbers[..2].sort_unstable();
    assert_eq!(numbers, [0, 1, 2, 3]);
    assert!(pipeline.counters().reruns >= 1);
    drop(pipeline);
    assert_clean(&slow);
    assert_clean(&lost);
}

#[test]
fn a_device_that_never_starts_again_ends_the_engine_at_the_limit() {
    let starts = (0..20).map(|revival| Fault::KilledStart { revival });
    let faults = starts.chain([Fault::Kernel { launch: 2 }]).collect();
    let (sim, backend) = supervised(7, faults);
    let mut config = config(&mut Random::new(7), Policy::default());
    config.restarts_max = 5;
    let engine = Engine::new(Scale::new(2.0), &[backend], pool(), &config).unwrap();
    let submit = |item: Vec<f32>| engine.submit(item);
    let tickets: Vec<_> = vectors(40).into_iter().map(submit).collect();
    let _ = engine.flush();
    let errors = tickets.into_iter().filter_map(|ticket| {
        let told = ticket.and_then(|ticket| {
            let done = ticket.wait().expect("every ticket is answered");
            done.result
        });
        told.err().map(|error| error.to_string())
    });
    let errors: Vec<String> = errors.collect();
    let names_the_limit = |error: &String| error.contains("restarted 5 times");
    assert!(errors.iter().any(names_the_limit), "{errors:#?}");
    assert_eq!(engine.counters().restarts, 5);
    drop(engine);
    assert_clean(&sim);
}

#[test]
fn a_kernel_that_never_ends_is_given_up_after_the_deadline() {
    let policies = policies();
    each_seed(60, |seed| {
        let mut random = Random::new(seed);
        let mut policy = policies[seed as usize % policies.len()];
        policy.deadline = Some(Duration::from_millis(30));
        let launch = random.below(6) as u64;
        let items = items(&mut random, 30, 0);
        let config = config(&mut random, policy);
        let (sim, backend) = supervised(seed, vec![Fault::Endless { launch }]);
        let counters = run_either(&mut random, backend, &config, &items).unwrap();
        // Other batches may miss the deadline too, on a slow machine.
        assert!((1..=30).contains(&counters.restarts), "{counters:?}");
        assert_clean(&sim);
    });
}

#[test]
fn without_supervision_the_batch_and_its_stage_are_told_and_the_items_handed_back() {
    let policies = policies();
    each_seed(60, |seed| {
        let mut random = Random::new(seed);
        let mut policy = policies[seed as usize % policies.len()];
        policy.deadline = Some(Duration::from_millis(30));
        let config = config(&mut random, policy);
        let items = items(&mut random, 30, 0);
        let faults = vec![Fault::Endless { launch: 0 }];
        let (sim, backend) = device_with(SimOptions {
            faults,
            ..SimOptions::seeded(seed)
        });
        let engine = Engine::new(Scale::new(2.0), &[backend], pool(), &config).unwrap();
        let submit = |item: &Vec<f32>| engine.submit(item.clone());
        let tickets: Vec<_> = items.iter().map(submit).collect();
        let _ = engine.flush();
        let mut kinds = Vec::new();
        for (ticket, item) in tickets.into_iter().zip(&items) {
            let ticket = match ticket {
                Ok(ticket) => ticket,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Closed);
                    continue;
                }
            };
            let done = ticket.wait().expect("every ticket is answered");
            assert_eq!(&done.item, item, "the item comes back");
            let Err(error) = done.result else { continue };
            let text = error.to_string();
            assert!(text.contains("batch "), "{text}");
            if error.kind() == ErrorKind::Deadline {
                // The first batch of a graph is waited for where it is submitted.
                let stage = text.contains("compute") || text.contains("submit");
                assert!(text.contains("slot ") && stage, "{text}");
            }
            kinds.push(error.kind());
        }
        assert!(kinds.contains(&ErrorKind::Deadline), "{kinds:?}");
        drop(engine);
        assert_clean(&sim);
    });
}

#[test]
fn a_device_that_does_not_stay_ends_the_engine() {
    let (sim, backend) = supervised(7, Vec::new());
    let mut config = config(&mut Random::new(7), Policy::default());
    config.restarts_max = 3;
    let mut items = vectors(16);
    items.iter_mut().for_each(|item| item[0] = TWIN_PANICS);
    let engine = Engine::new(Scale::new(2.0), &[backend], pool(), &config).unwrap();
    let submit = |item: &Vec<f32>| engine.submit(item.clone());
    let tickets: Vec<_> = items.iter().map(submit).collect();
    let _ = engine.flush();
    let error = |ticket: Result<tapeloop_engine::Ticket<Scale>>| -> Error {
        let ticket = match ticket {
            Ok(ticket) => ticket,
            Err(error) => return error,
        };
        let done = ticket.wait().expect("every ticket is answered");
        done.result.expect_err("all of them lose the device")
    };
    let errors: Vec<Error> = tickets.into_iter().map(error).collect();
    let told = |error: &&Error| error.to_string().contains("restarted 3 times");
    assert!(errors.iter().find(told).is_some(), "{errors:#?}");
    assert_eq!(engine.counters().restarts, 3);
    drop(engine);
    assert_clean(&sim);
}

#[test]
fn as_many_restarts_as_are_allowed_are_no_end() {
    let (sim, backend) = supervised(7, Vec::new());
    let mut config = config(&mut Random::new(7), Policy::default());
    let mut items = vectors(8);
    items[3][0] = TWIN_PANICS;
    let restarts = run_engine(Arc::clone(&backend), &config, &items)
        .unwrap()
        .restarts;
    config.restarts_max = restarts;
    let counters = run_engine(backend, &config, &items).unwrap();
    assert_eq!(counters.restarts, restarts);
    assert_clean(&sim);
}

#[test]
fn a_ring_goes_on_when_its_device_was_brought_back() {
    let program = tapeloop_conformance::program::Program::new();
    let (sim, backend) = supervised(3, vec![Fault::Kernel { launch: 2 }]);
    let policy = Policy {
        verify: Verify::Off,
        ..Policy::default()
    };
    let mut ring = Ring::<u32>::new(&backend, &program.buckets, 2, &policy, Wait::Block).unwrap();
    let mut failures = 0;
    for round in 0..6 {
        let mut slot = ring.acquire().expect("no slot is lost");
        slot.write_header(Extent::from([4]), 1);
        slot.write(program.handles.x)[..4].fill(round as f32);
        slot.write(program.handles.w)[..4].fill(1.0);
        ring.submit(slot, Extent::from([4]), round).unwrap();
        let outcome = ring.wait().expect("in flight");
        match &outcome {
            Ok(done) => assert_eq!(done.read(program.handles.y)[0], 2.0 * round as f32 + 1.0),
            Err(failed) => {
                assert_eq!(failed.error.kind(), ErrorKind::Device);
                assert!(backend.revive().unwrap());
                failures += 1;
            }
        }
        ring.release(outcome);
    }
    assert_eq!(failures, 1);
    drop(ring);
    assert_clean(&sim);
}

#[test]
fn a_ring_that_is_dropped_in_flight_gives_the_device_up_after_the_deadline() {
    let program = tapeloop_conformance::program::Program::new();
    let (sim, backend) = device_with(SimOptions {
        faults: vec![Fault::Endless { launch: 0 }],
        ..SimOptions::seeded(3)
    });
    let policy = Policy {
        verify: Verify::Off,
        deadline: Some(Duration::from_millis(20)),
        ..Policy::default()
    };
    let mut ring = Ring::<()>::new(&backend, &program.buckets, 1, &policy, Wait::Block).unwrap();
    let mut slot = ring.acquire().unwrap();
    slot.write_header(Extent::from([4]), 1);
    ring.submit(slot, Extent::from([4]), ()).unwrap();
    drop(ring);
    let lost = backend.allocate(Space::Device, 64).unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::Deadline);
    assert_clean(&sim);
}
