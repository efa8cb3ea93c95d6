//! Slots that are kept for urgent batches, on the CPU backend.

use crate::forward::{BackendHooks, SlotHooks};
use crate::gate::{STAYS, config, engine};
use crate::scale::{Scale, doubled, vectors};
use rayon::ThreadPoolBuilder;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tapeloop_engine::backend::contract::{DeviceSlot, Priority};
use tapeloop_engine::backend::{Backend, cpu::CpuBackend};
use tapeloop_engine::pipeline::{
    Engine, EngineConfig, Pipeline, SubmitOptions, Ticket, TrySubmitError,
};
use tapeloop_engine::record::BufferDecl;
use tapeloop_engine::replay::Mode;
use tapeloop_engine::workload::Completion;
use tapeloop_engine::{ErrorKind, Result};

fn urgent() -> SubmitOptions {
    SubmitOptions {
        urgent: true,
        ..SubmitOptions::default()
    }
}

fn two_slots() -> EngineConfig {
    EngineConfig {
        slots: 2,
        urgent_slots: 1,
        ..config()
    }
}

/// The result of a ticket that does not wait for the gate. Another thread waits for it, which computes what
/// the engine's own thread has not begun.
fn result(ticket: Ticket<Scale>) -> Vec<f32> {
    let (sent, done) = crossbeam_channel::bounded(1);
    std::thread::spawn(move || sent.send(ticket.wait()));
    let done = done.recv_timeout(Duration::from_secs(60));
    let done = done.expect("it waits for no other batch").unwrap();
    done.result.unwrap().0
}

#[test]
fn urgent_items_do_not_wait_behind_other_batches_in_flight() {
    let (engine, gate) = engine(&two_slots());
    // One batch is in flight, and two wait for a slot: they do not take the one that is kept.
    let first = gate.occupy(&engine, 10);
    let others: Vec<_> = (0..2)
        .map(|_| engine.submit(vec![1.0; 10]).unwrap())
        .collect();
    let full = engine.try_submit(vec![1.0], SubmitOptions::default());
    assert!(matches!(full, Err(TrySubmitError::Full(_))));
    for value in [2.0, 3.0] {
        let ticket = engine.submit_with(vec![value], urgent()).unwrap();
        assert_eq!(result(ticket), [2.0 * value]);
    }
    assert!(others.iter().all(|other| !other.is_done()));
    assert_eq!(engine.counters().batches, 3);
    gate.open();
    for other in others {
        assert_eq!(result(other), [2.0; 10]);
    }
    drop(first);
}

#[test]
fn urgent_items_share_no_batch_with_others() {
    let (engine, _gate) = engine(&two_slots());
    let other = engine.submit(vec![1.0]).unwrap();
    let item = engine.submit_with(vec![2.0; 3], urgent()).unwrap();
    let done = item.wait().unwrap().result.unwrap();
    assert_eq!(done, (vec![4.0; 3], 0), "it is the first of its batch");
    assert!(!other.is_done(), "its batch is open");
    let cancelled = engine.submit_with(Vec::new(), urgent()).unwrap();
    assert_eq!(
        cancelled.wait().unwrap().result.unwrap_err().kind(),
        ErrorKind::Input
    );
    engine.flush().unwrap();
    assert_eq!(result(other), [2.0]);
}

#[test]
fn urgent_items_gather_while_no_slot_is_free_for_them() {
    let (engine, gate) = engine(&two_slots());
    // The engine's own thread stays in the first batch, so the second stays in its slot until a
    // thread that waits computes it.
    let first = gate.occupy(&engine, 10);
    let second = engine.submit_with(vec![2.0], urgent()).unwrap();
    let third = engine.submit_with(vec![3.0; 2], urgent()).unwrap();
    let cancelled = engine.submit_with(vec![4.0; 4], urgent()).unwrap();
    let fourth = engine.submit_with(vec![5.0; 2], urgent()).unwrap();
    assert_eq!(cancelled.cancel().ok(), Some(vec![4.0; 4]));
    assert_eq!(result(third), [6.0; 2]);
    assert_eq!(fourth.wait().unwrap().result.unwrap(), (vec![10.0; 2], 2));
    assert_eq!(result(second), [4.0]);
    assert_eq!(engine.counters().batches, 3);
    gate.open();
    assert_eq!(result(first), [2.0 * STAYS; 10]);
}

