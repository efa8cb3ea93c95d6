//! What an error ends, and what goes on: one test for each row of docs/ERRORS.md that
//! an engine can meet.

mod build;
mod callers;
mod drops;
mod ending;
mod failures;
mod storm;

use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, Weak, mpsc};
use std::time::{Duration, Instant};
use tapeloop_engine::backend::DeviceInfo;
use tapeloop_engine::backend::{Backend, cpu::CpuBackend};
use tapeloop_engine::pipeline::{Ring, SubmitOptions, Ticket, TrySubmitError, Wait};
use tapeloop_engine::record::{Buffer, Kernel, Recorder, TwinLaunch};
use tapeloop_engine::replay::{Build, Fallback, Policy, Verify};
use tapeloop_engine::workload::{Completion, Extent, ReadViews, Workload, WriteViews};
use tapeloop_engine::{Engine, EngineConfig, Error, ErrorKind, ErrorScope, Result};
use tapeloop_sim::{Fault, Live, SimBackend, SimOptions};

/// A number that the twin adds something else to each time.
const NOISY: u32 = 1 << 30;
/// A number that the twin panics at.
const PANICS: u32 = 1 << 31;
/// A number that the twin waits at until the gate is open.
const HELD: u32 = 1 << 29;
static GATE: AtomicU32 = AtomicU32::new(0);

/// Takes numbers and returns each plus one. `write` calls `before` first, and `read` calls `after`.
struct AddOne {
    kernel: Kernel,
    before: Box<Hook>,
    after: Box<Hook>,
}

type Hook = dyn Fn(&Item) -> Result<()> + Send + Sync;

struct Item {
    number: u32,
    /// The room that it takes of a batch.
    length: u32,
    /// What travels with it.
    held: Mutex<Option<Arc<Engine<AddOne>>>>,
    dropped: Option<mpsc::Sender<()>>,
}

/// A number whose item panics when it is dropped.
const PANICS_WHEN_DROPPED: u32 = 1 << 28;

impl Drop for Item {
    fn drop(&mut self) {
        assert!(self.number != PANICS_WHEN_DROPPED, "planted");
        drop(self.held.lock().unwrap().take());
        if let Some(dropped) = &self.dropped {
            let _ = dropped.send(());
        }
    }
}

fn number(number: u32) -> Item {
    long(number, 1)
}

/// A number that takes the room of `length`.
fn long(number: u32, length: u32) -> Item {
    Item {
        number,
        length,
        held: Mutex::new(None),
        dropped: None,
    }
}

fn add_one(launch: &mut TwinLaunch<'_>) {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let x: &[u32] = launch.read();
    let y: &mut [u32] = launch.write();
    let run = RUNS.fetch_add(1, Relaxed);
    for (y, x) in y.iter_mut().zip(x) {
        assert!(*x != PANICS, "planted");
        while *x == HELD && GATE.load(Relaxed) == 0 {
            std::thread::yield_now();
        }
        *y = match *x {
            NOISY => run,
            x => x + 1,
        };
    }
}

impl AddOne {
    fn new() -> Self {
        AddOne::with(|_| Ok(()))
    }

    fn with(after: impl Fn(&Item) -> Result<()> + Send + Sync + 'static) -> Self {
        let kernel = Kernel::new("add_one")
            .reads::<u32>("x")
            .writes::<u32>("y")
            .twin(add_one);
        AddOne {
            kernel,
            before: Box::new(|_| Ok(())),
            after: Box::new(after),
        }
    }
}

impl Workload for AddOne {
    type Item = Item;
    type Output = u32;
    type Buffers = [Buffer<u32>; 2];

    fn axes(&self) -> &'static [&'static str] {
        &["numbers"]
    }

    fn extent(&self, item: &Item) -> Result<Extent> {
        Ok(Extent::from([item.length]))
    }

    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<[Buffer<u32>; 2]> {
        let x = recorder.upload_buffer("x", 0, 1);
        let y = recorder.download_buffer("y", 0, 1);
        recorder.upload(x);
        recorder.launch(&self.kernel, 1, &[x.into(), y.into()]);
        recorder.download(y);
        Ok([x, y])
    }

    fn write(
        &self,
        [x, _]: &[Buffer<u32>; 2],
        item: &Item,
        _: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        (self.before)(item)?;
        views.take(*x).fill(item.number);
        Ok(())
    }

    fn read(
        &self,
        [_, y]: &[Buffer<u32>; 2],
        item: &Item,
        _: Extent,
        views: &ReadViews<'_>,
    ) -> Result<u32> {
        (self.after)(item)?;
        Ok(views.get(*y)[0])
    }
}

fn pool() -> Arc<ThreadPool> {
    Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap())
}

fn cpu() -> Arc<dyn Backend> {
    Arc::new(CpuBackend::new(pool()))
}

fn sim(faults: Vec<Fault>) -> (Arc<SimBackend>, Arc<dyn Backend>) {
    let sim = Arc::new(SimBackend::new(SimOptions {
        faults,
        ..SimOptions::seeded(7)
    }));
    (Arc::clone(&sim), sim)
}

