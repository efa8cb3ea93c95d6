//! The fronts without threads, on the CPU backend.

mod uniforms;

use crate::scale::{READ_FAILS, Scale, TWIN_PANICS, WRITE_FAILS, WRITE_PANICS, doubled, vectors};
use rayon::ThreadPoolBuilder;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tapeloop_engine::backend::DeviceInfo;
use tapeloop_engine::backend::{Backend, cpu::CpuBackend};
use tapeloop_engine::pipeline::{
    Close, Engine, EngineConfig, Packer, Pipeline, Ring, SubmitOptions, TrySubmitError, Wait,
};
use tapeloop_engine::record::{Arg, Buffer, DType, HEADER_LEN, Kernel, Recorder, Scalar, Uniform};
use tapeloop_engine::replay::{Buckets, Mode, Policy, Verify};
use tapeloop_engine::workload::{Completion, Extent, ReadViews, Workload, WriteViews};
use tapeloop_engine::{ErrorKind, Result};
use tapeloop_sim::{Fault, SimBackend, SimOptions};

fn cpu() -> (Arc<dyn Backend>, Arc<rayon::ThreadPool>) {
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap());
    (Arc::new(CpuBackend::new(Arc::clone(&pool))), pool)
}

fn pipeline<W: Workload>(workload: W, config: &EngineConfig) -> Pipeline<W> {
    let (backend, pool) = cpu();
    Pipeline::new(workload, &[backend], pool, config).unwrap()
}

/// Submits everything, polling where a slot is missing, and waits for the rest.
fn drive(pipeline: &mut Pipeline<Scale>, items: &[Vec<f32>]) -> Vec<(u64, Completion<Scale>)> {
    let mut out = Vec::new();
    for item in items {
        let mut item = item.clone();
        while let Err(TrySubmitError::Full(back)) = pipeline.submit(item) {
            out.extend(pipeline.poll());
            item = back;
        }
    }
    out.extend(std::iter::from_fn(|| pipeline.wait()));
    assert!(pipeline.is_idle());
    out
}

#[test]
fn every_item_comes_out_once_with_its_number() {
    let items = vectors(1000);
    for (slots, wait) in [(1, Wait::Block), (3, Wait::Spin)] {
        for mode in [Mode::Graph, Mode::Stream] {
            let mut config = EngineConfig::new([100, 100]);
            (config.slots, config.wait, config.policy.mode) = (slots, wait, mode);
            let mut pipeline = pipeline(Scale::new(2.0), &config);
            let mut seen = BTreeMap::new();
            for (number, done) in drive(&mut pipeline, &items) {
                assert_eq!(done.item, items[number as usize]);
                assert_eq!(done.result.unwrap().0, doubled(&done.item));
                assert_eq!(seen.insert(number, ()), None);
            }
            assert_eq!(seen.len(), items.len());
            assert_eq!(pipeline.counters().items_done, items.len() as u64);
        }
    }
}

#[test]
fn a_full_pipeline_gives_the_item_back() {
    let mut config = EngineConfig::new([10, 10]);
    config.slots = 2;
    // The CPU finishes whenever it is asked, so only what was never polled is
    // in the way: two slots in flight, one closed batch, one that is open.
    let mut pipeline = pipeline(Scale::new(2.0), &config);
    let taken = (0..4).filter(|_| pipeline.submit(vec![1.0; 10]).is_ok());
    assert_eq!(taken.count(), 4);
    assert_eq!(pipeline.submit(vec![2.0; 10]).ok(), Some(4), "after a look");
    let numbers: Vec<u64> = std::iter::from_fn(|| pipeline.wait())
        .map(|(number, _)| number)
        .collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4]);
}

