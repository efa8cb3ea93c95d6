//! Planted bugs: each is caught on every seed, and the program without it is
//! clean on the same seeds.

use crate::give;
use crate::give::Give;
use crate::random::Random;
use crate::seeds::broken::{BrokenBackend, Bug};
use crate::seeds::each_seed;
use crate::seeds::simulated::{assert_clean, device, device_with};
use std::sync::Arc;
use tapeloop_conformance::program::{BLOCK, Input, Program};
use tapeloop_engine::Result;
use tapeloop_engine::backend::contract::{GraphId, Node, Op};
use tapeloop_engine::backend::{AllocationView, Backend, Space};
use tapeloop_engine::replay::{Bindings, Build, Executor, Mode, Policy, Rung, Verify};
use tapeloop_sim::{SimBackend, SimOptions, ViolationKind};

const SEEDS: u64 = 1000;

/// What became of a program.
struct Outcome {
    failed: bool,
    wrong: usize,
    kinds: Vec<ViolationKind>,
}

impl Outcome {
    fn new(sim: &SimBackend, ran: Result<usize>) -> Self {
        Outcome {
            failed: ran.is_err(),
            wrong: ran.unwrap_or(0),
            kinds: sim.violations().iter().map(|v| v.kind).collect(),
        }
    }
}

/// Runs the program with a bug and without, on all seeds; each bug must be told by
/// a violation of `kind`.
fn planted(
    bug: impl Fn(u64) -> Bug,
    kind: ViolationKind,
    program: impl Fn(u64, &Arc<dyn Backend>) -> Result<usize>,
) {
    let caught = std::cell::Cell::new(0);
    let run = each_seed(SEEDS, |seed| {
        let (sim, backend) = device(seed);
        let wrong = program(seed, &BrokenBackend::backend(backend, Bug::None)).unwrap();
        assert_eq!(wrong, 0, "the program is right");
        assert_clean(&sim);
        let (sim, backend) = device(seed);
        let ran = program(seed, &BrokenBackend::backend(backend, bug(seed)));
        let outcome = Outcome::new(&sim, ran);
        assert!(outcome.kinds.contains(&kind), "{:?}", outcome.kinds);
        caught.set(caught.get() + 1);
    });
    assert_eq!(caught.get(), run);
}

/// Two rounds of batches over two slots; counts the wrong ones.
fn rounds(seed: u64, backend: &Arc<dyn Backend>, policy: &Policy, reads: bool) -> Result<usize> {
    let (program, mut random) = (Program::new(), Random::new(seed));
    let mut slots = program.slots(backend, 2, policy)?;
    let mut wrong = 0;
    for _ in 0..2 {
        let mut inputs = Vec::new();
        for (device_slot, executor) in &mut slots {
            let elements = 1 + random.below(8);
            let input = Input::from_seed(random.next(), elements);
            program.fill(&mut **device_slot, &input);
            executor.replay(&mut **device_slot, 0, input.extent())?;
            inputs.push(input);
        }
        for ((device_slot, _), input) in slots.iter_mut().zip(&inputs) {
            while !device_slot.is_done()? {}
            if reads {
                wrong += usize::from(!program.is_right(&**device_slot, input));
            }
        }
    }
    Ok(wrong)
}

fn policy(mode: Mode, build: Build) -> Policy {
    Policy {
        mode,
        build,
        // Its waits would cover those that are missing.
        verify: Verify::Off,
        ..Policy::default()
    }
}

fn of_seed(seed: u64) -> Policy {
    let ways = [
        (Mode::Graph, Build::Capture),
        (Mode::Graph, Build::Explicit),
        (Mode::Stream, Build::Capture),
    ];
    let (mode, build) = ways[seed as usize % 3];
    policy(mode, build)
}

#[test]
fn a_refill_before_the_batch_is_done() {
    let bug = |_| Bug::DoneTooEarly;
    planted(bug, ViolationKind::Unordered, |seed, backend| {
        rounds(seed, backend, &of_seed(seed), false)
    });
}

#[test]
fn results_read_before_the_batch_is_done() {
    let bug = |_| Bug::DoneTooEarly;
    planted(bug, ViolationKind::Unordered, |seed, backend| {
        let program = Program::new();
        let policy = of_seed(seed);
        let (mut device_slot, mut executor) = program.slots(backend, 1, &policy)?.remove(0);
        let input = Input::from_seed(seed, 5);
        program.fill(&mut *device_slot, &input);
        executor.replay(&mut *device_slot, 0, input.extent())?;
        device_slot.wait()?;
        Ok(usize::from(!program.is_right(&*device_slot, &input)))
    });
}

