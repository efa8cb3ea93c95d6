//! `tapeloop run`.

use super::args::RunArgs;
use super::config::Config;
use super::inputs::Sources;
use super::interrupt::{self, Interrupt};
use super::output::OutputFolder;
use super::plan::Plan;
use super::progress::Progress;
use super::report::Outcome;
use super::sink::Results;
use super::tables::{Tables, Written};
use super::tally::Tally;
use super::{FAILED, GOOD, REJECTED, say};
use crate::error::Result;
use crate::features::Features;
use crate::pipeline::Engine;
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
    let started = SystemTime::now();
    let clock = Instant::now();
    let interrupt = Interrupt::listen()?;
    let mut engine = plan.start()?;
    let folder = OutputFolder::claim(&output, args.overwrite)?;
    let tally = Arc::new(Tally::default());
    let tables = open_tables(&plan, &folder);
    let mut results = Results::new(tables, folder, Arc::clone(&tally));
    let streamed = stream(
        &plan,
        &mut engine,
        &mut results,
        &tally,
        &interrupt,
        args.quiet,
    );
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
    let outcome = Outcome {
        started,
        elapsed: clock.elapsed(),
        counts: tally.counts(),
        counters: engine.counters(),
        memory: engine.memory().clone(),
        written,
        interrupted: interrupt.has_stopped(),
        error: error.clone(),
        rejected,
    };
    if outcome.counts.scaled_plddt > 0 {
        tracing::info!(
            structures = outcome.counts.scaled_plddt,
            "pLDDT went from 0 to 1, and was taken times 100"
        );
    }
    let recorded = folder.finish(&outcome.record(&plan));
    if !args.quiet {
        say(&outcome.summary(&plan, &output.display().to_string()));
    }
    // The first error is the cause: a full disk fails the record too.
    error.map_or(recorded, Err)?;
    Ok(exit_code(&outcome))
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

fn stream(
    plan: &Plan,
    engine: &mut Engine<Features>,
    results: &mut Results,
    tally: &Arc<Tally>,
    interrupt: &Interrupt,
    quiet: bool,
) -> Result<()> {
    let items = &plan.config.input;
    let _progress = (!quiet).then(|| Progress::start(tally, items));
    let interrupt = interrupt.clone();
    let sources = Sources::new(items.clone());
    let until_asked = sources.take_while(move |_| !interrupt.stops_here());
    let inputs = super::read::inputs(until_asked, plan.config.reading, &plan.pool, tally);
    engine.run(inputs, results)
}

fn exit_code(outcome: &Outcome) -> u8 {
    let counts = &outcome.counts;
    if outcome.interrupted {
        interrupt::EXIT_CODE
    } else if counts.rejected == 0 {
        GOOD
    } else if counts.structures == 0 {
        FAILED
    } else {
        REJECTED
    }
}
