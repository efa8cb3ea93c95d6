//! `tapeloop run`.

use super::args::{OutputTarget, RunArgs};
use super::bottleneck::Cores;
use super::dry_run::describe;
use super::progress::{Audience, ProgressDisplay, start_engine};
use super::run_end::ended;
use super::run_notes::{notes, warnings};
use super::signals;
use super::summary::{RunOutcome, listed};
use super::timeline::TimelineFolder;
use super::waits::single_threads;
use serde_json::{Value as Json, json};
use std::collections::HashSet;
use std::io::{ErrorKind, IsTerminal};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};
use tapeloop::error::{Error, Result};
use tapeloop::features::{Features, TableName};
use tapeloop::workload::Completion;
use tapeloop_annotations::{Level, check_matched};
use tapeloop_bench::internal::format::counted;
use tapeloop_bench::internal::{CpuClock, core_time};
use tapeloop_cli::config::{Config, OutputTable, TableSet};
use tapeloop_cli::core_time::MachineTime;
use tapeloop_cli::exit_codes::{self, GOOD};
use tapeloop_cli::output::{
    self, Committed, FINISHED, Found, Interrupted, OutputFolder, RESUME, replaces_input,
};
use tapeloop_cli::oversized;
use tapeloop_cli::plan::Plan;
use tapeloop_cli::result_writer::{Made, ResultWriter, Rows};
use tapeloop_cli::run_counters::RunCounters;
use tapeloop_cli::run_json::RunHeader;
use tapeloop_cli::source_thread::SourceThread;
use tapeloop_cli::table_plan::{column_sources, row_filters};
use tapeloop_cli::tables::{ColumnStatistics, Tables, TerminalTable, printed_table};
use tapeloop_cli::terminal::{complain, say};
use tapeloop_cli::thread_times::ThreadTimer;
use tapeloop_files::{FileId, path_of, shown};
use tapeloop_inputs::{InputDigests, Source, Trajectories};

/// Runs, and returns the exit code.
///
/// # Errors
/// The run cannot start, or an error ended it.
pub(super) fn run(args: RunArgs) -> Result<u8> {
    let (config, target, shown) = args.resolve()?;
    let is_terminal = std::io::stderr().is_terminal();
    // A progress bar and rows on one terminal would mix.
    let is_free = matches!(target, OutputTarget::Folder(_)) || !std::io::stdout().is_terminal();
    check_stdout(&target, &config, shown.json)?;
    let plan = Plan::new(config)?;
    check_printed(&target, &plan.config)?;
    if shown.dry_run {
        let format = plan.config.tables.format.name();
        let result = match &target {
            OutputTarget::Folder(folder) => {
                let tables = listed(&plan.config.tables.written.names());
                let folder = tapeloop_files::shown(folder);
                format!("write the tables {tables} as {format} files to {folder}")
            }
            OutputTarget::Stdout => {
                let printed = printed_table(plan.config.tables.written);
                let printed = printed.unwrap_or(OutputTable::RESIDUES).name();
                format!("print the {printed} as {format}")
            }
            OutputTarget::Table(_) => "print a table of the residues".to_owned(),
        };
        say(&describe(&plan, &result, shown.verbose)?);
        return Ok(GOOD);
    }
    if !matches!(target, OutputTarget::Folder(_)) {
        warn_of_unprinted(&plan);
    }
    let interrupted = if shown.resume {
        match find_earlier(&plan, &target)? {
            Found::Nothing => None,
            Found::Interrupted(interrupted) => {
                if !shown.quiet {
                    let Committed { parts, inputs, .. } = interrupted.committed;
                    complain(&format!(
                        "going on after {} and {}, which are kept",
                        counted(inputs, "input"),
                        counted(parts, "complete part")
                    ));
                }
                Some(*interrupted)
            }
            Found::Finished(record) => {
                if !shown.quiet {
                    complain("the run has finished already, and nothing is left to do");
                }
                let written = |key: &str| record["written"][key].as_u64().unwrap_or(0);
                let rejected = written("rejected");
                let code = exit_codes::of_inputs(written("structures"), rejected);
                return Ok(exit_codes::accepting(code, rejected, shown.max_rejects));
            }
        }
    } else {
        None
    };
    let to = Destination {
        target: &target,
        overwrite: shown.overwrite,
        interrupted,
        progress: if shown.progress_json {
            Some(Audience::Program)
        } else {
            (!shown.quiet && (shown.verbose || is_terminal && is_free)).then_some(Audience::Reader)
        },
        compiling: if shown.progress_json {
            Some(Audience::Program)
        } else {
            (!shown.quiet && (shown.verbose || is_terminal)).then_some(Audience::Reader)
        },
    };
    let outcome = compute(&plan, to, None)?;
    if shown.json {
        say(&format!("{:#}\n", outcome.record));
    }
    let text = match &target {
        _ if shown.quiet => outcome.nothing_done(),
        _ if shown.verbose => outcome.summary(&plan, true),
        OutputTarget::Folder(_) if is_terminal => outcome.summary(&plan, false),
        OutputTarget::Folder(_) | OutputTarget::Stdout => outcome.problems(),
        OutputTarget::Table(_) => outcome.problems_of_table() + &what_is_next(&outcome, &plan),
    };
    if !text.is_empty() {
        complain(text.trim_end());
    }
    let (code, rejected) = (outcome.exit_code()?, outcome.counts.rejected);
    Ok(exit_codes::accepting(code, rejected, shown.max_rejects))
}