#[test]
fn a_forgotten_fence() {
    planted(
        |_| Bug::NoFence,
        ViolationKind::Unordered,
        |seed, backend| rounds(seed, backend, &of_seed(seed), true),
    );
}

#[test]
fn any_missing_edge_of_a_graph_built_by_hand() {
    let bug = |seed| Bug::NoEdge(seed as usize);
    planted(bug, ViolationKind::Unordered, |seed, backend| {
        let policy = policy(Mode::Graph, Build::Explicit);
        rounds(seed, backend, &policy, true)
    });
}

#[test]
fn scratch_that_two_slots_share() {
    let mid = Program::new().handles.mid.id();
    let bug = |_| Bug::Shared(mid);
    planted(bug, ViolationKind::Foreign, |seed, backend| {
        rounds(seed, backend, &of_seed(seed), true)
    });
    // Where addresses are let through, the clocks see it too.
    each_seed(SEEDS, |seed| {
        let options = SimOptions {
            refuses: false,
            ..SimOptions::seeded(seed)
        };
        let (sim, backend) = device_with(options);
        let backend = BrokenBackend::backend(backend, Bug::Shared(mid));
        let ran = rounds(seed, &backend, &of_seed(seed), true);
        let outcome = Outcome::new(&sim, ran);
        assert!(!outcome.failed && outcome.kinds.contains(&ViolationKind::Unordered));
    });
}

/// A result bound to one allocation, then to another while the first batch is in
/// flight or after it; counts the wrong allocations.
fn rebound(seed: u64, backend: &Arc<dyn Backend>, rung: Rung, in_flight: bool) -> Result<usize> {
    let mut random = Random::new(seed);
    let program = Program::new();
    let build = *random.pick(Build::ALL);
    let policy = policy(Mode::Graph, build);
    let (mut device_slot, mut executor) = program.slots(backend, 1, &policy)?.remove(0);
    let input = Input::from_seed(random.next(), 8);
    program.fill(&mut *device_slot, &input);
    let mut allocations = Vec::new();
    for _ in 0..2 {
        let allocation = backend.allocate(Space::Pinned, 64)?;
        let mut bindings: Bindings = executor.bindings(&mut *device_slot, 0)?.clone();
        bindings.bind_host(program.handles.y, AllocationView::new(&allocation, 16, 32)?)?;
        executor.update_from(&mut *device_slot, 0, bindings, rung)?;
        allocations.push(allocation);
        executor.replay(&mut *device_slot, 0, input.extent())?;
        if !in_flight {
            device_slot.wait()?;
        }
    }
    device_slot.wait()?;
    let mut wrong = 0;
    for allocation in &allocations {
        let bytes = allocation.read()?;
        let y: &[f32] = bytemuck::cast_slice(&bytes[16..48]);
        wrong += usize::from(y != input.y(2.0));
    }
    Ok(wrong)
}

fn rung(seed: u64) -> Rung {
    match seed % 2 {
        0 => Rung::Params,
        _ => Rung::Update,
    }
}

#[test]
fn the_old_address_after_an_update_that_was_dropped() {
    planted(
        |_| Bug::NoUpdate,
        ViolationKind::Stale,
        |seed, backend| {
            let program = Program::new();
            let mut device_slot = program.open(backend, 1)?.remove(0);
            let old = backend.allocate(Space::Device, 64)?;
            device_slot.adopt(&old)?;
            let memset = |device: u64| Op::Memset {
                device,
                byte: 1,
                bytes: 64,
            };
            let op = memset(old.address());
            let node = Node {
                op: &op,
                after: &[],
            };
            let (graph, _) = device_slot.give_graph(&[node], None)?;
            let new = backend.allocate(Space::Device, 64)?;
            device_slot.adopt(&new)?;
            let op = memset(new.address());
            match rung(seed) {
                Rung::Params => device_slot.give_params(graph, 0, &op)?,
                _ => drop(device_slot.give_graph(
                    &[Node {
                        op: &op,
                        after: &[],
                    }],
                    Some(graph),
                )?),
            }
            device_slot.disown(&old);
            drop(old);
            device_slot.launch_graph(graph)?;
            device_slot.fence()?;
            device_slot.wait()?;
            let mut bytes = [0; 64];
            backend.read(&new, 0, &mut bytes)?;
            Ok(usize::from(bytes != [1; 64]))
        },
    );
}

