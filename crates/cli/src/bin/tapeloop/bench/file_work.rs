//! Measures whole runs, and, if other programs are given, reading and single features for
//! comparison. Everything runs on the CPU, on one thread and on all, with the same files and settings
//! as the other programs; whole runs are on a GPU too, if there is one.

use super::structures::StructureSet;
use rayon::prelude::*;
use serde_json::Value as Json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;
use tapeloop::error::{Context, Error, ErrorKind, Result};
use tapeloop::features::{FeatureConfig, FeatureName};
use tapeloop::structure::{CheckedStructure, ReadOptions, Reader};
use tapeloop_bench::internal::spread_warning;
use tapeloop_bench::record::{
    Amounts, CoreSeconds, FORMAT, Figures, Outcome, PointFacts, Record, Reference, Run,
};
use tapeloop_bench::reference::{Answer, ReferenceProgram};
use tapeloop_cli::exit_codes::{GOOD, REJECTED};
use tapeloop_cli::output::RECORD_BYTES_MAX;
use tapeloop_cli::plan::thread_pool;
use tapeloop_error::internal::excerpt;
use tapeloop_files::{open_file, read_text, shown};

/// Maximum number of passes over all files, as a pass takes long.
const ROUNDS_MAX: usize = 3;

/// The backend of whole runs on a GPU.
const CUDA: &str = "cuda";

/// A task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileTask {
    /// Reads the files.
    Read,
    /// Computes contact numbers of C-alphas from structures in memory.
    Contacts,
    /// Computes areas from structures in memory.
    SasaKernel,
    /// Runs from files to tables of areas.
    SasaFiles,
    /// Runs from files to tables of all features. The tools compute areas alone.
    AllFiles,
}

impl FileTask {
    const ALL: [FileTask; 5] = [
        FileTask::Read,
        FileTask::Contacts,
        FileTask::SasaKernel,
        FileTask::SasaFiles,
        FileTask::AllFiles,
    ];

    /// The name in records.
    fn name(self) -> &'static str {
        match self {
            FileTask::Read => "read",
            FileTask::Contacts => "contacts",
            FileTask::SasaKernel => "sasa_kernel",
            FileTask::SasaFiles => "sasa_files",
            FileTask::AllFiles => "all_files",
        }
    }

    /// Whether the task is a `tapeloop run` in a process of its own.
    fn is_whole_run(self) -> bool {
        matches!(self, FileTask::SasaFiles | FileTask::AllFiles)
    }

    /// The name in requests to the tools.
    fn request_name(self) -> &'static str {
        match self {
            FileTask::AllFiles => FileTask::SasaFiles.name(),
            task => task.name(),
        }
    }

    /// The features that a task computes, of those that the config asks for.
    fn features(self, config: &FeatureConfig) -> FeatureConfig {
        let mut config = config.clone();
        match self {
            FileTask::Contacts => {
                config.features = vec![FeatureName::ContactNumber];
                config.contact_number.cb.clear();
            }
            FileTask::SasaKernel | FileTask::SasaFiles => config.features = vec![FeatureName::Sasa],
            FileTask::Read | FileTask::AllFiles => {}
        }
        config
    }
}

/// The files that this program and every tool read, and the settings.
pub(super) struct FileWork<'a> {
    pub(super) paths: &'a [PathBuf],
    pub(super) set: &'a StructureSet,
    pub(super) reading: ReadOptions,
    pub(super) features: &'a FeatureConfig,
    /// The settings of whole runs, as `key=value`.
    pub(super) run_settings: Vec<String>,
    /// The folder that runs write to.
    pub(super) folder: PathBuf,
    pub(super) rounds: usize,
    /// Whether whole runs use a GPU too.
    pub(super) on_cuda: bool,
}

/// The figures of a whole run, which it writes to its `run.json`.
struct RunFigures {
    seconds: f64,
    cores: Vec<CoreSeconds>,
    /// The average number of cores that were busy.
    busy: f64,
    bound: String,
}

/// A tool, with its figures for one task.
struct Tool {
    request: String,
    figures: Reference,
}

