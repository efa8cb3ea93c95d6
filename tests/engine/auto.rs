//! Mode auto: what is fastest is chosen with the first batch of a bucket, and what is
//! left of the trial is what one replay leaves.

mod declared;
mod engines;

use crate::forward::BackendHooks;
use crate::random::Random;
use crate::scale::{Scale, doubled, vectors};
use crate::seeds::each_seed;
use crate::seeds::program::{
    CAPACITIES, Input, Program, assert_clean, auto_policies, device, device_with,
};
use crate::tamper::{Call, Price, Tamper};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tapeloop::backend::contract::{DeviceSlot, Op, Priority};
use tapeloop::backend::sim::{Fault, SimBackend, SimOptions};
use tapeloop::backend::{AllocationView, Backend, Space, Streams, cpu::CpuBackend};
use tapeloop::pipeline::{Engine, EngineConfig, Ring, Wait};
use tapeloop::record::{Access, Buffer, DType, Kernel, Recorder, Recording, StructArg, TwinLaunch};
use tapeloop::replay::{Buckets, Chosen, Executor, Mode, Policy, Replay, Rung, Scope, Verify, Way};
use tapeloop::workload::{Completion, Extent};
use tapeloop::{ErrorKind, Result};

const GRAPH: Way = Way {
    mode: Mode::Graph,
    scope: Scope::Batch,
};

fn pool() -> Arc<ThreadPool> {
    Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap())
}

fn devices() -> [Arc<dyn Backend>; 2] {
    let sim = SimBackend::new(SimOptions::seeded(7));
    [Arc::new(CpuBackend::new(pool())), Arc::new(sim)]
}

/// A device whose calls have a price.
fn priced(inner: Arc<dyn Backend>, price: Price) -> (Arc<Tamper>, Arc<dyn Backend>) {
    let tamper = Arc::new(Tamper::default());
    tamper.charge(price);
    (Arc::clone(&tamper), tamper.around(inner))
}

/// Launches of graphs are slow.
fn slow_graphs(call: Call<'_>) -> Duration {
    match call {
        Call::Graph(_) => Duration::from_millis(10),
        Call::Op(_) => Duration::ZERO,
    }
}

/// Everything else is.
fn slow_calls(call: Call<'_>) -> Duration {
    match call {
        Call::Graph(_) => Duration::ZERO,
        Call::Op(_) => Duration::from_millis(4),
    }
}

/// Copies are, by their bytes.
fn slow_copies(call: Call<'_>) -> Duration {
    let copied = |op: &Op| match op {
        Op::Upload { bytes, .. } | Op::Download { bytes, .. } => *bytes as u64,
        _ => 0,
    };
    let bytes = match call {
        Call::Graph(ops) => ops.iter().map(copied).sum(),
        Call::Op(op) => copied(op),
    };
    Duration::from_micros(10 * bytes)
}

/// Whatever is chosen is not compared with anything.
fn auto() -> Policy {
    Policy {
        verify: Verify::Off,
        ..Policy::of(Mode::Auto)
    }
}

/// One slot of the program.
struct Slot {
    device_slot: Box<dyn DeviceSlot>,
    executor: Executor,
    random: Random,
}

impl Slot {
    fn new(program: &Program, backend: &Arc<dyn Backend>, policy: &Policy) -> Self {
        let (device_slot, executor) = program.slots(backend, 1, policy).unwrap().remove(0);
        Slot {
            device_slot,
            executor,
            random: Random::new(5),
        }
    }

    /// Runs a batch of so many elements, whose results are right.
    fn run(&mut self, program: &Program, bucket: usize, elements: usize) -> Result<Replay> {
        let input = Input::random(&mut self.random, elements);
        program.fill(&mut *self.device_slot, &input);
        let (device_slot, extent) = (&mut *self.device_slot, input.extent());
        let replay = self.executor.replay(device_slot, bucket, extent)?;
        self.device_slot.wait()?;
        assert!(program.is_right(&*self.device_slot, &input));
        Ok(replay)
    }

    fn chosen(&self, bucket: usize) -> Chosen {
        let chosen = self.executor.chosen();
        let mut of = chosen.into_iter().filter(|it| it.bucket == bucket);
        of.next().expect("something was chosen")
    }
}

