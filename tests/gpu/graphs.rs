//! Graphs on a real device: what they hold, and how they take other parameters.
//! Without a device, each test says "skipped: no device".

use crate::give::Give;
use crate::gpu::*;
use std::sync::Arc;
use tapeloop::ErrorKind;
use tapeloop::backend::contract::{Built, DeviceSlot, GraphId, Node, Op};
use tapeloop::backend::{AllocationView, Backend, Space};
use tapeloop::record::Kernel;
use tapeloop::replay::{
    Bindings, Build, Executor, Lowered, Mode, Policy, Rung, Transfer, Verify, hazards, lower,
};

const BUILDS: [Build; 2] = [Build::Capture, Build::Explicit];
const FLOATS: usize = LEN * size_of::<f32>();

fn policy(build: Build) -> Policy {
    Policy {
        build,
        // Launches are meant to be in flight when they were given.
        verify: Verify::Off,
        ..Policy::default()
    }
}

fn lowered(
    backend: &Arc<dyn Backend>,
    saxpy: &Saxpy,
    device_slot: &dyn DeviceSlot,
) -> Vec<Lowered> {
    let recording = Arc::new(saxpy.recording.clone());
    let bindings = Bindings::new(&recording, &**backend, device_slot, &Policy::default()).unwrap();
    lower(&bindings)
}

fn make(
    device_slot: &mut dyn DeviceSlot,
    saxpy: &Saxpy,
    body: &[Lowered],
    build: Build,
) -> GraphId {
    let (graph, built) = match build {
        Build::Capture => {
            let ops: Vec<&Op> = body.iter().map(|lowered| lowered.op()).collect();
            device_slot.capture(&ops, None).unwrap()
        }
        Build::Explicit => {
            let commands: Vec<usize> = body.iter().map(|lowered| lowered.command()).collect();
            let after = hazards(&saxpy.recording, &commands);
            let nodes = body.iter().zip(&after).map(|(lowered, after)| Node {
                op: lowered.op(),
                after,
            });
            device_slot
                .give_graph(&nodes.collect::<Vec<_>>(), None)
                .unwrap()
        }
    };
    assert_eq!(built, Built::Instantiated);
    graph
}

#[test]
fn a_capture_and_a_graph_by_hand_hold_and_do_what_was_meant() {
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    let mut device_slot = one_slot(&backend, &saxpy.recording);
    let body = lowered(&backend, &saxpy, &*device_slot);
    let meant: Vec<Op> = body.iter().map(|lowered| lowered.op().clone()).collect();
    let graphs = BUILDS.map(|build| make(&mut *device_slot, &saxpy, &body, build));
    for (round, graph) in graphs.into_iter().enumerate() {
        assert_eq!(device_slot.graph_ops(graph).unwrap(), meant);
        let (x, expected) = expected(0, round);
        fill(&saxpy, &mut *device_slot, &x);
        device_slot.launch_graph(graph).unwrap();
        device_slot.fence().unwrap();
        device_slot.wait().unwrap();
        assert!(out(&saxpy, &*device_slot) == expected);
        device_slot.drop_graph(graph);
        let gone = device_slot.launch_graph(graph).unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::Usage);
    }
}

#[test]
fn both_builds_and_both_transfers_give_the_expected_bytes() {
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    for (mode, build) in [
        (Mode::Graph, Build::Capture),
        (Mode::Graph, Build::Explicit),
        (Mode::Stream, Build::Capture),
    ] {
        for transfer in [Transfer::Copy, Transfer::Mapped, Transfer::Auto] {
            let policy = Policy {
                mode,
                build,
                transfer,
                ..Policy::default()
            };
            let mut device_slot = one_slot(&backend, &saxpy.recording);
            let mut executor = ready_with(&backend, &saxpy.recording, &mut *device_slot, &policy);
            for index in 0..50 {
                round(&saxpy, &mut *device_slot, &mut executor, 0, index);
            }
            let replay = replay(&mut *device_slot, &mut executor);
            assert_eq!(replay.copied_bytes == 0, transfer != Transfer::Copy);
            device_slot.wait().unwrap();
        }
    }
}

/// What [`Saxpy`] leaves where, replay after replay.
struct Model {
    x: Vec<f32>,
    out: Vec<f32>,
    host: Vec<f32>,
    a: f32,
    blocks: usize,
    uploaded: usize,
    downloaded: usize,
}

impl Model {
    fn new() -> Self {
        Model {
            x: vec![0.0; LEN],
            out: vec![0.0; LEN],
            host: vec![0.0; LEN],
            a: 2.5,
            blocks: LEN.div_ceil(128),
            uploaded: LEN,
            downloaded: LEN,
        }
    }

