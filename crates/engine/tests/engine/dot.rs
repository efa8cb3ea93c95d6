//! The drawing of what a bucket replays.

use crate::forward::BackendHooks;
use crate::gather::Gather;
use crate::seeds::simulated::device;
use crate::tamper::Tamper;
use std::collections::BTreeSet;
use std::sync::Arc;
use tapeloop_conformance::program::Program;
use tapeloop_engine::backend::Backend;
use tapeloop_engine::backend::contract::{Op, Priority};
use tapeloop_engine::backend::cpu::CpuBackend;
use tapeloop_engine::record::{Kernel, Recorder};
use tapeloop_engine::replay::{Buckets, Build, Executor, Mode, Policy};

/// The CPU and a simulated device.
fn devices() -> [Arc<dyn Backend>; 2] {
    [Arc::new(CpuBackend::inline()), device(2).1]
}

fn dot(backend: &Arc<dyn Backend>, policy: Policy) -> String {
    let program = Program::new();
    let (mut device_slot, mut executor) = program.slots(backend, 1, &policy).unwrap().remove(0);
    assert!(executor.dot(&mut *device_slot, 2).is_err());
    executor.dot(&mut *device_slot, 1).unwrap()
}

/// Edges as their text has them: what comes before, what after.
fn edges(dot: &str) -> BTreeSet<(String, String)> {
    let name = |id: &str| {
        let line = dot.lines().find(|line| line.contains(&format!("  {id} [")));
        let label = line.unwrap().split('"').nth(1).unwrap();
        label.split("\\n").next().unwrap().to_owned()
    };
    let edge = |line: &str| {
        let (from, rest) = line.trim().split_once(" -> ")?;
        Some((name(from), name(rest.split(' ').next().unwrap())))
    };
    dot.lines().filter_map(edge).collect()
}

fn named(edges: &[(&str, &str)]) -> BTreeSet<(String, String)> {
    let owned = |&(from, to): &(&str, &str)| (from.to_owned(), to.to_owned());
    edges.iter().map(owned).collect()
}

const BY_DATA: &[(&str, &str)] = &[
    ("upload header", "scale"),
    ("upload x", "scale"),
    ("memset mid", "scale"),
    ("upload header", "shift"),
    ("upload x", "shift"),
    ("scale", "add"),
    ("upload w", "add"),
    ("add", "download y"),
    ("shift", "download z"),
];

#[test]
fn an_explicit_graph_has_the_edges_that_data_asks_for() {
    for backend in devices() {
        let policy = Policy {
            build: Build::Explicit,
            ..Policy::default()
        };
        let dot = dot(&backend, policy);
        assert_eq!(edges(&dot), named(BY_DATA));
        for part in [
            "label=\"bucket 1 of [32]: ",
            "explicit graph, 9 operations\"",
            "[label=\"upload x\\n128 B\", shape=invtrapezium, style=\"filled\"",
            "[label=\"scale\\n8 x 1 x 1 blocks of 4 x 1 x 1\", shape=box",
            "[label=\"memset mid\\n0x00, 128 B\", shape=ellipse",
            "[label=\"download z\\n128 B\", shape=trapezium",
            "[label=\"mid 128 B\"]",
        ] {
            assert!(dot.contains(part), "{part:?} is not in {dot}");
        }
        assert!(!dot.contains("dotted"));
    }
}

#[test]
fn a_captured_graph_and_launches_are_drawn_as_a_line() {
    for backend in devices() {
        let captured = dot(&backend, Policy::default());
        assert!(captured.contains("captured graph, 9 operations"));
        assert_eq!(edges(&captured).len(), 8);
        assert!(
            captured.contains("[style=dotted]"),
            "uploads have nothing in common"
        );
        let launches = dot(&backend, Policy::new(Mode::Stream));
        assert!(launches.contains(": launches, 9 operations"));
        assert_eq!(edges(&launches), edges(&captured));
    }
}

#[test]
fn launches_are_drawn_with_their_attributes() {
    let kernel = Kernel::new("exchange").reads::<u32>("x").writes::<u32>("y");
    let kernel = kernel.cluster([2, 1, 1]).cooperative().urgent();
    let kernel = kernel.twin(|_| {});
    let mut recorder = Recorder::new(&[64]);
    let x = recorder.upload_buffer::<u32>("x", 0, 1);
    let y = recorder.download_buffer::<u32>("y", 0, 1);
    recorder.upload(x);
    recorder.launch_grid(&kernel, [4, 1, 1], &[x.into(), y.into()]);
    recorder.download(y);
    let buckets = Arc::new(Buckets::single(recorder.finish().unwrap()));
    let [backend, _] = devices();
    let buffers = buckets.largest().recording.buffers();
    let slots = backend.open_slots(buffers, 1, Priority::Normal);
    let mut slot = slots.unwrap().remove(0);
    let policy = Policy::default();
    let mut executor = Executor::new(&backend, &mut *slot, &buckets, &policy).unwrap();
    let dot = executor.dot(&mut *slot, 0).unwrap();
    let label = "\\nclusters of 2 x 1 x 1\\ncooperative\\nurgent\"";
    assert!(dot.contains(label), "{dot}");
}

#[test]
fn what_is_drawn_is_what_the_device_holds() {
    let tamper = Arc::new(Tamper::default());
    let [cpu, _] = devices();
    let backend = Arc::clone(&tamper).around(cpu);
    let gather = Gather::new();
    let policy = Policy {
        warm_up: false,
        ..Policy::default()
    };
    let mut slot = gather.slot(&backend, &policy);
    slot.run(&gather, 1.0);
    tamper.hold(|ops| {
        if let Op::Launch { grid, .. } = &mut ops[1] {
            *grid = [77, 1, 1];
        }
    });
    let dot = slot.executor.dot(&mut *slot.device_slot, 0).unwrap();
    assert!(dot.contains("gather\\n77 x 1 x 1 blocks"), "{dot}");
}
