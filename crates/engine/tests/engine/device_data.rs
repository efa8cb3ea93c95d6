//! Device memory as data of items and of a ring's batches, where the backend makes no difference.

use std::sync::Arc;
use tapeloop_conformance::chained::{Chained, Data};
use tapeloop_conformance::scale::TWIN_PANICS;
use tapeloop_engine::backend::contract::{GraphSource, Op, Priority};
use tapeloop_engine::backend::cpu::CpuBackend;
use tapeloop_engine::backend::{Backend, ThreadPoolBuilder};
use tapeloop_engine::memory::{Pool, PoolConfig};
use tapeloop_engine::pipeline::{Engine, EngineConfig, Ring, Wait};
use tapeloop_engine::record::{Access, Buffer, Kernel, Recorder, Recording};
use tapeloop_engine::replay::{Buckets, Policy};
use tapeloop_engine::workload::Extent;
use tapeloop_engine::{Bindings, Error, ErrorKind};

fn cpu() -> Arc<dyn Backend> {
    Arc::new(CpuBackend::inline())
}

fn engine(workload: Chained, devices: usize, slots: usize) -> Result<Engine<Chained>, Error> {
    let backends: Vec<_> = (0..devices).map(|_| cpu()).collect();
    engine_on(workload, &backends, slots)
}

fn engine_on(
    workload: Chained,
    backends: &[Arc<dyn Backend>],
    slots: usize,
) -> Result<Engine<Chained>, Error> {
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    let mut config = EngineConfig::new([100, 100]);
    config.slots = slots;
    Engine::new(workload, backends, pool, &config)
}

fn values(data: Data) -> Vec<f32> {
    match data {
        Data::Host(values) => values,
        other => panic!("results on the host, and not {other:?}"),
    }
}

#[test]
fn a_failed_batch_keeps_no_memory() {
    let backend = cpu();
    let pool = Pool::new(Arc::clone(&backend), PoolConfig::development());
    let engine = engine_on(Chained::last(3.0), &[Arc::clone(&backend)], 1).unwrap();
    let run = |value: f32| {
        let mut buffer = pool.device::<f32>(8, "item").unwrap();
        buffer.upload(&[value; 8]).unwrap();
        let ticket = engine.submit(Data::View(buffer.view(), 8)).unwrap();
        ticket.wait().unwrap().result
    };
    assert_eq!(run(TWIN_PANICS).unwrap_err().kind(), ErrorKind::Kernel);
    assert_eq!(pool.stats().device.parked_bytes, 0, "it is kept no longer");
    let mut calls = [0; 2];
    for calls in &mut calls {
        let before = backend.driver_calls().submissions;
        assert_eq!(values(run(5.0).unwrap()), [15.0; 8]);
        *calls = backend.driver_calls().submissions - before;
        assert_eq!(pool.stats().device.parked_bytes, 0);
    }
    assert_eq!(
        calls[0], calls[1],
        "the copies of the failed batch are not repeated"
    );
}

#[test]
fn the_part_of_an_item_that_cannot_be_written_is_zero_on_the_device_too() {
    let backend = cpu();
    let pool = Pool::new(Arc::clone(&backend), PoolConfig::development());
    let engine = engine_on(Chained::last(3.0), &[backend], 1).unwrap();
    let run = |value: f32, more: Data| {
        let mut buffer = pool.device::<f32>(8, "item").unwrap();
        buffer.upload(&[value; 8]).unwrap();
        let items = [Data::Unwritable(8), Data::View(buffer.view(), 8), more];
        let done = engine.submit_many(items).unwrap().wait().unwrap();
        done.into_iter().map(|done| done.result).collect::<Vec<_>>()
    };
    let mut planted = pool.device::<f32>(8, "planted").unwrap();
    planted.upload(&[TWIN_PANICS; 8]).unwrap();
    // Leaves what the twin panics at in all three parts of the slot.
    let left = run(TWIN_PANICS, Data::View(planted.view(), 8));
    assert_eq!(left[1].as_ref().unwrap_err().kind(), ErrorKind::Kernel);
    let results = run(5.0, Data::Unwritable(8));
    for unwritten in [0, 2] {
        let error = results[unwritten].as_ref().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
    }
    let written = results.into_iter().nth(1).unwrap();
    assert_eq!(values(written.unwrap()), [15.0; 8]);
}

