//! Blocks on a real device: copies, addresses, and whose turn it is. Without a
//! device, each test says "skipped: no device".
#![cfg(feature = "cuda")]

#[path = "support/give/mod.rs"]
mod give;
#[path = "support/gpu/mod.rs"]
mod gpu;

use give::Give;
use gpu::*;
use std::sync::Arc;
use tapeloop::backend::{Backend, Block, BlockView, Lane, Op, Queue, Space};
use tapeloop::record::Kernel;
use tapeloop::replay::{Bindings, Executor, Mode};
use tapeloop::{Error, ErrorKind};

const FLOATS: usize = LEN * size_of::<f32>();

fn is_usage(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
}

fn read_all(backend: &Arc<dyn Backend>, block: &Block) -> Vec<u8> {
    let mut bytes = vec![0xEE; block.bytes()];
    backend.read(block, 0, &mut bytes).unwrap();
    bytes
}

#[test]
fn parts_of_blocks_are_copied_and_the_rest_is_left() {
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
    let mut lane = one_lane(&backend, &saxpy.recording);
    let device = backend.allocate(Space::Device, 4 * FLOATS).unwrap();
    let pinned = backend.allocate(Space::Pinned, FLOATS).unwrap();
    let upload = |host: u64, device: u64, bytes: usize| Op::Upload {
        host,
        device,
        bytes,
    };
    let good = upload(pinned.address(), device.address(), FLOATS);
    is_usage(&lane.give(Queue::Upload, &good).unwrap_err());
    lane.adopt(&device).unwrap();
    is_usage(&lane.give(Queue::Upload, &good).unwrap_err());
    lane.adopt(&pinned).unwrap();
    lane.give(Queue::Upload, &good).unwrap();
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
        is_usage(&lane.give(Queue::Upload, &bad).unwrap_err());
        let nodes = [tapeloop::backend::Node {
            op: &bad,
            after: &[],
        }];
        is_usage(&lane.give_graph(&nodes, None).unwrap_err());
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
    let own = lane.addresses(saxpy.x.id());
    for at in [own.device, own.host.unwrap(), pinned.address()] {
        lane.give(Queue::Compute, &launch(at)).unwrap();
    }
    for at in [8, device.address() + device.bytes() as u64] {
        is_usage(&lane.give(Queue::Compute, &launch(at)).unwrap_err());
    }
    lane.fence().unwrap();
    lane.wait().unwrap();
    lane.disown(&device);
    is_usage(&lane.give(Queue::Upload, &good).unwrap_err());
}

/// An executor over blocks: `x` from one, `out` to the other.
struct Bound {
    saxpy: Saxpy,
    lane: Box<dyn Lane>,
    executor: Executor,
    x: Block,
    out: Block,
}

