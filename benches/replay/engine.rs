//! The engine with its threads: a source into a sink, and single items by ticket.

use crate::Bench;
use crate::latency::sample;
use crate::period::policies;
use crate::report::Line;
use crate::slots::repeat;
use crate::work::{Chain, Shape, Spares, wrong_output};
use std::sync::Arc;
use std::time::Instant;
use tapeloop::pipeline::{TimelineConfig, Wait};
use tapeloop::workload::Completion;
use tapeloop::{Engine, EngineConfig, Error, Result};

/// One item a batch, 16 KiB, four slots. Items are written into pinned memory
/// and results read out of it, so all of these have host copies.
pub(crate) fn engine(bench: &Bench) -> Result<()> {
    let shape = Shape::small(12);
    for (policy_name, policy) in policies() {
        for (wait_name, wait) in [("", Wait::Spin), ("_block", Wait::Block)] {
            if wait == Wait::Block && policy_name != "graph" {
                continue;
            }
            let config = EngineConfig {
                slots: 4,
                policy,
                wait,
                ..EngineConfig::new(shape.extent())
            };
            let case = format!("engine_{policy_name}{wait_name}");
            bench.attempt(&case, || run(bench, &case, shape, &config));
        }
    }
    bench.attempt("engine_sampling", || sampling(bench, shape));
    let config = EngineConfig {
        slots: 1,
        wait: Wait::Spin,
        ..EngineConfig::new(shape.extent())
    };
    tickets(bench, shape, &config)
}

fn run(bench: &Bench, case: &str, shape: Shape, config: &EngineConfig) -> Result<()> {
    let spares = Spares::default();
    let chain = Chain::new(shape, &spares);
    let backends = [Arc::clone(&bench.backend)];
    let mut engine = Engine::new(chain, &backends, Arc::clone(&bench.pool), config)?;
    let inputs: Vec<_> = (0..config.slots).map(|seed| shape.input(seed)).collect();
    let mut pass = |items: usize, checked: bool| {
        let start = Instant::now();
        let source = inputs.iter().cycle().take(items).map(Arc::clone);
        let mut sink = |completion: Completion<Chain>| {
            let output = completion.result?;
            if checked && output != shape.output(&completion.item) {
                return Err(wrong_output(case));
            }
            spares.put(output);
            Ok(())
        };
        engine.run(source, &mut sink)?;
        Ok(start.elapsed())
    };
    pass(4 * config.slots, true)?;
    let reps = repeat(bench, bench.rep, config.slots, |items| pass(items, false))?;
    pass(4 * config.slots, true)?;
    let line = shape.line(case, config.slots, true);
    line.period(reps).print();
    Ok(())
}

/// What a timeline by its defaults costs: the same run with and without, in turn.
fn sampling(bench: &Bench, shape: Shape) -> Result<()> {
    const ROUNDS: usize = 9;
    let spares = Spares::default();
    let mut engines = Vec::new();
    for timeline in [None, Some(TimelineConfig::default())] {
        let config = EngineConfig {
            slots: 4,
            wait: Wait::Spin,
            timeline,
            ..EngineConfig::new(shape.extent())
        };
        let chain = Chain::new(shape, &spares);
        let backends = [Arc::clone(&bench.backend)];
        engines.push(Engine::new(
            chain,
            &backends,
            Arc::clone(&bench.pool),
            &config,
        )?);
    }
    let input = shape.input(0);
    let pass = |engine: &mut Engine<Chain>, items: usize| {
        let start = Instant::now();
        let source = std::iter::repeat_n(Arc::clone(&input), items);
        let mut sink = |completion: Completion<Chain>| {
            spares.put(completion.result?);
            Ok(())
        };
        engine.run(source, &mut sink)?;
        Ok::<_, Error>(start.elapsed())
    };
    // Past the first window, which is of the first batches.
    let warm = pass(&mut engines[0], 4096)?.max(pass(&mut engines[1], 4096)?);
    let each = warm / 4096;
    // Several windows, whatever the length of a repetition.
    let items = (bench.rep.as_nanos() / each.as_nanos().max(1)) as usize;
    let items = items.max(if bench.reps > 1 { 8 * 2048 } else { 16 });
    let mut ratios = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let without = pass(&mut engines[0], items)?;
        let with = pass(&mut engines[1], items)?;
        ratios.push(with.as_secs_f64() / without.as_secs_f64());
    }
    ratios.sort_by(f64::total_cmp);
    Line::new("engine_sampling")
        .number("items", items)
        .number("rounds", ROUNDS)
        .number("ratio_min", ratios[0])
        .number("ratio_p50", ratios[ROUNDS / 2])
        .number("ratio_max", ratios[ROUNDS - 1])
        .print();
    Ok(())
}

fn tickets(bench: &Bench, shape: Shape, config: &EngineConfig) -> Result<()> {
    let case = "latency_engine_ticket";
    let spares = Spares::default();
    let chain = Chain::new(shape, &spares);
    let backends = [Arc::clone(&bench.backend)];
    let engine = Engine::new(chain, &backends, Arc::clone(&bench.pool), config)?;
    let input = shape.input(0);
    let one = || {
        let ticket = engine.submit(Arc::clone(&input))?;
        engine.flush()?;
        ticket.wait()?.result
    };
    if one()? != shape.output(&input) {
        return Err(wrong_output(case));
    }
    let samples = sample((bench.samples / 5).max(10), || {
        spares.put(one()?);
        Ok(())
    })?;
    let line = shape.line(case, 1, true);
    line.times("", samples).print();
    Ok(())
}