#[test]
fn an_engine_of_several_devices_has_no_input_buffers() {
    let error = engine(Chained::last(3.0), 2, 3).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("input buffer x"), "{error}");
    // Results stay on the device that made them.
    let first = engine(Chained::first(2.0), 2, 4).unwrap();
    for value in 0..8 {
        let ticket = first.submit(Data::Host(vec![value as f32; 8])).unwrap();
        let Data::Kept(kept) = ticket.wait().unwrap().result.unwrap() else {
            panic!("it stays on the device");
        };
        let mut found = [0.0; 8];
        kept.download(&mut found).unwrap();
        assert_eq!(found, [2.0 * value as f32; 8]);
        assert_eq!(
            kept.download(&mut [0.0; 7]).unwrap_err().kind(),
            ErrorKind::Usage
        );
    }
}

#[test]
fn an_item_that_waits_for_an_event_where_there_are_none_is_refused_alone() {
    let backend = cpu();
    let pool = Pool::new(Arc::clone(&backend), PoolConfig::development());
    let engine = engine_on(Chained::last(3.0), &[backend], 3).unwrap();
    let mut buffer = pool.device::<f32>(8, "item").unwrap();
    buffer.upload(&[1.0; 8]).unwrap();
    // SAFETY: no event is waited for.
    let late = unsafe { Data::after(buffer.view(), 8, 0) };
    let items = [late, Data::View(buffer.view(), 8)];
    let mut done = engine
        .submit_many(items)
        .unwrap()
        .wait()
        .unwrap()
        .into_iter();
    let refused = done.next().unwrap().result.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    assert_eq!(values(done.next().unwrap().result.unwrap()), [3.0; 8]);
}

#[test]
fn the_plan_counts_result_buffers_in_each_slot() {
    let engine = engine(Chained::first(2.0), 1, 5).unwrap();
    let plan = engine.memory();
    let line = |name: &str| plan.lines.iter().find(|line| line.name == name).unwrap();
    assert_eq!(line("y").slot_device_bytes, 4 * 100);
    assert_eq!(line("y").slot_host_bytes, 0);
    // Buffers of a slot start at multiples of 256 bytes; an allocation of its own needs no padding.
    assert_eq!(
        line("x").slot_device_bytes + line("header").slot_device_bytes % 256,
        4 * 100 + 48
    );
    let slot: u64 = plan.lines.iter().map(|line| line.slot_device_bytes).sum();
    assert_eq!(slot, 512 + 256 + 4 * 100);
    assert_eq!(plan.device_bytes(), 5 * slot);
}

/// Halves numbers that are on the device.
fn halving() -> (Recording, Buffer<f32>, Buffer<f32>) {
    let halve = Kernel::new("halve").reads::<f32>("x").writes::<f32>("y");
    let halve = halve.twin(|launch| {
        let (x, y): (&[f32], &mut [f32]) = (launch.read(), launch.write());
        y.iter_mut().zip(x).for_each(|(y, x)| *y = x / 2.0);
    });
    let mut recorder = Recorder::new(&[16]);
    let x = recorder.input_buffer::<f32>("x", 0, 1);
    let y = recorder.download_buffer::<f32>("y", 0, 1);
    recorder.launch(&halve, 1, &[x.into(), y.into()]);
    recorder.download(y);
    (recorder.finish().unwrap(), x, y)
}

/// A ring of one slot that halves the 16 numbers of its input buffer, with this buffer and that of the results.
fn halving_ring(backend: &Arc<dyn Backend>) -> (Ring<()>, Buffer<f32>, Buffer<f32>) {
    let (recording, x, y) = halving();
    let buckets = Arc::new(Buckets::single(recording));
    let ring = Ring::new(backend, &buckets, 1, &Policy::default(), Wait::Spin).unwrap();
    (ring, x, y)
}

#[test]
fn a_ring_copies_device_memory_into_its_batches() {
    let backend = cpu();
    let pool = Pool::new(Arc::clone(&backend), PoolConfig::development());
    let (mut ring, x, y) = halving_ring(&backend);
    let mut buffer = pool.device::<f32>(16, "numbers").unwrap();
    for round in 0..3 {
        let numbers: Vec<f32> = (0..16).map(|i| (16 * round + i) as f32).collect();
        buffer.upload(&numbers).unwrap();
        let part = |range| buffer.slice(range).unwrap().view();
        let mut slot = ring.acquire().unwrap();
        // Parts that follow one another in the source, and some of them in the buffer.
        for (start, range) in [(8, 0..4), (4, 4..8), (12, 8..12), (0, 12..14), (2, 14..16)] {
            slot.copy_in(x, start, part(range)).unwrap();
        }
        let refused = [
            slot.copy_in(x, 9, part(0..8)),
            slot.copy_in(x, usize::MAX, part(0..8)),
            slot.copy_in(y, 0, part(0..8)),
            slot.copy_in(halving().1, 0, part(0..8)),
        ];
        for refused in refused {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::Usage);
        }
        ring.submit(slot, Extent::from([16]), ())
            .map_err(drop)
            .unwrap();
        let done = ring.wait().unwrap().map_err(drop).unwrap();
        let expected = [
            &numbers[12..],
            &numbers[4..8],
            &numbers[..4],
            &numbers[8..12],
        ]
        .concat();
        let expected: Vec<f32> = expected.iter().map(|x| x / 2.0).collect();
        assert_eq!(done.read(y), expected);
        ring.release(Ok(done));
    }
}

