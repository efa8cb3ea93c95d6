//! Loops on the device of a worker process: this process rings them, so batches cost no message.

use super::sevenfold::sevenfold;
use super::{CARD, Fated, pool, say, worker};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tapeloop::Result;
use tapeloop::backend::Backend;
use tapeloop::backend::contract::host_ns;
use tapeloop::backend::worker::WorkerBackend;
use tapeloop::pipeline::{Engine, EngineConfig, Ring, Wait};
use tapeloop::replay::{Mode, Policy};
use tapeloop::workload::{Completion, Extent};

/// What batches cost.
struct Cost {
    requests: u64,
    launches: u64,
    took: Duration,
}

fn cost(worker: &WorkerBackend, work: impl FnOnce()) -> Cost {
    // A launch of a loop comes with an event.
    let launches = || worker.driver_calls().submissions / 2;
    let launches_before = launches();
    let (before, start) = (worker.requests(), Instant::now());
    work();
    let (took, requests) = (start.elapsed(), worker.requests() - before);
    Cost {
        requests,
        launches: launches() - launches_before,
        took,
    }
}

impl Cost {
    /// Loops are launched every 10 ms; more often if this process was interrupted.
    fn check(&self, what: &str, batches: u32, loops: u64) {
        let Cost {
            requests,
            launches,
            took,
        } = *self;
        let each = took / batches;
        say(&format!(
            "{what}: {each:?} each, {requests} messages and {launches} launches for {batches} batches"
        ));
        assert_eq!(requests, launches, "{what}");
        let launches_max = 10 * loops * (took.as_millis() as u64 / 10 + 1);
        assert!((1..=launches_max).contains(&launches), "{what}");
    }
}

/// Batches of `len` words, each with other words at both ends, which are checked as soon as the
/// batch is done, as are its times.
fn ends_of_batches(worker: &Arc<WorkerBackend>, len: u32, slots: usize, batches: u32) {
    let (x, y, buckets) = sevenfold(len);
    let policy = Policy::of(Mode::Resident);
    let backend: Arc<dyn Backend> = worker.clone();
    let mut ring: Ring<(u32, u64)> =
        Ring::new(&backend, &buckets, slots, &policy, Wait::Spin).unwrap();
    let last = len as usize - 1;
    let mut run = |numbers: std::ops::Range<u32>| {
        let (mut next, mut back) = (numbers.start, 0);
        while back < numbers.len() {
            while next < numbers.end
                && let Some(mut slot) = ring.acquire()
            {
                let x = slot.write(x);
                (x[0], x[last]) = (next, !next);
                let batch = (next, host_ns(Instant::now()));
                ring.submit_timed(slot, Extent::from([len]), batch).unwrap();
                next += 1;
            }
            let finished = ring.wait().expect("a batch is in flight");
            let slot = finished.as_ref().expect("the device does not fail");
            let ((batch, given_ns), y) = (*slot.batch(), slot.read(y));
            let expected = [batch, !batch].map(|x| 7_u32.wrapping_mul(x));
            assert_eq!([y[0], y[last]], expected, "batch {batch}");
            if numbers.start > 0 {
                let times = slot.timestamps().unwrap().map(Option::unwrap);
                assert!(times.is_sorted() && given_ns <= times[0], "{times:?}");
                assert!(times[3] <= host_ns(Instant::now()));
            }
            let (_, error) = ring.release(finished);
            assert!(error.is_none());
            back += 1;
        }
    };
    // The first batch of a slot is verified.
    run(0..100);
    let cost = cost(worker, || run(100..100 + batches));
    let what = format!("{slots} slots of {} KiB in a worker", len >> 8);
    cost.check(&what, batches, slots as u64);
}

#[test]
fn batches_of_a_loop_in_a_worker_are_right_and_cost_no_message() {
    let _turn = CARD.lock();
    let Some(worker) = worker().map(Arc::new) else {
        return;
    };
    for slots in [1, 4, 8] {
        ends_of_batches(&worker, 4 << 10, slots, 100_000);
        ends_of_batches(&worker, 2 << 20, slots, 1_000);
    }
    assert!(!worker.revive().unwrap(), "nothing was lost");
}

/// Batches of 100 items through an engine.
fn run(engine: &mut Engine<Fated>, items: u32, mut after: impl FnMut(u32)) {
    let mut next = 10_u32;
    let mut sink = |done: Completion<Fated>| -> Result<()> {
        assert_eq!((done.item, done.result?), (next, next.wrapping_mul(7)));
        next += 1;
        after(next);
        Ok(())
    };
    engine.run(10..10 + items, &mut sink).unwrap();
    assert_eq!(next, 10 + items);
}

fn engine(worker: &Arc<WorkerBackend>, mode: Mode) -> Engine<Fated> {
    let mut config = EngineConfig::new([100]);
    config.policy = super::config(mode).policy;
    let backend: Arc<dyn Backend> = worker.clone();
    Engine::new(Fated::new(1), &[backend], pool(), &config).unwrap()
}

#[test]
fn a_worker_that_is_killed_again_and_again_gets_its_loops_back() {
    let _turn = CARD.lock();
    let Some(worker) = worker().map(Arc::new) else {
        return;
    };
    let mut engine = engine(&worker, Mode::Resident);
    run(&mut engine, 10_000, |_| ());
    run(&mut engine, 100_000, |next| {
        if next % 20_000 == 0
            && next < 90_000
            && let Some(process) = worker.process_id()
        {
            let process = process.to_string();
            let killed = Command::new("kill").args(["-9", &process]).status();
            assert!(killed.unwrap().success());
        }
    });
    let restarts = engine.counters().restarts;
    assert!((1..=4).contains(&restarts), "{restarts} restarts");
    let batches = 10_000;
    let cost = cost(&worker, || run(&mut engine, 100 * batches, |_| ()));
    cost.check("an engine, after restarts", batches, 3);
}
