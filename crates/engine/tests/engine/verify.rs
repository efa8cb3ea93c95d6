//! A batch as launches and as a graph: the same, or an error that says where not.

use crate::forward::BackendHooks;
use crate::random::Random;
use crate::seeds::program::{CAPACITIES, Input, Program, policies};
use crate::tamper::Tamper;
use rayon::ThreadPoolBuilder;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use tapeloop_engine::backend::Backend;
use tapeloop_engine::backend::contract::{DeviceSlot, Op, Priority};
use tapeloop_engine::backend::cpu::CpuBackend;
use tapeloop_engine::record::{
    Access, Buffer, DType, Kernel, Recorder, StructArg, Twin, TwinLaunch,
};
use tapeloop_engine::replay::{Buckets, Build, Executor, Mode, Policy, Replay, Verify};
use tapeloop_engine::workload::Extent;
use tapeloop_engine::{ErrorKind, Result};
use tapeloop_sim::{SimBackend, SimOptions};

const CAPACITY: u32 = 12;

fn devices() -> [Arc<dyn Backend>; 2] {
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    [
        Arc::new(CpuBackend::new(pool)),
        Arc::new(SimBackend::new(SimOptions::seeded(7))),
    ]
}

fn verified(policy: Policy, verify: Verify) -> Policy {
    Policy { verify, ..policy }
}

fn every(count: u32) -> Verify {
    Verify::Every(NonZeroU32::new(count).unwrap())
}

/// Whether a policy replays graphs that are other calls than launches, so that the first batch is
/// compared.
fn compares_first(backend: &Arc<dyn Backend>, policy: &Policy) -> bool {
    policy.mode != Mode::Stream && !backend.device().shares_host_memory
}

/// One kernel that takes `x` in, and gives `y`.
struct Slot {
    device_slot: Box<dyn DeviceSlot>,
    executor: Executor,
    x: Buffer<i32>,
    y: Buffer<i32>,
}

fn slot(backend: &Arc<dyn Backend>, policy: &Policy, updates: bool, twin: Twin) -> Slot {
    let kernel = Kernel::new("k").reads::<u32>("header");
    let kernel = match updates {
        true => kernel.updates::<i32>("x"),
        false => kernel.reads::<i32>("x"),
    };
    let kernel = kernel.writes::<i32>("y").scalar::<i32>("by").twin(twin);
    let mut recorder = Recorder::new(&[CAPACITY]);
    let header = recorder.header();
    let x = recorder.upload_buffer::<i32>("x", 0, 1);
    let y = recorder.download_buffer::<i32>("y", 0, 1);
    recorder.upload(header);
    recorder.upload(x);
    let args = [header.into(), x.into(), y.into(), 10_i32.into()];
    recorder.launch(&kernel, 1, &args);
    recorder.download(y);
    let recording = recorder.finish().unwrap();
    let buffers = recording.buffers().to_vec();
    let mut device_slots = backend.open_slots(&buffers, 1, Priority::Normal).unwrap();
    let mut device_slot = device_slots.remove(0);
    let buckets = Arc::new(Buckets::single(recording));
    let executor = Executor::new(backend, &mut *device_slot, &buckets, policy).unwrap();
    Slot {
        device_slot,
        executor,
        x,
        y,
    }
}

impl Slot {
    /// Runs a batch of so many elements, each its place; returns what came out.
    fn run(&mut self, live: u32) -> Result<(Vec<i32>, Replay)> {
        let header = self
            .executor
            .buckets()
            .largest()
            .recording
            .header()
            .unwrap();
        let mut views = self.device_slot.host_mut(&[header, self.x.id()]);
        bytemuck::cast_slice_mut::<u8, u32>(views[0])[0] = live;
        let x: &mut [i32] = bytemuck::cast_slice_mut(views[1]);
        (0..live).for_each(|i| x[i as usize] = i as i32);
        drop(views);
        let replay = self
            .executor
            .replay(&mut *self.device_slot, 0, Extent::from([live]))?;
        self.device_slot.wait()?;
        let y = bytemuck::cast_slice(self.device_slot.host(self.y.id()));
        Ok((y[..live as usize].to_vec(), replay))
    }