/// What a bucket's first batch chooses, and how many graphs are launched by three
/// more and are there after them.
fn choose(price: Price, elements: usize) -> Vec<(Way, usize, usize)> {
    let program = Program::new();
    let choose = |inner: Arc<dyn Backend>| {
        let (tamper, backend) = priced(inner, price);
        let mut slot = Slot::new(&program, &backend, &auto());
        assert_eq!(
            slot.executor.chosen(),
            [],
            "nothing is chosen without a batch"
        );
        assert_eq!(tamper.graphs(), 0, "nor made");
        assert_eq!(slot.run(&program, 1, elements).unwrap().tried, 1);
        let launches = tamper.launches();
        for _ in 0..3 {
            let replay = slot.run(&program, 1, elements).unwrap();
            assert_eq!((replay.tried, replay.trial_ns, replay.made), (0, 0, 0));
        }
        let chosen = slot.chosen(1);
        assert_eq!((chosen.device, chosen.bucket), (0, 1));
        assert_eq!(chosen.capacity, Extent::from([CAPACITIES[1] as u32]));
        let periods = chosen.tried.iter().map(|tried| tried.period_ns);
        assert!(periods.clone().all(|ns| ns.is_some_and(|ns| ns > 0)));
        assert_eq!(periods.count(), 4, "two modes with two scopes");
        let ways = chosen.tried.iter().map(|tried| tried.way);
        assert!(ways.clone().any(|way| way == chosen.way));
        assert_eq!(ways.clone().next(), Some(GRAPH));
        (chosen.way, tamper.launches() - launches, tamper.graphs())
    };
    devices().map(choose).into()
}

#[test]
fn graphs_that_do_not_pay_are_not_used() {
    for (way, launches, graphs) in choose(slow_graphs, 20) {
        assert_eq!((way.mode, launches, graphs), (Mode::Stream, 0, 0));
    }
}

#[test]
fn a_graph_that_saves_calls_is_used() {
    for (way, launches, graphs) in choose(slow_calls, 20) {
        assert_eq!((way, launches, graphs), (GRAPH, 3, 1));
    }
}

#[test]
fn copies_that_cost_more_than_their_calls_are_made_of_the_live_size() {
    for (way, ..) in choose(slow_copies, 1) {
        assert_eq!(way.scope, Scope::Kernels);
    }
}

#[test]
fn what_is_chosen_is_replayed_as_under_a_policy_that_says_so() {
    let program = Program::new();
    for price in [slow_graphs as Price, slow_calls, slow_copies] {
        for inner in devices() {
            let (_, backend) = priced(inner, price);
            let steady = |policy: &Policy| {
                let mut slot = Slot::new(&program, &backend, policy);
                slot.run(&program, 1, 20).unwrap();
                let way = slot.executor.chosen().first().map(|chosen| chosen.way);
                let before = backend.driver_calls();
                let replays: Vec<Replay> = (0..5)
                    .map(|n| slot.run(&program, 1, 10 + n).unwrap())
                    .collect();
                let after = backend.driver_calls();
                let calls: usize = replays.iter().map(|replay| replay.calls).sum();
                assert_eq!(after.submissions - before.submissions, calls as u64);
                assert_eq!(after.allocations, before.allocations);
                assert_eq!(after.graph_edits, before.graph_edits);
                (replays, way)
            };
            let (replays, way) = steady(&auto());
            let Way { mode, scope } = way.expect("a batch has run");
            let (expected, none) = steady(&Policy {
                mode,
                scope,
                ..auto()
            });
            assert_eq!((replays, none), (expected, None), "{mode:?} {scope:?}");
        }
    }
}

#[test]
fn results_are_right_and_no_rule_is_broken_whatever_goes_with_it() {
    let program = Program::new();
    each_seed(10, |seed| {
        for policy in auto_policies() {
            let (sim, backend) = device(seed);
            let verify = [Verify::First, Verify::Off][seed as usize % 2];
            let mut slot = Slot::new(&program, &backend, &Policy { verify, ..policy });
            for (bucket, elements) in [(0, 5), (1, 20), (0, 8), (1, 32), (1, 1)] {
                slot.run(&program, bucket, elements).unwrap();
            }
            for bucket in 0..2 {
                let chosen = slot.chosen(bucket);
                let scopes = chosen.tried.iter().map(|tried| tried.way.scope);
                let mut scopes: Vec<Scope> = scopes.collect();
                scopes.dedup();
                match policy.streams {
                    // Two modes with two scopes, and loops.
                    Streams::PerSlot => assert_eq!(chosen.tried.len(), 5),
                    Streams::PerStage => assert_eq!(scopes, [Scope::Kernels]),
                }
            }
            drop((slot, backend));
            assert_clean(&sim);
        }
    });
}

