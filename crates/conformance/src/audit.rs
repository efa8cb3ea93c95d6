//! What the engine's audit sees of a device: graphs hold what they were given, and pointers in structs
//! point to declared memory.

use crate::assert_refused;
use crate::forward::BackendHooks;
use crate::gather::{Gather, Slot, policies};
use crate::program::{Loops, loops};
use crate::tamper::{Change, Tamper};
use std::sync::Arc;
use tapeloop_engine::backend::contract::Op;
use tapeloop_engine::backend::{Backend, Space};
use tapeloop_engine::replay::{Buckets, Build, Executor, Mode, Policy, Rung, Transfer};
use tapeloop_engine::{Error, ErrorKind};

/// Graphs in both builds, with copies that are nodes of their own.
fn graphs() -> impl Iterator<Item = Policy> {
    let builds = Build::ALL.iter();
    builds.map(|&build| Policy {
        build,
        transfer: Transfer::Copy,
        warm_up: false,
        ..Policy::default()
    })
}

fn assert_mismatch(error: &Error, parts: &[&str]) {
    assert_refused(error, ErrorKind::Mismatch, parts);
}

/// Which word of the arguments of `gather` is which. The count `n` is the upper half of its word.
const X: usize = 0;
const OFFSET_AND_N: usize = 1;

/// The parts of the first launch among `ops`, to change them.
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

/// What a device might hold in place of what it was given, and the words of the error.
const CHANGES: &[(Change, &[&str])] = &[
    (
        |ops| {
            let args = launch(ops).3;
            args[X] = args[2];
        },
        &[
            "command 1",
            "kernel gather",
            "offset 0",
            "buffer y",
            "buffer x",
        ],
    ),
    (
        |ops| launch(ops).3[X] = 0xdead_0000,
        &["kernel gather", "offset 0", "foreign"],
    ),
    (
        |ops| launch(ops).3[OFFSET_AND_N] ^= 1 << 33,
        &["kernel gather", "offset 8", "value"],
    ),
    (|ops| launch(ops).0[0] += 1, &["kernel gather", "grid"]),
    (|ops| launch(ops).1[0] = 64, &["kernel gather", "block"]),
    (|ops| *launch(ops).2 = 8, &["kernel gather", "shared"]),
    (|ops| ops.truncate(2), &["2 operations"]),
    (|ops| ops.push(ops[0].clone()), &["4 operations"]),
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
        &["command 0", "memset", "upload"],
    ),
    (
        |ops| {
            if let Op::Upload { bytes, .. } = &mut ops[0] {
                *bytes -= 4;
            }
        },
        &["command 0", "bytes"],
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
        &["command 2", "buffer x", "buffer y"],
    ),
];

fn tampered(gather: &Gather, backend: &Arc<dyn Backend>, policy: &Policy) -> (Slot, Arc<Tamper>) {
    let tamper = Arc::new(Tamper::default());
    let backend = Arc::clone(&tamper).around(Arc::clone(backend));
    (gather.slot(&backend, policy), tamper)
}

/// A struct arrives at the kernel as it was declared, under every policy, and the audit saw its
/// pointers.
pub fn a_struct_brings_values_buffers_and_declared_memory_to_its_kernel(
    backend: &Arc<dyn Backend>,
) {
    let gather = Gather::new();
    for policy in policies(backend) {
        let mut slot = gather.slot(backend, &policy);
        for scale in [2.0, -1.0] {
            let found = slot.run(&gather, scale);
            assert_eq!(found, gather.expected(scale, 1.0), "{policy:?}");
        }
        let audit = slot.executor.audit(0).unwrap();
        // The struct has three pointers.
        assert!(audit.addresses >= 3 && audit.out_of_reach.is_empty());
    }
}

/// A kernel that follows pointers in device memory may reach every declared allocation, so work of a
/// graph holds also those that were declared after it was made.
pub fn a_graph_holds_allocations_that_were_declared_after_it_was_made(backend: &Arc<dyn Backend>) {
    // It has no allocations.
    if backend.is_supervised() {
        return;
    }
    let gather = Gather::following();
    for policy in graphs() {
        let mut slot = gather.slot(backend, &policy);
        assert_eq!(slot.run(&gather, 2.0), gather.expected(2.0, 1.0));
        let late = backend.allocate(Space::Pinned, 64).unwrap();
        slot.declare(&late);
        slot.give().unwrap();
        // Twins follow no pointers.
        if backend.device().compute_capability.is_some() {
            assert_refused(&late.write().err().unwrap(), ErrorKind::Usage, &[]);
        }
        slot.device_slot.wait().unwrap();
        assert!(late.write().is_ok());
    }
}

/// A graph that reads back otherwise than it was given is refused with the place, and is made again.
pub fn a_graph_that_holds_something_else_is_refused_by_name(backend: &Arc<dyn Backend>) {
    let gather = Gather::new();
    for policy in graphs() {
        for (change, parts) in CHANGES {
            let (mut slot, tamper) = tampered(&gather, backend, &policy);
            tamper.hold(*change);
            let error = slot.give().unwrap_err();
            assert_mismatch(&error, parts);
            assert_mismatch(&error, &["bucket 0", "audit"]);
            tamper.clear();
            assert_eq!(slot.run(&gather, 2.0), gather.expected(2.0, 1.0));
        }
    }
}