#[test]
fn memory_that_is_written_is_no_input() {
    let backend = cpu();
    let pinned = backend
        .allocate(tapeloop_engine::backend::Space::Pinned, 64)
        .unwrap();
    let pool = Pool::new(Arc::clone(&backend), PoolConfig::development());
    let (mut ring, x, _) = halving_ring(&backend);
    let mut buffer = pool.device::<f32>(16, "numbers").unwrap();
    let mut slot = ring.acquire().unwrap();
    slot.copy_in(x, 0, buffer.view()).unwrap();
    // The batch has not been submitted, and its memory stays as it is.
    assert_eq!(
        buffer.upload(&[0.0; 16]).unwrap_err().kind(),
        ErrorKind::Usage
    );
    let view = tapeloop_engine::backend::AllocationView::new(&pinned, 0, 64).unwrap();
    assert_eq!(
        slot.copy_in(x, 0, view).unwrap_err().kind(),
        ErrorKind::Usage
    );
    ring.submit(slot, Extent::from([16]), ())
        .map_err(drop)
        .unwrap();
    let done = ring.wait().unwrap();
    ring.release(done);
    buffer.upload(&[0.0; 16]).unwrap();
}

#[test]
fn a_slot_does_not_keep_memory_whose_copy_was_refused() {
    let backend = cpu();
    let pool = Pool::new(Arc::clone(&backend), PoolConfig::development());
    let (mut ring, x, _) = halving_ring(&backend);
    let buffer = pool.device::<f32>(16, "numbers").unwrap();
    let mut slot = ring.acquire().unwrap();
    let written = buffer.view().allocation().lease(Access::Write).unwrap();
    let refused = slot.copy_in(x, 0, buffer.view()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Usage);
    drop((written, buffer));
    assert_eq!(pool.stats().device.parked_bytes, 0, "it is kept no longer");
}

#[test]
fn the_memory_of_a_batch_that_was_not_submitted_can_be_written() {
    let backend = cpu();
    let pool = Pool::new(Arc::clone(&backend), PoolConfig::development());
    let (mut ring, x, y) = halving_ring(&backend);
    let mut buffer = pool.device::<f32>(16, "numbers").unwrap();
    for value in [4.0, 6.0] {
        let mut slot = ring.acquire().unwrap();
        slot.copy_in(x, 0, buffer.view()).unwrap();
        let failed = ring.submit(slot, Extent::from([17]), ()).unwrap_err();
        ring.release(Err(failed));
        buffer.upload(&[value; 16]).unwrap();
    }
    let mut slot = ring.acquire().unwrap();
    slot.copy_in(x, 0, buffer.view()).unwrap();
    ring.submit(slot, Extent::from([16]), ())
        .map_err(drop)
        .unwrap();
    let done = ring.wait().unwrap().map_err(drop).unwrap();
    assert_eq!(done.read(y), [3.0; 16]);
    ring.release(Ok(done));
}

#[test]
fn a_result_buffer_is_bound_by_what_replays_it() {
    let sevens = Kernel::new("sevens").writes::<u8>("y");
    let sevens = sevens.twin(|launch| launch.write::<u8>().fill(7));
    let mut recorder = Recorder::new(&[100]);
    let y = recorder.result_buffer::<u8>("y", 0, 1);
    recorder.launch(&sevens, 1, &[y.into()]);
    let recording = Arc::new(recorder.finish().unwrap());
    let backend = cpu();
    let slots = backend
        .open_slots(recording.buffers(), 1, Priority::Normal)
        .unwrap();
    let error = Bindings::new(&recording, &*backend, &*slots[0], &Policy::default());
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().contains("result buffer"), "{error}");
}

#[test]
fn a_graph_copies_nothing_within_the_device() {
    let backend = cpu();
    let (recording, x, _) = halving();
    let mut slots = backend
        .open_slots(recording.buffers(), 1, Priority::Normal)
        .unwrap();
    let to = slots[0].addresses(x.id()).device;
    let copy = Op::Copy {
        from: to,
        to: to + 32,
        bytes: 32,
    };
    // SAFETY: it is refused.
    let error = unsafe { slots[0].make_graph(GraphSource::Captured(&[&copy]), None) };
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Usage);
}
