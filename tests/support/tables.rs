//! Structures through an engine, for tests.
#![allow(dead_code, reason = "each test binary uses its part")]

use rayon::ThreadPoolBuilder;
use std::sync::Arc;
use tapeloop::backend::{Backend, cpu::CpuBackend};
use tapeloop::features::{Column, FeatureConfig, FeatureTable, Features, Input};
use tapeloop::pipeline::{Engine, EngineConfig};
use tapeloop::structure::Structure;
use tapeloop::workload::Completion;

/// A column's values as bits, so that nulls are equal and zeros of different signs are not.
pub(crate) fn bits(column: Column<'_>) -> Vec<u32> {
    match column {
        Column::Count(values) => values.iter().map(|value| *value as u32).collect(),
        Column::Real(values) => values.iter().map(|value| value.to_bits()).collect(),
    }
}

/// The outcome for each structure, in order.
pub(crate) fn outcomes<'a>(
    engine: &mut Engine<Features>,
    structures: impl Iterator<Item = &'a Structure> + Send,
) -> Vec<tapeloop::Result<FeatureTable>> {
    let mut sent = 0;
    let inputs = structures.map(|structure| {
        sent += 1;
        Input::new("", 0, Ok(structure.clone()))
    });
    let mut outcomes = Vec::new();
    let mut sink = |done: Completion<Features>| {
        outcomes.push(done.result);
        Ok(())
    };
    engine.run(inputs, &mut sink).unwrap();
    assert_eq!(outcomes.len(), sent, "every structure has its outcome");
    outcomes
}

/// The table of each structure, none of which is rejected.
pub(crate) fn tables<'a>(
    engine: &mut Engine<Features>,
    structures: impl Iterator<Item = &'a Structure> + Send,
) -> Vec<FeatureTable> {
    let outcomes = outcomes(engine, structures).into_iter();
    outcomes.map(|outcome| outcome.unwrap()).collect()
}

/// The table of each structure, of a small engine on the CPU.
pub(crate) fn compute(features: FeatureConfig, structures: &[Structure]) -> Vec<FeatureTable> {
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap());
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    let mut plan = EngineConfig::new(Features::capacity(2048));
    plan.buckets.push(Features::capacity(32_768));
    let workload = Features::new(features).unwrap();
    let mut engine = Engine::new(workload, &[backend], pool, &plan).unwrap();
    tables(&mut engine, structures.iter())
}
