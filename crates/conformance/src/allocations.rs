//! Allocations: copies, addresses, and whose turn it is. A supervised device has none of them
//! ([`memory_that_would_be_lost_is_refused`](crate::recovery::memory_that_would_be_lost_is_refused)), so
//! these scenarios do nothing there.

use crate::assert_refused;
use crate::give::{Give, download, memset, upload};
use crate::program::{CAPACITIES, Input, Program, unverified};
use crate::slots::refusal;
use std::sync::Arc;
use tapeloop_engine::backend::contract::{DeviceSlot, Node};
use tapeloop_engine::backend::cpu::CpuBackend;
use tapeloop_engine::backend::{Allocation, AllocationView, Backend, Space};
use tapeloop_engine::replay::{Executor, Mode, Policy};
use tapeloop_engine::{Error, ErrorKind};

/// Elements and bytes of a batch of the larger bucket.
const LEN: usize = CAPACITIES[1];
const BYTES: usize = 4 * LEN;

fn assert_usage(error: &Error) {
    assert_refused(error, ErrorKind::Usage, &[]);
}

fn read_all(backend: &Arc<dyn Backend>, allocation: &Allocation) -> Vec<u8> {
    let mut bytes = vec![0xEE; allocation.bytes()];
    backend.read(allocation, 0, &mut bytes).unwrap();
    bytes
}

/// Copies between all spaces, of odd lengths and places; ranges outside of an allocation, and ranges
/// that overlap, are refused.
pub fn parts_of_allocations_are_copied_and_the_rest_is_left(backend: &Arc<dyn Backend>) {
    // A prime, so that the end is at no multiple of a word or a page.
    const BYTES: usize = 100_003;
    if backend.is_supervised() {
        return;
    }
    let spaces = [Space::Device, Space::Pinned];
    let pattern: Vec<u8> = (0..BYTES).map(|i| (i * 31 % 251) as u8).collect();
    for from_space in spaces {
        for to_space in spaces {
            let from = backend.allocate(from_space, BYTES).unwrap();
            let to = backend.allocate(to_space, BYTES).unwrap();
            assert!(read_all(backend, &to).iter().all(|byte| *byte == 0));
            backend.write(&pattern, &from, 0).unwrap();
            backend.copy(&from, 17, &to, 40_001, 30_000).unwrap();
            let mut expected = vec![0; BYTES];
            expected[40_001..70_001].copy_from_slice(&pattern[17..30_017]);
            assert!(read_all(backend, &to) == expected);
            backend.copy(&to, 40_001, &to, 5, 30_000).unwrap();
            expected.copy_within(40_001..70_001, 5);
            backend.write(&[9; 3], &to, BYTES - 3).unwrap();
            expected[BYTES - 3..].fill(9);
            assert!(read_all(backend, &to) == expected);
            let mut part = [0; 10];
            backend.read(&to, 1_000, &mut part).unwrap();
            assert_eq!(part, expected[1_000..1_010]);
            backend.copy(&from, BYTES, &to, 0, 0).unwrap();
            assert_usage(&backend.copy(&from, BYTES - 5, &to, 0, 6).unwrap_err());
            assert_usage(&backend.write(&[0; 2], &to, BYTES - 1).unwrap_err());
            assert_usage(&backend.read(&to, usize::MAX, &mut part).unwrap_err());
            assert_usage(&backend.copy(&to, 0, &to, 9, 10).unwrap_err());
        }
    }
}

/// The host reads and writes pinned memory under a guard, and nothing else uses it meanwhile.
pub fn guards_and_copies_exclude_each_other(backend: &Arc<dyn Backend>) {
    if backend.is_supervised() {
        return;
    }
    let pinned = backend.allocate(Space::Pinned, 64).unwrap();
    let device = backend.allocate(Space::Device, 64).unwrap();
    assert_usage(&device.read().err().unwrap());
    let guard = pinned.write().unwrap();
    assert_usage(&backend.copy(&pinned, 0, &device, 0, 64).unwrap_err());
    assert_usage(&backend.read(&pinned, 0, &mut [0; 4]).unwrap_err());
    drop(guard);
    let guard = pinned.read().unwrap();
    backend.copy(&pinned, 0, &device, 0, 64).unwrap();
    assert_usage(&backend.copy(&device, 0, &pinned, 0, 64).unwrap_err());
    assert_usage(&backend.write(&[0; 4], &pinned, 0).unwrap_err());
    drop(guard);
    backend.copy(&device, 0, &pinned, 0, 64).unwrap();
    let empty = backend.allocate(Space::Pinned, 0).unwrap();
    assert!(empty.read().unwrap().is_empty());
}