/// How to get the structures that were not printed; empty if all were.
fn what_is_next(outcome: &RunOutcome, plan: &Plan) -> String {
    if !outcome.is_cut {
        return String::new();
    }
    let structures = counted(outcome.counts.structures, "structure");
    let inputs = plan.config.input.iter().map(|input| shown(&path_of(input)));
    let inputs: Vec<String> = inputs.collect();
    let inputs = inputs.join(" ");
    format!(
        "\nThese are the first {structures}. Type\n  tapeloop run {inputs} -o out          tables of all, as Parquet\n  \
         tapeloop run {inputs} -o - --format csv   all residues and columns, on standard output\n"
    )
}

/// What the output folder has of an earlier run. An
/// [`ErrorKind::Config`](tapeloop::ErrorKind::Config) error if the results are no folder.
fn find_earlier(plan: &Plan, target: &OutputTarget) -> Result<Found> {
    let OutputTarget::Folder(folder) = target else {
        let error = Error::config("--resume needs a folder of results");
        return Err(error.fix("name one with --output"));
    };
    let header = RunHeader::new(plan, SystemTime::now()).json();
    output::find(folder, &header)
}

/// Checks that there is a table to print. Else an
/// [`ErrorKind::Config`](tapeloop::ErrorKind::Config) error.
fn check_printed(target: &OutputTarget, config: &Config) -> Result<()> {
    let printed = printed_table(config.tables.written);
    let error = match target {
        OutputTarget::Stdout if printed.is_none() => {
            let written = listed(&config.tables.written.names());
            let message =
                format!("standard output holds one table, and `tables.written` names {written}");
            Error::config(message).fix("leave one of them, or name a folder with --output")
        }
        OutputTarget::Table(_) if printed != Some(OutputTable::RESIDUES) => {
            let message = "--format table prints residues, which `tables.written` leaves out";
            Error::config(message).fix("give --format csv or json, or leave tables.written out")
        }
        _ => return Ok(()),
    };
    Err(error)
}

/// Warns of annotations that are in none of the rows on standard output, if these are of residues.
fn warn_of_unprinted(plan: &Plan) {
    if printed_table(plan.config.tables.written) != Some(OutputTable::RESIDUES) {
        return;
    }
    let mut columns = plan.annotation_columns().iter();
    if let Some(column) = columns.find(|column| column.level != Level::Residues) {
        tracing::warn!(
            first = column.name,
            "standard output has residues alone, without annotations of structures and variants; \
             name a folder with --output"
        );
    }
}

