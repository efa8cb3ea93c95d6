//! The buckets of an engine whose configuration names none.

use crate::scale::Scale;
use rayon::ThreadPoolBuilder;
use std::sync::Arc;
use tapeloop_engine::backend::{Backend, cpu::CpuBackend};
use tapeloop_engine::pipeline::{EngineConfig, Pipeline};
use tapeloop_engine::replay::Mode;
use tapeloop_engine::workload::Extent;

const ELEMENTS: u32 = 1 << 20;

fn pipeline(workload: Scale, config: &EngineConfig) -> Pipeline<Scale> {
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    Pipeline::new(workload, &[backend], pool, config).unwrap()
}

/// Runs one vector of so many elements, and returns the bytes that its batch copied, and how many of
/// them it uses.
fn copied(pipeline: &mut Pipeline<Scale>, elements: usize) -> [u64; 2] {
    let before = pipeline.counters();
    let item = vec![elements as f32; elements];
    pipeline.submit(item).map_err(|_| "full").unwrap();
    let (_, done) = pipeline.wait().unwrap();
    assert!(done.result.unwrap().0 == vec![2.0 * elements as f32; elements]);
    let after = pipeline.counters();
    let copied = after.copied_bytes - before.copied_bytes;
    [
        copied,
        copied - (after.padding_bytes - before.padding_bytes),
    ]
}

#[test]
fn small_batches_copy_at_most_twice_what_they_use() {
    let mut config = EngineConfig::new([ELEMENTS, 10]);
    config.slots = 2;
    let mut pipeline = pipeline(Scale::new(2.0), &config);
    for elements in [2, 40_000, 262_144, 300_000, 524_289, ELEMENTS as usize] {
        let [copied, used] = copied(&mut pipeline, elements);
        // The smallest bucket is of 32 KiB each way, and the header comes on top.
        assert!(
            copied <= (2 * used).max(65_700),
            "{copied} bytes for {used}"
        );
    }
    // Many small items are a small batch too: the few bytes along their axis stay.
    let before = pipeline.counters();
    for _ in 0..10 {
        pipeline.submit(vec![1.0, 2.0]).map_err(|_| "full").unwrap();
    }
    pipeline.flush();
    for _ in 0..10 {
        assert_eq!(pipeline.wait().unwrap().1.result.unwrap().0, [2.0, 4.0]);
    }
    let after = pipeline.counters();
    let (copied, batches) = (
        after.copied_bytes - before.copied_bytes,
        after.batches - before.batches,
    );
    assert!(
        copied <= 65_700 * batches,
        "{copied} bytes for {batches} batches"
    );
}

#[test]
fn mode_resident_and_a_limit_of_ready_buckets_have_fewer() {
    let mut config = EngineConfig::new([ELEMENTS, 10]);
    config.policy.mode = Mode::Resident;
    let [all, _] = copied(&mut pipeline(Scale::new(2.0), &config), 2);
    assert!(all > 8 << 20, "one bucket: the whole batch is copied");
    config.policy.mode = Mode::Graph;
    config.policy.ready_max = 2;
    let mut two = pipeline(Scale::new(2.0), &config);
    let [half, _] = copied(&mut two, 2);
    assert!(
        (4 << 20..all / 2 + 1_000).contains(&half),
        "{half} of {all}"
    );
    assert_eq!(copied(&mut two, ELEMENTS as usize)[0], all);
    assert_eq!(two.counters().bucket_evictions, 0);
    // Those that are named stay.
    config.policy.ready_max = usize::MAX;
    config.buckets = vec![Extent::from([ELEMENTS, 10])];
    assert_eq!(copied(&mut pipeline(Scale::new(2.0), &config), 2)[0], all);
}

#[test]
fn a_workload_that_records_full_batches_alone_has_one_bucket() {
    let config = EngineConfig::new([ELEMENTS, 10]);
    let mut pipeline = pipeline(Scale::new(2.0).for_capacities_from(ELEMENTS), &config);
    let [copied, _] = copied(&mut pipeline, 2);
    assert!(copied > 8 << 20);
}
