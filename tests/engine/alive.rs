//! What an error ends, and what goes on: one test for each row of docs/ERRORS.md that
//! an engine can meet.

use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, Weak, mpsc};
use std::time::{Duration, Instant};
use tapeloop::backend::sim::{Fault, Live, SimBackend, SimOptions};
use tapeloop::backend::{Backend, cpu::CpuBackend};
use tapeloop::pipeline::{Ring, SubmitOptions, Ticket, TrySubmitError, Wait};
use tapeloop::record::{Buffer, DeviceInfo, Kernel, Recorder, TwinLaunch};
use tapeloop::replay::{Build, Fallback, Policy, Verify};
use tapeloop::workload::{Completion, Extent, ReadViews, Workload, WriteViews};
use tapeloop::{Engine, EngineConfig, Error, ErrorKind, ErrorScope, Result};

/// A number that the twin adds something else to each time.
const NOISY: u32 = 1 << 30;
/// A number that the twin panics at.
const PANICS: u32 = 1 << 31;
/// A number that the twin waits at until the gate is open.
const HELD: u32 = 1 << 29;
static GATE: AtomicU32 = AtomicU32::new(0);

/// Takes numbers and returns each plus one. `read` calls `after` first.
struct AddOne {
    kernel: Kernel,
    after: Box<After>,
}

type After = dyn Fn(&Item) -> Result<()> + Send + Sync;

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
    Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap())
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
    answer(engine.submit(item).unwrap())
}

/// The engine goes on after an error of this scope.
fn check_alive(engine: &Engine<AddOne>, error: &Error, scope: ErrorScope) {
    assert_eq!(error.scope(), scope, "{error}");
    for n in 0..4 {
        assert_eq!(ask(engine, number(n)).unwrap(), n + 1);
    }
}

#[test]
fn a_twin_that_panics_fails_its_batch() {
    let engine = engine(&cpu(), &config());
    let error = ask(&engine, number(PANICS)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Kernel);
    check_alive(&engine, &error, ErrorScope::Batch);
}

#[test]
fn a_batch_that_comes_out_differently_fails_alone() {
    let mut config = config();
    config.policy.verify = Verify::First;
    for backend in [cpu(), sim(Vec::new()).1] {
        let engine = engine(&backend, &config);
        let error = ask(&engine, number(NOISY)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Mismatch);
        check_alive(&engine, &error, ErrorScope::Batch);
    }
}

#[test]
fn calls_that_the_device_refuses_fail_their_batch() {
    for build in [Build::Capture, Build::Explicit] {
        let mut config = config();
        (config.policy.build, config.policy.fallback) = (build, Fallback::None);
        // The first submissions of a device zero nothing here: graph, then mark.
        for (fault, code, scope) in [
            (Fault::Submission { submission: 0 }, 701, ErrorScope::Batch),
            (Fault::Submission { submission: 1 }, 701, ErrorScope::Batch),
        ] {
            let (sim, backend) = sim(vec![fault]);
            let engine = engine(&backend, &config);
            let error = ask(&engine, number(5)).unwrap_err();
            assert_eq!(error.code(), Some(code), "{error}");
            check_alive(&engine, &error, scope);
            drop((engine, backend));
            assert_eq!((sim.violations(), sim.live()), (vec![], Live::default()));
        }
    }
}

#[test]
fn a_graph_that_cannot_be_made_fails_its_batches_alone() {
    let mut config = config();
    (config.policy.warm_up, config.policy.fallback) = (false, Fallback::None);
    config.slots = 1;
    for (fault, code) in [
        (Fault::Graph { graph: 0 }, 2),
        (Fault::Capture { capture: 0 }, 901),
    ] {
        let engine = engine(&sim(vec![fault]).1, &config);
        let error = ask(&engine, number(5)).unwrap_err();
        assert_eq!(error.code(), Some(code), "{error}");
        check_alive(&engine, &error, ErrorScope::Graph);
    }
}

#[test]
fn a_capture_of_another_thread_fails_batches_and_loses_nothing() {
    let (mut failed, mut right) = (0, 0);
    for call in 0..120 {
        let calls = 1 + call % 40;
        let (sim, backend) = sim(vec![Fault::ForeignCapture { call, calls }]);
        let Ok(engine) = Engine::new(AddOne::new(), &[backend], pool(), &config()) else {
            // It was built meanwhile.
            continue;
        };
        for n in 0..12 {
            match ask(&engine, number(n)) {
                Ok(value) => {
                    assert_eq!(value, n + 1);
                    right += 1;
                }
                Err(error) => {
                    assert_eq!(error.code(), Some(900), "{error}");
                    failed += 1;
                }
            }
        }
        drop(engine);
        assert_eq!((sim.violations(), sim.live()), (vec![], Live::default()));
    }
    assert!(failed > 0 && right > 10 * failed, "{failed} of {right}");
}

