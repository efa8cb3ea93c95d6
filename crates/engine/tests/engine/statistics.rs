//! What the fronts say of where the time went.

use crate::scale::{Scale, TWIN_PANICS, vectors};
use rayon::ThreadPoolBuilder;
use std::sync::Arc;
use tapeloop_engine::backend::{Backend, cpu::CpuBackend};
use tapeloop_engine::pipeline::{
    Engine, EngineConfig, Pipeline, SpanKind, Statistics, TimelineConfig, TrySubmitError,
};
use tapeloop_engine::workload::Completion;

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
    // A batch that is written, or that waits for a slot, is no wait for items.
    for stage in [statistics.fill, statistics.stall] {
        let sum = stage.share + statistics.input.share;
        assert!(sum <= 1.01, "{statistics:?}");
    }
    // So small batches need no workers.
    assert_eq!(statistics.slots_awaiting_worker, 0.0);
    let most = statistics.slots as f64 + 0.01;
    let (filling, unpacking) = (statistics.slots_filling, statistics.slots_unpacking);
    let busy = filling + statistics.slots_in_flight + unpacking;
    assert!(
        filling > 0.0 && unpacking > 0.0 && busy <= most,
        "{statistics:?}"
    );
}

#[test]
fn the_wait_of_large_batches_for_a_worker_is_counted_and_shown() {
    let (backend, pool) = cpu();
    let mut config = EngineConfig::new([40_000, 2]);
    config.timeline = Some(TimelineConfig::default());
    let mut engine = Engine::new(Scale::new(2.0), &[backend], pool, &config).unwrap();
    let mut sink = |done: Completion<Scale>| done.result.map(drop);
    let items = (0..40).map(|_| vec![1.0; 20_000]);
    engine.run(items, &mut sink).unwrap();
    let statistics = engine.statistics();
    assert_eq!(statistics.workers, 0, "none but the pool");
    assert!(statistics.slots_awaiting_worker > 0.0, "{statistics:?}");
    let timeline = engine.timeline().unwrap();
    let waits = |batch| {
        let of_batch = timeline
            .spans
            .iter()
            .filter(move |span| span.batch == batch);
        of_batch
            .filter(|span| span.kind == SpanKind::Worker)
            .count()
    };
    // A thread of the pool writes, computes and reads it.
    assert_eq!([0, 1].map(waits), [1, 1]);
}

#[test]
fn a_pipeline_tells_of_every_batch_and_item() {
    let (backend, pool) = cpu();
    let config = EngineConfig::new([100, 100]);
    let mut pipeline = Pipeline::new(Scale::new(2.0), &[backend], pool, &config).unwrap();
    for mut item in vectors(300) {
        while let Err(TrySubmitError::Full(back)) = pipeline.submit(item) {
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

#[test]
fn every_device_tells_of_its_batches() {
    let items = vectors(1000);
    let run = |devices: usize| {
        let (_, pool) = cpu();
        let backend = || Arc::new(CpuBackend::new(Arc::clone(&pool))) as Arc<dyn Backend>;
        let backends: Vec<_> = (0..devices).map(|_| backend()).collect();
        let config = EngineConfig::new([100, 100]);
        let mut engine = Engine::new(Scale::new(2.0), &backends, pool, &config).unwrap();
        let mut outputs = Vec::new();
        let mut sink = |done: Completion<Scale>| -> tapeloop_engine::Result<()> {
            outputs.push(done.result?.0);
            Ok(())
        };
        engine.run(items.clone().into_iter(), &mut sink).unwrap();
        (outputs, engine.statistics(), engine.counters())
    };
    let (one, alone, _) = run(1);
    assert_eq!(alone.devices.len(), 1);
    assert_eq!(alone.devices[0].time, alone.device);
    let (three, statistics, counters) = run(3);
    assert!(three == one, "the results do not depend on the devices");
    assert_eq!((statistics.slots, statistics.devices.len()), (9, 3));
    let batches = statistics.devices.iter().map(|device| device.time.batches);
    assert_eq!(batches.sum::<u64>(), counters.batches);
    for own in &statistics.devices {
        // The first batches go to free slots in turn.
        assert!(own.time.batches >= 3, "{own:?}");
        assert!(own.time.busy_ns <= statistics.device.busy_ns, "{own:?}");
        assert!(own.time.share <= own.slots_in_flight && own.slots_in_flight <= 3.0);
        assert!(!own.is_lost);
    }
    let in_flight: f64 = statistics
        .devices
        .iter()
        .map(|device| device.slots_in_flight)
        .sum();
    assert!((in_flight - statistics.slots_in_flight).abs() < 1e-6);
}