#[test]
fn streams_of_stages_choose_between_graph_and_calls_of_kernels() {
    let program = Program::new();
    let per_stage = Policy {
        streams: Streams::PerStage,
        ..auto()
    };
    for (price, mode) in [
        (slow_graphs as Price, Mode::Stream),
        (slow_calls, Mode::Graph),
    ] {
        for inner in devices() {
            let (_, backend) = priced(inner, price);
            let mut slot = Slot::new(&program, &backend, &per_stage);
            slot.run(&program, 1, 20).unwrap();
            let scope = Scope::Kernels;
            assert_eq!(slot.chosen(1).way, Way { mode, scope });
            assert_eq!(slot.chosen(1).tried.len(), 2);
        }
    }
}

#[test]
fn a_graph_that_is_refused_is_no_candidate() {
    let program = Program::new();
    // The first graph of a whole batch, then also that of kernels.
    for refused in [vec![0], vec![0, 1]] {
        let graph = |&graph: &u64| Fault::Graph { graph };
        let (sim, inner) = device_with(SimOptions {
            faults: refused.iter().map(graph).collect(),
            ..SimOptions::seeded(3)
        });
        let (tamper, backend) = priced(inner, slow_calls);
        let mut slot = Slot::new(&program, &backend, &auto());
        let replay = slot.run(&program, 1, 20).unwrap();
        assert_eq!((replay.tried, replay.graphs_failed), (1, 0));
        let chosen = slot.chosen(1);
        let none: Vec<bool> = chosen
            .tried
            .iter()
            .map(|it| it.period_ns.is_none())
            .collect();
        assert_eq!(none, [true, refused.len() == 2, false, false]);
        let expected = [Mode::Graph, Mode::Stream][refused.len() - 1];
        assert_eq!(chosen.way.mode, expected, "{chosen}");
        assert!(
            chosen.to_string().contains("graph/batch refused"),
            "{chosen}"
        );
        // Nor is it tried again.
        for _ in 0..40 {
            assert_eq!(slot.run(&program, 1, 20).unwrap().made, 0);
        }
        assert_eq!(tamper.graphs(), 2 - refused.len());
        drop((slot, backend));
        assert_clean(&sim);
    }
}

#[test]
fn a_graph_that_is_chosen_and_refused_later_falls_back_as_any_other() {
    let program = Program::new();
    // Three graphs are tried for each bucket; then that of the first is made again.
    let (sim, inner) = device_with(SimOptions {
        faults: vec![Fault::Graph { graph: 6 }],
        ..SimOptions::seeded(3)
    });
    let (_, backend) = priced(inner, slow_calls);
    let policy = Policy {
        ready_max: 1,
        ..auto()
    };
    let mut slot = Slot::new(&program, &backend, &policy);
    for bucket in [0, 1] {
        assert_eq!(slot.run(&program, bucket, 5).unwrap().tried, 1);
        assert_eq!(slot.chosen(bucket).way, GRAPH);
    }
    let replay = slot.run(&program, 0, 5).unwrap();
    let detour = (replay.tried, replay.graphs_failed, replay.larger_bucket);
    assert_eq!(detour, (0, 1, 1));
    drop((slot, backend));
    assert_clean(&sim);
}

#[test]
fn a_graph_that_is_chosen_has_to_do_what_the_launches_do() {
    let program = Program::new();
    for inner in devices() {
        let (tamper, backend) = priced(inner, slow_calls);
        tamper.run(|ops| {
            let launch = ops.iter_mut().find_map(|op| match op {
                Op::Launch { args, .. } => Some(args),
                _ => None,
            });
            launch.unwrap()[3] = u64::from(9_f32.to_bits());
        });
        let policy = Policy {
            verify: Verify::First,
            ..auto()
        };
        let mut slot = Slot::new(&program, &backend, &policy);
        let error = slot.run(&program, 1, 20).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Mismatch, "{error}");
        tamper.clear();
    }
}

