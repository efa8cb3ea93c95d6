//! Slots: the order of their work, and whose memory it is. Numbers of rounds are such that a device has many chances
//! to mix batches up, and a scenario takes a second or so.

use crate::assert_refused;
use crate::give::{Give, memset, upload};
use crate::program::{CAPACITIES, Input, Program, accepted_policies, unverified};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tapeloop_engine::backend::Backend;
use tapeloop_engine::backend::contract::{DeviceSlot, Op};
use tapeloop_engine::replay::{Mode, Policy};
use tapeloop_engine::{Error, ErrorKind};

/// The error of an operation: of the call, or of the batch where a device in another process learns of
/// the operation later.
pub(crate) fn refusal(device_slot: &mut dyn DeviceSlot, op: &Op) -> Error {
    let given = device_slot.give(op);
    let fenced = given.and_then(|()| device_slot.fence());
    fenced.and_then(|()| device_slot.wait()).unwrap_err()
}

/// Slots start zeroed, and both buckets give the right results in two slots at the same time, however
/// a batch is run and waited for.
pub fn every_policy_gives_the_right_results(backend: &Arc<dyn Backend>) {
    let program = Program::new();
    for policy in accepted_policies(backend) {
        let mut slots = program.slots(backend, 2, &policy).unwrap();
        for (device_slot, _) in &slots {
            let y = device_slot.host(program.handles.y.id());
            assert!(y.iter().all(|byte| *byte == 0), "{policy:?}");
        }
        for round in 0..12 {
            // From 1 to the larger capacity, so that both buckets have batches.
            let elements = 1 + 5 * round as usize % CAPACITIES[1];
            let inputs = [0, 1].map(|slot| Input::from_seed(2 * round + slot, elements));
            for ((device_slot, executor), input) in slots.iter_mut().zip(&inputs) {
                program.give(&mut **device_slot, executor, input).unwrap();
            }
            for ((device_slot, _), input) in slots.iter_mut().zip(&inputs) {
                if round % 2 == 0 {
                    device_slot.wait().unwrap();
                } else {
                    while !device_slot.is_done().unwrap() {}
                }
                assert!(program.is_right(&**device_slot, input), "{policy:?}");
            }
        }
    }
}

/// Batches that are not waited for run one after the other, and the slot is done when the last is.
pub fn batches_run_in_the_order_in_which_they_were_given(backend: &Arc<dyn Backend>) {
    let program = Program::new();
    for mode in [Mode::Stream, Mode::Graph] {
        let (mut device_slot, mut executor) = program.slot(backend, &unverified(Policy::new(mode)));
        let input = Input::from_seed(1, CAPACITIES[1]);
        program.fill(&mut *device_slot, &input);
        for _ in 0..100 {
            executor
                .replay(&mut *device_slot, 1, input.extent())
                .unwrap();
        }
        while !device_slot.is_done().unwrap() {}
        assert!(device_slot.is_quiet());
        assert!(program.is_right(&*device_slot, &input), "{mode:?}");
    }
}

/// Whatever the device has done by then, a slot does not lend its memory before it was asked.
pub fn host_memory_is_closed_until_its_work_is_seen_done(backend: &Arc<dyn Backend>) {
    let program = Program::new();
    for mode in [Mode::Stream, Mode::Graph] {
        let (mut device_slot, mut executor) = program.slot(backend, &unverified(Policy::new(mode)));
        let input = Input::from_seed(2, 8);
        program
            .give(&mut *device_slot, &mut executor, &input)
            .unwrap();
        assert!(!device_slot.is_quiet());
        let y = program.handles.y.id();
        let early = catch_unwind(AssertUnwindSafe(|| device_slot.host(y).len()));
        assert!(early.is_err(), "{mode:?}");
        device_slot.wait().unwrap();
        assert!(program.is_right(&*device_slot, &input), "{mode:?}");
    }
}

/// Views of one buffer would overlap, so ids that do not ascend are refused.
pub fn buffers_of_two_recordings_are_not_borrowed_together(backend: &Arc<dyn Backend>) {
    let (program, other) = (Program::new(), Program::new());
    let mut device_slot = program.open(backend, 1).unwrap().remove(0);
    let [a, b] = [program.handles.x.id(), other.handles.x.id()];
    for pair in [[a, b], [b, a], [a, a]] {
        let views = AssertUnwindSafe(|| device_slot.host_mut(&pair).len());
        assert!(catch_unwind(views).is_err(), "{pair:?}");
    }
}

/// Memory of another slot, and memory that was never allocated, is refused, in launches and in graphs, and the slot goes on.
pub fn memory_that_a_slot_does_not_own_is_refused(backend: &Arc<dyn Backend>) {
    let program = Program::new();
    let mut slots = program.slots(backend, 2, &Policy::default()).unwrap();
    let x = program.handles.x.id();
    let (first, other) = (slots[0].0.addresses(x), slots[1].0.addresses(x));
    let (device_slot, executor) = &mut slots[0];
    let copy = |host: Option<u64>, device| upload(host.unwrap(), device, first.bytes);
    let nowhere = memset(8, 0, 4);
    let mut foreign = vec![nowhere];
    // Addresses of a backend may be those of its slots' first tables, and then all slots have the same.
    if other != first {
        foreign.push(copy(other.host, first.device));
        foreign.push(copy(first.host, other.device));
    }
    for op in foreign {
        assert_refused(&refusal(&mut **device_slot, &op), ErrorKind::Usage, &[]);
        let captured = device_slot.capture(&[&op], None).unwrap_err();
        assert_refused(&captured, ErrorKind::Usage, &[]);
        program.run(&mut **device_slot, executor, &Input::from_seed(3, 8));
    }
    let empty = device_slot.capture(&[], None).unwrap_err();
    assert_refused(&empty, ErrorKind::Usage, &[]);
    program.run(&mut **device_slot, executor, &Input::from_seed(4, 8));
}

/// Each thread has a slot, and other threads take the slots over: nothing of a slot may belong to the thread that
/// opened it.
pub fn slots_work_at_the_same_time_and_move_between_threads(backend: &Arc<dyn Backend>) {
    let program = Program::new();
    let mut slots = program
        .slots(backend, 4, &unverified(Policy::new(Mode::Graph)))
        .unwrap();
    for step in 0..3 {
        std::thread::scope(|scope| {
            for (index, (device_slot, executor)) in slots.iter_mut().enumerate() {
                let program = &program;
                scope.spawn(move || {
                    for round in 0..30 {
                        let input = Input::from_seed(100 * index as u64 + step + round, 8);
                        program.run(&mut **device_slot, executor, &input);
                    }
                });
            }
        });
        slots.rotate_left(1);
    }
}

/// Slots are dropped with a batch that was not waited for, before and after their executors, and
/// the next slots work. A backend that freed memory under the batch would crash, or break later ones.
pub fn slots_may_be_dropped_with_work_in_flight(backend: &Arc<dyn Backend>) {
    let program = Program::new();
    for policy in accepted_policies(backend) {
        for slot_first in [true, false] {
            let mut slots = program.slots(backend, 2, &policy).unwrap();
            for (index, (device_slot, executor)) in slots.iter_mut().enumerate() {
                let input = Input::from_seed(index as u64, 8);
                program.give(&mut **device_slot, executor, &input).unwrap();
            }
            for (device_slot, executor) in slots {
                if slot_first {
                    drop((device_slot, executor))
                } else {
                    drop((executor, device_slot))
                }
            }
        }
        let (mut device_slot, mut executor) = program.slot(backend, &policy);
        program.run(&mut *device_slot, &mut executor, &Input::from_seed(5, 8));
    }
}
