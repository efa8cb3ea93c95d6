//! Batches with their times, on the CPU and on the simulated device.

use crate::give::Give;
use crate::seeds::program::{Input, Program, assert_clean, device, device_with, policies};
use crate::seeds::{Random, each_seed};
use std::sync::Arc;
use std::time::Instant;
use tapeloop::ErrorKind;
use tapeloop::backend::cpu::CpuBackend;
use tapeloop::backend::sim::{Fault, SimOptions};
use tapeloop::backend::{
    Backend, BlockView, GraphId, Lane, Node, Op, Queue, STAMPS, Space, Streams, host_ns,
};
use tapeloop::replay::{Build, Executor, Mode, Policy, Replay, Verify};

fn cpu() -> Arc<dyn Backend> {
    Arc::new(CpuBackend::inline())
}

fn backends() -> [Arc<dyn Backend>; 2] {
    [cpu(), device(0).1]
}

/// The stamps of the batch that was seen done; all of them.
fn stamps(lane: &dyn Lane) -> [u64; STAMPS] {
    lane.stamps().unwrap().map(|stamp| stamp.expect("was met"))
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
    lane: &mut dyn Lane,
    executor: &mut Executor,
    input: &Input,
) -> Replay {
    program.fill(lane, input);
    let bucket = program.buckets.find(input.extent()).unwrap();
    let replay = executor.replay_timed(lane, bucket, input.extent()).unwrap();
    lane.wait().unwrap();
    replay
}

#[test]
fn timed_batches_are_right_and_later_ones_have_later_stamps() {
    let (program, policies) = (Program::new(), policies());
    each_seed(40, |seed| {
        for policy in &policies {
            let mut random = Random::new(seed);
            let (sim, backend) = device(seed);
            let policy = &unverified(policy);
            let (mut lane, mut executor) = program.slots(&backend, 1, policy).unwrap().remove(0);
            let mut before = 0;
            for _ in 0..6 {
                let input = Input::random(&mut random, 1 + seed as usize % 32);
                let replay = replay_timed(&program, &mut *lane, &mut executor, &input);
                assert!(
                    replay.timed && program.is_right(&*lane, &input),
                    "{policy:?}"
                );
                let stamps = stamps(&*lane);
                assert!(stamps.iter().all(|stamp| *stamp > before), "{policy:?}");
                // Leaves of a graph may be met in any order; all else is a line.
                let line = policy.mode == Mode::Stream || policy.build == Build::Capture;
                assert!(!line || stamps.is_sorted(), "{policy:?}: {stamps:?}");
                before = *stamps.iter().max().unwrap();
            }
            drop((lane, executor));
            assert_clean(&sim);
        }
    });
}

#[test]
fn stamps_of_the_cpu_are_moments_of_the_host() {
    let program = Program::new();
    for policy in policies() {
        let (mut lane, mut executor) = program.slots(&cpu(), 1, &policy).unwrap().remove(0);
        let start = host_ns(Instant::now());
        let input = Input::random(&mut Random::new(1), 8);
        replay_timed(&program, &mut *lane, &mut executor, &input);
        let all = [&[start][..], &stamps(&*lane), &[host_ns(Instant::now())]].concat();
        assert!(all.is_sorted(), "{policy:?}: {all:?}");
    }
}

#[test]
fn without_timed_batches_nothing_is_timed() {
    let program = Program::new();
    for backend in backends() {
        for policy in policies() {
            // There a join of queues is no call.
            let is_cpu = backend.device().backend == "cpu";
            if is_cpu && policy.streams == Streams::PerStage {
                continue;
            }
            let slots = program.slots(&backend, 1, &policy);
            let (mut lane, mut executor) = slots.unwrap().remove(0);
            let input = Input::random(&mut Random::new(1), 8);
            let before = backend.driver_calls();
            let mut calls = 0;
            for _ in 0..5 {
                program.fill(&mut *lane, &input);
                let replay = executor.replay(&mut *lane, 0, input.extent()).unwrap();
                lane.wait().unwrap();
                assert!(!replay.timed);
                calls += replay.calls as u64;
            }
            let after = backend.driver_calls();
            assert_eq!(after.timings, before.timings, "{policy:?}");
            assert_eq!(after.graph_edits, before.graph_edits, "{policy:?}");
            assert_eq!(after.submissions - before.submissions, calls, "{policy:?}");
            assert_eq!(lane.stamps().unwrap(), [None; STAMPS]);
            // What a timed batch takes beside is counted with its calls.
            let before = backend.driver_calls();
            let replay = replay_timed(&program, &mut *lane, &mut executor, &input);
            let given = backend.driver_calls().submissions - before.submissions;
            assert_eq!(given, replay.calls as u64, "{policy:?}");
        }
    }
}

