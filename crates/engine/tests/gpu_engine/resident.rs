//! Loops on the device: what they cost, and how they go along with other work of the process.

use super::mix::{Item, Mix, UNIFORMS};
use super::primary_context::{check, with_primary};
use super::sevenfold::sevenfold;
use super::steady::Rounds;
use super::target::{Target, card, say};
use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tapeloop_engine::ErrorKind;
use tapeloop_engine::backend::{Residency, Space};
use tapeloop_engine::internal::cudarc::driver::sys;
use tapeloop_engine::pipeline::{EngineConfig, Pipeline, Ring, Wait};
use tapeloop_engine::replay::{Mode, Policy};
use tapeloop_engine::workload::Extent;

fn config() -> EngineConfig {
    let mut config = EngineConfig::new([64, 8]);
    config.buckets = [[16, 8], [64, 8]].map(Extent::from).to_vec();
    config.policy = Policy::new(Mode::Resident);
    config
}

fn submissions(target: &Target) -> u64 {
    target.backend.driver_calls().submissions
}

#[test]
#[ignore = "needs a CUDA device"]
fn resident_batches_are_right_and_need_next_to_no_call_of_the_driver() {
    let target = card();
    let mut rounds = Rounds::new(&target, Mode::Resident);
    rounds.run(0..1_000, |_, _| ());
    let (before, start) = (target.backend.driver_calls(), Instant::now());
    let reported = rounds.run(1_000..1_000 + target.replays, |_, _| ());
    let took = start.elapsed();
    let after = target.backend.driver_calls();
    let launches = (after.submissions - before.submissions) / 2;
    assert_eq!(reported, 0);
    assert_eq!(after.allocations, before.allocations);
    assert_eq!(after.graph_edits, before.graph_edits);
    // Three loops, launched every 10 ms; more if this thread was interrupted.
    let rounds = took.as_millis() as u64 / 10 + 1;
    assert!(launches <= 10 * rounds, "{launches} launches in {took:?}");
    let polls = after.polls - before.polls;
    say(&format!(
        "resident: {:?} each, {launches} launches and {polls} queries for {} batches, all checked",
        took / target.replays,
        target.replays
    ));
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_loop_without_work_ends_and_the_next_batch_launches_it() {
    let target = card();
    let mut rounds = Rounds::new(&target, Mode::Resident);
    rounds.run(0..10, |_, _| ());
    for batch in 10..110 {
        let before = submissions(&target);
        std::thread::sleep(Duration::from_millis(3));
        rounds.run(batch..batch + 1, |_, _| ());
        assert_eq!(submissions(&target) - before, 2, "a launch and an event");
    }
}

/// Batches of `len` words, each with other words at both ends, which are checked as soon as the
/// batch is done. Returns the time for a batch.
fn ends_of_batches(target: &Target, len: u32, slots: usize, batches: u32) -> Duration {
    let (x, y, buckets) = sevenfold(len);
    let policy = Policy::new(Mode::Resident);
    let mut ring: Ring<u32> =
        Ring::new(&target.backend, &buckets, slots, &policy, Wait::Spin).unwrap();
    let last = len as usize - 1;
    let start = Instant::now();
    let (mut next, mut back) = (0, 0);
    while back < batches {
        while next < batches
            && let Some(mut slot) = ring.acquire()
        {
            let x = slot.write(x);
            (x[0], x[last]) = (next, !next);
            ring.submit(slot, Extent::from([len]), next).unwrap();
            next += 1;
        }
        let finished = ring.wait().expect("a batch is in flight");
        let slot = finished.as_ref().expect("the device does not fail");
        let (batch, y) = (*slot.batch(), slot.read(y));
        let expected = [batch, !batch].map(|x| 7_u32.wrapping_mul(x));
        assert_eq!([y[0], y[last]], expected, "batch {batch}");
        let (_, error) = ring.release(finished);
        assert!(error.is_none());
        back += 1;
    }
    start.elapsed() / batches
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_first_and_last_bytes_of_a_million_batches_are_there_when_they_are_announced() {
    let target = card();
    for slots in [1, 8] {
        let small = ends_of_batches(&target, 4 << 10, slots, 500_000);
        let large = ends_of_batches(&target, 2 << 20, slots, 5_000);
        say(&format!(
            "{slots} slots: 16 KiB {small:?}, 8 MiB {large:?} a batch, checked"
        ));
    }
}

/// Makes calls while batches are replayed, each again and again for so long. Returns the longest
/// time that each took.
fn beside_load(target: &Target, calls: &mut [&mut dyn FnMut()], each: Duration) -> Vec<Duration> {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            let mut rounds = Rounds::new(target, Mode::Resident);
            let mut batch = 0;
            while !is_over.load(Relaxed) {
                rounds.run(batch..batch + 1_000, |_, _| ());
                batch += 1_000;
            }
            batch
        });
        let longest = |call: &mut &mut dyn FnMut()| {
            let (begin, mut longest) = (Instant::now(), Duration::ZERO);
            while begin.elapsed() < each {
                std::thread::sleep(Duration::from_millis(2));
                let start = Instant::now();
                call();
                longest = longest.max(start.elapsed());
            }
            longest
        };
        let longest = calls.iter_mut().map(longest).collect();
        is_over.store(true, Relaxed);
        assert!(load.join().unwrap() > 1_000);
        longest
    })
}

