//! Batches with their times, on a device. Without one it says "skipped: no device".
#![cfg(feature = "cuda")]

#[path = "support/give/mod.rs"]
mod give;
#[path = "support/gpu/mod.rs"]
mod gpu;

use give::Give;
use gpu::*;
use std::time::Instant;
use tapeloop::backend::{Lane, Node, Op, Queue, STAMPS, host_ns};
use tapeloop::replay::{Build, Executor, Mode, Policy, Verify};

/// What the device's clock may be off by the host's.
const OFF_NS_MAX: u64 = 100_000;

fn replay_timed(saxpy: &Saxpy, lane: &mut dyn Lane, executor: &mut Executor, index: usize) {
    let (x, expected) = expected(0, index);
    fill(saxpy, lane, &x);
    let largest = executor.buckets().largest().capacity;
    let replay = executor.replay_timed(lane, 0, largest).unwrap();
    assert!(replay.timed);
    lane.wait().unwrap();
    assert!(out(saxpy, lane) == expected);
}

/// Every policy; a batch that is verified runs twice, and has no times.
fn unverified() -> impl Iterator<Item = Policy> {
    Policy::legal().map(|policy| Policy {
        verify: Verify::Off,
        ..policy
    })
}

#[test]
fn stamps_lie_between_the_host_s_moments_around_the_batch() {
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    for policy in unverified() {
        let buffers = saxpy.recording.buffers();
        let lanes = backend.open_lanes(buffers, 1, policy.streams);
        let mut lane = lanes.unwrap().remove(0);
        let mut executor = ready_with(&backend, &saxpy.recording, &mut *lane, &policy);
        for index in 0..20 {
            let start = host_ns(Instant::now());
            replay_timed(&saxpy, &mut *lane, &mut executor, index);
            let end = host_ns(Instant::now());
            let stamps = lane.stamps().unwrap().map(|stamp| stamp.unwrap());
            let first = start.saturating_sub(OFF_NS_MAX);
            let inside = stamps
                .iter()
                .all(|at| (first..=end + OFF_NS_MAX).contains(at));
            assert!(inside, "{policy:?}: {stamps:?} in {start} to {end}");
            // Leaves of a graph are met when the device likes.
            let line = policy.mode == Mode::Stream || policy.build == Build::Capture;
            // The driver's times are of half a microsecond.
            let ascend = stamps.windows(2).all(|pair| pair[0] <= pair[1] + 1_000);
            assert!(ascend || !line, "{policy:?}: {stamps:?}");
        }
        say(&format!("{policy:?}: {:?}", lane.stamps().unwrap()));
    }
}

#[test]
fn without_timed_batches_nothing_is_timed() {
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    for policy in unverified() {
        let buffers = saxpy.recording.buffers();
        let lanes = backend.open_lanes(buffers, 1, policy.streams);
        let mut lane = lanes.unwrap().remove(0);
        let mut executor = ready_with(&backend, &saxpy.recording, &mut *lane, &policy);
        let before = backend.driver_calls();
        let mut calls = 0;
        for index in 0..10 {
            fill(&saxpy, &mut *lane, &expected(0, index).0);
            calls += replay(&mut *lane, &mut executor).calls as u64;
            lane.wait().unwrap();
        }
        let after = backend.driver_calls();
        assert_eq!(after.timings, before.timings, "{policy:?}");
        assert_eq!(after.graph_edits, before.graph_edits, "{policy:?}");
        assert_eq!(after.submissions - before.submissions, calls, "{policy:?}");
        assert_eq!(lane.stamps().unwrap(), [None; STAMPS], "{policy:?}");
    }
}

#[test]
fn a_graph_reads_its_stamps_back_and_takes_others() {
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    for build in [Build::Capture, Build::Explicit] {
        let mut lane = one_lane(&backend, &saxpy.recording);
        let x = lane.addresses(saxpy.x.id());
        let memset = Op::Memset {
            device: x.device,
            byte: 7,
            bytes: x.bytes,
        };
        let mut ops = [Op::Stamp { stamp: 2 }, memset, Op::Stamp { stamp: 0 }];
        let graph = match build {
            Build::Capture => {
                lane.begin_capture().unwrap();
                for op in &ops {
                    lane.give(Queue::Compute, op).unwrap();
                }
                lane.end_capture(None).unwrap().0
            }
            Build::Explicit => {
                let nodes = ops.each_ref().map(|op| Node { op, after: &[] });
                lane.give_graph(&nodes, None).unwrap().0
            }
        };
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
