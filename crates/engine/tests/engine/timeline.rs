//! Timelines of the fronts, on the CPU and on the simulated device.

use crate::random::Random;
use crate::scale::{Scale, doubled, vectors};
use crate::seeds::each_seed;
use crate::seeds::simulated::{assert_clean, device};
use rayon::ThreadPoolBuilder;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tapeloop_conformance::program::policies;
use tapeloop_engine::backend::{Backend, cpu::CpuBackend};
use tapeloop_engine::pipeline::{
    Engine, EngineConfig, Pipeline, Span, SpanKind, Timeline, TimelineConfig,
};
use tapeloop_engine::workload::Completion;

fn cpu() -> (Arc<dyn Backend>, Arc<rayon::ThreadPool>) {
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap());
    (Arc::new(CpuBackend::new(Arc::clone(&pool))), pool)
}

fn config(timeline: Option<TimelineConfig>) -> EngineConfig {
    let mut config = EngineConfig::new([100, 100]);
    config.timeline = timeline;
    config
}

/// Runs `count` items, each checked.
fn run(engine: &mut Engine<Scale>, count: usize) {
    let items = vectors(count);
    let mut seen = 0;
    let mut sink = |done: Completion<Scale>| {
        assert_eq!(done.result?.0, doubled(&items[seen]));
        seen += 1;
        Ok(())
    };
    engine.run(items.iter().cloned(), &mut sink).unwrap();
    assert_eq!(seen, count);
}

fn by_batch(timeline: &Timeline) -> BTreeMap<u64, Vec<Span>> {
    let mut batches: BTreeMap<u64, Vec<Span>> = BTreeMap::new();
    for span in &timeline.spans {
        batches.entry(span.batch).or_default().push(*span);
    }
    batches
}

#[test]
fn a_sampled_batch_has_every_span_in_the_order_of_the_stages() {
    for policy in policies() {
        let (backend, pool) = cpu();
        let mut config = config(Some(TimelineConfig::default()));
        config.policy = policy;
        let mut engine = Engine::new(Scale::new(2.0), &[backend], pool, &config).unwrap();
        run(&mut engine, 40);
        let timeline = engine.timeline().unwrap();
        assert_eq!(timeline.batches, engine.counters().batches);
        let window = 0..timeline.batches.min(14);
        assert_eq!(timeline.windows().first(), Some(&window));
        for (batch, spans) in by_batch(&timeline) {
            let spans_of = |kind: SpanKind| {
                let mut of_kind = spans.iter().filter(|span| span.kind == kind);
                let span = of_kind
                    .next()
                    .unwrap_or_else(|| panic!("batch {batch}: {kind:?}"));
                assert!(of_kind.next().is_none(), "batch {batch}: {kind:?} twice");
                assert!(span.slot == spans[0].slot && span.slot < 3);
                (span.start_ns, span.end_ns)
            };
            let host = [
                SpanKind::Stall,
                SpanKind::Fill,
                SpanKind::Flight,
                SpanKind::Unpack,
                SpanKind::Take,
            ];
            let ends: Vec<u64> = host
                .iter()
                .flat_map(|kind| <[u64; 2]>::from(spans_of(*kind)))
                .collect();
            assert!(ends.is_sorted(), "{policy:?}: {spans:?}");
            let (given, seen) = spans_of(SpanKind::Flight);
            assert_eq!(spans_of(SpanKind::Submit).0, given);
            let device = SpanKind::OF_DEVICE.map(spans_of);
            assert!(given <= device[0].0 && device[2].1 <= seen, "{spans:?}");
            assert_eq!((device[0].1, device[1].1), (device[1].0, device[2].0));
        }
        assert!(engine.statistics().device_overlap.unwrap() >= 1.0);
    }
}

#[test]
fn batches_of_one_slot_follow_each_other() {
    let (backend, pool) = cpu();
    let every = TimelineConfig {
        every: 1,
        ..TimelineConfig::default()
    };
    let config = config(Some(every));
    let mut engine = Engine::new(Scale::new(2.0), &[backend], pool, &config).unwrap();
    run(&mut engine, 400);
    let timeline = engine.timeline().unwrap();
    let all = 0..timeline.batches;
    assert_eq!(timeline.windows().first(), Some(&all));
    let mut free = [0; 3];
    for span in timeline.spans {
        match span.kind {
            SpanKind::Fill => assert!(free[span.slot] <= span.start_ns, "{span:?}"),
            SpanKind::Unpack => free[span.slot] = span.end_ns,
            _ => {}
        }
    }
}

