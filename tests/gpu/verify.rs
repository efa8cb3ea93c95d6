//! Launches against graphs on the card: what is right passes under every policy,
//! and kernels that give other results each time are caught. Without a device these
//! tests say "skipped: no device".

use crate::gpu::*;
use std::num::NonZeroU32;
use std::sync::Arc;
use tapeloop::backend::Backend;
use tapeloop::backend::contract::Priority;
use tapeloop::record::{Buffer, Image, Kernel, Recorder, Recording, Unit};
use tapeloop::replay::{Build, Mode, Policy, Replay, Verify};
use tapeloop::{ErrorKind, Result};

const TEXT: &str = r#"
extern "C" __global__ void timestamp(unsigned long long* out, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = clock64();
}
extern "C" __global__ void race(unsigned* tickets, unsigned long long* out, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = atomicAdd(tickets, 1u);
}
"#;

fn recording(name: &str) -> (Recording, Buffer<u64>) {
    let image = Image::cuda("verify.cu", TEXT);
    let kernel = Kernel::new(name);
    // SAFETY: the kernels touch the first `n` elements of `out` and the one ticket.
    let with_code = |kernel: Kernel| unsafe { kernel.code(&image) };
    let mut recorder = Recorder::new(&[LEN as u32]);
    let out = recorder.download_buffer::<u64>("out", 0, 1);
    let blocks = (LEN as u32).div_ceil(128);
    let n = (LEN as u32).into();
    match name {
        "race" => {
            let kernel = kernel.updates::<u32>("tickets");
            let kernel = kernel.writes::<u64>("out").scalar::<u32>("n");
            let tickets = recorder.device_buffer::<u32>("tickets", Unit::PerBatch { elements: 1 });
            recorder.memset(tickets, 0);
            recorder.launch(&with_code(kernel), blocks, &[tickets.into(), out.into(), n]);
        }
        _ => {
            let kernel = kernel.writes::<u64>("out").scalar::<u32>("n");
            recorder.launch(&with_code(kernel), blocks, &[out.into(), n]);
        }
    }
    recorder.download(out);
    (recorder.finish().unwrap(), out)
}

/// Full batches of a kernel; ends at the first that is refused.
fn run(
    backend: &Arc<dyn Backend>,
    name: &str,
    policy: &Policy,
    batches: usize,
) -> Result<Vec<Replay>> {
    let (recording, out) = recording(name);
    let mut device_slots = backend
        .open_slots(recording.buffers(), 1, Priority::Normal)
        .unwrap();
    let device_slot = &mut *device_slots[0];
    let mut executor = ready_with(backend, &recording, device_slot, policy);
    let largest = executor.buckets().largest().capacity;
    let batch = |_| {
        let replay = executor.replay(device_slot, 0, largest)?;
        device_slot.wait()?;
        assert_eq!(device_slot.host(out.id()).len(), LEN * size_of::<u64>());
        Ok(replay)
    };
    (0..batches).map(batch).collect()
}

fn assert_caught(backend: &Arc<dyn Backend>, name: &str, policy: &Policy, batches: usize) {
    let error = run(backend, name, policy, batches).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Mismatch, "{error}");
    let text = error.to_string();
    assert!(
        text.starts_with("verification in bucket 0: buffer out: element "),
        "{text}"
    );
    assert!(
        text.contains(&format!("of {LEN} elements differ")),
        "{text}"
    );
}

#[test]
fn a_kernel_that_reads_the_clock_is_caught_by_the_first_batch_that_is_compared() {
    let Some(backend) = device() else { return };
    for policy in Policy::combinations() {
        let third = Policy {
            verify: Verify::Every(NonZeroU32::new(3).unwrap()),
            ..policy
        };
        if policy.mode == Mode::Stream {
            assert_eq!(run(&backend, "timestamp", &third, 2).unwrap().len(), 2);
            assert_caught(&backend, "timestamp", &third, 3);
        } else {
            assert_caught(&backend, "timestamp", &policy, 1);
            assert_caught(&backend, "timestamp", &third, 1);
        }
    }
}

#[test]
fn a_kernel_that_hangs_on_the_order_of_atomics_is_caught() {
    let Some(backend) = device() else { return };
    for &build in Build::ALL {
        let policy = Policy {
            build,
            verify: Verify::Every(NonZeroU32::MIN),
            ..Policy::default()
        };
        // Two orders may be the same; a hundred pairs are not.
        assert_caught(&backend, "race", &policy, 100);
    }
}

#[test]
fn what_is_right_passes_under_every_policy_and_costs_nothing_after() {
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    for policy in Policy::combinations() {
        let buffers = saxpy.recording.buffers();
        let mut device_slots = backend.open_slots(buffers, 1, Priority::Normal).unwrap();
        let device_slot = &mut *device_slots[0];
        let mut executor = ready_with(&backend, &saxpy.recording, device_slot, &policy);
        let largest = executor.buckets().largest().capacity;
        let mut steady = Vec::new();
        for round in 0..4 {
            let (x, expected) = expected(0, round);
            fill(&saxpy, device_slot, &x);
            let before = backend.driver_calls();
            let replay = executor.replay(device_slot, 0, largest).unwrap();
            let after = backend.driver_calls();
            device_slot.wait().unwrap();
            assert!(out(&saxpy, device_slot) == expected, "{policy:?}");
            let first = round == 0 && policy.mode != Mode::Stream;
            assert_eq!(replay.verified, usize::from(first));
            if policy.mode == Mode::Resident {
                // Loops are launched at other times than batches.
                continue;
            }
            assert_eq!(after.submissions - before.submissions, replay.calls as u64);
            if round > 0 {
                steady.push((replay.calls, after.polls - before.polls));
            }
        }
        let quiet = steady.iter().all(|(_, polls)| *polls == 0);
        assert!(quiet, "nothing is waited for");
        assert!(steady.iter().all(|calls| *calls == steady[0]), "{steady:?}");
    }
}
