//! The executor on the simulated device, driven by hand from one thread, so that
//! a seed is the same run every time.

use crate::seeds::program::{CAPACITIES, Input, Program, assert_clean, device, policies};
use crate::seeds::{Random, each_seed};
use tapeloop::ErrorKind;
use tapeloop::backend::{BlockView, Lane, Space};
use tapeloop::replay::{Executor, Policy};

struct Slot {
    lane: Box<dyn Lane>,
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
        .map(|(lane, executor)| Slot {
            lane,
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
                let input = Input::random(&mut random, elements);
                program.fill(&mut *slot.lane, &input);
                let bucket = program.buckets.find(input.extent()).unwrap();
                let replayed = slot
                    .executor
                    .replay(&mut *slot.lane, bucket, input.extent());
                replayed.unwrap();
                slot.in_flight = Some(input);
            }
            continue;
        };
        let done = match random.below(4) {
            0 => slot.lane.wait().map(|()| true),
            _ => slot.lane.is_done(),
        };
        if done.unwrap() {
            assert!(program.is_right(&*slot.lane, input), "{policy:?}");
            slot.in_flight = None;
        }
    }
    drop(slots);
    assert_clean(&sim);
}

#[test]
fn every_policy_is_right_and_ordered_on_every_seed() {
    let (program, policies) = (Program::new(), policies());
    assert_eq!(policies.len(), 24);
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

#[test]
fn a_batch_refused_half_way_is_over_once_the_lane_says_so() {
    let (program, policies) = (Program::new(), policies());
    each_seed(50, |seed| {
        for policy in &policies {
            let (sim, backend) = device(seed);
            let (mut lane, mut executor) = program.slots(&backend, 1, policy).unwrap().remove(0);
            let block = backend.allocate(Space::Pinned, 32).unwrap();
            let mut bindings = executor.bindings(&mut *lane, 0).unwrap().clone();
            let view = BlockView::new(&block, 0, 32).unwrap();
            bindings.bind_host(program.handles.y, view).unwrap();
            executor.update(&mut *lane, 0, bindings).unwrap();
            let input = Input::random(&mut Random::new(seed), 8);
            program.fill(&mut *lane, &input);
            // The host holds what the batch would write; the uploads may be given.
            let guard = block.read().unwrap();
            let error = executor.replay(&mut *lane, 0, input.extent()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage);
            drop(guard);
            lane.wait().unwrap();
            program.fill(&mut *lane, &input);
            executor.replay(&mut *lane, 0, input.extent()).unwrap();
            lane.wait().unwrap();
            assert_eq!(
                block.read().unwrap()[..],
                bytemuck::cast_slice::<_, u8>(&input.y(2.0))[..]
            );
            drop((lane, executor, block));
            assert_clean(&sim);
        }
    });
}