#[test]
fn windows_are_of_consecutive_batches_now_and_again() {
    let (backend, pool) = cpu();
    let sampled = TimelineConfig {
        every: 20,
        window: Some(4),
        ..TimelineConfig::default()
    };
    let config = config(Some(sampled));
    let mut pipeline = Pipeline::new(Scale::new(2.0), &[backend], pool, &config).unwrap();
    for item in vectors(50) {
        pipeline.submit(item).unwrap();
        // A batch each.
        pipeline.wait().unwrap();
    }
    let timeline = pipeline.timeline().unwrap();
    assert_eq!(timeline.windows(), [0..10, 26..30, 46..50]);
    // The caller's thread does all, and takes no results.
    let kinds = timeline.spans.iter().map(|span| span.kind);
    assert!(
        !kinds
            .clone()
            .any(|kind| kind == SpanKind::Worker || kind == SpanKind::Take)
    );
    assert_eq!(kinds.len(), 18 * (SpanKind::ALL.len() - 2));
}

#[test]
fn without_a_timeline_nothing_is_timed_and_with_one_only_what_is_sampled() {
    let counted = |timeline: Option<TimelineConfig>| {
        let (backend, pool) = cpu();
        let backends = [Arc::clone(&backend)];
        let mut engine = Engine::new(Scale::new(2.0), &backends, pool, &config(timeline)).unwrap();
        let built = backend.driver_calls();
        run(&mut engine, 1000);
        let calls = backend.driver_calls();
        let given = calls.submissions - built.submissions;
        assert_eq!(given, engine.counters().driver_calls);
        assert_eq!(given, 2 * engine.counters().batches, "a launch and a mark");
        assert_eq!(engine.timeline().is_some(), timeline.is_some());
        (calls.timings, calls.graph_edits - built.graph_edits)
    };
    assert_eq!(counted(None), (0, 0));
    // Timestamps are read for each of the first batches, and each slot that they are in
    // makes one graph.
    let (timings, edits) = counted(Some(TimelineConfig::default()));
    assert_eq!(timings, 14);
    assert!((1..=2 * 3).contains(&edits), "{edits}");
}

#[test]
fn sampling_breaks_no_rule_in_any_way_to_replay() {
    let (pool, policies) = (cpu().1, policies());
    each_seed(10, |seed| {
        for policy in &policies {
            let (sim, backend) = device(seed);
            let mut random = Random::new(seed);
            let mut config = config(Some(TimelineConfig {
                every: 1 + random.below(5) as u64,
                window: Some(1 + random.below(3) as u64),
                ..TimelineConfig::default()
            }));
            (config.policy, config.slots) = (*policy, 1 + random.below(4));
            let pool = Arc::clone(&pool);
            let mut engine = Engine::new(Scale::new(2.0), &[backend], pool, &config).unwrap();
            run(&mut engine, 60);
            let timeline = engine.timeline().unwrap();
            let kinds: BTreeSet<&str> = timeline.spans.iter().map(|s| s.kind.name()).collect();
            assert!(kinds.contains("in flight"), "{kinds:?}");
            drop(engine);
            assert_clean(&sim);
        }
    });
}

#[test]
fn a_timeline_has_the_slots_of_every_device() {
    let (backend, pool) = cpu();
    let another: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    let backends = [Arc::clone(&backend), another];
    let config = config(Some(TimelineConfig::default()));
    let mut engine = Engine::new(Scale::new(2.0), &backends, pool, &config).unwrap();
    run(&mut engine, 1000);
    let timeline = engine.timeline().unwrap();
    let name = &backend.device().name;
    assert_eq!(timeline.devices, [name.clone(), name.clone()]);
    let slots = timeline.slots;
    let devices = (0..slots).map(|slot| timeline.device_of(slot));
    assert!(devices.eq((0..slots).map(|slot| slot * 2 / slots)));
    for device in 0..2 {
        let mut spans = timeline.spans.iter();
        assert!(spans.any(|span| timeline.device_of(span.slot) == device));
    }
    let json = timeline.to_chrome_json();
    assert!(json.contains(&format!("device 1 ({name})")), "{json}");
}
