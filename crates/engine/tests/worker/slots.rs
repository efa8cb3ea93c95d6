//! Memory that is shared with a worker process: it is touched by one process at a time,
//! whatever is dropped, killed or given up in between, and slots do not wait for each
//! other. The workers run on the CPU.

use crate::give::Give;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tapeloop_engine::backend::contract::{DeviceSlot, GraphId, Op, Priority};
use tapeloop_engine::backend::worker::{WorkerBackend, WorkerEnv, WorkerOptions, serve};
use tapeloop_engine::backend::{Backend, Choice};
use tapeloop_engine::pipeline::{Ring, Wait};
use tapeloop_engine::record::{Buffer, BufferId, Kernel, Recorder, Twin, TwinLaunch};
use tapeloop_engine::replay::{Buckets, Executor, Policy};
use tapeloop_engine::{Error, ErrorKind};

const ROLE: &str = "TAPELOOP_TEST_ROLE";
/// The path of a file; as long as it is there, workers end before they open a device.
const NO_START: &str = "TAPELOOP_TEST_NO_START";

/// The workers' `main`: this program is started again with this test alone.
#[test]
fn serve_as_worker() {
    if std::env::var(ROLE).as_deref() != Ok("worker") {
        return;
    }
    if std::env::var_os(NO_START).is_some_and(|path| Path::new(&path).exists()) {
        std::process::exit(3);
    }
    let twins: [(&str, Twin); 2] = [("slow", slow), ("writes_on", writes_on)];
    // SAFETY: a backend of these tests started the program.
    unsafe { serve(&twins) }.unwrap();
}

/// Takes as many milliseconds as its first input says, then copies.
fn slow(launch: &mut TwinLaunch<'_>) {
    let (x, y): (&[u32], &mut [u32]) = (launch.read(), launch.write());
    std::thread::sleep(Duration::from_millis(x[0].into()));
    y.copy_from_slice(x);
}

/// Changes its output for 20 seconds, over and over.
fn writes_on(launch: &mut TwinLaunch<'_>) {
    let (_, y): (&[u32], &mut [u32]) = (launch.read(), launch.write());
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(20) {
        for y in &mut *y {
            *y = std::hint::black_box(*y).wrapping_add(1);
        }
    }
}

const N: u32 = 1024;

struct Program {
    buckets: Arc<Buckets>,
    x: Buffer<u32>,
    y: Buffer<u32>,
}

fn program(name: &str, twin: Twin) -> Program {
    let kernel = Kernel::new(name)
        .reads::<u32>("x")
        .writes::<u32>("y")
        .twin(twin);
    let mut recorder = Recorder::new(&[N]);
    let x = recorder.upload_buffer::<u32>("x", 0, 1);
    let y = recorder.download_buffer::<u32>("y", 0, 1);
    recorder.upload(x);
    recorder.launch(&kernel, 8, &[x.into(), y.into()]);
    recorder.download(y);
    let buckets = Arc::new(Buckets::single(recorder.finish().unwrap()));
    Program { buckets, x, y }
}

type Slot = (Box<dyn DeviceSlot>, Executor);

impl Program {
    fn slots(&self, backend: &Arc<dyn Backend>, count: usize) -> Vec<Slot> {
        let buffers = self.buckets.largest().recording.buffers();
        let device_slots = backend
            .open_slots(buffers, count, Priority::Normal)
            .unwrap();
        let slot = |mut device_slot: Box<dyn DeviceSlot>| {
            let policy = Policy::default();
            let executor = Executor::new(backend, &mut *device_slot, &self.buckets, &policy);
            (device_slot, executor.unwrap())
        };
        device_slots.into_iter().map(slot).collect()
    }

    fn fill(&self, device_slot: &mut dyn DeviceSlot, value: u32) {
        let mut views = device_slot.host_mut(&[self.x.id()]);
        bytemuck::cast_slice_mut(views.pop().unwrap()).fill(value);
    }

