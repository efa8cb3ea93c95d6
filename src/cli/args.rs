//! The command line.

use super::config::{BenchConfig, Config, Written};
use super::names::text_of;
use crate::error::Result;
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use std::path::{Path, PathBuf};

/// Streams protein structures through a GPU, or the CPU, into per-residue tables.
#[derive(Debug, Parser)]
#[command(name = "tapeloop", version, arg_required_else_help = true)]
#[command(
    after_help = "Exit codes: 0 all good, 1 nothing could run or the run failed, \
    2 config or usage, 3 finished with rejected inputs, 130 interrupted.\n\
    TAPELOOP_LOG (else RUST_LOG) sets what is logged: warn, info, debug, tapeloop=trace."
)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Compute the features of structures and write them to Parquet.
    Run(Box<RunArgs>),
    /// List the features that a run computes, with their settings and columns.
    Features(FeaturesArgs),
    /// Write a feature into the B factors of a structure file, for molecule viewers.
    Paint(Box<PaintArgs>),
    /// Compare the features of structures with the Python packages that define them.
    Validate(Box<ValidateArgs>),
    /// Measure latency and throughput, and draw them.
    Bench(Box<BenchArgs>),
    /// Print what a batch replays as a graph in Graphviz's DOT: tapeloop graph | dot -Tsvg.
    Graph(GraphArgs),
    /// Tell what a run would find on this machine, and what is missing.
    Doctor(ConfigArgs),
    /// Hold the device for a run with supervise = true, which starts this by itself.
    #[cfg(target_os = "linux")]
    Worker,
    /// List the GPUs that a run can use.
    Devices(DevicesArgs),
}

#[derive(Debug, Args)]
pub(super) struct DevicesArgs {
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    #[command(flatten)]
    pub(super) config: ConfigArgs,
    /// Replace the results that the output folder holds.
    #[arg(long)]
    pub(super) overwrite: bool,
    /// Print the resolved config and the memory that the run will take, and stop.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Print no progress and no summary.
    #[arg(short, long)]
    pub(super) quiet: bool,
}

#[derive(Debug, Args)]
pub(super) struct FeaturesArgs {
    #[command(flatten)]
    pub(super) config: ConfigArgs,
    /// Print the section of docs/CONFIG.md.
    #[arg(long)]
    pub(super) markdown: bool,
}

#[derive(Debug, Args)]
pub(super) struct GraphArgs {
    #[command(flatten)]
    pub(super) config: ConfigArgs,
    /// Which bucket, from 0, the smallest; else the one of an ordinary batch.
    #[arg(long, value_name = "N")]
    pub(super) bucket: Option<usize>,
}

/// A config file and what overrides it.
#[derive(Debug, Args)]
pub(super) struct ConfigArgs {
    /// Config file (TOML; docs/CONFIG.md lists the keys); options override it.
    file: Option<PathBuf>,
    /// File, directory, glob or @list of files; may be repeated.
    #[arg(short, long, value_name = "PATH", value_parser = path_text())]
    input: Vec<String>,
    /// Folder for the results.
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<String>,
    #[command(flatten)]
    overrides: Overrides,
}

/// What overrides a config file.
#[derive(Debug, Args)]
pub(super) struct Overrides {
    /// Features and presets to compute, separated by commas; `tapeloop features` lists them.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    features: Vec<String>,
    /// Which models of a file to read: first, all.
    #[arg(long, value_name = "WHICH")]
    models: Option<String>,
    /// Reject PDB files that may be cut short: without END, or with too few atoms for MASTER.
    #[arg(long)]
    strict: bool,
    /// What to compute on: auto, cuda, cpu.
    #[arg(long, value_name = "NAME")]
    backend: Option<String>,
    /// Which of the visible GPUs: a number, a UUID or its beginning, most_free.
    #[arg(long, value_name = "WHICH")]
    device: Option<String>,
    /// How batches reach the device: graph, stream, auto.
    #[arg(long, value_name = "NAME")]
    mode: Option<String>,
    /// Batches on the way at once.
    #[arg(long, value_name = "N")]
    slots: Option<i64>,
    /// Threads to read, compute and write with; 0 for all cores.
    #[arg(long, value_name = "N")]
    threads: Option<i64>,
    /// Any key of the config: --set batch.residues=8192; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Let the config file name code to run: worker, nvrtc, kernel_cache.
    #[arg(long)]
    trust_config: bool,
}

#[derive(Debug, Args)]
pub(super) struct BenchArgs {
    /// Config file (TOML; docs/CONFIG.md lists the keys); options override it.
    file: Option<PathBuf>,
    /// Structures for the workload of features; without any it is left out.
    #[arg(short, long, value_name = "PATH", value_parser = path_text())]
    input: Vec<String>,
    /// Folder for the history, bench.jsonl, and the report, report.html.
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<String>,
    /// Workloads, separated by commas: launch, copy, compute, features.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    workloads: Vec<String>,
    /// Settings to vary, separated by commas: mode, slots, batch and others.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    axes: Vec<String>,
    /// Commands of other programs to measure beside, one a line.
    #[arg(long, value_name = "FILE")]
    references: Option<String>,
    /// What to measure on: auto, cuda, cpu.
    #[arg(long, value_name = "NAME")]
    backend: Option<String>,
    /// Which of the visible GPUs: a number, a UUID or its beginning, most_free.
    #[arg(long, value_name = "WHICH")]
    device: Option<String>,
    /// Threads of the host; 0 for all cores.
    #[arg(long, value_name = "N")]
    threads: Option<i64>,
    /// Any key of the config: --set launch.kernels=24; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Let the config file name code to run: references, nvrtc, kernel_cache.
    #[arg(long)]
    trust_config: bool,
    /// Every combination of the varied settings, which takes long.
    #[arg(long)]
    pub(super) full: bool,
    /// Print the points and stop.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Print no progress and no summary.
    #[arg(short, long)]
    pub(super) quiet: bool,
    /// Measure nothing: compare the latest runs of two histories.
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"])]
    pub(super) compare: Vec<PathBuf>,
    /// Compare runs of different machines too.
    #[arg(long, requires = "compare")]
    pub(super) any_machine: bool,
}

