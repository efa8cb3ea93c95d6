//! Graphs that a loop on the device replays, so that launches make no call to a driver.

use crate::assert_refused;
use crate::program::{Input, Loops, Program, loops, policies, unverified};
use crate::scale::{Scale, doubled, vectors};
use crate::threads;
use std::sync::Arc;
use tapeloop_engine::backend::Backend;
use tapeloop_engine::pipeline::{Engine, EngineConfig, Pipeline, Wait};
use tapeloop_engine::replay::{Fallback, Mode, Policy, Rung};
use tapeloop_engine::workload::Extent;
use tapeloop_engine::{ErrorKind, Result};

/// Policies of mode `resident`, with times after which a loop ends often.
fn resident() -> impl Iterator<Item = Policy> {
    let all = policies().into_iter();
    all.filter(|policy| policy.mode == Mode::Resident)
}

fn config(policy: Policy) -> EngineConfig {
    let mut config = EngineConfig::new([64, 8]);
    config.buckets = [[16, 8], [64, 8]].map(Extent::from).to_vec();
    (config.policy, config.wait) = (policy, Wait::Spin);
    config
}

/// Runs vectors through a pipeline one at a time, and checks each result.
fn run(backend: &Arc<dyn Backend>, policy: Policy) -> Result<()> {
    let backends = [Arc::clone(backend)];
    let workload = Scale::new(2.0);
    let mut pipeline = Pipeline::new(workload, &backends, threads(1), &config(policy))?;
    for vector in vectors(60) {
        pipeline.submit(vector).map_err(|_| ()).unwrap();
        let (_, done) = pipeline.wait().unwrap();
        assert_eq!(done.result.unwrap().0, doubled(&done.item));
    }
    Ok(())
}

/// A backend that refuses loops refuses the mode, and launches the graphs where the policy allows it.
pub fn mode_resident_is_right_or_refused_and_launches_take_its_place(backend: &Arc<dyn Backend>) {
    for policy in resident() {
        match loops(backend) {
            Loops::Refused => {
                let error = run(backend, policy).unwrap_err();
                assert_refused(&error, ErrorKind::Unavailable, &[]);
            }
            Loops::Unneeded | Loops::Run => run(backend, policy).unwrap(),
        }
        let policy = Policy {
            fallback: Fallback::Launches,
            ..policy
        };
        run(backend, policy).unwrap();
    }
}

/// A loop has a copy of its graph, so a graph with other bindings gets a loop of its own.
pub fn other_bindings_make_another_loop(backend: &Arc<dyn Backend>) {
    let has_loops = match loops(backend) {
        Loops::Refused => return,
        found => found == Loops::Run,
    };
    let program = Program::new();
    for policy in resident() {
        let policy = unverified(policy);
        let (mut device_slot, mut executor) = program.slot(backend, &policy);
        let device_slot = &mut *device_slot;
        let changed = if has_loops {
            Rung::Instantiate
        } else {
            Rung::Params
        };
        let steps = [
            (2.0, Rung::Unchanged),
            (3.0, changed),
            (3.0, Rung::Unchanged),
            (4.0, changed),
        ];
        for (factor, expected) in steps {
            let mut bindings = executor.bindings(device_slot, 0).unwrap().clone();
            bindings.set_scalar(0, "factor", factor).unwrap();
            assert_eq!(executor.update(device_slot, 0, bindings).unwrap(), expected);
            for seed in 0..3 {
                let input = Input::from_seed(seed, 6);
                program.give(device_slot, &mut executor, &input).unwrap();
                device_slot.wait().unwrap();
                let y = program.downloaded(device_slot, program.handles.y, 6);
                assert_eq!(y, input.y(factor), "{policy:?}");
            }
        }
    }
}

/// Items of both buckets come from four threads at once, so that loops of several slots and
/// graphs are wanted at a time.
pub fn threads_and_buckets_share_loops(backend: &Arc<dyn Backend>) {
    if loops(backend) == Loops::Refused {
        return;
    }
    for policy in resident() {
        let mut config = config(policy);
        config.slots = 4;
        let backends = [Arc::clone(backend)];
        let engine = Engine::new(Scale::new(2.0), &backends, threads(1), &config).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let engine = &engine;
                scope.spawn(move || {
                    for item in vectors(60) {
                        let done = engine.submit(item.clone()).unwrap().wait().unwrap();
                        assert_eq!(done.result.unwrap().0, doubled(&item));
                    }
                });
            }
        });
    }
}
