//! Graphs: what they hold, and how they take other parameters.

use crate::assert_refused;
use crate::give::{Give, download, memset, upload};
use crate::program::{BLOCK, CAPACITIES, Input, Program};
use std::sync::Arc;
use tapeloop_engine::ErrorKind;
use tapeloop_engine::backend::Backend;
use tapeloop_engine::backend::contract::{Built, DeviceSlot, GraphId, Node, Op};
use tapeloop_engine::replay::{
    Bindings, Build, Executor, Lowered, Policy, Rung, Transfer, hazards, lower,
};

/// Bytes of a buffer of the larger bucket.
const BYTES: usize = 4 * CAPACITIES[1];

/// Makes a captured and an explicit graph of the same operations. `after` has the edges of the explicit one: for
/// each operation the earlier ones that it follows.
fn make(device_slot: &mut dyn DeviceSlot, body: &[Lowered], after: &[Vec<usize>]) -> [GraphId; 2] {
    let ops: Vec<&Op> = body.iter().map(|lowered| lowered.op()).collect();
    let nodes = body.iter().zip(after).map(|(lowered, after)| Node {
        op: lowered.op(),
        after,
    });
    let nodes: Vec<_> = nodes.collect();
    let made = [
        device_slot.capture(&ops, None).unwrap(),
        device_slot.give_graph(&nodes, None).unwrap(),
    ];
    made.map(|(graph, built)| {
        assert_eq!(built, Built::Instantiated);
        graph
    })
}

/// A captured and an explicit graph hold the operations that they were given, and do them; a graph that
/// was dropped is refused.
pub fn a_graph_holds_and_does_what_it_was_given(backend: &Arc<dyn Backend>) {
    let program = Program::new();
    let (mut device_slot, mut executor) = program.slot(backend, &Policy::default());
    // The kernels are loaded for the device by now.
    program.run(&mut *device_slot, &mut executor, &Input::from_seed(0, 20));
    let recording = Arc::clone(&program.buckets.largest().recording);
    let policy = Policy {
        transfer: Transfer::Copy,
        ..Policy::default()
    };
    let bindings = Bindings::new(&recording, &**backend, &*device_slot, &policy).unwrap();
    let body = lower(&bindings);
    let commands: Vec<usize> = body.iter().map(|lowered| lowered.command()).collect();
    let after = hazards(&recording, &commands);
    let given: Vec<Op> = body.iter().map(|lowered| lowered.op().clone()).collect();
    for (round, graph) in make(&mut *device_slot, &body, &after)
        .into_iter()
        .enumerate()
    {
        assert_eq!(device_slot.graph_ops(graph).unwrap(), given);
        let input = Input::from_seed(round as u64, CAPACITIES[1]);
        program.fill(&mut *device_slot, &input);
        launch(&mut *device_slot, graph).unwrap();
        assert!(program.is_right(&*device_slot, &input));
        device_slot.drop_graph(graph);
        let dropped = launch(&mut *device_slot, graph).unwrap_err();
        assert_refused(&dropped, ErrorKind::Usage, &[]);
    }
}

fn launch(device_slot: &mut dyn DeviceSlot, graph: GraphId) -> tapeloop_engine::Result<()> {
    device_slot.launch_graph(graph)?;
    device_slot.fence()?;
    device_slot.wait()
}

/// Operations on the buffer `y` of a slot.
struct Ops {
    upload: Op,
    download: Op,
    device: u64,
}

impl Ops {
    /// The copies between the buffers `x` and `y` of `device_slot` and their host sides.
    fn new(program: &Program, device_slot: &dyn DeviceSlot) -> Self {
        let x = device_slot.addresses(program.handles.x.id());
        let y = device_slot.addresses(program.handles.y.id());
        Ops {
            upload: upload(x.host.unwrap(), x.device, BYTES),
            download: download(y.device, y.host.unwrap(), BYTES),
            device: y.device,
        }
    }