    fn submit(&self, (device_slot, executor): &mut Slot, value: u32) {
        self.fill(&mut **device_slot, value);
        executor.replay(&mut **device_slot, 0, [N].into()).unwrap();
    }

    fn check(&self, device_slot: &dyn DeviceSlot, value: u32) {
        let y: &[u32] = bytemuck::cast_slice(device_slot.host(self.y.id()));
        assert_eq!(y, [value; N as usize]);
    }
}

fn options() -> WorkerOptions {
    WorkerOptions {
        args: ["slots::serve_as_worker", "--exact", "--nocapture"]
            .map(Into::into)
            .to_vec(),
        // SAFETY: only these tests read the variable.
        env: unsafe { WorkerEnv::default().with(ROLE, "worker") },
        choice: Choice::Cpu,
        threads: 2,
        ..WorkerOptions::default()
    }
}

fn open() -> (Arc<WorkerBackend>, Arc<dyn Backend>) {
    let worker = Arc::new(WorkerBackend::open(options()).unwrap());
    (Arc::clone(&worker), worker)
}

fn signal(process: u32, name: &str) {
    let arguments = [name, &process.to_string()];
    let status = Command::new("kill").args(arguments).status();
    assert!(status.unwrap().success());
}

/// Not even a zombie: its end was waited for.
fn is_gone(process: u32) -> bool {
    !PathBuf::from(format!("/proc/{process}")).exists()
}

#[test]
fn work_of_a_dropped_ring_does_not_complete_the_next_one() {
    let (_, backend) = open();
    let program = program("slow", slow);
    let ring = || {
        let policy = Policy::default();
        Ring::<()>::new(&backend, &program.buckets, 1, &policy, Wait::Block).unwrap()
    };
    let mut first = ring();
    let mut slot = first.acquire().unwrap();
    slot.write(program.x).fill(200);
    first.submit(slot, [N].into(), ()).unwrap();
    drop(first);
    let mut second = ring();
    let mut slot = second.acquire().unwrap();
    slot.write(program.x).fill(400);
    let start = Instant::now();
    second.submit(slot, [N].into(), ()).unwrap();
    let done = second.wait().unwrap().unwrap();
    assert_eq!(done.read(program.y), [400; N as usize]);
    assert!(start.elapsed() >= Duration::from_millis(400));
}

#[test]
fn slots_come_and_go_in_flight() {
    let (worker, backend) = open();
    let program = program("slow", slow);
    for round in 0..40 {
        let mut slots = program.slots(&backend, 2);
        program.submit(&mut slots[0], round % 7);
        program.submit(&mut slots[1], 8 + round % 5);
        let (device_slot, _) = &mut slots[1];
        device_slot.wait().unwrap();
        program.check(&**device_slot, 8 + round % 5);
        // In flight or not: the next round's slots have the numbers of these.
        program.submit(&mut slots[1], 20);
    }
    assert!(worker.process_id().is_some(), "nothing was lost");
}

#[test]
fn a_short_batch_is_answered_before_a_long_one_that_was_given_first() {
    let (_, backend) = open();
    let program = program("slow", slow);
    let mut slots = program.slots(&backend, 2);
    let [long, short] = &mut slots[..] else {
        unreachable!("two were opened");
    };
    program.submit(long, 500);
    // Until the worker computes, and more work for the slot that does.
    std::thread::sleep(Duration::from_millis(50));
    long.1.replay(&mut *long.0, 0, [N].into()).unwrap();
    program.submit(short, 5);
    short.0.wait().unwrap();
    assert!(!long.0.is_done().unwrap(), "the short one waited for it");
    program.check(&*short.0, 5);
    long.0.wait().unwrap();
    program.check(&*long.0, 500);
}