#[test]
fn a_flood_of_urgent_items_holds_up_neither_others_nor_runs() {
    let mut config = EngineConfig::new([100, 100]);
    (config.slots, config.urgent_slots) = (3, 2);
    let (mut engine, _gate) = engine(&config);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    drop(engine.submit_with(vec![1.0; 30], urgent()).unwrap());
                }
            });
        }
        for value in 0..100 {
            let ticket = engine.submit(vec![value as f32]).unwrap();
            assert_eq!(result(ticket), [2.0 * value as f32]);
        }
        stop.store(true, Relaxed);
    });
    let items = vectors(300);
    let mut seen = 0;
    let mut sink = |done: Completion<Scale>| {
        assert_eq!(done.result?.0, doubled(&items[seen]));
        seen += 1;
        Ok(())
    };
    engine.run(items.iter().cloned(), &mut sink).unwrap();
    assert_eq!(seen, items.len());
}

#[test]
fn after_eight_urgent_batches_in_a_row_another_batch_starts() {
    let (begin, began) = crossbeam_channel::unbounded();
    let (go_on, gone_on) = crossbeam_channel::unbounded::<()>();
    let order = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&order);
    let scale = Scale::with(2.0, move |elements| {
        log.lock().unwrap().push(elements[0]);
        if elements.contains(&STAYS) {
            begin.send(()).unwrap();
            gone_on.recv().unwrap();
        }
    });
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap());
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    let config = EngineConfig {
        waiting_batches_max: 20,
        ..config()
    };
    let engine = Engine::new(scale, &[backend], pool, &config).unwrap();
    let first = engine.submit(vec![STAYS; 10]).unwrap();
    began.recv_timeout(Duration::from_secs(60)).unwrap();
    let other = engine.submit(vec![1.0; 10]).unwrap();
    let all: Vec<_> = (0..12)
        .map(|_| engine.submit_with(vec![2.0; 10], urgent()).unwrap())
        .collect();
    go_on.send(()).unwrap();
    for ticket in all.into_iter().chain([first, other]) {
        result(ticket);
    }
    let expected = [&[STAYS][..], &[2.0; 8], &[1.0], &[2.0; 4]].concat();
    assert_eq!(*order.lock().unwrap(), expected);
}

#[test]
fn slots_are_not_kept_where_that_cannot_be() {
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    let backends = [backend];
    let refusal = |config: &EngineConfig| {
        let engine = Engine::new(Scale::new(2.0), &backends, Arc::clone(&pool), config);
        let error = engine.err().expect("it is refused");
        assert_eq!(error.kind(), ErrorKind::Config);
        error.to_string()
    };
    let mut config = two_slots();
    config.urgent_slots = 2;
    assert_eq!(
        refusal(&config),
        "urgent_slots = 2 with slots = 2: no slot is left for other batches \
         (fix: set slots to at least 3, or lower urgent_slots)"
    );
    config.urgent_slots = usize::MAX;
    assert!(refusal(&config).contains("other batches"));
    let mut config = two_slots();
    config.policy.mode = Mode::Resident;
    assert_eq!(
        refusal(&config),
        "urgent_slots = 1 with mode = \"resident\": a loop on the device has no priority \
         (fix: set urgent_slots = 0, or mode = \"graph\")"
    );
    let pipeline = Pipeline::new(Scale::new(2.0), &backends, Arc::clone(&pool), &two_slots());
    let error = pipeline.err().expect("it is refused");
    assert_eq!(error.kind(), ErrorKind::Config);
}

/// Notes how many slots of which priority are opened.
#[derive(Default)]
struct Opened(Mutex<Vec<(usize, Priority)>>);

struct Plain;

impl SlotHooks for Plain {}

struct Noting(Arc<Opened>);

impl BackendHooks for Noting {
    type Slot = Plain;

    fn slot(&self, _: &[Box<dyn DeviceSlot>]) -> Plain {
        Plain
    }

    fn open_slots(
        &self,
        inner: &dyn Backend,
        buffers: &[BufferDecl],
        count: usize,
        priority: Priority,
    ) -> Result<Vec<Box<dyn DeviceSlot>>> {
        self.0.0.lock().unwrap().push((count, priority));
        inner.open_slots(buffers, count, priority)
    }
}

#[test]
fn only_slots_that_are_kept_have_the_high_priority() {
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    for (urgent, expected) in [
        (0, vec![(3, Priority::Normal)]),
        (2, vec![(1, Priority::Normal), (2, Priority::Urgent)]),
    ] {
        let opened = Arc::new(Opened::default());
        let backend = Arc::new(CpuBackend::new(Arc::clone(&pool)));
        let backends = [Noting(Arc::clone(&opened)).around(backend)];
        let mut config = EngineConfig::new([100, 100]);
        (config.slots, config.urgent_slots) = (3, urgent);
        let engine = Engine::new(Scale::new(2.0), &backends, Arc::clone(&pool), &config).unwrap();
        drop(engine);
        assert_eq!(*opened.0.lock().unwrap(), expected);
    }
}
