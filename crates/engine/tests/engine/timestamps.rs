//! Batches with their times, on the CPU and on the simulated device.

use crate::give::Give;
use crate::random::Random;
use crate::seeds::each_seed;
use crate::seeds::program::{Input, Program, assert_clean, device, device_with, policies};
use std::sync::Arc;
use std::time::Instant;
use tapeloop_engine::ErrorKind;
use tapeloop_engine::backend::contract::{DeviceSlot, GraphId, Node, Op, TIMESTAMPS, host_ns};
use tapeloop_engine::backend::cpu::CpuBackend;
use tapeloop_engine::backend::{AllocationView, Backend, Space};
use tapeloop_engine::record::HEADER_LEN;
use tapeloop_engine::replay::{Build, Executor, Mode, Policy, Replay, Verify};
use tapeloop_sim::{Fault, SimOptions};

fn cpu() -> Arc<dyn Backend> {
    Arc::new(CpuBackend::inline())
}

fn backends() -> [Arc<dyn Backend>; 2] {
    [cpu(), device(0).1]
}

/// The timestamps of the batch that was seen done; all of them.
fn timestamps(device_slot: &dyn DeviceSlot) -> [u64; TIMESTAMPS] {
    device_slot
        .timestamps()
        .unwrap()
        .map(|timestamp| timestamp.expect("was met"))
}

/// A batch that is verified runs twice, and has no times.
fn unverified(policy: &Policy) -> Policy {
    Policy {
        verify: Verify::Off,
        ..*policy
    }
}

fn replay_timed(
    program: &Program,
    device_slot: &mut dyn DeviceSlot,
    executor: &mut Executor,
    input: &Input,
) -> Replay {
    program.fill(device_slot, input);
    let bucket = program.buckets.find(input.extent()).unwrap();
    let replay = executor
        .replay_timed(device_slot, bucket, input.extent())
        .unwrap();
    device_slot.wait().unwrap();
    replay
}

#[test]
fn timed_batches_are_right_and_later_ones_have_later_timestamps() {
    let (program, policies) = (Program::new(), policies());
    each_seed(40, |seed| {
        for policy in &policies {
            let mut random = Random::new(seed);
            let (sim, backend) = device(seed);
            let policy = &unverified(policy);
            let (mut device_slot, mut executor) =
                program.slots(&backend, 1, policy).unwrap().remove(0);
            let mut before = 0;
            for _ in 0..6 {
                let input = Input::random(&mut random, 1 + seed as usize % 32);
                let replay = replay_timed(&program, &mut *device_slot, &mut executor, &input);
                assert!(
                    replay.timed && program.is_right(&*device_slot, &input),
                    "{policy:?}"
                );
                let timestamps = timestamps(&*device_slot);
                assert!(
                    timestamps.iter().all(|timestamp| *timestamp > before),
                    "{policy:?}"
                );
                // Leaves of a graph may be met in any order; all else is a line.
                let line = policy.mode == Mode::Stream || policy.build == Build::Capture;
                assert!(
                    !line || timestamps.is_sorted(),
                    "{policy:?}: {timestamps:?}"
                );
                before = *timestamps.iter().max().unwrap();
            }
            drop((device_slot, executor));
            assert_clean(&sim);
        }
    });
}

#[test]
fn timed_batches_of_a_loop_need_no_graph_and_no_call() {
    let program = Program::new();
    each_seed(40, |seed| {
        let (sim, backend) = device(seed);
        let resident = policies().into_iter();
        let resident = resident.filter(|policy| policy.mode == Mode::Resident);
        for policy in resident {
            let slots = program.slots(&backend, 1, &unverified(&policy));
            let (mut device_slot, mut executor) = slots.unwrap().remove(0);
            let (graphs, before) = (sim.live().graphs, backend.driver_calls());
            let input = Input::random(&mut Random::new(seed), 8);
            for _ in 0..5 {
                let replay = replay_timed(&program, &mut *device_slot, &mut executor, &input);
                assert!(replay.timed && replay.calls == 0);
            }
            let after = backend.driver_calls();
            assert_eq!(after.graph_edits, before.graph_edits);
            assert_eq!((sim.live().graphs, after.timings), (graphs, before.timings));
        }
        assert_clean(&sim);
    });
}