/// A slot refuses an allocation that it has not adopted, a range beyond one or on the wrong side, and
/// memory of another backend.
pub fn only_adopted_memory_may_be_addressed(backend: &Arc<dyn Backend>) {
    if backend.is_supervised() {
        return;
    }
    let program = Program::new();
    let mut device_slot = program.open(backend, 1).unwrap().remove(0);
    let device_slot = &mut *device_slot;
    let device = backend.allocate(Space::Device, 4 * BYTES).unwrap();
    let pinned = backend.allocate(Space::Pinned, BYTES).unwrap();
    let good = upload(pinned.address(), device.address(), BYTES);
    assert_usage(&refusal(device_slot, &good));
    device_slot.adopt(&device).unwrap();
    assert_usage(&refusal(device_slot, &good));
    device_slot.adopt(&pinned).unwrap();
    device_slot.give(&good).unwrap();
    let mut refused = vec![
        upload(pinned.address(), device.address(), BYTES + 1),
        upload(pinned.address() + 1, device.address(), BYTES),
        memset(device.address() + 3 * BYTES as u64 + 1, 0, BYTES),
    ];
    if !backend.device().shares_host_memory {
        refused.extend([
            upload(device.address(), device.address() + 64, 64),
            upload(pinned.address(), pinned.address() + 64, 64),
            memset(pinned.address(), 0, 1),
        ]);
    }
    for bad in refused {
        assert_usage(&device_slot.give(&bad).unwrap_err());
        let nodes = [Node {
            op: &bad,
            after: &[],
        }];
        assert_usage(&device_slot.give_graph(&nodes, None).unwrap_err());
    }
    let other = CpuBackend::inline().allocate(Space::Pinned, 64).unwrap();
    assert_usage(&device_slot.adopt(&other).unwrap_err());
    assert_usage(&backend.write(&[0; 4], &other, 0).unwrap_err());
    device_slot.fence().unwrap();
    device_slot.wait().unwrap();
    device_slot.disown(&device);
    assert_usage(&refusal(device_slot, &good));
}

/// An executor over allocations: `x` from one, `y` to the other.
struct Bound {
    program: Program,
    device_slot: Box<dyn DeviceSlot>,
    executor: Executor,
    x: Allocation,
    y: Allocation,
}

impl Bound {
    /// A slot whose buffers `x` and `y` are bound to two allocations of pinned memory.
    fn new(backend: &Arc<dyn Backend>, mode: Mode) -> Self {
        let program = Program::new();
        let policy = unverified(Policy::new(mode));
        let (mut device_slot, mut executor) = program.slot(backend, &policy);
        let [x, y] = [0, 1].map(|_| backend.allocate(Space::Pinned, BYTES).unwrap());
        let mut bindings = executor.bindings(&mut *device_slot, 1).unwrap().clone();
        let view = |allocation| AllocationView::new(allocation, 0, BYTES).unwrap();
        bindings.bind_host(program.handles.x, view(&x)).unwrap();
        bindings.bind_host(program.handles.y, view(&y)).unwrap();
        executor.update(&mut *device_slot, 1, bindings).unwrap();
        Bound {
            program,
            device_slot,
            executor,
            x,
            y,
        }
    }

    /// Gives a batch whose `x` is in the allocation.
    fn give(&mut self, seed: u64) -> tapeloop_engine::Result<Input> {
        let input = Input::from_seed(seed, LEN);
        if let Ok(mut x) = self.x.write() {
            bytemuck::cast_slice_mut(&mut x).copy_from_slice(&input.x);
        }
        let given = (self.program).give(&mut *self.device_slot, &mut self.executor, &input);
        given.map(|_| input)
    }

    fn assert_right(&self, input: &Input) {
        let y = self.y.read().unwrap();
        assert!(*y == *bytemuck::cast_slice::<f32, u8>(&input.y(2.0)));
    }
}

/// Until a slot has seen its work done, the host may read what the work reads, and nothing else.
pub fn the_host_and_the_device_use_memory_in_turn(backend: &Arc<dyn Backend>) {
    if backend.is_supervised() {
        return;
    }
    for mode in [Mode::Stream, Mode::Graph] {
        let mut bound = Bound::new(backend, mode);
        let input = bound.give(1).unwrap();
        assert!(bound.x.read().is_ok(), "both read it");
        assert_usage(&bound.x.write().err().unwrap());
        assert_usage(&bound.y.read().err().unwrap());
        assert_usage(&backend.read(&bound.y, 0, &mut [0; 4]).unwrap_err());
        bound.device_slot.wait().unwrap();
        bound.assert_right(&input);
        assert!(bound.x.write().is_ok());
    }
}

