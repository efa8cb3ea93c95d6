//! Engines on one device at the same time.

use crate::scale::{Scale, vectors};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::Arc;
use tapeloop_engine::backend::{Backend, cpu::CpuBackend};
use tapeloop_engine::pipeline::{Close, Engine, EngineConfig};
use tapeloop_engine::workload::Completion;
use tapeloop_sim::{SimBackend, SimOptions};

/// Runs of three engines at the same time, with submissions next to each, some of them cancelled.
fn run_side_by_side(backend: &Arc<dyn Backend>, pool: &Arc<ThreadPool>) {
    std::thread::scope(|scope| {
        for number in 1..=3_u32 {
            let mut config = EngineConfig::new([100 * number, 100]);
            config.slots = number as usize;
            config.close = [Close::Idle, Close::Full][number as usize % 2];
            scope.spawn(move || {
                let factor = number as f32;
                let scaled =
                    |item: &[f32]| -> Vec<f32> { item.iter().map(|x| x * factor).collect() };
                let backends = [Arc::clone(backend)];
                let scale = Scale::new(factor);
                let mut engine = Engine::new(scale, &backends, Arc::clone(pool), &config).unwrap();
                let mut sink = |done: Completion<Scale>| {
                    assert_eq!(done.result?.0, scaled(&done.item));
                    Ok(())
                };
                for round in 0..4 {
                    engine.run(vectors(60).into_iter(), &mut sink).unwrap();
                    let submit = |vector| engine.submit(vector).unwrap();
                    let tickets: Vec<_> = vectors(20).into_iter().map(submit).collect();
                    engine.flush().unwrap();
                    for (index, ticket) in tickets.into_iter().enumerate() {
                        if (index + round) % 3 == 0 {
                            drop(ticket.cancel());
                            continue;
                        }
                        let done = ticket.wait().unwrap();
                        assert_eq!(done.result.unwrap().0, scaled(&done.item));
                    }
                }
            });
        }
    });
}

#[test]
fn runs_and_submissions_of_engines_on_one_device_have_their_own_results() {
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap());
    let cpu: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    run_side_by_side(&cpu, &pool);
    for seed in 0..3 {
        let sim = Arc::new(SimBackend::new(SimOptions::seeded(seed)));
        run_side_by_side(&(Arc::clone(&sim) as Arc<dyn Backend>), &pool);
        assert_eq!(sim.violations(), []);
    }
}
