//! A device in a worker process: the same results, and items that end the process are found and
//! left out. A process of its own: the workers are this program, started again by the name of a
//! test. They run on the CPU; for a GPU see `gpu_faults`.
#![cfg(all(feature = "supervise", target_os = "linux"))]

use tapeloop_conformance::give;
use tapeloop_conformance::lookup;
use tapeloop_conformance::scale;
use tapeloop_test_support::random;

mod conformance;
mod faults;
mod outgrown;
mod resident;
mod several;
mod slots;

use random::Random;
use rayon::{ThreadPool, ThreadPoolBuilder};
use scale::{Scale, doubled, vectors};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tapeloop_conformance::program::{Input, Program};
use tapeloop_engine::backend::DeviceInfo;
use tapeloop_engine::backend::worker::{
    WorkerBackend, WorkerEnv, WorkerOptions, WorkerProgram, serve,
};
use tapeloop_engine::backend::{Backend, Choice, Space};
use tapeloop_engine::pipeline::{Counters, Engine, EngineConfig, Pipeline};
use tapeloop_engine::record::{Buffer, Kernel, Recorder, Twin, TwinLaunch};
use tapeloop_engine::replay::{Mode, Policy, Rung, Verify};
use tapeloop_engine::workload::{Completion, Extent, ReadViews, Workload, WriteViews};
use tapeloop_engine::{ErrorKind, Result};

const ROLE: &str = "TAPELOOP_TEST_ROLE";

/// Names a file with a byte for each time that a worker ended itself by its fate.
const ENDS: &str = "TAPELOOP_TEST_ENDS";

/// Names a file with a byte for each worker that is to be killed when it starts.
const KILLED_STARTS: &str = "TAPELOOP_TEST_KILLED_STARTS";

/// The workers' `main`: this program is started again with this test alone.
#[test]
fn serve_as_worker() {
    match std::env::var(ROLE).as_deref() {
        Ok("worker") => {
            if let Some(file) = std::env::var_os(KILLED_STARTS)
                && let Ok(mut left) = std::fs::read(&file)
                && left.pop().is_some()
            {
                std::fs::write(file, left).unwrap();
                kill(std::process::id());
            }
            let mut twins = tapeloop_conformance::twins();
            twins.extend([
                ("fated", fated as Twin),
                ("fated_in_place", fated_in_place),
                ("fated_alone", outgrown::fated_alone),
            ]);
            // SAFETY: a backend of this test started the program.
            unsafe { serve(&twins) }.unwrap();
        }
        Ok("no worker") => {
            let no_test = ["no_such_test", "--exact"].map(Into::into).to_vec();
            let options = WorkerOptions {
                args: no_test,
                ..options()
            };
            let error = WorkerBackend::open(options).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Usage);
        }
        Ok("parent") => {
            let backend = WorkerBackend::open(options()).unwrap();
            println!("worker {}", backend.process_id().unwrap());
            // Until somebody kills it.
            loop {
                std::thread::park();
            }
        }
        _ => {}
    }
}

fn options() -> WorkerOptions {
    WorkerOptions {
        args: ["serve_as_worker", "--exact", "--nocapture"]
            .map(Into::into)
            .to_vec(),
        // SAFETY: only this test reads the variable.
        env: unsafe { WorkerEnv::default().with(ROLE, "worker") },
        choice: Choice::Cpu,
        threads: 1,
        ..WorkerOptions::default()
    }
}

#[test]
fn a_program_that_does_not_serve_starts_no_workers_without_end() {
    let options = WorkerOptions {
        // SAFETY: only this test reads the variable.
        env: unsafe { WorkerEnv::default().with(ROLE, "no worker") },
        ..options()
    };
    let error = WorkerBackend::open(options).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    // The test of that process passed.
    assert!(error.to_string().contains("exit status: 0"), "{error}");
}

/// Options whose workers find `files` named by their variables.
fn options_with(files: &[(&str, &Path)]) -> WorkerOptions {
    let mut options = options();
    for (name, file) in files {
        // SAFETY: only this test reads the variables.
        options.env = unsafe { options.env.with(name, file) };
    }
    options
}

fn open() -> (Arc<WorkerBackend>, Arc<dyn Backend>) {
    let worker = Arc::new(WorkerBackend::open(options()).unwrap());
    (Arc::clone(&worker), worker)
}

fn pool() -> Arc<ThreadPool> {
    Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap())
}

/// What a number makes of the process that computes with it.
const ABORTS: u32 = 1;
const NEVER_ENDS: u32 = 2;
const PANICS: u32 = 3;
const IS_KILLED_14_TIMES: u32 = 4;
const ABORTS_TWICE: u32 = 5;
const READS_INPUT: u32 = 6;