/// Checks that standard output can hold what the run prints there. Else an
/// [`ErrorKind::Config`](tapeloop::ErrorKind::Config) error.
fn check_stdout(target: &OutputTarget, config: &Config, json: bool) -> Result<()> {
    let format = config.tables.format;
    if matches!(target, OutputTarget::Folder(_)) {
        return Ok(());
    }
    if json {
        let error =
            Error::config("--json prints the summary where the rows go, to standard output");
        return Err(error.fix("give --format json for rows as JSON, or name a folder with -o"));
    }
    if matches!(target, OutputTarget::Stdout)
        && !format.is_text()
        && std::io::stdout().is_terminal()
    {
        let format = format.name();
        let error = Error::config(format!(
            "standard output is a terminal, and {format} is binary"
        ));
        return Err(error.fix(format!(
            "redirect it: > table.{format}, or give --format table, csv or json"
        )));
    }
    Ok(())
}

/// Where a run writes, and what it shows.
pub(super) struct Destination<'a> {
    pub(super) target: &'a OutputTarget,
    /// Whether the results of an earlier run may be replaced.
    pub(super) overwrite: bool,
    /// The run to go on with.
    pub(super) interrupted: Option<Interrupted>,
    /// Whom progress is shown.
    pub(super) progress: Option<Audience>,
    /// Whom the compilation of kernels is shown, which ends before the first result.
    pub(super) compiling: Option<Audience>,
}

/// Gets each result before the tables do.
pub(super) type Watch<'a> = &'a mut dyn FnMut(&Completion<Features>) -> Result<()>;

