//! Buckets and executors: what they refuse, and what they keep.

use crate::forward::{BackendHooks, SlotHooks};
use crate::scale::{Scale, doubled, vectors};
use rayon::ThreadPoolBuilder;
use std::sync::Arc;
use tapeloop_engine::backend::contract::{DeviceSlot, GraphId, Priority};
use tapeloop_engine::backend::{AllocationView, Backend, Residency, Space, cpu::CpuBackend};
use tapeloop_engine::pipeline::{EngineConfig, Pipeline, Ring, Wait};
use tapeloop_engine::record::{Kernel, Recorder};
use tapeloop_engine::replay::{Bindings, Bucket, Buckets, Executor, Fallback, Mode, Policy, Rung};
use tapeloop_engine::workload::Extent;
use tapeloop_engine::{Error, ErrorKind, Result};

fn cpu() -> Arc<dyn Backend> {
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap());
    Arc::new(CpuBackend::new(pool))
}

/// A recording with one scratch buffer of so many elements.
fn scratch(mut recorder: Recorder, elements: usize) -> Bucket {
    let capacity = recorder.capacity(0);
    let kernel = Kernel::new("by_uniform")
        .reads::<u32>("header")
        .writes::<f32>("y")
        .twin(|_| {});
    let header = recorder.header();
    let scratch = recorder.batch_buffer::<f32>("scratch", elements);
    recorder.upload(header);
    recorder.launch(&kernel, 1, &[header.into(), scratch.into()]);
    Bucket {
        capacity: Extent::from([capacity]),
        recording: Arc::new(recorder.finish().unwrap()),
    }
}

#[test]
fn buckets_that_would_not_fit_their_memory_are_refused() {
    let refused = |buckets: Vec<Bucket>| {
        let error = Buckets::new(buckets).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        error.to_string()
    };
    let two = |elements: [usize; 2]| -> Vec<Bucket> {
        let recorders = Recorder::ladder(&[&[2], &[4]]).into_iter();
        let of_sizes = recorders.zip(elements);
        of_sizes
            .map(|(recorder, elements)| scratch(recorder, elements))
            .collect()
    };
    assert!(refused(two([1_000, 4])).contains("other things"));
    assert_eq!(Buckets::new(two([4, 4])).unwrap().as_slice().len(), 2);
    let one = |capacity: u32, elements: usize| scratch(Recorder::new(&[capacity]), elements);
    let other_capacity = vec![Bucket {
        capacity: Extent::from([3]),
        ..one(2, 4)
    }];
    assert!(refused(other_capacity).contains("of another capacity"));
    let strangers = vec![one(2, 4), one(4, 4)];
    assert!(refused(strangers).contains("of another recorder"));
    // Slots of smaller buffers.
    let backend = cpu();
    let (small, large) = (one(4, 4), one(4, 1_000));
    let mut device_slots = backend
        .open_slots(small.recording.buffers(), 2, Priority::Normal)
        .unwrap();
    let large = Arc::new(Buckets::new(vec![large]).unwrap());
    let executor = |device_slot: &mut dyn DeviceSlot, buckets| {
        Executor::new(&backend, device_slot, buckets, &Policy::default())
    };
    let error = executor(&mut *device_slots[0], &large).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    // Another slot than the executor's own.
    let small = Arc::new(Buckets::new(vec![small]).unwrap());
    let mut own = executor(&mut *device_slots[0], &small).unwrap();
    let error = own
        .replay(&mut *device_slots[1], 0, Extent::from([1]))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    assert!(error.message().contains("another slot"), "{error}");
    let error = own
        .replay(&mut *device_slots[0], 0, Extent::from([5]))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
}

