//! `tapeloop run`.

use super::args::RunArgs;
use super::config::Config;
use super::inputs::Sources;
use super::interrupt::Interrupt;
use super::output::OutputFolder;
use super::plan::Plan;
use super::progress::Progress;
use super::report::Outcome;
use super::sink::Results;
use super::tables::{Tables, Written};
use super::tally::Tally;
use super::timeline::TimelineFolder;
use super::{GOOD, say};
use crate::error::Result;
use crate::features::Features;
use crate::structure::Assembly;
use crate::workload::{Completion, Sink};
use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

/// Runs, and returns the exit code.
///
/// # Errors
/// What kept the run from starting, or from writing its record.
pub(super) fn run(args: RunArgs) -> Result<u8> {
    let config = args.config.resolve()?;
    let output = config.output()?.to_owned();
    let plan = Plan::new(config)?;
    if args.dry_run {
        say(&plan.describe()?);
        return Ok(GOOD);
    }
    let to = Destination {
        folder: &output,
        overwrite: args.overwrite,
        progress: !args.quiet,
    };
    let outcome = compute(&plan, &to, |_| Ok(()))?;
    if !args.quiet {
        say(&outcome.summary(&plan, &output.display().to_string()));
    }
    outcome.exit_code()
}

/// Where a run writes.
pub(super) struct Destination<'a> {
    pub(super) folder: &'a Path,
    /// Whether results that are there may be replaced.
    pub(super) overwrite: bool,
    /// Whether progress is shown.
    pub(super) progress: bool,
}

/// Runs a plan. `watch` sees every result before the tables do.
///
/// # Errors
/// What kept the run from starting. What ended it early is in the outcome.
pub(super) fn compute(
    plan: &Plan,
    to: &Destination<'_>,
    mut watch: impl FnMut(&Completion<Features>) -> Result<()>,
) -> Result<Outcome> {
    let started = SystemTime::now();
    let clock = Instant::now();
    let interrupt = Interrupt::listen()?;
    let mut engine = plan.start()?;
    let folder = OutputFolder::claim(to.folder, to.overwrite)?;
    let timeline = plan.config.timeline.as_deref();
    let timeline = timeline.map(TimelineFolder::make).transpose()?;
    let tally = Arc::new(Tally::default());
    let tables = open_tables(plan, &folder);
    let mut results = Results::new(tables, folder, Arc::clone(&tally));
    let streamed = {
        let items = &plan.config.input;
        let _progress = to.progress.then(|| Progress::start(&tally, items));
        let stop = interrupt.clone();
        let sources = Sources::new(items.clone()).take_while(move |_| !stop.stops_here());
        let inputs = super::read::inputs(
            sources,
            plan.config.reading,
            &plan.read_budget(engine.memory()),
            &plan.pool,
            &tally,
            plan.annotations.as_ref(),
        );
        engine.run(inputs, &mut |completion| {
            watch(&completion)?;
            results.accept(completion)
        })
    };
    let (tables, folder, rejected) = results.into_parts();
    // After an error the open parts are dropped, and leave nothing behind.
    let finished = streamed.and_then(|()| {
        let start = Instant::now();
        let written = tables.finish();
        tally.add_write(start.elapsed());
        written
    });
    let (written, error) = match finished {
        Ok(written) => (written, None),
        Err(error) => (Written::default(), Some(error)),
    };
    let mut outcome = Outcome {
        started,
        elapsed: clock.elapsed(),
        counts: tally.counts(),
        counters: engine.counters(),
        statistics: engine.statistics(),
        memory: engine.memory().clone(),
        shrunk: engine.shrunk().to_vec(),
        chosen: engine.chosen(),
        written,
        interrupted: interrupt.has_stopped(),
        error,
        rejected,
    };
    note_readings(plan, &tally);
    if let (Some(folder), Some(timeline)) = (timeline, engine.timeline()) {
        let written = folder.write(&timeline, &outcome.statistics, &outcome.title(plan));
        outcome.error = outcome.error.or(written.err());
    }
    let recorded = folder.finish(&outcome.record(plan));
    // The first error is the cause: a full disk fails the record too.
    outcome.error = outcome.error.or(recorded.err());
    Ok(outcome)
}

/// Says once what was made of files that nobody may expect.
fn note_readings(plan: &Plan, tally: &Tally) {
    let counts = tally.counts();
    if counts.truncated > 0 {
        tracing::warn!(
            structures = counts.truncated,
            first = %tally.first_truncated().join(", "),
            "PDB files that may be cut short were read; strict = true rejects them"
        );
    }
    if counts.scaled_plddt > 0 {
        tracing::info!(
            structures = counts.scaled_plddt,
            "pLDDT went from 0 to 1, and was taken times 100"
        );
    }
    if let Some(annotations) = &plan.annotations {
        annotations.matches().note();
    }
    let deposited = counts.structures - counts.assemblies;
    if plan.config.reading.assembly != Assembly::Deposited && deposited > 0 {
        tracing::info!(
            structures = deposited,
            "read as deposited: their files have no assembly 1"
        );
    }
}

fn open_tables(plan: &Plan, folder: &OutputFolder) -> Tables {
    let Config {
        features, tables, ..
    } = &plan.config;
    Tables::new(
        folder.path(),
        *tables,
        |table| features.columns(table),
        &plan.provenance(),
        Arc::clone(&plan.pool),
    )
}