#[test]
fn memory_of_a_slot_that_was_given_up_does_not_change_any_more() {
    let (worker, backend) = open();
    let program = program("writes_on", writes_on);
    let mut slots = program.slots(&backend, 1);
    program.submit(&mut slots[0], 0);
    let process = worker.process_id().unwrap();
    let (device_slot, _) = &mut slots[0];
    assert!(!device_slot.wait_for(Duration::from_millis(100)).unwrap());
    device_slot.abandon(&Error::new(ErrorKind::Deadline, "given up"));
    assert!(is_gone(process), "it may write to the memory");
    let view = device_slot.host(program.y.id());
    let before = view.to_vec();
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(100) {
        assert_eq!(std::hint::black_box(view), before);
    }
    assert!(backend.revive().unwrap());
}

#[test]
fn a_batch_that_was_refused_before_a_loss_is_no_success() {
    let (worker, backend) = open();
    let program = program("slow", slow);
    let mut slots = program.slots(&backend, 2);
    let mut later = slots.pop().unwrap();
    let (device_slot, _) = &mut slots[0];
    program.fill(&mut **device_slot, 0);
    // The worker does not know this graph.
    device_slot.launch_graph(GraphId::unique()).unwrap();
    device_slot.fence().unwrap();
    // When this has ended, the worker has announced the refusal.
    program.submit(&mut later, 100);
    later.0.wait().unwrap();
    signal(worker.process_id().unwrap(), "-KILL");
    while !backend.revive().unwrap() {
        backend.driver_calls();
    }
    let error = device_slot.wait().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Worker, "{error}");
    assert!(device_slot.is_quiet());
}

#[test]
fn a_loss_is_reported_when_the_process_has_ended() {
    let (worker, backend) = open();
    let program = program("writes_on", writes_on);
    for name in ["-KILL", "-STOP"] {
        let mut slots = program.slots(&backend, 2);
        for slot in &mut slots {
            program.submit(slot, 0);
        }
        let process = worker.process_id().unwrap();
        signal(process, name);
        if name == "-STOP" {
            // As a deadline does: the other slot must learn of it too.
            slots[1]
                .0
                .abandon(&Error::new(ErrorKind::Deadline, "given up"));
        }
        let (device_slot, _) = &mut slots[0];
        let error = device_slot.wait().unwrap_err();
        assert!(is_gone(process), "it may write to the memory");
        let kind = match name {
            "-STOP" => ErrorKind::Deadline,
            _ => ErrorKind::Worker,
        };
        assert_eq!(error.kind(), kind, "{error}");
        // It is reported once, and the memory is open.
        assert!(device_slot.is_done().unwrap());
        program.fill(&mut **device_slot, 3);
        assert_eq!(worker.process_id(), None);
        assert!(backend.revive().unwrap());
    }
}

#[test]
fn a_deadline_that_passes_while_a_lost_worker_ends_is_not_the_reason() {
    let (_, backend) = open();
    let program = program("writes_on", writes_on);
    let mut slots = program.slots(&backend, 2);
    for slot in &mut slots {
        program.submit(slot, 0);
    }
    let fault = Error::new(ErrorKind::Device, "planted").with_code(700);
    let overdue = Error::new(ErrorKind::Deadline, "given up");
    for ((device_slot, _), error) in slots.iter_mut().zip([fault, overdue]) {
        let reason = device_slot.abandon(&error);
        assert_eq!((reason.message(), reason.code()), ("planted", Some(700)));
    }
}

#[test]
fn a_lost_batch_is_not_forgotten_when_the_slot_is_given_the_next() {
    let (worker, backend) = open();
    let program = program("slow", slow);
    let mut slots = program.slots(&backend, 1);
    program.submit(&mut slots[0], 2_000);
    signal(worker.process_id().unwrap(), "-KILL");
    while !backend.revive().unwrap() {
        let (device_slot, _) = &mut slots[0];
        // Not asked about its work: another slot of the device would notice.
        let _ = device_slot.graph_ops(GraphId::unique());
    }
    let (device_slot, executor) = &mut slots[0];
    assert!(executor.replay(&mut **device_slot, 0, [N].into()).is_err());
    assert!(device_slot.wait().is_err(), "its batch is gone");
    program.submit(&mut slots[0], 7);
    slots[0].0.wait().unwrap();
    program.check(&*slots[0].0, 7);
}

