//! Runs whose results are mapped where they are read.

use crate::scale::{Scale, vectors};
use rayon::ThreadPoolBuilder;
use std::sync::Arc;
use tapeloop_engine::ErrorKind;
use tapeloop_engine::backend::{Backend, cpu::CpuBackend};
use tapeloop_engine::pipeline::{Engine, EngineConfig};
use tapeloop_engine::workload::Completion;

fn engine(config: &EngineConfig, threads: usize) -> Engine<Scale> {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = Arc::new(pool.unwrap());
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    Engine::new(Scale::new(2.0), &[backend], pool, config).unwrap()
}

#[test]
fn results_are_mapped_off_the_thread_that_accepts_them_and_stay_in_order() {
    let mut engine = engine(&EngineConfig::new([40_000, 40]), 3);
    let items = (0..300).map(|number| vec![number as f32; 1 + 1_000 * (number % 7)]);
    let map = |done: Completion<Scale>| {
        let values = done.result.unwrap().0;
        (values[0], std::thread::current().id())
    };
    let this = std::thread::current().id();
    let mut seen = Vec::new();
    let accept = |(value, thread)| {
        assert_ne!(thread, this);
        seen.push(value);
        Ok(())
    };
    engine.run_mapped(items, map, accept).unwrap();
    assert!(
        seen.iter()
            .copied()
            .eq((0..300).map(|number| 2.0 * number as f32))
    );
    assert!(engine.counters().map_ns > 0);
}

#[test]
fn a_panic_while_a_result_is_mapped_ends_the_run_and_leaves_the_engine_usable() {
    let mut engine = engine(&EngineConfig::new([100, 10]), 2);
    let map = |done: Completion<Scale>| {
        assert!(done.item[0] < 5_000.0, "planted");
        done.item[0]
    };
    let mut seen = Vec::new();
    let mut accept = |first| {
        seen.push(first);
        Ok(())
    };
    let ended = engine.run_mapped(vectors(500).into_iter(), map, &mut accept);
    let error = ended.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.message().contains("planted"), "{error}");
    // Those of whole batches before it.
    let firsts: Vec<f32> = vectors(50).iter().map(|vector| vector[0]).collect();
    assert!(seen.len() <= 50 && seen == firsts[..seen.len()], "{seen:?}");
    seen.clear();
    let accept = |first| {
        seen.push(first);
        Ok(())
    };
    engine
        .run_mapped(vectors(10).into_iter(), map, accept)
        .unwrap();
    assert_eq!(seen.len(), 10);
}