fn supervised(faults: Vec<Fault>) -> Arc<dyn Backend> {
    Arc::new(SimBackend::new(SimOptions {
        faults,
        supervised: true,
        ..SimOptions::seeded(7)
    }))
}

/// Batches of one item, in graphs that are not verified.
fn config() -> EngineConfig {
    EngineConfig {
        slots: 2,
        policy: Policy {
            verify: Verify::Off,
            ..Policy::default()
        },
        ..EngineConfig::new([1])
    }
}

fn engine(backend: &Arc<dyn Backend>, config: &EngineConfig) -> Engine<AddOne> {
    Engine::new(AddOne::new(), std::slice::from_ref(backend), pool(), config).unwrap()
}

/// A hang is a failure, and not a test that never ends.
fn answer(ticket: Ticket<AddOne>) -> Result<u32> {
    let start = Instant::now();
    while !ticket.is_done() {
        assert!(start.elapsed() < Duration::from_secs(30), "a ticket hangs");
        std::thread::yield_now();
    }
    ticket.wait()?.result
}

fn ask(engine: &Engine<AddOne>, item: Item) -> Result<u32> {
    answer(engine.submit(item)?)
}

/// Submits numbers from 0 on, and returns what became of each.
fn ask_all(engine: &Engine<AddOne>, count: u32) -> Vec<Result<u32>> {
    let tickets: Vec<_> = (0..count).map(|n| engine.submit(number(n))).collect();
    tickets.into_iter().map(|ticket| answer(ticket?)).collect()
}

/// The engine goes on after an error of this scope.
fn check_alive(engine: &Engine<AddOne>, error: &Error, scope: ErrorScope) {
    assert_eq!(error.scope(), scope, "{error}");
    for n in 0..4 {
        assert_eq!(ask(engine, number(n)).unwrap(), n + 1);
    }
}

#[test]
fn a_lost_device_ends_the_engine_unless_it_is_supervised() {
    let fault = Fault::Kernel { launch: 2 };
    let engine = engine(&sim(vec![fault]).1, &config());
    let results = ask_all(&engine, 8).into_iter();
    let errors: Vec<Error> = results.filter_map(Result::err).collect();
    assert!(errors.len() >= 6, "{errors:?}");
    let first = |error: &&Error| error.kind() == ErrorKind::Device;
    assert_eq!(
        errors.iter().find(first).unwrap().scope(),
        ErrorScope::Device
    );
    let error = ask(&engine, number(1)).unwrap_err();
    assert_eq!(
        (error.kind(), error.scope()),
        (ErrorKind::Closed, ErrorScope::Engine)
    );
    assert!(error.to_string().contains("as planned"), "{error}");

    let engine = self::engine(&supervised(vec![fault]), &config());
    for n in 0..8 {
        assert_eq!(ask(&engine, number(n)).unwrap(), n + 1);
    }
    assert_eq!(engine.counters().restarts, 1);
}

#[test]
fn a_deadline_that_is_missed_ends_an_engine_without_supervision() {
    let mut config = config();
    config.policy.deadline = Some(Duration::from_millis(50));
    let engine = engine(&sim(vec![Fault::Endless { launch: 0 }]).1, &config);
    let error = ask(&engine, number(1)).unwrap_err();
    assert_eq!(
        (error.kind(), error.scope()),
        (ErrorKind::Deadline, ErrorScope::Device)
    );
    assert_eq!(
        ask(&engine, number(1)).unwrap_err().kind(),
        ErrorKind::Closed
    );
}

#[test]
fn a_device_that_does_not_come_back_leaves_the_work_to_the_others() {
    // The other device may take nearly all batches.
    let faults = vec![Fault::Kernel { launch: 0 }, Fault::Revival { revival: 0 }];
    for wait in [Wait::Block, Wait::Spin] {
        let backends = [supervised(faults.clone()), supervised(Vec::new())];
        let config = EngineConfig { wait, ..config() };
        let engine = Engine::new(AddOne::new(), &backends, pool(), &config).unwrap();
        let results = ask_all(&engine, 200);
        let failed = results.iter().filter(|result| result.is_err()).count();
        assert!(failed <= 2, "at most what was in flight there: {failed}");
        for (n, result) in (0..).zip(results) {
            match result {
                Ok(value) => assert_eq!(value, n + 1),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
            }
        }
        check_alive(&engine, &Error::usage("none"), ErrorScope::Batch);
    }
}

#[test]
fn the_last_device_that_does_not_come_back_ends_the_engine() {
    let faults = || vec![Fault::Kernel { launch: 3 }, Fault::Revival { revival: 0 }];
    let backends = [supervised(faults()), supervised(faults())];
    let engine = Engine::new(AddOne::new(), &backends, pool(), &config()).unwrap();
    let failed = ask_all(&engine, 50)
        .iter()
        .filter(|result| result.is_err())
        .count();
    assert!(failed >= 40, "{failed}");
    assert_eq!(
        ask(&engine, number(1)).unwrap_err().kind(),
        ErrorKind::Closed
    );
}
