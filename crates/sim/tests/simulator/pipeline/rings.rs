//! A `Ring` stepped by a seed: slots in every state at once, in any order.

use crate::random::Random;
use crate::seeds::broken::{BrokenBackend, Bug};
use crate::seeds::each_seed;
use crate::seeds::simulated::device_with;
use std::cell::Cell;
use std::collections::BTreeMap;
use tapeloop_conformance::program::{CAPACITIES, Input, Program, policies};
use tapeloop_engine::pipeline::{Filling, Finished, Ring, Slot, Wait};
use tapeloop_engine::replay::{Mode, Policy};
use tapeloop_engine::workload::Extent;
use tapeloop_engine::{Error, ErrorKind};
use tapeloop_sim::{Fault, Live, SimOptions};

const SEEDS: u64 = 800;

/// A mistake of a program that compiles.
#[derive(Clone, Copy, PartialEq)]
enum Mistake {
    None,
    /// The batch is said to span less than was written.
    SpansLess,
    /// A finished slot is dropped in place of released.
    DropsASlot,
}

#[derive(Clone, Debug, PartialEq)]
enum Event {
    Submitted(u64),
    Finished(u64, bool),
    Nothing,
}

#[derive(Default)]
struct Outcome {
    trace: Vec<Event>,
    wrong: Vec<String>,
    failed: bool,
}

struct Driver<'a> {
    program: &'a Program,
    ring: Ring<u64>,
    random: Random,
    slots: usize,
    filling: Vec<(Slot<Filling>, Input)>,
    finished: Vec<Finished<u64>>,
    /// Batches that were submitted and did not come out.
    out: BTreeMap<u64, Input>,
    next: u64,
    faulted: bool,
    mistake: Mistake,
    outcome: Outcome,
}

fn run(
    seed: u64,
    program: &Program,
    policy: &Policy,
    faults: &[Fault],
    bug: Bug,
    mistake: Mistake,
) -> Outcome {
    let mut random = Random::new(seed);
    let faulted = !faults.is_empty();
    let (sim, backend) = device_with(SimOptions {
        poisoned: seed % 2 == 1,
        faults: faults.to_vec(),
        ..SimOptions::seeded(seed)
    });
    let backend = BrokenBackend::backend(backend, bug);
    let policy = Policy {
        ready_max: 1 + random.below(2),
        warm_up: random.flip(),
        ..*policy
    };
    let slots = 1 + random.below(4);
    let wait = *random.pick(&[Wait::Spin, Wait::Block]);
    let mut outcome = match Ring::new(&backend, &program.buckets, slots, &policy, wait) {
        Err(error) => Outcome {
            wrong: unplanned(&error),
            failed: true,
            ..Outcome::default()
        },
        Ok(ring) => {
            let mut driver = Driver {
                program,
                ring,
                random,
                slots,
                filling: Vec::new(),
                finished: Vec::new(),
                out: BTreeMap::new(),
                next: 0,
                faulted,
                mistake,
                outcome: Outcome::default(),
            };
            (0..50).for_each(|_| driver.step());
            driver.drain();
            driver.outcome
        }
    };
    drop(backend);
    let violations = sim.violations();
    let violations = violations.iter().map(|violation| violation.to_string());
    outcome.wrong.extend(violations);
    if sim.live() != Live::default() {
        outcome.wrong.push(format!("still live: {:?}", sim.live()));
    }
    outcome
}

fn unplanned(error: &Error) -> Vec<String> {
    let kinds = [ErrorKind::Device, ErrorKind::OutOfMemory];
    let text = error.to_string();
    if kinds.contains(&error.kind()) && text.contains("as planned") {
        Vec::new()
    } else {
        vec![text]
    }
}

