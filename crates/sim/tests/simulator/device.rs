//! The simulated device's own behaviour: when effects come, what a capture
//! forbids, who holds allocations, what a loss of the device does.

use crate::give::Give;
use crate::seeds::each_seed;
use crate::seeds::simulated::{assert_clean, device, device_with};
use std::cell::Cell;
use std::sync::Arc;
use tapeloop_conformance::program::{Handles, Program};
use tapeloop_engine::ErrorKind;
use tapeloop_engine::backend::contract::{DeviceSlot, Op};
use tapeloop_engine::backend::{AllocationView, Backend, Space};
use tapeloop_engine::record::{Kernel, TwinLaunch};
use tapeloop_engine::replay::Policy;
use tapeloop_sim::{Fault, SimBackend, SimOptions, ViolationKind};

fn device_slots(backend: &Arc<dyn Backend>, count: usize) -> (Handles, Vec<Box<dyn DeviceSlot>>) {
    let program = Program::new();
    let device_slots = program.open(backend, count).unwrap();
    (program.handles, device_slots)
}

fn kinds(sim: &SimBackend) -> Vec<ViolationKind> {
    sim.violations().iter().map(|v| v.kind).collect()
}

fn upload(handles: &Handles, device_slot: &dyn DeviceSlot) -> Op {
    let addresses = device_slot.addresses(handles.x.id());
    Op::Upload {
        host: addresses.host.unwrap(),
        device: addresses.device,
        bytes: 128,
    }
}

fn memset(device: u64, byte: u8, bytes: usize) -> Op {
    Op::Memset {
        device,
        byte,
        bytes,
    }
}

/// A round trip of `x` through the device's scratch, on one slot.
fn trip(handles: &Handles, device_slot: &mut dyn DeviceSlot, byte: u8) {
    let device = device_slot.addresses(handles.y.id()).device;
    let host = device_slot.addresses(handles.y.id()).host.unwrap();
    let bytes = 128;
    device_slot.give(&memset(device, byte, bytes)).unwrap();
    let download = Op::Download {
        device,
        host,
        bytes,
    };
    device_slot.give(&download).unwrap();
    device_slot.fence().unwrap();
}

#[test]
fn effects_come_late_and_are_hidden_until_they_are_seen_done() {
    let late = Cell::new(0);
    let run = each_seed(500, |seed| {
        let (sim, backend) = device_with(SimOptions {
            refuses: false,
            ..SimOptions::seeded(seed)
        });
        let (handles, mut device_slots) = device_slots(&backend, 2);
        let device_slot = &mut *device_slots[0];
        assert_eq!(device_slot.host(handles.y.id()), [0; 128]);
        trip(&handles, device_slot, 0xab);
        late.set(late.get() + u64::from(sim.live().work > 0));
        // However long the device had time for it.
        while sim.live().work > 0 {
            device_slots[1].host(handles.x.id());
        }
        let early = device_slots[0].host(handles.y.id()).to_vec();
        assert!(early != [0xab; 128] && early != [0; 128], "poison");
        assert_eq!(kinds(&sim), [ViolationKind::Unordered]);
        while !device_slots[0].is_done().unwrap() {}
        assert_eq!(device_slots[0].host(handles.y.id()), [0xab; 128]);
        assert_eq!(kinds(&sim).len(), 1);
    });
    assert!(late.get() > run / 10, "{} of {run}", late.get());
}

#[test]
fn a_copy_reads_pinned_memory_when_it_runs_and_not_when_it_is_given() {
    let overtaken = Cell::new(0);
    let run = each_seed(500, |seed| {
        let (_, backend) = device_with(SimOptions {
            refuses: false,
            ..SimOptions::seeded(seed)
        });
        let (handles, mut device_slots) = device_slots(&backend, 1);
        let device_slot = &mut *device_slots[0];
        let op = upload(&handles, device_slot);
        device_slot.host_mut(&[handles.x.id()])[0].fill(1);
        device_slot.give(&op).unwrap();
        // Too early, and some of the time it is what the copy finds.
        device_slot.host_mut(&[handles.x.id()])[0].fill(2);
        let host = device_slot.addresses(handles.y.id()).host.unwrap();
        let device = device_slot.addresses(handles.x.id()).device;
        let download = Op::Download {
            device,
            host,
            bytes: 128,
        };
        device_slot.give(&download).unwrap();
        device_slot.fence().unwrap();
        device_slot.wait().unwrap();
        let found = device_slot.host(handles.y.id())[127];
        overtaken.set(overtaken.get() + u64::from(found == 2));
    });
    let overtaken = overtaken.get();
    assert!(
        overtaken > run / 10 && overtaken < run,
        "{overtaken} of {run}"
    );
}

#[test]
fn the_same_seed_is_the_same_run() {
    let trace = |seed: u64| {
        let (_, backend) = device(seed);
        let (handles, mut device_slots) = device_slots(&backend, 2);
        let mut answers = Vec::new();
        for round in 0..4 {
            device_slots
                .iter_mut()
                .for_each(|device_slot| trip(&handles, &mut **device_slot, round));
            for device_slot in &mut device_slots {
                let mut polls = 0;
                while !device_slot.is_done().unwrap() {
                    polls += 1;
                }
                answers.push(polls);
            }
        }
        answers
    };
    let mut traces: Vec<Vec<u32>> = (0..50).map(trace).collect();
    assert_eq!(traces, (0..50).map(trace).collect::<Vec<_>>());
    traces.sort_unstable();
    traces.dedup();
    assert!(traces.len() > 40, "and others are others");
}