#[test]
fn a_batch_closes_at_its_time_and_not_before() {
    let mut config = EngineConfig::new([100, 100]);
    config.batch_wait = Duration::from_secs(5);
    let mut pipeline = pipeline(Scale::new(2.0), &config);
    let now = Instant::now();
    let options = SubmitOptions::default();
    pipeline.submit_at(vec![1.0], options, now).unwrap();
    assert!(pipeline.poll_at(now + Duration::from_secs(4)).is_none());
    assert_eq!(pipeline.closes_at(), Some(now + Duration::from_secs(5)));
    let (_, done) = pipeline.poll_at(now + Duration::from_secs(5)).unwrap();
    assert_eq!(done.result.unwrap().0, [2.0]);
    let urgent = SubmitOptions {
        urgent: true,
        ..options
    };
    pipeline.submit_at(vec![3.0], urgent, now).unwrap();
    assert!(
        pipeline.poll_at(now).is_some(),
        "an urgent item goes at once"
    );
    assert!(pipeline.wait().is_none(), "nothing is left");
}

#[test]
fn an_urgent_item_goes_as_soon_as_there_is_a_slot() {
    let mut config = EngineConfig::new([10, 10]);
    (config.slots, config.batch_wait) = (1, Duration::MAX);
    let mut pipeline = pipeline(Scale::new(2.0), &config);
    let now = Instant::now();
    let urgent = SubmitOptions {
        urgent: true,
        ..SubmitOptions::default()
    };
    // The last finds one batch in the only slot and one that waits for it.
    for options in [SubmitOptions::default(), SubmitOptions::default(), urgent] {
        pipeline.submit_at(vec![1.0; 10], options, now).unwrap();
    }
    for number in 0..3 {
        assert_eq!(pipeline.poll_at(now).unwrap().0, number);
    }
}

#[test]
fn results_that_nobody_takes_do_not_keep_a_batch_open() {
    let mut config = EngineConfig::new([2, 2]);
    config.batch_wait = Duration::ZERO;
    let mut pipeline = pipeline(Scale::new(2.0), &config);
    let now = Instant::now();
    for _ in 0..3 {
        let options = SubmitOptions::default();
        pipeline.submit_at(vec![1.0], options, now).unwrap();
    }
    assert_eq!(pipeline.poll_at(now).unwrap().0, 0);
    pipeline
        .submit_at(vec![1.0], SubmitOptions::default(), now)
        .unwrap();
    assert_eq!(pipeline.poll_at(now).unwrap().0, 1);
    assert_eq!(pipeline.closes_at(), None);
}

#[test]
fn a_slot_whose_batch_failed_is_used_again() {
    let (backend, _pool) = cpu();
    let kernel = Kernel::new("fails")
        .writes::<f32>("y")
        .twin(|_| panic!("planted"));
    let mut recorder = Recorder::new(&[1]);
    let y = recorder.download_buffer::<f32>("y", 0, 1);
    recorder.launch(&kernel, 1, &[y.into()]);
    recorder.download(y);
    let buckets = Arc::new(Buckets::single(recorder.finish().unwrap()));
    let mut ring = Ring::new(&backend, &buckets, 1, &Policy::default(), Wait::Spin).unwrap();
    for number in 0..3 {
        let slot = ring.acquire().unwrap();
        ring.submit(slot, Extent::from([1]), number).unwrap();
        let finished = ring.wait().unwrap();
        let (batch, error) = ring.release(finished);
        assert_eq!((batch, error.unwrap().kind()), (number, ErrorKind::Kernel));
    }
}

#[test]
fn a_slot_of_a_lost_device_is_gone_from_its_ring() {
    let (workload, capacity) = (Scale::new(2.0), Extent::from([8, 1]));
    let (_, pool) = cpu();
    let faults = vec![Fault::Kernel { launch: 0 }];
    let sim = SimBackend::new(SimOptions {
        faults,
        ..SimOptions::seeded(1)
    });
    let backend: Arc<dyn Backend> = Arc::new(sim);
    let packer = Packer::new(workload, &[capacity], &backend, pool).unwrap();
    let policy = Policy {
        verify: Verify::Off,
        ..Policy::default()
    };
    let mut ring = Ring::new(&backend, &packer.buckets(), 1, &policy, Wait::Spin).unwrap();
    let mut slot = ring.acquire().unwrap();
    let packed = packer.pack(&mut slot, vec![vec![1.0]]).ok().unwrap();
    ring.submit(slot, packed.extent(), packed).unwrap();
    let finished = ring.wait().unwrap();
    let (_, error) = ring.release(finished);
    assert_eq!(error.unwrap().code(), Some(700));
    // What is not known to be over must not be written again.
    assert!(ring.acquire().is_none() && ring.wait().is_none());
}

