//! Faults on a real device: an item that reaches out of bounds, traps or never ends, with
//! supervision and without; a card that another process has filled; and what the driver takes for
//! graphs. A process of its own: a fault ends CUDA for its process, so this program starts itself as worker
//! and child.
#![cfg(all(feature = "cuda", feature = "supervise", target_os = "linux"))]

#[path = "support/gpu.rs"]
mod gpu;
#[path = "gpu_faults/graphs.rs"]
mod graphs;
#[path = "gpu_faults/resident.rs"]
mod resident;

use gpu::say;
use parking_lot::Mutex;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tapeloop_engine::backend::DeviceInfo;
use tapeloop_engine::backend::worker::{WorkerBackend, WorkerEnv, WorkerOptions, serve};
use tapeloop_engine::backend::{Backend, Choice, CudaOptions, Space};
use tapeloop_engine::pipeline::{Engine, EngineConfig, Shrunk};
use tapeloop_engine::record::{Buffer, Image, Kernel, Recorder};
use tapeloop_engine::replay::Mode;
use tapeloop_engine::workload::{Completion, Extent, ReadViews, Workload, WriteViews};
use tapeloop_engine::{Error, ErrorKind, Result};

const ROLE: &str = "TAPELOOP_TEST_ROLE";
const FATE: &str = "TAPELOOP_TEST_FATE";
const MODE: &str = "TAPELOOP_TEST_MODE";
const MODES: [Mode; 2] = [Mode::Graph, Mode::Resident];

/// What a number makes of the kernel that meets it.
const FATES: [(&str, u32); 3] = [("out of bounds", 1), ("trap", 2), ("never ends", 3)];
const CULPRIT: u32 = 5_003;
const COUNT: u32 = 10_000;
const BATCH: u32 = 1_000;
const DEADLINE: Duration = Duration::from_millis(1_500);

const SOURCE: &str = r#"
extern "C" __global__ void fated(const unsigned* header, const unsigned* x, unsigned* y, unsigned* work)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= header[0]) return;
    if (x[i] == 1) *(volatile unsigned*)(y + (1ull << 40)) = 7;
    if (x[i] == 2) asm volatile("trap;");
    if (x[i] == 3) while (*(volatile const unsigned*)x) {}
    work[i] = x[i] * 7;
    y[i] = work[i];
}
"#;

/// The other processes' `main`: this program is started again with this test alone.
#[test]
fn play_a_role() {
    match std::env::var(ROLE).as_deref() {
        // SAFETY: a backend of these tests started the program.
        Ok("worker") => unsafe { serve::<&str>(&[]) }.unwrap(),
        Ok("alone") => alone(),
        Ok("hog") => hog(),
        Ok("graphs") => graphs::measure(),
        _ => {}
    }
}

const ARGS: [&str; 3] = ["play_a_role", "--exact", "--nocapture"];

fn play(role: &str, fate: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(ARGS).env(ROLE, role).env(FATE, fate);
    command
}

/// A device behind a worker.
///
/// # Panics
/// With the reason, where there is none: tests that need one are ignored by default.
fn worker() -> WorkerBackend {
    let options = WorkerOptions {
        args: ARGS.map(Into::into).to_vec(),
        // SAFETY: only these tests read the variable.
        env: unsafe { WorkerEnv::default().with(ROLE, "worker") },
        choice: Choice::Cuda,
        threads: 1,
        ..WorkerOptions::default()
    };
    let worker = WorkerBackend::open(options);
    worker.unwrap_or_else(|error| panic!("this test needs a CUDA device: {error}"))
}

fn pool() -> Arc<ThreadPool> {
    Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap())
}

/// Multiplies numbers by seven, but for those with a fate. `room` elements of the
/// device's memory go with each.
struct Fated {
    kernel: Kernel,
    room: usize,
}

struct Buffers {
    x: Buffer<u32>,
    y: Buffer<u32>,
}