impl Bound {
    fn new(backend: &Arc<dyn Backend>, mode: Mode) -> Self {
        let saxpy = saxpy();
        let mut lane = one_lane(backend, &saxpy.recording);
        let mut executor = ready(backend, &saxpy.recording, &mut *lane, mode);
        let [x, out] = [0, 1].map(|_| backend.allocate(Space::Pinned, FLOATS).unwrap());
        let mut bindings: Bindings = executor.bindings(&mut *lane, 0).unwrap().clone();
        let view = |block: &Block| BlockView::new(block, 0, FLOATS).unwrap();
        bindings.bind_host(saxpy.x, view(&x)).unwrap();
        bindings.bind_host(saxpy.out, view(&out)).unwrap();
        executor.update(&mut *lane, 0, bindings).unwrap();
        Bound {
            saxpy,
            lane,
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
        replay(&mut *bound.lane, &mut bound.executor);
        // Whatever the device has done by now, the lane has not seen it done.
        assert!(bound.x.read().is_ok(), "both read it");
        is_usage(&bound.x.write().err().unwrap());
        is_usage(&bound.out.read().err().unwrap());
        is_usage(&backend.read(&bound.out, 0, &mut [0; 4]).unwrap_err());
        bound.lane.wait().unwrap();
        assert!(*bound.out.read().unwrap() == *bytemuck::cast_slice::<f32, u8>(&expected));
        assert!(bound.x.write().is_ok());
    }
}

#[test]
fn work_on_a_block_that_the_host_holds_is_refused_and_the_lane_goes_on() {
    let Some(backend) = device() else { return };
    let mut bound = Bound::new(&backend, Mode::Graph);
    let live = bound.executor.buckets().largest().capacity;
    let guard = bound.out.read().unwrap();
    let refused = bound.executor.replay(&mut *bound.lane, 0, live);
    is_usage(&refused.unwrap_err());
    // What the refused launch took is given back: nothing is in flight.
    assert!(bound.x.write().is_ok());
    drop(guard);
    let (x, expected) = expected(0, 2);
    bytemuck::cast_slice_mut(&mut bound.x.write().unwrap()).copy_from_slice(&x);
    replay(&mut *bound.lane, &mut bound.executor);
    bound.lane.wait().unwrap();
    assert!(*bound.out.read().unwrap() == *bytemuck::cast_slice::<f32, u8>(&expected));
}

#[test]
fn lanes_read_a_block_together_and_write_it_alone() {
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    let mut lanes = lanes(&backend, &saxpy.recording, 2);
    let block = backend.allocate(Space::Pinned, FLOATS).unwrap();
    backend.write(&[7; FLOATS], &block, 0).unwrap();
    let ops = |lane: &dyn Lane| {
        let device = lane.addresses(saxpy.x.id()).device;
        let (host, bytes) = (block.address(), FLOATS);
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
    for lane in &mut lanes {
        lane.adopt(&block).unwrap();
        let (up, _) = ops(&**lane);
        lane.give(Queue::Upload, &up).unwrap();
        lane.fence().unwrap();
    }
    let (_, down) = ops(&*lanes[0]);
    is_usage(&lanes[0].give(Queue::Download, &down).unwrap_err());
    lanes.iter_mut().for_each(|lane| lane.wait().unwrap());
    // A turn to read becomes one to write once nobody else reads.
    let (up, down) = ops(&*lanes[0]);
    let device = lanes[0].addresses(saxpy.x.id()).device;
    let change = Op::Memset {
        device,
        byte: 8,
        bytes: FLOATS,
    };
    for op in [&up, &change, &down] {
        lanes[0].give(Queue::Compute, op).unwrap();
    }
    let (up, _) = ops(&*lanes[1]);
    is_usage(&lanes[1].give(Queue::Upload, &up).unwrap_err());
    lanes[0].fence().unwrap();
    lanes[0].wait().unwrap();
    assert!(block.read().unwrap().iter().all(|byte| *byte == 8));
}

#[test]
fn a_graph_keeps_blocks_whose_handles_are_gone() {
    let Some(backend) = device() else { return };
    let mut bound = Bound::new(&backend, Mode::Graph);
    let saxpy = saxpy();
    let bindings = bound.executor.bindings(&mut *bound.lane, 0).unwrap();
    let mut bindings = bindings.clone();
    let device = backend.allocate(Space::Device, FLOATS).unwrap();
    let view = BlockView::new(&device, 0, FLOATS).unwrap();
    bindings.bind_device(bound.saxpy.x, view).unwrap();
    bound
        .executor
        .update(&mut *bound.lane, 0, bindings)
        .unwrap();
    drop(device);
    let Bound {
        mut lane,
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
        replay(&mut *lane, &mut executor);
        lane.wait().unwrap();
        assert!(*out.read().unwrap() == *bytemuck::cast_slice::<f32, u8>(&expected));
        assert!(read_all(&backend, &other).iter().all(|byte| *byte == 0xFF));
    }
    // In flight without any handle but the lane's, and then without the lane.
    replay(&mut *lane, &mut executor);
    drop((host, out, executor));
    drop(lane);
    let mut lane = one_lane(&backend, &saxpy.recording);
    let mut executor = ready(&backend, &saxpy.recording, &mut *lane, Mode::Graph);
    round(&saxpy, &mut *lane, &mut executor, 0, 1);
}

#[test]
fn a_dropped_lane_gives_its_blocks_back_when_its_work_is_done() {
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    let mut lane = one_lane(&backend, &saxpy.recording);
    let block = backend.allocate(Space::Pinned, FLOATS).unwrap();
    lane.adopt(&block).unwrap();
    let kernel = Kernel::new("slow").writes::<f32>("out").scalar::<u32>("n");
    let kernel = with_code(kernel, &source_image(SAXPY));
    let function = backend.load(&kernel).unwrap();
    let slow = Op::Launch {
        function,
        grid: [80, 1, 1],
        block: [128, 1, 1],
        shared_bytes: 0,
        args: Box::new([block.address(), LEN as u64]),
    };
    lane.give(Queue::Compute, &slow).unwrap();
    is_usage(&block.read().err().unwrap());
    drop(lane);
    let bytes = block.read().unwrap();
    let values: &[f32] = bytemuck::cast_slice(&bytes);
    assert!(
        values
            .iter()
            .all(|value| *value != 0.0 && *value == values[0])
    );
}
