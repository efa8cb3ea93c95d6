//! Structs that kernels take by value, with pointers to buffers and to an
//! embedder's memory, on the CPU and on the simulated device.

use crate::gather;
use crate::gather::{Gather, Params, TABLE, devices, policies};
use tapeloop_engine::backend::{AllocationView, Space};
use tapeloop_engine::record::StructArg;
use tapeloop_engine::replay::{Mode, Rung};

#[test]
fn a_struct_brings_values_buffers_and_declared_memory_whatever_the_policy() {
    let gather = Gather::new();
    for backend in devices() {
        for policy in policies() {
            let mut slot = gather.slot(&backend, &policy);
            for scale in [2.0, -1.0] {
                assert_eq!(
                    slot.run(&gather, scale),
                    gather.expected(scale, 1.0),
                    "{policy:?}"
                );
            }
        }
    }
}

#[test]
fn values_and_declared_memory_change_in_place_and_buffers_stay() {
    let gather = Gather::new();
    for backend in devices() {
        for policy in policies() {
            let mut slot = gather.slot(&backend, &policy);
            let other = gather.table(&*backend, 5.0);
            let view = AllocationView::new(&other, 0, other.bytes()).unwrap();
            slot.executor.declare(&mut *slot.device_slot, view).unwrap();
            let mut bindings = slot
                .executor
                .bindings(&mut *slot.device_slot, 0)
                .unwrap()
                .clone();
            let params = Params {
                offset: 3.0,
                ..Params::default()
            };
            let bytes = bytemuck::bytes_of(&params);
            let set = |value| bindings.clone().set_struct(0, "params", value);
            let address = other.address();
            let (x, y) = (slot.x, slot.y);
            let wrong = gather::pointing(&params, y, x, address);
            let error = set(wrong).unwrap_err();
            assert!(
                error.message().contains("not those of the recording"),
                "{error}"
            );
            let wrong = StructArg::new(&bytes[8..]).buffer(x).buffer(y);
            assert!(set(wrong).is_err());
            let value = gather::pointing(&params, x, y, address);
            bindings.set_struct(0, "params", value).unwrap();
            let rung = slot
                .executor
                .update(&mut *slot.device_slot, 0, bindings)
                .unwrap();
            let has_loops = backend.device().backend == "sim";
            let expected = match policy.mode {
                Mode::Stream => Rung::Unchanged,
                // A loop has a copy of its graph.
                Mode::Resident if has_loops => Rung::Instantiate,
                _ => Rung::Params,
            };
            assert_eq!(rung, expected);
            slot.executor
                .withdraw(&mut *slot.device_slot, &slot.table)
                .unwrap();
            drop(other);
            let expected: Vec<f32> = gather.expected(2.0, 5.0);
            let expected: Vec<f32> = expected.iter().map(|y| y + 3.0).collect();
            assert_eq!(slot.run(&gather, 2.0), expected, "{policy:?}");
        }
    }
}

#[test]
fn declared_memory_is_the_device_s_while_work_uses_it() {
    let gather = Gather::new();
    for backend in devices() {
        let mut slot = gather.slot_with(&backend, &policies()[0], Space::Pinned);
        gather.fill(&mut *slot.device_slot, 2.0);
        let table = slot.table.clone();
        let guard = table.write().unwrap();
        assert!(slot.give(&gather).is_err(), "the host writes it");
        drop(guard);
        slot.device_slot.wait().unwrap();
        assert_eq!(slot.run(&gather, 2.0), gather.expected(2.0, 1.0));
        assert_eq!(slot.table.read().unwrap().len(), TABLE * size_of::<f32>());
    }
}
