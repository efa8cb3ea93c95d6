//! Lanes on a real device. Without one, each test says "skipped: no device".
#![cfg(feature = "cuda")]

#[path = "support/give/mod.rs"]
mod give;
#[path = "support/gpu/mod.rs"]
mod gpu;

use give::Give;
use gpu::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::Arc;
use tapeloop::ErrorKind;
use tapeloop::backend::cuda::CudaBackend;
use tapeloop::backend::{
    Backend, CudaOptions, DeviceChoice, Lane, NvrtcLibrary, Op, Queue, Streams,
};
use tapeloop::record::{Kernel, Recorder, Recording, Unit};
use tapeloop::replay::{Executor, Mode};

#[test]
fn stream_and_graph_give_the_expected_bytes_over_many_replays() {
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    for mode in MODES {
        let mut lane = one_lane(&backend, &saxpy.recording);
        assert!(lane.host(saxpy.out.id()).iter().all(|&byte| byte == 0));
        let mut executor = ready(&backend, &saxpy.recording, &mut *lane, mode);
        for index in 0..300 {
            round(&saxpy, &mut *lane, &mut executor, 0, index);
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
    let mut lane = one_lane(&backend, &saxpy.recording);
    let mut executor = ready(&backend, &saxpy.recording, &mut *lane, Mode::Graph);
    for index in 0..20 {
        round(&saxpy, &mut *lane, &mut executor, 0, index);
    }
}

#[test]
fn lanes_run_side_by_side_and_move_between_threads() {
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    let mut lanes = lanes(&backend, &saxpy.recording, 6);
    for step in 0..3 {
        std::thread::scope(|scope| {
            for (index, lane) in lanes.iter_mut().enumerate() {
                let (backend, saxpy) = (&backend, &saxpy);
                scope.spawn(move || {
                    let mode = MODES[(index + step) % 2];
                    let mut executor = ready(backend, &saxpy.recording, &mut **lane, mode);
                    for index_round in 0..100 {
                        round(
                            saxpy,
                            &mut **lane,
                            &mut executor,
                            index,
                            step * 100 + index_round,
                        );
                    }
                });
            }
        });
        // The next round of threads gets other lanes.
        lanes.rotate_left(1);
    }
}

#[test]
fn launches_queue_behind_each_other_before_one_wait() {
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    let mut lane = one_lane(&backend, &saxpy.recording);
    let mut executor = ready(&backend, &saxpy.recording, &mut *lane, Mode::Graph);
    let (x, out) = expected(0, 0);
    lane.host_mut(&[saxpy.x.id()])[0].copy_from_slice(bytemuck::cast_slice(&x));
    for _ in 0..1_000 {
        replay(&mut *lane, &mut executor);
    }
    while !lane.is_done().unwrap() {}
    assert!(lane.host(saxpy.out.id()) == bytemuck::cast_slice::<_, u8>(&out));
}

#[test]
fn host_memory_is_out_of_reach_until_the_work_is_seen_done() {
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    let mut lane = one_lane(&backend, &saxpy.recording);
    let mut executor = ready(&backend, &saxpy.recording, &mut *lane, Mode::Stream);
    replay(&mut *lane, &mut executor);
    let early = catch_unwind(AssertUnwindSafe(|| lane.host(saxpy.out.id()).len()));
    assert!(early.is_err());
    lane.wait().unwrap();
    assert_eq!(lane.host(saxpy.out.id()).len(), LEN * size_of::<f32>());
}

#[test]
fn buffers_of_two_recordings_with_one_index_are_not_borrowed_together() {
    let Some(backend) = device() else { return };
    let (own, other) = (saxpy(), saxpy());
    let mut lane = one_lane(&backend, &own.recording);
    let [a, b] = [own.x.id(), other.x.id()];
    for pair in [[a, b], [b, a], [a, a]] {
        let views = AssertUnwindSafe(|| lane.host_mut(&pair).len());
        assert!(catch_unwind(views).is_err(), "{pair:?}");
    }
}

#[test]
fn an_empty_capture_is_an_error_and_the_lane_goes_on() {
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    let mut lane = one_lane(&backend, &saxpy.recording);
    assert_eq!(lane.end_capture(None).unwrap_err().kind(), ErrorKind::Usage);
    lane.begin_capture().unwrap();
    assert_eq!(lane.begin_capture().unwrap_err().kind(), ErrorKind::Usage);
    assert_eq!(lane.fence().unwrap_err().kind(), ErrorKind::Usage);
    let error = lane.end_capture(None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.message().contains("took nothing down"), "{error}");
    let mut executor = ready(&backend, &saxpy.recording, &mut *lane, Mode::Graph);
    round(&saxpy, &mut *lane, &mut executor, 0, 1);
}

#[test]
fn an_operation_refused_in_a_capture_leaves_the_lane_usable() {
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    let mut lane = one_lane(&backend, &saxpy.recording);
    lane.begin_capture().unwrap();
    let op = Op::Memset {
        device: 8,
        byte: 0,
        bytes: 4,
    };
    assert_eq!(
        lane.give(Queue::Upload, &op).unwrap_err().kind(),
        ErrorKind::Usage
    );
    assert!(lane.end_capture(None).is_err());
    let mut executor = ready(&backend, &saxpy.recording, &mut *lane, Mode::Graph);
    round(&saxpy, &mut *lane, &mut executor, 0, 1);
}

#[test]
fn a_lane_refuses_addresses_that_are_not_its_own() {
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    let mut lanes = lanes(&backend, &saxpy.recording, 2);
    let other = lanes[1].addresses(saxpy.x.id());
    let own = lanes[0].addresses(saxpy.x.id());
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
        let error = lanes[0].give(Queue::Upload, &op).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    }
}

/// One launch that takes a while, on `lane`.
fn slow(backend: &Arc<dyn Backend>) -> (Recording, Box<dyn Lane>, Executor) {
    let mut recorder = Recorder::new(&[LEN as u32]);
    let out = recorder.download_buffer::<f32>("out", 0, 1);
    let kernel = Kernel::new("slow").writes::<f32>("out").scalar::<u32>("n");
    let kernel = with_code(kernel, &source_image(SAXPY));
    recorder.launch(&kernel, 80, &[out.into(), (LEN as u32).into()]);
    recorder.download(out);
    let recording = recorder.finish().unwrap();
    let mut lane = one_lane(backend, &recording);
    let executor = ready(backend, &recording, &mut *lane, Mode::Graph);
    (recording, lane, executor)
}

#[test]
fn a_lane_dropped_in_flight_or_in_a_capture_takes_nothing_with_it() {
    let Some(backend) = device() else { return };
    let (_, mut lane, mut executor) = slow(&backend);
    replay(&mut *lane, &mut executor);
    assert!(
        !lane.is_done().unwrap(),
        "the kernel is slow enough to be caught"
    );
    drop(lane);
    let saxpy = saxpy();
    let mut capturing = one_lane(&backend, &saxpy.recording);
    capturing.begin_capture().unwrap();
    drop(capturing);
    let mut lane = one_lane(&backend, &saxpy.recording);
    // The lane outlives its backend.
    let mut executor = ready(&backend, &saxpy.recording, &mut *lane, Mode::Graph);
    drop(backend);
    round(&saxpy, &mut *lane, &mut executor, 0, 1);
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
        .open_lanes(recording.buffers(), 1, Streams::PerSlot)
        .err()
        .unwrap();
    say(&format!("out of memory: {error}"));
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    assert!(error.message().contains("8796093022464 bytes"), "{error}");
    assert!(error.fix_text().is_some());
    let error = backend
        .open_lanes(recording.buffers(), usize::MAX, Streams::PerSlot)
        .err()
        .unwrap();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    let saxpy = saxpy();
    let mut lane = one_lane(&backend, &saxpy.recording);
    let mut executor = ready(&backend, &saxpy.recording, &mut *lane, Mode::Stream);
    round(&saxpy, &mut *lane, &mut executor, 0, 1);
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
        let name = "a_fault_is_an_error_in_is_done_and_wait_and_drops_do_not_hang";
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
    let mut bystander = one_lane(&backend, &saxpy.recording);
    let mut recorder = Recorder::new(&[1]);
    let out = recorder.download_buffer::<f32>("out", 0, 1);
    let kernel = Kernel::new("stray").writes::<f32>("out").block(1);
    let kernel = with_code(kernel, &source_image(SAXPY));
    recorder.launch(&kernel, 1, &[out.into()]);
    recorder.download(out);
    let recording = recorder.finish().unwrap();
    let mut lane = one_lane(&backend, &recording);
    let mut executor = ready(&backend, &recording, &mut *lane, Mode::Graph);
    replay(&mut *lane, &mut executor);
    let error = loop {
        match lane.is_done() {
            Ok(false) => std::thread::yield_now(),
            Ok(true) => panic!("the fault went by unseen"),
            Err(error) => break error,
        }
    };
    say(&format!("a fault: {error}"));
    assert_eq!((error.kind(), error.code()), (ErrorKind::Device, Some(700)));
    assert_eq!(lane.wait().unwrap_err().code(), Some(700));
    assert!(bystander.fence().is_err());
    drop((lane, bystander, backend));
}
