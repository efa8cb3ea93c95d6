//! Results that borrow the memory of their slot.

use crate::gate::STAYS;
use crate::leasing::{Leasing, assert_right, counts, result};
use crate::scale::{READ_FAILS, Scale, WRITE_FAILS, doubled, vectors};
use crossbeam_channel::unbounded;
use parking_lot::Mutex;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::Arc;
use std::time::Duration;
use tapeloop_engine::backend::{Backend, cpu::CpuBackend};
use tapeloop_engine::pipeline::{
    Close, Engine, EngineConfig, Packer, Pipeline, Ring, SubmitOptions, Wait,
};
use tapeloop_engine::replay::Policy;
use tapeloop_engine::workload::{Completion, Extent, Leased};

fn pool(threads: usize) -> Arc<ThreadPool> {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    Arc::new(pool.unwrap())
}

fn config(slots: usize) -> EngineConfig {
    let mut config = EngineConfig::new([100, 100]);
    config.slots = slots;
    config
}

fn engine_of(workload: Leasing, devices: usize, config: &EngineConfig) -> Engine<Leasing> {
    let pool = pool(3);
    let backend = |_| Arc::new(CpuBackend::new(Arc::clone(&pool))) as Arc<dyn Backend>;
    let backends: Vec<_> = (0..devices).map(backend).collect();
    Engine::new(workload, &backends, pool, config).unwrap()
}

fn engine(slots: usize) -> Engine<Leasing> {
    engine_of(Leasing(Scale::new(2.0)), 1, &config(slots))
}

#[test]
fn a_slot_is_free_when_the_last_result_of_its_batch_is_dropped() {
    let engine = engine(3);
    let items = vectors(4);
    let tickets = engine.submit_many(items.clone()).unwrap();
    engine.flush().unwrap();
    let mut leased: Vec<_> = tickets.wait().unwrap();
    assert_eq!(counts(&engine.counters()), (4, 0));
    while let Some(one) = leased.pop() {
        let before = engine.counters().results_leased;
        let other = result(&engine, &items[1]);
        assert_eq!(engine.counters().results_leased, before, "it is copied");
        assert_eq!(other[..], doubled(&items[1]));
        drop(one);
    }
    let _leased = result(&engine, &items[1]);
    assert_eq!(counts(&engine.counters()), (5, 4));
}

#[test]
fn with_two_slots_every_result_is_copied() {
    let engine = engine(2);
    let items = vectors(20);
    let held: Vec<_> = items.iter().map(|item| result(&engine, item)).collect();
    assert_right(&held, &items);
    assert_eq!(counts(&engine.counters()), (0, 20));
}

#[test]
fn the_slots_of_each_device_and_those_for_urgent_batches_have_limits_of_their_own() {
    let urgent = SubmitOptions {
        urgent: true,
        ..SubmitOptions::default()
    };
    let mut config = config(6);
    config.urgent_slots = 3;
    let engine = engine_of(Leasing(Scale::new(2.0)), 2, &config);
    let items = vectors(30);
    let mut held = Vec::new();
    for item in &items {
        let ticket = engine.submit_with(item.clone(), urgent).unwrap();
        held.push(ticket.wait().unwrap().result.unwrap());
    }
    assert_eq!(counts(&engine.counters()), (2, 28), "one of each device");
    held.extend(items.iter().map(|item| result(&engine, item)));
    assert_eq!(counts(&engine.counters()), (4, 56));
    assert_right(&held[..30], &items);
    assert_right(&held[30..], &items);
}

#[test]
fn a_run_whose_results_are_all_held_ends_and_a_run_that_drops_them_goes_on() {
    let mut engine = engine(4);
    let items = vectors(400);
    let mut held = Vec::new();
    let mut keep = |done: Completion<Leasing>| {
        held.push(done.result?);
        Ok(())
    };
    engine.run(items.iter().cloned(), &mut keep).unwrap();
    assert_eq!(held.len(), items.len());
    assert_right(&held, &items);
    let counters = engine.counters();
    assert!(
        counters.results_leased > 0 && counters.results_copied > 0,
        "{counters:?}"
    );
    assert_eq!(counters.results_leased + counters.results_copied, 400);
    held.clear();
    let mut seen = 0;
    let mut check = |done: Completion<Leasing>| {
        assert_eq!(done.result?[..], doubled(&items[seen]));
        seen += 1;
        Ok(())
    };
    engine.run(items.iter().cloned(), &mut check).unwrap();
    assert_eq!(seen, items.len());
    assert!(engine.counters().results_leased > counters.results_leased);
}

/// Enough for the CPU backend to compute a batch on its pool, apart from the engine's own thread.
const LARGE: usize = 1 << 15;

