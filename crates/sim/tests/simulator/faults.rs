//! Faults at every step: whatever fails, each item comes back once, nothing hangs
//! and nothing is kept.

use crate::random::Random;
use crate::scale::{Scale, doubled, vectors};
use crate::seeds::simulated::device_with;
use crate::seeds::{each_seed, wait};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tapeloop_conformance::program::{BLOCK, Input, Program, policies};
use tapeloop_engine::pipeline::{Engine, EngineConfig, Ticket};
use tapeloop_engine::replay::Policy;
use tapeloop_engine::workload::{Completion, Extent};
use tapeloop_engine::{Error, ErrorKind, Result};
use tapeloop_sim::{Fault, Live, SimOptions};

fn options(seed: u64, faults: Vec<Fault>) -> SimOptions {
    SimOptions {
        faults,
        ..SimOptions::seeded(seed)
    }
}

/// A hang is a failure, and not a test that never ends.
fn answer(ticket: Ticket<Scale>) -> Completion<Scale> {
    let start = Instant::now();
    while !ticket.is_done() {
        assert!(start.elapsed() < Duration::from_secs(20), "a ticket hangs");
        std::thread::yield_now();
    }
    ticket.wait().expect("every ticket is answered")
}

fn is_expected(error: &Error) -> bool {
    let text = error.to_string();
    let planned = text.contains("as planned");
    match error.kind() {
        ErrorKind::Device | ErrorKind::OutOfMemory | ErrorKind::Closed => planned,
        _ => false,
    }
}

/// Runs tickets through an engine on a device with a fault; whether anything
/// failed.
fn tickets(seed: u64, policy: &Policy, fault: Fault, pool: &Arc<ThreadPool>) -> bool {
    let mut random = Random::new(seed);
    let (sim, backend) = device_with(options(seed, vec![fault]));
    let mut config = EngineConfig::new([64, 8]);
    config.buckets = [[16, 8], [64, 8]].map(Extent::from).to_vec();
    config.slots = 1 + random.below(3);
    config.policy = *policy;
    config.batch_wait = Duration::ZERO;
    config.wait = wait(&mut random);
    let engine = Engine::new(Scale::new(2.0), &[backend], Arc::clone(pool), &config);
    let mut failed = false;
    match engine {
        Err(error) => {
            assert!(is_expected(&error), "{fault:?}: {error}");
            failed = true;
        }
        Ok(engine) => {
            let items = vectors(12);
            let submit = |item: &Vec<f32>| engine.submit(item.clone());
            let tickets: Vec<_> = items.iter().map(submit).collect();
            let flushed = engine.flush();
            assert!(flushed.is_ok() || engine.ended().is_some());
            for (ticket, item) in tickets.into_iter().zip(&items) {
                let ticket = match ticket {
                    Ok(ticket) => ticket,
                    Err(error) => {
                        assert!(is_expected(&error), "{fault:?}: {error}");
                        assert!(engine.ended().is_some(), "{fault:?}");
                        failed = true;
                        continue;
                    }
                };
                let done = answer(ticket);
                assert_eq!(&done.item, item, "the item comes back");
                match done.result {
                    Ok((values, _)) => assert_eq!(values, doubled(item)),
                    Err(error) => {
                        assert!(is_expected(&error), "{fault:?}: {error}");
                        failed = true;
                    }
                }
            }
        }
    }
    assert_eq!(sim.violations(), []);
    assert_eq!(sim.live(), Live::default(), "{fault:?}");
    failed
}

fn pool() -> Arc<ThreadPool> {
    Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap())
}

#[test]
fn an_engine_answers_every_ticket_whatever_fails() {
    let (pool, policies) = (pool(), policies());
    each_seed(1500, |seed| {
        let policy = policies[seed as usize % policies.len()];
        tickets(seed, &policy, Fault::seeded(seed, 60), &pool);
    });
}

#[test]
fn a_device_that_is_lost_at_any_call_is_survived() {
    let (pool, policies) = (pool(), policies());
    each_seed(4, |seed| {
        for (index, policy) in policies
            .iter()
            .enumerate()
            .skip(seed as usize % 2)
            .step_by(2)
        {
            let mut losses = 0;
            for call in (0..60).step_by(3) {
                let call = call + (index as u64 + seed) % 3;
                losses += usize::from(tickets(seed, policy, Fault::Lost { call }, &pool));
            }
            assert!(losses > 0, "{policy:?}");
        }
    });
}

/// A fixed plan of batches over two slots by hand; ends at the first failure.
fn by_hand(program: &Program, seed: u64, policy: &Policy, faults: Vec<Fault>) -> Result<()> {
    let mut random = Random::new(seed);
    let (sim, backend) = device_with(options(seed, faults));
    let mut run = || {
        let mut slots = program.slots(&backend, 2, policy)?;
        for _ in 0..3 {
            for (device_slot, executor) in &mut slots {
                let input = Input::from_seed(random.next(), 2 * BLOCK);
                program.fill(&mut **device_slot, &input);
                executor.replay(&mut **device_slot, 0, input.extent())?;
                while !device_slot.is_done()? {}
                assert!(program.is_right(&**device_slot, &input));
            }
        }
        Ok(())
    };
    let ran = run();
    assert_eq!(sim.violations(), []);
    assert_eq!(sim.live(), Live::default());
    ran
}

#[test]
fn every_single_call_may_fail() {
    let (program, policies) = (Program::new(), policies());
    each_seed(4, |seed| {
        for policy in &policies {
            let mut call = 0;
            // Ends where the plan lies beyond the program's last call.
            while let Err(error) = by_hand(&program, seed, policy, vec![Fault::Lost { call }]) {
                assert_eq!(error.code(), Some(719), "{error}");
                call += 1;
            }
            assert!(call > 20, "{call}");
        }
    });
}

#[test]
fn every_submission_kernel_allocation_and_capture_may_fail() {
    let (program, policies) = (Program::new(), policies());
    type Plan = fn(u64) -> Fault;
    let plans: [(Plan, i32); 4] = [
        (|submission| Fault::Submission { submission }, 701),
        (|launch| Fault::Kernel { launch }, 700),
        (|allocation| Fault::OutOfMemory { allocation }, 2),
        (|capture| Fault::Capture { capture }, 901),
    ];
    each_seed(6, |seed| {
        for policy in &policies {
            for (plan, code) in plans {
                let mut at = 0;
                while let Err(error) = by_hand(&program, seed, policy, vec![plan(at)]) {
                    assert_eq!(error.code(), Some(code), "{error}");
                    at += 1;
                }
            }
        }
    });
}

#[test]
fn slow_copies_change_nothing_but_the_time() {
    let (program, policies) = (Program::new(), policies());
    each_seed(20, |seed| {
        for policy in &policies {
            let slow = (0..40).map(|copy| Fault::SlowCopy { copy, parts: 40 });
            by_hand(&program, seed, policy, slow.collect()).unwrap();
        }
    });
}