#[test]
fn a_lost_batch_is_reported_whenever_another_thread_starts_the_worker_again() {
    let (worker, backend) = open();
    let program = program("slow", slow);
    let mut slots = program.slots(&backend, 1);
    let (device_slot, executor) = &mut slots[0];
    for round in 0..20 {
        program.fill(&mut **device_slot, 2_000);
        executor.replay(&mut **device_slot, 0, [N].into()).unwrap();
        signal(worker.process_id().unwrap(), "-KILL");
        std::thread::scope(|scope| {
            let reviver = scope.spawn(|| while !backend.revive().unwrap() {});
            let mut outcomes = Vec::new();
            // The first calls may come before anything has noticed the loss.
            while !reviver.is_finished() {
                outcomes.push(
                    executor
                        .replay(&mut **device_slot, 0, [N].into())
                        .map(|_| ()),
                );
            }
            outcomes.push(device_slot.wait());
            assert!(
                outcomes.iter().any(Result::is_err),
                "round {round}: the loss is hidden"
            );
        });
        device_slot.wait().unwrap();
    }
}

#[test]
fn a_slot_keeps_its_memory_when_a_worker_starts_without_its_neighbour() {
    let (worker, backend) = open();
    let program = program("slow", slow);
    let mut slots = program.slots(&backend, 3);
    drop(slots.remove(0));
    signal(worker.process_id().unwrap(), "-KILL");
    for (place, slot) in slots.iter_mut().enumerate() {
        let value = 3 + place as u32;
        program.fill(&mut *slot.0, value);
        while slot.1.replay(&mut *slot.0, 0, [N].into()).is_err() || slot.0.wait().is_err() {
            backend.revive().unwrap();
        }
    }
    for (place, (device_slot, _)) in slots.iter().enumerate() {
        program.check(&**device_slot, 3 + place as u32);
    }
}

#[test]
fn a_worker_that_does_not_start_again_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let no_start = folder.path().join("no_start");
    let mut options = options();
    // SAFETY: only these tests read the variable.
    options.env = unsafe { options.env.with(NO_START, &no_start) };
    let worker = Arc::new(WorkerBackend::open(options).unwrap());
    let backend: Arc<dyn Backend> = Arc::clone(&worker) as Arc<dyn Backend>;
    let program = program("slow", slow);
    let mut slots = program.slots(&backend, 1);
    program.submit(&mut slots[0], 2_000);
    std::fs::write(&no_start, "").unwrap();
    signal(worker.process_id().unwrap(), "-KILL");
    slots[0].0.wait().unwrap_err();
    for _ in 0..2 {
        let error = backend.revive().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Worker, "{error}");
        assert!(error.to_string().contains("exit status: 3"), "{error}");
        assert_eq!(worker.process_id(), None);
    }
    std::fs::remove_file(&no_start).unwrap();
    assert!(backend.revive().unwrap());
    program.submit(&mut slots[0], 7);
    slots[0].0.wait().unwrap();
    program.check(&*slots[0].0, 7);
}

#[test]
fn memory_is_closed_until_a_fence_behind_the_work_is_reached() {
    let (_, backend) = open();
    let program = program("slow", slow);
    let mut slots = program.slots(&backend, 1);
    let (device_slot, _) = &mut slots[0];
    let x = device_slot.addresses(program.x.id());
    let memset = Op::Memset {
        device: x.device,
        byte: 1,
        bytes: 4,
    };
    device_slot.give(&memset).unwrap();
    device_slot.wait().unwrap();
    let is_open = |device_slot: &dyn DeviceSlot, buffer: BufferId| {
        let seen = catch_unwind(AssertUnwindSafe(|| device_slot.host(buffer).len()));
        seen.is_ok()
    };
    assert!(!is_open(&**device_slot, program.x.id()), "without a fence");
    device_slot.fence().unwrap();
    device_slot.wait().unwrap();
    assert!(is_open(&**device_slot, program.x.id()));
}
