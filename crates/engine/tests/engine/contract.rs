//! The engine against backends that finish in any order, and that fail.

use crate::forward::{BackendHooks, SlotHooks};
use crate::scale::{Scale, doubled, vectors};
use parking_lot::Mutex;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use tapeloop_engine::backend::contract::{Built, DeviceSlot, GraphId, GraphSource, Op};
use tapeloop_engine::backend::{Backend, cpu::CpuBackend};
use tapeloop_engine::pipeline::{Engine, EngineConfig, Wait};
use tapeloop_engine::replay::Mode;
use tapeloop_engine::workload::Completion;
use tapeloop_engine::{Error, ErrorKind, Result};

/// When the slots of a CPU backend are done, and which of their calls fails.
struct Script {
    /// Batches are not done before so many polls, by their number, or until a
    /// later one is.
    polls: fn(usize) -> usize,
    /// The call that fails, by name, and at which of its calls.
    fails: Option<(&'static str, usize)>,
    /// While set, the first batch is not done.
    held: AtomicBool,
    batches: AtomicUsize,
    calls: Mutex<Vec<&'static str>>,
    /// Batches in the order in which they were seen done.
    done: Mutex<Vec<usize>>,
}

impl Script {
    fn new(polls: fn(usize) -> usize) -> Self {
        Script {
            polls,
            fails: None,
            held: AtomicBool::new(false),
            batches: AtomicUsize::new(0),
            calls: Mutex::default(),
            done: Mutex::default(),
        }
    }

    fn call(&self, name: &'static str) -> Result<()> {
        let mut calls = self.calls.lock();
        let earlier = calls.iter().filter(|call| **call == name).count();
        calls.push(name);
        match self.fails {
            Some((fails, at)) if fails == name && earlier == at => {
                Err(Error::new(ErrorKind::Device, format!("planted in {name}")).with_code(719))
            }
            _ => Ok(()),
        }
    }
}

/// Slots that follow a script.
struct Scripted(Arc<Script>);

impl BackendHooks for Scripted {
    type Slot = ScriptSlot;

    fn slot(&self, _: &[Box<dyn DeviceSlot>]) -> ScriptSlot {
        ScriptSlot {
            script: Arc::clone(&self.0),
            batch: 0,
            polls: 0,
        }
    }
}

struct ScriptSlot {
    script: Arc<Script>,
    batch: usize,
    polls: usize,
}

impl SlotHooks for ScriptSlot {
    unsafe fn enqueue(&mut self, inner: &mut dyn DeviceSlot, op: &Op) -> Result<()> {
        self.script.call("enqueue")?;
        // SAFETY: the caller keeps the same contract.
        unsafe { inner.enqueue(op) }
    }

    unsafe fn make_graph(
        &mut self,
        inner: &mut dyn DeviceSlot,
        source: GraphSource<'_>,
        into: Option<GraphId>,
    ) -> Result<(GraphId, Built)> {
        self.script.call("make_graph")?;
        // SAFETY: the caller keeps the same contract.
        unsafe { inner.make_graph(source, into) }
    }

    fn launch_graph(&mut self, inner: &mut dyn DeviceSlot, graph: GraphId) -> Result<()> {
        self.script.call("launch_graph")?;
        inner.launch_graph(graph)
    }

    fn fence(&mut self, inner: &mut dyn DeviceSlot) -> Result<()> {
        self.script.call("fence")?;
        self.batch = self.script.batches.fetch_add(1, Relaxed);
        self.polls = (self.script.polls)(self.batch);
        inner.fence()
    }

    fn is_done(&mut self, inner: &mut dyn DeviceSlot) -> Result<bool> {
        self.script.call("is_done")?;
        if self.batch == 0 && self.script.held.load(Relaxed) {
            return Ok(false);
        }
        let overtaken = self
            .script
            .done
            .lock()
            .iter()
            .any(|done| *done > self.batch);
        if self.polls > 0 && !overtaken {
            self.polls -= 1;
            return Ok(false);
        }
        self.script.done.lock().push(self.batch);
        inner.is_done()
    }
}

fn pool() -> Arc<ThreadPool> {
    Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap())
}

fn scripted(script: Script, pool: &Arc<ThreadPool>) -> (Arc<dyn Backend>, Arc<Script>) {
    let script = Arc::new(script);
    let cpu = Arc::new(CpuBackend::new(Arc::clone(pool)));
    (Scripted(Arc::clone(&script)).around(cpu), script)
}

fn config(mode: Mode) -> EngineConfig {
    let mut config = EngineConfig::new([200, 200]);
    (config.policy.mode, config.slots, config.wait) = (mode, 4, Wait::Spin);
    config
}

/// Every fourth batch takes longer than the one after it.
fn uneven() -> Script {
    Script::new(|batch| if batch % 4 == 0 { 300 } else { batch % 3 })
}

#[test]
fn a_run_restores_the_order_of_batches_that_finish_in_another() {
    let pool = pool();
    let (backend, script) = scripted(uneven(), &pool);
    let mut engine = Engine::new(Scale::new(2.0), &[backend], pool, &config(Mode::Graph)).unwrap();
    let items = vectors(1500);
    let mut seen = 0;
    let mut sink = |done: Completion<Scale>| {
        assert_eq!(done.item, items[seen]);
        assert_eq!(done.result?.0, doubled(&items[seen]));
        seen += 1;
        Ok(())
    };
    engine.run(items.iter().cloned(), &mut sink).unwrap();
    assert_eq!(seen, items.len());
    let done = script.done.lock();
    assert!(!done.is_sorted(), "batches finish out of order: {done:?}");
}

