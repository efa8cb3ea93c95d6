//! Items whose data is on the device, and results that stay there.

use crate::chained::{Chained, Data};
use crate::program::accepted_policies;
use crate::scale::vectors;
use crate::{assert_refused, threads};
use std::collections::BTreeMap;
use std::sync::Arc;
use tapeloop_engine::ErrorKind;
use tapeloop_engine::backend::{Allocation, AllocationView, Backend, Space};
use tapeloop_engine::memory::{Pool, PoolConfig};
use tapeloop_engine::pipeline::{Engine, EngineConfig, Pipeline, Wait};
use tapeloop_engine::replay::Policy;
use tapeloop_engine::workload::{DeviceLeased, Extent};

/// Two buckets of up to 100 vectors, of 20 and of 100 elements in all: some batches fit the smaller one.
fn config(slots: usize, policy: Policy) -> EngineConfig {
    let mut config = EngineConfig::new([100, 100]);
    config.buckets = [[20, 100], [100, 100]].map(Extent::from).to_vec();
    (config.slots, config.policy, config.wait) = (slots, policy, Wait::Spin);
    config
}

/// An engine on one device.
fn engine(
    backend: &Arc<dyn Backend>,
    workload: Chained,
    slots: usize,
    policy: Policy,
) -> Engine<Chained> {
    let backends = [Arc::clone(backend)];
    Engine::new(workload, &backends, threads(1), &config(slots, policy)).unwrap()
}

/// Whether the backend has result buffers. Checks the refusal of one that has none.
fn keeps_results(backend: &Arc<dyn Backend>) -> bool {
    if !backend.is_supervised() {
        return true;
    }
    let backends = [Arc::clone(backend)];
    let config = config(3, Policy::default());
    let built = Engine::new(Chained::first(2.0), &backends, threads(1), &config);
    let error = built
        .err()
        .expect("the memory would be lost with its process");
    assert_refused(&error, ErrorKind::Unavailable, &["y"]);
    false
}

/// The result of an item, which must have stayed on the device.
fn kept(engine: &Engine<Chained>, item: &[f32]) -> DeviceLeased<f32> {
    let ticket = engine.submit(Data::Host(item.to_vec())).unwrap();
    match ticket.wait().unwrap().result.unwrap() {
        Data::Kept(kept) => kept,
        other => panic!("a result that is kept on the device, and not {other:?}"),
    }
}

fn assert_holds(kept: &DeviceLeased<f32>, item: &[f32], factor: f32) {
    let mut values = vec![0.0; kept.len()];
    kept.download(&mut values).unwrap();
    let expected: Vec<f32> = item.iter().map(|x| x * factor).collect();
    assert_eq!(values, expected);
}

/// The results of one engine are the items of the next, in batches of several, and the host sees them
/// only at the end.
pub fn one_engine_takes_what_another_left_on_the_device(backend: &Arc<dyn Backend>) {
    if !keeps_results(backend) {
        return;
    }
    let items = vectors(60);
    for policy in accepted_policies(backend) {
        let first = engine(backend, Chained::first(2.0), 6, policy);
        let last = engine(backend, Chained::last(3.0), 3, policy);
        // Few of these fill a batch, so that a batch takes results of several slots.
        let mut tickets = Vec::new();
        for item in &items {
            let ticket = first.submit(Data::Host(item.clone())).unwrap();
            let kept = ticket.wait().unwrap().result.unwrap();
            tickets.push(last.submit(kept).unwrap());
        }
        for (ticket, item) in tickets.into_iter().zip(&items) {
            let Data::Host(values) = ticket.wait().unwrap().result.unwrap() else {
                panic!("the last engine's results are on the host");
            };
            let expected: Vec<f32> = item.iter().map(|x| x * 2.0 * 3.0).collect();
            assert_eq!(values, expected, "{policy:?}");
        }
    }
}

/// All results are held while later batches run. Those beyond the slots that may be lent are copies.
pub fn kept_results_stay_as_they_are(backend: &Arc<dyn Backend>) {
    if !keeps_results(backend) {
        return;
    }
    let items = vectors(20);
    for policy in accepted_policies(backend) {
        let engine = engine(backend, Chained::first(2.0), 6, policy);
        let mut held = Vec::new();
        for item in &items {
            held.push(kept(&engine, item));
            for (kept, item) in held.iter().zip(&items) {
                assert_holds(kept, item, 2.0);
            }
        }
        let counters = engine.counters();
        // Two slots of six are never lent.
        assert_eq!((counters.results_leased, counters.results_copied), (4, 16));
        drop(engine);
        std::thread::scope(|scope| {
            for (kept, item) in held.into_iter().zip(&items) {
                scope.spawn(move || assert_holds(&kept, item, 2.0));
            }
        });
    }
}

