//! Batches that fail, or whose results cannot be read, and leave the engine running.

use super::*;
use crate::scale::{Scale, TWIN_PANICS, WRITE_FAILS, WRITE_PANICS, doubled};
use std::num::NonZeroU32;
use tapeloop_engine::pipeline::{Close, Packer};
use tapeloop_engine::workload::BatchItem;

#[test]
fn a_twin_that_panics_fails_its_batch() {
    let engine = engine(&cpu(), &config());
    let error = ask(&engine, number(PANICS)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Kernel);
    check_alive(&engine, &error, ErrorScope::Batch);
}

#[test]
fn a_batch_that_comes_out_differently_fails_alone() {
    let mut config = config();
    config.policy.verify = Verify::Every(NonZeroU32::MIN);
    for backend in [cpu(), sim(Vec::new()).1] {
        let engine = engine(&backend, &config);
        let error = ask(&engine, number(NOISY)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Mismatch);
        check_alive(&engine, &error, ErrorScope::Batch);
    }
}

#[test]
fn calls_that_the_device_refuses_fail_their_batch() {
    for build in [Build::Capture, Build::Explicit] {
        let mut config = config();
        (config.policy.build, config.policy.fallback) = (build, Fallback::None);
        // The first submissions of a device zero nothing here: graph, then mark.
        for (fault, code, scope) in [
            (Fault::Submission { submission: 0 }, 701, ErrorScope::Batch),
            (Fault::Submission { submission: 1 }, 701, ErrorScope::Batch),
        ] {
            let (sim, backend) = sim(vec![fault]);
            let engine = engine(&backend, &config);
            let error = ask(&engine, number(5)).unwrap_err();
            assert_eq!(error.code(), Some(code), "{error}");
            check_alive(&engine, &error, scope);
            drop((engine, backend));
            assert_eq!((sim.violations(), sim.live()), (vec![], Live::default()));
        }
    }
}

#[test]
fn a_graph_that_cannot_be_made_fails_its_batches_alone() {
    let mut config = config();
    (config.policy.warm_up, config.policy.fallback) = (false, Fallback::None);
    config.slots = 1;
    for (fault, code) in [
        (Fault::Graph { graph: 0 }, 2),
        (Fault::Capture { capture: 0 }, 901),
    ] {
        let engine = engine(&sim(vec![fault]).1, &config);
        let error = ask(&engine, number(5)).unwrap_err();
        assert_eq!(error.code(), Some(code), "{error}");
        check_alive(&engine, &error, ErrorScope::Graph);
    }
}

#[test]
fn a_capture_of_another_thread_fails_batches_and_loses_nothing() {
    let (mut failed, mut right) = (0, 0);
    for call in 0..120 {
        let calls = 1 + call % 40;
        let (sim, backend) = sim(vec![Fault::ForeignCapture { call, calls }]);
        let Ok(engine) = Engine::new(AddOne::new(), &[backend], pool(), &config()) else {
            // It was built meanwhile.
            continue;
        };
        for n in 0..12 {
            match ask(&engine, number(n)) {
                Ok(value) => {
                    assert_eq!(value, n + 1);
                    right += 1;
                }
                Err(error) => {
                    assert_eq!(error.code(), Some(900), "{error}");
                    failed += 1;
                }
            }
        }
        drop(engine);
        assert_eq!((sim.violations(), sim.live()), (vec![], Live::default()));
    }
    assert!(failed > 0 && right > 10 * failed, "{failed} of {right}");
}

#[test]
fn a_ring_keeps_the_slot_of_a_batch_that_another_threads_capture_refused() {
    let mut failed = 0;
    for call in 0..120 {
        let calls = 1 + call % 40;
        let (sim, backend) = sim(vec![Fault::ForeignCapture { call, calls }]);
        let Ok(packer) = Packer::new(AddOne::new(), &[[1].into()], &backend, pool()) else {
            continue;
        };
        let policy = config().policy;
        let Ok(mut ring) = Ring::new(&backend, &packer.buckets(), 1, &policy, Wait::Block) else {
            continue;
        };
        for n in 0..12 {
            let mut slot = ring.acquire().expect("the ring lost its only slot");
            let packed = packer.pack(&mut slot, vec![number(n)]).ok().unwrap();
            let finished = match ring.submit(slot, packed.extent(), packed) {
                Ok(_) => ring.wait().unwrap(),
                Err(refused) => Err(refused),
            };
            if let Ok(done) = &finished {
                assert_eq!(packer.read(done)[0].as_ref().unwrap(), &(n + 1));
            }
            failed += u32::from(ring.release(finished).1.is_some());
        }
        drop((ring, packer));
        assert!(sim.violations().is_empty());
    }
    assert!(failed > 0);
}