impl FileWork<'_> {
    /// Measures every task, or only whole runs if there is no program that runs the tools. In each
    /// round this program and then each tool makes a pass.
    ///
    /// # Errors
    /// Structures cannot be computed, or the folder cannot be written.
    pub(super) fn measure(
        &self,
        mut program: Option<&mut ReferenceProgram>,
        run: &Run,
        mut go_on: impl FnMut(&str) -> bool,
    ) -> Result<Vec<Record>> {
        fs::create_dir_all(&self.folder).within(|| shown(&self.folder))?;
        let list = self.folder.join("files.txt");
        // Relative paths in a list start from its own folder.
        let lines = self.paths.iter().map(|path| {
            let path = std::path::absolute(path).within(|| shown(path))?;
            Ok(format!("{}\n", path.display()))
        });
        let lines = lines.collect::<Result<String>>()?;
        tapeloop_files::replace(&list, lines.as_bytes())?;
        let list = list.canonicalize().within(|| shown(&list))?;
        let tools = match &mut program {
            None => Vec::new(),
            Some(program) => match program.ask("tools") {
                Answer::Done(tools) => tools,
                _ => return Ok(Vec::new()),
            },
        };
        let mut tools = Tools { program, tools };
        let mut records = Vec::new();
        for task in FileTask::ALL {
            if tools.program.is_none() && !task.is_whole_run() {
                continue;
            }
            // 0 threads are one for each core.
            for (backend, threads) in [("cpu", 1), ("cpu", 0), (CUDA, 0)] {
                if backend == CUDA && !(self.on_cuda && task.is_whole_run()) {
                    continue;
                }
                if !go_on(task.name()) {
                    return Ok(records);
                }
                let record = self.measure_task(task, backend, threads, &list, &mut tools, run)?;
                records.push(record);
            }
        }
        Ok(records)
    }

    /// Measures a task: rounds of this program and of each other tool at the same work, one after
    /// the other. Returns the record.
    fn measure_task(
        &self,
        task: FileTask,
        backend: &str,
        threads: usize,
        list: &Path,
        tools: &mut Tools<'_>,
        run: &Run,
    ) -> Result<Record> {
        let features = task.features(self.features);
        let points = features.sasa.points;
        let pool = thread_pool(threads)?;
        let set = match task {
            FileTask::Contacts | FileTask::SasaKernel => {
                Some(Arc::new(self.set.with_features(features.clone(), &pool)?))
            }
            _ => None,
        };
        // The precisions that a tool computes in; zsasa has two.
        let precisions = |tool: &str| match tool {
            "zsasa" => &["f64", "f32"][..],
            _ => &["f64"],
        };
        // The tools run on the CPU.
        let of_backend = tools.tools.iter().filter(|_| backend != CUDA);
        let requested = of_backend.flat_map(|(tool, version)| {
            precisions(tool).iter().map(move |precision| Tool {
                request: format!(
                    "rate tool={tool} part={} threads={threads} points={points} \
                     precision={precision} list={}",
                    task.request_name(),
                    list.display()
                ),
                figures: Reference {
                    name: match precisions(tool) {
                        [_] => format!("{tool} {version}"),
                        _ => format!("{tool} {version} {precision}"),
                    },
                    ..Reference::default()
                },
            })
        });
        let mut requested: Vec<Tool> = requested.collect();
        let mut figures = Figures {
            amounts: self.amounts(),
            busy: 1.0,
            ..Figures::default()
        };
        for _ in 0..self.rounds.min(ROUNDS_MAX) {
            let seconds = match (task, &set) {
                (_, Some(set)) => set.pass(&pool)?.as_secs_f64(),
                (FileTask::Read, _) => self.read(&pool)?,
                _ => self.run(task, backend, threads, list)?.put(&mut figures),
            };
            figures.period_ns.push(1e9 * seconds);
            figures.batches += 1;
            if let Some(program) = &mut tools.program {
                requested.retain_mut(|tool| tool.ask(program));
            }
        }
        figures.references = requested.into_iter().map(|tool| tool.figures).collect();
        figures.flags = spread_warning(&figures.period_ns).into_iter().collect();
        Ok(Record {
            format: FORMAT,
            run: run.clone(),
            point: PointFacts {
                workload: match backend {
                    CUDA => format!("{}_{CUDA}", task.name()),
                    _ => task.name().to_owned(),
                },
                axis: "base".to_owned(),
                front: "program".to_owned(),
                mode: "graph".to_owned(),
                batch: self.paths.len() as u64,
                unit: "files".to_owned(),
                input: self.set.describe(),
                threads: pool.current_num_threads(),
                ..PointFacts::default()
            },
            outcome: Outcome::Measured(Box::new(figures)),
        })
    }

    /// What the files hold, together.
    fn amounts(&self) -> Amounts {
        let sum = |count: fn(&CheckedStructure) -> usize| {
            self.set.structures().iter().map(count).sum::<usize>() as f64
        };
        Amounts {
            structures: self.set.structures().len() as f64,
            residues: sum(|structure| structure.residues.len()),
            atoms: sum(|structure| structure.xyz.len()),
            ..Amounts::default()
        }
    }

    /// Reads all files, and returns the seconds. `ErrorKind::Mismatch` if it reads fewer structures
    /// than the set has, as a file may have changed.
    fn read(&self, pool: &rayon::ThreadPool) -> Result<f64> {
        let start = Instant::now();
        let read = pool.install(|| {
            let files = self.paths.par_iter();
            let read = files.map_init(
                || Reader::new(self.reading),
                |reader, path| reader.read_path(path).map_or(0, |read| read.len()),
            );
            read.sum::<usize>()
        });
        let seconds = start.elapsed().as_secs_f64();
        if read >= self.set.structures().len() {
            Ok(seconds)
        } else {
            Err(Error::new(
                ErrorKind::Mismatch,
                format!(
                    "{read} structures were read, and {} before: files may have changed",
                    self.set.structures().len()
                ),
            ))
        }
    }

    /// Runs from files to tables in a process of its own, and reads the figures in its `run.json`.
    /// `ErrorKind::Io` if it ends otherwise than a run does that finishes.
    fn run(
        &self,
        task: FileTask,
        backend: &str,
        threads: usize,
        list: &Path,
    ) -> Result<RunFigures> {
        let program = std::env::current_exe()?;
        let output = self.folder.join("run");
        let mut command = Command::new(program);
        command
            .args(["run", "--quiet", "--overwrite", "--backend", backend])
            .arg("--threads")
            .arg(threads.to_string())
            .arg("--input")
            .arg(format!("@{}", list.display()))
            .arg("--output")
            .arg(&output)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let is_replaced = |key: &str| task == FileTask::SasaFiles && key.starts_with("features=");
        let settings = self.run_settings.iter().filter(|key| !is_replaced(key));
        command.args(settings.flat_map(|key| ["--set", key]));
        if task == FileTask::SasaFiles {
            command.args(["--features", "sasa"]);
        }
        let start = Instant::now();
        let ended = match threads {
            1 => on_one_core(|| command.output()),
            _ => command.output(),
        };
        let seconds = start.elapsed().as_secs_f64();
        let ended = ended?;
        let code = ended.status.code();
        let good = [GOOD, REJECTED].map(i32::from);
        if !code.is_some_and(|code| good.contains(&code)) {
            let said = String::from_utf8_lossy(&ended.stderr);
            let text = format!(
                "`tapeloop run` over the files ended with {}: {}",
                ended.status,
                excerpt(said.trim())
            );
            return Err(Error::new(ErrorKind::Io, text));
        }
        let place = output.join("run.json");
        let text = open_file(&place).and_then(|file| read_text(file, RECORD_BYTES_MAX));
        let text = text.within(|| shown(&place))?;
        let record: Json = serde_json::from_str(&text)
            .map_err(|error| Error::new(ErrorKind::Io, error.to_string()))
            .within(|| shown(&place))?;
        RunFigures::new(seconds, &record).within(|| shown(&place))
    }
}

