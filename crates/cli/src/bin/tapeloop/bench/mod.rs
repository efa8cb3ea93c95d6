//! `tapeloop bench`.

mod file_work;
mod references;
mod structures;

use super::args::BenchArgs;
use super::signals;
use file_work::FileWork;
use indicatif::{ProgressBar, ProgressStyle};
use references::References;
use serde_json::Map;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use structures::StructureSet;
use tapeloop::backend::select_all;
use tapeloop::error::{Context, Error, Result};
use tapeloop::structure::{CheckedStructure, ReadBudget, Reader, Structure};
use tapeloop_bench::compare::{Machines, compare};
use tapeloop_bench::measure::Session;
use tapeloop_bench::point::{self, Point, Work};
use tapeloop_bench::record::{self, Record};
use tapeloop_bench::reference::ReferenceProgram;
use tapeloop_bench::runner::Machine;

use tapeloop_bench::synthetic::Synthetic;
use tapeloop_bench::{limits, machine, report};
use tapeloop_cli::config::BenchConfig;
use tapeloop_cli::exit_codes::{FAILED, GOOD, INTERRUPTED};
use tapeloop_cli::plan::thread_pool;
use tapeloop_cli::terminal::say;
use tapeloop_files::shown;
use tapeloop_inputs::{ArchiveOptions, Archives, Content, Shard, Sources, Trajectories};

/// The history; each run appends to it.
const HISTORY: &str = "bench.jsonl";

/// The report of the latest run.
const REPORT: &str = "report.html";

/// Measures the workloads of the config, or with `--compare` compares two histories. Returns the exit
/// code.
///
/// # Errors
/// [`ErrorKind::Usage`](tapeloop::ErrorKind::Usage) if workloads need structures and there are
/// none; those of a config or file that is wrong, or a device that cannot be used.
pub(super) fn bench(args: &BenchArgs) -> Result<u8> {
    if let [old, new] = &args.compare[..] {
        let machines = if args.any_machine {
            Machines::Any
        } else {
            Machines::Same
        };
        let read = |path: &Path| {
            let fix = "give the bench.jsonl that `tapeloop bench -o FOLDER` wrote into FOLDER";
            record::read(path).map_err(|error| error.fix(fix))
        };
        let comparison = compare(&read(old)?, &read(new)?, machines)?;
        say(&format!("{comparison}\n"));
        return Ok(comparison.exit_code());
    }
    let config = args.resolve()?;
    tapeloop_inputs::check(&config.input, &Trajectories::Unknown, &Map::new(), false)?;
    let has_input = !config.input.is_empty();
    if !has_input && config.works.iter().all(|work| *work == Work::Features) {
        let error = Error::usage("the workloads features and files need structures");
        return Err(error.fix("name files or folders with --input"));
    }
    let pool = thread_pool(config.threads)?;
    let selected = select_all(config.backend, &config.devices, &pool, &config.cuda)?;
    tracing::info!(reason = selected[0].reason, "chose the backend");
    let backends = selected
        .into_iter()
        .map(|selected| selected.backend)
        .collect();
    let machine = Machine { backends, pool };
    let mut workloads = config.works.clone();
    if !has_input && workloads.contains(&Work::Features) {
        workloads.retain(|work| *work != Work::Features);
        tracing::info!("skipped the workload features: `input` is not set");
    }
    let measures_files = config.files && has_input;
    if config.files && !measures_files {
        tracing::info!("skipped the workload files: `input` is not set");
    }
    let on_device = !machine.first().device().shares_host_memory;
    let with_points = |&work: &Work| (work, config.points(work, on_device, args.full));
    let plan: Vec<(Work, Vec<Point>)> = workloads.iter().map(with_points).collect();
    if args.dry_run {
        let points = plan.iter().flat_map(|(_, points)| points);
        points.for_each(|point| say(&format!("{point}\n")));
        if measures_files {
            say("files: whole runs from the files to tables\n");
        }
        return Ok(GOOD);
    }
    if !args.full {
        point::check_count(plan.iter().map(|(_, points)| points.len()).sum())?;
    }
    measure(&config, machine, &plan, measures_files, args.quiet)
}

