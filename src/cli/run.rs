//! `tapeloop run`.

use super::args::RunArgs;
use super::bottleneck::Cores;
use super::config::Config;
use super::exit_codes::GOOD;
use super::files::FileId;
use super::inputs::{Source, Sources};
use super::interrupt::Interrupt;
use super::output::{OutputFolder, replaces_input};
use super::plan::Plan;
use super::progress::Progress;
use super::result_writer::ResultWriter;
use super::run_counters::RunCounters;
use super::run_json::RunHeader;
use super::source_thread::SourceThread;
use super::summary::Outcome;
use super::tables::Tables;
use super::terminal::say;
use super::timeline::TimelineFolder;
use crate::bench::machine::{Threads, core_time};
use crate::error::{Error, Result};
use crate::features::Features;
use crate::structure::Assembly;
use crate::workload::{Completion, Sink};
use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

/// Runs, and returns the exit code.
///
/// # Errors
/// The run cannot start, or an error ended it.
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

/// Where a run writes, and what it shows.
pub(super) struct Destination<'a> {
    pub(super) folder: &'a Path,
    /// Whether the results of an earlier run may be replaced.
    pub(super) overwrite: bool,
    /// Whether progress is shown.
    pub(super) progress: bool,
}

/// Runs a plan. `watch` gets every result before the tables do.
///
/// # Errors
/// The run cannot start. An error that ends it later is in the outcome.
pub(super) fn compute(
    plan: &Plan,
    to: &Destination<'_>,
    mut watch: impl FnMut(&Completion<Features>) -> Result<()>,
) -> Result<Outcome> {
    let started = SystemTime::now();
    let clock = Instant::now();
    let cores_before = core_time(Threads::All);
    let interrupt = Interrupt::listen()?;
    let mut engine = plan.start()?;
    let annotations = plan.annotations.as_ref();
    let reads = annotations.map_or(&[][..], |annotations| annotations.files());
    let timeline = plan.config.timeline.as_deref();
    let timeline = timeline.map(TimelineFolder::make).transpose()?;
    let folder = OutputFolder::claim(to.folder, to.overwrite, reads)?;
    let counters = Arc::new(RunCounters::default());
    let tables = open_tables(plan, &folder);
    let table_cores = tables.cores();
    let header = RunHeader::new(plan, started);
    let sources = Sources::new(plan.config.input.clone());
    let sources = SourceThread::start(sources, &interrupt, &counters)?;
    let replaced = Arc::new(OnceLock::new());
    let sources = reject_earlier_results(sources, folder.earlier().clone(), &replaced);
    let mut results = ResultWriter::start(tables, folder, Arc::clone(&counters), header.clone())?;
    let streamed = {
        let items = &plan.config.input;
        let _progress = to.progress.then(|| Progress::start(&counters, items));
        let inputs = super::reading::inputs(
            sources,
            plan.config.reading,
            &plan.read_budget(engine.memory()),
            &plan.pool,
            &counters,
            plan.annotations.as_ref(),
        );
        engine.run(inputs, &mut |completion| {
            watch(&completion)?;
            results.accept(completion)
        })
    };
    let finished = results.finish(streamed);
    let (columns, error) = match finished.columns {
        Ok(columns) => (columns, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    let elapsed = clock.elapsed();
    let cores = core_time(Threads::All).zip(cores_before);
    let counts = counters.counts();
    let mut outcome = Outcome {
        elapsed,
        cores: Cores {
            threads: plan.pool.current_num_threads(),
            elapsed,
            read_wall: counts.read,
            read: counters.read_cores.total(),
            tables: table_cores.total(),
            all: cores.map_or(Duration::ZERO, |(now, before)| now.saturating_sub(before)),
        },
        counts,
        written: finished.written,
        counters: engine.counters(),
        statistics: engine.statistics(),
        memory: engine.memory().clone(),
        shrunk: engine.shrunk().to_vec(),
        chosen: engine.chosen(),
        columns,
        interrupted: interrupt.has_stopped(),
        error: error.or_else(|| replaced.get().cloned()),
        rejected: finished.rejected,
        folder: finished.folder.path().to_owned(),
    };
    log_unusual_files(plan, &counters);
    if let (Some(folder), Some(timeline)) = (timeline, engine.timeline()) {
        let written = folder.write(&timeline, &outcome.statistics, &outcome.title(plan));
        outcome.error = outcome.error.or(written.err());
    }
    let record = header.ended(plan, &outcome);
    match finished.folder.finish(&record, outcome.has_succeeded()) {
        Ok(folder) => outcome.folder = folder,
        // The first error is the cause: a full disk fails `run.json` too.
        Err(error) => outcome.error = outcome.error.or(Some(error)),
    }
    Ok(outcome)
}

/// Gives each source that is one of the `earlier` results an error, since the run would replace
/// its own input. `replaced` gets the first error.
fn reject_earlier_results<S>(
    sources: S,
    earlier: HashSet<FileId>,
    replaced: &Arc<OnceLock<Error>>,
) -> impl Iterator<Item = Source> + Send + use<S>
where
    S: Iterator<Item = Source> + Send,
{
    let replaced = Arc::clone(replaced);
    sources.map(move |mut source| {
        // Without earlier results no file's identity is looked up.
        let is_earlier = |id: FileId| earlier.contains(&id);
        if !earlier.is_empty() && FileId::of(&source.path).is_some_and(is_earlier) {
            let error = replaces_input(&source.path);
            source.problem = Some(replaced.get_or_init(|| error).clone());
        }
        source
    })
}

/// Logs once how unusual files were read.
fn log_unusual_files(plan: &Plan, counters: &RunCounters) {
    let counts = counters.counts();
    if counts.truncated > 0 {
        tracing::warn!(
            structures = counts.truncated,
            first = %counters.first_truncated().join(", "),
            "PDB files that may be cut short were read; strict = true rejects them"
        );
    }
    if counts.scaled_plddt > 0 {
        tracing::info!(
            structures = counts.scaled_plddt,
            "pLDDT from 0 to 1 was multiplied by 100"
        );
    }
    if let Some(annotations) = &plan.annotations {
        annotations.matches().log();
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
            "their files have no assembly 1, so the deposited chains were read"
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