/// The other tools, and the program that runs them, if there is one.
struct Tools<'a> {
    program: Option<&'a mut ReferenceProgram>,
    /// Their names and versions.
    tools: Vec<(String, String)>,
}

impl RunFigures {
    /// The figures in a `run.json`; `ErrorKind::Mismatch` if it lacks some. Processor time is given
    /// for each million atoms, so that sets of files compare.
    fn new(seconds: f64, record: &Json) -> Result<Self> {
        let lacks = |key| Error::new(ErrorKind::Mismatch, format!("it has no {key}"));
        let atoms = record["counts"]["atoms"].as_f64();
        let atoms = atoms.ok_or_else(|| lacks("counts.atoms"))?;
        let number = |value: &Json| value.as_f64().unwrap_or(0.0);
        let all = number(&record["seconds"]);
        let outside = all - number(&record["statistics"]["seconds"]);
        let cores = record["core_seconds"].as_object();
        let cores = cores.ok_or_else(|| lacks("core_seconds"))?.iter();
        let bound = record["bound"].as_str().ok_or_else(|| lacks("bound"))?;
        let of_work = |(work, seconds): (&String, &Json)| CoreSeconds {
            work: work.clone(),
            per_million_atoms: 1e6 * number(seconds) / atoms.max(1.0),
        };
        let cores: Vec<CoreSeconds> = cores.map(of_work).collect();
        let per_million: f64 = cores.iter().map(|work| work.per_million_atoms).sum();
        // The sentence begins with what bounds the run, before a colon.
        let bound = bound.split(':').next().unwrap_or(bound);
        Ok(RunFigures {
            seconds,
            cores,
            busy: per_million * atoms / 1e6 / all.max(1e-9),
            bound: format!("{bound}; {outside:.2} s before the first batch and after the last"),
        })
    }

    /// Puts all but the time, which it returns, into the figures of the task.
    fn put(self, figures: &mut Figures) -> f64 {
        figures.cores = self.cores;
        figures.busy = self.busy;
        figures.bound = self.bound;
        self.seconds
    }
}

impl Tool {
    /// Asks the tool for a pass. Returns false if it does not do the task.
    fn ask(&mut self, program: &mut ReferenceProgram) -> bool {
        let answer = program.ask(&self.request);
        let Some(seconds) = answer.number("seconds") else {
            return false;
        };
        self.figures.period_ns.push(1e9 * seconds);
        if let Some(failed) = answer.text("failed") {
            self.figures.note = format!("{failed} structures failed");
        }
        true
    }
}

/// Calls `run` with this thread, and the processes that it starts, on one core.
#[cfg(target_os = "linux")]
fn on_one_core<T>(run: impl FnOnce() -> T) -> T {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let before = sched_getaffinity(None).ok();
    if let Some(core) = before.and_then(|all| (0..CpuSet::MAX_CPU).find(|&core| all.is_set(core))) {
        let mut one = CpuSet::new();
        one.set(core);
        // Without permission the run still has one thread.
        let _ = sched_setaffinity(None, &one);
    }
    let outcome = run();
    if let Some(before) = before {
        let _ = sched_setaffinity(None, &before);
    }
    outcome
}

#[cfg(not(target_os = "linux"))]
fn on_one_core<T>(run: impl FnOnce() -> T) -> T {
    run()
}