    fn memset(&self, byte: u8) -> Op {
        memset(self.device, byte, BYTES)
    }

    /// The byte that a graph sets, as it comes down.
    fn byte_of(&self, program: &Program, device_slot: &mut dyn DeviceSlot, graph: GraphId) -> u8 {
        device_slot.launch_graph(graph).unwrap();
        device_slot.give(&self.download).unwrap();
        device_slot.fence().unwrap();
        device_slot.wait().unwrap();
        let bytes = device_slot.host(program.handles.y.id());
        assert!(bytes.iter().all(|byte| *byte == bytes[0]), "{bytes:?}");
        bytes[0]
    }
}

/// Another kind of operation, of build, foreign memory and edges to later nodes are refused, or replace
/// the graph where the contract says so; refused changes have no effect.
pub fn a_refused_change_leaves_a_graph_as_it_was(backend: &Arc<dyn Backend>) {
    let program = Program::new();
    let mut device_slot = program.open(backend, 1).unwrap().remove(0);
    let device_slot = &mut *device_slot;
    let ops = Ops::new(&program, device_slot);
    let [one, two] = [1, 2].map(|byte| ops.memset(byte));
    let usage = |refused: tapeloop_engine::Error| assert_refused(&refused, ErrorKind::Usage, &[]);
    // Another kind of operation is another topology, and so is a copy that goes the other way.
    for before in [&one, &ops.upload] {
        let (other, _) = device_slot.capture(&[before], None).unwrap();
        let (same, built) = device_slot.capture(&[&ops.download], Some(other)).unwrap();
        assert_eq!(same, other);
        assert!(matches!(built, Built::Reinstantiated { .. }), "{built:?}");
    }
    let (graph, _) = device_slot.capture(&[&one], None).unwrap();
    usage(
        device_slot
            .give_params(graph, 0, &ops.download)
            .unwrap_err(),
    );
    usage(device_slot.give_params(graph, 1, &two).unwrap_err());
    let node = |op, after| [Node { op, after }];
    // Another kind of build.
    usage(
        device_slot
            .give_graph(&node(&two, &[]), Some(graph))
            .unwrap_err(),
    );
    let (explicit, _) = device_slot.give_graph(&node(&two, &[]), None).unwrap();
    usage(device_slot.capture(&[&one], Some(explicit)).unwrap_err());
    let foreign = memset(8, 0, 4);
    usage(
        device_slot
            .capture(&[&two, &foreign], Some(graph))
            .unwrap_err(),
    );
    // A node that comes before what it runs after, and no nodes.
    usage(device_slot.give_graph(&node(&two, &[0]), None).unwrap_err());
    usage(device_slot.give_graph(&[], None).unwrap_err());
    assert_eq!(ops.byte_of(&program, device_slot, graph), 1);
    assert_eq!(ops.byte_of(&program, device_slot, explicit), 2);
    assert_eq!(device_slot.graph_ops(graph).unwrap(), [one]);
}

/// A graph reads back what it holds after an update as a whole, and does what it was given last.
pub fn what_a_graph_holds_follows_its_updates(backend: &Arc<dyn Backend>) {
    let program = Program::new();
    let mut device_slot = program.open(backend, 1).unwrap().remove(0);
    let device_slot = &mut *device_slot;
    let ops = Ops::new(&program, device_slot);
    let memsets = [1, 2, 3, 4].map(|byte| ops.memset(byte));
    let (graph, _) = device_slot.capture(&[&memsets[0]], None).unwrap();
    let updated = device_slot.capture(&[&memsets[1]], Some(graph)).unwrap();
    assert_eq!(updated, (graph, Built::Updated));
    assert_eq!(device_slot.graph_ops(graph).unwrap(), memsets[1..2]);
    assert_eq!(ops.byte_of(&program, device_slot, graph), 2);
    // The nodes are still those of the first capture.
    device_slot.give_params(graph, 0, &memsets[2]).unwrap();
    assert_eq!(ops.byte_of(&program, device_slot, graph), 3);
    let longer = [&memsets[3], &ops.download];
    let (same, built) = device_slot.capture(&longer, Some(graph)).unwrap();
    assert_eq!(same, graph);
    assert!(matches!(built, Built::Reinstantiated { .. }), "{built:?}");
    assert_eq!(device_slot.graph_ops(graph).unwrap(), longer.map(Op::clone));
    assert_eq!(ops.byte_of(&program, device_slot, graph), 4);
    device_slot.give_params(graph, 0, &memsets[0]).unwrap();
    assert_eq!(ops.byte_of(&program, device_slot, graph), 1);
}

