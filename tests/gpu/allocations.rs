//! Allocations on a real device: copies, addresses, and whose turn it is. Without a
//! device, each test says "skipped: no device".

use crate::give::Give;
use crate::gpu::*;
use std::sync::Arc;
use tapeloop::backend::contract::{DeviceSlot, Op};
use tapeloop::backend::{Allocation, AllocationView, Backend, Space};
use tapeloop::record::Kernel;
use tapeloop::replay::{Bindings, Executor, Mode};
use tapeloop::{Error, ErrorKind};

const FLOATS: usize = LEN * size_of::<f32>();

fn is_usage(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
}

fn read_all(backend: &Arc<dyn Backend>, allocation: &Allocation) -> Vec<u8> {
    let mut bytes = vec![0xEE; allocation.bytes()];
    backend.read(allocation, 0, &mut bytes).unwrap();
    bytes
}

#[test]
fn parts_of_allocations_are_copied_and_the_rest_is_left() {
    const BYTES: usize = 100_003;
    let Some(backend) = device() else { return };
    let spaces = [Space::Device, Space::Pinned];
    let pattern: Vec<u8> = (0..BYTES).map(|i| (i * 31 % 251) as u8).collect();
    for from_space in spaces {
        for to_space in spaces {
            let from = backend.allocate(from_space, BYTES).unwrap();
            let to = backend.allocate(to_space, BYTES).unwrap();
            assert!(read_all(&backend, &to).iter().all(|byte| *byte == 0));
            backend.write(&pattern, &from, 0).unwrap();
            backend.copy(&from, 17, &to, 40_001, 30_000).unwrap();
            let mut expected = vec![0; BYTES];
            expected[40_001..70_001].copy_from_slice(&pattern[17..30_017]);
            assert!(read_all(&backend, &to) == expected);
            backend.copy(&to, 40_001, &to, 5, 30_000).unwrap();
            expected.copy_within(40_001..70_001, 5);
            backend.write(&[9; 3], &to, BYTES - 3).unwrap();
            expected[BYTES - 3..].fill(9);
            assert!(read_all(&backend, &to) == expected);
            let mut part = [0; 10];
            backend.read(&to, 1_000, &mut part).unwrap();
            assert_eq!(part, expected[1_000..1_010]);
            backend.copy(&from, BYTES, &to, 0, 0).unwrap();
            let beyond = backend.copy(&from, BYTES - 5, &to, 0, 6);
            is_usage(&beyond.unwrap_err());
            is_usage(&backend.write(&[0; 2], &to, BYTES - 1).unwrap_err());
            is_usage(&backend.read(&to, usize::MAX, &mut part).unwrap_err());
            is_usage(&backend.copy(&to, 0, &to, 9, 10).unwrap_err());
        }
    }
}

#[test]
fn guards_and_copies_exclude_each_other() {
    let Some(backend) = device() else { return };
    let pinned = backend.allocate(Space::Pinned, 64).unwrap();
    let device = backend.allocate(Space::Device, 64).unwrap();
    is_usage(&device.read().err().unwrap());
    let guard = pinned.write().unwrap();
    is_usage(&backend.copy(&pinned, 0, &device, 0, 64).unwrap_err());
    is_usage(&backend.read(&pinned, 0, &mut [0; 4]).unwrap_err());
    drop(guard);
    let guard = pinned.read().unwrap();
    backend.copy(&pinned, 0, &device, 0, 64).unwrap();
    is_usage(&backend.copy(&device, 0, &pinned, 0, 64).unwrap_err());
    is_usage(&backend.write(&[0; 4], &pinned, 0).unwrap_err());
    drop(guard);
    backend.copy(&device, 0, &pinned, 0, 64).unwrap();
    let empty = backend.allocate(Space::Pinned, 0).unwrap();
    assert!(empty.read().unwrap().is_empty());
    let error = backend.allocate(Space::Device, 1 << 43).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
}