#[test]
fn rebinding_by_an_executor_whose_updates_are_dropped() {
    let caught = std::cell::Cell::new(0);
    let run = each_seed(SEEDS, |seed| {
        let (sim, backend) = device(seed);
        let backend = BrokenBackend::backend(backend, Bug::NoUpdate);
        // The first replay still goes to the slot's own memory.
        let ran = rebound(seed, &backend, rung(seed), false);
        let outcome = Outcome::new(&sim, ran);
        caught.set(caught.get() + u64::from(outcome.failed || outcome.wrong > 0));
    });
    assert_eq!(caught.get(), run);
}

#[test]
fn freed_memory_is_told_from_foreign_memory() {
    each_seed(SEEDS, |seed| {
        let (sim, backend) = device(seed);
        let program = Program::new();
        let mut device_slot = program.open(&backend, 1).unwrap().remove(0);
        let allocation = backend.allocate(Space::Device, 64).unwrap();
        let device = allocation.address();
        let op = Op::Memset {
            device,
            byte: 0,
            bytes: 64,
        };
        assert!(device_slot.give(&op).is_err(), "not adopted");
        device_slot.adopt(&allocation).unwrap();
        device_slot.give(&op).unwrap();
        device_slot.fence().unwrap();
        device_slot.disown(&allocation);
        drop(allocation);
        device_slot.wait().unwrap();
        assert!(device_slot.give(&op).is_err(), "gone");
        let outcome = Outcome::new(&sim, Ok(0));
        assert_eq!(
            outcome.kinds,
            [ViolationKind::Foreign, ViolationKind::Freed]
        );
    });
}

#[test]
fn an_update_that_reaches_a_launch_in_flight() {
    let caught = std::cell::Cell::new(0);
    let run = each_seed(SEEDS, |seed| {
        let (sim, backend) = device(seed);
        let backend = BrokenBackend::backend(backend, Bug::None);
        assert_eq!(rebound(seed, &backend, rung(seed), true).unwrap(), 0);
        drop(backend);
        assert_clean(&sim);
        // No rule forbids what this bug makes of the calls, so the bytes tell.
        let (_, backend) = device(seed);
        let backend = BrokenBackend::backend(backend, Bug::LateLaunch);
        let wrong = rebound(seed, &backend, rung(seed), true).unwrap();
        caught.set(caught.get() + u64::from(wrong > 0));
    });
    assert_eq!(caught.get(), run);
}

/// One graph of the first of two slots for both, with the parameters of each.
fn shared_exec(program: &Program, seed: u64, backend: &Arc<dyn Backend>) -> Result<usize> {
    let mut device_slots = program.open(backend, 2)?;
    let policy = policy(Mode::Graph, Build::Explicit);
    let mut nodes = Vec::new();
    let mut graphs: Vec<GraphId> = Vec::new();
    for device_slot in &mut device_slots {
        // The graph is the slot's, and stays when the executor is dropped.
        let _executor = Executor::new(backend, &mut **device_slot, &program.buckets, &policy)?;
        let graph = give::only_graph(&**device_slot);
        graphs.push(graph);
        nodes.push(device_slot.graph_ops(graph)?);
    }
    let input = Input::from_seed(seed, 2 * BLOCK);
    for (device_slot, ops) in nodes.iter().enumerate() {
        program.fill(&mut *device_slots[device_slot], &input);
        for (node, op) in ops.iter().enumerate() {
            device_slots[0].give_params(graphs[0], node, op)?;
        }
        device_slots[0].launch_graph(graphs[0])?;
        device_slots[device_slot].fence()?;
    }
    device_slots
        .iter_mut()
        .try_for_each(|device_slot| device_slot.wait())?;
    let wrong = device_slots
        .iter()
        .filter(|device_slot| !program.is_right(&***device_slot, &input));
    Ok(wrong.count())
}

#[test]
fn one_graph_launched_for_two_slots() {
    let program = Program::new();
    each_seed(SEEDS, |seed| {
        let (sim, backend) = device(seed);
        let ran = shared_exec(&program, seed, &backend);
        let outcome = Outcome::new(&sim, ran);
        assert!(outcome.failed);
        assert_eq!(outcome.kinds, [ViolationKind::Foreign]);
        let (sim, backend) = device_with(SimOptions {
            refuses: false,
            ..SimOptions::seeded(seed)
        });
        let ran = shared_exec(&program, seed, &backend);
        let outcome = Outcome::new(&sim, ran);
        assert!(!outcome.failed && outcome.kinds.contains(&ViolationKind::Unordered));
    });
}