#[test]
fn timestamps_of_the_cpu_are_moments_of_the_host() {
    let program = Program::new();
    for policy in policies() {
        let (mut device_slot, mut executor) = program.slots(&cpu(), 1, &policy).unwrap().remove(0);
        let start = host_ns(Instant::now());
        let input = Input::random(&mut Random::new(1), 8);
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
fn timed_launches_copy_what_the_batch_uses() {
    let program = Program::new();
    let policy = unverified(&Policy::of(Mode::Stream));
    for backend in backends() {
        let slots = program.slots(&backend, 1, &policy);
        let (mut device_slot, mut executor) = slots.unwrap().remove(0);
        let input = Input::random(&mut Random::new(1), 3);
        program.fill(&mut *device_slot, &input);
        let untimed = executor
            .replay(&mut *device_slot, 1, input.extent())
            .unwrap();
        device_slot.wait().unwrap();
        program.fill(&mut *device_slot, &input);
        let timed = executor.replay_timed(&mut *device_slot, 1, input.extent());
        let timed = timed.unwrap();
        device_slot.wait().unwrap();
        assert!(program.is_right(&*device_slot, &input));
        assert_eq!(
            (timed.copied_bytes, timed.padding_bytes),
            (untimed.copied_bytes, 0)
        );
        assert_eq!(timed.calls, untimed.calls + TIMESTAMPS);
        // The header, and three elements of each buffer that the host sees.
        assert_eq!(timed.copied_bytes, 4 * HEADER_LEN + 3 * 4 * 4);
    }
}

#[test]
fn without_timed_batches_nothing_is_timed() {
    let program = Program::new();
    for backend in backends() {
        for policy in policies() {
            let slots = program.slots(&backend, 1, &unverified(&policy));
            let (mut device_slot, mut executor) = slots.unwrap().remove(0);
            let input = Input::random(&mut Random::new(1), 8);
            let before = backend.driver_calls();
            let mut calls = 0;
            for _ in 0..5 {
                program.fill(&mut *device_slot, &input);
                let replay = executor
                    .replay(&mut *device_slot, 0, input.extent())
                    .unwrap();
                device_slot.wait().unwrap();
                assert!(!replay.timed);
                calls += replay.calls as u64;
            }
            let after = backend.driver_calls();
            assert_eq!(after.timings, before.timings, "{policy:?}");
            assert_eq!(after.graph_edits, before.graph_edits, "{policy:?}");
            let is_cpu = backend.device().backend == "cpu";
            if policy.mode == Mode::Resident && !is_cpu {
                // The loop notes the times of each batch anyway, and is launched now and then.
                assert_eq!(calls, 0);
                assert!(timestamps(&*device_slot).is_sorted());
                continue;
            }
            assert_eq!(after.submissions - before.submissions, calls, "{policy:?}");
            assert_eq!(device_slot.timestamps().unwrap(), [None; TIMESTAMPS]);
            // The extra calls of a timed batch are counted with the replay's.
            let before = backend.driver_calls();
            let replay = replay_timed(&program, &mut *device_slot, &mut executor, &input);
            let given = backend.driver_calls().submissions - before.submissions;
            assert_eq!(given, replay.calls as u64, "{policy:?}");
        }
    }
}

/// Timestamps and a memset, taken down or built.
fn graph(device_slot: &mut dyn DeviceSlot, build: Build, ops: &[Op]) -> GraphId {
    match build {
        Build::Capture => {
            let ops: Vec<&Op> = ops.iter().collect();
            device_slot.capture(&ops, None).unwrap().0
        }
        Build::Explicit => {
            let nodes: Vec<Node<'_>> = ops.iter().map(|op| Node { op, after: &[] }).collect();
            device_slot.give_graph(&nodes, None).unwrap().0
        }
    }
}

#[test]
fn a_graph_reads_its_timestamps_back() {
    let program = Program::new();
    for backend in backends() {
        for build in [Build::Capture, Build::Explicit] {
            let device_slots = program.open(&backend, 1);
            let mut device_slot = device_slots.unwrap().remove(0);
            let mid = device_slot.addresses(program.handles.mid.id());
            let memset = Op::Memset {
                device: mid.device,
                byte: 7,
                bytes: mid.bytes,
            };
            let mut ops = [
                Op::Timestamp { timestamp: 2 },
                memset,
                Op::Timestamp { timestamp: 0 },
            ];
            let graph = graph(&mut *device_slot, build, &ops);
            assert_eq!(device_slot.graph_ops(graph).unwrap(), ops);
            ops[0] = Op::Timestamp { timestamp: 3 };
            device_slot.give_params(graph, 0, &ops[0]).unwrap();
            device_slot.launch_graph(graph).unwrap();
            device_slot.fence().unwrap();
            device_slot.wait().unwrap();
            let met = device_slot
                .timestamps()
                .unwrap()
                .map(|timestamp| timestamp.is_some());
            assert_eq!(met, [true, false, false, true]);
        }
    }
}

#[test]
fn a_timestamp_that_no_slot_has_is_refused() {
    let program = Program::new();
    for backend in backends() {
        let device_slots = program.open(&backend, 1);
        let mut device_slot = device_slots.unwrap().remove(0);
        let op = Op::Timestamp {
            timestamp: TIMESTAMPS as u32,
        };
        let error = device_slot.give(&op).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
    }
}

#[test]
fn a_bucket_that_is_bound_anew_is_timed_as_it_is_now() {
    let program = Program::new();
    for policy in policies() {
        let (sim, backend) = device(7);
        let (mut device_slot, mut executor) =
            program.slots(&backend, 1, &policy).unwrap().remove(0);
        let input = Input::random(&mut Random::new(7), 8);
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
    let policy = unverified(&Policy::default());
    let slots = program.slots(&backend, 1, &policy);
    let (mut device_slot, mut executor) = slots.unwrap().remove(0);
    let input = Input::random(&mut Random::new(3), 8);
    for _ in 0..2 {
        let replay = replay_timed(&program, &mut *device_slot, &mut executor, &input);
        assert!(!replay.timed && program.is_right(&*device_slot, &input));
    }
    assert_eq!(backend.driver_calls().timings, 0);
    // The other bucket is none the worse for it.
    let input = Input::random(&mut Random::new(3), 20);
    let replay = replay_timed(&program, &mut *device_slot, &mut executor, &input);
    assert!(replay.timed && program.is_right(&*device_slot, &input));
    drop((device_slot, executor));
    assert_clean(&sim);
}