#[test]
fn bad_items_are_rejected_alone() {
    let mut pipeline = pipeline(Scale::new(2.0), &EngineConfig::new([100, 100]));
    let items = [
        vec![1.0],
        vec![WRITE_FAILS],
        vec![],
        vec![WRITE_PANICS],
        vec![0.0; 101],
        vec![READ_FAILS],
        vec![2.0],
    ];
    let outcomes: Vec<bool> = drive(&mut pipeline, &items)
        .into_iter()
        .map(|(_, done)| done.result.is_ok())
        .collect();
    assert_eq!(outcomes, [true, false, false, false, false, false, true]);
}

#[test]
fn a_batch_that_fails_takes_no_other_with_it() {
    let mut pipeline = pipeline(Scale::new(2.0), &EngineConfig::new([1, 1]));
    let items = [vec![1.0], vec![TWIN_PANICS], vec![2.0]];
    let mut back = drive(&mut pipeline, &items);
    back.sort_by_key(|(number, _)| *number);
    let kinds: Vec<_> = back
        .into_iter()
        .map(|(_, done)| (done.item, done.result.err().map(|error| error.kind())))
        .collect();
    let expected = [None, Some(ErrorKind::Kernel), None];
    assert!(kinds.into_iter().eq(items.into_iter().zip(expected)));
    assert_eq!(pipeline.submit(vec![3.0]).ok(), Some(3));
    let (_, late) = pipeline.wait().unwrap();
    assert_eq!(late.result.unwrap().0, [6.0]);
    assert_eq!(pipeline.counters().batches_failed, 1);
}

#[test]
fn graphs_copy_their_bucket_and_stream_launches_what_is_live() {
    let run = |mode: Mode| {
        let mut config = EngineConfig::new([1000, 10]);
        config.policy.mode = mode;
        let mut pipeline = pipeline(Scale::new(2.0), &config);
        for (_, done) in drive(&mut pipeline, &[vec![1.0; 100], vec![2.0; 50]]) {
            assert_eq!(done.result.unwrap().0, doubled(&done.item));
        }
        pipeline.counters()
    };
    // x, starts and y are 4 bytes a unit, and so are the elements of the header.
    let header = 4 * HEADER_LEN as u64;
    let (graph, stream) = (run(Mode::Graph), run(Mode::Stream));
    assert_eq!(graph.copied_bytes, 4 * (1000 + 10 + 1000) + header);
    assert_eq!(graph.padding_bytes, 4 * (850 + 8 + 850));
    assert_eq!(stream.copied_bytes, 4 * (150 + 2 + 150) + header);
    assert_eq!(stream.padding_bytes, 0);
    assert_eq!((graph.driver_calls, stream.driver_calls), (2, 6));
}

#[test]
fn buckets_beyond_the_limit_are_made_and_dropped_as_they_are_used() {
    let mut config = EngineConfig::new([300, 10]);
    config.buckets = [10, 100, 300].map(|n| Extent::from([n, 10])).to_vec();
    (config.slots, config.policy.ready_max) = (1, 2);
    let mut pipeline = pipeline(Scale::new(2.0), &config);
    // 10 and 100 are ready from the start.
    let sizes = [5, 50, 5, 250, 50, 5, 250];
    for size in sizes {
        pipeline.submit(vec![size as f32; size]).unwrap();
        let (_, done) = pipeline.wait().unwrap();
        assert_eq!(done.result.unwrap().0, vec![2.0 * size as f32; size]);
    }
    let counters = pipeline.counters();
    // 250 drops 50, which drops 5, which drops 250, which drops 50.
    assert_eq!((counters.bucket_hits, counters.bucket_misses), (3, 4));
    assert_eq!(counters.bucket_evictions, 4);
}

