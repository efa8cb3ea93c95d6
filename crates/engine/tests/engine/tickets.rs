//! Tickets that are cancelled, and items that expire, on the CPU backend.

use crate::gate::{STAYS, config, engine};
use crate::random::Random;
use crate::scale::{Scale, doubled};
use rayon::ThreadPoolBuilder;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tapeloop_engine::ErrorKind;
use tapeloop_engine::backend::{Backend, cpu::CpuBackend};
use tapeloop_engine::pipeline::{Engine, EngineConfig, Pipeline, SubmitOptions, TrySubmitError};

fn expires(at: Instant) -> SubmitOptions {
    SubmitOptions {
        expires_at: Some(at),
        ..SubmitOptions::default()
    }
}

#[test]
fn an_item_that_is_cancelled_in_the_open_batch_comes_back_and_leaves_its_room() {
    let (engine, _gate) = engine(&config());
    let first = engine.submit(vec![1.0; 4]).unwrap();
    let second = engine.submit(vec![2.0; 3]).unwrap();
    let third = engine.submit(vec![3.0]).unwrap();
    let refused = engine.submit(Vec::new()).unwrap();
    assert_eq!(second.cancel().ok(), Some(vec![2.0; 3]));
    assert_eq!(refused.cancel().ok(), Some(Vec::new()));
    // Fills the batch together with the first and the third.
    let fourth = engine.submit(vec![4.0; 5]).unwrap();
    for (ticket, item, start) in [
        (first, vec![1.0; 4], 0),
        (third, vec![3.0], 4),
        (fourth, vec![4.0; 5], 5),
    ] {
        let done = ticket.wait().unwrap();
        assert_eq!(done.result.unwrap(), (doubled(&item), start));
        assert_eq!(done.item, item);
    }
    let counters = engine.counters();
    assert_eq!((counters.items_cancelled, counters.items_done), (2, 3));
    assert_eq!((counters.items_rejected, counters.batches), (0, 1));
}

#[test]
fn an_item_that_is_cancelled_has_no_latency() {
    let (engine, _gate) = engine(&config());
    // The first item of a batch is measured.
    for (cancels, measured) in [(true, 0), (false, 1)] {
        let first = engine.submit(vec![1.0; 4]).unwrap();
        let second = engine.submit(vec![2.0; 3]).unwrap();
        if cancels {
            assert_eq!(first.cancel().ok(), Some(vec![1.0; 4]))
        } else {
            drop(first)
        }
        engine.flush().unwrap();
        second.wait().unwrap().result.unwrap();
        assert_eq!(engine.statistics().item_latency.count(), measured);
    }
}

#[test]
fn a_closed_batch_makes_room_once_all_its_items_are_cancelled() {
    let (engine, gate) = engine(&config());
    let first = gate.occupy(&engine, 10);
    let second = engine.submit_many((0..10).map(|_| vec![2.0])).unwrap();
    let third = engine.submit(vec![3.0; 10]).unwrap();
    let refused = engine.try_submit(vec![4.0], SubmitOptions::default());
    assert!(matches!(refused, Err(TrySubmitError::Full(_))));
    assert_eq!(second.cancel().0, vec![vec![2.0]; 10]);
    let fourth = engine.try_submit(vec![4.0; 10], SubmitOptions::default());
    let fourth = fourth.expect("there is room");
    gate.open();
    assert_eq!(third.wait().unwrap().result.unwrap().0, [6.0; 10]);
    assert_eq!(fourth.wait().unwrap().result.unwrap().0, [8.0; 10]);
    drop(first);
    let counters = engine.counters();
    assert_eq!((counters.items_cancelled, counters.batches), (10, 3));
    // Every batch counts as answered, so this ends.
    drop(engine);
}

#[test]
fn an_item_whose_batch_has_a_slot_is_computed_though_it_is_cancelled() {
    let (engine, gate) = engine(&config());
    let ticket = gate.occupy(&engine, 1);
    let ticket = ticket.cancel().unwrap_err();
    gate.open();
    assert!(ticket.wait().unwrap().result.is_ok());
    let done = engine.submit(vec![1.0; 10]).unwrap();
    while !done.is_done() {
        std::thread::yield_now();
    }
    let done = done.cancel().unwrap_err();
    assert!(done.wait().unwrap().result.is_ok(), "its result is there");
    let counters = engine.counters();
    assert_eq!((counters.items_cancelled, counters.items_done), (0, 2));
}

#[test]
fn the_items_of_a_handle_come_back_but_those_whose_batch_has_a_slot() {
    let (engine, gate) = engine(&config());
    // A batch that starts, one that waits for the slot, and an open one.
    let items = (0..25).map(|n| vec![if n == 0 { STAYS } else { n as f32 }]);
    let tickets = engine.submit_many(items).unwrap();
    gate.began.recv_timeout(Duration::from_secs(60)).unwrap();
    let other = engine.submit(vec![30.0]).unwrap();
    let (cancelled, others) = tickets.cancel();
    let cancelled: Vec<f32> = cancelled.into_iter().map(|item| item[0]).collect();
    assert_eq!(cancelled, (10..25).map(|n| n as f32).collect::<Vec<_>>());
    gate.open();
    assert_eq!(others.wait().unwrap().len(), 10);
    engine.flush().unwrap();
    assert_eq!(other.wait().unwrap().result.unwrap(), (vec![60.0], 0));
    let counters = engine.counters();
    assert_eq!((counters.items_cancelled, counters.items_done), (15, 11));
}