/// Runs a plan.
///
/// # Errors
/// The run cannot start. An error that ends it later is in the outcome.
pub(super) fn compute(
    plan: &Plan,
    to: Destination<'_>,
    mut watch: Option<Watch<'_>>,
) -> Result<RunOutcome> {
    let started = SystemTime::now();
    let clock = Instant::now();
    let cores_before = core_time(CpuClock::All);
    let machine_before = MachineTime::now();
    let annotations = plan.annotations.as_ref();
    let reads = annotations.map_or(&[][..], |annotations| annotations.files());
    let reads: Vec<PathBuf> = reads.iter().chain(&plan.config.topology).cloned().collect();
    let shard = plan.config.shard;
    let mut sources = plan.sources(plan.config.input.clone());
    // A run that goes on compares these. Only one with a folder can, and the digests read the size
    // and the time of each file.
    let digests = match to.target {
        OutputTarget::Folder(_) => sources.digests(&reads),
        OutputTarget::Stdout | OutputTarget::Table(_) => InputDigests::default(),
    };
    let interrupted = to.interrupted.as_ref();
    let committed =
        interrupted.map_or_else(Committed::default, |resumed| resumed.committed.clone());
    sources.skip_computed(&committed.ranges)?;
    let interrupt = signals::listen()?;
    let tables = match to.target {
        OutputTarget::Folder(_) => plan.tables_read(),
        OutputTarget::Stdout | OutputTarget::Table(_) => TableName::ALL.to_vec(),
    };
    let mut engine = start_engine(plan, &tables, to.compiling)?;
    let timeline = plan.config.timeline.as_deref();
    let timeline = timeline.map(TimelineFolder::make).transpose()?;
    let header = RunHeader::new(plan, started);
    let folder = match (to.target, to.interrupted) {
        (OutputTarget::Folder(_), Some(interrupted)) => Some(interrupted.open()?),
        (OutputTarget::Folder(path), None) => Some(OutputFolder::claim(
            path,
            &plan.config.tables.written.names(),
            to.overwrite,
            &reads,
            header.config(),
        )?),
        (OutputTarget::Stdout | OutputTarget::Table(_), _) => None,
    };
    let counters = Arc::new(RunCounters::default());
    let rows = open_rows(plan, to.target, folder.as_ref());
    let table_cores = rows.cores();
    let sources = SourceThread::start(sources, &interrupt, &counters)?;
    let replaced = Arc::new(OnceLock::new());
    let earlier = folder.as_ref().map(|folder| folder.earlier().clone());
    let sources = reject_earlier_results(sources, earlier.unwrap_or_default(), &replaced);
    let is_fresh = committed.inputs == 0;
    let mut results = ResultWriter::start(
        rows,
        row_filters(plan),
        folder,
        Arc::clone(&counters),
        header.clone(),
        committed,
        digests,
    )?
    .with_annotations(plan.annotations.clone())
    .with_optional(plan.config.tables.optional);
    // What was found in a topology concerns all frames, and counts once.
    if let (true, Trajectories::Read(topology, _), Some(path)) =
        (is_fresh, &plan.trajectories, &plan.config.topology)
    {
        counters.add_findings(&shown(path), &topology.structure().findings);
    }
    // Whether there are more structures than the target takes.
    let is_cut = AtomicBool::new(false);
    let streamed = {
        let items = &plan.config.input;
        let _progress = to.progress.map(|audience| {
            ProgressDisplay::start(audience, &counters, items, &plan.trajectories, shard)
        });
        let inputs = tapeloop_cli::reading::inputs(
            sources,
            plan.config.reading,
            &plan.read_budget(engine.memory()),
            &plan.pool,
            &counters,
            plan.annotations.as_ref(),
        );
        let mut left = match to.target {
            OutputTarget::Table(Some(structures_max)) => *structures_max,
            _ => usize::MAX,
        };
        // Looks at one input more than it takes, to know whether there is one.
        let inputs = inputs.take_while(|input| {
            is_cut.store(left == 0, Relaxed);
            left = left.saturating_sub(usize::from(input.structure.is_ok()));
            !is_cut.load(Relaxed)
        });
        let timer = ThreadTimer::start();
        let (maker, is_watched) = (results.row_maker(), watch.is_some());
        // A watch gets the results themselves, so their rows are made after it, on this thread.
        let make = move |done| {
            if is_watched {
                Made::Completion(Box::new(done))
            } else {
                maker.make(done)
            }
        };
        let accept = |made| {
            if let (Some(watch), Made::Completion(done)) = (&mut watch, &made) {
                watch(done)?;
            }
            results.accept(made)
        };
        let streamed = oversized::run(&mut engine, plan, inputs, &counters, make, accept);
        counters.set_results_thread(timer.stop());
        streamed
    };
    let finished = results.finish(streamed);
    let (columns, error) = match finished.columns {
        Ok(columns) => (without_expected_suspects(plan, columns), None),
        Err(error) => (Vec::new(), Some(error)),
    };
    let elapsed = clock.elapsed();
    let compilation = plan.compilation();
    let cores = core_time(CpuClock::All).zip(cores_before);
    let counts = counters.counts();
    let matches = counters.matches();
    let tables = annotations.map_or(Ok(Vec::new()), |all| all.by_table(&matches));
    // An error here must not leave the run without its record.
    let (tables, error) = match tables {
        Ok(tables) => (tables, error),
        Err(unreadable) => (Vec::new(), error.or(Some(unreadable))),
    };
    let mut outcome = RunOutcome {
        elapsed,
        cores: Cores {
            threads: plan.pool.current_num_threads(),
            elapsed,
            read_wall: counts.read,
            read: counters.read_cores.total(),
            tables: table_cores.total(),
            all: cores.map_or(Duration::ZERO, |(now, before)| now.saturating_sub(before)),
            machine: MachineTime::now()
                .zip(machine_before)
                .map(|(now, before)| now.since(before)),
            compiling: Duration::from_nanos(compilation.ns),
            single: single_threads(&counters.threads(), &engine.counters(), elapsed),
        },
        counts,
        earlier: counters.earlier(),
        notes: notes(plan, &counters, &tables, &matches),
        warnings: warnings(plan, &counts),
        matches,
        tables,
        written: finished.written,
        counters: counters.with_losses_alone(engine.counters()),
        statistics: engine.statistics(),
        compilation,
        memory: engine.memory().clone(),
        shrunk: engine.shrunk().to_vec(),
        columns,
        was_interrupted: interrupt.has_stopped(),
        is_cut: is_cut.into_inner(),
        error: error.or_else(|| replaced.get().cloned()),
        rejected: finished.rejected,
        folder: finished
            .folder
            .as_ref()
            .map(|folder| folder.path().to_owned()),
        keeps_earlier: false,
        truncated: counters.first_truncated(),
        findings: counters.findings(),
        record: Json::Null,
    };
    // If standard output was closed, the run ended early and not all inputs were read.
    let is_closed = closes_stdout(&outcome);
    if is_closed {
        outcome.error = None;
    }
    if let Some(annotations) = annotations {
        let logged = annotations.log(&outcome.matches);
        outcome.error = outcome.error.or(logged.err());
        if outcome.state() == FINISHED && !is_closed && outcome.counts.structures > 0 {
            let (rejected, unmatched) = (outcome.counts.rejected, plan.config.unmatched);
            let checked = check_matched(&outcome.tables, &outcome.matches, rejected, unmatched);
            outcome.error = checked.err();
        }
    }
    if let (Some(folder), Some(timeline)) = (timeline, engine.timeline()) {
        let written = folder.write(&timeline, &outcome.statistics, &outcome.title(plan));
        outcome.error = outcome.error.or(written.err());
    }
    outcome.record = ended(header, plan, &outcome);
    if outcome.state() != FINISHED {
        outcome.record[RESUME] = json!(finished.committed);
    }
    if let Some(folder) = finished.folder {
        match folder.finish(&outcome.record, outcome.has_succeeded()) {
            Ok(folder) => {
                outcome.keeps_earlier =
                    matches!(to.target, OutputTarget::Folder(named) if *named != folder);
                outcome.folder = Some(folder);
            }
            // The first error is the cause: a full disk fails `run.json` too.
            Err(error) => outcome.error = outcome.error.or(Some(error)),
        }
    }
    Ok(outcome)
}

