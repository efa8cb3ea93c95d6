//! The executor on the simulated device, driven by hand from one thread, so that
//! a seed is the same run every time.

use crate::random::Random;
use crate::seeds::each_seed;
use crate::seeds::simulated::{assert_clean, device};
use tapeloop_conformance::program::{CAPACITIES, Input, Program, policies};
use tapeloop_engine::backend::contract::DeviceSlot;
use tapeloop_engine::replay::{Executor, Policy};

struct Slot {
    device_slot: Box<dyn DeviceSlot>,
    executor: Executor,
    in_flight: Option<Input>,
}

/// Batches of random sizes through several slots; looked at, waited for and
/// started in an order that the seed chooses.
fn drive(program: &Program, seed: u64, policy: &Policy, batches: usize) {
    let mut random = Random::new(seed);
    let (sim, backend) = device(seed);
    let slots = program.slots(&backend, 1 + random.below(3), policy);
    let slots = slots.unwrap().into_iter();
    let mut slots: Vec<Slot> = slots
        .map(|(device_slot, executor)| Slot {
            device_slot,
            executor,
            in_flight: None,
        })
        .collect();
    let mut started = 0;
    while started < batches || slots.iter().any(|slot| slot.in_flight.is_some()) {
        let which = random.below(slots.len());
        let slot = &mut slots[which];
        let Some(input) = &slot.in_flight else {
            if started < batches {
                started += 1;
                let capacity = *random.pick(&CAPACITIES);
                let elements = 1 + random.below(capacity);
                let input = Input::from_seed(random.next(), elements);
                program.fill(&mut *slot.device_slot, &input);
                let bucket = program.buckets.find(input.extent()).unwrap();
                let replayed = slot
                    .executor
                    .replay(&mut *slot.device_slot, bucket, input.extent());
                replayed.unwrap();
                slot.in_flight = Some(input);
            }
            continue;
        };
        let done = match random.below(4) {
            0 => slot.device_slot.wait().map(|()| true),
            _ => slot.device_slot.is_done(),
        };
        if done.unwrap() {
            assert!(program.is_right(&*slot.device_slot, input), "{policy:?}");
            slot.in_flight = None;
        }
    }
    drop(slots);
    assert_clean(&sim);
}

#[test]
fn every_policy_is_right_and_ordered_on_every_seed() {
    let (program, policies) = (Program::new(), policies());
    assert_eq!(policies.len(), 15);
    each_seed(100, |seed| {
        for policy in &policies {
            drive(&program, seed, policy, 8);
        }
    });
}

#[test]
fn buckets_that_are_dropped_and_made_again_are_right_and_ordered() {
    let (program, policies) = (Program::new(), policies());
    each_seed(50, |seed| {
        for policy in &policies {
            let policy = Policy {
                ready_max: 1,
                warm_up: seed % 3 == 0,
                ..*policy
            };
            drive(&program, seed, &policy, 8);
        }
    });
}
