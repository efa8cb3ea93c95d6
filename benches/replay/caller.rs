//! The pipeline that its caller drives: everything on this thread.

use crate::Bench;
use crate::latency::{openings, sample};
use crate::period::policies;
use crate::slots::repeat;
use crate::work::{Chain, Shape, Spares, wrong_output};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tapeloop::pipeline::{Pipeline, TimelineConfig, Wait};
use tapeloop::replay::Policy;
use tapeloop::{EngineConfig, Result};

/// A pipeline with what goes in and where outputs come back to.
pub(crate) struct Driven {
    pipeline: Pipeline<Chain>,
    pub(crate) shape: Shape,
    spares: Spares,
    inputs: Vec<Arc<[f32]>>,
}

/// Batches over four slots. Items are written and results read, so these have host
/// copies.
pub(crate) fn period(bench: &Bench) -> Result<()> {
    for (name, policy) in policies() {
        let case = format!("pipeline_{name}");
        bench.attempt(&case, || throughput(bench, &case, policy));
    }
    Ok(())
}

/// One batch over one slot.
pub(crate) fn latency(bench: &Bench) -> Result<()> {
    for (name, policy) in policies() {
        if matches!(name, "graph" | "mapped" | "stream") {
            let case = format!("latency_pipeline_{name}");
            bench.attempt(&case, || one_by_one(bench, &case, policy));
        }
    }
    Ok(())
}

/// What a timeline by its defaults costs: the same batches with and without, by turns
/// of a window, and which goes first by turns too.
pub(crate) fn sampling(bench: &Bench) -> Result<()> {
    let (case, slots) = ("sampling", 4);
    let open = |timeline| Driven::open_with(bench, slots, Policy::default(), timeline);
    let mut driven = [open(None)?, open(Some(TimelineConfig::default()))?];
    let every = TimelineConfig::default().every as usize;
    let items = if bench.reps > 1 { every } else { 16 };
    let rounds = 10 * bench.reps;
    for driven in &mut driven {
        driven.pass(16, Some(case))?;
        driven.pass(items, None)?;
    }
    let mut ratios = Vec::with_capacity(rounds);
    for round in 0..rounds {
        let mut seconds = [0.0; 2];
        for place in [round % 2, 1 - round % 2] {
            seconds[place] = driven[place].pass(items, None)?.as_secs_f64();
        }
        ratios.push(seconds[1] / seconds[0]);
    }
    for driven in &mut driven {
        driven.pass(16, Some(case))?;
    }
    ratios.sort_unstable_by(f64::total_cmp);
    let at = |part: usize| format!("{:.4}", ratios[part * (rounds - 1) / 4]);
    let line = driven[0].shape.line(case, slots, true);
    line.number("rounds", rounds)
        .number("ratio_p25", at(1))
        .number("ratio_p50", at(2))
        .number("ratio_p75", at(3))
        .print();
    Ok(())
}

fn throughput(bench: &Bench, case: &str, policy: Policy) -> Result<()> {
    let mut driven = Driven::open(bench, 4, policy)?;
    driven.pass(16, Some(case))?;
    let reps = repeat(bench, bench.rep, 4, |items| driven.pass(items, None))?;
    driven.pass(16, Some(case))?;
    let line = driven.shape.line(case, 4, true);
    line.period(reps).print();
    Ok(())
}

fn one_by_one(bench: &Bench, case: &str, policy: Policy) -> Result<()> {
    openings(bench, Shape::small(12).line(case, 1, true), |count| {
        let mut driven = Driven::open(bench, 1, policy)?;
        driven.pass(4, Some(case))?;
        let samples = sample(count, || driven.one(case))?;
        driven.pass(4, Some(case))?;
        Ok(samples)
    })
}

impl Driven {
    pub(crate) fn open(bench: &Bench, slots: usize, policy: Policy) -> Result<Self> {
        Driven::open_with(bench, slots, policy, None)
    }

    fn open_with(
        bench: &Bench,
        slots: usize,
        policy: Policy,
        timeline: Option<TimelineConfig>,
    ) -> Result<Self> {
        let shape = Shape::small(12);
        let spares = Spares::default();
        let config = EngineConfig {
            slots,
            policy,
            wait: Wait::Spin,
            timeline,
            ..EngineConfig::new(shape.extent())
        };
        let chain = Chain::new(shape, &spares);
        let backends = [Arc::clone(&bench.backend)];
        Ok(Driven {
            pipeline: Pipeline::new(chain, &backends, Arc::clone(&bench.pool), &config)?,
            shape,
            spares,
            inputs: (0..slots).map(|seed| shape.input(seed)).collect(),
        })
    }

    /// One item in, and its result out.
    pub(crate) fn one(&mut self, case: &str) -> Result<()> {
        let submitted = self.pipeline.submit(Arc::clone(&self.inputs[0]));
        submitted.map_err(|_| wrong_output(case))?;
        self.pipeline.flush();
        let done = self.pipeline.wait().ok_or_else(|| wrong_output(case))?;
        self.spares.put(done.result?);
        Ok(())
    }

    /// Items through all slots; checks the outputs for a case that is named.
    pub(crate) fn pass(&mut self, items: usize, checked: Option<&str>) -> Result<Duration> {
        let start = Instant::now();
        let (mut sent, mut through) = (0, 0);
        while through < items {
            if sent < items {
                let item = Arc::clone(&self.inputs[sent % self.inputs.len()]);
                // Where no slot is free it comes back; it is only a handle.
                if self.pipeline.submit(item).is_ok() {
                    sent += 1;
                    self.pipeline.flush();
                }
            }
            while let Some(done) = self.pipeline.poll() {
                let output = done.result?;
                if let Some(case) = checked
                    && output != self.shape.output(&done.item)
                {
                    return Err(wrong_output(case));
                }
                self.spares.put(output);
                through += 1;
            }
        }
        Ok(start.elapsed())
    }
}
