//! Batches with their times. A timed batch that lacked one, or mixed them up with another batch's, would show a wrong
//! timeline.

use crate::assert_refused;
use crate::give::{Give, memset};
use crate::program::{Input, Loops, Program, accepted_policies, loops, replay_timed, unverified};
use crate::slots::refusal;
use std::sync::Arc;
use tapeloop_engine::ErrorKind;
use tapeloop_engine::backend::Backend;
use tapeloop_engine::backend::contract::{Node, Op, TIMESTAMPS};
use tapeloop_engine::record::HEADER_LEN;
use tapeloop_engine::replay::{Build, Mode, Policy, Verify};

/// The driver of a GPU gives times in steps of half a microsecond, so two of them may be off by two
/// steps against each other.
const GPU_STEP_NS: u64 = 1_000;
/// How far a GPU's clock, which is compared with the host's now and then, may be off.
const GPU_OFF_NS: u64 = 100_000;

/// A batch that is verified runs twice, and has no times.
fn timeable(backend: &Arc<dyn Backend>) -> impl Iterator<Item = Policy> {
    accepted_policies(backend).into_iter().map(unverified)
}

/// A timed batch has all its times, in order, and those of the next batch are later.
pub fn timed_batches_are_right_and_their_times_ascend(backend: &Arc<dyn Backend>) {
    let program = Program::new();
    let (step_ns, off_ns) = match backend.device().compute_capability {
        Some(_) => (GPU_STEP_NS, GPU_OFF_NS),
        None => (0, 0),
    };
    for policy in timeable(backend) {
        let (mut device_slot, mut executor) = program.slot(backend, &policy);
        let mut before = 0;
        for round in 0..10 {
            let input = Input::from_seed(round, 1 + 3 * round as usize);
            let replay = replay_timed(&program, &mut *device_slot, &mut executor, &input);
            assert!(replay.timed, "{policy:?}");
            let times = device_slot.timestamps().unwrap();
            let times = times.map(|time| time.expect("was reached"));
            let later = times.iter().all(|time| time + off_ns >= before);
            // The clock of another process is compared with this one's at each question, and is off by
            // half of what the answer takes.
            let later = later || backend.is_supervised();
            assert!(later, "{policy:?}: {times:?} after {before}");
            // Nodes without a node that runs after them may end in any order; all else is a line.
            let is_line = policy.mode == Mode::Stream || policy.build == Build::Capture;
            let ascend = times.windows(2).all(|pair| pair[0] <= pair[1] + step_ns);
            assert!(ascend || !is_line, "{policy:?}: {times:?}");
            before = *times.iter().max().unwrap();
        }
    }
}

/// A loop notes the times of its batches anyway.
pub fn timed_batches_of_a_loop_need_no_graph_and_no_call(backend: &Arc<dyn Backend>) {
    let program = Program::new();
    let resident = timeable(backend).filter(|policy| policy.mode == Mode::Resident);
    for policy in resident.filter(|_| loops(backend) == Loops::Run) {
        let (mut device_slot, mut executor) = program.slot(backend, &policy);
        let before = backend.driver_calls();
        for round in 0..20 {
            let input = Input::from_seed(round, 8);
            let replay = replay_timed(&program, &mut *device_slot, &mut executor, &input);
            assert!(replay.timed && replay.calls == 0, "{policy:?}");
        }
        let after = backend.driver_calls();
        assert_eq!(after.graph_edits, before.graph_edits);
        assert_eq!(after.timings, before.timings);
        let times = device_slot.timestamps().unwrap();
        assert!(times.is_sorted() && times[0].is_some(), "{times:?}");
    }
}

