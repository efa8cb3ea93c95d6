//! Where and when an engine may be dropped.

use super::*;
use crate::scale::Scale;
use std::cell::RefCell;
use std::sync::Barrier;

/// Large enough for a worker.
const LARGE: u32 = 20_000;

fn large(config: EngineConfig) -> EngineConfig {
    EngineConfig {
        batch: Extent::from([LARGE]),
        buckets: vec![Extent::from([LARGE])],
        ..config
    }
}

#[test]
fn a_dropped_engine_has_freed_everything() {
    let backend = supervised(Vec::new());
    let (pool, held) = (pool(), Arc::new(()));
    for n in 0..300 {
        let hold = Arc::clone(&held);
        let workload = AddOne::with(move |_| {
            let _ = &hold;
            Ok(())
        });
        let backends = std::slice::from_ref(&backend);
        // A supervised device is refused while another engine has it.
        let engine = Engine::new(workload, backends, Arc::clone(&pool), &large(config()));
        let engine = engine.unwrap();
        drop(engine.submit(long(n, LARGE)).unwrap());
        drop(engine);
        assert_eq!(Arc::strong_count(&held), 1, "the workload is dropped");
    }
}

#[test]
fn an_engine_may_be_dropped_on_the_only_thread_of_its_pool() {
    let pool = ThreadPoolBuilder::new().num_threads(1).build();
    let pool = Arc::new(pool.unwrap());
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    let engine = Engine::new(
        AddOne::new(),
        &[backend],
        Arc::clone(&pool),
        &large(config()),
    );
    let engine = engine.unwrap();
    let tickets: Vec<_> = (0..4)
        .map(|n| engine.submit(long(n, LARGE)).unwrap())
        .collect();
    let (sender, dropped) = mpsc::channel();
    pool.spawn(move || {
        drop(engine);
        sender.send(()).unwrap();
    });
    let dropped = dropped.recv_timeout(Duration::from_secs(30));
    dropped.expect("the engine is dropped");
    for (n, ticket) in (0..).zip(tickets) {
        assert!(ticket.is_done());
        assert_eq!(answer(ticket).unwrap(), n + 1);
    }
}

#[test]
fn two_engines_may_drop_each_other() {
    let read_both = Arc::new(Barrier::new(3));
    let (sender, dropped) = mpsc::channel();
    let engines = [0, 1].map(|_| {
        let read_both = Arc::clone(&read_both);
        let workload = AddOne::with(move |_| {
            read_both.wait();
            Ok(())
        });
        Arc::new(Engine::new(workload, &[cpu()], pool(), &config()).unwrap())
    });
    for (engine, other) in [(0, 1), (1, 0)] {
        let mut item = number(1);
        item.held = Mutex::new(Some(Arc::clone(&engines[other])));
        item.dropped = Some(sender.clone());
        drop(engines[engine].submit(item).unwrap());
    }
    // From here on each engine is held by an item of the other one.
    drop(engines);
    read_both.wait();
    for _ in 0..2 {
        let dropped = dropped.recv_timeout(Duration::from_secs(30));
        dropped.expect("no engine waits for the other one");
    }
}

thread_local! {
    static ENGINE: RefCell<Option<Engine<AddOne>>> = const { RefCell::new(None) };
    static TICKET: RefCell<Option<Ticket<AddOne>>> = const { RefCell::new(None) };
}

#[test]
fn an_engine_may_be_a_variable_of_a_thread_that_ends() {
    let (sender, dropped) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        // The thread drops its variables in the reverse order of their first use, and those of
        // the crate are used last.
        ENGINE.set(None);
        TICKET.set(None);
        let engine = engine(&cpu(), &config());
        let mut item = number(1);
        item.dropped = Some(sender);
        drop(engine.submit(item).unwrap());
        TICKET.set(Some(engine.submit(number(2)).unwrap()));
        ENGINE.set(Some(engine));
    });
    thread.join().unwrap();
    dropped.recv_timeout(Duration::from_secs(30)).unwrap();
}

#[test]
fn an_engine_may_be_dropped_by_a_twin_that_it_runs() {
    let held: Arc<Mutex<Option<Arc<Engine<Scale>>>>> = Arc::default();
    let (sender, dropped) = mpsc::channel();
    let (taken, sender) = (Arc::clone(&held), Mutex::new(sender));
    let workload = Scale::with(2.0, move |_| {
        let engine = taken.lock().unwrap().take().expect("there is one batch");
        while Arc::strong_count(&engine) > 1 {
            std::thread::yield_now();
        }
        drop(engine);
        sender.lock().unwrap().send(()).unwrap();
    });
    // Batches of this size run in the pool.
    let config = EngineConfig::new([LARGE, 1]);
    let engine = Arc::new(Engine::new(workload, &[cpu()], pool(), &config).unwrap());
    *held.lock().unwrap() = Some(Arc::clone(&engine));
    let ticket = engine.submit(vec![1.0; LARGE as usize]).unwrap();
    drop(engine);
    let dropped = dropped.recv_timeout(Duration::from_secs(30));
    dropped.expect("the engine is dropped");
    assert_eq!(ticket.wait().unwrap().result.unwrap().0[0], 2.0);
}

#[test]
fn a_workload_that_panics_when_it_is_dropped_ends_the_engine_alone() {
    struct PanicsWhenDropped;
    impl Drop for PanicsWhenDropped {
        fn drop(&mut self) {
            panic!("planted");
        }
    }
    for n in 0..20 {
        let bomb = PanicsWhenDropped;
        let workload = AddOne::with(move |item| {
            let _ = &bomb;
            drop(item.held.lock().unwrap().take());
            Ok(())
        });
        let length = if n % 2 == 0 { LARGE } else { 1 };
        let engine = Engine::new(workload, &[cpu()], pool(), &large(config()));
        let engine = Arc::new(engine.unwrap());
        let item = long(n, length);
        *item.held.lock().unwrap() = Some(Arc::clone(&engine));
        let ticket = engine.submit(item).unwrap();
        drop(engine);
        assert_eq!(answer(ticket).unwrap(), n + 1);
    }
}