/// Runs 1,000 batches of one item each, and returns the numbers of those that failed
/// with an error that `is_expected`.
fn thousand(
    backend: &Arc<dyn Backend>,
    config: &EngineConfig,
    item: impl Fn(u32) -> Item,
    is_expected: impl Fn(&Error) -> bool,
) -> Vec<u32> {
    let engine = engine(backend, config);
    let tickets: Vec<_> = (0..1000).map(|n| engine.submit(item(n)).unwrap()).collect();
    let mut failed = Vec::new();
    for (n, ticket) in (0..).zip(tickets) {
        match answer(ticket) {
            Ok(value) => assert_eq!(value, n + 1),
            Err(error) => {
                assert!(is_expected(&error), "{error}");
                failed.push(n);
            }
        }
    }
    assert_eq!(engine.counters().batches_failed, failed.len() as u64);
    check_alive(&engine, &Error::usage("none"), ErrorScope::Batch);
    failed
}

#[test]
fn of_a_thousand_batches_ten_that_differ_fail() {
    let mut config = config();
    config.policy.verify = Verify::Every(NonZeroU32::MIN);
    let item = |n| number(if n % 100 == 50 { NOISY } else { n });
    let is_expected = |error: &Error| error.kind() == ErrorKind::Mismatch;
    let failed = thousand(&cpu(), &config, item, is_expected);
    assert!(failed.into_iter().eq((0..10).map(|k| 100 * k + 50)));
}

#[test]
fn of_a_thousand_batches_ten_that_are_refused_fail() {
    // Two submissions a batch: its graph and its mark; one more for each that failed.
    let submission = |k: u64| Fault::Submission {
        submission: 200 * k + 100,
    };
    let (sim, backend) = sim((0..10).map(submission).collect());
    let is_expected = |error: &Error| error.code() == Some(701);
    let failed = thousand(&backend, &config(), number, is_expected);
    assert_eq!(failed.len(), 10);
    drop(backend);
    assert_eq!((sim.violations(), sim.live()), (vec![], Live::default()));
}

#[test]
fn of_a_thousand_batches_ten_that_lack_memory_for_their_graph_fail() {
    // One graph at a time, so each change of the bucket makes one: small, large (which
    // fails), small again.
    let faults = (0..10).map(|k| Fault::Graph { graph: 2 * k + 1 });
    let (_, backend) = sim(faults.collect());
    let mut config = config();
    (config.slots, config.policy.ready_max) = (1, 1);
    config.policy.fallback = Fallback::None;
    config.batch = Extent::from([1]);
    config.buckets = vec![Extent::from([1]), Extent::from([64])];
    let item = |n| long(n, if n % 100 == 50 { 64 } else { 1 });
    let is_expected = |error: &Error| error.kind() == ErrorKind::OutOfMemory;
    let failed = thousand(&backend, &config, item, is_expected);
    assert!(failed.into_iter().eq((0..10).map(|k| 100 * k + 50)));
}

#[test]
fn buckets_that_run_as_launches_count_for_the_limit_of_ready_ones() {
    // The graphs of the two largest buckets are refused when the third is first used.
    let faults = [2, 3].map(|graph| Fault::Graph { graph });
    let (_, backend) = sim(faults.to_vec());
    let mut config = config();
    (config.slots, config.policy.ready_max) = (1, 2);
    (config.policy.warm_up, config.policy.fallback) = (false, Fallback::Launches);
    config.batch = Extent::from([1]);
    config.buckets = [1, 2, 4, 8].map(|length| Extent::from([length])).to_vec();
    let engine = engine(&backend, &config);
    let mut evictions = Vec::new();
    for length in [1, 2, 4, 8] {
        ask(&engine, long(5, length)).unwrap();
        evictions.push(engine.counters().bucket_evictions);
    }
    assert_eq!(evictions, [0, 0, 1, 2]);
    assert_eq!(engine.counters().batches_as_launches, 2);
}

