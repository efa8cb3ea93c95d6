//! Slots on a real device, where only CUDA shows a behaviour. The other tests of slots are
//! scenarios of `tapeloop-conformance`.

use crate::gpu::*;
use std::process::Command;
use std::sync::Arc;
use tapeloop::ErrorKind;
use tapeloop::backend::contract::{DeviceSlot, Priority};
use tapeloop::backend::cuda::CudaBackend;
use tapeloop::backend::{Backend, CudaOptions, DeviceChoice, NvrtcLibrary, Space};
use tapeloop::record::{Kernel, Recorder, Recording};
use tapeloop::replay::{Executor, Mode};

#[test]
#[ignore = "needs a CUDA device"]
fn a_wait_that_sleeps_gives_the_same() {
    let options = CudaOptions {
        blocking_wait: true,
        ..CudaOptions::default()
    };
    let backend = device_with(&options);
    let saxpy = saxpy();
    let mut device_slot = one_slot(&backend, &saxpy.recording);
    let mut executor = ready(&backend, &saxpy.recording, &mut *device_slot, Mode::Graph);
    for index in 0..20 {
        round(&saxpy, &mut *device_slot, &mut executor, 0, index);
    }
}

const FLOATS: usize = LEN * size_of::<f32>();

/// One launch that takes a while, on `device slot`.
fn slow(backend: &Arc<dyn Backend>) -> (Recording, Box<dyn DeviceSlot>, Executor) {
    let mut recorder = Recorder::new(&[LEN as u32]);
    let out = recorder.download_buffer::<f32>("out", 0, 1);
    let kernel = Kernel::new("slow").writes::<f32>("out").scalar::<u32>("n");
    let kernel = with_code(kernel, &source_image(SAXPY));
    recorder.launch(&kernel, 80, &[out.into(), (LEN as u32).into()]);
    recorder.download(out);
    let recording = recorder.finish().unwrap();
    let mut device_slot = one_slot(backend, &recording);
    let executor = ready(backend, &recording, &mut *device_slot, Mode::Graph);
    (recording, device_slot, executor)
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_slot_dropped_in_flight_takes_nothing_with_it() {
    let backend = device();
    let (_, mut device_slot, mut executor) = slow(&backend);
    replay(&mut *device_slot, &mut executor);
    assert!(
        !device_slot.is_done().unwrap(),
        "the kernel is slow enough to be caught"
    );
    drop(device_slot);
    let saxpy = saxpy();
    let mut device_slot = one_slot(&backend, &saxpy.recording);
    // The slot outlives its backend.
    let mut executor = ready(&backend, &saxpy.recording, &mut *device_slot, Mode::Graph);
    drop(backend);
    round(&saxpy, &mut *device_slot, &mut executor, 0, 1);
}

#[test]
#[ignore = "needs a CUDA device"]
fn memory_that_is_not_there_is_out_of_memory_by_its_size() {
    let backend = device();
    let elements = 1 << 40;
    let mut recorder = Recorder::new(&[1]);
    recorder.batch_buffer::<u64>("huge", elements);
    let out = recorder.download_buffer::<u32>("out", 0, 1);
    recorder.launch(
        &with_code(Kernel::new("f").writes::<u32>("out"), &source_image(SAXPY)),
        1,
        &[out.into()],
    );
    recorder.download(out);
    let recording = recorder.finish().unwrap();
    let error = backend
        .open_slots(recording.buffers(), 1, Priority::Normal)
        .err()
        .unwrap();
    say(&format!("out of memory: {error}"));
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    assert!(error.message().contains("8796093022464 bytes"), "{error}");
    assert!(error.fix_text().is_some());
    let error = backend
        .open_slots(recording.buffers(), usize::MAX, Priority::Normal)
        .err()
        .unwrap();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    let error = backend.allocate(Space::Device, 1 << 43).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    let saxpy = saxpy();
    let mut device_slot = one_slot(&backend, &saxpy.recording);
    let mut executor = ready(&backend, &saxpy.recording, &mut *device_slot, Mode::Stream);
    round(&saxpy, &mut *device_slot, &mut executor, 0, 1);
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_device_beyond_the_last_or_a_missing_compiler_is_unavailable() {
    drop(device());
    let options = CudaOptions {
        device: DeviceChoice::Ordinal(999),
        ..CudaOptions::default()
    };
    let error = CudaBackend::open(&options).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("999"), "{error}");
    let options = CudaOptions {
        // SAFETY: there is no such library.
        nvrtc: Some(unsafe { NvrtcLibrary::new("/nowhere/libnvrtc.so") }),
        ..CudaOptions::default()
    };
    let backend = CudaBackend::open(&options).unwrap();
    let error = backend
        .load(&saxpy_kernel(&source_image(SAXPY)))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.fix_text().is_some(), "{error}");
}

#[test]
#[ignore = "needs a CUDA device"]
fn two_backends_live_beside_each_other() {
    let (first, second) = (device(), device());
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
    // Dropping one backend destroys its context; the other stays usable.
    let [(device_slot, executor), mut other] = slots;
    drop((device_slot, executor, allocation, first));
    round(&saxpy, &mut *other.0, &mut other.1, 0, 99);
}

const CHILD: &str = "TAPELOOP_TEST_CHILD";

/// An illegal address makes the whole process lose the device, so this test runs in its own
/// process.
#[test]
#[ignore = "needs a CUDA device"]
fn a_fault_is_an_error_in_is_done_and_wait_and_drops_do_not_hang() {
    let backend = device();
    if std::env::var_os(CHILD).is_none() {
        let name = "slot::a_fault_is_an_error_in_is_done_and_wait_and_drops_do_not_hang";
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--include-ignored"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        // A name that matches no test passes too.
        assert!(
            child.status.success() && said.contains("1 passed"),
            "{said}"
        );
        return;
    }
    let saxpy = saxpy();
    let mut bystander = one_slot(&backend, &saxpy.recording);
    let mut recorder = Recorder::new(&[1]);
    let out = recorder.download_buffer::<f32>("out", 0, 1);
    let kernel = Kernel::new("stray").writes::<f32>("out").block(1);
    let kernel = with_code(kernel, &source_image(SAXPY));
    recorder.launch(&kernel, 1, &[out.into()]);
    recorder.download(out);
    let recording = recorder.finish().unwrap();
    let mut device_slot = one_slot(&backend, &recording);
    let mut executor = ready(&backend, &recording, &mut *device_slot, Mode::Graph);
    replay(&mut *device_slot, &mut executor);
    let error = loop {
        match device_slot.is_done() {
            Ok(false) => std::thread::yield_now(),
            Ok(true) => panic!("the fault went by unseen"),
            Err(error) => break error,
        }
    };
    say(&format!("a fault: {error}"));
    assert_eq!((error.kind(), error.code()), (ErrorKind::Device, Some(700)));
    assert_eq!(device_slot.wait().unwrap_err().code(), Some(700));
    assert!(bystander.fence().is_err());
    drop((device_slot, bystander, backend));
}