/// Runs 1,000 batches of one item each, and returns the numbers of those that failed
/// with an error that `is_expected`.
fn thousand(
    backend: &Arc<dyn Backend>,
    config: &EngineConfig,
    item: impl Fn(u32) -> Item,
    is_expected: impl Fn(&Error) -> bool,
) -> Vec<u32> {
    let engine = engine(backend, config);
    let tickets: Vec<_> = (0..1000).map(|n| engine.submit(item(n)).unwrap()).collect();
    let mut failed = Vec::new();
    for (n, ticket) in (0..).zip(tickets) {
        match answer(ticket) {
            Ok(value) => assert_eq!(value, n + 1),
            Err(error) => {
                assert!(is_expected(&error), "{error}");
                failed.push(n);
            }
        }
    }
    assert_eq!(engine.counters().batches_failed, failed.len() as u64);
    check_alive(&engine, &Error::usage("none"), ErrorScope::Batch);
    failed
}

#[test]
fn of_a_thousand_batches_ten_that_differ_fail() {
    let mut config = config();
    config.policy.shadow_every = 1;
    let item = |n| number(if n % 100 == 50 { NOISY } else { n });
    let is_expected = |error: &Error| error.kind() == ErrorKind::Mismatch;
    let failed = thousand(&cpu(), &config, item, is_expected);
    assert!(failed.into_iter().eq((0..10).map(|k| 100 * k + 50)));
}

#[test]
fn of_a_thousand_batches_ten_that_are_refused_fail() {
    // Two submissions a batch: its graph and its mark; one more for each that failed.
    let submission = |k: u64| Fault::Submission {
        submission: 200 * k + 100,
    };
    let (sim, backend) = sim((0..10).map(submission).collect());
    let is_expected = |error: &Error| error.code() == Some(701);
    let failed = thousand(&backend, &config(), number, is_expected);
    assert_eq!(failed.len(), 10);
    drop(backend);
    assert_eq!((sim.violations(), sim.live()), (vec![], Live::default()));
}

#[test]
fn of_a_thousand_batches_ten_that_lack_memory_for_their_graph_fail() {
    // One graph at a time, so each change of the bucket makes one: small, large (which
    // fails), small again.
    let faults = (0..10).map(|k| Fault::Graph { graph: 2 * k + 1 });
    let (_, backend) = sim(faults.collect());
    let mut config = config();
    (config.slots, config.policy.ready_max) = (1, 1);
    config.policy.fallback = Fallback::None;
    config.batch = Extent::from([1]);
    config.buckets = vec![Extent::from([1]), Extent::from([64])];
    let item = |n| long(n, if n % 100 == 50 { 64 } else { 1 });
    let is_expected = |error: &Error| error.kind() == ErrorKind::OutOfMemory;
    let failed = thousand(&backend, &config, item, is_expected);
    assert!(failed.into_iter().eq((0..10).map(|k| 100 * k + 50)));
}

#[test]
fn a_lost_device_ends_the_engine_unless_it_is_supervised() {
    let fault = Fault::Kernel { launch: 2 };
    let engine = engine(&sim(vec![fault]).1, &config());
    let tickets: Vec<_> = (0..8).map(|n| engine.submit(number(n)).unwrap()).collect();
    let errors: Vec<Error> = tickets
        .into_iter()
        .filter_map(|t| answer(t).err())
        .collect();
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
        let tickets: Vec<_> = (0..200)
            .map(|n| engine.submit(number(n)).unwrap())
            .collect();
        let results: Vec<_> = tickets.into_iter().map(answer).collect();
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
    let tickets: Vec<_> = (0..50).map(|n| engine.submit(number(n)).unwrap()).collect();
    let failed = tickets.into_iter().filter_map(|t| answer(t).err()).count();
    assert!(failed >= 40, "{failed}");
    assert_eq!(
        ask(&engine, number(1)).unwrap_err().kind(),
        ErrorKind::Closed
    );
}

#[test]
fn whatever_finishes_first_is_answered_first() {
    let mut second_first = 0;
    for seed in 0..20 {
        // The seed says whose kernel runs first. Each poll is a call.
        let fault = Fault::Slow {
            launch: 0,
            calls: 100_000,
        };
        let sim = SimBackend::new(SimOptions {
            faults: vec![fault],
            ..SimOptions::seeded(seed)
        });
        let config = EngineConfig {
            wait: Wait::Spin,
            ..config()
        };
        let backend: Arc<dyn Backend> = Arc::new(sim);
        let engine = engine(&backend, &config);
        let tickets = [1, 2].map(|n| engine.submit(number(n)).unwrap());
        while !tickets.iter().any(Ticket::is_done) {
            std::thread::yield_now();
        }
        second_first += usize::from(!tickets[0].is_done());
        for (ticket, expected) in tickets.into_iter().zip([2, 3]) {
            assert_eq!(answer(ticket).unwrap(), expected);
        }
    }
    assert!(second_first > 0);
}