#[test]
fn only_adopted_memory_may_be_addressed_and_on_its_own_side() {
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    let mut device_slot = one_slot(&backend, &saxpy.recording);
    let device = backend.allocate(Space::Device, 4 * FLOATS).unwrap();
    let pinned = backend.allocate(Space::Pinned, FLOATS).unwrap();
    let upload = |host: u64, device: u64, bytes: usize| Op::Upload {
        host,
        device,
        bytes,
    };
    let good = upload(pinned.address(), device.address(), FLOATS);
    is_usage(&device_slot.give(&good).unwrap_err());
    device_slot.adopt(&device).unwrap();
    is_usage(&device_slot.give(&good).unwrap_err());
    device_slot.adopt(&pinned).unwrap();
    device_slot.give(&good).unwrap();
    for bad in [
        upload(pinned.address(), device.address(), FLOATS + 1),
        upload(pinned.address() + 1, device.address(), FLOATS),
        upload(device.address(), device.address() + 64, 64),
        upload(pinned.address(), pinned.address() + 64, 64),
        Op::Memset {
            device: device.address() + 3 * FLOATS as u64 + 1,
            byte: 0,
            bytes: FLOATS,
        },
        Op::Memset {
            device: pinned.address(),
            byte: 0,
            bytes: 1,
        },
    ] {
        is_usage(&device_slot.give(&bad).unwrap_err());
        let nodes = [tapeloop::backend::contract::Node {
            op: &bad,
            after: &[],
        }];
        is_usage(&device_slot.give_graph(&nodes, None).unwrap_err());
    }
    let image = source_image(SAXPY);
    let kernel = Kernel::new("slow").writes::<f32>("out").scalar::<u32>("n");
    let function = backend.load(&with_code(kernel, &image)).unwrap();
    let launch = |out: u64| Op::Launch {
        function,
        grid: [1, 1, 1],
        block: [1, 1, 1],
        shared_bytes: 0,
        args: Box::new([out, 1]),
    };
    let own = device_slot.addresses(saxpy.x.id());
    for at in [own.device, own.host.unwrap(), pinned.address()] {
        device_slot.give(&launch(at)).unwrap();
    }
    for at in [8, device.address() + device.bytes() as u64] {
        is_usage(&device_slot.give(&launch(at)).unwrap_err());
    }
    device_slot.fence().unwrap();
    device_slot.wait().unwrap();
    device_slot.disown(&device);
    is_usage(&device_slot.give(&good).unwrap_err());
}

/// An executor over allocations: `x` from one, `out` to the other.
struct Bound {
    saxpy: Saxpy,
    device_slot: Box<dyn DeviceSlot>,
    executor: Executor,
    x: Allocation,
    out: Allocation,
}

impl Bound {
    fn new(backend: &Arc<dyn Backend>, mode: Mode) -> Self {
        let saxpy = saxpy();
        let mut device_slot = one_slot(backend, &saxpy.recording);
        let mut executor = ready(backend, &saxpy.recording, &mut *device_slot, mode);
        let [x, out] = [0, 1].map(|_| backend.allocate(Space::Pinned, FLOATS).unwrap());
        let mut bindings: Bindings = executor.bindings(&mut *device_slot, 0).unwrap().clone();
        let view = |allocation: &Allocation| AllocationView::new(allocation, 0, FLOATS).unwrap();
        bindings.bind_host(saxpy.x, view(&x)).unwrap();
        bindings.bind_host(saxpy.out, view(&out)).unwrap();
        executor.update(&mut *device_slot, 0, bindings).unwrap();
        Bound {
            saxpy,
            device_slot,
            executor,
            x,
            out,
        }
    }
}

#[test]
fn the_host_s_turn_and_the_device_s_exclude_each_other() {
    let Some(backend) = device() else { return };
    for mode in MODES {
        let mut bound = Bound::new(&backend, mode);
        let (x, expected) = expected(0, 1);
        bytemuck::cast_slice_mut(&mut bound.x.write().unwrap()).copy_from_slice(&x);
        replay(&mut *bound.device_slot, &mut bound.executor);
        // Whatever the device has done by now, the slot has not seen it done.
        assert!(bound.x.read().is_ok(), "both read it");
        is_usage(&bound.x.write().err().unwrap());
        is_usage(&bound.out.read().err().unwrap());
        is_usage(&backend.read(&bound.out, 0, &mut [0; 4]).unwrap_err());
        bound.device_slot.wait().unwrap();
        assert!(*bound.out.read().unwrap() == *bytemuck::cast_slice::<f32, u8>(&expected));
        assert!(bound.x.write().is_ok());
    }
}

#[test]
fn work_on_an_allocation_that_the_host_holds_is_refused_and_the_slot_goes_on() {
    let Some(backend) = device() else { return };
    let mut bound = Bound::new(&backend, Mode::Graph);
    let live = bound.executor.buckets().largest().capacity;
    let guard = bound.out.read().unwrap();
    let refused = bound.executor.replay(&mut *bound.device_slot, 0, live);
    is_usage(&refused.unwrap_err());
    // What the refused launch took is given back: nothing is in flight.
    assert!(bound.x.write().is_ok());
    drop(guard);
    let (x, expected) = expected(0, 2);
    bytemuck::cast_slice_mut(&mut bound.x.write().unwrap()).copy_from_slice(&x);
    replay(&mut *bound.device_slot, &mut bound.executor);
    bound.device_slot.wait().unwrap();
    assert!(*bound.out.read().unwrap() == *bytemuck::cast_slice::<f32, u8>(&expected));
}

