//! Streams, threads and several slots at once on a real device. Without one,
//! each test says "skipped: no device".

use crate::give::Give;
use crate::gpu::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tapeloop::ErrorKind;
use tapeloop::backend::contract::{DeviceSlot, Op, Priority, Queue};
use tapeloop::backend::{Backend, Space, Streams};
use tapeloop::record::Kernel;
use tapeloop::replay::{Build, Executor, Mode, Policy, Scope, Verify};

const FLOATS: usize = LEN * size_of::<f32>();

fn per_stage(mode: Mode, build: Build) -> Policy {
    Policy {
        mode,
        build,
        streams: Streams::PerStage,
        scope: Scope::Kernels,
        // Graphs are made while other slots work, and waiting would spoil that.
        verify: Verify::Off,
        ..Policy::default()
    }
}

fn stage_slots(
    backend: &Arc<dyn Backend>,
    saxpy: &Saxpy,
    count: usize,
) -> Vec<Box<dyn DeviceSlot>> {
    let buffers = saxpy.recording.buffers();
    backend
        .open_slots(buffers, count, Streams::PerStage, Priority::Normal)
        .unwrap()
}

#[test]
fn slots_on_shared_streams_give_the_expected_bytes_with_all_in_flight() {
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    for policy in [
        per_stage(Mode::Graph, Build::Capture),
        per_stage(Mode::Graph, Build::Explicit),
        per_stage(Mode::Stream, Build::Capture),
    ] {
        let mut slots: Vec<(Box<dyn DeviceSlot>, Option<Executor>)> =
            stage_slots(&backend, &saxpy, 4)
                .into_iter()
                .map(|device_slot| (device_slot, None))
                .collect();
        for round in 0..300 {
            for (index, (device_slot, executor)) in slots.iter_mut().enumerate() {
                if round > 0 {
                    device_slot.wait().unwrap();
                    assert!(out(&saxpy, &**device_slot) == expected(index, round - 1).1);
                }
                // Made while the other slots are in flight, which a capture must
                // not take down.
                if round % 60 == 0 {
                    let made = ready_with(&backend, &saxpy.recording, &mut **device_slot, &policy);
                    *executor = Some(made);
                }
                fill(&saxpy, &mut **device_slot, &expected(index, round).0);
                let replay = replay(&mut **device_slot, executor.as_mut().unwrap());
                assert_eq!(replay.copied_bytes, 2 * FLOATS);
            }
        }
    }
}

#[test]
fn a_mark_does_not_speak_of_queues_that_were_not_joined() {
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    let mut device_slot = stage_slots(&backend, &saxpy, 1).remove(0);
    let at = device_slot.addresses(saxpy.x.id());
    let upload = Op::Upload {
        host: at.host.unwrap(),
        device: at.device,
        bytes: FLOATS,
    };
    device_slot.give(Queue::Upload, &upload).unwrap();
    device_slot.fence().unwrap();
    device_slot.wait().unwrap();
    let early = catch_unwind(AssertUnwindSafe(|| device_slot.host(saxpy.x.id()).len()));
    assert!(early.is_err());
    device_slot.join(Queue::Upload, Queue::Download).unwrap();
    device_slot.fence().unwrap();
    device_slot.wait().unwrap();
    assert_eq!(device_slot.host(saxpy.x.id()).len(), FLOATS);
    let calls = backend.driver_calls();
    device_slot.join(Queue::Upload, Queue::Upload).unwrap();
    assert_eq!(backend.driver_calls(), calls);
}

#[test]
fn each_round_may_be_of_another_thread() {
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    let mut device_slot = one_slot(&backend, &saxpy.recording);
    let mut executor = ready(&backend, &saxpy.recording, &mut *device_slot, Mode::Graph);
    let allocation = backend.allocate(Space::Device, 64).unwrap();
    for index in 0..20 {
        std::thread::scope(|scope| {
            let (device_slot, executor, saxpy) = (&mut device_slot, &mut executor, &saxpy);
            scope.spawn(move || round(saxpy, &mut **device_slot, executor, 0, index));
        });
        let (backend, allocation) = (&backend, &allocation);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let written = [index as u8; 64];
                backend.write(&written, allocation, 0).unwrap();
                let mut bytes = [0; 64];
                backend.read(allocation, 0, &mut bytes).unwrap();
                assert_eq!(bytes, written);
            });
        });
    }
}

#[test]
fn two_backends_live_beside_each_other() {
    let (Some(first), Some(second)) = (device(), device()) else {
        return;
    };
    let saxpy = saxpy();
    let mut slots = [&first, &second].map(|backend| {
        let mut device_slot = one_slot(backend, &saxpy.recording);
        let executor = ready(backend, &saxpy.recording, &mut *device_slot, Mode::Graph);
        (device_slot, executor)
    });
    let allocation = first.allocate(Space::Device, FLOATS).unwrap();
    let refused = [
        slots[1].0.adopt(&allocation).unwrap_err(),
        second.write(&[0; 4], &allocation, 0).unwrap_err(),
        second.read(&allocation, 0, &mut [0; 4]).unwrap_err(),
    ];
    for error in refused {
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    }
    for index in 0..20 {
        for (device_slot, executor) in &mut slots {
            round(&saxpy, &mut **device_slot, executor, 0, index);
        }
    }
    // One of them goes, with its context; the other stays.
    let [(device_slot, executor), mut other] = slots;
    drop((device_slot, executor, allocation, first));
    round(&saxpy, &mut *other.0, &mut other.1, 0, 99);
}

#[test]
fn slots_may_be_dropped_in_flight_whatever_their_streams() {
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    let kernel = Kernel::new("slow").writes::<f32>("out").scalar::<u32>("n");
    let kernel = with_code(kernel, &source_image(SAXPY));
    let function = backend.load(&kernel).unwrap();
    for streams in [Streams::PerSlot, Streams::PerStage] {
        let buffers = saxpy.recording.buffers();
        let mut device_slots = backend
            .open_slots(buffers, 4, streams, Priority::Normal)
            .unwrap();
        for device_slot in &mut device_slots {
            let at = device_slot.addresses(saxpy.out.id());
            let slow = Op::Launch {
                function,
                grid: [80, 1, 1],
                block: [128, 1, 1],
                shared_bytes: 0,
                args: Box::new([at.device, LEN as u64]),
            };
            let download = Op::Download {
                device: at.device,
                host: at.host.unwrap(),
                bytes: FLOATS,
            };
            device_slot.give(Queue::Compute, &slow).unwrap();
            device_slot.join(Queue::Compute, Queue::Download).unwrap();
            device_slot.give(Queue::Download, &download).unwrap();
        }
        // The first goes with nothing marked; the last is asked.
        let mut last = device_slots.pop().unwrap();
        drop(device_slots);
        last.fence().unwrap();
        last.wait().unwrap();
        let values = out(&saxpy, &*last);
        assert!(
            values
                .iter()
                .all(|value| *value != 0.0 && *value == values[0])
        );
    }
}