/// The calls for times are counted, and nothing else differs from launches without.
pub fn timed_launches_copy_what_the_batch_uses(backend: &Arc<dyn Backend>) {
    let program = Program::new();
    let policy = Policy {
        verify: Verify::Off,
        mapped_bytes_max: 64,
        ..Policy::new(Mode::Stream)
    };
    let (mut device_slot, mut executor) = program.slot(backend, &policy);
    let device_slot = &mut *device_slot;
    let input = Input::from_seed(1, 3);
    program.fill(device_slot, &input);
    let untimed = executor.replay(device_slot, 1, input.extent()).unwrap();
    device_slot.wait().unwrap();
    program.fill(device_slot, &input);
    let timed = executor
        .replay_timed(device_slot, 1, input.extent())
        .unwrap();
    device_slot.wait().unwrap();
    assert!(program.is_right(device_slot, &input));
    let copied = (untimed.copied_bytes, 0);
    assert_eq!((timed.copied_bytes, timed.padding_bytes), copied);
    assert_eq!(timed.calls, untimed.calls + TIMESTAMPS);
    // The header, and three elements of each buffer that the host sees.
    assert_eq!(timed.copied_bytes, 4 * HEADER_LEN + 3 * 4 * 4);
}

/// Without timed batches no timestamp is set and no call is made for one; the calls of a timed batch are
/// counted with the batch.
pub fn without_timed_batches_nothing_is_timed(backend: &Arc<dyn Backend>) {
    let program = Program::new();
    let has_loops = loops(backend) == Loops::Run;
    for policy in timeable(backend) {
        let (mut device_slot, mut executor) = program.slot(backend, &policy);
        let device_slot = &mut *device_slot;
        let input = Input::from_seed(1, 8);
        let before = backend.driver_calls();
        let mut calls = 0;
        for _ in 0..5 {
            let replay = program.give(device_slot, &mut executor, &input).unwrap();
            device_slot.wait().unwrap();
            assert!(!replay.timed);
            calls += replay.calls as u64;
        }
        let after = backend.driver_calls();
        assert_eq!(after.timings, before.timings, "{policy:?}");
        assert_eq!(after.graph_edits, before.graph_edits, "{policy:?}");
        if policy.mode == Mode::Resident && has_loops {
            // A loop notes the times anyway, and is launched at other times than batches.
            assert_eq!(calls, 0);
            assert!(device_slot.timestamps().unwrap().is_sorted());
            continue;
        }
        assert_eq!(after.submissions - before.submissions, calls, "{policy:?}");
        assert_eq!(device_slot.timestamps().unwrap(), [None; TIMESTAMPS]);
        // The first one makes a graph.
        replay_timed(&program, device_slot, &mut executor, &input);
        let before = backend.driver_calls();
        let replay = replay_timed(&program, device_slot, &mut executor, &input);
        let given = backend.driver_calls().submissions - before.submissions;
        assert_eq!(given, replay.calls as u64, "{policy:?}");
    }
}

/// Timestamps are operations of a graph like others: they read back, and take another number.
pub fn a_graph_reads_its_timestamps_back_and_takes_others(backend: &Arc<dyn Backend>) {
    let program = Program::new();
    for &build in Build::ALL {
        let mut device_slot = program.open(backend, 1).unwrap().remove(0);
        let mid = device_slot.addresses(program.handles.mid.id());
        let memset = memset(mid.device, 7, mid.bytes);
        let mut ops = [
            Op::Timestamp { timestamp: 2 },
            memset,
            Op::Timestamp { timestamp: 0 },
        ];
        let made = match build {
            Build::Capture => device_slot.capture(&ops.each_ref(), None),
            Build::Explicit => {
                let nodes = ops.each_ref().map(|op| Node { op, after: &[] });
                device_slot.give_graph(&nodes, None)
            }
        };
        let (graph, _) = made.unwrap();
        assert_eq!(device_slot.graph_ops(graph).unwrap(), ops);
        ops[0] = Op::Timestamp { timestamp: 3 };
        device_slot.give_params(graph, 0, &ops[0]).unwrap();
        device_slot.launch_graph(graph).unwrap();
        device_slot.fence().unwrap();
        device_slot.wait().unwrap();
        let reached = device_slot.timestamps().unwrap().map(|time| time.is_some());
        assert_eq!(reached, [true, false, false, true], "{build:?}");
    }
}

/// A slot has [`TIMESTAMPS`] of them.
pub fn a_timestamp_that_no_slot_has_is_refused(backend: &Arc<dyn Backend>) {
    let mut device_slot = Program::new().open(backend, 1).unwrap().remove(0);
    let op = Op::Timestamp {
        timestamp: TIMESTAMPS as u32,
    };
    assert_refused(&refusal(&mut *device_slot, &op), ErrorKind::Usage, &[]);
}