/// A graph that reads back otherwise than it was given by an update is refused with the place, and is made again.
pub fn an_update_that_leaves_something_else_is_refused_and_the_graph_is_made_again(
    backend: &Arc<dyn Backend>,
) {
    let gather = Gather::new();
    for policy in graphs() {
        for least in [Rung::Update, Rung::Instantiate] {
            for (change, parts) in CHANGES {
                let (mut slot, tamper) = tampered(&gather, backend, &policy);
                assert_eq!(slot.run(&gather, 2.0), gather.expected(2.0, 1.0));
                tamper.hold(*change);
                let table = slot.table.address();
                assert_mismatch(&slot.point(table, 0.0, least).unwrap_err(), parts);
                tamper.clear();
                assert_eq!(slot.run(&gather, 3.0), gather.expected(3.0, 1.0));
            }
        }
    }
}

/// A struct with a pointer to memory that was not declared is refused, and the device gets nothing.
pub fn an_undeclared_pointer_is_refused_before_any_work_is_given(backend: &Arc<dyn Backend>) {
    let gather = Gather::new();
    for policy in policies(backend) {
        let undeclared = gather.table(&**backend, 1.0);
        let mut slot = gather.slot(backend, &policy);
        let (recording, x, y) = gather.recording(undeclared.address());
        (slot.x, slot.y) = (x, y);
        let buckets = Arc::new(Buckets::single(recording));
        let device_slot = &mut *slot.device_slot;
        slot.executor = Executor::new(backend, device_slot, &buckets, &policy).unwrap();
        let calls = backend.driver_calls().submissions;
        let error = slot.give().unwrap_err();
        let address = format!("{:#x}", undeclared.address());
        let place = [
            "bucket 0",
            "kernel gather",
            "offset 24",
            "foreign",
            &address,
        ];
        assert_mismatch(&error, &place);
        assert_eq!(backend.driver_calls().submissions, calls);
        slot.declare(&undeclared);
        assert_eq!(slot.run(&gather, 2.0), gather.expected(2.0, 1.0));
    }
}

/// A struct with a pointer to memory that was withdrawn is refused until that memory is declared again.
pub fn a_pointer_to_withdrawn_memory_is_refused(backend: &Arc<dyn Backend>) {
    let gather = Gather::new();
    let place = ["kernel gather", "offset 24", "stale"];
    for policy in policies(backend) {
        let mut slot = gather.slot(backend, &policy);
        assert_eq!(slot.run(&gather, 2.0), gather.expected(2.0, 1.0));
        slot.withdraw_table();
        assert_mismatch(&slot.give().unwrap_err(), &place);
        // Another table does not help.
        let other = gather.table(&**backend, 9.0);
        slot.declare(&other);
        assert_mismatch(&slot.give().unwrap_err(), &place);
        slot.declare(&slot.table.clone());
        assert_eq!(slot.run(&gather, 2.0), gather.expected(2.0, 1.0));
    }
}

/// An update with an undeclared pointer, or one to the slot's own buffer, is refused without a call,
/// and the graph stays as it was.
pub fn an_update_is_audited_before_the_device_is_called(backend: &Arc<dyn Backend>) {
    let gather = Gather::new();
    for policy in policies(backend) {
        let mut slot = gather.slot(backend, &policy);
        assert_eq!(slot.run(&gather, 2.0), gather.expected(2.0, 1.0));
        let other = gather.table(&**backend, 7.0);
        let edits = backend.driver_calls().graph_edits;
        let foreign = slot.point(other.address(), 0.0, Rung::Unchanged);
        let place = ["update of bucket 0", "kernel gather", "foreign"];
        assert_mismatch(&foreign.unwrap_err(), &place);
        let address = slot.device_slot.addresses(gather.x.id()).device;
        let address = slot.point(address, 0.0, Rung::Unchanged);
        assert_mismatch(&address.unwrap_err(), &["buffer x"]);
        assert_eq!(backend.driver_calls().graph_edits, edits);
        assert_eq!(slot.run(&gather, 2.0), gather.expected(2.0, 1.0));
        slot.declare(&other);
        let rung = slot.point(other.address(), 0.0, Rung::Unchanged).unwrap();
        let expected = match (policy.mode, loops(backend)) {
            (Mode::Stream, _) => Rung::Unchanged,
            // A loop has a copy of its graph.
            (Mode::Resident, Loops::Run) => Rung::Instantiate,
            _ => Rung::Params,
        };
        assert_eq!(rung, expected, "{policy:?}");
        assert_eq!(slot.run(&gather, 2.0), gather.expected(2.0, 7.0));
    }
}

/// Values and pointers change by parameters, by an update and by a new graph.
pub fn a_struct_changes_by_every_kind_of_update(backend: &Arc<dyn Backend>) {
    let gather = Gather::new();
    for policy in graphs() {
        for least in [Rung::Params, Rung::Update, Rung::Instantiate] {
            let mut slot = gather.slot(backend, &policy);
            assert_eq!(slot.run(&gather, 2.0), gather.expected(2.0, 1.0));
            let other = gather.table(&**backend, 5.0);
            slot.declare(&other);
            let rung = slot.point(other.address(), 3.0, least).unwrap();
            assert_eq!(rung, least, "{policy:?}");
            slot.withdraw_table();
            drop(other);
            let expected = gather.expected(2.0, 5.0).into_iter().map(|y| y + 3.0);
            assert_eq!(slot.run(&gather, 2.0), expected.collect::<Vec<f32>>());
        }
    }
}
