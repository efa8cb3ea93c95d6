//! Batches with their times, on a device.

use crate::gpu::*;
use crate::target::turn;
use std::time::Instant;
use tapeloop_engine::backend::contract::{DeviceSlot, Priority, host_ns};
use tapeloop_engine::replay::{Build, Executor, Mode, Policy, Verify};

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
#[ignore = "needs a CUDA device"]
fn timestamps_lie_between_the_host_s_moments_around_the_batch() {
    let _turn = turn();
    let backend = device();
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
