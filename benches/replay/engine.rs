//! The engine with its threads: a source into a sink, and single items by ticket.

use crate::Bench;
use crate::latency::sample;
use crate::period::policies;
use crate::slots::repeat;
use crate::work::{Chain, Shape, Spares, wrong_output};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tapeloop::pipeline::{TimelineConfig, Wait};
use tapeloop::workload::Completion;
use tapeloop::{Engine, EngineConfig, Result};

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

/// A run that the device bounds, drawn into the folder that `TAPELOOP_TIMELINE` names.
pub(crate) fn timeline(bench: &Bench) -> Result<()> {
    let Some(folder) = std::env::var_os("TAPELOOP_TIMELINE").map(PathBuf::from) else {
        eprintln!("timeline: TAPELOOP_TIMELINE names no folder; nothing is drawn");
        return Ok(());
    };
    let shape = Shape {
        kernels: if bench.reps > 1 { 400 } else { 2 },
        ..Shape::large()
    };
    let config = EngineConfig {
        slots: 3,
        timeline: Some(TimelineConfig::default()),
        ..EngineConfig::new(shape.extent())
    };
    let spares = Spares::default();
    let backends = [Arc::clone(&bench.backend)];
    let chain = Chain::new(shape, &spares);
    let mut engine = Engine::new(chain, &backends, Arc::clone(&bench.pool), &config)?;
    let input = shape.input(0);
    let mut sink = |completion: Completion<Chain>| {
        spares.put(completion.result?);
        Ok(())
    };
    engine.run(std::iter::repeat_n(input, 20), &mut sink)?;
    let timeline = engine.timeline().expect("one was asked for");
    let title = format!("{} kernels, 8 MiB up, 4 MiB down", shape.kernels);
    let drawn = timeline.to_svg(&engine.statistics(), &title);
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("timeline.json"), timeline.to_chrome_json())?;
    std::fs::write(folder.join("timeline.svg"), drawn)?;
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