#[test]
fn lazy_buckets_are_made_at_their_first_batch() {
    let mut config = EngineConfig::new([300, 10]);
    config.buckets = [10, 300].map(|n| Extent::from([n, 10])).to_vec();
    (config.slots, config.policy.warm_up) = (1, false);
    let mut pipeline = pipeline(Scale::new(2.0), &config);
    drive(&mut pipeline, &[vec![1.0; 200]]);
    drive(&mut pipeline, &[vec![1.0; 200]]);
    let counters = pipeline.counters();
    assert_eq!((counters.bucket_hits, counters.bucket_misses), (1, 1));
}

/// Multiplies by a uniform, and adds a constant.
fn by_uniform() -> Kernel {
    let kernel = Kernel::new("by_uniform")
        .reads::<u32>("header")
        .reads::<f32>("x")
        .reads::<f32>("factor")
        .reads::<f32>("summand")
        .writes::<f32>("y");
    kernel.twin(|launch| {
        let live = launch.read::<u32>()[0] as usize;
        let x: &[f32] = launch.read();
        let [factor, summand] = [0, 1].map(|_| launch.read::<f32>()[0]);
        let y: &mut [f32] = launch.write();
        for i in 0..live {
            y[i] = x[i] * factor + summand;
        }
    })
}

/// Records [`by_uniform`]. Returns `x`, `y` and the uniform that multiplies.
fn record_by_uniform(
    recorder: &mut Recorder,
    kernel: &Kernel,
    [factor, summand]: [f32; 2],
) -> (Buffer<f32>, Buffer<f32>, Uniform<f32>) {
    let factor = recorder.uniform("factor", factor);
    let summand = recorder.constant("summand", summand);
    let header = recorder.header();
    let x = recorder.upload_buffer("x", 0, 1);
    let y = recorder.download_buffer("y", 0, 1);
    recorder.upload(header);
    recorder.upload(x);
    let args = [
        header.into(),
        x.into(),
        factor.into(),
        summand.into(),
        y.into(),
    ];
    recorder.launch(kernel, 1, &args);
    recorder.download(y);
    (x, y, factor)
}

#[test]
fn a_ring_takes_whole_batches_filled_in_place() {
    let (backend, _pool) = cpu();
    let mut recorder = Recorder::new(&[100]);
    let (x, y, factor) = record_by_uniform(&mut recorder, &by_uniform(), [2.0, 0.5]);
    let buckets = Arc::new(Buckets::single(recorder.finish().unwrap()));
    let mut ring: Ring<usize> =
        Ring::new(&backend, &buckets, 2, &Policy::default(), Wait::Spin).unwrap();
    let allocations = backend.driver_calls().allocations;
    for round in 0..50 {
        for tag in 0..2 {
            let mut slot = ring.acquire().unwrap();
            slot.write_header(Extent::from([100]), 1);
            if tag == 1 {
                slot.write_uniform(factor, round as f32);
            }
            slot.write(x).fill((round + tag) as f32);
            ring.submit(slot, Extent::from([100]), tag).unwrap();
        }
        assert!(ring.acquire().is_none(), "both are in flight");
        while let Some(finished) = ring.wait() {
            let slot = finished.as_ref().ok().unwrap();
            let factor = [2.0, round as f32][*slot.batch()];
            let expected = factor * (round + slot.batch()) as f32 + 0.5;
            assert_eq!(slot.read(y), [expected; 100]);
            let (tag, error) = ring.release(finished);
            assert!(tag < 2 && error.is_none());
        }
    }
    assert_eq!(backend.driver_calls().allocations, allocations);
}