#[test]
fn a_bucket_that_is_dropped_keeps_what_it_is_bound_to() {
    let backend = cpu();
    let kernel = Kernel::new("scaled")
        .reads::<f32>("x")
        .writes::<f32>("y")
        .scalar::<f32>("factor")
        .changeable("factor")
        .twin(|launch| {
            let x: &[f32] = launch.read();
            let y: &mut [f32] = launch.write();
            let factor: f32 = launch.scalar();
            y.iter_mut().zip(x).for_each(|(y, x)| *y = x * factor);
        });
    let bucket = |mut recorder: Recorder| {
        let capacity = recorder.capacity(0);
        let x = recorder.upload_buffer::<f32>("x", 0, 1);
        let y = recorder.download_buffer::<f32>("y", 0, 1);
        recorder.upload(x);
        recorder.launch(&kernel, 1, &[x.into(), y.into(), 2_f32.into()]);
        recorder.download(y);
        let recording = Arc::new(recorder.finish().unwrap());
        let capacity = Extent::from([capacity]);
        (
            (x, y),
            Bucket {
                capacity,
                recording,
            },
        )
    };
    let mut recorders = Recorder::ladder(&[&[4], &[8]]);
    let ((x, y), large) = bucket(recorders.pop().unwrap());
    let (_, small) = bucket(recorders.pop().unwrap());
    let buckets = Arc::new(Buckets::new(vec![small, large]).unwrap());
    let policy = Policy {
        ready_max: 1,
        ..Policy::default()
    };
    let mut ring: Ring<()> = Ring::new(&backend, &buckets, 1, &policy, Wait::Block).unwrap();
    let mut first = |live: u32, rebind: bool| {
        let mut slot = ring.acquire().unwrap();
        if rebind {
            let mut bindings = slot.bindings(0).unwrap();
            bindings.set_scalar(0, "factor", 5_f32).unwrap();
            assert_eq!(slot.rebind(0, bindings).unwrap(), Rung::Params);
        }
        slot.write(x).fill(1.0);
        ring.submit(slot, Extent::from([live]), ()).unwrap();
        let finished = ring.wait().unwrap();
        let value = finished.as_ref().ok().unwrap().read(y)[0];
        ring.release(finished);
        value
    };
    assert_eq!(first(3, false), 2.0);
    assert_eq!(first(3, true), 5.0);
    assert_eq!(
        first(7, false),
        2.0,
        "the other bucket, for which it is dropped"
    );
    assert_eq!(first(3, false), 5.0, "made again as it was bound");
}

#[test]
fn the_error_of_a_batch_is_returned_by_the_wait_and_not_by_the_next_batch() {
    let kernel = Kernel::new("fails_at_999")
        .reads::<u32>("x")
        .writes::<u32>("y")
        .twin(|launch| {
            let (x, y): (&[u32], &mut [u32]) = (launch.read(), launch.write());
            assert!(x[0] != 999, "planted");
            y[0] = x[0];
        });
    let mut recorder = Recorder::new(&[1]);
    let x = recorder.upload_buffer::<u32>("x", 0, 1);
    let y = recorder.download_buffer::<u32>("y", 0, 1);
    recorder.upload(x);
    recorder.launch(&kernel, 1, &[x.into(), y.into()]);
    recorder.download(y);
    let buckets = Arc::new(Buckets::single(recorder.finish().unwrap()));
    let recording = Arc::clone(&buckets.largest().recording);
    let (backend, policy) = (cpu(), Policy::default());
    let device_slots = backend.open_slots(recording.buffers(), 1, Priority::Normal);
    let mut device_slot = device_slots.unwrap().remove(0);
    let device_slot = &mut *device_slot;
    let mut executor = Executor::new(&backend, device_slot, &buckets, &policy).unwrap();
    let allocation = backend.allocate(Space::Pinned, 4).unwrap();
    bytemuck::cast_slice_mut(&mut allocation.write().unwrap())[0] = 999u32;
    for buffer in [x, y] {
        let mut bindings = Bindings::new(&recording, &*backend, device_slot, &policy).unwrap();
        let view = AllocationView::new(&allocation, 0, 4).unwrap();
        bindings.bind_host(buffer, view).unwrap();
        executor.update(device_slot, 0, bindings).unwrap();
        // The second one writes the allocation that the first one reads, so the first runs.
        executor.replay(device_slot, 0, Extent::from([1])).unwrap();
    }
    let error = device_slot.wait().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Kernel, "{error}");
    assert!(error.to_string().contains("fails_at_999"), "{error}");
    device_slot.host_mut(&[x.id()])[0].fill(0);
    executor.replay(device_slot, 0, Extent::from([1])).unwrap();
    device_slot.wait().unwrap();
}

/// A device that runs no loops.
struct NoLoops;

impl BackendHooks for NoLoops {
    type Slot = Self;

    fn slot(&self, _: &[Box<dyn DeviceSlot>]) -> Self {
        NoLoops
    }
}

impl SlotHooks for NoLoops {
    fn make_resident(&mut self, _: &mut dyn DeviceSlot, _: GraphId, _: Residency) -> Result<bool> {
        Err(Error::new(ErrorKind::Unavailable, "planted"))
    }
}

#[test]
fn a_graph_without_a_loop_is_launched_where_the_policy_allows_it() {
    let backends = [NoLoops.around(cpu())];
    let open = |mode, fallback| {
        let mut config = EngineConfig::new([64, 8]);
        config.policy = Policy {
            fallback,
            ..Policy::new(mode)
        };
        let pool = Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap());
        Pipeline::new(Scale::new(2.0), &backends, pool, &config)
    };
    let refused = open(Mode::Resident, Fallback::None).map(|_| ());
    let error = refused.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("planted"));
    let mut pipeline = open(Mode::Resident, Fallback::Launches).unwrap();
    for vector in vectors(20) {
        pipeline.submit(vector).map_err(|_| ()).unwrap();
        let (_, done) = pipeline.wait().unwrap();
        assert_eq!(done.result.unwrap().0, doubled(&done.item));
    }
}
