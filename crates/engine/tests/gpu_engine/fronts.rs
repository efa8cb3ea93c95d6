//! Several engines, producers and threads at once, and ends in mid-flight.

use super::mix::{Item, Mix, UNIFORMS, items};
use super::target::Target;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tapeloop_conformance::program::policies;
use tapeloop_engine::pipeline::{Engine, EngineConfig, Pipeline, SubmitOptions, Ticket};
use tapeloop_engine::replay::Policy;
use tapeloop_engine::workload::Extent;

/// Arenas of some MiB, so that one that is not given back shows.
fn config(policy: &Policy) -> EngineConfig {
    let mut config = EngineConfig::new([200, 16]);
    config.buckets = [[60, 4], [200, 16], [1 << 16, 16]]
        .map(Extent::from)
        .to_vec();
    config.policy = *policy;
    config
}

fn engine(target: &Target, config: &EngineConfig) -> Engine<Mix> {
    let backends = [Arc::clone(&target.backend)];
    Engine::new(Mix::new(), &backends, Arc::clone(&target.pool), config).unwrap()
}

fn check(ticket: Ticket<Mix>, item: &Item) {
    let done = ticket.wait().unwrap();
    assert_eq!(&done.item, item);
    assert_eq!(done.result.unwrap(), item.output(UNIFORMS));
}

pub(crate) fn two_engines_at_once_with_two_producers_each(target: &Target) {
    let all = policies();
    for round in 0..target.rounds.min(all.len() / 2) {
        let pair = [&all[round], &all[all.len() - 1 - round]];
        let engines = pair.map(|policy| engine(target, &config(policy)));
        std::thread::scope(|scope| {
            for engine in engines.iter().chain(&engines) {
                scope.spawn(move || {
                    let items = items(100, 150);
                    let submit = |item: &Item| engine.submit(item.clone()).unwrap();
                    let tickets: Vec<_> = items.iter().map(submit).collect();
                    for (ticket, item) in tickets.into_iter().zip(&items) {
                        check(ticket, item);
                    }
                });
            }
        });
        for engine in engines {
            let counters = engine.counters();
            assert_eq!((counters.items_done, counters.items_rejected), (200, 0));
        }
    }
}

pub(crate) fn items_come_from_a_thread_of_their_own_each(target: &Target) {
    let engine = engine(target, &config(&Policy::default()));
    let items = items(10 * target.rounds, 150);
    let mut tickets = Vec::new();
    for item in &items {
        // A thread that never saw the device, and is gone before the batch is.
        let submitted = std::thread::scope(|scope| {
            let submit = scope.spawn(|| engine.submit(item.clone()).unwrap());
            submit.join().unwrap()
        });
        tickets.push(submitted);
    }
    for (ticket, item) in tickets.into_iter().zip(&items) {
        std::thread::scope(|scope| {
            scope.spawn(|| check(ticket, item));
        });
    }
}

pub(crate) fn an_engine_dropped_in_mid_flight_answers_every_ticket(target: &Target) {
    let all = policies();
    let items = items(30, 150);
    for round in 0..target.rounds {
        let engine = engine(target, &config(&all[round % all.len()]));
        let submit = |item: &Item| engine.submit(item.clone()).unwrap();
        let tickets: Vec<_> = items.iter().map(submit).collect();
        // By a thread other than the one that made it, every second time.
        match round % 2 {
            0 => drop(engine),
            _ => std::thread::spawn(move || drop(engine)).join().unwrap(),
        }
        for (ticket, item) in tickets.into_iter().zip(&items) {
            assert!(ticket.is_done(), "the engine finished it");
            check(ticket, item);
        }
    }
}

pub(crate) fn a_pipeline_dropped_in_mid_flight_gives_everything_back(target: &Target) {
    let all = policies();
    let one = |round: usize| {
        let config = config(&all[round % all.len()]);
        let backends = [Arc::clone(&target.backend)];
        let pool = Arc::clone(&target.pool);
        let mut pipeline = Pipeline::new(Mix::new(), &backends, pool, &config).unwrap();
        let mut taken = 0;
        // The largest bucket, so that copies are still on their way at the end.
        let item = Item::new(round as u32, 1 << 16);
        while taken < 8 && pipeline.submit(item.clone()).is_ok() {
            taken += 1;
        }
        assert!(taken > 3, "more than there are slots");
        if round.is_multiple_of(3) {
            let (_, done) = pipeline.wait().unwrap();
            assert_eq!(done.result.unwrap(), item.output(UNIFORMS));
        }
    };
    // The driver keeps something of the first graphs and streams.
    (0..all.len()).for_each(one);
    let before = target.free_bytes();
    (0..all.len().max(target.rounds)).for_each(one);
    if let (Some(before), Some(after)) = (before, target.free_bytes()) {
        let lost = before.saturating_sub(after);
        assert!(lost <= 2 << 20, "{lost} bytes of the card are gone");
    }
}

/// The threads of engines, by the names that Linux has; 0 elsewhere.
fn engine_threads() -> usize {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else {
        return 0;
    };
    let names = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")));
    let own = |name: &String| name.starts_with("tapeloop-");
    names.filter_map(Result::ok).filter(own).count()
}

pub(crate) fn an_engine_that_is_left_behind_ends_its_threads(target: &Target) {
    let before = engine_threads();
    for _ in 0..target.rounds {
        let backends = [Arc::clone(&target.backend)];
        let pool = Arc::clone(&target.pool);
        let engine = Engine::new(Mix::new(), &backends, pool, &EngineConfig::new([200, 16]));
        let engine = engine.unwrap();
        let options = SubmitOptions {
            expires_at: Some(Instant::now() + Duration::from_secs(3600)),
            ..SubmitOptions::default()
        };
        for item in items(20, 150) {
            drop(engine.submit_with(item, options).unwrap());
        }
        drop(engine.shutdown(Duration::ZERO));
    }
    let start = Instant::now();
    while engine_threads() > before {
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "{} threads",
            engine_threads()
        );
        std::thread::yield_now();
    }
}