/// A pipeline's caller has the slots, so its results are copies.
pub fn a_pipeline_chains_on_the_device(backend: &Arc<dyn Backend>) {
    if !keeps_results(backend) {
        return;
    }
    let (backends, config) = ([Arc::clone(backend)], config(3, Policy::default()));
    let open = |workload| Pipeline::new(workload, &backends, threads(1), &config).unwrap();
    let (mut first, mut last) = (open(Chained::first(2.0)), open(Chained::last(3.0)));
    // Batches of several items, whose parts start anywhere in their buffers.
    for items in vectors(12).chunks(4) {
        let mut kept = BTreeMap::new();
        for item in items {
            let item = Data::Host(item.clone());
            first.submit(item).map_err(drop).unwrap();
        }
        while let Some((number, done)) = first.wait() {
            kept.insert(number, done.result.unwrap());
        }
        let mut expected = BTreeMap::new();
        for (kept, item) in kept.into_values().zip(items) {
            let number = last.submit(kept).map_err(drop).unwrap();
            let values: Vec<f32> = item.iter().map(|x| x * 2.0 * 3.0).collect();
            expected.insert(number, values);
        }
        while let Some((number, done)) = last.wait() {
            let Data::Host(values) = done.result.unwrap() else {
                panic!("the last engine's results are on the host");
            };
            assert_eq!(Some(values), expected.remove(&number));
        }
        assert!(expected.is_empty());
    }
}

/// An item whose memory cannot be taken is refused, and the others of its batch are not.
pub fn an_item_with_wrong_memory_is_refused_alone(backend: &Arc<dyn Backend>) {
    let memory = |bytes: &[u8]| -> Allocation {
        let bytes: Arc<tapeloop_engine::backend::Contents> = Arc::new(bytes.to_vec());
        backend.allocate_filled(&bytes).unwrap()
    };
    let values = [1.0_f32, 2.0, 3.0, 4.0];
    let memory = memory(bytemuck::cast_slice(&values));
    let part = |elements: usize| AllocationView::new(&memory, 0, 4 * elements).unwrap();
    let mut config = config(3, Policy::default());
    // So long that all items come into one batch.
    config.batch_wait = std::time::Duration::from_millis(50);
    let backends = [Arc::clone(backend)];
    let engine = Engine::new(Chained::last(3.0), &backends, threads(1), &config).unwrap();
    let mut items = vec![
        (Data::View(part(4), 4), None),
        (Data::View(part(3), 4), Some("12 bytes")),
        (Data::Nothing(4), Some("x")),
        (Data::View(part(2), 2), None),
    ];
    if !backend.is_supervised() {
        let pinned = backend.allocate(Space::Pinned, 16).unwrap();
        let pinned = AllocationView::new(&pinned, 0, 16).unwrap();
        items.push((Data::View(pinned, 4), Some("pinned")));
        let other = tapeloop_engine::backend::cpu::CpuBackend::inline();
        let other = other.allocate(Space::Device, 16).unwrap();
        let other = AllocationView::new(&other, 0, 16).unwrap();
        items.push((Data::View(other, 4), Some("another backend")));
        items.push((Data::View(part(3), 3), None));
    }
    let (items, refusals): (Vec<_>, Vec<_>) = items.into_iter().unzip();
    let tickets: Vec<_> = items
        .into_iter()
        .map(|item| engine.submit(item).unwrap())
        .collect();
    for (ticket, refusal) in tickets.into_iter().zip(refusals) {
        let done = ticket.wait().unwrap();
        match (done.result, refusal) {
            (Err(error), Some(word)) => assert_refused(&error, ErrorKind::Usage, &[word]),
            (Ok(Data::Host(found)), None) => {
                let expected: Vec<f32> = values[..found.len()].iter().map(|x| x * 3.0).collect();
                assert_eq!(found, expected);
            }
            (result, refusal) => panic!("{result:?} for {refusal:?}"),
        }
    }
}

/// A buffer of a pool is the data of as many items as the program likes, and may be written in between.
pub fn a_buffer_of_a_pool_is_taken_and_written_in_turn(backend: &Arc<dyn Backend>) {
    // It has no allocations, and so no pool.
    if backend.is_supervised() {
        return;
    }
    let pool = Pool::new(Arc::clone(backend), PoolConfig::development());
    let mut buffer = pool.device::<f32>(40, "items").unwrap();
    // Parts that follow one another, and some that do not. Two batches take 12 of them each.
    let starts: Vec<usize> = (0..24).map(|part| [0, 8, 16, 3, 32][part % 5]).collect();
    for policy in accepted_policies(backend) {
        let mut config = config(3, policy);
        config.batch_wait = std::time::Duration::from_secs(10);
        let backends = [Arc::clone(backend)];
        let engine = Engine::new(Chained::last(3.0), &backends, threads(1), &config).unwrap();
        for round in 0..4 {
            let values: Vec<f32> = (0..40).map(|i| (100 * round + i) as f32).collect();
            buffer.upload(&values).unwrap();
            let part = |start: usize| Data::View(buffer.slice(start..start + 8).unwrap().view(), 8);
            // The last item fits in no batch of the others, which ends their wait.
            let items = starts.iter().map(|&start| part(start));
            let items = items.chain([Data::View(buffer.view(), 40)]);
            let mut tickets: Vec<_> = items.map(|item| engine.submit(item).unwrap()).collect();
            let last = tickets.pop();
            for (ticket, &start) in tickets.into_iter().zip(&starts) {
                let Data::Host(found) = ticket.wait().unwrap().result.unwrap() else {
                    panic!("the last engine's results are on the host");
                };
                let expected: Vec<f32> = values[start..start + 8].iter().map(|x| x * 3.0).collect();
                assert_eq!(found, expected, "{policy:?}");
            }
            engine.flush().unwrap();
            drop(last.map(|last| last.wait().unwrap()));
        }
    }
}