/// Whether a worker has ended itself fewer times than this. Counts one more then.
fn ends_now(times: u64) -> bool {
    let file = std::env::var_os(ENDS).expect("the test names the file");
    let mut file = OpenOptions::new().append(true).open(file).unwrap();
    let ends = file.metadata().unwrap().len() < times;
    if ends {
        file.write_all(b".").unwrap();
    }
    ends
}

fn fated(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let x: &[u32] = launch.read();
    let y: &mut [u32] = launch.write();
    for (y, x) in y.iter_mut().zip(x).take(header[0] as usize) {
        match *x {
            ABORTS => std::process::abort(),
            NEVER_ENDS => loop {
                std::thread::park();
            },
            PANICS => panic!("planted"),
            IS_KILLED_14_TIMES if ends_now(14) => kill(std::process::id()),
            ABORTS_TWICE if ends_now(2) => std::process::abort(),
            READS_INPUT => *y = std::io::read_to_string(std::io::stdin()).unwrap().len() as u32,
            x => *y = x.wrapping_mul(7),
        }
    }
}

fn fated_in_place(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let x: &mut [u32] = launch.write();
    let y: &mut [u32] = launch.write();
    for (y, x) in y.iter_mut().zip(x).take(header[0] as usize) {
        match *x {
            ABORTS => std::process::abort(),
            number => *x = number.wrapping_mul(7),
        }
        *y = *x;
    }
}

/// Multiplies numbers by seven, but for those with a fate.
struct Fated(Kernel);

struct Buffers {
    x: Buffer<u32>,
    y: Buffer<u32>,
}

impl Fated {
    fn new() -> Self {
        let kernel = Kernel::new("fated")
            .reads::<u32>("header")
            .reads::<u32>("x")
            .writes::<u32>("y")
            .twin(fated);
        Fated(kernel)
    }

    /// With a kernel that multiplies its input in place.
    fn in_place() -> Self {
        let kernel = Kernel::new("fated_in_place")
            .reads::<u32>("header")
            .updates::<u32>("x")
            .writes::<u32>("y")
            .twin(fated_in_place);
        Fated(kernel)
    }
}

impl Workload for Fated {
    type Item = u32;
    type Output = u32;
    type Buffers = Buffers;

    fn axes(&self) -> &'static [&'static str] {
        &["numbers"]
    }
    fn extent(&self, _: &u32) -> Result<Extent> {
        Ok(Extent::from([1]))
    }
    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<Buffers> {
        let header = recorder.header();
        let x = recorder.upload_buffer("x", 0, 1);
        let y = recorder.download_buffer("y", 0, 1);
        recorder.upload(header);
        recorder.upload(x);
        recorder.launch(&self.0, 1, &[header.into(), x.into(), y.into()]);
        recorder.download(y);
        Ok(Buffers { x, y })
    }
    fn write(&self, to: &Buffers, item: &u32, _: Extent, views: &mut WriteViews<'_>) -> Result<()> {
        views.take(to.x)[0] = *item;
        Ok(())
    }
    fn read(&self, from: &Buffers, _: &u32, _: Extent, views: &ReadViews<'_>) -> Result<u32> {
        Ok(views.get(from.y)[0])
    }
}

#[test]
fn graphs_change_and_are_read_back_and_come_again_with_a_new_worker() {
    let (worker, backend) = open();
    let program = Program::new();
    for build in tapeloop_engine::replay::Build::ALL {
        let policy = Policy {
            build: *build,
            ..Policy::new(Mode::Graph)
        };
        let mut slots = program.slots(&backend, 2, &policy).unwrap();
        let mut random = Random::new(7);
        for round in 0..4 {
            if round == 2 {
                kill(worker.process_id().unwrap());
            }
            for (device_slot, executor) in &mut slots {
                let input = Input::from_seed(random.next(), 12);
                let factor = 3.0 + round as f32;
                let mut bindings = executor.bindings(&mut **device_slot, 1).unwrap().clone();
                bindings.set_scalar(0, "factor", factor).unwrap();
                if round == 2 {
                    // What asks a worker that is gone is told, and asks the next one.
                    let lost = executor.update(&mut **device_slot, 1, bindings.clone());
                    if lost.is_err() {
                        assert!(backend.revive().unwrap());
                        executor.update(&mut **device_slot, 1, bindings).unwrap();
                    }
                } else {
                    let rung = executor.update(&mut **device_slot, 1, bindings).unwrap();
                    assert_eq!(rung, Rung::Params, "{build:?}");
                }
                program.fill(&mut **device_slot, &input);
                executor
                    .replay(&mut **device_slot, 1, input.extent())
                    .unwrap();
                device_slot.wait().unwrap();
                let y: &[f32] = bytemuck::cast_slice(device_slot.host(program.handles.y.id()));
                assert_eq!(y[..12], input.y(factor));
            }
        }
    }
}