/// Scales vectors, and reads the results of a batch at once. The first element of a vector says
/// what goes wrong there.
struct WholeBatches(Scale);

const ITEM_FAILS: f32 = -11.0;
const BATCH_PANICS: f32 = -12.0;
const NO_RESULT: f32 = -13.0;
const TWO_RESULTS: f32 = -14.0;

impl Workload for WholeBatches {
    type Item = Vec<f32>;
    type Output = (Vec<f32>, u32);
    type Buffers = <Scale as Workload>::Buffers;

    fn axes(&self) -> &'static [&'static str] {
        self.0.axes()
    }
    fn extent(&self, item: &Vec<f32>) -> Result<Extent> {
        self.0.extent(item)
    }
    fn record(&self, recorder: &mut Recorder, device: &DeviceInfo) -> Result<Self::Buffers> {
        self.0.record(recorder, device)
    }
    fn write(
        &self,
        buffers: &Self::Buffers,
        item: &Vec<f32>,
        offset: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        self.0.write(buffers, item, offset, views)
    }
    fn read(
        &self,
        _: &Self::Buffers,
        _: &Vec<f32>,
        _: Extent,
        _: &ReadViews<'_>,
    ) -> Result<Self::Output> {
        unreachable!("all batches are read whole")
    }
    fn read_batch(
        &self,
        buffers: &Self::Buffers,
        items: &mut dyn Iterator<Item = BatchItem<'_, Vec<f32>>>,
        views: &ReadViews<'_>,
        pool: Option<&ThreadPool>,
    ) -> Option<Vec<Result<Self::Output>>> {
        let all = views.get(buffers.y);
        assert!(pool.is_some() || all.len() < 50_000, "a pool");
        let mut outputs = Vec::new();
        for BatchItem {
            item,
            offset,
            extent,
        } in items
        {
            match item[0] {
                ITEM_FAILS => {
                    outputs.push(Err(Error::input("planted")));
                    continue;
                }
                BATCH_PANICS => panic!("planted"),
                NO_RESULT => continue,
                TWO_RESULTS => outputs.push(Ok((Vec::new(), 0))),
                _ => {}
            }
            let (start, length) = (offset[0] as usize, extent[0] as usize);
            outputs.push(Ok((all[start..start + length].to_vec(), offset[0])));
        }
        Some(outputs)
    }
}

/// An engine whose batches have room for `items` vectors of one length, and close when it is
/// taken. There are workers enough for two to share a large batch.
fn whole_batches(backend: Arc<dyn Backend>, items: u32, length: u32) -> Engine<WholeBatches> {
    let batch = Extent::from([items * length, items]);
    let config = EngineConfig {
        batch,
        buckets: vec![batch],
        close: Close::Full,
        batch_wait: Duration::MAX,
        slots: 1,
        ..config()
    };
    let pool = ThreadPoolBuilder::new().num_threads(4).build().unwrap();
    let workload = WholeBatches(Scale::new(2.0));
    Engine::new(workload, &[backend], Arc::new(pool), &config).unwrap()
}

/// Runs the items, checks the results that should be right, and that the other items are rejected
/// with an error that has the expected text. Returns the places of the results.
fn check_run(
    engine: &mut Engine<WholeBatches>,
    items: &[Vec<f32>],
    expected: &[std::result::Result<(), &str>],
) -> Vec<u32> {
    let mut places = Vec::new();
    let mut all = items.iter().zip(expected);
    let mut sink = |done: Completion<WholeBatches>| {
        let (item, expected) = all.next().expect("a completion for each item");
        assert!(done.item == *item, "in order");
        match (done.result, expected) {
            (Ok((values, at)), Ok(())) => {
                assert!(values == doubled(item), "the item's own values");
                places.push(at);
            }
            (Err(error), Err(text)) => {
                assert_eq!(error.scope(), ErrorScope::Item);
                assert!(error.to_string().contains(text), "{error}, not {text}");
            }
            (result, _) => panic!("{expected:?}, not {:?}", result.map(drop)),
        }
        Ok(())
    };
    engine.run(items.iter().cloned(), &mut sink).unwrap();
    assert!(all.next().is_none(), "a completion for each item");
    places
}