#[test]
fn an_item_that_expires_before_its_batch_has_a_slot_comes_back_uncomputed() {
    let (engine, gate) = engine(&config());
    let first = gate.occupy(&engine, 10);
    let (now, later) = (Instant::now(), Instant::now() + Duration::from_secs(3600));
    let submit = |item, options| engine.submit_with(item, options).unwrap();
    let expired = submit(vec![1.0; 3], expires(now));
    let late = submit(vec![2.0; 3], expires(later));
    let kept = submit(vec![3.0; 4], SubmitOptions::default());
    let all_expired = submit(vec![4.0; 10], expires(now));
    gate.open();
    for (ticket, item) in [(expired, vec![1.0; 3]), (all_expired, vec![4.0; 10])] {
        let done = ticket.wait().unwrap();
        assert_eq!(done.result.unwrap_err().kind(), ErrorKind::Expired);
        assert_eq!(done.item, item);
    }
    assert_eq!(late.wait().unwrap().result.unwrap(), (vec![4.0; 3], 0));
    assert_eq!(kept.wait().unwrap().result.unwrap(), (vec![6.0; 4], 3));
    drop(first);
    let counters = engine.counters();
    assert_eq!((counters.items_expired, counters.items_rejected), (2, 2));
    assert_eq!((counters.items_done, counters.batches), (3, 2));
    let urgent = SubmitOptions {
        urgent: true,
        ..expires(now)
    };
    let done = submit(vec![5.0], urgent).wait().unwrap();
    assert_eq!(done.result.unwrap_err().kind(), ErrorKind::Expired);
}

#[test]
fn items_of_a_pipeline_expire_too() {
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    let mut pipeline = Pipeline::new(Scale::new(2.0), &[backend], pool, &config()).unwrap();
    let now = Instant::now();
    pipeline.submit_at(vec![1.0; 3], expires(now), now).unwrap();
    pipeline.submit(vec![2.0; 3]).unwrap();
    let [(number, expired), (_, done)] = [(); 2].map(|()| pipeline.wait().unwrap());
    assert_eq!(expired.result.unwrap_err().kind(), ErrorKind::Expired);
    assert_eq!((number, expired.item), (0, vec![1.0; 3]));
    assert_eq!(done.result.unwrap(), (vec![4.0; 3], 0));
    assert_eq!(pipeline.counters().items_expired, 1);
}

/// The number of items that a thread submits.
const ITEMS: u64 = 1500;

/// Submits items, and cancels or waits for them. Returns the number of items that came back.
fn submit_at_random(engine: &Engine<Scale>, seed: u64) -> u64 {
    let (mut random, mut cancelled) = (Random::new(seed), 0);
    let mut tickets = Vec::new();
    for number in 0..ITEMS {
        let expires_at = Instant::now() + Duration::from_micros(random.below(200) as u64);
        let options = SubmitOptions {
            urgent: random.below(16) == 0,
            expires_at: (random.below(4) == 0).then_some(expires_at),
            ..SubmitOptions::default()
        };
        let item = vec![number as f32; 1 + random.below(4)];
        tickets.push((engine.submit_with(item.clone(), options).unwrap(), item));
        if random.flip() {
            continue;
        }
        let (ticket, item) = tickets.swap_remove(random.below(tickets.len()));
        if random.flip() {
            if let Ok(back) = ticket.cancel() {
                assert_eq!(back, item);
                cancelled += 1;
            }
            continue;
        }
        let done = ticket.wait().unwrap();
        assert_eq!(done.item, item);
        match done.result {
            Ok((output, _)) => assert_eq!(output, doubled(&item)),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Expired),
        }
    }
    cancelled
}

#[test]
fn every_item_of_several_threads_is_computed_or_expires_or_comes_back() {
    for (slots, urgent) in [(1, 0), (3, 0), (3, 1)] {
        let mut config = EngineConfig::new([10, 10]);
        (config.slots, config.urgent_slots) = (slots, urgent);
        let (engine, _gate) = engine(&config);
        let cancelled: u64 = std::thread::scope(|scope| {
            let engine = &engine;
            let threads: Vec<_> = (0..3)
                .map(|seed| scope.spawn(move || submit_at_random(engine, seed)))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum()
        });
        engine.flush().unwrap();
        let start = Instant::now();
        let counters = loop {
            let counters = engine.counters();
            if counters.items_done + counters.items_expired + cancelled == 3 * ITEMS {
                break counters;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "{counters:?}");
            std::thread::yield_now();
        };
        assert_eq!(counters.items_cancelled, cancelled);
        assert_eq!(counters.items_rejected, counters.items_expired);
    }
}

#[test]
fn cancelled_items_count_among_those_that_take_no_room() {
    let mut config = config();
    config.batch = [1000, 1000].into();
    config.buckets = vec![config.batch];
    let (engine, _gate) = engine(&config);
    // An item stays, so its batch stays open until it is full.
    let stays = engine.submit(vec![1.0]).unwrap();
    for _ in 0..700 {
        let some = engine.submit_many((0..100).map(|_| vec![1.0])).unwrap();
        assert!(some.cancel().0.len() <= 100);
    }
    let next = engine.submit(vec![2.0]).unwrap();
    assert_eq!(stays.wait().unwrap().result.unwrap().0, [2.0]);
    engine.flush().unwrap();
    assert_eq!(next.wait().unwrap().result.unwrap().0, [4.0]);
}

#[test]
fn an_open_batch_without_items_left_is_no_batch() {
    let (engine, _gate) = engine(&config());
    for _ in 0..3 {
        let some = engine.submit_many([vec![1.0], vec![2.0]]).unwrap();
        assert_eq!(some.cancel().0, [[1.0], [2.0]]);
    }
    let next = engine.submit(vec![3.0]).unwrap();
    engine.flush().unwrap();
    assert_eq!(next.wait().unwrap().result.unwrap().0, [6.0]);
    let statistics = engine.statistics();
    assert_eq!(statistics.unpack.batches, 1);
    assert_eq!(statistics.item_latency.count(), 1);
}
