//! Structs and the audit on the card: what the driver's graphs hold is what was
//! lowered, and pointers in structs are told from stale and foreign ones, in both
//! builds. Without a device these tests say "skipped: no device".

use crate::gather::{self, Gather, Params, Slot, policies};
use crate::gpu::device;
use tapeloop::backend::{Allocation, AllocationView, Space};
use tapeloop::replay::{Buckets, Executor, Mode, Policy, Rung};
use tapeloop::{Error, ErrorKind, Result};

fn view(allocation: &Allocation) -> AllocationView {
    AllocationView::new(allocation, 0, allocation.bytes()).unwrap()
}

fn assert_refused(error: &Error, why: &str) {
    assert_eq!(error.kind(), ErrorKind::Mismatch, "{error}");
    let text = error.to_string();
    for part in ["kernel gather, parameter params, offset 24", why] {
        assert!(text.contains(part), "{text:?} lacks {part:?}");
    }
}

/// Points the struct at another table.
fn point(slot: &mut Slot, table: u64, offset: f32, least: Rung) -> Result<Rung> {
    let Slot {
        device_slot,
        executor,
        x,
        y,
        ..
    } = slot;
    let mut bindings = executor.bindings(&mut **device_slot, 0).unwrap().clone();
    let params = Params {
        offset,
        ..Params::default()
    };
    let value = gather::pointing(&params, *x, *y, table);
    bindings.set_struct(0, "params", value).unwrap();
    executor.update_from(&mut **device_slot, 0, bindings, least)
}

#[test]
fn a_struct_comes_to_the_kernel_as_declared_whatever_the_policy() {
    let Some(backend) = device() else { return };
    let gather = Gather::new();
    for policy in policies() {
        let mut slot = gather.slot(&backend, &policy);
        for scale in [2.0, -1.0] {
            let got = slot.run(&gather, scale);
            assert_eq!(got, gather.expected(scale, 1.0), "{policy:?}");
        }
        let audit = slot.executor.audit(0).unwrap();
        assert!(audit.addresses >= 3 && audit.out_of_reach.is_empty());
    }
}

#[test]
fn a_graph_holds_allocations_that_were_declared_after_it_was_made() {
    let Some(backend) = device() else { return };
    let gather = Gather::following();
    // What the kernel's struct points to is declared before its bucket is ready.
    let policy = Policy {
        warm_up: false,
        ..Policy::of(Mode::Graph)
    };
    let mut slot = gather.slot(&backend, &policy);
    assert_eq!(slot.run(&gather, 2.0), gather.expected(2.0, 1.0));
    let late = backend.allocate(Space::Pinned, 64).unwrap();
    slot.executor
        .declare(&mut *slot.device_slot, view(&late))
        .unwrap();
    slot.executor
        .replay(&mut *slot.device_slot, 0, [1].into())
        .unwrap();
    // The kernel may follow a pointer into the allocation, so the host keeps out.
    let refused = late.write().err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::Usage, "{refused}");
    slot.device_slot.wait().unwrap();
    assert!(late.write().is_ok());
}

#[test]
fn a_struct_changes_on_every_rung() {
    let Some(backend) = device() else { return };
    let gather = Gather::new();
    for policy in policies().iter().filter(|p| p.mode == Mode::Graph) {
        for least in [Rung::Params, Rung::Update, Rung::Instantiate] {
            let mut slot = gather.slot(&backend, policy);
            assert_eq!(slot.run(&gather, 2.0), gather.expected(2.0, 1.0));
            let other = gather.table(&*backend, 5.0);
            slot.executor
                .declare(&mut *slot.device_slot, view(&other))
                .unwrap();
            let rung = point(&mut slot, other.address(), 3.0, least).unwrap();
            assert_eq!(rung, least, "{policy:?}");
            let Slot {
                device_slot,
                executor,
                table,
                ..
            } = &mut slot;
            executor.withdraw(&mut **device_slot, table).unwrap();
            drop(other);
            let expected = gather.expected(2.0, 5.0).into_iter().map(|y| y + 3.0);
            assert_eq!(slot.run(&gather, 2.0), expected.collect::<Vec<f32>>());
        }
    }
}

#[test]
fn a_foreign_pointer_in_a_struct_is_refused() {
    let Some(backend) = device() else { return };
    let gather = Gather::new();
    for policy in policies() {
        let foreign = gather.table(&*backend, 1.0);
        let mut slot = gather.slot(&backend, &policy);
        let (recording, x, y) = gather.recording(foreign.address());
        (slot.x, slot.y) = (x, y);
        let buckets = std::sync::Arc::new(Buckets::single(recording));
        let device_slot = &mut *slot.device_slot;
        slot.executor = Executor::new(&backend, device_slot, &buckets, &policy).unwrap();
        assert_refused(&slot.give(&gather).unwrap_err(), "is foreign");
        slot.executor
            .declare(&mut *slot.device_slot, view(&foreign))
            .unwrap();
        assert_eq!(slot.run(&gather, 2.0), gather.expected(2.0, 1.0));
        // By an update too, after which all is as before.
        let error = point(&mut slot, 0x10_0000, 0.0, Rung::Unchanged).unwrap_err();
        assert_refused(&error, "is foreign");
        assert_eq!(slot.run(&gather, 2.0), gather.expected(2.0, 1.0));
    }
}

#[test]
fn a_stale_pointer_in_a_struct_is_refused() {
    let Some(backend) = device() else { return };
    let gather = Gather::new();
    for policy in policies() {
        let mut slot = gather.slot(&backend, &policy);
        assert_eq!(slot.run(&gather, 2.0), gather.expected(2.0, 1.0));
        let Slot {
            device_slot,
            executor,
            table,
            ..
        } = &mut slot;
        executor.withdraw(&mut **device_slot, table).unwrap();
        let kept = table.clone();
        assert_refused(&slot.give(&gather).unwrap_err(), "is stale");
        slot.executor
            .declare(&mut *slot.device_slot, view(&kept))
            .unwrap();
        assert_eq!(slot.run(&gather, 2.0), gather.expected(2.0, 1.0));
    }
}
