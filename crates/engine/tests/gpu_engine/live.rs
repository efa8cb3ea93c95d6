//! Uniforms and buckets that change under a stream of items.

use super::mix::{Item, ItemFate, Mix, Uniforms, items};
use super::target::Target;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tapeloop_engine::pipeline::{Engine, EngineConfig, Pipeline, SubmitOptions, TrySubmitError};
use tapeloop_engine::workload::{Completion, Extent, Workload};

const FACTORS: [f32; 4] = [1.5, -2.25, 0.0, 1024.5];
const SALTS: [u32; 4] = [7, 0, u32::MAX, 12_345];

fn config() -> EngineConfig {
    let mut config = EngineConfig::new([200, 16]);
    config.buckets = [[60, 4], [200, 16]].map(Extent::from).to_vec();
    config
}

/// A pair that is set together. No two of them share a value.
fn pair(round: usize) -> Uniforms {
    (FACTORS[round % 4], SALTS[round % 4])
}

fn set<W: Workload>(engine: &Engine<W>, (factor, salt): Uniforms) {
    let set = engine.set_uniforms(|uniforms| {
        uniforms.set("factor", factor)?;
        uniforms.set("salt", salt)
    });
    set.unwrap();
}

pub(crate) fn uniforms_change_together_under_a_running_engine(target: &Target) {
    let backends = [Arc::clone(&target.backend)];
    let pool = Arc::clone(&target.pool);
    let engine = Engine::new(Mix::new(), &backends, pool, &config()).unwrap();
    set(&engine, pair(0));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut round = 0;
            while !is_over.load(Ordering::Relaxed) {
                set(&engine, pair(round));
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
                let mut allowed = (0..4).map(|round| item.output(pair(round)));
                assert!(allowed.any(|output| output == found), "{item:?}");
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(engine.counters().items_rejected, 0);
}

pub(crate) fn an_item_has_the_uniforms_of_its_submission(target: &Target) {
    let backends = [Arc::clone(&target.backend)];
    let pool = Arc::clone(&target.pool);
    let mut config = config();
    config.urgent_slots = 1;
    let engine = Engine::new(Mix::new(), &backends, pool, &config).unwrap();
    let mut tickets = Vec::new();
    for (n, item) in items(20 * target.rounds, 150).into_iter().enumerate() {
        set(&engine, pair(n / 3));
        let options = SubmitOptions {
            urgent: n % 5 == 0,
            ..SubmitOptions::default()
        };
        let expected = item.output(pair(n / 3));
        tickets.push((engine.submit_with(item, options).unwrap(), expected));
    }
    for (number, (ticket, expected)) in tickets.into_iter().enumerate() {
        let found = ticket.wait().unwrap().result.unwrap();
        assert_eq!(found, expected, "item {number}");
    }
}

pub(crate) fn a_batch_has_the_uniforms_of_its_items_in_a_pipeline(target: &Target) {
    let backends = [Arc::clone(&target.backend)];
    let pool = Arc::clone(&target.pool);
    let mut pipeline = Pipeline::new(Mix::new(), &backends, pool, &config()).unwrap();
    let edits = target.backend.driver_calls().graph_edits;
    let (mut back, mut uniforms) = (0, BTreeMap::new());
    let mut take = |uniforms: &BTreeMap<u32, Uniforms>, done: (u64, Completion<Mix>)| {
        back += 1;
        let (_, Completion { item, result }) = done;
        match item.fate {
            ItemFate::Fine => assert_eq!(result.unwrap(), item.output(uniforms[&item.id])),
            _ => assert!(result.unwrap_err().to_string().contains("as told")),
        }
    };
    let count = 40 * target.rounds;
    for (n, mut item) in items(count, 150).into_iter().enumerate() {
        item.fate = match n % 31 {
            5 => ItemFate::NoExtent,
            6 => ItemFate::WriteFails,
            7 => ItemFate::ReadFails,
            _ => ItemFate::Fine,
        };
        let now = (FACTORS[n / 3 % 4], (n - n % 3) as u32);
        let set = pipeline.set_uniforms(|uniforms| {
            uniforms.set("factor", now.0)?;
            uniforms.set("salt", now.1)
        });
        set.unwrap();
        uniforms.insert(item.id, now);
        while let Err(TrySubmitError::Full(refused)) = pipeline.submit(item) {
            let done = pipeline.poll();
            done.into_iter().for_each(|done| take(&uniforms, done));
            item = refused;
        }
    }
    std::iter::from_fn(|| pipeline.wait()).for_each(|done| take(&uniforms, done));
    assert_eq!(back, count);
    assert_eq!(target.backend.driver_calls().graph_edits, edits);
    let counters = pipeline.counters();
    assert_eq!(counters.items_done + counters.items_rejected, count as u64);
}