#[test]
fn a_device_that_is_waited_for_holds_up_no_other() {
    let config = EngineConfig {
        slots: 1,
        ..config()
    };
    let engine = Engine::new(AddOne::new(), &[cpu(), cpu()], pool(), &config).unwrap();
    let held = engine.submit(number(HELD)).unwrap();
    for n in 0..100 {
        assert_eq!(ask(&engine, number(n)).unwrap(), n + 1);
    }
    assert!(!held.is_done());
    GATE.store(1, Relaxed);
    assert_eq!(answer(held).unwrap(), HELD + 1);
}

#[test]
fn a_ring_gives_out_what_finishes_first() {
    let fault = Fault::Slow {
        launch: 0,
        calls: 2_000,
    };
    let (_, backend) = sim(vec![fault]);
    let packer = tapeloop::pipeline::Packer::new(AddOne::new(), &[[1].into()], &backend, pool());
    let packer = packer.unwrap();
    let policy = config().policy;
    let mut ring = Ring::new(&backend, &packer.buckets(), 2, &policy, Wait::Block).unwrap();
    for n in 0..2 {
        let mut slot = ring.acquire().unwrap();
        let packed = packer.pack(&mut slot, vec![number(n)]).ok().unwrap();
        ring.submit(slot, packed.extent(), packed).unwrap();
    }
    for expected in [2, 1] {
        let done = ring.wait().unwrap().ok().unwrap();
        assert_eq!(packer.read(&done)[0].as_ref().unwrap(), &expected);
        drop(ring.release(Ok(done)));
    }
}

/// An engine whose `read` calls `after` with the engine.
fn reentrant(
    after: impl Fn(&Engine<AddOne>, &Item) -> Result<()> + Send + Sync + 'static,
    batch: u32,
) -> Arc<Engine<AddOne>> {
    let own: Arc<OnceLock<Weak<Engine<AddOne>>>> = Arc::default();
    let cell = Arc::clone(&own);
    let workload = AddOne::with(move |item| {
        let engine = cell.get().expect("set before the first item").upgrade();
        after(&engine.expect("kept by the test"), item)
    });
    let config = EngineConfig {
        batch: Extent::from([batch]),
        buckets: vec![Extent::from([batch])],
        ..config()
    };
    let engine = Engine::new(workload, &[cpu()], pool(), &config).unwrap();
    let engine = Arc::new(engine);
    own.set(Arc::downgrade(&engine)).unwrap();
    engine
}

#[test]
fn calls_that_would_wait_for_their_own_thread_are_refused() {
    type Call = fn(&Engine<AddOne>) -> Result<()>;
    let calls: [Call; 3] = [
        |engine| engine.submit(number(1)).map(drop),
        |engine| engine.flush(),
        |engine| {
            let options = SubmitOptions::default();
            let ticket = engine.try_submit(number(0), options).map_err(|_| full())?;
            ticket.wait().map(drop)
        },
    ];
    for call in calls {
        // On the unpack thread, and on a thread of the pool.
        for (batch, length) in [(1, 1), (1 << 20, 1 << 20)] {
            let after = move |engine: &Engine<AddOne>, item: &Item| match item.number {
                7 => call(engine),
                _ => Ok(()),
            };
            let engine = reentrant(after, batch);
            let error = ask(&engine, long(7, length)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage);
            assert!(
                error.to_string().contains("would wait for itself"),
                "{error}"
            );
            assert_eq!(ask(&engine, long(3, length)).unwrap(), 4);
        }
    }
}

fn full() -> Error {
    Error::usage("the intake is full")
}

#[test]
fn items_may_be_submitted_while_others_are_read() {
    // Each item but the last ones has two more: 2^13 - 1 in all.
    let left: Arc<Mutex<Vec<u32>>> = Arc::default();
    let refused = Arc::clone(&left);
    let after = move |engine: &Engine<AddOne>, item: &Item| {
        for _ in 0..if item.number > 0 { 2 } else { 0 } {
            let child = number(item.number - 1);
            if let Err(error) = engine.try_submit(child, SubmitOptions::default()) {
                assert!(matches!(error, TrySubmitError::Full(_)));
                refused.lock().unwrap().push(error.into_item().number);
            }
        }
        Ok(())
    };
    let engine = reentrant(after, 1);
    drop(engine.submit(number(12)).unwrap());
    let start = Instant::now();
    while engine.counters().items_done < 8191 {
        assert!(start.elapsed() < Duration::from_secs(60), "it hangs");
        let next = left.lock().unwrap().pop();
        match next {
            Some(n) => drop(engine.submit(number(n)).unwrap()),
            None => std::thread::yield_now(),
        }
    }
}

