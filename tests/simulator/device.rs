//! The simulated device's own behaviour: when effects come, what a capture
//! forbids, who holds blocks, what a loss of the device does.

use crate::give::Give;
use crate::seeds::program::{Handles, Input, Program, assert_clean, device, device_with};
use crate::seeds::{Random, each_seed};
use std::cell::Cell;
use std::sync::Arc;
use tapeloop::ErrorKind;
use tapeloop::backend::sim::{Fault, Live, SimBackend, SimOptions, ViolationKind};
use tapeloop::backend::{
    Backend, BlockView, Built, GraphId, Lane, Node, Op, Queue, Space, Streams,
};
use tapeloop::record::{Kernel, TwinLaunch};
use tapeloop::replay::{Executor, Policy};

fn lanes(backend: &Arc<dyn Backend>, count: usize) -> (Handles, Vec<Box<dyn Lane>>) {
    let program = Program::new();
    let lanes = program.open(backend, count, Streams::PerSlot).unwrap();
    (program.handles, lanes)
}

fn kinds(sim: &SimBackend) -> Vec<ViolationKind> {
    sim.violations().iter().map(|v| v.kind).collect()
}

fn upload(handles: &Handles, lane: &dyn Lane) -> Op {
    let addresses = lane.addresses(handles.x.id());
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

/// A round trip of `x` through the device's scratch, on one lane.
fn trip(handles: &Handles, lane: &mut dyn Lane, byte: u8) {
    let device = lane.addresses(handles.y.id()).device;
    let host = lane.addresses(handles.y.id()).host.unwrap();
    let bytes = 128;
    lane.give(Queue::Compute, &memset(device, byte, bytes))
        .unwrap();
    lane.join(Queue::Compute, Queue::Download).unwrap();
    let download = Op::Download {
        device,
        host,
        bytes,
    };
    lane.give(Queue::Download, &download).unwrap();
    lane.fence().unwrap();
}

#[test]
fn effects_come_late_and_are_hidden_until_they_are_seen_done() {
    let late = Cell::new(0);
    let run = each_seed(500, |seed| {
        let (sim, backend) = device_with(SimOptions {
            refuses: false,
            ..SimOptions::seeded(seed)
        });
        let (handles, mut lanes) = lanes(&backend, 2);
        let lane = &mut *lanes[0];
        assert_eq!(lane.host(handles.y.id()), [0; 128]);
        trip(&handles, lane, 0xab);
        late.set(late.get() + u64::from(sim.live().work > 0));
        // However long the device had time for it.
        while sim.live().work > 0 {
            lanes[1].host(handles.x.id());
        }
        let early = lanes[0].host(handles.y.id()).to_vec();
        assert!(early != [0xab; 128] && early != [0; 128], "poison");
        assert_eq!(kinds(&sim), [ViolationKind::Unordered]);
        while !lanes[0].is_done().unwrap() {}
        assert_eq!(lanes[0].host(handles.y.id()), [0xab; 128]);
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
        let (handles, mut lanes) = lanes(&backend, 1);
        let lane = &mut *lanes[0];
        let op = upload(&handles, lane);
        lane.host_mut(&[handles.x.id()])[0].fill(1);
        lane.give(Queue::Upload, &op).unwrap();
        // Too early, and some of the time it is what the copy finds.
        lane.host_mut(&[handles.x.id()])[0].fill(2);
        let host = lane.addresses(handles.y.id()).host.unwrap();
        let device = lane.addresses(handles.x.id()).device;
        let download = Op::Download {
            device,
            host,
            bytes: 128,
        };
        lane.give(Queue::Download, &download).unwrap();
        lane.fence().unwrap();
        lane.wait().unwrap();
        let found = lane.host(handles.y.id())[127];
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
        let (handles, mut lanes) = lanes(&backend, 2);
        let mut answers = Vec::new();
        for round in 0..4 {
            lanes
                .iter_mut()
                .for_each(|lane| trip(&handles, &mut **lane, round));
            for lane in &mut lanes {
                let mut polls = 0;
                while !lane.is_done().unwrap() {
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
fn a_wait_leaves_other_lanes_their_work() {
    let left = Cell::new(0);
    each_seed(100, |seed| {
        let (sim, backend) = device(seed);
        let (handles, mut lanes) = lanes(&backend, 3);
        lanes
            .iter_mut()
            .for_each(|lane| trip(&handles, &mut **lane, 1));
        lanes[0].wait().unwrap();
        left.set(left.get() + u64::from(sim.live().work > 0));
    });
    assert!(left.get() > 50, "{}", left.get());
}

#[test]
fn what_a_capture_forbids_is_told_and_ends_with_it() {
    each_seed(100, |seed| {
        let (sim, backend) = device(seed);
        let (handles, mut lanes) = lanes(&backend, 1);
        let lane = &mut *lanes[0];
        assert_eq!(lane.end_capture(None).unwrap_err().kind(), ErrorKind::Usage);
        lane.begin_capture().unwrap();
        assert!(lane.end_capture(None).is_err(), "it took nothing down");
        assert_eq!(sim.violations(), []);

        lane.begin_capture().unwrap();
        assert!(lane.begin_capture().is_err());
        assert!(lane.fence().is_err());
        assert!(lane.launch_graph(GraphId::unique()).is_err());
        assert!(lane.is_done().is_err());
        assert!(lane.wait().is_err());
        let op = memset(lane.addresses(handles.mid.id()).device, 0, 128);
        lane.give(Queue::Compute, &op).unwrap();
        assert_eq!(kinds(&sim), [ViolationKind::Capture; 5]);
        assert_eq!(
            (sim.live().work, sim.live().captures),
            (0, 1),
            "nothing runs"
        );
        let (graph, _) = lane.end_capture(None).unwrap();
        assert_eq!(lane.graph_ops(graph).unwrap(), [op]);

        lane.begin_capture().unwrap();
        lanes.clear();
        assert_eq!(
            kinds(&sim),
            [ViolationKind::Capture; 6],
            "dropped in a capture"
        );
        assert_eq!(sim.live(), Live::default());
    });
}

#[test]
fn an_allocation_ends_a_capture_of_its_own_thread_and_no_other() {
    each_seed(50, |seed| {
        let (sim, backend) = device(seed);
        let (handles, mut lanes) = lanes(&backend, 1);
        let lane = &mut *lanes[0];
        let op = memset(lane.addresses(handles.mid.id()).device, 0, 128);
        lane.begin_capture().unwrap();
        lane.give(Queue::Compute, &op).unwrap();
        let elsewhere = || drop(backend.allocate(Space::Device, 8).unwrap());
        std::thread::scope(|scope| scope.spawn(elsewhere).join().unwrap());
        lane.end_capture(None).unwrap();
        assert_eq!(sim.violations(), []);
        lane.begin_capture().unwrap();
        lane.give(Queue::Compute, &op).unwrap();
        assert!(backend.allocate(Space::Device, 8).is_err());
        let error = lane.end_capture(None).unwrap_err();
        assert_eq!(error.code(), Some(901), "{error}");
        assert_eq!(kinds(&sim), [ViolationKind::Capture]);
    });
}

#[test]
fn an_update_says_where_the_topology_differs() {
    let (sim, backend) = device(0);
    let (handles, mut lanes) = lanes(&backend, 1);
    let lane = &mut *lanes[0];
    let scratch = memset(lane.addresses(handles.mid.id()).device, 0, 128);
    let up = upload(&handles, lane);
    let node = |op| Node { op, after: &[] };
    let after = |op| Node { op, after: &[0] };
    let mut into = None;
    let mut build = |lane: &mut dyn Lane, nodes: &[Node<'_>]| {
        let (graph, built) = lane.give_graph(nodes, into).unwrap();
        into = Some(graph);
        built
    };
    let told = |built: Built| match built {
        Built::Reinstantiated { reason } => reason,
        other => format!("{other:?}"),
    };
    assert_eq!(
        build(lane, &[node(&up), node(&scratch)]),
        Built::Instantiated
    );
    assert_eq!(build(lane, &[node(&up), node(&scratch)]), Built::Updated);
    let told_edge = told(build(lane, &[node(&up), after(&scratch)]));
    assert!(told_edge.starts_with("node 1 ran after []"), "{told_edge}");
    let told_kind = told(build(lane, &[node(&up), after(&up)]));
    assert_eq!(told_kind, "node 1 was a memset, and is an upload");
    let told_count = told(build(lane, &[node(&up)]));
    assert!(
        told_count.starts_with("node 1 is of one graph alone"),
        "{told_count}"
    );
    lane.begin_capture().unwrap();
    lane.give(Queue::Upload, &up).unwrap();
    let error = lane.end_capture(into).unwrap_err();
    assert!(error.message().contains("built by hand"), "{error}");
    assert!(
        lane.give_params(into.unwrap(), 0, &scratch).is_err(),
        "another kind"
    );
    assert!(
        lane.give_graph(&[after(&up)], None).is_err(),
        "no such node"
    );
    assert_eq!(lane.graph_ops(into.unwrap()).unwrap(), [up]);
    drop(lanes);
    assert_clean(&sim);
}

#[test]
fn blocks_are_the_devices_until_their_work_is_seen_done() {
    each_seed(200, |seed| {
        let (sim, backend) = device(seed);
        let (_, mut lanes) = lanes(&backend, 2);
        let (source, target) = (
            backend.allocate(Space::Pinned, 64).unwrap(),
            backend.allocate(Space::Device, 64).unwrap(),
        );
        source.write().unwrap().fill(7);
        let op = Op::Upload {
            host: source.address(),
            device: target.address(),
            bytes: 64,
        };
        for lane in &mut lanes {
            lane.adopt(&source).unwrap();
            lane.adopt(&target).unwrap();
        }
        lanes[0].give(Queue::Upload, &op).unwrap();
        lanes[0].fence().unwrap();
        assert!(source.write().is_err());
        assert!(source.read().is_ok(), "both read");
        assert_eq!(
            lanes[1].give(Queue::Upload, &op).unwrap_err().kind(),
            ErrorKind::Usage
        );
        assert!(backend.read(&target, 0, &mut [0; 64]).is_err());
        lanes[0].wait().unwrap();
        assert_eq!(sim.live().leases, 0);
        let mut bytes = [0; 64];
        backend.read(&target, 0, &mut bytes).unwrap();
        assert_eq!(bytes, [7; 64]);
        let other = device(seed + 1).1.allocate(Space::Device, 8).unwrap();
        assert!(lanes[0].adopt(&other).is_err(), "of another backend");
        drop((lanes, source, target));
        assert_clean(&sim);
    });
}

#[test]
fn an_update_that_is_refused_keeps_no_block() {
    let (sim, backend) = device(0);
    let program = Program::new();
    let slots = program.slots(&backend, 1, &Policy::default());
    let (mut lane, mut executor) = slots.unwrap().remove(0);
    let before = sim.live().allocations;
    let (_, elsewhere) = device(1);
    let mut bindings = executor.bindings(&mut *lane, 0).unwrap().clone();
    for (buffer, backend) in [
        (program.handles.y, &backend),
        (program.handles.z, &elsewhere),
    ] {
        let block = backend.allocate(Space::Pinned, 32).unwrap();
        let view = BlockView::new(&block, 0, 32).unwrap();
        bindings.bind_host(buffer, view).unwrap();
    }
    assert!(executor.update(&mut *lane, 0, bindings).is_err());
    assert_eq!(sim.live().allocations, before);
}

#[test]
fn reading_scratch_that_nothing_wrote_is_told() {
    each_seed(100, |seed| {
        let (sim, backend) = device(seed);
        let (handles, mut lanes) = lanes(&backend, 1);
        let y = lanes[0].addresses(handles.y.id());
        let op = Op::Download {
            device: y.device,
            host: y.host.unwrap(),
            bytes: 4,
        };
        assert!(lanes[0].give(Queue::Download, &op).is_err());
        assert_eq!(kinds(&sim), [ViolationKind::Undefined]);
        trip(&handles, &mut *lanes[0], 3);
        lanes[0].give(Queue::Download, &op).unwrap();
    });
}

fn panics(_: &mut TwinLaunch<'_>) {
    panic!("planted");
}

#[test]
fn a_lost_device_stays_lost_for_every_lane() {
    each_seed(200, |seed| {
        let (sim, backend) = device(seed);
        let (handles, mut lanes) = lanes(&backend, 2);
        let kernel = Kernel::new("panics").twin(panics);
        let function = backend.load(&kernel).unwrap();
        let launch = Op::Launch {
            function,
            grid: [1; 3],
            block: [1; 3],
            shared_bytes: 0,
            args: Box::new([]),
        };
        trip(&handles, &mut *lanes[1], 1);
        lanes[0].give(Queue::Compute, &launch).unwrap();
        let fenced = lanes[0].fence();
        let error = fenced.and_then(|()| lanes[0].wait()).unwrap_err();
        assert!(
            error.message().contains("kernel panics panicked: planted"),
            "{error}"
        );
        assert_eq!((error.kind(), error.code()), (ErrorKind::Device, Some(719)));
        assert_eq!(lanes[1].is_done().unwrap_err().code(), Some(719));
        assert!(lanes[1].begin_capture().is_err());
        assert!(backend.allocate(Space::Device, 8).is_err());
        drop(lanes);
        assert_clean(&sim);
    });
}

#[test]
fn a_call_that_fails_has_no_effect_and_the_lane_goes_on() {
    each_seed(100, |seed| {
        let (sim, backend) = device_with(SimOptions {
            faults: vec![Fault::Submission { submission: 1 }],
            ..SimOptions::seeded(seed)
        });
        let (handles, mut lanes) = lanes(&backend, 2);
        let op = memset(lanes[0].addresses(handles.mid.id()).device, 0, 8);
        lanes[0].give(Queue::Compute, &op).unwrap();
        assert_eq!(lanes[0].fence().unwrap_err().code(), Some(701));
        lanes[0].give(Queue::Compute, &op).unwrap();
        lanes[0].join(Queue::Compute, Queue::Download).unwrap();
        lanes[0].fence().unwrap();
        lanes[0].wait().unwrap();
        trip(&handles, &mut *lanes[0], 7);
        lanes[0].wait().unwrap();
        assert_eq!(lanes[0].host(handles.y.id()), [7; 128]);
        trip(&handles, &mut *lanes[1], 9);
        lanes[1].wait().unwrap();
        assert_eq!(lanes[1].host(handles.y.id()), [9; 128]);
        drop(lanes);
        assert_clean(&sim);
    });
}

#[test]
fn lanes_dropped_in_flight_take_nothing_with_them() {
    each_seed(100, |seed| {
        let (sim, backend) = device(seed);
        let program = Program::new();
        for streams in [Streams::PerSlot, Streams::PerStage] {
            let mut lanes = program.open(&backend, 2, streams).unwrap();
            for lane in &mut lanes {
                trip(&program.handles, &mut **lane, 1);
            }
            lanes.remove((seed % 2) as usize);
            lanes[0].wait().unwrap();
        }
        let slots = program.slots(&backend, 2, &Policy::default());
        let mut slots: Vec<(Box<dyn Lane>, Executor)> = slots.unwrap();
        let input = Input::random(&mut Random::new(seed), 8);
        for (lane, executor) in &mut slots {
            program.fill(&mut **lane, &input);
            executor.replay(&mut **lane, 0, input.extent()).unwrap();
        }
        drop((slots, backend));
        assert_clean(&sim);
    });
}
