//! The fronts without threads on the simulated device, stepped by a seed. With no
//! threads, and time that is given to them, a seed is the same run every time.

mod driver;
mod rings;

use crate::mix::ItemFate;
use crate::seeds::broken::Bug;
use crate::seeds::each_seed;
use driver::{Event, Outcome, Setup, run};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use tapeloop_conformance::program::policies;
use tapeloop_engine::replay::{Mode, Policy};
use tapeloop_sim::Fault;

const SEEDS: u64 = 800;

/// Never asked for a thread: batches are small.
fn pool() -> Arc<ThreadPool> {
    Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap())
}

/// The same seed must give the same run, to the last delivery.
fn run_twice(seed: u64, setup: &Setup, pool: &Arc<ThreadPool>) -> Outcome {
    let (first, again) = (run(seed, setup, pool), run(seed, setup, pool));
    assert_eq!(first.wrong, Vec::<String>::new(), "{:?}", setup.policy);
    assert!(first.trace == again.trace, "not the same run again");
    first
}

#[test]
fn every_item_comes_out_once_and_right_and_the_run_repeats() {
    let (pool, policies) = (pool(), policies());
    // What the seeds must have met, or they show nothing.
    let met = RefCell::new([0_u64; 7]);
    let run = each_seed(SEEDS, |seed| {
        let policy = policies[seed as usize % policies.len()];
        let outcome = run_twice(seed, &Setup::new(policy), &pool);
        let counters = outcome.counters;
        let mut met = met.borrow_mut();
        for event in &outcome.trace {
            match event {
                Event::Refused(_) => met[0] += 1,
                Event::Accepted(_, ItemFate::NoExtent) => met[1] += 1,
                Event::Accepted(_, ItemFate::WriteFails) => met[2] += 1,
                Event::Accepted(_, ItemFate::ReadFails) => met[3] += 1,
                _ => {}
            }
        }
        met[4] += counters.bucket_evictions;
        met[5] += counters.bucket_hits;
        met[6] += u64::from(counters.batches > 10);
    });
    if run >= SEEDS {
        assert!(met.borrow().iter().all(|met| *met > 50), "{met:?}");
    }
}

#[test]
fn whatever_fails_every_item_comes_back_once_and_the_run_repeats() {
    let (pool, policies) = (pool(), policies());
    let failed = Cell::new(0);
    let run = each_seed(SEEDS, |seed| {
        let mut setup = Setup::new(policies[seed as usize % policies.len()]);
        setup.faults = vec![Fault::seeded(seed, 50)];
        setup.steps = 40;
        let outcome = run_twice(seed, &setup, &pool);
        failed.set(failed.get() + u64::from(outcome.failed));
    });
    // The rest are slow copies, and faults beyond the end of their run.
    assert!(run < SEEDS || failed.get() > SEEDS / 3, "{failed:?}");
}

/// Every seed must catch the bug that `plant` puts in, and be right without it.
fn planted(which: impl Fn(&Policy) -> bool, plant: impl Fn(&mut Setup)) {
    let (pool, mut policies) = (pool(), policies());
    policies.retain(which);
    // Each policy once: a broken pipeline may take a second to end.
    each_seed(policies.len() as u64, |seed| {
        let mut setup = Setup::new(policies[seed as usize % policies.len()]);
        setup.steps = 20;
        plant(&mut setup);
        let broken = run(seed, &setup, &pool);
        assert!(!broken.wrong.is_empty(), "{:?}", setup.policy);
        (setup.bug, setup.forgets) = (Bug::None, false);
        assert_eq!(run(seed, &setup, &pool).wrong, Vec::<String>::new());
    });
}

#[test]
fn a_slot_that_is_always_done_is_caught() {
    // In mode resident such a slot refuses the fence of a failed batch until the engine gives up after ten
    // seconds. `rings` plants the same bug in that mode too.
    let has_no_loops = |policy: &Policy| policy.mode != Mode::Resident;
    planted(has_no_loops, |setup| setup.bug = Bug::DoneTooEarly);
}

#[test]
fn a_slot_that_stays_done_once_it_was_is_caught() {
    planted(
        |_| true,
        |setup| (setup.bug, setup.slots) = (Bug::DoneEver, Some(1)),
    );
}

#[test]
fn a_slot_that_sets_no_marks_is_caught() {
    // A loop announces its batches without a fence.
    let has_fences = |policy: &Policy| policy.mode != Mode::Resident;
    planted(has_fences, |setup| setup.bug = Bug::NoFence);
}

#[test]
fn the_graph_of_another_bucket_is_caught() {
    planted(
        |policy| policy.mode == Mode::Graph,
        |setup| (setup.bug, setup.slots) = (Bug::FirstGraph, Some(1)),
    );
}

#[test]
fn a_workload_that_leaves_part_of_its_views_is_caught() {
    planted(|_| true, |setup| setup.forgets = true);
}
