//! Slots on a real device. Without one, each test says "skipped: no device".

use crate::give::Give;
use crate::gpu::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::Arc;
use tapeloop::ErrorKind;
use tapeloop::backend::contract::{DeviceSlot, Op, Priority};
use tapeloop::backend::cuda::CudaBackend;
use tapeloop::backend::{Backend, CudaOptions, DeviceChoice, NvrtcLibrary};
use tapeloop::record::{Kernel, Recorder, Recording, Unit};
use tapeloop::replay::{Executor, Mode};

#[test]
fn stream_and_graph_give_the_expected_bytes_over_many_replays() {
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    for mode in MODES {
        let mut device_slot = one_slot(&backend, &saxpy.recording);
        assert!(
            device_slot
                .host(saxpy.out.id())
                .iter()
                .all(|&byte| byte == 0)
        );
        let mut executor = ready(&backend, &saxpy.recording, &mut *device_slot, mode);
        for index in 0..300 {
            round(&saxpy, &mut *device_slot, &mut executor, 0, index);
        }
    }
}

#[test]
fn a_wait_that_sleeps_gives_the_same() {
    let options = CudaOptions {
        blocking_wait: true,
        ..CudaOptions::default()
    };
    let Some(backend) = device_with(&options) else {
        return;
    };
    let saxpy = saxpy();
    let mut device_slot = one_slot(&backend, &saxpy.recording);
    let mut executor = ready(&backend, &saxpy.recording, &mut *device_slot, Mode::Graph);
    for index in 0..20 {
        round(&saxpy, &mut *device_slot, &mut executor, 0, index);
    }
}

#[test]
fn slots_run_side_by_side_and_move_between_threads() {
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    let mut device_slots = device_slots(&backend, &saxpy.recording, 6);
    for step in 0..3 {
        std::thread::scope(|scope| {
            for (index, device_slot) in device_slots.iter_mut().enumerate() {
                let (backend, saxpy) = (&backend, &saxpy);
                scope.spawn(move || {
                    let mode = MODES[(index + step) % 2];
                    let mut executor = ready(backend, &saxpy.recording, &mut **device_slot, mode);
                    for index_round in 0..100 {
                        round(
                            saxpy,
                            &mut **device_slot,
                            &mut executor,
                            index,
                            step * 100 + index_round,
                        );
                    }
                });
            }
        });
        // The next round of threads gets other slots.
        device_slots.rotate_left(1);
    }
}

#[test]
fn launches_queue_behind_each_other_before_one_wait() {
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    let mut device_slot = one_slot(&backend, &saxpy.recording);
    let mut executor = ready(&backend, &saxpy.recording, &mut *device_slot, Mode::Graph);
    let (x, out) = expected(0, 0);
    device_slot.host_mut(&[saxpy.x.id()])[0].copy_from_slice(bytemuck::cast_slice(&x));
    for _ in 0..1_000 {
        replay(&mut *device_slot, &mut executor);
    }
    while !device_slot.is_done().unwrap() {}
    assert!(device_slot.host(saxpy.out.id()) == bytemuck::cast_slice::<_, u8>(&out));
}

#[test]
fn host_memory_is_out_of_reach_until_the_work_is_seen_done() {
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    let mut device_slot = one_slot(&backend, &saxpy.recording);
    let mut executor = ready(&backend, &saxpy.recording, &mut *device_slot, Mode::Stream);
    replay(&mut *device_slot, &mut executor);
    let early = catch_unwind(AssertUnwindSafe(|| device_slot.host(saxpy.out.id()).len()));
    assert!(early.is_err());
    device_slot.wait().unwrap();
    assert_eq!(
        device_slot.host(saxpy.out.id()).len(),
        LEN * size_of::<f32>()
    );
}

#[test]
fn buffers_of_two_recordings_with_one_index_are_not_borrowed_together() {
    let Some(backend) = device() else { return };
    let (own, other) = (saxpy(), saxpy());
    let mut device_slot = one_slot(&backend, &own.recording);
    let [a, b] = [own.x.id(), other.x.id()];
    for pair in [[a, b], [b, a], [a, a]] {
        let views = AssertUnwindSafe(|| device_slot.host_mut(&pair).len());
        assert!(catch_unwind(views).is_err(), "{pair:?}");
    }
}

#[test]
fn an_empty_capture_is_an_error_and_the_slot_goes_on() {
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    let mut device_slot = one_slot(&backend, &saxpy.recording);
    let error = device_slot.capture(&[], None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.message().contains("no operation"), "{error}");
    let mut executor = ready(&backend, &saxpy.recording, &mut *device_slot, Mode::Graph);
    round(&saxpy, &mut *device_slot, &mut executor, 0, 1);
}

#[test]
fn an_operation_refused_in_a_capture_leaves_the_slot_usable() {
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    let mut device_slot = one_slot(&backend, &saxpy.recording);
    let op = Op::Memset {
        device: 8,
        byte: 0,
        bytes: 4,
    };
    let error = device_slot.capture(&[&op], None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    let mut executor = ready(&backend, &saxpy.recording, &mut *device_slot, Mode::Graph);
    round(&saxpy, &mut *device_slot, &mut executor, 0, 1);
}

#[test]
fn a_slot_refuses_addresses_that_are_not_its_own() {
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    let mut device_slots = device_slots(&backend, &saxpy.recording, 2);
    let other = device_slots[1].addresses(saxpy.x.id());
    let own = device_slots[0].addresses(saxpy.x.id());
    let bytes = LEN * size_of::<f32>();
    let upload = |host: Option<u64>, device: u64| Op::Upload {
        host: host.unwrap(),
        device,
        bytes,
    };
    for op in [
        upload(other.host, own.device),
        upload(own.host, other.device),
    ] {
        let error = device_slots[0].give(&op).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    }
}

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
fn a_slot_dropped_in_flight_takes_nothing_with_it() {
    let Some(backend) = device() else { return };
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
fn memory_that_is_not_there_is_out_of_memory_by_its_size() {
    let Some(backend) = device() else { return };
    let elements = 1 << 40;
    let mut recorder = Recorder::new(&[1]);
    recorder.device_buffer::<u64>("huge", Unit::PerBatch { elements });
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
    let saxpy = saxpy();
    let mut device_slot = one_slot(&backend, &saxpy.recording);
    let mut executor = ready(&backend, &saxpy.recording, &mut *device_slot, Mode::Stream);
    round(&saxpy, &mut *device_slot, &mut executor, 0, 1);
}

#[test]
fn a_device_beyond_the_last_or_a_missing_compiler_is_unavailable() {
    let Some(_) = device() else { return };
    let options = CudaOptions {
        device: DeviceChoice::Ordinal(999),
        ..CudaOptions::default()
    };
    let error = CudaBackend::open(&options).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("999"), "{error}");
    let options = CudaOptions {
        // SAFETY: there is no such library.
        nvrtc: Some(unsafe { NvrtcLibrary::at("/nowhere/libnvrtc.so") }),
        ..CudaOptions::default()
    };
    let backend = CudaBackend::open(&options).unwrap();
    let error = backend
        .load(&saxpy_kernel(&source_image(SAXPY)))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("backend = \"cpu\""), "{error}");
}

const CHILD: &str = "TAPELOOP_TEST_CHILD";

/// An illegal address loses the whole process, so this runs in one of its own.
#[test]
fn a_fault_is_an_error_in_is_done_and_wait_and_drops_do_not_hang() {
    let Some(backend) = device() else { return };
    if std::env::var_os(CHILD).is_none() {
        let name = "slot::a_fault_is_an_error_in_is_done_and_wait_and_drops_do_not_hang";
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name])
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
