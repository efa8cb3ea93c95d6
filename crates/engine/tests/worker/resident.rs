//! Resident buffers of a device in a worker, which every worker gets again.

use super::lookup::{self, Lookup, TABLE, expected};
use super::*;
use tapeloop_engine::backend::contract::{GraphSource, Op, Priority};
use tapeloop_engine::backend::{AllocationView, Contents};
use tapeloop_engine::pipeline::{Ring, Wait};
use tapeloop_engine::replay::Buckets;
use tapeloop_engine::workload::ResidentViews;

/// Runs numbers through an engine, and kills `killed` once in between.
fn run(backends: &[Arc<dyn Backend>], killed: &WorkerBackend) -> Counters {
    let config = EngineConfig::new([16]);
    let mut engine = Engine::new(Lookup::new(), backends, pool(), &config).unwrap();
    let mut back = 0;
    let mut sink = |done: Completion<Lookup>| -> Result<()> {
        assert_eq!(done.item, back, "in order");
        assert_eq!(done.result?, expected(back));
        back += 1;
        if back == 700 {
            kill(killed.process_id().unwrap());
        }
        Ok(())
    };
    engine.run(0..4_000, &mut sink).unwrap();
    assert_eq!(back, 4_000);
    engine.counters()
}

#[test]
fn a_worker_that_is_killed_in_a_run_has_its_table_again() {
    let (worker, backend) = open();
    let counters = run(&[backend], &worker);
    assert_eq!(counters.restarts, 1);
    assert_eq!((counters.batches_failed, counters.items_rejected), (0, 0));
}

#[test]
fn each_of_two_workers_has_the_table() {
    let [(first, first_backend), (second, second_backend)] = [open(), open()];
    let kept = first.process_id();
    let counters = run(&[first_backend, second_backend], &second);
    assert_eq!(counters.restarts, 1);
    assert_eq!((counters.batches_failed, counters.items_rejected), (0, 0));
    assert_eq!(first.process_id(), kept);
}

/// A worker that is killed while it has nothing to do gets the tables that were replaced before and after.
#[test]
fn a_table_that_is_replaced_is_there_again_after_a_kill() {
    let (worker, backend) = open();
    let config = EngineConfig::new([16]);
    let engine = Engine::new(Lookup::replaceable(), &[backend], pool(), &config).unwrap();
    for factor in 1..40_u32 {
        let write = |buffers: &lookup::Buffers, views: &mut ResidentViews<'_>| {
            let table = views.take(buffers.table).iter_mut().enumerate();
            table.for_each(|(index, to)| *to = lookup::entry(index).wrapping_mul(factor));
            Ok(())
        };
        engine.replace_resident(write).unwrap();
        if factor % 13 == 0 {
            kill(worker.process_id().unwrap());
        }
        let tickets = (0..50).map(|number| engine.submit(number).unwrap());
        for (ticket, number) in tickets.collect::<Vec<_>>().into_iter().zip(0..) {
            let found = ticket.wait().unwrap().result.unwrap();
            assert_eq!(found, expected(number).wrapping_mul(factor), "{factor}");
        }
        if factor % 17 == 0 {
            kill(worker.process_id().unwrap());
        }
    }
    assert_eq!(engine.counters().restarts, 5);
}

fn contents() -> Arc<Contents> {
    let table: Vec<u32> = (0..TABLE).map(lookup::entry).collect();
    Arc::new(bytemuck::cast_slice::<u32, u8>(&table).to_vec())
}

fn buckets(
    workload: &Lookup,
    backend: &Arc<dyn Backend>,
    contents: &Arc<Contents>,
) -> (Arc<Buckets>, lookup::Buffers) {
    let mut recorder = Recorder::new(&[16]);
    let buffers = workload.record_with(&mut recorder);
    let buckets = Buckets::single(recorder.finish().unwrap());
    let memory = backend.allocate_filled(contents).unwrap();
    let view = AllocationView::new(&memory, 0, memory.bytes()).unwrap();
    let buckets = buckets.with_resident(buffers.table, view).unwrap();
    (Arc::new(buckets), buffers)
}

#[test]
fn a_ring_reads_its_table_again_from_a_revived_worker_and_frees_it() {
    let (worker, backend) = open();
    let contents = contents();
    let kept = Arc::downgrade(&contents);
    let (buckets, buffers) = buckets(&Lookup::new(), &backend, &contents);
    drop(contents);
    let policy = Policy::default();
    let mut ring = Ring::<u32>::new(&backend, &buckets, 2, &policy, Wait::Block).unwrap();
    drop(buckets);
    let (mut done, mut lost) = (0, 0);
    for number in 0..40 {
        if number == 20 {
            kill(worker.process_id().unwrap());
        }
        let live = Extent::from([1]);
        let mut slot = ring.acquire().unwrap();
        slot.write_header(live, 1);
        slot.write(buffers.x)[0] = number;
        let finished = match ring.submit(slot, live, number) {
            Ok(_) => ring.wait().unwrap(),
            Err(failed) => Err(failed),
        };
        match &finished {
            Ok(slot) => {
                assert_eq!(slot.read(buffers.y)[0], expected(number));
                done += 1;
            }
            Err(_) => {
                assert!(backend.revive().unwrap());
                lost += 1;
            }
        }
        ring.release(finished);
    }
    assert_eq!((done, lost), (39, 1));
    assert!(kept.upgrade().is_some());
    drop(ring);
    assert!(kept.upgrade().is_none(), "no handle and no graph is left");
}