/// Whether the reader of standard output closed it, as `| head` does. The run ends, and nothing is
/// wrong.
fn closes_stdout(outcome: &RunOutcome) -> bool {
    let kind = outcome.error.as_ref().and_then(Error::io_kind);
    outcome.folder.is_none() && kind == Some(ErrorKind::BrokenPipe)
}

/// Gives each source that is one of the `earlier` results an error, since the run would replace
/// its own input. `replaced` gets the first error.
fn reject_earlier_results<S>(
    sources: S,
    earlier: HashSet<FileId>,
    replaced: &Arc<OnceLock<Error>>,
) -> impl Iterator<Item = Vec<Source>> + Send + use<S>
where
    S: Iterator<Item = Vec<Source>> + Send,
{
    let replaced = Arc::clone(replaced);
    let reject = move |source: &mut Source| {
        // Without earlier results no file's identity is looked up.
        let is_earlier = |id: FileId| earlier.contains(&id);
        if !earlier.is_empty() && FileId::from_path(&source.path).is_some_and(is_earlier) {
            let error = replaces_input(&source.path);
            source.content = Err(replaced.get_or_init(|| error).clone());
        }
    };
    sources.map(move |mut group| {
        group.iter_mut().for_each(&reject);
        group
    })
}

/// Marks the columns for which it is no surprise to hold a single value, or none, so that a run does not
/// warn of them: those of residues if `tables.where` selects some, and those of tables that not every
/// run has.
fn without_expected_suspects(
    plan: &Plan,
    mut columns: Vec<ColumnStatistics>,
) -> Vec<ColumnStatistics> {
    let is_exempt = |name| match OutputTable::of_name(name) {
        Some(OutputTable::RESIDUES) => plan.config.condition.is_some(),
        table => table.is_some_and(|table| !TableSet::USUAL.contains(table)),
    };
    let exempt = columns.iter_mut().filter(|column| is_exempt(column.table));
    exempt.for_each(|column| column.idle_when = None);
    columns
}

/// Opens where rows go: a table on the terminal, tables on standard output, or tables in the
/// folder.
fn open_rows(plan: &Plan, target: &OutputTarget, folder: Option<&OutputFolder>) -> Rows {
    let Config {
        features, tables, ..
    } = &plan.config;
    let columns = |table| features.columns(table);
    let sources = column_sources(plan, &columns);
    let (provenance, pool) = (plan.provenance(), Arc::clone(&plan.pool));
    match (target, folder) {
        (OutputTarget::Table(_), _) => {
            Rows::Terminal(TerminalTable::new(&columns(TableName::Residues)))
        }
        (_, None) => Rows::Tables(Tables::to_stdout(*tables, &sources, &provenance, pool)),
        (_, Some(folder)) => Rows::Tables(Tables::new(
            folder.path(),
            *tables,
            &sources,
            &provenance,
            pool,
        )),
    }
}
