//! `tapeloop run`.

use super::args::RunArgs;
use super::config::Config;
use super::files::FileId;
use super::heading::Heading;
use super::inputs::{Source, Sources};
use super::interrupt::Interrupt;
use super::output::{OutputFolder, replaces_input};
use super::plan::Plan;
use super::progress::Progress;
use super::report::Outcome;
use super::sink::Results;
use super::tables::Tables;
use super::tally::Tally;
use super::timeline::TimelineFolder;
use super::walk::Walk;
use super::{GOOD, say};
use crate::error::{Error, Result};
use crate::features::Features;
use crate::structure::Assembly;
use crate::workload::{Completion, Sink};
use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, OnceLock};
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
        say(&outcome.summary(&plan, &output));
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
    let annotations = plan.annotations.as_ref();
    let reads = annotations.map_or(&[][..], |annotations| annotations.files());
    let timeline = plan.config.timeline.as_deref();
    let timeline = timeline.map(TimelineFolder::make).transpose()?;
    let folder = OutputFolder::claim(to.folder, to.overwrite, reads)?;
    let tally = Arc::new(Tally::default());
    let tables = open_tables(plan, &folder);
    let heading = Heading::new(plan, started);
    let sources = Sources::new(plan.config.input.clone());
    let sources = Walk::start(sources, &interrupt, &tally)?;
    let replaced = Arc::new(OnceLock::new());
    let sources = keep_from(sources, folder.earlier().clone(), &replaced);
    let mut results = Results::start(tables, folder, Arc::clone(&tally), heading.clone())?;
    let streamed = {
        let items = &plan.config.input;
        let _progress = to.progress.then(|| Progress::start(&tally, items));
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
    let ended = results.end(streamed);
    let (columns, error) = match ended.written {
        Ok(written) => (written.columns, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    let mut outcome = Outcome {
        elapsed: clock.elapsed(),
        counts: tally.counts(),
        kept: ended.kept,
        counters: engine.counters(),
        statistics: engine.statistics(),
        memory: engine.memory().clone(),
        shrunk: engine.shrunk().to_vec(),
        chosen: engine.chosen(),
        columns,
        interrupted: interrupt.has_stopped(),
        error: error.or_else(|| replaced.get().cloned()),
        rejected: ended.rejected,
        folder: ended.folder.path().to_owned(),
    };
    note_readings(plan, &tally);
    if let (Some(folder), Some(timeline)) = (timeline, engine.timeline()) {
        let written = folder.write(&timeline, &outcome.statistics, &outcome.title(plan));
        outcome.error = outcome.error.or(written.err());
    }
    let record = outcome.record(plan, heading);
    match ended.folder.finish(&record, outcome.has_succeeded()) {
        Ok(folder) => outcome.folder = folder,
        // The first error is the cause: a full disk fails the record too.
        Err(error) => outcome.error = outcome.error.or(Some(error)),
    }
    Ok(outcome)
}

/// The sources, without those that are among `earlier` results: the run would replace its own
/// input. The first of them ends up in `replaced`.
fn keep_from<S>(
    sources: S,
    earlier: HashSet<FileId>,
    replaced: &Arc<OnceLock<Error>>,
) -> impl Iterator<Item = Source> + Send + use<S>
where
    S: Iterator<Item = Source> + Send,
{
    let replaced = Arc::clone(replaced);
    sources.map(move |mut source| {
        // Mostly there is none, and no file is asked for its identity.
        let is_earlier = |id: FileId| earlier.contains(&id);
        if !earlier.is_empty() && FileId::of(&source.path).is_some_and(is_earlier) {
            let error = replaces_input(&source.path);
            source.problem = Some(replaced.get_or_init(|| error).clone());
        }
        source
    })
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
    if counts.specials_skipped > 0 {
        tracing::info!(
            files = counts.specials_skipped,
            "skipped FIFOs, sockets and devices in folders and globs"
        );
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