impl Fated {
    fn new(room: usize) -> Self {
        let kernel = Kernel::new("fated")
            .reads::<u32>("header")
            .reads::<u32>("x")
            .writes::<u32>("y")
            .writes::<u32>("work");
        // SAFETY: it touches the live part of its buffers, and where an item tells it
        // to fault, the worker that it runs in has nothing else to lose.
        let kernel = unsafe { kernel.code(&Image::cuda("fated.cu", SOURCE)) };
        Fated { kernel, room }
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
        let work: Buffer<u32> = recorder.device_buffer("work", 0, self.room);
        recorder.upload(header);
        recorder.upload(x);
        let args = [header.into(), x.into(), y.into(), work.into()];
        recorder.launch(&self.kernel, recorder.capacity(0).div_ceil(128), &args);
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

fn item(place: u32, fate: u32) -> u32 {
    if place == CULPRIT { fate } else { 10 + place }
}

fn config(mode: Mode) -> EngineConfig {
    let mut config = EngineConfig::new([BATCH]);
    config.policy.mode = mode;
    config.policy.deadline = Some(DEADLINE);
    config
}

#[test]
#[ignore = "needs a CUDA device"]
fn one_item_in_ten_thousand_is_named_and_nothing_else_is_lost() {
    let _turn = CARD.lock();
    for (name, fate) in FATES {
        let worker = worker();
        let start = Instant::now();
        let backends: [Arc<dyn Backend>; 1] = [Arc::new(worker)];
        let config = config(Mode::Graph);
        let mut engine = Engine::new(Fated::new(1), &backends, pool(), &config).unwrap();
        let mut next = 0;
        let mut sink = |done: Completion<Fated>| -> Result<()> {
            assert_eq!(done.item, item(next, fate), "in order");
            if next == CULPRIT {
                let error = done.result.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Quarantined, "{error}");
                say(&format!("{name}: {error}"));
            } else {
                assert_eq!(done.result.unwrap(), item(next, fate).wrapping_mul(7))
            }
            next += 1;
            Ok(())
        };
        let source = (0..COUNT).map(|place| item(place, fate));
        engine.run(source, &mut sink).unwrap();
        assert_eq!(next, COUNT);
        let counters = engine.counters();
        let restarts_max = u64::from(3 + BATCH.next_power_of_two().ilog2());
        assert_eq!(counters.items_quarantined, 1);
        assert!(
            (3..=restarts_max).contains(&counters.restarts),
            "{counters:?}"
        );
        let seconds = start.elapsed().as_secs_f64();
        let restarts = counters.restarts;
        say(&format!(
            "{name}: {restarts} restarts, {seconds:.2} s in all"
        ));
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn without_supervision_the_error_names_batch_and_stage_and_items_come_back() {
    let _turn = CARD.lock();
    for (mode, (name, _)) in MODES
        .into_iter()
        .flat_map(|mode| FATES.map(|fate| (mode, fate)))
    {
        let output = play("alone", name).env(MODE, mode.name()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {said}{log}");
        let line = said.lines().find(|line| line.contains("told:"));
        say(line.expect("the error is told"));
    }
}

/// Tickets through an engine whose device is in this process.
fn alone() {
    let name = std::env::var(FATE).unwrap();
    let mode = std::env::var(MODE).unwrap();
    let mode = MODES
        .into_iter()
        .find(|known| known.name() == mode)
        .unwrap();
    let (_, fate) = *FATES.iter().find(|(known, _)| *known == name).unwrap();
    let backend = gpu::device();
    let engine = Engine::new(Fated::new(1), &[backend], pool(), &config(mode)).unwrap();
    let numbers = || (CULPRIT - 2_500)..(CULPRIT + 2_500);
    let submit = |place: u32| engine.submit(item(place, fate));
    let tickets: Vec<_> = numbers().map(submit).collect();
    let flushed = engine.flush();
    let mut told = Vec::new();
    for (ticket, place) in tickets.into_iter().zip(numbers()) {
        let ticket = match ticket {
            Ok(ticket) => ticket,
            Err(error) => {
                assert!(place > CULPRIT && error.kind() == ErrorKind::Closed);
                told.push((place, error));
                continue;
            }
        };
        let done = ticket.wait().expect("every ticket is answered");
        assert_eq!(done.item, item(place, fate), "the inputs come back");
        match done.result {
            Ok(value) => assert_eq!(value, done.item.wrapping_mul(7)),
            Err(error) => told.push((place, error)),
        }
    }
    let of_culprit = told.iter().find(|(place, _)| *place == CULPRIT);
    let error: &Error = &of_culprit.expect("it has no result").1;
    let text = error.to_string();
    // The first batch of a graph is waited for where it is submitted.
    let stage = text.contains("compute") || text.contains("submit");
    assert!(
        stage && text.contains("slot ") && text.contains("batch "),
        "{text}"
    );
    match name.as_str() {
        "never ends" => assert_eq!(error.kind(), ErrorKind::Deadline),
        _ => assert!(error.code().is_some(), "{error:?}"),
    }
    let in_flight_max = 4 * BATCH as usize;
    let kinds = told
        .iter()
        .filter(|(_, error)| error.kind() != ErrorKind::Closed);
    assert!(kinds.count() <= in_flight_max, "only what was in flight");
    let refused = engine.submit(9).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::Closed);
    assert!(flushed.is_ok() || flushed.unwrap_err().kind() == ErrorKind::Closed);
    assert_eq!(engine.ended().unwrap().code(), error.code());
    println!("{}, {name}, told: {text}", mode.name());
    // Nothing of the device is waited for.
    let start = Instant::now();
    drop(engine);
    assert!(start.elapsed() < Duration::from_secs(5));
}

/// One test at a time: each has processes with memory of the card, which one of them
/// fills.
static CARD: Mutex<()> = Mutex::new(());

/// Leaves this much of the card's memory, and a little more than the pages of the
/// driver.
const LEFT_BYTES: u64 = 3 << 30;

/// Holds most of the card's memory until it is killed.
fn hog() {
    let backend = gpu::cuda(&CudaOptions::default());
    let (free, _) = backend.memory_bytes().unwrap();
    let held = backend.allocate(Space::Device, (free - LEFT_BYTES) as usize);
    let _held = held.unwrap();
    println!("held");
    loop {
        std::thread::park();
    }
}

struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn on_a_card_that_another_process_has_filled_the_engine_takes_less_or_says_what_it_needs() {
    let _turn = CARD.lock();
    let mut hog = play("hog", "").stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(hog.stdout.take().unwrap()).lines();
    let _hog = KillOnDrop(hog);
    let mut said = lines.map_while(|line| line.ok());
    assert!(
        said.any(|line| line.contains("held")),
        "the other process has a device"
    );
    let backend: Arc<dyn Backend> = gpu::device();
    // A slot of a thousand numbers is 1.2 GB, and the largest bucket four times that.
    let room = 300_000;
    let backends = [Arc::clone(&backend)];
    let build = |config: &EngineConfig| Engine::new(Fated::new(room), &backends, pool(), config);
    let mut config = config(Mode::Graph);
    config.buckets = [[BATCH], [4 * BATCH]].map(Extent::from).to_vec();
    let mut engine = build(&config).unwrap();
    let shrunk = engine.shrunk().to_vec();
    say(&format!("filled card: {shrunk:?}\n{}", engine.memory()));
    assert!(matches!(
        shrunk[..2],
        [Shrunk::Slots { from: 3, to: 2 }, Shrunk::Slots { .. }]
    ));
    assert!(matches!(shrunk[2..], [Shrunk::LargestBucket { .. }, ..]));
    assert!(engine.memory().device_bytes() < LEFT_BYTES);
    let mut count = 0;
    let mut sink = |done: Completion<Fated>| -> Result<()> {
        assert_eq!(done.result?, done.item * 7);
        count += 1;
        Ok(())
    };
    engine.run(10..3_010, &mut sink).unwrap();
    assert_eq!(count, 3_000);
    drop(engine);

    let mut config = EngineConfig::new([4 * BATCH]);
    config.slots = 2;
    let error = build(&config).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    config.slots = 1;
    let least = Engine::memory_plan(&Fated::new(room), backend.device(), 1, &config).unwrap();
    let text = error.to_string();
    assert!(text.contains(&least.to_string()), "{text}");
    say(&format!("filled card: {text}"));
    config.memory_bytes_max = Some(1 << 40);
    config.slots = 2;
    let error = build(&config).err().unwrap();
    assert!(error.to_string().contains("smaller"), "{error}");
}
