//! What a graph holds is what was lowered, and only the slot's own addresses: on
//! the CPU and on the simulated device, in both builds.

use crate::forward::BackendHooks;
use crate::gather;
use crate::gather::{Gather, Slot, devices};
use crate::tamper::{Change, Tamper};
use std::sync::Arc;
use tapeloop_engine::backend::contract::Op;
use tapeloop_engine::backend::{AllocationView, Backend};
use tapeloop_engine::replay::{Build, Executor, Mode, Policy, Rung};
use tapeloop_engine::{Error, ErrorKind};

fn graphs() -> impl Iterator<Item = Policy> {
    let builds = Build::ALL.iter();
    builds.map(|&build| Policy {
        build,
        warm_up: false,
        ..Policy::default()
    })
}

/// Every way to run a batch.
fn ways() -> impl Iterator<Item = Policy> {
    graphs().chain([Policy {
        warm_up: false,
        ..Policy::of(Mode::Stream)
    }])
}

fn view(allocation: &tapeloop_engine::backend::Allocation) -> AllocationView {
    AllocationView::new(allocation, 0, allocation.bytes()).unwrap()
}

fn assert_refused(error: &Error, parts: &[&str]) {
    assert_eq!(error.kind(), ErrorKind::Mismatch, "{error}");
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "{text:?} lacks {part:?}");
    }
}

/// Which word of the arguments of `gather` is which.
const X: usize = 0;
const OFFSET_AND_N: usize = 1;

fn launch(ops: &mut [Op]) -> (&mut [u32; 3], &mut [u32; 3], &mut u32, &mut [u64]) {
    let found = ops.iter_mut().find_map(|op| match op {
        Op::Launch {
            grid,
            block,
            shared_bytes,
            args,
            ..
        } => Some((grid, block, shared_bytes, &mut args[..])),
        _ => None,
    });
    found.expect("there is a launch")
}

/// What a device might hold in place of what it was given, and how that is told.
const CHANGES: &[(Change, &[&str])] = &[
    (
        |ops| {
            let args = launch(ops).3;
            args[X] = args[2];
        },
        &[
            "command 1",
            "kernel gather, parameter params, offset 0",
            "(buffer y)",
            "(buffer x)",
        ],
    ),
    (
        |ops| launch(ops).3[X] = 0xdead_0000,
        &[
            "kernel gather, parameter params, offset 0",
            "0xdead0000 (foreign",
        ],
    ),
    (
        |ops| launch(ops).3[OFFSET_AND_N] ^= 1 << 33,
        &["kernel gather, parameter params, offset 8", "holds value"],
    ),
    (
        |ops| launch(ops).0[0] += 1,
        &["kernel gather", "holds grid [4, 1, 1], and [3, 1, 1]"],
    ),
    (
        |ops| launch(ops).1[0] = 64,
        &["kernel gather", "holds block [64, 1, 1], and [128, 1, 1]"],
    ),
    (
        |ops| *launch(ops).2 = 8,
        &["kernel gather", "shared bytes 8, and 0"],
    ),
    (
        |ops| ops.truncate(2),
        &["holds 2 operations, and 3 were lowered"],
    ),
    (
        |ops| ops.push(ops[0].clone()),
        &["holds 4 operations, and 3 were lowered"],
    ),
    (
        |ops| {
            let Op::Upload { device, bytes, .. } = ops[0] else {
                panic!("an upload comes first")
            };
            ops[0] = Op::Memset {
                device,
                byte: 0,
                bytes,
            };
        },
        &["command 0", "holds a memset, and an upload was lowered"],
    ),
    (
        |ops| {
            if let Op::Upload { bytes, .. } = &mut ops[0] {
                *bytes -= 4;
            }
        },
        &["command 0", "holds bytes 1196, and 1200"],
    ),
    (
        |ops| {
            let Op::Upload { host: other, .. } = ops[0] else {
                panic!("an upload comes first")
            };
            if let Op::Download { host, .. } = &mut ops[2] {
                *host = other;
            }
        },
        &["command 2: host side", "(buffer x)", "(buffer y)"],
    ),
];

fn tampered(gather: &Gather, backend: Arc<dyn Backend>, policy: &Policy) -> (Slot, Arc<Tamper>) {
    let tamper = Arc::new(Tamper::default());
    let backend = Arc::clone(&tamper).around(backend);
    (gather.slot(&backend, policy), tamper)
}

#[test]
fn a_graph_that_holds_something_else_is_refused_by_name() {
    let gather = Gather::new();
    for backend in devices() {
        for policy in graphs() {
            for (change, parts) in CHANGES {
                let (mut slot, tamper) = tampered(&gather, Arc::clone(&backend), &policy);
                tamper.hold(*change);
                let error = slot.give(&gather).unwrap_err();
                assert_refused(&error, parts);
                assert_refused(&error, &["bucket 0", "audit"]);
                tamper.clear();
                assert_eq!(slot.run(&gather, 2.0), gather.expected(2.0, 1.0));
            }
        }
    }
}

