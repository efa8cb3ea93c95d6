//! Batches with their times, on a device. Without one it says "skipped: no device".

use crate::give::Give;
use crate::gpu::*;
use crate::target::turn;
use std::time::Instant;
use tapeloop::backend::contract::{DeviceSlot, Node, Op, Priority, TIMESTAMPS, host_ns};
use tapeloop::replay::{Build, Executor, Mode, Policy, Verify};

/// What the device's clock may be off by the host's.
const OFF_NS_MAX: u64 = 100_000;

fn replay_timed(
    saxpy: &Saxpy,
    device_slot: &mut dyn DeviceSlot,
    executor: &mut Executor,
    index: usize,
) {
    let (x, expected) = expected(0, index);
    fill(saxpy, device_slot, &x);
    let largest = executor.buckets().largest().capacity;
    let replay = executor.replay_timed(device_slot, 0, largest).unwrap();
    assert!(replay.timed);
    device_slot.wait().unwrap();
    assert!(out(saxpy, device_slot) == expected);
}

/// Every policy; a batch that is verified runs twice, and has no times.
fn unverified() -> impl Iterator<Item = Policy> {
    Policy::combinations().map(|policy| Policy {
        verify: Verify::Off,
        ..policy
    })
}

#[test]
fn timestamps_lie_between_the_host_s_moments_around_the_batch() {
    let _turn = turn();
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    for policy in unverified() {
        let buffers = saxpy.recording.buffers();
        let device_slots = backend.open_slots(buffers, 1, Priority::Normal);
        let mut device_slot = device_slots.unwrap().remove(0);
        let mut executor = ready_with(&backend, &saxpy.recording, &mut *device_slot, &policy);
        for index in 0..20 {
            let start = host_ns(Instant::now());
            replay_timed(&saxpy, &mut *device_slot, &mut executor, index);
            let end = host_ns(Instant::now());
            let timestamps = device_slot
                .timestamps()
                .unwrap()
                .map(|timestamp| timestamp.unwrap());
            // A loop's times are fitted between those of the host.
            let off_ns = match policy.mode {
                Mode::Resident => 0,
                _ => OFF_NS_MAX,
            };
            let first = start.saturating_sub(off_ns);
            let inside = timestamps
                .iter()
                .all(|at| (first..=end + off_ns).contains(at));
            assert!(inside, "{policy:?}: {timestamps:?} in {start} to {end}");
            // Leaves of a graph are met when the device likes.
            let line = policy.mode == Mode::Stream || policy.build == Build::Capture;
            // The driver's times are of half a microsecond.
            let ascend = timestamps.windows(2).all(|pair| pair[0] <= pair[1] + 1_000);
            assert!(ascend || !line, "{policy:?}: {timestamps:?}");
        }
        say(&format!(
            "{policy:?}: {:?}",
            device_slot.timestamps().unwrap()
        ));
    }
}

#[test]
fn without_timed_batches_nothing_is_timed() {
    let _turn = turn();
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    for policy in unverified() {
        let buffers = saxpy.recording.buffers();
        let device_slots = backend.open_slots(buffers, 1, Priority::Normal);
        let mut device_slot = device_slots.unwrap().remove(0);
        let mut executor = ready_with(&backend, &saxpy.recording, &mut *device_slot, &policy);
        let before = backend.driver_calls();
        let mut calls = 0;
        for index in 0..10 {
            fill(&saxpy, &mut *device_slot, &expected(0, index).0);
            calls += replay(&mut *device_slot, &mut executor).calls as u64;
            device_slot.wait().unwrap();
        }
        let after = backend.driver_calls();
        assert_eq!(after.timings, before.timings, "{policy:?}");
        assert_eq!(after.graph_edits, before.graph_edits, "{policy:?}");
        let submissions = after.submissions - before.submissions;
        match policy.mode {
            // A launch of the loop and its event, now and then.
            Mode::Resident => assert!(calls == 0 && submissions <= 20, "{submissions} calls"),
            _ => assert_eq!(submissions, calls, "{policy:?}"),
        }
        // A loop notes the times of each batch anyway.
        let has_times = policy.mode == Mode::Resident;
        let timestamps = device_slot.timestamps().unwrap();
        assert_eq!(
            timestamps.map(|it| it.is_some()),
            [has_times; TIMESTAMPS],
            "{policy:?}"
        );
    }
}

/// Timed batches of a loop make no call, follow each other, and take as long as the others.
#[test]
fn timestamps_of_a_loop_cost_no_call() {
    let _turn = turn();
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    let mut device_slot = one_slot(&backend, &saxpy.recording);
    let policy = Policy {
        verify: Verify::Off,
        ..Policy::of(Mode::Resident)
    };
    let mut executor = ready_with(&backend, &saxpy.recording, &mut *device_slot, &policy);
    let before = backend.driver_calls();
    let (mut last, mut shares) = (0, Vec::new());
    for index in 0..2_000 {
        let start = host_ns(Instant::now());
        replay_timed(&saxpy, &mut *device_slot, &mut executor, index);
        let timestamps = device_slot.timestamps().unwrap();
        let flight = host_ns(Instant::now()) - start;
        let [Some(begun), _, _, Some(ended)] = timestamps else {
            panic!("{timestamps:?}");
        };
        assert!(
            last <= begun && begun <= ended,
            "{last}: {begun} to {ended}"
        );
        last = ended;
        shares.push((ended - begun) as f64 / flight as f64);
    }
    let after = backend.driver_calls();
    assert_eq!(after.timings, before.timings);
    assert_eq!(after.graph_edits, before.graph_edits);
    shares.sort_by(f64::total_cmp);
    let median = shares[shares.len() / 2];
    say(&format!(
        "a loop's batch is {:.0}% of the time that the host sees",
        100.0 * median
    ));
    assert!(median > 0.0, "the device's clock stands still");
}

#[test]
fn a_graph_reads_its_timestamps_back_and_takes_others() {
    let _turn = turn();
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    for build in [Build::Capture, Build::Explicit] {
        let mut device_slot = one_slot(&backend, &saxpy.recording);
        let x = device_slot.addresses(saxpy.x.id());
        let memset = Op::Memset {
            device: x.device,
            byte: 7,
            bytes: x.bytes,
        };
        let mut ops = [
            Op::Timestamp { timestamp: 2 },
            memset,
            Op::Timestamp { timestamp: 0 },
        ];
        let graph = match build {
            Build::Capture => {
                let ops = ops.each_ref();
                device_slot.capture(&ops, None).unwrap().0
            }
            Build::Explicit => {
                let nodes = ops.each_ref().map(|op| Node { op, after: &[] });
                device_slot.give_graph(&nodes, None).unwrap().0
            }
        };
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