#[test]
fn slots_read_an_allocation_together_and_write_it_alone() {
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    let mut device_slots = device_slots(&backend, &saxpy.recording, 2);
    let allocation = backend.allocate(Space::Pinned, FLOATS).unwrap();
    backend.write(&[7; FLOATS], &allocation, 0).unwrap();
    let ops = |device_slot: &dyn DeviceSlot| {
        let device = device_slot.addresses(saxpy.x.id()).device;
        let (host, bytes) = (allocation.address(), FLOATS);
        let (up, down) = (
            Op::Upload {
                host,
                device,
                bytes,
            },
            Op::Download {
                device,
                host,
                bytes,
            },
        );
        (up, down)
    };
    for device_slot in &mut device_slots {
        device_slot.adopt(&allocation).unwrap();
        let (up, _) = ops(&**device_slot);
        device_slot.give(&up).unwrap();
        device_slot.fence().unwrap();
    }
    let (_, down) = ops(&*device_slots[0]);
    is_usage(&device_slots[0].give(&down).unwrap_err());
    device_slots
        .iter_mut()
        .for_each(|device_slot| device_slot.wait().unwrap());
    // A turn to read becomes one to write once nobody else reads.
    let (up, down) = ops(&*device_slots[0]);
    let device = device_slots[0].addresses(saxpy.x.id()).device;
    let change = Op::Memset {
        device,
        byte: 8,
        bytes: FLOATS,
    };
    for op in [&up, &change, &down] {
        device_slots[0].give(op).unwrap();
    }
    let (up, _) = ops(&*device_slots[1]);
    is_usage(&device_slots[1].give(&up).unwrap_err());
    device_slots[0].fence().unwrap();
    device_slots[0].wait().unwrap();
    assert!(allocation.read().unwrap().iter().all(|byte| *byte == 8));
}

#[test]
fn a_graph_keeps_allocations_whose_handles_are_gone() {
    let Some(backend) = device() else { return };
    let mut bound = Bound::new(&backend, Mode::Graph);
    let saxpy = saxpy();
    let bindings = bound.executor.bindings(&mut *bound.device_slot, 0).unwrap();
    let mut bindings = bindings.clone();
    let device = backend.allocate(Space::Device, FLOATS).unwrap();
    let view = AllocationView::new(&device, 0, FLOATS).unwrap();
    bindings.bind_device(bound.saxpy.x, view).unwrap();
    bound
        .executor
        .update(&mut *bound.device_slot, 0, bindings)
        .unwrap();
    drop(device);
    let Bound {
        mut device_slot,
        mut executor,
        x: host,
        out,
        ..
    } = bound;
    for round in 0..20 {
        // Memory of the same size, which would come to lie where freed memory did.
        let other = backend.allocate(Space::Device, FLOATS).unwrap();
        backend.write(&[0xFF; FLOATS], &other, 0).unwrap();
        let (x, expected) = expected(0, round);
        bytemuck::cast_slice_mut(&mut host.write().unwrap()).copy_from_slice(&x);
        replay(&mut *device_slot, &mut executor);
        device_slot.wait().unwrap();
        assert!(*out.read().unwrap() == *bytemuck::cast_slice::<f32, u8>(&expected));
        assert!(read_all(&backend, &other).iter().all(|byte| *byte == 0xFF));
    }
    // In flight without any handle but the slot's, and then without the slot.
    replay(&mut *device_slot, &mut executor);
    drop((host, out, executor));
    drop(device_slot);
    let mut device_slot = one_slot(&backend, &saxpy.recording);
    let mut executor = ready(&backend, &saxpy.recording, &mut *device_slot, Mode::Graph);
    round(&saxpy, &mut *device_slot, &mut executor, 0, 1);
}

#[test]
fn a_dropped_slot_gives_its_allocations_back_when_its_work_is_done() {
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    let mut device_slot = one_slot(&backend, &saxpy.recording);
    let allocation = backend.allocate(Space::Pinned, FLOATS).unwrap();
    device_slot.adopt(&allocation).unwrap();
    let kernel = Kernel::new("slow").writes::<f32>("out").scalar::<u32>("n");
    let kernel = with_code(kernel, &source_image(SAXPY));
    let function = backend.load(&kernel).unwrap();
    let slow = Op::Launch {
        function,
        grid: [80, 1, 1],
        block: [128, 1, 1],
        shared_bytes: 0,
        args: Box::new([allocation.address(), LEN as u64]),
    };
    device_slot.give(&slow).unwrap();
    is_usage(&allocation.read().err().unwrap());
    drop(device_slot);
    let bytes = allocation.read().unwrap();
    let values: &[f32] = bytemuck::cast_slice(&bytes);
    assert!(
        values
            .iter()
            .all(|value| *value != 0.0 && *value == values[0])
    );
}