fn kill(process: u32) {
    let status = Command::new("kill")
        .args(["-9", &process.to_string()])
        .status();
    assert!(status.unwrap().success());
    wait_for_end(process);
}

/// Until the process is gone, or a zombie of this one.
fn wait_for_end(process: u32) {
    let start = Instant::now();
    let lives = || {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    };
    while lives() {
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "{process} lives on"
        );
        std::thread::yield_now();
    }
}

#[test]
fn a_worker_that_is_killed_from_outside_costs_nothing_but_a_restart() {
    let (worker, backend) = open();
    let config = EngineConfig::new([64, 8]);
    let mut engine = Engine::new(Scale::new(2.0), &[backend], pool(), &config).unwrap();
    let items = vectors(2_000);
    let mut back = 0;
    let mut sink = |done: Completion<Scale>| -> Result<()> {
        assert_eq!(done.item, items[back]);
        assert_eq!(done.result.unwrap().0, doubled(&items[back]));
        back += 1;
        if back % 700 == 0
            && let Some(process) = worker.process_id()
        {
            kill(process);
        }
        Ok(())
    };
    engine.run(items.clone().into_iter(), &mut sink).unwrap();
    assert_eq!(back, items.len());
    assert!(engine.counters().restarts >= 1);
}

#[test]
fn a_worker_that_is_killed_while_it_starts_for_the_first_time_is_started_again() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for (kills, opens) in [(2, true), (3, false)] {
        std::fs::write(file.path(), vec![0; kills]).unwrap();
        let opened = WorkerBackend::open(options_with(&[(KILLED_STARTS, file.path())]));
        assert_eq!(
            std::fs::read(file.path()).unwrap(),
            [],
            "{kills} were killed"
        );
        match opened {
            Ok(_) => assert!(opens),
            Err(error) => {
                assert!(!opens, "{error}");
                assert_eq!(error.kind(), ErrorKind::Unavailable);
                assert!(error.message().contains("SIGKILL"), "{error}");
            }
        }
    }
}

#[test]
fn a_worker_ends_with_the_process_that_started_it() {
    let (worker, backend) = open();
    let process = worker.process_id().unwrap();
    drop((worker, backend));
    wait_for_end(process);

    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args(["serve_as_worker", "--exact", "--nocapture"])
        .env(ROLE, "parent")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = std::io::BufReader::new(parent.stdout.take().unwrap());
    let line = std::io::BufRead::lines(lines).map(|line| line.unwrap());
    let mut told = line.filter_map(|line| line.split("worker ").nth(1)?.trim().parse().ok());
    let process: u32 = told.next().expect("the parent names its worker");
    parent.kill().unwrap();
    parent.wait().unwrap();
    wait_for_end(process);
}

#[test]
fn a_program_that_is_no_worker_is_told() {
    let missing = WorkerOptions {
        // SAFETY: there is no such program.
        program: Some(unsafe { WorkerProgram::new("/nowhere/tapeloop") }),
        ..options()
    };
    let error = WorkerBackend::open(missing).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("/nowhere/tapeloop"), "{error}");
    let other = WorkerOptions {
        // SAFETY: it ends without reading anything.
        program: Some(unsafe { WorkerProgram::new("/bin/true") }),
        ..options()
    };
    let error = WorkerBackend::open(other).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("did not come up"), "{error}");
    // By hand, without the other end.
    let by_hand = Command::new(std::env::current_exe().unwrap())
        .args(["serve_as_worker", "--exact", "--nocapture"])
        .env(ROLE, "worker")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&by_hand.stderr);
    assert!(text.contains("another process"), "{text}");
}

#[test]
fn what_a_worker_cannot_do_is_refused() {
    let (_worker, backend) = open();
    let error = backend.allocate(Space::Pinned, 64).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let kernel = Kernel::new("unheard");
    let error = backend.load(&kernel).err().unwrap();
    assert!(error.to_string().contains("unheard"), "{error}");
    // And it goes on.
    let program = Program::new();
    let device_slots = program.open(&backend, 3).unwrap();
    assert_eq!(device_slots.len(), 3);
    assert!(!backend.revive().unwrap(), "nothing was lost");
}