/// The smallest module.
const MODULE: &CStr =
    c".version 8.0\n.target sm_50\n.address_size 64\n.visible .entry nothing() { ret; }\n";

fn calls_return_while_loops_are_busy(each: Duration) {
    let target = card();
    let backend = &target.backend;
    let mut device = || drop(backend.allocate(Space::Device, 64 << 20).unwrap());
    let mut pinned = || drop(backend.allocate(Space::Pinned, 1 << 20).unwrap());
    let mut synchronize = || {
        // SAFETY: the call has no arguments, and a context is current.
        with_primary(|| check("cuCtxSynchronize", unsafe { sys::cuCtxSynchronize() }));
    };
    let mut module = || {
        let mut module = null_mut();
        // SAFETY: the place outlives the calls, the text ends with a zero, and the module is
        // loaded when it is unloaded.
        with_primary(|| unsafe {
            let loaded = sys::cuModuleLoadData(&mut module, MODULE.as_ptr().cast());
            check("cuModuleLoadData", loaded);
            check("cuModuleUnload", sys::cuModuleUnload(module));
        });
    };
    let mut calls: [&mut dyn FnMut(); 4] =
        [&mut device, &mut pinned, &mut synchronize, &mut module];
    let longest = beside_load(&target, &mut calls, each);
    let names = ["device memory", "pinned memory", "synchronize", "module"];
    for (name, longest) in names.iter().zip(longest) {
        say(&format!("{name} beside busy loops: {longest:?} at most"));
        assert!(longest < Duration::from_millis(50), "{name}: {longest:?}");
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn calls_that_wait_for_the_context_return_while_loops_are_busy() {
    calls_return_while_loops_are_busy(Duration::from_millis(300));
}

#[test]
#[ignore = "needs a CUDA device, and takes a minute"]
fn calls_that_wait_for_the_context_return_for_a_minute() {
    calls_return_while_loops_are_busy(Duration::from_secs(15));
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_ring_opens_and_runs_beside_busy_loops() {
    let target = card();
    let mut batches = 0;
    let mut ring = || {
        let mut ring = Rounds::new(&target, Mode::Resident);
        ring.run(batches..batches + 10, |_, _| ());
        batches += 10;
    };
    let longest = beside_load(&target, &mut [&mut ring], Duration::from_millis(300));
    say(&format!(
        "another ring beside busy loops: {longest:?} at most"
    ));
}

/// What the driver may keep of thousands of graphs; it takes memory in pieces of 2 MiB.
const KEPT_BYTES_MAX: u64 = 8 << 20;

/// Opens a pipeline and drops it with batches in flight, so many times.
fn dropped_in_mid_flight(turns: u32) {
    let target = card();
    let (mut first, mut last) = (None, 0);
    for turn in 0..turns {
        let pool = Arc::clone(&target.pool);
        let backends = [Arc::clone(&target.backend)];
        let mut pipeline = Pipeline::new(Mix::new(), &backends, pool, &config()).unwrap();
        for n in 0..turn % 30 {
            drop(pipeline.submit(Item::new(n, 1 + n as usize % 40)));
        }
        drop(pipeline);
        let free = target.free_bytes().unwrap();
        if free != last {
            say(&format!("turn {turn}: {free} bytes are free"));
        }
        last = free;
        // The first turns load kernels.
        if turn >= turns / 4 {
            let first = *first.get_or_insert(free);
            let is_kept = free + KEPT_BYTES_MAX >= first;
            assert!(
                is_kept,
                "turn {turn}: {free} bytes are free, {first} before"
            );
        }
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_ring_dropped_in_mid_flight_leaves_no_loop_and_no_memory() {
    dropped_in_mid_flight(200);
}

#[test]
#[ignore = "needs a CUDA device, and takes minutes"]
fn ten_thousand_rings_dropped_in_mid_flight_leave_no_memory() {
    dropped_in_mid_flight(10_000);
}

#[test]
#[ignore = "needs a CUDA device"]
fn more_loops_than_the_device_runs_are_refused_or_launched_by_the_host() {
    let target = card();
    let open = |slots, policy: Policy| {
        let pool = Arc::clone(&target.pool);
        let backends = [Arc::clone(&target.backend)];
        let mut config = config();
        (config.slots, config.policy) = (slots, policy);
        Pipeline::new(Mix::new(), &backends, pool, &config)
    };
    let policy = config().policy;
    let error = open(40, policy).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("64 graphs"), "{error}");
    let policy = Policy {
        fallback: tapeloop_engine::replay::Fallback::Launches,
        residency: Residency {
            idle: Duration::from_micros(200),
            busy: Duration::from_millis(2),
            ..Residency::default()
        },
        ..policy
    };
    let mut pipeline = open(40, policy).unwrap();
    for n in 0..400 {
        let item = Item::new(n, 1 + n as usize % 40);
        while let Some((_, done)) = pipeline.poll() {
            assert_eq!(done.result.unwrap(), done.item.output(UNIFORMS));
        }
        pipeline.submit(item).map_err(|_| ()).unwrap();
    }
    while let Some((_, done)) = pipeline.wait() {
        assert_eq!(done.result.unwrap(), done.item.output(UNIFORMS));
    }
}