/// A scalar, a grid and the lengths of copies change by parameters, by an update and by a new graph,
/// and nothing else changes.
pub fn every_kind_of_update_changes_what_was_asked_and_nothing_else(backend: &Arc<dyn Backend>) {
    let program = Program::new();
    for &build in Build::ALL {
        for least in [Rung::Params, Rung::Update, Rung::Instantiate] {
            let policy = Policy {
                build,
                transfer: Transfer::Copy,
                ..Policy::default()
            };
            let (mut device_slot, mut executor) = program.slot(backend, &policy);
            let device_slot = &mut *device_slot;
            let change = |device_slot: &mut dyn DeviceSlot,
                          executor: &mut Executor,
                          least,
                          change: &dyn Fn(&mut Bindings)| {
                let mut bindings = executor.bindings(device_slot, 1).unwrap().clone();
                change(&mut bindings);
                executor
                    .update_from(device_slot, 1, bindings, least)
                    .unwrap()
            };
            let first = Input::from_seed(1, CAPACITIES[1]);
            program.run(device_slot, &mut executor, &first);

            let rung = change(device_slot, &mut executor, least, &|bindings| {
                bindings.set_scalar(0, "factor", 3_f32).unwrap();
            });
            assert_eq!(rung, least);
            let input = Input::from_seed(2, CAPACITIES[1]);
            let run = |device_slot: &mut dyn DeviceSlot, executor: &mut Executor| {
                program.give(device_slot, executor, &input).unwrap();
                device_slot.wait().unwrap();
                let [y, z] = [program.handles.y, program.handles.z].map(|buffer| {
                    program
                        .downloaded(device_slot, buffer, CAPACITIES[1])
                        .to_vec()
                });
                assert_eq!(z, input.z(1.0));
                y
            };
            assert_eq!(run(device_slot, &mut executor), input.y(3.0));

            // Only the first block of `mid` is computed; the rest is zero.
            let rung = change(device_slot, &mut executor, least, &|bindings| {
                bindings.set_grid(0, [1, 1, 1]).unwrap();
            });
            assert_eq!(rung, least);
            let of_a_block = [&input.y(3.0)[..BLOCK], &input.w[BLOCK..]].concat();
            assert_eq!(run(device_slot, &mut executor), of_a_block);

            // Only the first elements come down; the rest is from before.
            let rung = change(device_slot, &mut executor, least, &|bindings| {
                bindings.set_scalar(0, "factor", 5_f32).unwrap();
                bindings.set_copy_len(program.handles.y, 2).unwrap();
            });
            assert_eq!(rung, least);
            let in_part = [&input.y(5.0)[..2], &of_a_block[2..]].concat();
            let found = run(device_slot, &mut executor);
            if backend.device().shares_host_memory {
                assert_eq!(found[..2], in_part[..2]);
            } else {
                assert_eq!(found, in_part);
            }
            let unchanged = change(device_slot, &mut executor, Rung::Unchanged, &|_| ());
            assert_eq!(unchanged, Rung::Unchanged);
            let updates = executor.updates();
            let taken = [updates.params, updates.updates, updates.instantiations];
            let place = least as usize - Rung::Params as usize;
            assert_eq!((taken[place], taken.iter().sum::<u64>()), (3, 3));
        }
    }
}