/// A refused batch holds nothing, and the next one is right.
pub fn work_on_memory_that_the_host_holds_is_refused_and_the_slot_goes_on(
    backend: &Arc<dyn Backend>,
) {
    if backend.is_supervised() {
        return;
    }
    for mode in [Mode::Stream, Mode::Graph] {
        let mut bound = Bound::new(backend, mode);
        let y = bound.y.clone();
        let guard = y.read().unwrap();
        assert_usage(&bound.give(1).unwrap_err());
        drop(guard);
        // Of a batch of launches, those before the refused one may have been given.
        bound.device_slot.wait().unwrap();
        assert!(bound.x.write().is_ok(), "nothing is in flight");
        let input = bound.give(2).unwrap();
        bound.device_slot.wait().unwrap();
        bound.assert_right(&input);
    }
}

/// Two slots may read an allocation at the same time; a slot that writes it is alone.
pub fn slots_read_an_allocation_together_and_write_it_alone(backend: &Arc<dyn Backend>) {
    if backend.is_supervised() {
        return;
    }
    let program = Program::new();
    let mut device_slots = program.open(backend, 2).unwrap();
    let allocation = backend.allocate(Space::Pinned, BYTES).unwrap();
    backend.write(&[7; BYTES], &allocation, 0).unwrap();
    let host = allocation.address();
    let device =
        |device_slot: &dyn DeviceSlot| device_slot.addresses(program.handles.x.id()).device;
    let up = |device_slot: &dyn DeviceSlot| upload(host, device(device_slot), BYTES);
    let down = download(device(&*device_slots[0]), host, BYTES);
    for device_slot in &mut device_slots {
        device_slot.adopt(&allocation).unwrap();
        let up = up(&**device_slot);
        device_slot.give(&up).unwrap();
        device_slot.fence().unwrap();
    }
    assert_usage(&device_slots[0].give(&down).unwrap_err());
    for device_slot in &mut device_slots {
        device_slot.wait().unwrap();
    }
    // A lease to read becomes one to write when no other slot reads.
    let change = memset(device(&*device_slots[0]), 8, BYTES);
    for op in [&up(&*device_slots[0]), &change, &down] {
        device_slots[0].give(op).unwrap();
    }
    let up = up(&*device_slots[1]);
    assert_usage(&device_slots[1].give(&up).unwrap_err());
    device_slots[0].fence().unwrap();
    device_slots[0].wait().unwrap();
    assert!(allocation.read().unwrap().iter().all(|byte| *byte == 8));
}

/// Memory that a graph uses is neither freed nor given to others when its handles are dropped.
pub fn a_graph_keeps_allocations_whose_handles_are_dropped(backend: &Arc<dyn Backend>) {
    if backend.is_supervised() {
        return;
    }
    let mut bound = Bound::new(backend, Mode::Graph);
    let bindings = bound.executor.bindings(&mut *bound.device_slot, 1).unwrap();
    let mut bindings = bindings.clone();
    let device = backend.allocate(Space::Device, BYTES).unwrap();
    let view = AllocationView::new(&device, 0, BYTES).unwrap();
    bindings.bind_device(bound.program.handles.w, view).unwrap();
    let updated = bound.executor.update(&mut *bound.device_slot, 1, bindings);
    updated.unwrap();
    drop(device);
    for seed in 0..20 {
        // Memory of the same size, which would come to lie where freed memory did.
        let other = backend.allocate(Space::Device, BYTES).unwrap();
        backend.write(&[0xFF; BYTES], &other, 0).unwrap();
        let input = bound.give(seed).unwrap();
        bound.device_slot.wait().unwrap();
        bound.assert_right(&input);
        assert!(read_all(backend, &other).iter().all(|byte| *byte == 0xFF));
    }
    // In flight without any handle but the slot's, and then without the slot.
    bound.give(20).unwrap();
    let Bound {
        device_slot,
        executor,
        x,
        y,
        program,
    } = bound;
    drop((x, y, executor));
    drop(device_slot);
    let (mut device_slot, mut executor) = program.slot(backend, &Policy::default());
    program.run(&mut *device_slot, &mut executor, &Input::from_seed(21, LEN));
}

/// A slot that is dropped with work in flight ends the work, or takes it back, before it gives up the
/// memory.
pub fn a_dropped_slot_gives_its_allocations_back(backend: &Arc<dyn Backend>) {
    if backend.is_supervised() {
        return;
    }
    let program = Program::new();
    let mut device_slot = program.open(backend, 1).unwrap().remove(0);
    let device = backend.allocate(Space::Device, BYTES).unwrap();
    device_slot.adopt(&device).unwrap();
    let memset = memset(device.address(), 5, BYTES);
    device_slot.give(&memset).unwrap();
    assert_usage(&backend.write(&[6; BYTES], &device, 0).unwrap_err());
    drop(device_slot);
    backend.write(&[7; BYTES], &device, 0).unwrap();
    assert!(read_all(backend, &device).iter().all(|byte| *byte == 7));
}