#[derive(Debug, Args)]
pub(super) struct PaintArgs {
    /// Structure file; or a directory, glob or @list, and a folder as output.
    #[arg(value_parser = path_text())]
    pub(super) input: String,
    /// Residue column to write: sasa, ss8, ...; `tapeloop features` lists them.
    #[arg(required_unless_present = "svg")]
    pub(super) column: Option<String>,
    /// File to write, in the input's format, with .gz packed; or a folder.
    #[arg(short, long, value_name = "PATH", requires = "column")]
    #[arg(required_unless_present = "svg")]
    pub(super) output: Option<PathBuf>,
    /// Also draw the features along the sequence, into this file or folder.
    #[arg(long, value_name = "PATH")]
    pub(super) svg: Option<PathBuf>,
    /// B factor of atoms without a value.
    #[arg(
        long,
        value_name = "VALUE",
        default_value_t = 0.0,
        allow_negative_numbers = true
    )]
    pub(super) null: f64,
    /// Replace files that are there.
    #[arg(long)]
    pub(super) overwrite: bool,
    /// Config file; options override it.
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    #[command(flatten)]
    pub(super) overrides: Overrides,
}

#[derive(Debug, Args)]
pub(super) struct ValidateArgs {
    /// Files, directories, globs or @lists of structures.
    #[arg(required = true, value_parser = path_text())]
    pub(super) inputs: Vec<String>,
    /// Python with numpy, scipy and pyarrow, and the packages to compare with.
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    pub(super) python: String,
    /// Keep the run, the dump of its atoms and the scripts in this folder.
    #[arg(long, value_name = "FOLDER")]
    pub(super) keep: Option<PathBuf>,
    /// Replace the results that the kept folder holds.
    #[arg(long)]
    pub(super) overwrite: bool,
    /// Config file; options override it.
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    #[command(flatten)]
    pub(super) overrides: Overrides,
    /// Options of the comparing script, as -- --only 'hb_*'; -- --help lists them.
    #[arg(last = true, value_name = "SCRIPT OPTIONS")]
    pub(super) script: Vec<String>,
}

/// A path as the text that a config has for it: its bytes need not be UTF-8.
fn path_text() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new().map(|path| text_of(Path::new(&path)))
}

impl ConfigArgs {
    /// The config as resolved from the file and the options. Named options win
    /// over `--set`, and both over the file.
    ///
    /// # Errors
    /// What is wrong in the file or the options.
    pub(super) fn resolve(self) -> Result<Config> {
        let mut written = self.overrides.written(self.file.as_deref())?;
        written.set_list("--input", "input", self.input);
        written.set_text("--output", "output", self.output);
        Config::resolve(written)
    }
}

impl BenchArgs {
    /// The config as resolved from the file and the options.
    ///
    /// # Errors
    /// What is wrong in the file or the options.
    pub(super) fn resolve(&self) -> Result<BenchConfig> {
        let mut written = match &self.file {
            Some(file) => Written::read(file)?,
            None => Written::default(),
        };
        written.trust_file(self.trust_config);
        for assignment in &self.set {
            written.set_assignment(assignment)?;
        }
        written.set_list("--input", "input", self.input.clone());
        written.set_text("--output", "output", self.output.clone());
        written.set_list("--workloads", "workloads", self.workloads.clone());
        written.set_list("--axes", "axes", self.axes.clone());
        written.set_text("--references", "references", self.references.clone());
        written.set_text("--backend", "backend", self.backend.clone());
        written.set_text("--device", "device", self.device.clone());
        written.set_integer("--threads", "threads", self.threads);
        BenchConfig::resolve(written)
    }
}

impl Overrides {
    /// What the file says, with these options over it.
    ///
    /// # Errors
    /// The file cannot be read or is no TOML; an assignment has no `=`.
    pub(super) fn written(self, file: Option<&Path>) -> Result<Written> {
        let mut written = match file {
            Some(file) => Written::read(file)?,
            None => Written::default(),
        };
        written.trust_file(self.trust_config);
        for assignment in &self.set {
            written.set_assignment(assignment)?;
        }
        written.set_list("--features", "features", self.features);
        written.set_text("--models", "models", self.models);
        written.set_true("--strict", "strict", self.strict);
        written.set_text("--backend", "backend", self.backend);
        written.set_text("--device", "device", self.device);
        written.set_text("--mode", "mode", self.mode);
        written.set_integer("--slots", "slots", self.slots);
        written.set_integer("--threads", "threads", self.threads);
        Ok(written)
    }
}