#[test]
fn tickets_need_not_wait_for_earlier_batches() {
    let pool = pool();
    let (backend, script) = scripted(Script::new(|_| 0), &pool);
    script.held.store(true, Relaxed);
    let engine = Engine::new(Scale::new(2.0), &[backend], pool, &config(Mode::Graph)).unwrap();
    let first = engine.submit(vec![1.0; 200]).unwrap();
    let second = engine.submit(vec![2.0; 200]).unwrap();
    engine.flush().unwrap();
    assert_eq!(second.wait().unwrap().result.unwrap().0, [4.0; 200]);
    assert!(!first.is_done(), "the first batch is still in flight");
    script.held.store(false, Relaxed);
    assert_eq!(first.wait().unwrap().result.unwrap().0, [2.0; 200]);
}

#[test]
fn several_backends_share_the_work() {
    let pool = pool();
    let (first, first_script) = scripted(uneven(), &pool);
    let (second, second_script) = scripted(uneven(), &pool);
    let mut engine = Engine::new(
        Scale::new(2.0),
        &[first, second],
        pool,
        &config(Mode::Stream),
    )
    .unwrap();
    let items = vectors(1500);
    let mut seen = 0;
    let mut sink = |done: Completion<Scale>| {
        assert_eq!(done.result?.0, doubled(&items[seen]));
        seen += 1;
        Ok(())
    };
    engine.run(items.iter().cloned(), &mut sink).unwrap();
    for script in [first_script, second_script] {
        assert!(script.batches.load(Relaxed) > 0, "both devices had batches");
    }
}

#[test]
fn a_graph_that_cannot_be_made_fails_the_build() {
    let pool = pool();
    let script = Script {
        fails: Some(("make_graph", 0)),
        ..uneven()
    };
    let (backend, _) = scripted(script, &pool);
    let built = Engine::new(Scale::new(2.0), &[backend], pool, &config(Mode::Graph));
    let error = built.err().expect("the build fails");
    assert_eq!(error.kind(), ErrorKind::Device, "{error}");
    assert!(
        error.to_string().starts_with("slot 0: bucket 0: "),
        "{error}"
    );
    assert_eq!(error.code(), Some(719));
}

#[test]
fn a_call_that_fails_in_a_batch_answers_every_ticket_once() {
    for (mode, call) in [
        (Mode::Graph, "launch_graph"),
        (Mode::Stream, "enqueue"),
        (Mode::Graph, "fence"),
        (Mode::Graph, "is_done"),
    ] {
        for at in [0, 1, 7] {
            let pool = pool();
            let (backend, _) = scripted(
                Script {
                    fails: Some((call, at)),
                    ..uneven()
                },
                &pool,
            );
            let engine = Engine::new(Scale::new(2.0), &[backend], pool, &config(mode)).unwrap();
            let items = vectors(200);
            let submit = |item: &Vec<f32>| engine.submit(item.clone());
            let tickets: Vec<_> = items.iter().map(submit).collect();
            let (mut device, mut closed) = (0, 0);
            for (ticket, item) in tickets.into_iter().zip(&items) {
                let ticket = match ticket {
                    Ok(ticket) => ticket,
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Closed);
                        closed += 1;
                        continue;
                    }
                };
                let done = ticket.wait().unwrap();
                assert_eq!(&done.item, item, "the item comes back");
                match done.result {
                    Ok((values, _)) => assert_eq!(values, doubled(item)),
                    Err(error) if error.kind() == ErrorKind::Device => {
                        assert!(error.to_string().contains(&format!("planted in {call}")));
                        device += 1;
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Closed);
                        closed += 1;
                    }
                }
            }
            assert!(device > 0, "{call} at {at}: the batch that failed says so");
            assert!(
                at > 0 || closed > 0,
                "{call} at {at}: later batches are refused"
            );
        }
    }
}

#[test]
fn the_counter_of_driver_calls_is_what_slots_were_given() {
    for mode in [Mode::Graph, Mode::Stream] {
        let pool = pool();
        let (backend, script) = scripted(Script::new(|_| 0), &pool);
        let mut engine = Engine::new(Scale::new(2.0), &[backend], pool, &config(mode)).unwrap();
        // What building took, captures among it, is not of a batch.
        script.calls.lock().clear();
        engine
            .run(vectors(500).into_iter(), &mut |_: Completion<Scale>| Ok(()))
            .unwrap();
        let given = ["enqueue", "launch_graph", "fence", "make_graph"];
        let calls = script
            .calls
            .lock()
            .iter()
            .filter(|call| given.contains(call))
            .count();
        assert_eq!(engine.counters().driver_calls, calls as u64, "{mode:?}");
    }
}

#[test]
fn a_panic_of_the_sink_stops_an_endless_source() {
    let pool = pool();
    let (backend, _) = scripted(Script::new(|_| 0), &pool);
    let mut engine = Engine::new(Scale::new(2.0), &[backend], pool, &config(Mode::Graph)).unwrap();
    let endless = std::iter::repeat(vec![1.0; 50]);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        engine.run(endless, &mut |_: Completion<Scale>| panic!("planted"))
    }));
    assert!(outcome.is_err());
    let mut seen = 0;
    let mut count = |_: Completion<Scale>| {
        seen += 1;
        Ok(())
    };
    engine.run(vectors(10).into_iter(), &mut count).unwrap();
    assert_eq!(seen, 10, "the engine is as usable as before");
}