/// Stamps and a memset, taken down or built.
fn graph(lane: &mut dyn Lane, build: Build, ops: &[Op]) -> GraphId {
    match build {
        Build::Capture => {
            lane.begin_capture().unwrap();
            for op in ops {
                lane.give(Queue::Compute, op).unwrap();
            }
            lane.end_capture(None).unwrap().0
        }
        Build::Explicit => {
            let nodes: Vec<Node<'_>> = ops.iter().map(|op| Node { op, after: &[] }).collect();
            lane.give_graph(&nodes, None).unwrap().0
        }
    }
}

#[test]
fn a_graph_reads_its_stamps_back() {
    let program = Program::new();
    for backend in backends() {
        for build in [Build::Capture, Build::Explicit] {
            let lanes = program.open(&backend, 1, Streams::PerSlot);
            let mut lane = lanes.unwrap().remove(0);
            let mid = lane.addresses(program.handles.mid.id());
            let memset = Op::Memset {
                device: mid.device,
                byte: 7,
                bytes: mid.bytes,
            };
            let mut ops = [Op::Stamp { stamp: 2 }, memset, Op::Stamp { stamp: 0 }];
            let graph = graph(&mut *lane, build, &ops);
            assert_eq!(lane.graph_ops(graph).unwrap(), ops);
            ops[0] = Op::Stamp { stamp: 3 };
            lane.give_params(graph, 0, &ops[0]).unwrap();
            lane.launch_graph(graph).unwrap();
            lane.fence().unwrap();
            lane.wait().unwrap();
            let met = lane.stamps().unwrap().map(|stamp| stamp.is_some());
            assert_eq!(met, [true, false, false, true]);
        }
    }
}

#[test]
fn a_stamp_that_no_lane_has_is_refused() {
    let program = Program::new();
    for backend in backends() {
        let lanes = program.open(&backend, 1, Streams::PerSlot);
        let mut lane = lanes.unwrap().remove(0);
        let op = Op::Stamp {
            stamp: STAMPS as u32,
        };
        let error = lane.give(Queue::Compute, &op).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
    }
}

#[test]
fn a_bucket_that_is_bound_anew_is_timed_as_it_is_now() {
    let program = Program::new();
    for policy in policies() {
        let (sim, backend) = device(7);
        let (mut lane, mut executor) = program.slots(&backend, 1, &policy).unwrap().remove(0);
        let input = Input::random(&mut Random::new(7), 8);
        replay_timed(&program, &mut *lane, &mut executor, &input);
        let block = backend.allocate(Space::Pinned, 32).unwrap();
        let mut bindings = executor.bindings(&mut *lane, 0).unwrap().clone();
        let view = BlockView::new(&block, 0, 32).unwrap();
        bindings.bind_host(program.handles.y, view).unwrap();
        executor.update(&mut *lane, 0, bindings).unwrap();
        let replay = replay_timed(&program, &mut *lane, &mut executor, &input);
        assert!(replay.timed);
        let expected = input.y(2.0);
        let expected: &[u8] = bytemuck::cast_slice(&expected);
        assert!(block.read().unwrap()[..] == *expected, "{policy:?}");
        drop((lane, executor, block));
        assert_clean(&sim);
    }
}

#[test]
fn where_the_graph_with_stamps_is_refused_batches_run_without() {
    let program = Program::new();
    // The two buckets were captured before it.
    let options = SimOptions {
        faults: vec![Fault::Capture { capture: 2 }],
        ..SimOptions::seeded(3)
    };
    let (sim, backend) = device_with(options);
    let policy = unverified(&Policy::default());
    let slots = program.slots(&backend, 1, &policy);
    let (mut lane, mut executor) = slots.unwrap().remove(0);
    let input = Input::random(&mut Random::new(3), 8);
    for _ in 0..2 {
        let replay = replay_timed(&program, &mut *lane, &mut executor, &input);
        assert!(!replay.timed && program.is_right(&*lane, &input));
    }
    assert_eq!(backend.driver_calls().timings, 0);
    // The other bucket is none the worse for it.
    let input = Input::random(&mut Random::new(3), 20);
    let replay = replay_timed(&program, &mut *lane, &mut executor, &input);
    assert!(replay.timed && program.is_right(&*lane, &input));
    drop((lane, executor));
    assert_clean(&sim);
}