/// A vector with this first element.
fn starting(first: f32, length: u32) -> Vec<f32> {
    let mut vector = vec![5.0; length as usize];
    vector[0] = first;
    vector
}

#[test]
fn a_batch_that_is_read_whole_rejects_its_bad_items_alone() {
    // One thread reads a small batch, several may read a large one.
    for length in [3, 20_000] {
        let mut engine = whole_batches(cpu(), 4, length);
        let (good, fails) = (Ok(()), Err("write: planted"));
        // Items without an extent take no room: three batches of four. The last items need no batch
        // on the device.
        let (items, expected): (Vec<_>, Vec<_>) = [
            (Vec::new(), Err("an empty vector")),
            (starting(1.0, length), good),
            (starting(WRITE_FAILS, length), fails),
            (starting(3.0, length), good),
            (starting(4.0, length), good),
            (starting(WRITE_PANICS, length), Err("panicked: planted")),
            (starting(5.0, length), good),
            (starting(WRITE_FAILS, length), fails),
            (starting(6.0, length), good),
            (starting(WRITE_FAILS, length), fails),
            (starting(WRITE_FAILS, length), fails),
            (starting(WRITE_FAILS, length), fails),
            (starting(WRITE_FAILS, length), fails),
            // It would close a batch before it is full.
            (starting(2.0, 4 * length + 1), Err("a batch holds at most")),
            (Vec::new(), Err("an empty vector")),
        ]
        .into_iter()
        .unzip();
        let places = check_run(&mut engine, &items, &expected);
        assert_eq!(places, [0, 2, 3, 1, 3].map(|place| place * length));
        assert_eq!(engine.counters().batches, 3);
    }
}

#[test]
fn a_whole_batch_that_cannot_be_read_is_rejected_and_no_other() {
    for (first, text) in [
        (BATCH_PANICS, "read: the workload panicked: planted"),
        (NO_RESULT, "a result for each item"),
        (TWO_RESULTS, "a result for each item"),
    ] {
        let mut engine = whole_batches(cpu(), 4, 3);
        let mut items: Vec<_> = (0..12).map(|n| starting(n as f32, 3)).collect();
        let mut expected = vec![Ok(()); 12];
        items[6][0] = first;
        expected[4..8].fill(Err(text));
        // Rejected items of the batch keep their own errors.
        (items[7][0], expected[7]) = (WRITE_FAILS, Err("write: planted"));
        items.insert(5, Vec::new());
        expected.insert(5, Err("an empty vector"));
        let places = check_run(&mut engine, &items, &expected);
        assert_eq!(places, [0, 3, 6, 9, 0, 3, 6, 9]);
        assert_eq!(engine.counters().batches, 3);
    }
}

#[test]
fn an_item_that_fails_in_a_whole_batch_fails_alone() {
    let mut engine = whole_batches(cpu(), 4, 3);
    let mut items: Vec<_> = (0..12).map(|n| starting(n as f32, 3)).collect();
    let mut expected = vec![Ok(()); 12];
    (items[6][0], expected[6]) = (ITEM_FAILS, Err("planted"));
    check_run(&mut engine, &items, &expected);
}

#[test]
fn parts_of_a_batch_that_lost_the_device_are_read_whole() {
    let mut engine = whole_batches(supervised(Vec::new()), 8, 3);
    let mut items: Vec<_> = (0..16).map(|n| starting(n as f32, 3)).collect();
    let mut expected = vec![Ok(()); 16];
    (items[2][0], expected[2]) = (WRITE_FAILS, Err("write: planted"));
    (items[5][0], expected[5]) = (TWIN_PANICS, Err("the device was lost twice"));
    items.insert(4, Vec::new());
    expected.insert(4, Err("an empty vector"));
    check_run(&mut engine, &items, &expected);
    let counters = engine.counters();
    assert_eq!(counters.items_quarantined, 1);
    assert!(counters.reruns > 1, "items ran apart: {counters:?}");
}
