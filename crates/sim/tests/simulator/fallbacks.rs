//! Graphs that the device refuses: where their batches go, and when they are tried
//! again.

use crate::random::Random;
use crate::scale::{Scale, doubled, vectors};
use crate::seeds::each_seed;
use crate::seeds::simulated::{assert_clean, device_with};
use rayon::ThreadPoolBuilder;
use std::sync::Arc;
use tapeloop_conformance::program::{Input, Program, policies};
use tapeloop_engine::backend::Backend;
use tapeloop_engine::backend::contract::DeviceSlot;
use tapeloop_engine::pipeline::{Engine, EngineConfig};
use tapeloop_engine::replay::{Build, Executor, Fallback, Mode, Policy, Replay};
use tapeloop_engine::workload::{Completion, Extent};
use tapeloop_engine::{ErrorKind, Result};
use tapeloop_sim::{Fault, SimBackend, SimOptions};

/// One slot on a device with faults, of which nothing is ready.
struct Slot {
    sim: Arc<SimBackend>,
    backend: Arc<dyn Backend>,
    device_slot: Box<dyn DeviceSlot>,
    executor: Executor,
    random: Random,
}

fn slot(program: &Program, seed: u64, policy: &Policy, faults: Vec<Fault>) -> Slot {
    let options = SimOptions {
        faults,
        ..SimOptions::seeded(seed)
    };
    let (sim, backend) = device_with(options);
    let (device_slot, executor) = program.slots(&backend, 1, policy).unwrap().remove(0);
    Slot {
        sim,
        backend,
        device_slot,
        executor,
        random: Random::new(seed),
    }
}

impl Slot {
    /// A batch in a bucket; its results are right, unless it is refused.
    fn batch(&mut self, program: &Program, bucket: usize) -> Result<Replay> {
        let elements = [5, 20][bucket] + self.random.below(4);
        let input = Input::from_seed(self.random.next(), elements);
        program.fill(&mut *self.device_slot, &input);
        let replay = self
            .executor
            .replay(&mut *self.device_slot, bucket, input.extent())?;
        self.device_slot.wait()?;
        assert!(program.is_right(&*self.device_slot, &input));
        Ok(replay)
    }

    fn end(self) {
        let Slot {
            sim,
            backend,
            device_slot,
            executor,
            ..
        } = self;
        drop((device_slot, executor, backend));
        assert_clean(&sim);
    }
}

fn graph_policies(fallback: Fallback) -> Vec<Policy> {
    let graphs = policies()
        .into_iter()
        .filter(|policy| policy.mode == Mode::Graph);
    let lazy = |policy| Policy {
        warm_up: false,
        fallback,
        ..policy
    };
    graphs.map(lazy).collect()
}

#[test]
fn a_capture_that_fails_runs_as_launches_and_is_tried_again_ever_later() {
    let program = Program::new();
    each_seed(20, |seed| {
        for policy in graph_policies(Fallback::Launches) {
            if policy.build != Build::Capture {
                continue;
            }
            let faults = [0, 1].map(|capture| Fault::Capture { capture });
            let mut slot = slot(&program, seed, &policy, faults.to_vec());
            let mut failed = Vec::new();
            let mut launched = 0;
            let mut made = None;
            for batch in 0..60 {
                let replay = slot.batch(&program, 0).unwrap();
                assert_eq!(replay.larger_bucket, 0, "a capture is no matter of memory");
                launched += replay.as_launches;
                failed.extend((replay.graphs_failed > 0).then_some(batch));
                if replay.made > 0 {
                    assert_eq!(made.replace(batch), None, "it is made once");
                }
            }
            // 16 batches after the first, 32 after the second, and then it heals.
            assert_eq!((failed, made), (vec![0, 17], Some(50)), "{policy:?}");
            assert_eq!(launched, 50);
            slot.end();
        }
    });
}

#[test]
fn a_capture_that_fails_is_an_error_where_the_policy_knows_no_way_around() {
    let program = Program::new();
    each_seed(20, |seed| {
        for policy in graph_policies(Fallback::None) {
            if policy.build != Build::Capture {
                continue;
            }
            let faults = vec![Fault::Capture { capture: 0 }];
            let mut slot = slot(&program, seed, &policy, faults);
            let error = slot.batch(&program, 0).unwrap_err();
            assert_eq!(error.code(), Some(901), "{error}");
            assert!(error.to_string().starts_with("bucket 0: "), "{error}");
            let replay = slot.batch(&program, 0).unwrap();
            assert_eq!((replay.made, replay.as_launches), (1, 0), "tried at once");
            slot.end();
        }
    });
}

