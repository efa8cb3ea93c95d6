//! Batches with their times, on the CPU and on the simulated device.

use crate::seeds::simulated::{assert_clean, device, device_with};
use std::sync::Arc;
use std::time::Instant;
use tapeloop_conformance::program::{Input, Program, policies, replay_timed, unverified};
use tapeloop_engine::backend::contract::{DeviceSlot, TIMESTAMPS, host_ns};
use tapeloop_engine::backend::cpu::CpuBackend;
use tapeloop_engine::backend::{AllocationView, Backend, Space};
use tapeloop_engine::replay::Policy;
use tapeloop_sim::{Fault, SimOptions};

fn cpu() -> Arc<dyn Backend> {
    Arc::new(CpuBackend::inline())
}

/// The timestamps of the batch that was seen done; all of them.
fn timestamps(device_slot: &dyn DeviceSlot) -> [u64; TIMESTAMPS] {
    device_slot
        .timestamps()
        .unwrap()
        .map(|timestamp| timestamp.expect("was met"))
}

#[test]
fn timestamps_of_the_cpu_are_moments_of_the_host() {
    let program = Program::new();
    for policy in policies() {
        let (mut device_slot, mut executor) = program.slots(&cpu(), 1, &policy).unwrap().remove(0);
        let start = host_ns(Instant::now());
        let input = Input::from_seed(1, 8);
        replay_timed(&program, &mut *device_slot, &mut executor, &input);
        let all = [
            &[start][..],
            &timestamps(&*device_slot),
            &[host_ns(Instant::now())],
        ]
        .concat();
        assert!(all.is_sorted(), "{policy:?}: {all:?}");
    }
}

#[test]
fn a_bucket_that_is_bound_anew_is_timed_as_it_is_now() {
    let program = Program::new();
    for policy in policies() {
        let (sim, backend) = device(7);
        let (mut device_slot, mut executor) =
            program.slots(&backend, 1, &policy).unwrap().remove(0);
        let input = Input::from_seed(7, 8);
        replay_timed(&program, &mut *device_slot, &mut executor, &input);
        let allocation = backend.allocate(Space::Pinned, 32).unwrap();
        let mut bindings = executor.bindings(&mut *device_slot, 0).unwrap().clone();
        let view = AllocationView::new(&allocation, 0, 32).unwrap();
        bindings.bind_host(program.handles.y, view).unwrap();
        executor.update(&mut *device_slot, 0, bindings).unwrap();
        let replay = replay_timed(&program, &mut *device_slot, &mut executor, &input);
        assert!(replay.timed);
        let expected = input.y(2.0);
        let expected: &[u8] = bytemuck::cast_slice(&expected);
        assert!(allocation.read().unwrap()[..] == *expected, "{policy:?}");
        drop((device_slot, executor, allocation));
        assert_clean(&sim);
    }
}

#[test]
fn where_the_graph_with_timestamps_is_refused_batches_run_without() {
    let program = Program::new();
    // The two buckets were captured before it.
    let options = SimOptions {
        faults: vec![Fault::Capture { capture: 2 }],
        ..SimOptions::seeded(3)
    };
    let (sim, backend) = device_with(options);
    let policy = unverified(Policy::default());
    let slots = program.slots(&backend, 1, &policy);
    let (mut device_slot, mut executor) = slots.unwrap().remove(0);
    let input = Input::from_seed(3, 8);
    for _ in 0..2 {
        let replay = replay_timed(&program, &mut *device_slot, &mut executor, &input);
        assert!(!replay.timed && program.is_right(&*device_slot, &input));
    }
    assert_eq!(backend.driver_calls().timings, 0);
    // The other bucket is none the worse for it.
    let input = Input::from_seed(3, 20);
    let replay = replay_timed(&program, &mut *device_slot, &mut executor, &input);
    assert!(replay.timed && program.is_right(&*device_slot, &input));
    drop((device_slot, executor));
    assert_clean(&sim);
}