#[test]
fn an_engine_that_has_stopped_gives_the_item_back() {
    let engine = engine(&sim(vec![Fault::Kernel { launch: 0 }]).1, &config());
    assert!(ask(&engine, number(1)).is_err());
    // It still takes items, and answers each with why it stopped.
    let ticket = engine.try_submit(number(2), SubmitOptions::default());
    assert_eq!(
        answer(ticket.unwrap()).unwrap_err().kind(),
        ErrorKind::Closed
    );
}

#[test]
fn the_last_handle_may_be_dropped_by_the_engine_s_own_threads() {
    // With the item of a ticket that was dropped, by the unpack thread; and by a
    // thread of the pool while it reads.
    for on_the_pool in [false, true] {
        let (sender, dropped) = mpsc::channel();
        let workload = AddOne::with(move |item| {
            if on_the_pool {
                drop(item.held.lock().unwrap().take());
            }
            Ok(())
        });
        let length = if on_the_pool { 1 << 20 } else { 1 };
        let config = EngineConfig {
            batch: Extent::from([length]),
            buckets: vec![Extent::from([length])],
            ..config()
        };
        let (sim, backend) = sim(Vec::new());
        let engine = Arc::new(Engine::new(workload, &[backend], pool(), &config).unwrap());
        let item = Item {
            length,
            held: Mutex::new(Some(Arc::clone(&engine))),
            dropped: Some(sender),
            number: 1,
        };
        drop(engine.submit(item).unwrap());
        drop(engine);
        dropped
            .recv_timeout(Duration::from_secs(30))
            .expect("the item is dropped");
        let start = Instant::now();
        while sim.live() != Live::default() {
            assert!(start.elapsed() < Duration::from_secs(30), "the threads end");
            std::thread::yield_now();
        }
    }
}

#[test]
fn urgent_items_do_not_hold_up_the_others_for_ever() {
    let engine = Arc::new(engine(&cpu(), &config()));
    let stop = Arc::new(AtomicU32::new(0));
    let flood = || {
        let (engine, stop) = (Arc::clone(&engine), Arc::clone(&stop));
        std::thread::spawn(move || {
            let urgent = SubmitOptions {
                urgent: true,
                deadline: None,
            };
            while stop.load(Relaxed) == 0 {
                drop(engine.submit_with(number(1), urgent).unwrap());
            }
        })
    };
    let floods: Vec<_> = (0..3).map(|_| flood()).collect();
    for n in 0..50 {
        assert_eq!(ask(&engine, number(n)).unwrap(), n + 1);
        let ticket = engine.submit(number(n)).unwrap();
        engine.flush().unwrap();
        assert_eq!(answer(ticket).unwrap(), n + 1);
    }
    stop.store(1, Relaxed);
    floods.into_iter().for_each(|flood| flood.join().unwrap());
}

#[test]
fn a_run_gets_the_errors_of_its_batches_with_the_items() {
    let submission = Fault::Submission { submission: 20 };
    let (_, backend) = sim(vec![submission]);
    let mut engine = engine(&backend, &config());
    let mut results = Vec::new();
    let mut sink = |done: Completion<AddOne>| {
        results.push(done.result.is_ok());
        Ok(())
    };
    engine.run((0..50).map(number), &mut sink).unwrap();
    assert_eq!(results.len(), 50);
    assert_eq!(results.iter().filter(|ok| !**ok).count(), 1);
}

#[test]
fn an_item_that_panics_when_it_is_dropped_ends_nothing() {
    for submit in [0, 1] {
        let engine = engine(&cpu(), &config());
        for n in 0..20 {
            let other = engine.submit(number(n)).unwrap();
            // Nobody waits for it, so that the engine drops it.
            match submit {
                0 => drop(engine.submit(number(PANICS_WHEN_DROPPED)).unwrap()),
                _ => drop(engine.submit_with(
                    number(PANICS_WHEN_DROPPED),
                    SubmitOptions {
                        urgent: true,
                        deadline: None,
                    },
                )),
            }
            assert_eq!(answer(other).unwrap(), n + 1);
        }
        check_alive(&engine, &Error::usage("none"), ErrorScope::Batch);
    }
}

#[test]
fn a_run_that_ends_early_drops_its_items_one_by_one() {
    let mut engine = engine(&cpu(), &config());
    let mut taken = 0;
    let mut sink = |done: Completion<AddOne>| {
        taken += 1;
        std::mem::forget(done);
        Err(Error::usage("planted"))
    };
    let items = (0..100).map(|_| number(PANICS_WHEN_DROPPED));
    let error = engine.run(items, &mut sink).unwrap_err();
    assert_eq!((error.message(), taken), ("planted", 1));
    check_alive(&engine, &Error::usage("none"), ErrorScope::Batch);
}