/// How a graph stops using an allocation.
enum LastUse {
    Dropped,
    Updated,
    ParamsSet,
}

#[test]
fn an_allocation_is_freed_once_no_graph_uses_it() {
    let (_worker, backend) = open();
    let mut recorder = Recorder::new(&[16]);
    let y = Lookup::new().record_with(&mut recorder).y.id();
    let recording = recorder.finish().unwrap();
    let open = backend.open_slots(recording.buffers(), 1, Priority::Normal);
    let mut device_slot = open.unwrap().remove(0);
    let own = device_slot.addresses(y);
    let download = |device| Op::Download {
        device,
        host: own.host.unwrap(),
        bytes: 64,
    };
    for last in [LastUse::Dropped, LastUse::Updated, LastUse::ParamsSet] {
        let contents: Arc<Contents> = Arc::new(vec![7_u8; 64]);
        let kept = Arc::downgrade(&contents);
        let memory = backend.allocate_filled(&contents).unwrap();
        drop(contents);
        device_slot.adopt(&memory).unwrap();
        let op = download(memory.address());
        // SAFETY: both ranges are inside the slot's buffer and the allocation that it adopted.
        let made = unsafe { device_slot.make_graph(GraphSource::Captured(&[&op]), None) };
        let (graph, _) = made.unwrap();
        device_slot.disown(&memory);
        drop(memory);
        assert!(kept.upgrade().is_some(), "the graph uses it");
        let other = download(own.device);
        match last {
            LastUse::Dropped => device_slot.drop_graph(graph),
            LastUse::Updated => {
                let source = GraphSource::Captured(&[&other]);
                // SAFETY: both ranges are inside the slot's buffer.
                unsafe { device_slot.make_graph(source, Some(graph)) }.unwrap();
            }
            // SAFETY: as above.
            LastUse::ParamsSet => unsafe { device_slot.set_params(graph, 0, &other) }.unwrap(),
        }
        assert!(kept.upgrade().is_none());
    }
}

/// The number of bytes of an allocation that is sent in two parts.
const LARGE: usize = (64 << 20) + 4096;

#[test]
fn a_graph_keeps_a_large_allocation_after_its_handles_and_through_a_restart() {
    let (worker, backend) = open();
    let mut bytes = vec![0_u8; LARGE];
    bytes[LARGE - 64..].fill(7);
    let contents: Arc<Contents> = Arc::new(bytes);
    let kept = Arc::downgrade(&contents);
    let memory = backend.allocate_filled(&contents).unwrap();
    drop(contents);
    let mut recorder = Recorder::new(&[16]);
    let y = Lookup::new().record_with(&mut recorder).y.id();
    let recording = recorder.finish().unwrap();
    let open = backend.open_slots(recording.buffers(), 1, Priority::Normal);
    let mut device_slot = open.unwrap().remove(0);
    device_slot.adopt(&memory).unwrap();
    let own = device_slot.addresses(y);
    let device = memory.address() + (LARGE - 64) as u64;
    let op = Op::Download {
        device,
        host: own.host.unwrap(),
        bytes: 64,
    };
    // SAFETY: both ranges are inside the slot's buffer and the allocation that it adopted.
    let made = unsafe { device_slot.make_graph(GraphSource::Captured(&[&op]), None) };
    let (graph, _) = made.unwrap();
    let memset = Op::Memset {
        device,
        byte: 1,
        bytes: 64,
    };
    // SAFETY: as above.
    let refused = unsafe { device_slot.make_graph(GraphSource::Captured(&[&memset]), None) };
    let text = refused.err().unwrap().to_string();
    assert!(text.contains("writes"), "{text}");
    // SAFETY: as above.
    unsafe { device_slot.enqueue(&memset) }.unwrap();
    device_slot.fence().unwrap();
    let text = device_slot.wait().unwrap_err().to_string();
    assert!(text.contains("writes"), "{text}");

    device_slot.disown(&memory);
    drop(memory);
    for is_killed in [false, true] {
        if is_killed {
            kill(worker.process_id().unwrap());
            // The loss is noticed by a call.
            assert!(device_slot.graph_ops(graph).is_err());
            assert!(backend.revive().unwrap());
        }
        device_slot.host_mut(&[y]).remove(0).fill(0);
        device_slot.launch_graph(graph).unwrap();
        device_slot.fence().unwrap();
        device_slot.wait().unwrap();
        assert_eq!(device_slot.host(y), [7; 64]);
    }
    assert!(kept.upgrade().is_some(), "the graph uses it");
    device_slot.drop_graph(graph);
    assert!(kept.upgrade().is_none());
}
