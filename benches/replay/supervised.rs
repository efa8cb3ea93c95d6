//! What it costs to have the device in a process of its own: the same batches with
//! and without, by turns.

use crate::Bench;
use crate::caller::Driven;
use crate::latency::sample;
use crate::slots::repeat;
use crate::work::twins;
use std::cell::Cell;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use tapeloop::Result;
use tapeloop::backend::Choice;
use tapeloop::backend::worker::{self, WorkerBackend, WorkerOptions};
use tapeloop::replay::Policy;

/// The argument that makes this program a worker.
pub(crate) const WORKER: &str = "worker";

pub(crate) fn serve() -> ExitCode {
    // SAFETY: the bench started this program, with the argument for it.
    match unsafe { worker::serve(&twins()) } {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

pub(crate) fn supervised(bench: &Bench) -> Result<()> {
    let choice = match bench.backend.device().backend {
        "cuda" => Choice::Cuda,
        _ => Choice::Cpu,
    };
    let start = Instant::now();
    let worker = WorkerBackend::open(WorkerOptions {
        args: vec![WORKER.into()],
        choice,
        ..WorkerOptions::default()
    })?;
    let started = start.elapsed();
    let behind = Bench {
        backend: Arc::new(worker),
        pool: Arc::clone(&bench.pool),
        reps: 1,
        rep: bench.rep,
        samples: bench.samples,
        failed: Cell::new(false),
    };
    for (case, slots) in [("supervised_period", 4), ("supervised_latency", 1)] {
        let mut here = Driven::open(bench, slots, Policy::default())?;
        let mut there = Driven::open(&behind, slots, Policy::default())?;
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for driven in [&mut here, &mut there] {
            driven.pass(16, Some(case))?;
        }
        for _ in 0..bench.reps {
            for (driven, figures) in [(&mut here, &mut own), (&mut there, &mut others)] {
                if slots == 1 {
                    figures.extend(sample(bench.samples / 5 + 10, || driven.one(case))?);
                } else {
                    figures.extend(repeat(&behind, bench.rep, slots, |items| {
                        driven.pass(items, None)
                    })?);
                }
            }
        }
        for driven in [&mut here, &mut there] {
            driven.pass(16, Some(case))?;
        }
        let median = |figures: &mut Vec<f64>| {
            figures.sort_unstable_by(f64::total_cmp);
            figures[figures.len() / 2]
        };
        let (own, others) = (median(&mut own), median(&mut others));
        let line = here.shape.line(case, slots, true);
        line.number("own_process_ns", format!("{own:.0}"))
            .number("worker_ns", format!("{others:.0}"))
            .number("costs_ns", format!("{:.0}", others - own))
            .number("worker_start_ms", started.as_millis())
            .print();
    }
    Ok(())
}
