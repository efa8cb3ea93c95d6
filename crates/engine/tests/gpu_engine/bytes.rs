//! The same bytes in every way to replay, whatever is ready.

use super::mix::{Item, Mix, Output, UNIFORMS, items};
use super::target::Target;
use std::collections::BTreeMap;
use std::sync::Arc;
use tapeloop_conformance::program::policies;
use tapeloop_engine::backend::{Backend, cpu::CpuBackend};
use tapeloop_engine::pipeline::{Engine, EngineConfig, Pipeline, SubmitOptions, TrySubmitError};
use tapeloop_engine::replay::{Mode, Policy};
use tapeloop_engine::workload::{Completion, Extent};

fn config(policy: &Policy) -> EngineConfig {
    let mut config = EngineConfig::new([200, 16]);
    config.buckets = [[60, 4], [200, 16]].map(Extent::from).to_vec();
    config.policy = *policy;
    config
}

fn through_an_engine(
    target: &Target,
    backend: &Arc<dyn Backend>,
    config: &EngineConfig,
    items: &[Item],
) -> Vec<Output> {
    let backends = [Arc::clone(backend)];
    let pool = Arc::clone(&target.pool);
    let mut engine = Engine::new(Mix::new(), &backends, pool, config).unwrap();
    let mut outputs = Vec::new();
    let mut sink = |done: Completion<Mix>| {
        outputs.push(done.result?);
        Ok(())
    };
    engine.run(items.iter().cloned(), &mut sink).unwrap();
    outputs
}

fn through_a_pipeline(target: &Target, config: &EngineConfig, items: &[Item]) -> Vec<Output> {
    let backends = [Arc::clone(&target.backend)];
    let pool = Arc::clone(&target.pool);
    let mut pipeline = Pipeline::new(Mix::new(), &backends, pool, config).unwrap();
    let mut outputs = BTreeMap::new();
    for item in items {
        let mut item = item.clone();
        while let Err(TrySubmitError::Full(back)) = pipeline.submit(item) {
            if let Some((number, done)) = pipeline.poll() {
                outputs.insert(number, done.result.unwrap());
            }
            item = back;
        }
    }
    while let Some((number, done)) = pipeline.wait() {
        outputs.insert(number, done.result.unwrap());
    }
    outputs.into_values().collect()
}

pub(crate) fn every_policy_gives_the_bytes_of_the_cpu(target: &Target) {
    let items = items(120, 150);
    let cpu: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&target.pool)));
    let eager = config(&Policy::new(Mode::Stream));
    let expected = through_an_engine(target, &cpu, &eager, &items);
    let twins = items.iter().map(|item| item.output(UNIFORMS));
    assert!(expected.iter().cloned().eq(twins));
    for policy in policies() {
        let config = config(&policy);
        let engine = through_an_engine(target, &target.backend, &config, &items);
        assert!(engine == expected, "an engine, {policy:?}");
        let pipeline = through_a_pipeline(target, &config, &items);
        assert!(pipeline == expected, "a pipeline, {policy:?}");
    }
}

pub(crate) fn urgent_batches_give_the_bytes_of_the_cpu(target: &Target) {
    let items = items(120, 150);
    for policy in policies()
        .into_iter()
        .filter(|policy| policy.mode != Mode::Resident)
    {
        let mut config = config(&policy);
        (config.slots, config.urgent_slots) = (3, 1);
        let backends = [Arc::clone(&target.backend)];
        let pool = Arc::clone(&target.pool);
        let engine = Engine::new(Mix::new(), &backends, pool, &config).unwrap();
        // Every third item is urgent.
        let submit = |(n, item): (usize, &Item)| {
            let options = SubmitOptions {
                urgent: n % 3 == 0,
                ..SubmitOptions::default()
            };
            engine.submit_with(item.clone(), options).unwrap()
        };
        let tickets: Vec<_> = items.iter().enumerate().map(submit).collect();
        for (ticket, item) in tickets.into_iter().zip(&items) {
            let done = ticket.wait().unwrap();
            assert_eq!(done.result.unwrap(), item.output(UNIFORMS), "{policy:?}");
        }
        assert_eq!(engine.counters().items_done, items.len() as u64);
    }
}

pub(crate) fn buckets_come_and_go_beside_batches_in_flight(target: &Target) {
    let ladder = [[10, 1], [40, 2], [90, 4], [200, 16]].map(Extent::from);
    let graphs = policies().into_iter().filter(|p| p.mode != Mode::Stream);
    for policy in graphs {
        let mut config = config(&policy);
        config.buckets = ladder.to_vec();
        (config.policy.ready_max, config.policy.warm_up) = (1, false);
        let backends = [Arc::clone(&target.backend)];
        let pool = Arc::clone(&target.pool);
        let mut pipeline = Pipeline::new(Mix::new(), &backends, pool, &config).unwrap();
        let mut back = 0;
        let mut take = |(_, done): (u64, Completion<Mix>)| {
            let expected = done.item.output(UNIFORMS);
            assert_eq!(done.result.unwrap(), expected, "{policy:?}");
            back += 1;
        };
        let count = 20 * target.rounds;
        let urgent = SubmitOptions {
            urgent: true,
            ..SubmitOptions::default()
        };
        // Alone in their batches, of four sizes in turn over three slots, so that
        // each slot makes a bucket while the others run.
        for n in 0..count {
            let mut item = Item::new(n as u32, [5, 30, 80, 190][n % 4]);
            let now = std::time::Instant::now();
            while let Err(TrySubmitError::Full(refused)) = pipeline.submit_at(item, urgent, now) {
                pipeline.poll().into_iter().for_each(&mut take);
                item = refused;
            }
        }
        std::iter::from_fn(|| pipeline.wait()).for_each(&mut take);
        assert_eq!(back, count);
        let counters = pipeline.counters();
        assert_eq!(
            counters.bucket_hits + counters.bucket_misses,
            counters.batches
        );
        // The first bucket of each of three slots takes nobody's place.
        assert_eq!(counters.bucket_evictions + 3, counters.bucket_misses);
        assert!(counters.bucket_evictions > count as u64 / 8, "{counters:?}");
    }
}
