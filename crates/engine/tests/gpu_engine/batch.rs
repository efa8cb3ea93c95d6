//! What a batch costs once everything is ready.

use crate::gpu::*;
use crate::target::turn;
use std::sync::Arc;
use tapeloop_engine::backend::contract::{DeviceSlot, Priority};
use tapeloop_engine::backend::{Allocation, AllocationView, Backend, CudaOptions, Space};
use tapeloop_engine::replay::{Bindings, Executor, Mode, Policy, Transfer};

const REPLAYS: u64 = 1_000;
const LARGE: usize = 512 << 20;

fn policies() -> [Policy; 3] {
    let graph = Policy::default();
    [
        graph,
        Policy::new(Mode::Stream),
        Policy {
            transfer: Transfer::Mapped,
            ..graph
        },
    ]
}

/// Rounds that change nothing about what the device holds, and make as many
/// calls as they say.
fn assert_steady(
    free: &dyn Fn() -> u64,
    backend: &Arc<dyn Backend>,
    device_slot: &mut dyn DeviceSlot,
    executor: &mut Executor,
) {
    for _ in 0..10 {
        replay(device_slot, executor);
        device_slot.wait().unwrap();
    }
    let (before, free_before) = (backend.driver_calls(), free());
    let mut calls = 0;
    for _ in 0..REPLAYS {
        calls += replay(device_slot, executor).calls as u64;
        device_slot.wait().unwrap();
    }
    let (after, free_after) = (backend.driver_calls(), free());
    assert_eq!(after.submissions - before.submissions, calls);
    assert_eq!(after.polls - before.polls, REPLAYS);
    assert_eq!(after.allocations, before.allocations);
    assert_eq!(after.graph_edits, before.graph_edits);
    assert_eq!(free_after, free_before);
    say(&format!("{} calls for {REPLAYS} replays", calls));
}

fn bind(
    device_slot: &mut dyn DeviceSlot,
    executor: &mut Executor,
    change: impl FnOnce(&mut Bindings),
) {
    let mut bindings = executor.bindings(device_slot, 0).unwrap().clone();
    change(&mut bindings);
    executor.update(device_slot, 0, bindings).unwrap();
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_replay_costs_its_calls_and_nothing_else_and_allocations_end_with_their_last_use() {
    let _turn = turn();
    let cuda = cuda(&CudaOptions::default());
    let cuda = Arc::new(cuda);
    let backend: Arc<dyn Backend> = Arc::clone(&cuda) as Arc<dyn Backend>;
    let free = || cuda.memory_bytes().unwrap().0;
    let saxpy = saxpy();
    for policy in policies() {
        let buffers = saxpy.recording.buffers();
        let mut device_slot = backend
            .open_slots(buffers, 1, Priority::Normal)
            .unwrap()
            .remove(0);
        let mut executor = ready_with(&backend, &saxpy.recording, &mut *device_slot, &policy);
        assert_steady(&free, &backend, &mut *device_slot, &mut executor);
        if policy == Policy::default() {
            let largest = executor.buckets().largest().capacity;
            let replay = executor.replay(&mut *device_slot, 0, largest).unwrap();
            assert_eq!(replay.calls, 2, "a launch and a mark");
            device_slot.wait().unwrap();
        }
    }
    let mut device_slot = one_slot(&backend, &saxpy.recording);
    let mut executor = ready(&backend, &saxpy.recording, &mut *device_slot, Mode::Graph);
    let own = executor.bindings(&mut *device_slot, 0).unwrap().clone();
    let without = free();
    let allocation: Allocation = backend.allocate(Space::Device, LARGE).unwrap();
    let view = AllocationView::new(&allocation, LARGE / 2, LARGE / 2).unwrap();
    bind(&mut *device_slot, &mut executor, |bindings| {
        bindings.bind_device(saxpy.x, view).unwrap();
    });
    drop(allocation);
    assert_steady(&free, &backend, &mut *device_slot, &mut executor);
    assert!(free() < without - LARGE as u64 / 2, "the graph keeps it");
    executor.update(&mut *device_slot, 0, own).unwrap();
    assert!(free() > without - LARGE as u64 / 2, "nothing keeps it");
    round(&saxpy, &mut *device_slot, &mut executor, 0, 5);
}