#[test]
fn the_combinations_of_a_policy_are_each_there_once() {
    let all: Vec<Policy> = Policy::combinations().collect();
    // Captured or explicit graphs, launched or resident, and stream launches, each with three
    // transfers.
    assert_eq!(all.len(), 2 * 2 * 3 + 3);
    for (place, policy) in all.iter().enumerate() {
        policy.check().unwrap();
        assert!(!all[..place].contains(policy), "{policy:?} is there twice");
    }
}

#[test]
fn a_full_batch_goes_at_once() {
    let mut config = EngineConfig::new([10, 10]);
    config.batch_wait = Duration::MAX;
    let mut pipeline = pipeline(Scale::new(2.0), &config);
    pipeline.submit(vec![1.0; 4]).unwrap();
    pipeline.submit(vec![2.0; 6]).unwrap();
    assert!(pipeline.poll().is_some(), "ten fill ten, without a flush");
    assert!(pipeline.poll().is_some());
    assert!(pipeline.is_idle());
}

#[test]
fn a_flush_while_a_batch_waits_for_a_slot_is_kept() {
    let mut config = EngineConfig::new([10, 10]);
    (config.slots, config.batch_wait) = (1, Duration::MAX);
    let mut pipeline = pipeline(Scale::new(2.0), &config);
    pipeline.submit(vec![1.0; 10]).unwrap();
    // One in flight, one that waits, and one that is open.
    pipeline.submit(vec![2.0; 7]).unwrap();
    pipeline.submit(vec![3.0; 7]).unwrap();
    pipeline.flush();
    let numbers: Vec<u64> = (0..10)
        .filter_map(|_| pipeline.poll().map(|(number, _)| number))
        .collect();
    assert_eq!(numbers, [0, 1, 2]);
}

#[test]
fn a_packed_slot_goes_round_again_and_gives_the_same() {
    let (backend, pool) = cpu();
    let buckets = [Extent::from([10, 10])];
    let packer = Packer::new(Scale::new(2.0), &buckets, &backend, pool).unwrap();
    let policy = Policy::default();
    let mut ring = Ring::new(&backend, &packer.buckets(), 1, &policy, Wait::Spin).unwrap();
    let mut slot = ring.acquire().unwrap();
    let items = vec![vec![1.0, 2.0], vec![WRITE_FAILS], vec![3.0]];
    let mut packed = packer
        .pack(&mut slot, items.clone())
        .map_err(|(e, _)| e)
        .unwrap();
    assert!(packed.items().eq(&items));
    for _ in 0..3 {
        ring.submit(slot, packed.extent(), packed).unwrap();
        let finished = ring.wait().unwrap();
        let results = packer.read(finished.as_ref().unwrap());
        let values: Vec<_> = results.into_iter().map(|r| Some(r.ok()?.0)).collect();
        assert_eq!(values, [Some(vec![2.0, 4.0]), None, Some(vec![6.0])]);
        packed = ring.release(finished).0;
        slot = ring.acquire().unwrap();
    }
    let (error, items) = packer.pack(&mut slot, vec![vec![0.0; 6]; 2]).err().unwrap();
    assert_eq!((error.kind(), items.len()), (ErrorKind::Usage, 2));
    assert!(packer.pack(&mut slot, Vec::new()).is_err());
}

#[test]
fn a_packer_packs_what_a_ring_over_some_of_its_buckets_holds() {
    let (backend, pool) = cpu();
    let sizes = [[4, 10], [64, 10]].map(Extent::from);
    let packer = Packer::new(Scale::new(2.0), &sizes, &backend, pool).unwrap();
    let small = Buckets::new(vec![packer.buckets().as_slice()[0].clone()]).unwrap();
    let policy = Policy::default();
    let mut ring = Ring::<()>::new(&backend, &Arc::new(small), 1, &policy, Wait::Spin).unwrap();
    let mut slot = ring.acquire().unwrap();
    let items = vec![vec![0.0; 3]; 2];
    let (error, _) = packer.pack(&mut slot, items).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(packer.pack(&mut slot, vec![vec![0.0; 4]]).is_ok());
}