impl Driver<'_> {
    fn check(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.outcome.wrong.push(what());
        }
    }

    fn step(&mut self) {
        match self.random.below(12) {
            0..4 => self.acquire(),
            4..7 => self.submit(),
            7..9 => {
                let polled = self.ring.poll();
                self.keep(polled);
            }
            9 => {
                let waited = self.ring.wait();
                self.keep(waited);
            }
            _ => self.release(),
        }
        let (flight, out) = (self.ring.in_flight(), self.slots_out());
        let slots = self.slots;
        self.check(flight <= slots && out <= slots, || {
            format!("{flight} in flight and {out} in use, of {slots}")
        });
    }

    fn slots_out(&self) -> usize {
        self.filling.len() + self.finished.len() + self.ring.in_flight()
    }

    fn acquire(&mut self) {
        let free = self.slots_out() < self.slots && !self.outcome.failed;
        let Some(mut slot) = self.ring.acquire() else {
            return self.check(!free, || "no slot, and not all are in use".to_owned());
        };
        let fewer = self.slots_out() < self.slots;
        self.check(fewer, || "one slot more than there are".to_owned());
        let elements = 2 + self.random.below(CAPACITIES[1] - 1);
        let input = Input::from_seed(self.random.next(), elements);
        let handles = self.program.handles;
        slot.write(handles.header)[0] = elements as u32;
        slot.write(handles.x)[..elements].copy_from_slice(&input.x);
        slot.write(handles.w)[..elements].copy_from_slice(&input.w);
        self.filling.push((slot, input));
    }

    fn submit(&mut self) {
        if self.filling.is_empty() {
            return;
        }
        let which = self.random.below(self.filling.len());
        let (slot, input) = self.filling.swap_remove(which);
        let batch = self.next;
        self.next += 1;
        let live = match self.mistake {
            Mistake::SpansLess => Extent::from([1]),
            _ => input.extent(),
        };
        self.out.insert(batch, input);
        match self.ring.submit(slot, live, batch) {
            Ok(_) => self.outcome.trace.push(Event::Submitted(batch)),
            Err(failed) => self.keep(Some(Err(failed))),
        }
    }

    fn keep(&mut self, outcome: Option<Finished<u64>>) {
        match outcome {
            Some(finished) => self.finished.push(finished),
            None => self.outcome.trace.push(Event::Nothing),
        }
    }

    fn release(&mut self) {
        if self.finished.is_empty() {
            return;
        }
        let which = self.random.below(self.finished.len());
        let finished = self.finished.swap_remove(which);
        let handles = self.program.handles;
        let results = finished.as_ref().ok().map(|slot| {
            let read = |buffer| slot.read(buffer).to_vec();
            (read(handles.y), read(handles.z))
        });
        let (batch, error) = match (self.mistake, finished) {
            (Mistake::DropsASlot, Ok(slot)) => (*slot.batch(), None),
            (_, finished) => self.ring.release(finished),
        };
        let Some(input) = self.out.remove(&batch) else {
            return self.check(false, || format!("batch {batch} came out before"));
        };
        if let Some((y, z)) = &results {
            let starts = |found: &[f32], expected: &[f32]| found[..expected.len()] == *expected;
            let right = starts(y, &input.y(2.0)) && starts(z, &input.z(1.0));
            self.check(right, || format!("batch {batch} is wrong"));
        }
        if let Some(error) = error {
            self.outcome.failed = true;
            let wrong = if self.faulted {
                unplanned(&error)
            } else {
                vec![error.to_string()]
            };
            self.outcome.wrong.extend(wrong);
        }
        let event = Event::Finished(batch, results.is_some());
        self.outcome.trace.push(event);
    }

    fn drain(&mut self) {
        while !self.filling.is_empty() {
            self.submit();
        }
        while let Some(finished) = self.ring.wait() {
            self.finished.push(finished);
        }
        while !self.finished.is_empty() {
            self.release();
        }
        let lost = self.out.len();
        self.check(lost == 0, || format!("{lost} batches are lost"));
        let free = std::iter::from_fn(|| self.ring.acquire()).count();
        let slots = self.slots;
        // A slot that failed may be gone.
        self.check(free == slots || self.outcome.failed, || {
            format!("{free} of {slots} slots are left")
        });
    }
}

fn run_twice(seed: u64, program: &Program, policy: &Policy, faults: &[Fault]) -> Outcome {
    let one = || run(seed, program, policy, faults, Bug::None, Mistake::None);
    let (first, again) = (one(), one());
    assert_eq!(first.wrong, Vec::<String>::new(), "{policy:?}");
    assert!(first.trace == again.trace, "not the same run again");
    first
}

#[test]
fn slots_go_round_in_any_order_and_the_run_repeats() {
    let (program, policies) = (Program::new(), policies());
    each_seed(SEEDS, |seed| {
        let policy = &policies[seed as usize % policies.len()];
        let outcome = run_twice(seed, &program, policy, &[]);
        assert!(!outcome.failed);
    });
}

#[test]
fn a_batch_comes_back_from_a_ring_whatever_fails() {
    let (program, policies) = (Program::new(), policies());
    let failed = Cell::new(0);
    let run = each_seed(SEEDS, |seed| {
        let policy = &policies[seed as usize % policies.len()];
        let fault = Fault::seeded(seed, 50);
        let outcome = run_twice(seed, &program, policy, &[fault]);
        failed.set(failed.get() + u64::from(outcome.failed));
    });
    assert!(run < SEEDS || failed.get() > SEEDS / 3, "{failed:?}");
}

fn planted(which: impl Fn(&Policy) -> bool, bug: Bug, mistake: Mistake) {
    let (program, mut policies) = (Program::new(), policies());
    policies.retain(which);
    each_seed(100, |seed| {
        let policy = &policies[seed as usize % policies.len()];
        let of = |bug, mistake| run(seed, &program, policy, &[], bug, mistake);
        assert!(!of(bug, mistake).wrong.is_empty(), "{policy:?}");
        assert_eq!(of(Bug::None, Mistake::None).wrong, Vec::<String>::new());
    });
}

#[test]
fn a_ring_on_slots_that_lie_is_caught() {
    planted(|_| true, Bug::DoneTooEarly, Mistake::None);
    // A loop announces its batches without a fence.
    let has_fences = |policy: &Policy| policy.mode != Mode::Resident;
    planted(has_fences, Bug::NoFence, Mistake::None);
}

#[test]
fn a_batch_that_is_said_to_span_less_is_caught() {
    let live = |policy: &Policy| policy.mode == Mode::Stream;
    planted(live, Bug::None, Mistake::SpansLess);
}

#[test]
fn a_slot_that_is_dropped_is_caught() {
    planted(|_| true, Bug::None, Mistake::DropsASlot);
}