#[test]
fn an_update_that_leaves_something_else_is_refused_and_the_graph_is_made_again() {
    let gather = Gather::new();
    for backend in devices() {
        for policy in graphs() {
            for least in [Rung::Update, Rung::Instantiate] {
                for (change, parts) in CHANGES {
                    let (mut slot, tamper) = tampered(&gather, Arc::clone(&backend), &policy);
                    assert_eq!(slot.run(&gather, 2.0), gather.expected(2.0, 1.0));
                    tamper.hold(*change);
                    let bindings = slot
                        .executor
                        .bindings(&mut *slot.device_slot, 0)
                        .unwrap()
                        .clone();
                    let device_slot = &mut *slot.device_slot;
                    let error = slot
                        .executor
                        .update_from(device_slot, 0, bindings, least)
                        .unwrap_err();
                    assert_refused(&error, parts);
                    tamper.clear();
                    assert_eq!(slot.run(&gather, 3.0), gather.expected(3.0, 1.0));
                }
            }
        }
    }
}

#[test]
fn a_struct_with_a_foreign_pointer_is_refused_before_anything_is_given() {
    let gather = Gather::new();
    for backend in devices() {
        for policy in ways() {
            // An allocation of the device that no recording of this slot declares.
            let undeclared = gather.table(&*backend, 1.0);
            let mut slot = gather.slot(&backend, &policy);
            let (recording, ..) = gather.recording(undeclared.address());
            let buckets = Arc::new(tapeloop_engine::replay::Buckets::single(recording));
            let device_slot = &mut *slot.device_slot;
            slot.executor = Executor::new(&backend, device_slot, &buckets, &policy).unwrap();
            let calls = backend.driver_calls();
            let error = slot.give(&gather).unwrap_err();
            let place = "bucket 0: command 1: kernel gather, parameter params, offset 24: ";
            assert!(error.to_string().starts_with(place), "{error}");
            assert_refused(
                &error,
                &[&format!("{:#x}", undeclared.address()), "is foreign"],
            );
            assert_eq!(backend.driver_calls(), calls);
            slot.executor
                .declare(&mut *slot.device_slot, view(&undeclared))
                .unwrap();
            assert_eq!(slot.run(&gather, 2.0), gather.expected(2.0, 1.0));
        }
    }
}

#[test]
fn a_struct_that_points_to_memory_that_is_gone_is_refused_as_stale() {
    let gather = Gather::new();
    for backend in devices() {
        for policy in ways() {
            let mut slot = gather.slot(&backend, &policy);
            assert_eq!(slot.run(&gather, 2.0), gather.expected(2.0, 1.0));
            let Slot {
                device_slot,
                executor,
                table,
                ..
            } = &mut slot;
            executor.withdraw(&mut **device_slot, table).unwrap();
            slot.table = gather.table(&*backend, 9.0);
            let error = slot.give(&gather).unwrap_err();
            assert_refused(
                &error,
                &["kernel gather, parameter params, offset 24", "is stale"],
            );
            // A parameter update is audited before the device is called.
            let Slot {
                device_slot,
                executor,
                table,
                ..
            } = &mut slot;
            executor.declare(&mut **device_slot, view(table)).unwrap();
            assert_refused(&slot.give(&gather).unwrap_err(), &["is stale"]);
        }
    }
}

#[test]
fn a_parameter_update_is_audited_before_the_device_is_called() {
    let gather = Gather::new();
    for backend in devices() {
        for policy in ways() {
            let mut slot = gather.slot(&backend, &policy);
            assert_eq!(slot.run(&gather, 2.0), gather.expected(2.0, 1.0));
            let foreign = gather.table(&*backend, 7.0);
            let edits = backend.driver_calls().graph_edits;
            let set = |slot: &mut Slot, address| {
                let Slot {
                    device_slot,
                    executor,
                    x,
                    y,
                    ..
                } = slot;
                let mut bindings = executor.bindings(&mut **device_slot, 0).unwrap().clone();
                let value = gather::pointing(&gather::Params::default(), *x, *y, address);
                bindings.set_struct(0, "params", value).unwrap();
                executor.update(&mut **device_slot, 0, bindings)
            };
            let error = set(&mut slot, foreign.address()).unwrap_err();
            assert_refused(
                &error,
                &["update of bucket 0: command 1: kernel gather", "is foreign"],
            );
            // A buffer's own memory is no answer either: nobody would wait for it.
            let own = slot.device_slot.addresses(gather.x.id()).device;
            assert_refused(&set(&mut slot, own).unwrap_err(), &["is buffer x"]);
            assert_eq!(backend.driver_calls().graph_edits, edits);
            assert_eq!(
                slot.run(&gather, 2.0),
                gather.expected(2.0, 1.0),
                "as before"
            );
            slot.executor
                .declare(&mut *slot.device_slot, view(&foreign))
                .unwrap();
            set(&mut slot, foreign.address()).unwrap();
            assert_eq!(slot.run(&gather, 2.0), gather.expected(2.0, 7.0));
        }
    }
}

#[test]
fn an_audit_says_what_it_saw_and_what_it_cannot_see() {
    let gather = Gather::following();
    let backend = Arc::clone(&devices()[0]);
    let mut slot = gather.slot(
        &backend,
        &Policy {
            warm_up: false,
            ..Policy::default()
        },
    );
    assert_eq!(slot.executor.audit(0), None);
    slot.run(&gather, 1.0);
    let audit = slot.executor.audit(0).unwrap();
    assert_eq!(
        audit.to_string(),
        "3 operations, 7 addresses; out of reach: pointers in device memory that gather follows"
    );
    assert_eq!(Executor::audit(&slot.executor, 1), None);
}