#[test]
fn a_graph_that_finds_no_memory_leaves_its_batches_to_a_larger_bucket() {
    let program = Program::new();
    each_seed(20, |seed| {
        for policy in graph_policies(Fallback::None) {
            let mut slot = slot(&program, seed, &policy, vec![Fault::Graph { graph: 0 }]);
            let mut larger = 0;
            let mut healed = None;
            for batch in 0..20 {
                let replay = slot.batch(&program, 0).unwrap();
                assert_eq!(replay.graphs_failed, usize::from(batch == 0));
                larger += replay.larger_bucket;
                if batch > 0 && replay.made > 0 {
                    healed = Some(batch);
                }
            }
            assert_eq!((larger, healed), (17, Some(17)), "{policy:?}");
            slot.end();
        }
    });
}

#[test]
fn without_a_larger_bucket_the_policy_decides() {
    let program = Program::new();
    let none = || (0..200).map(|graph| Fault::Graph { graph }).collect();
    each_seed(10, |seed| {
        for policy in graph_policies(Fallback::None) {
            let mut slot = slot(&program, seed, &policy, none());
            for bucket in [0, 1, 0] {
                let error = slot.batch(&program, bucket).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
            }
            slot.end();
        }
        for policy in graph_policies(Fallback::Launches) {
            let mut slot = slot(&program, seed, &policy, none());
            for bucket in [0, 1, 0, 1] {
                let replay = slot.batch(&program, bucket).unwrap();
                assert_eq!((replay.as_launches, replay.larger_bucket), (1, 0));
            }
            slot.end();
        }
    });
}

#[test]
fn a_bucket_that_was_bound_otherwise_is_not_replaced_by_another() {
    let program = Program::new();
    for policy in graph_policies(Fallback::None) {
        let policy = Policy {
            ready_max: 1,
            ..policy
        };
        // The first graph, then the large bucket's, then the first again.
        let mut slot = slot(&program, 1, &policy, vec![Fault::Graph { graph: 2 }]);
        slot.batch(&program, 0).unwrap();
        let mut bindings = slot
            .executor
            .bindings(&mut *slot.device_slot, 0)
            .unwrap()
            .clone();
        bindings.set_scalar(0, "factor", 2.0_f32).unwrap();
        slot.executor
            .update(&mut *slot.device_slot, 0, bindings)
            .unwrap();
        slot.batch(&program, 1).unwrap();
        let error = slot.batch(&program, 0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
        slot.batch(&program, 0).unwrap();
        slot.end();
    }
}

#[test]
fn an_engine_with_a_way_around_gives_every_result_and_counts_the_detours() {
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    let policies = graph_policies(Fallback::Launches);
    each_seed(200, |seed| {
        let mut random = Random::new(seed);
        let fault = |random: &mut Random| {
            if random.flip() {
                Fault::Capture {
                    capture: random.below(6) as u64,
                }
            } else {
                Fault::Graph {
                    graph: random.below(6) as u64,
                }
            }
        };
        // The first of either kind in any case.
        let mut faults = vec![Fault::Capture { capture: 0 }, Fault::Graph { graph: 0 }];
        faults.extend((0..4).map(|_| fault(&mut random)));
        let options = SimOptions {
            faults,
            ..SimOptions::seeded(seed)
        };
        let (sim, backend) = device_with(options);
        let mut config = EngineConfig::new([64, 8]);
        config.buckets = [[16, 8], [64, 8]].map(Extent::from).to_vec();
        config.slots = 1 + random.below(3);
        config.policy = policies[seed as usize % policies.len()];
        let mut engine =
            Engine::new(Scale::new(2.0), &[backend], Arc::clone(&pool), &config).unwrap();
        let items = vectors(40);
        let mut seen = 0;
        let mut sink = |done: Completion<Scale>| {
            assert_eq!(done.result?.0, doubled(&items[seen]));
            seen += 1;
            Ok(())
        };
        engine.run(items.iter().cloned(), &mut sink).unwrap();
        assert_eq!(seen, items.len());
        let counters = engine.counters();
        assert!(counters.graphs_failed > 0);
        let detours = counters.batches_as_launches + counters.batches_in_larger_bucket;
        assert!(detours > 0, "{counters:?}");
        drop(engine);
        assert_clean(&sim);
    });
}