    fn replay(&mut self, x: &[f32]) {
        self.x[..self.uploaded].copy_from_slice(&x[..self.uploaded]);
        for i in 0..LEN.min(self.blocks * 128) {
            self.out[i] = self.a * self.x[i] + 0x0101_0101 as f32;
        }
        self.host[..self.downloaded].copy_from_slice(&self.out[..self.downloaded]);
    }
}

struct Ladder {
    saxpy: Saxpy,
    device_slot: Box<dyn DeviceSlot>,
    executor: Executor,
    model: Model,
    round: usize,
}

impl Ladder {
    fn new(backend: &Arc<dyn Backend>, build: Build) -> Self {
        let saxpy = saxpy();
        let mut device_slot = one_slot(backend, &saxpy.recording);
        let executor = ready_with(backend, &saxpy.recording, &mut *device_slot, &policy(build));
        Ladder {
            saxpy,
            device_slot,
            executor,
            model: Model::new(),
            round: 0,
        }
    }

    /// Changes the bindings by no cheaper rung than `least`.
    fn change(&mut self, least: Rung, change: impl FnOnce(&Saxpy, &mut Bindings)) -> Rung {
        let mut bindings = self
            .executor
            .bindings(&mut *self.device_slot, 0)
            .unwrap()
            .clone();
        change(&self.saxpy, &mut bindings);
        self.executor
            .update_from(&mut *self.device_slot, 0, bindings, least)
            .unwrap()
    }

    fn replay(&mut self) {
        self.round += 1;
        let (x, _) = expected(3, self.round);
        self.model.replay(&x);
        fill(&self.saxpy, &mut *self.device_slot, &x);
        replay(&mut *self.device_slot, &mut self.executor);
    }

    fn check(&mut self) {
        self.replay();
        self.device_slot.wait().unwrap();
        assert!(out(&self.saxpy, &*self.device_slot) == self.model.host);
    }
}

#[test]
fn every_rung_changes_what_was_asked_and_nothing_else() {
    let Some(backend) = device() else { return };
    for build in BUILDS {
        for least in [Rung::Params, Rung::Update, Rung::Instantiate] {
            let mut ladder = Ladder::new(&backend, build);
            ladder.check();
            ladder.model.a = 3.25;
            let rung = ladder.change(least, |_, b| b.set_scalar(0, "a", 3.25_f32).unwrap());
            assert_eq!(rung, least);
            ladder.check();
            ladder.model.blocks = 40;
            let rung = ladder.change(least, |_, b| b.set_grid(0, [40, 1, 1]).unwrap());
            assert_eq!(rung, least);
            ladder.check();
            (ladder.model.uploaded, ladder.model.downloaded) = (1_000, 777);
            let rung = ladder.change(least, |saxpy, b| {
                b.set_copy_len(saxpy.x, 1_000).unwrap();
                b.set_copy_len(saxpy.out, 777).unwrap();
            });
            assert_eq!(rung, least);
            ladder.check();
            assert_eq!(ladder.change(Rung::Unchanged, |_, _| {}), Rung::Unchanged);
            ladder.check();
            let updates = ladder.executor.updates();
            let taken = [updates.params, updates.updates, updates.instantiations];
            let place = least as usize - Rung::Params as usize;
            assert_eq!((taken[place], taken.iter().sum::<u64>()), (3, 3));
        }
    }
}

#[test]
fn mapping_a_buffer_updates_the_graph() {
    let Some(backend) = device() else { return };
    for build in BUILDS {
        let mut ladder = Ladder::new(&backend, build);
        for mapped in [true, false, true] {
            let rung = ladder.change(Rung::Unchanged, |saxpy, b| {
                b.set_mapped(saxpy.x, mapped).unwrap();
            });
            // The remaining copies and memsets are still done by the same launches.
            assert_eq!(rung, Rung::Update);
            let (x, wanted) = expected(1, 1);
            fill(&ladder.saxpy, &mut *ladder.device_slot, &x);
            replay(&mut *ladder.device_slot, &mut ladder.executor);
            ladder.device_slot.wait().unwrap();
            assert!(out(&ladder.saxpy, &*ladder.device_slot) == wanted);
        }
    }
}

