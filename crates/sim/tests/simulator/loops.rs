//! Loops on the device: each mistake in their protocol is caught on every seed, and the program
//! without it is clean on the same seeds.

use crate::random::Random;
use crate::seeds::each_seed;
use crate::seeds::simulated::{assert_clean, device, device_with};
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;
use tapeloop_conformance::program::{CAPACITIES, Input, Program};
use tapeloop_engine::backend::contract::DeviceSlot;
use tapeloop_engine::backend::{Backend, Residency};
use tapeloop_engine::replay::{Build, Executor, Mode, Policy, Transfer, Verify};
use tapeloop_engine::{ErrorKind, Result};
use tapeloop_sim::{Fault, LoopMistake, SimBackend, SimOptions, ViolationKind};

const SEEDS: u64 = 40;

fn policy(random: &mut Random, residency: Residency) -> Policy {
    Policy {
        mode: Mode::Resident,
        residency,
        build: *random.pick(Build::ALL),
        transfer: *random.pick(Transfer::ALL),
        // Its waits would cover those that are missing.
        verify: Verify::Off,
        ..Policy::default()
    }
}

/// Loops that park now and then between two batches, and are stopped now and then.
fn short() -> Residency {
    Residency {
        idle: Duration::from_micros(12),
        busy: Duration::from_micros(150),
        ..Residency::default()
    }
}

/// Gives batches to two slots until `ends`; some are followed at once by the same batch in the
/// other bucket. Returns how many results were wrong.
fn batches(
    random: &mut Random,
    backend: &Arc<dyn Backend>,
    policy: &Policy,
    mut ends: impl FnMut() -> bool,
) -> Result<usize> {
    let program = Program::new();
    let mut slots = program.slots(backend, 2, policy)?;
    let mut wrong = 0;
    while !ends() {
        let (slot, executor) = &mut slots[random.below(2)];
        let elements = 1 + random.below(CAPACITIES[0]);
        let input = Input::from_seed(random.next(), elements);
        program.fill(&mut **slot, &input);
        let bucket = random.below(2);
        executor.replay(&mut **slot, bucket, input.extent())?;
        if random.below(4) == 0 {
            executor.replay(&mut **slot, 1 - bucket, input.extent())?;
        }
        if random.flip() {
            slot.wait()?
        } else {
            while !slot.is_done()? {}
        }
        wrong += usize::from(!program.is_right(&**slot, &input));
    }
    Ok(wrong)
}

/// Runs batches on a device whose loops, or their host, make a mistake. Returns the first rule that
/// they break.
fn violation(seed: u64, mistake: LoopMistake) -> Option<ViolationKind> {
    let mut random = Random::new(seed);
    let (sim, backend) = device_with(SimOptions {
        faults: vec![Fault::Loop(mistake)],
        ..SimOptions::seeded(seed)
    });
    let idles = match mistake {
        // A loop must be about to park when it is rung.
        LoopMistake::TakesAfterParking | LoopMistake::LooksOnce => 1..200,
        _ => 1_000..1_001,
    };
    for idle in idles {
        let residency = Residency {
            idle: Duration::from_micros(idle),
            ..Residency::default()
        };
        let policy = policy(&mut random, residency);
        let mut left = 40;
        // It may fail once a rule is broken.
        let _ = batches(&mut random, &backend, &policy, || {
            left -= 1;
            left < 0 || !sim.violations().is_empty()
        });
        if let Some(violation) = sim.violations().first() {
            return Some(violation.kind);
        }
    }
    None
}

#[test]
fn every_mistake_is_caught_on_every_seed() {
    each_seed(SEEDS, |seed| {
        for &mistake in LoopMistake::ALL {
            let expected = match mistake {
                LoopMistake::TakesAfterParking
                | LoopMistake::RingsTwice
                | LoopMistake::LooksOnce
                | LoopMistake::StopIsLost => ViolationKind::Doorbell,
                _ => ViolationKind::Unordered,
            };
            assert_eq!(violation(seed, mistake), Some(expected), "{mistake:?}");
        }
    });
}

/// Runs 200 batches on a device without faults. Returns the number of launches of loops.
fn launches(seed: u64, residency: Residency) -> u64 {
    let mut random = Random::new(seed);
    let policy = policy(&mut random, residency);
    let (sim, backend) = device(seed);
    let mut left = 200;
    let wrong = batches(&mut random, &backend, &policy, || {
        left -= 1;
        left < 0
    });
    assert_eq!(wrong.unwrap(), 0, "{policy:?}");
    let submissions = backend.driver_calls().submissions;
    drop(backend);
    assert_clean(&sim);
    submissions
}

#[test]
fn loops_are_right_and_are_launched_when_they_have_parked() {
    let second = Duration::from_secs(1);
    let (idle, busy) = (Cell::new(0), Cell::new(0));
    let run = each_seed(SEEDS, |seed| {
        // Two slots with a loop for each bucket.
        let never = Residency {
            idle: second,
            busy: second,
            ..short()
        };
        let first = launches(seed, never);
        assert!(first <= 4, "{first} launches without a reason");
        let ended = Residency {
            busy: second,
            ..short()
        };
        idle.set(idle.get() + launches(seed, ended));
        let stopped = Residency {
            idle: second,
            ..short()
        };
        busy.set(busy.get() + launches(seed, stopped));
        // Loops that are about to park when they are rung.
        launches(seed, short());
        let idle = Duration::from_micros(seed);
        launches(seed, Residency { idle, ..short() });
    });
    assert!(
        idle.get() > 20 * run && busy.get() > 20 * run,
        "{idle:?} and {busy:?} in {run}"
    );
}

fn one_slot(seed: u64, faults: Vec<Fault>) -> (Arc<SimBackend>, Box<dyn DeviceSlot>, Executor) {
    let (sim, backend) = device_with(SimOptions {
        faults,
        ..SimOptions::seeded(seed)
    });
    let policy = policy(&mut Random::new(seed), short());
    let slots = Program::new().slots(&backend, 1, &policy);
    let (slot, executor) = slots.unwrap().remove(0);
    (sim, slot, executor)
}

#[test]
fn a_launch_that_is_refused_fails_its_batch_and_no_other() {
    each_seed(SEEDS, |seed| {
        let submission = seed % 8;
        let (sim, mut slot, mut executor) = one_slot(seed, vec![Fault::Submission { submission }]);
        let (program, mut random) = (Program::new(), Random::new(seed));
        let mut failed = 0;
        while failed == 0 || random.below(8) > 0 {
            let input = Input::from_seed(random.next(), 5);
            program.fill(&mut *slot, &input);
            let replayed = executor.replay(&mut *slot, random.below(2), input.extent());
            match replayed.and_then(|_| slot.wait()) {
                Ok(()) => assert!(program.is_right(&*slot, &input)),
                Err(error) => {
                    assert_eq!((error.kind(), error.code()), (ErrorKind::Device, Some(701)));
                    assert!(slot.is_quiet());
                    failed += 1;
                }
            }
        }
        assert_eq!(failed, 1);
        drop((slot, executor));
        assert_clean(&sim);
    });
}
