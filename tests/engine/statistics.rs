//! What the fronts say of where the time went.

use crate::scale::{Scale, TWIN_PANICS, vectors};
use rayon::ThreadPoolBuilder;
use std::sync::Arc;
use tapeloop::backend::{Backend, cpu::CpuBackend};
use tapeloop::pipeline::{Engine, EngineConfig, Pipeline, Refused, Statistics};
use tapeloop::workload::Completion;

fn cpu() -> (Arc<dyn Backend>, Arc<rayon::ThreadPool>) {
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap());
    (Arc::new(CpuBackend::new(Arc::clone(&pool))), pool)
}

/// What holds of every run to its end.
fn check(statistics: &Statistics, batches: u64, items: u64) {
    assert!(statistics.wall_ns > 0);
    assert_eq!(statistics.batch_latency.count(), batches);
    // Of each batch the first item, and every 64th after it.
    let latencies = statistics.item_latency.count();
    assert!((items.div_ceil(64)..=items).contains(&latencies) && latencies >= batches);
    for latencies in [&statistics.batch_latency, &statistics.item_latency] {
        let quantiles = [0.5, 0.9, 0.99].map(|quantile| latencies.quantile_ns(quantile));
        assert!(quantiles[0] > 0 && quantiles.is_sorted(), "{latencies:?}");
        assert!(quantiles[2] <= latencies.max_ns(), "{latencies:?}");
    }
    let (device, in_flight) = (statistics.device, statistics.slots_in_flight);
    assert_eq!(device.batches, batches);
    assert!(device.share > 0.0 && device.share <= 1.0, "{device:?}");
    let slots = statistics.slots as f64;
    assert!(
        device.share <= in_flight && in_flight <= slots,
        "{in_flight}"
    );
    let busy = statistics.fill.share + device.share + statistics.unpack.share;
    assert!((statistics.overlap - busy).abs() < 1e-9);
    let name = statistics.bound.expect("there were batches").name();
    assert!(["input", "fill", "device", "unpack", "output"].contains(&name));
}

#[test]
fn an_engine_tells_of_every_batch_and_item() {
    let (backend, pool) = cpu();
    let config = EngineConfig::new([100, 100]);
    let mut engine = Engine::new(Scale::new(2.0), &[backend], pool, &config).unwrap();
    assert_eq!(engine.statistics().bound, None);
    let mut sink = |done: Completion<Scale>| done.result.map(drop);
    engine.run(vectors(1000).into_iter(), &mut sink).unwrap();
    let (statistics, counters) = (engine.statistics(), engine.counters());
    check(&statistics, counters.batches, 1000);
    assert_eq!(statistics.slots, 3);
    // Stage one does one thing at a time.
    let stages = [statistics.fill, statistics.stall, statistics.input];
    let sum: f64 = stages.iter().map(|time| time.share).sum();
    assert!(sum <= 1.01, "{statistics:?}");
}

#[test]
fn a_pipeline_tells_of_every_batch_and_item() {
    let (backend, pool) = cpu();
    let config = EngineConfig::new([100, 100]);
    let mut pipeline = Pipeline::new(Scale::new(2.0), &[backend], pool, &config).unwrap();
    for mut item in vectors(300) {
        while let Err(Refused(back)) = pipeline.submit(item) {
            pipeline.poll();
            item = back;
        }
    }
    while pipeline.wait().is_some() {}
    check(&pipeline.statistics(), pipeline.counters().batches, 300);
}

#[test]
fn a_batch_that_fails_is_not_left_in_flight() {
    let (backend, pool) = cpu();
    let config = EngineConfig::new([1, 1]);
    let mut pipeline = Pipeline::new(Scale::new(2.0), &[backend], pool, &config).unwrap();
    for value in [1.0, TWIN_PANICS, 2.0] {
        pipeline.submit(vec![value]).unwrap();
        pipeline.wait().unwrap();
    }
    let statistics = pipeline.statistics();
    assert_eq!(
        statistics.device.batches, 3,
        "the failed one is not left out"
    );
    assert_eq!(statistics.item_latency.count(), 3);
    assert_eq!(pipeline.statistics(), statistics, "no clock runs on");
}