#[test]
fn rebinding_to_blocks_and_back_gives_each_its_own_bytes() {
    let Some(backend) = device() else { return };
    for build in BUILDS {
        for least in [Rung::Params, Rung::Update, Rung::Instantiate] {
            let mut ladder = Ladder::new(&backend, build);
            let device = backend.allocate(Space::Device, FLOATS + 512).unwrap();
            let pinned = backend.allocate(Space::Pinned, 2 * FLOATS + 64).unwrap();
            let rung = ladder.change(least, |saxpy, b| {
                let view = AllocationView::new(&device, 512, FLOATS).unwrap();
                b.bind_device(saxpy.x, view).unwrap();
                let view = AllocationView::new(&pinned, 0, FLOATS).unwrap();
                b.bind_host(saxpy.x, view).unwrap();
                let view = AllocationView::new(&pinned, FLOATS + 64, FLOATS).unwrap();
                b.bind_host(saxpy.out, view).unwrap();
            });
            assert_eq!(rung, least);
            for round in 0..5 {
                let (x, wanted) = expected(2, round);
                pinned.write().unwrap()[..FLOATS].copy_from_slice(bytemuck::cast_slice(&x));
                replay(&mut *ladder.device_slot, &mut ladder.executor);
                assert!(pinned.read().is_err(), "the device's turn");
                ladder.device_slot.wait().unwrap();
                let bytes = pinned.read().unwrap();
                assert!(bytes[FLOATS + 64..] == *bytemuck::cast_slice::<f32, u8>(&wanted));
                let mut copied = vec![0; FLOATS];
                backend.read(&device, 512, &mut copied).unwrap();
                assert!(copied == bytemuck::cast_slice::<f32, u8>(&x));
                assert!(
                    out(&ladder.saxpy, &*ladder.device_slot)
                        .iter()
                        .all(|v| *v == 0.0)
                );
            }
            // Back to the slot's own memory.
            let recording = Arc::clone(
                ladder
                    .executor
                    .bindings(&mut *ladder.device_slot, 0)
                    .unwrap()
                    .recording(),
            );
            let own =
                Bindings::new(&recording, &*backend, &*ladder.device_slot, &policy(build)).unwrap();
            ladder
                .executor
                .update(&mut *ladder.device_slot, 0, own)
                .unwrap();
            ladder.check();
        }
    }
}

/// A change is of later launches alone, also where it replaces the graph.
#[test]
fn launches_in_flight_keep_their_parameters() {
    let Some(backend) = device() else { return };
    let slow = Kernel::new("slow").writes::<f32>("out").scalar::<u32>("n");
    let slow = with_code(slow, &source_image(SAXPY));
    for build in BUILDS {
        for least in [Rung::Params, Rung::Update, Rung::Instantiate] {
            let mut ladder = Ladder::new(&backend, build);
            let function = backend.load(&slow).unwrap();
            let blocks = [0, 1].map(|_| backend.allocate(Space::Pinned, FLOATS).unwrap());
            let (x, _) = expected(0, 0);
            fill(&ladder.saxpy, &mut *ladder.device_slot, &x);
            let hold = Op::Launch {
                function,
                grid: [80, 1, 1],
                block: [128, 1, 1],
                shared_bytes: 0,
                args: Box::new([
                    ladder.device_slot.addresses(ladder.saxpy.out.id()).device,
                    LEN as u64,
                ]),
            };
            let mut first = true;
            for (block, a) in blocks.iter().zip([2.0_f32, 5.0]) {
                ladder.change(least, |saxpy, b| {
                    b.set_scalar(0, "a", a).unwrap();
                    let view = AllocationView::new(block, 0, FLOATS).unwrap();
                    b.bind_host(saxpy.out, view).unwrap();
                });
                if std::mem::take(&mut first) {
                    ladder.device_slot.give(&hold).unwrap();
                } else if ladder.device_slot.is_done().unwrap() {
                    // As the driver may where it makes a graph anew, and tools may
                    // anywhere; then this round shows less.
                    say(&format!("a change by {least:?} waited for work in flight"));
                }
                replay(&mut *ladder.device_slot, &mut ladder.executor);
            }
            ladder.device_slot.wait().unwrap();
            for (block, a) in blocks.iter().zip([2.0_f32, 5.0]) {
                let wanted: Vec<f32> = x.iter().map(|x| a * x + 0x0101_0101 as f32).collect();
                assert!(*block.read().unwrap() == *bytemuck::cast_slice::<f32, u8>(&wanted));
            }
        }
    }
}

fn memset(device_slot: &dyn DeviceSlot, saxpy: &Saxpy, byte: u8) -> Op {
    Op::Memset {
        device: device_slot.addresses(saxpy.out.id()).device,
        byte,
        bytes: FLOATS,
    }
}

fn download(device_slot: &dyn DeviceSlot, saxpy: &Saxpy) -> Op {
    let at = device_slot.addresses(saxpy.out.id());
    Op::Download {
        device: at.device,
        host: at.host.unwrap(),
        bytes: FLOATS,
    }
}

fn upload(device_slot: &dyn DeviceSlot, saxpy: &Saxpy) -> Op {
    let at = device_slot.addresses(saxpy.x.id());
    Op::Upload {
        device: at.device,
        host: at.host.unwrap(),
        bytes: FLOATS,
    }
}