    fn fails(&mut self, parts: &[&str]) {
        let error = self.run(6).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Mismatch, "{error}");
        for part in parts {
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}

fn steady(launch: &mut TwinLaunch<'_>) {
    let live = launch.read::<u32>()[0] as usize;
    let (x, y): (&[i32], &mut [i32]) = (launch.read(), launch.write());
    let by: i32 = launch.scalar();
    (0..live).for_each(|i| y[i] = x[i] + by);
}

/// Another value at every launch.
fn tick() -> i32 {
    static TICKS: AtomicU32 = AtomicU32::new(0);
    TICKS.fetch_add(1, Relaxed) as i32
}

/// Two elements are other ones at every launch.
fn flaky(launch: &mut TwinLaunch<'_>) {
    let live = launch.read::<u32>()[0] as usize;
    let (x, y): (&[i32], &mut [i32]) = (launch.read(), launch.write());
    let (by, tick): (i32, i32) = (launch.scalar(), tick());
    (0..live).for_each(|i| y[i] = x[i] + by);
    (y[3], y[5]) = (1000 + tick, -1000 - tick);
}

/// Only what no item has differs.
fn flaky_beyond(launch: &mut TwinLaunch<'_>) {
    let live = launch.read::<u32>()[0] as usize;
    let (x, y): (&[i32], &mut [i32]) = (launch.read(), launch.write());
    let by: i32 = launch.scalar();
    (0..live).for_each(|i| y[i] = x[i] + by);
    y[live..].fill(tick());
}

/// Leaves its input changed.
fn in_place(launch: &mut TwinLaunch<'_>) {
    let live = launch.read::<u32>()[0] as usize;
    let (x, y): (&mut [i32], &mut [i32]) = (launch.write(), launch.write());
    let by: i32 = launch.scalar();
    (0..live).for_each(|i| {
        x[i] += by;
        y[i] = x[i];
    });
}

/// Writes the even elements, so that the others are what was there before.
fn half(launch: &mut TwinLaunch<'_>) {
    let live = launch.read::<u32>()[0] as usize;
    let (x, y): (&[i32], &mut [i32]) = (launch.read(), launch.write());
    let by: i32 = launch.scalar();
    (0..live).step_by(2).for_each(|i| y[i] = x[i] + by);
}

fn expected(live: u32) -> Vec<i32> {
    (0..live as i32).map(|i| i + 10).collect()
}

#[test]
fn results_that_change_from_run_to_run_are_caught_by_the_first_batch() {
    for backend in devices() {
        for policy in policies() {
            let policy = verified(policy, Verify::First);
            let mut slot = slot(&backend, &policy, false, flaky);
            if !compares_first(&backend, &policy) {
                assert_eq!(slot.run(6).unwrap().1.verified, 0);
                continue;
            }
            slot.fails(&[
                "verification in bucket 0: buffer y: element 3 is 1",
                " as launches, and 1",
                " as a graph; 2 of 6 elements differ",
            ]);
        }
    }
}

#[test]
fn results_that_change_from_run_to_run_are_caught_by_the_batch_that_is_compared_next() {
    for backend in devices() {
        for policy in policies() {
            let policy = verified(policy, every(3));
            let mut slot = slot(&backend, &policy, false, flaky);
            if !compares_first(&backend, &policy) {
                slot.run(6).unwrap();
                slot.run(6).unwrap();
            }
            slot.fails(&["buffer y: element 3", "2 of 6 elements differ"]);
        }
    }
}

#[test]
fn a_graph_that_does_something_else_than_it_holds_is_caught() {
    for inner in devices() {
        for &build in Build::ALL {
            let tamper = Arc::new(Tamper::default());
            let backend = Arc::clone(&tamper).around(Arc::clone(&inner));
            tamper.run(|ops| {
                let launch = ops.iter_mut().find_map(|op| match op {
                    Op::Launch { args, .. } => Some(args),
                    _ => None,
                });
                launch.unwrap()[3] = 11;
            });
            let policy = Policy {
                build,
                ..Policy::default()
            };
            let policy = verified(policy, every(1));
            let mut first = slot(&backend, &policy, false, steady);
            first
                .fails(&["element 0 is 10 as launches, and 11 as a graph; 6 of 6 elements differ"]);
            // Not asked for, it goes unseen.
            let policy = verified(policy, Verify::Off);
            let mut second = slot(&backend, &policy, false, steady);
            assert_eq!(second.run(6).unwrap().0[0], 11);
        }
    }
}

#[test]
fn what_no_item_has_may_differ() {
    for backend in devices() {
        for policy in policies() {
            let policy = verified(policy, every(1));
            let mut slot = slot(&backend, &policy, false, flaky_beyond);
            for live in [6, 1, CAPACITY, 5] {
                let (y, replay) = slot.run(live).unwrap();
                assert_eq!((y, replay.verified), (expected(live), 1), "{policy:?}");
            }
        }
    }
}

#[test]
fn inputs_that_kernels_change_are_brought_back() {
    for backend in devices() {
        for policy in policies() {
            let policy = verified(policy, every(1));
            let mut slot = slot(&backend, &policy, true, in_place);
            for live in [6, CAPACITY] {
                let (y, replay) = slot.run(live).unwrap();
                assert_eq!((y, replay.verified), (expected(live), 1), "{policy:?}");
            }
        }
    }
}

#[test]
fn a_batch_that_changes_an_input_uploaded_in_part_runs_once() {
    for backend in devices() {
        for policy in policies() {
            let policy = verified(policy, every(1));
            let mut slot = slot(&backend, &policy, true, in_place);
            slot.run(6).unwrap();
            let bindings = slot.executor.bindings(&mut *slot.device_slot, 0).unwrap();
            let mut bindings = bindings.clone();
            bindings.set_copy_len(slot.x, 3).unwrap();
            slot.executor
                .update(&mut *slot.device_slot, 0, bindings)
                .unwrap();
            let (y, replay) = slot.run(6).unwrap();
            assert_eq!(replay.verified, 0, "{policy:?}");
            // The rest of the device's side is as the batch before left it.
            let rest = match backend.device().shares_host_memory {
                true => [13, 14, 15],
                false => [23, 24, 25],
            };
            assert_eq!((&y[..3], &y[3..]), (&expected(3)[..], &rest[..]));
        }
    }
}

#[test]
fn what_an_earlier_batch_left_is_no_difference() {
    for backend in devices() {
        for policy in policies() {
            let policy = verified(policy, every(2));
            let mut slot = slot(&backend, &policy, false, half);
            for batch in 1..=4 {
                let (_, replay) = slot.run(6).unwrap();
                let is_first = batch == 1 && compares_first(&backend, &policy);
                let runs_twice = is_first || batch % 2 == 0;
                assert_eq!(replay.verified, usize::from(runs_twice), "{policy:?}");
            }
        }
    }
}

#[test]
fn kernels_that_write_declared_memory_run_once() {
    fn count(launch: &mut TwinLaunch<'_>) {
        let [_]: [u64; 1] = launch.structure();
        let total: &mut [i32] = launch.write();
        let (x, y): (&[i32], &mut [i32]) = (launch.read(), launch.write());
        total[0] += x[0];
        y[0] = total[0];
    }
    for backend in devices() {
        let allocation = backend
            .allocate(tapeloop_engine::backend::Space::Device, 4)
            .unwrap();
        backend.write(&[0; 4], &allocation, 0).unwrap();
        let kernel = Kernel::new("count")
            .structure("total", 8, &[(0, Access::ReadWrite, DType::I32)])
            .reads::<i32>("x")
            .writes::<i32>("y")
            .twin(count);
        let mut recorder = Recorder::new(&[1]);
        let x = recorder.upload_buffer::<i32>("x", 0, 1);
        let y = recorder.download_buffer::<i32>("y", 0, 1);
        recorder.upload(x);
        // SAFETY: the twin touches the one element of the allocation.
        let total = unsafe { StructArg::new(&[0; 8]).address(allocation.address()) };
        recorder.launch(&kernel, 1, &[total.into(), x.into(), y.into()]);
        recorder.download(y);
        let recording = recorder.finish().unwrap();
        let buffers = recording.buffers().to_vec();
        let buckets = Arc::new(Buckets::single(recording));
        let policy = verified(Policy::default(), every(1));
        let policy = Policy {
            warm_up: false,
            ..policy
        };
        let mut device_slot = backend
            .open_slots(&buffers, 1, Priority::Normal)
            .unwrap()
            .remove(0);
        let mut executor = Executor::new(&backend, &mut *device_slot, &buckets, &policy).unwrap();
        let view = tapeloop_engine::backend::AllocationView::new(&allocation, 0, 4).unwrap();
        executor.declare(&mut *device_slot, view).unwrap();
        for batch in 1..=3_i32 {
            device_slot.host_mut(&[x.id()])[0].copy_from_slice(&5_i32.to_le_bytes());
            let replay = executor
                .replay(&mut *device_slot, 0, Extent::from([1]))
                .unwrap();
            device_slot.wait().unwrap();
            assert_eq!(replay.verified, 0);
            assert_eq!(device_slot.host(y.id()), (5 * batch).to_le_bytes());
        }
    }
}

#[test]
fn the_first_batch_of_each_bucket_runs_twice_and_no_other_makes_a_call_more() {
    let program = Program::new();
    for backend in devices() {
        for policy in policies() {
            let calls = |verify| {
                let policy = verified(policy, verify);
                let mut random = Random::new(3);
                let (mut device_slot, mut executor) =
                    program.slots(&backend, 1, &policy).unwrap().remove(0);
                let mut calls = Vec::new();
                for bucket in [0, 1, 0, 1] {
                    let input = Input::random(&mut random, CAPACITIES[bucket]);
                    program.fill(&mut *device_slot, &input);
                    let before = backend.driver_calls();
                    let replay = executor.replay(&mut *device_slot, bucket, input.extent());
                    let replay = replay.unwrap();
                    let after = backend.driver_calls();
                    device_slot.wait().unwrap();
                    assert!(program.is_right(&*device_slot, &input), "{policy:?}");
                    let submitted = match policy.mode {
                        // Launches of loops count for no batch.
                        Mode::Resident => replay.calls,
                        _ => (after.submissions - before.submissions) as usize,
                    };
                    let waits = after.polls - before.polls;
                    calls.push((replay.verified, replay.calls, submitted, waits));
                }
                calls
            };
            let (plain, first) = (calls(Verify::Off), calls(Verify::First));
            assert!(plain.iter().all(|batch| (batch.0, batch.3) == (0, 0)));
            let twice = usize::from(compares_first(&backend, &policy));
            let verified: Vec<usize> = first.iter().map(|batch| batch.0).collect();
            assert_eq!(verified, [twice, twice, 0, 0], "{policy:?}");
            assert_eq!(first[2..], plain[2..]);
            if backend.device().backend == "sim" {
                let all = plain.iter().chain(&first);
                assert!(
                    all.into_iter().all(|batch| batch.1 == batch.2),
                    "all are counted"
                );
            }
        }
    }
}