#[test]
fn bindings_are_kept_until_there_is_something_to_choose_with() {
    let program = Program::new();
    for inner in devices() {
        for price in [slow_graphs as Price, slow_calls] {
            let (tamper, backend) = priced(Arc::clone(&inner), price);
            let mut slot = Slot::new(&program, &backend, &auto());
            let device_slot = &mut *slot.device_slot;
            let mut bindings = slot.executor.bindings(device_slot, 1).unwrap().clone();
            bindings.set_scalar(0, "factor", 7_f32).unwrap();
            let rung = slot
                .executor
                .update(device_slot, 1, bindings.clone())
                .unwrap();
            assert_eq!(rung, Rung::Unchanged, "there is no graph yet");
            assert_eq!((tamper.graphs(), slot.executor.chosen().len()), (0, 0));
            let mut with = |factor: f32, tried: usize| {
                let input = Input::random(&mut slot.random, 20);
                program.fill(&mut *slot.device_slot, &input);
                let device_slot = &mut *slot.device_slot;
                let replay = slot
                    .executor
                    .replay(device_slot, 1, input.extent())
                    .unwrap();
                slot.device_slot.wait().unwrap();
                let y: &[f32] = bytemuck::cast_slice(slot.device_slot.host(program.handles.y.id()));
                assert_eq!((&y[..20], replay.tried), (&input.y(factor)[..], tried));
            };
            with(7.0, 1);
            with(7.0, 0);
            bindings.set_scalar(0, "factor", 3_f32).unwrap();
            let device_slot = &mut *slot.device_slot;
            let rung = slot.executor.update(device_slot, 1, bindings).unwrap();
            let chosen = slot.chosen(1).way.mode;
            let expected = match chosen {
                Mode::Graph => Rung::Params,
                _ => Rung::Unchanged,
            };
            assert_eq!(rung, expected);
            let input = Input::random(&mut slot.random, 20);
            program.fill(&mut *slot.device_slot, &input);
            let device_slot = &mut *slot.device_slot;
            slot.executor
                .replay(device_slot, 1, input.extent())
                .unwrap();
            slot.device_slot.wait().unwrap();
            let y: &[f32] = bytemuck::cast_slice(slot.device_slot.host(program.handles.y.id()));
            assert_eq!(y[..20], input.y(3.0));
        }
    }
}

#[test]
fn a_timed_batch_is_timed_after_its_trial() {
    let program = Program::new();
    for backend in devices() {
        for policy in auto_policies() {
            let policy = Policy {
                verify: Verify::Off,
                ..policy
            };
            let mut slot = Slot::new(&program, &backend, &policy);
            let input = Input::random(&mut slot.random, 20);
            program.fill(&mut *slot.device_slot, &input);
            let (device_slot, extent) = (&mut *slot.device_slot, input.extent());
            let replay = slot.executor.replay_timed(device_slot, 1, extent).unwrap();
            assert!(replay.timed && replay.tried == 1);
            slot.device_slot.wait().unwrap();
            assert!(program.is_right(&*slot.device_slot, &input));
            let timestamps = slot.device_slot.timestamps().unwrap();
            assert!(timestamps.iter().all(Option::is_some), "{policy:?}");
        }
    }
}

#[test]
fn new_buckets_are_chosen_for_anew() {
    let program = Program::new();
    for backend in devices() {
        let mut slot = Slot::new(&program, &backend, &auto());
        assert_eq!(slot.run(&program, 0, 5).unwrap().tried, 1);
        assert_eq!(slot.run(&program, 0, 5).unwrap().tried, 0);
        let again = Arc::new((*program.buckets).clone());
        let taken = slot
            .executor
            .take_buckets(&mut *slot.device_slot, &again)
            .unwrap();
        assert_eq!((taken.made, taken.dropped), (0, 1));
        assert_eq!(slot.executor.chosen(), []);
        assert_eq!(slot.run(&program, 0, 5).unwrap().tried, 1);
        assert_eq!(slot.executor.chosen().len(), 1);
    }
}

#[test]
fn the_slots_of_a_device_share_what_the_first_of_them_chose() {
    let program = Program::new();
    for price in [slow_graphs as Price, slow_calls] {
        for inner in devices() {
            let (tamper, backend) = priced(inner, price);
            let buckets = &program.buckets;
            let mut ring = Ring::<u32>::new(&backend, buckets, 3, &auto(), Wait::Block).unwrap();
            let mut tried = Vec::new();
            for round in 0..12_u32 {
                let slots: Vec<_> = std::iter::from_fn(|| ring.acquire()).collect();
                assert_eq!(slots.len(), 3);
                for mut slot in slots {
                    let live = Extent::from([[5, 20][round as usize % 2]]);
                    slot.write_header(live, 1);
                    slot.write(program.handles.x)[..20].fill(round as f32);
                    slot.write(program.handles.w)[..20].fill(1.0);
                    tried.push(ring.submit(slot, live, round).unwrap().tried);
                }
                while let Some(done) = ring.wait() {
                    let done = done.unwrap();
                    assert_eq!(done.read(program.handles.y)[0], 2.0 * round as f32 + 1.0);
                    ring.release(Ok(done));
                }
            }
            let mut expected = vec![0; 36];
            (expected[0], expected[3]) = (1, 1);
            assert_eq!(tried, expected, "once a bucket");
            let chosen = ring.chosen();
            assert_eq!(chosen.len(), 2);
            let graphs = chosen.iter().filter(|it| it.way.mode == Mode::Graph);
            assert_eq!(tamper.graphs(), 3 * graphs.count(), "no other is kept");
        }
    }
}