/// The byte that a graph sets, as it comes down.
fn byte_of(device_slot: &mut dyn DeviceSlot, saxpy: &Saxpy, graph: GraphId) -> u8 {
    device_slot.launch_graph(graph).unwrap();
    let download = download(device_slot, saxpy);
    device_slot.give(&download).unwrap();
    device_slot.fence().unwrap();
    device_slot.wait().unwrap();
    let bytes = device_slot.host(saxpy.out.id());
    assert!(bytes.iter().all(|byte| *byte == bytes[0]));
    bytes[0]
}

#[test]
fn a_refused_change_is_named_and_leaves_the_graph_as_it_was() {
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    let mut device_slot = one_slot(&backend, &saxpy.recording);
    let (one, two) = (
        memset(&*device_slot, &saxpy, 1),
        memset(&*device_slot, &saxpy, 2),
    );
    let copy = download(&*device_slot, &saxpy);
    let (graph, _) = device_slot.capture(&[&one], None).unwrap();
    let usage = |refused: tapeloop::Error| {
        assert_eq!(refused.kind(), ErrorKind::Usage, "{refused}");
    };
    // Another kind of operation is another topology, and so is a copy that goes
    // the other way, which is a node of the same type.
    let up = upload(&*device_slot, &saxpy);
    for (before, why) in [(&one, "NODE_TYPE_CHANGED"), (&up, "PARAMETERS_CHANGED")] {
        let (other, _) = device_slot.capture(&[before], None).unwrap();
        let (_, built) = device_slot.capture(&[&copy], Some(other)).unwrap();
        let Built::Reinstantiated { reason } = built else {
            panic!("{built:?}");
        };
        say(&format!("another topology: {reason}"));
        let expected = format!("CU_GRAPH_EXEC_UPDATE_ERROR_{why}, at operation 0");
        assert!(reason.starts_with(&expected), "{reason}");
    }
    usage(device_slot.give_params(graph, 0, &copy).unwrap_err());
    usage(device_slot.give_params(graph, 1, &two).unwrap_err());
    // Another kind of build.
    let nodes = [Node {
        op: &two,
        after: &[],
    }];
    usage(device_slot.give_graph(&nodes, Some(graph)).unwrap_err());
    let (by_hand, _) = device_slot.give_graph(&nodes, None).unwrap();
    usage(device_slot.capture(&[&one], Some(by_hand)).unwrap_err());
    // A refused operation.
    let foreign = Op::Memset {
        device: 8,
        byte: 0,
        bytes: 4,
    };
    usage(
        device_slot
            .capture(&[&two, &foreign], Some(graph))
            .unwrap_err(),
    );
    // A node that comes before what it runs after, and no nodes.
    let nodes = [Node {
        op: &two,
        after: &[0],
    }];
    usage(device_slot.give_graph(&nodes, None).unwrap_err());
    usage(device_slot.give_graph(&[], None).unwrap_err());
    assert_eq!(byte_of(&mut *device_slot, &saxpy, graph), 1);
    assert_eq!(byte_of(&mut *device_slot, &saxpy, by_hand), 2);
    assert_eq!(device_slot.graph_ops(graph).unwrap(), [one]);
}

#[test]
fn what_a_graph_holds_follows_its_updates() {
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    let mut device_slot = one_slot(&backend, &saxpy.recording);
    let ops = [1, 2, 3, 4].map(|byte| memset(&*device_slot, &saxpy, byte));
    let copy = download(&*device_slot, &saxpy);
    let (graph, _) = device_slot.capture(&[&ops[0]], None).unwrap();
    let (same, built) = device_slot.capture(&[&ops[1]], Some(graph)).unwrap();
    assert_eq!((same, built), (graph, Built::Updated));
    assert_eq!(device_slot.graph_ops(graph).unwrap(), ops[1..2]);
    assert_eq!(byte_of(&mut *device_slot, &saxpy, graph), 2);
    // The nodes are still those of the first capture.
    device_slot.give_params(graph, 0, &ops[2]).unwrap();
    assert_eq!(byte_of(&mut *device_slot, &saxpy, graph), 3);
    let (same, built) = device_slot.capture(&[&ops[3], &copy], Some(graph)).unwrap();
    assert_eq!(same, graph);
    let Built::Reinstantiated { reason } = built else {
        panic!("{built:?}");
    };
    assert!(reason.contains("TOPOLOGY_CHANGED"), "{reason}");
    let expected = [ops[3].clone(), copy.clone()];
    assert_eq!(device_slot.graph_ops(graph).unwrap(), expected);
    assert_eq!(byte_of(&mut *device_slot, &saxpy, graph), 4);
    device_slot.give_params(graph, 0, &ops[0]).unwrap();
    assert_eq!(byte_of(&mut *device_slot, &saxpy, graph), 1);
}
