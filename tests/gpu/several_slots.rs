//! Threads, backends and several slots at once on a real device. Without one, each test says
//! "skipped: no device".

use crate::give::Give;
use crate::gpu::*;
use tapeloop::ErrorKind;
use tapeloop::backend::Space;
use tapeloop::backend::contract::{Op, Priority};
use tapeloop::record::Kernel;
use tapeloop::replay::Mode;

const FLOATS: usize = LEN * size_of::<f32>();

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
fn slots_may_be_dropped_in_flight() {
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    let kernel = Kernel::new("slow").writes::<f32>("out").scalar::<u32>("n");
    let kernel = with_code(kernel, &source_image(SAXPY));
    let function = backend.load(&kernel).unwrap();
    let buffers = saxpy.recording.buffers();
    let mut device_slots = backend.open_slots(buffers, 4, Priority::Normal).unwrap();
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
        device_slot.give(&slow).unwrap();
        device_slot.give(&download).unwrap();
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
