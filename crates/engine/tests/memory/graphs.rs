//! Allocations that graphs run on are not lent again.

use super::{SPACES, backend, roomy, stats, take};
use std::sync::Arc;
use tapeloop_engine::backend::Backend;
use tapeloop_engine::backend::contract::{DeviceSlot, Priority};
use tapeloop_engine::memory::Pool;
use tapeloop_engine::record::{Buffer, Kernel, Recorder, Recording, TwinLaunch};
use tapeloop_engine::replay::{Buckets, Executor, Policy, Rung};
use tapeloop_engine::workload::Extent;

const LEN: u32 = 100;

fn increment(launch: &mut TwinLaunch<'_>) {
    let x: &[i32] = launch.read();
    let y: &mut [i32] = launch.write();
    y[..LEN as usize].copy_from_slice(&x[..LEN as usize]);
    y[..LEN as usize].iter_mut().for_each(|y| *y += 1);
}

struct Setup {
    device_slot: Box<dyn DeviceSlot>,
    executor: Executor,
    x: Buffer<i32>,
    y: Buffer<i32>,
}

fn recording() -> (Recording, Buffer<i32>, Buffer<i32>) {
    let kernel = Kernel::new("increment")
        .reads::<i32>("x")
        .writes::<i32>("y")
        .twin(increment);
    let mut recorder = Recorder::new(&[LEN]);
    let x = recorder.upload_buffer("x", 0, 1);
    let y = recorder.download_buffer("y", 0, 1);
    recorder.upload(x);
    recorder.launch(&kernel, 1, &[x.into(), y.into()]);
    recorder.download(y);
    (recorder.finish().unwrap(), x, y)
}

fn setup(backend: &Arc<dyn Backend>) -> Setup {
    let (recording, x, y) = recording();
    let buffers = recording.buffers().to_vec();
    let mut device_slot = backend
        .open_slots(&buffers, 1, Priority::Normal)
        .unwrap()
        .remove(0);
    let buckets = Arc::new(Buckets::single(recording));
    let executor = Executor::new(backend, &mut *device_slot, &buckets, &Policy::default()).unwrap();
    Setup {
        device_slot,
        executor,
        x,
        y,
    }
}

#[test]
fn a_allocation_is_parked_while_a_graph_holds_it() {
    let backend = backend();
    let pool = Pool::new(Arc::clone(&backend), roomy());
    let Setup {
        mut device_slot,
        mut executor,
        x,
        y,
    } = setup(&backend);
    let mut input = pool.pinned::<i32>(100, "input").unwrap();
    input.write().unwrap().fill(4);
    let output = pool.pinned::<i32>(100, "output").unwrap();
    let work = pool.device::<i32>(100, "work").unwrap();

    let as_recorded = executor.bindings(&mut *device_slot, 0).unwrap().clone();
    let mut bindings = as_recorded.clone();
    bindings.bind_host(x, input.view()).unwrap();
    bindings.bind_device(x, work.view()).unwrap();
    bindings.bind_host(y, output.view()).unwrap();
    let rung = executor.update(&mut *device_slot, 0, bindings).unwrap();
    assert_ne!(rung, Rung::Unchanged);

    let address = work.view().address();
    drop((input, work));
    for space in SPACES {
        assert_eq!(stats(&pool, space).parked_bytes, 448, "{space:?}");
        let another = take(&pool, space, 400, "another").unwrap();
        assert_ne!(another.view().address(), address);
        let after = stats(&pool, space);
        assert_eq!((after.hits, after.parked_bytes), (0, 448), "not lent again");
    }

    // The graph runs on what it was given all the same.
    executor
        .replay(&mut *device_slot, 0, Extent::from([LEN]))
        .unwrap();
    assert!(output.read().is_err(), "it is the device's turn");
    device_slot.wait().unwrap();
    assert_eq!(*output.read().unwrap(), [5; 100]);

    executor.update(&mut *device_slot, 0, as_recorded).unwrap();
    let free = stats(&pool, SPACES[0]);
    assert_eq!((free.parked_bytes, free.cached_bytes), (0, 448 + 448));
    let reused = [(); 2].map(|()| pool.device::<i32>(100, "reused").unwrap());
    assert!(
        reused
            .iter()
            .any(|buffer| buffer.view().address() == address)
    );
    assert_eq!(pool.stats().device.hits, 2);
}

#[test]
fn a_allocation_is_parked_while_work_in_flight_holds_it() {
    let backend = backend();
    let pool = Pool::new(Arc::clone(&backend), roomy());
    let Setup {
        mut device_slot,
        mut executor,
        x,
        ..
    } = setup(&backend);
    let as_recorded = executor.bindings(&mut *device_slot, 0).unwrap().clone();
    let mut bindings = as_recorded.clone();
    let work = pool.device::<i32>(100, "work").unwrap();
    bindings.bind_device(x, work.view()).unwrap();
    executor.update(&mut *device_slot, 0, bindings).unwrap();
    executor
        .replay(&mut *device_slot, 0, Extent::from([LEN]))
        .unwrap();
    let address = work.view().address();
    drop(work);
    executor.update(&mut *device_slot, 0, as_recorded).unwrap();
    assert_eq!(
        pool.stats().device.parked_bytes,
        448,
        "the launch is not done"
    );
    device_slot.wait().unwrap();
    let reused = pool.device::<i32>(100, "reused").unwrap();
    assert_eq!(reused.view().address(), address);
    assert_eq!(pool.stats().device.parked_bytes, 0);
}

#[test]
fn a_pool_that_closes_leaves_graphs_their_allocations() {
    let backend = backend();
    let pool = Pool::new(Arc::clone(&backend), roomy());
    let Setup {
        mut device_slot,
        mut executor,
        x,
        y,
    } = setup(&backend);
    let mut input = pool.pinned::<i32>(100, "input").unwrap();
    let output = pool.pinned::<i32>(100, "output").unwrap();
    input.write().unwrap().fill(8);
    let mut bindings = executor.bindings(&mut *device_slot, 0).unwrap().clone();
    bindings.bind_host(x, input.view()).unwrap();
    bindings.bind_host(y, output.view()).unwrap();
    executor.update(&mut *device_slot, 0, bindings).unwrap();
    drop(input);
    drop(pool);
    executor
        .replay(&mut *device_slot, 0, Extent::from([LEN]))
        .unwrap();
    device_slot.wait().unwrap();
    assert_eq!(*output.read().unwrap(), [9; 100]);
}