#[test]
fn a_wait_leaves_other_slots_their_work() {
    let left = Cell::new(0);
    each_seed(100, |seed| {
        let (sim, backend) = device(seed);
        let (handles, mut device_slots) = device_slots(&backend, 3);
        device_slots
            .iter_mut()
            .for_each(|device_slot| trip(&handles, &mut **device_slot, 1));
        device_slots[0].wait().unwrap();
        left.set(left.get() + u64::from(sim.live().work > 0));
    });
    assert!(left.get() > 50, "{}", left.get());
}

#[test]
fn an_update_that_is_refused_keeps_no_allocation() {
    let (sim, backend) = device(0);
    let program = Program::new();
    let slots = program.slots(&backend, 1, &Policy::default());
    let (mut device_slot, mut executor) = slots.unwrap().remove(0);
    let before = sim.live().allocations;
    let (_, elsewhere) = device(1);
    let mut bindings = executor.bindings(&mut *device_slot, 0).unwrap().clone();
    for (buffer, backend) in [
        (program.handles.y, &backend),
        (program.handles.z, &elsewhere),
    ] {
        let allocation = backend.allocate(Space::Pinned, 32).unwrap();
        let view = AllocationView::new(&allocation, 0, 32).unwrap();
        bindings.bind_host(buffer, view).unwrap();
    }
    assert!(executor.update(&mut *device_slot, 0, bindings).is_err());
    assert_eq!(sim.live().allocations, before);
}

#[test]
fn reading_scratch_that_nothing_wrote_is_told() {
    each_seed(100, |seed| {
        let (sim, backend) = device(seed);
        let (handles, mut device_slots) = device_slots(&backend, 1);
        let y = device_slots[0].addresses(handles.y.id());
        let op = Op::Download {
            device: y.device,
            host: y.host.unwrap(),
            bytes: 4,
        };
        assert!(device_slots[0].give(&op).is_err());
        assert_eq!(kinds(&sim), [ViolationKind::Undefined]);
        trip(&handles, &mut *device_slots[0], 3);
        device_slots[0].give(&op).unwrap();
    });
}

fn panics(_: &mut TwinLaunch<'_>) {
    panic!("planted");
}

#[test]
fn a_lost_device_stays_lost_for_every_slot() {
    each_seed(200, |seed| {
        let (sim, backend) = device(seed);
        let (handles, mut device_slots) = device_slots(&backend, 2);
        let kernel = Kernel::new("panics").twin(panics);
        let function = backend.load(&kernel).unwrap();
        let launch = Op::Launch {
            function,
            grid: [1; 3],
            block: [1; 3],
            shared_bytes: 0,
            args: Box::new([]),
        };
        trip(&handles, &mut *device_slots[1], 1);
        device_slots[0].give(&launch).unwrap();
        let fenced = device_slots[0].fence();
        let error = fenced.and_then(|()| device_slots[0].wait()).unwrap_err();
        assert!(error.message().contains("kernel panics"), "{error}");
        assert_eq!((error.kind(), error.code()), (ErrorKind::Device, Some(719)));
        assert_eq!(device_slots[1].is_done().unwrap_err().code(), Some(719));
        let op = memset(device_slots[1].addresses(handles.mid.id()).device, 0, 128);
        assert!(device_slots[1].capture(&[&op], None).is_err());
        assert!(backend.allocate(Space::Device, 8).is_err());
        drop(device_slots);
        assert_clean(&sim);
    });
}

#[test]
fn a_call_that_fails_has_no_effect_and_the_slot_goes_on() {
    each_seed(100, |seed| {
        let (sim, backend) = device_with(SimOptions {
            faults: vec![Fault::Submission { submission: 1 }],
            ..SimOptions::seeded(seed)
        });
        let (handles, mut device_slots) = device_slots(&backend, 2);
        let op = memset(device_slots[0].addresses(handles.mid.id()).device, 0, 8);
        device_slots[0].give(&op).unwrap();
        assert_eq!(device_slots[0].fence().unwrap_err().code(), Some(701));
        device_slots[0].give(&op).unwrap();
        device_slots[0].fence().unwrap();
        device_slots[0].wait().unwrap();
        trip(&handles, &mut *device_slots[0], 7);
        device_slots[0].wait().unwrap();
        assert_eq!(device_slots[0].host(handles.y.id()), [7; 128]);
        trip(&handles, &mut *device_slots[1], 9);
        device_slots[1].wait().unwrap();
        assert_eq!(device_slots[1].host(handles.y.id()), [9; 128]);
        drop(device_slots);
        assert_clean(&sim);
    });
}

#[test]
fn a_graph_with_the_memory_of_a_slot_that_closed_is_refused() {
    let (sim, backend) = device_with(SimOptions {
        refuses: false,
        ..SimOptions::seeded(0)
    });
    let (handles, mut device_slots) = device_slots(&backend, 2);
    let foreign = device_slots[1].addresses(handles.mid.id()).device;
    let op = memset(foreign, 0, 8);
    let (graph, _) = device_slots[0].capture(&[&op], None).unwrap();
    drop(device_slots.pop());
    let error = device_slots[0].launch_graph(graph).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert_eq!(kinds(&sim), [ViolationKind::Foreign, ViolationKind::Freed]);
}