/// Measures all that was planned, appends each record to the history as soon as it is there, and
/// writes the report. After Ctrl-C or an error the report has what was measured before. Returns the
/// exit code.
fn measure(
    config: &BenchConfig,
    machine: Machine,
    plan: &[(Work, Vec<Point>)],
    measures_files: bool,
    quiet: bool,
) -> Result<u8> {
    let interrupt = signals::listen()?;
    let References {
        programs,
        mut tools,
    } = References::start(config.references.as_deref())?;
    let has_features = plan.iter().any(|(work, _)| *work == Work::Features);
    let has_input = !config.input.is_empty();
    let structures = if has_features || (measures_files || !tools.is_empty()) && has_input {
        Some(Structures::read(config, &machine)?)
    } else {
        None
    };
    fs::create_dir_all(&config.output).within(|| shown(&config.output))?;
    let mut run = machine::describe(&machine.backends, config.to_toml());
    run.limits = limits::measure(&machine)?;
    let mut session = Session {
        machine,
        settings: config.settings.clone(),
        run,
        references: programs,
    };
    let history = config.output.join(HISTORY);
    let mut records: Vec<Record> = Vec::new();
    let mut keep = |measured: Vec<Record>| -> Result<()> {
        // Appended at once, so that a later error loses nothing.
        record::append(&history, &measured)?;
        records.extend(measured);
        Ok(())
    };
    let mut measure_all = || -> Result<()> {
        for (work, points) in plan {
            let bar = progress(work.name(), quiet);
            let show_progress = |number: usize, all: usize, point: &Point| {
                bar.set_length(all as u64);
                bar.set_position(number as u64);
                bar.set_message(point.to_string());
                !interrupt.stops_here()
            };
            keep(match (&structures, work) {
                (Some(structures), Work::Features) => {
                    let batches = |point: &Point| Arc::new(structures.set.in_batches(point.batch));
                    session.measure(points, batches, show_progress)
                }
                _ => session.measure(points, synthetic, show_progress),
            })?;
            bar.finish_and_clear();
        }
        let file_inputs = structures.iter().find_map(|structures| {
            let files = structures.files.as_ref()?;
            Some((structures, files))
        });
        if (measures_files || !tools.is_empty()) && has_input && file_inputs.is_none() {
            tracing::warn!(
                "skipped the workload files: it and other programs read files, and some inputs are \
                 members of archives or of packed sets"
            );
        }
        if let Some((structures, paths)) = file_inputs {
            let work = FileWork {
                paths,
                set: &structures.set,
                reading: config.reading,
                features: &config.features,
                run_settings: config.run_settings(),
                folder: config.output.join("programs"),
                rounds: config.settings.rounds,
                on_cuda: session.run.backend == "cuda",
            };
            let mut programs: Vec<Option<&mut ReferenceProgram>> =
                tools.iter_mut().map(Some).collect();
            if measures_files && programs.is_empty() {
                programs.push(None);
            }
            for program in programs {
                let bar = progress("files", quiet);
                keep(work.measure(program, &session.run, |task| {
                    bar.set_message(task.to_owned());
                    !interrupt.stops_here()
                })?)?;
                bar.finish_and_clear();
            }
        }
        Ok(())
    };
    let measured = measure_all();
    if records.is_empty() {
        measured?;
        // Without an interrupt a warning has said why.
        return Ok(if interrupt.has_stopped() {
            INTERRUPTED
        } else {
            FAILED
        });
    }
    let is_partial = measured.is_err() || interrupt.has_stopped();
    records
        .iter_mut()
        .for_each(|record| record.run.is_partial = is_partial);
    let page = config.output.join(REPORT);
    tapeloop_files::replace(&page, report::html(&records)?.as_bytes())?;
    // The page has what was measured before the error.
    measured?;
    if !quiet {
        say(&report::text(&records)?);
        say(&format!("\n{}\n", shown(&page)));
    }
    let refused = records.iter().filter(|record| record.figures().is_none());
    Ok(match (refused.count(), interrupt.has_stopped()) {
        (_, true) => INTERRUPTED,
        (0, false) => GOOD,
        _ => FAILED,
    })
}

/// The made-up work of a point.
fn synthetic(point: &Point) -> Arc<Synthetic> {
    let benchmark = Synthetic::for_point(point);
    Arc::new(benchmark.unwrap_or_else(|| unreachable!("work of structures has its own")))
}

/// A progress bar on standard error; a hidden one if `quiet`.
fn progress(label: &'static str, quiet: bool) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{prefix:8} {pos}/{len} {wide_msg} {eta}");
    let style = style.expect("the template is well formed");
    ProgressBar::new(0).with_prefix(label).with_style(style)
}

/// The structures of the input.
struct Structures {
    set: Arc<StructureSet>,
    /// The files that they come from. `None` if some are members of archives or of packed sets.
    files: Option<Vec<PathBuf>>,
}

impl Structures {
    /// Reads structures up to `atoms_max`. Files that cannot be read are skipped with a warning, as
    /// one broken file of a folder should not keep the others from being measured.
    fn read(config: &BenchConfig, machine: &Machine) -> Result<Self> {
        let mut reader = Reader::new(config.reading);
        let (mut structures, mut files) = (Vec::<Structure>::new(), Some(Vec::new()));
        let mut atoms = 0;
        let archives = Archives::Read(ArchiveOptions {
            members: None,
            limits: config.reading.limits,
            // Each member is parsed before the next one is read.
            budget: Arc::new(ReadBudget::new(u64::MAX)),
            has_topology: false,
            reader: Map::new(),
        });
        for source in Sources::new(config.input.clone(), archives, Shard::WHOLE) {
            let is_file = matches!(source.content, Ok(Content::File));
            let content = source.content;
            match content.and_then(|content| content.read(&source.path, &mut reader)) {
                Ok(read) => {
                    atoms += read.iter().map(|one| one.xyz.len() as u64).sum::<u64>();
                    structures.extend(read);
                    files = files.filter(|_| is_file);
                    if let Some(files) = &mut files {
                        files.push(source.path);
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, path = shown(&source.path), "skipped a file that cannot be read")
                }
            }
            if atoms >= config.atoms_max {
                break;
            }
        }
        let check = |(index, structure)| {
            CheckedStructure::new(structure).within(|| format!("structure {index}"))
        };
        let structures = structures.into_iter().enumerate().map(check);
        let structures = structures.collect::<Result<_>>()?;
        let set = StructureSet::new(structures, config.features.clone(), &machine.pool)?;
        Ok(Structures {
            set: Arc::new(set),
            files,
        })
    }
}