#[test]
fn a_batch_that_waits_for_a_slot_starts_when_a_result_is_dropped() {
    let ((begin, began), (go_on, gone_on)) = (unbounded(), unbounded::<()>());
    let scale = Scale::with(2.0, move |elements| {
        if elements[0] == STAYS {
            begin.send(()).unwrap();
            gone_on.recv().unwrap();
        }
    });
    let mut config = EngineConfig::new([LARGE as u32, 1]);
    config.slots = 3;
    let engine = engine_of(Leasing(scale), 1, &config);
    let leased = result(&engine, &[1.0]);
    let stay = || {
        let ticket = engine.submit(vec![STAYS; LARGE]).unwrap();
        began.recv_timeout(Duration::from_secs(60)).unwrap();
        ticket
    };
    let others = [stay(), stay()];
    let mut waiting = engine.submit(vec![3.0; LARGE]).unwrap();
    engine.flush().unwrap();
    assert_eq!(engine.counters().batches, 3, "no slot is free");
    assert_eq!(leased[..], [2.0]);
    std::thread::scope(|scope| scope.spawn(move || drop(leased)).join().unwrap());
    let done = waiting.wait_timeout(Duration::from_secs(60)).unwrap();
    let done = done.expect("it runs in the slot that is free again");
    assert_eq!(done.result.unwrap()[..], [6.0; LARGE]);
    for other in others {
        go_on.send(()).unwrap();
        drop(other);
    }
}

#[test]
fn the_engines_own_code_may_drop_the_last_result_of_a_batch() {
    let held: Arc<Mutex<Vec<Leased<f32>>>> = Arc::default();
    let inside = Arc::clone(&held);
    let scale = Scale::with(2.0, move |_| inside.lock().clear());
    let engine = engine_of(Leasing(scale), 1, &config(3));
    for item in &vectors(30) {
        let leased = result(&engine, item);
        assert_eq!(leased[..], doubled(item));
        held.lock().push(leased);
    }
    let (leased, copied) = counts(&engine.counters());
    // The twin of a batch runs before its results are read.
    assert_eq!((leased, copied), (30, 0));
}

#[test]
fn an_item_that_fails_while_it_is_read_gives_its_part_of_the_slot_back() {
    let engine = engine(3);
    for value in 0..20 {
        let mut item = vec![value as f32 + 1.0; 5];
        if value % 2 == 0 {
            item[0] = READ_FAILS;
        }
        let done = engine.submit(item.clone()).unwrap().wait().unwrap();
        match done.result {
            Ok(leased) => assert_eq!(leased[..], doubled(&item)),
            Err(_) => assert_eq!(value % 2, 0),
        }
    }
    assert_eq!(counts(&engine.counters()), (20, 0));
}

#[test]
fn a_batch_from_whose_slot_no_result_borrows_leaves_the_slots_to_later_ones() {
    // One slot at most is lent at a time.
    let engine = engine(3);
    for _ in 0..3 {
        let done = engine.submit(vec![WRITE_FAILS; 5]).unwrap().wait().unwrap();
        assert!(done.result.is_err(), "it has no result that could borrow");
    }
    let _leased = result(&engine, &[1.0]);
    assert_eq!(counts(&engine.counters()), (1, 0));
}

#[test]
fn results_of_a_pipeline_and_of_a_packer_are_copies() {
    let pool = pool(1);
    let backends: [Arc<dyn Backend>; 1] = [Arc::new(CpuBackend::new(Arc::clone(&pool)))];
    let items = vectors(10);
    let workload = || Leasing(Scale::new(2.0));
    let mut pipeline = Pipeline::new(workload(), &backends, Arc::clone(&pool), &config(5)).unwrap();
    let mut held = Vec::new();
    for item in &items {
        pipeline.submit(item.clone()).unwrap();
        held.push(pipeline.wait().unwrap().1.result.unwrap());
    }
    assert_eq!(counts(&pipeline.counters()), (0, 10));
    drop(pipeline);
    assert_right(&held, &items);

    let packer = Packer::new(workload(), &[Extent::from([1000, 100])], &backends[0], pool).unwrap();
    let policy = Policy::default();
    let mut ring = Ring::new(&backends[0], &packer.buckets(), 1, &policy, Wait::Block).unwrap();
    let mut slot = ring.acquire().unwrap();
    let packed = packer.pack(&mut slot, items.clone());
    let packed = packed.unwrap_or_else(|(error, _)| panic!("{error}"));
    let live = packed.extent();
    ring.submit(slot, live, packed).unwrap();
    let done = ring.wait().unwrap().unwrap();
    let held: Vec<_> = packer.read(&done).into_iter().map(Result::unwrap).collect();
    drop(ring.release(Ok(done)));
    assert!(ring.acquire().is_some());
    assert_right(&held, &items);
}

#[test]
fn a_lone_slot_with_batches_that_close_by_time_copies() {
    let mut config = config(1);
    (config.close, config.batch_wait) = (Close::Full, Duration::ZERO);
    let engine = engine_of(Leasing(Scale::new(2.0)), 1, &config);
    let items = vectors(5);
    let held: Vec<_> = items.iter().map(|item| result(&engine, item)).collect();
    assert_right(&held, &items);
    assert_eq!(counts(&engine.counters()), (0, 5));
}
