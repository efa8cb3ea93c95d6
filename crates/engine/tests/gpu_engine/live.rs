//! Uniforms and buckets that change under a stream of items.

use super::mix::{Fate, Item, Log, Mix, items};
use super::target::Target;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tapeloop_engine::pipeline::{Delivery, Engine, EngineConfig, Pipeline, Refused};
use tapeloop_engine::workload::Extent;

const FACTORS: [f32; 4] = [1.5, -2.25, 0.0, 1024.5];
const SALTS: [u32; 4] = [7, 0, u32::MAX, 12_345];

fn config() -> EngineConfig {
    let mut config = EngineConfig::new([200, 16]);
    config.buckets = [[60, 4], [200, 16]].map(Extent::from).to_vec();
    config
}

pub(crate) fn uniforms_change_under_a_running_engine(target: &Target) {
    let backends = [Arc::clone(&target.backend)];
    let pool = Arc::clone(&target.pool);
    let engine = Engine::new(Mix::new(), &backends, pool, &config()).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut round = 0;
            while !is_over.load(Ordering::Relaxed) {
                engine.set_uniform("factor", FACTORS[round % 4]).unwrap();
                engine.set_uniform("salt", SALTS[round / 4 % 4]).unwrap();
                round += 1;
                std::thread::yield_now();
            }
        });
        let items = items(100 * target.rounds, 150);
        for part in items.chunks(200) {
            let submit = |item: &Item| engine.submit(item.clone()).unwrap();
            let tickets: Vec<_> = part.iter().map(submit).collect();
            for (ticket, item) in tickets.into_iter().zip(part) {
                let found = ticket.wait().unwrap().result.unwrap();
                // The two are set one after the other, so any pair may be.
                let pairs = FACTORS.iter().flat_map(|f| SALTS.map(|salt| (*f, salt)));
                let mut allowed = pairs.map(|uniforms| item.output(uniforms));
                assert!(allowed.any(|output| output == found), "{item:?}");
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let last = (0.125, 99);
    engine.set_uniform("factor", last.0).unwrap();
    engine.set_uniform("salt", last.1).unwrap();
    let item = Item::new(1, 50);
    let done = engine.submit(item.clone()).unwrap().wait().unwrap();
    assert_eq!(done.result.unwrap(), item.output(last));
    let counters = engine.counters();
    assert_eq!(counters.items_rejected, 0);
}

pub(crate) fn a_batch_has_the_uniforms_that_were_set_when_it_was_filled(target: &Target) {
    let log = Arc::new(Log::default());
    let backends = [Arc::clone(&target.backend)];
    let pool = Arc::clone(&target.pool);
    let mix = Mix::logged(&log);
    let mut pipeline = Pipeline::new(mix, &backends, pool, &config()).unwrap();
    let edits = target.backend.driver_calls().graph_edits;
    let mut back = 0;
    let mut take = |delivery: Delivery<Mix>| {
        back += 1;
        let Delivery { item, result, .. } = delivery;
        if item.fate != Fate::Fine {
            assert!(result.unwrap_err().to_string().contains("as told"));
            return;
        }
        let set = log.written.lock().unwrap()[&item.id];
        assert_eq!(result.unwrap(), item.output(set));
    };
    let count = 40 * target.rounds;
    for (n, mut item) in items(count, 150).into_iter().enumerate() {
        item.fate = match n % 31 {
            5 => Fate::NoExtent,
            6 => Fate::WriteFails,
            7 => Fate::ReadFails,
            _ => Fate::Fine,
        };
        if n % 3 == 0 {
            let now = (FACTORS[n / 3 % 4], n as u32);
            pipeline.set_uniform("factor", now.0).unwrap();
            pipeline.set_uniform("salt", now.1).unwrap();
            *log.now.lock().unwrap() = now;
        }
        while let Err(Refused(refused)) = pipeline.submit(item) {
            pipeline.poll().into_iter().for_each(&mut take);
            item = refused;
        }
    }
    std::iter::from_fn(|| pipeline.wait()).for_each(&mut take);
    assert_eq!(back, count);
    assert_eq!(target.backend.driver_calls().graph_edits, edits);
    let counters = pipeline.counters();
    assert_eq!(counters.items_done + counters.items_rejected, count as u64);
}
