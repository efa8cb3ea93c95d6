//! The command line.

use super::config::{BenchConfig, Config, RawConfig};
use super::path_text::text_of;
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
    /// Compute the features of structures and write them into tables.
    Run(Box<RunArgs>),
    /// List the features that a run computes, with their settings and columns.
    Features(FeaturesArgs),
    /// Write a feature into the B factors of structure files, for molecule viewers.
    Paint(Box<PaintArgs>),
    /// Compare the features of structures with what Python packages compute.
    Validate(Box<ValidateArgs>),
    /// Measure latency and throughput, and write a report.
    Bench(Box<BenchArgs>),
    /// Print the graph of a batch in Graphviz's DOT: tapeloop graph | dot -Tsvg.
    Graph(GraphArgs),
    /// Check what a run needs on this machine, and print what is missing.
    Doctor(ConfigArgs),
    /// Hold the device for a run with supervise = true; the run starts this command.
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
    /// Replace the results in the output folder.
    #[arg(long)]
    pub(super) overwrite: bool,
    /// Print the resolved config and the memory that the run needs, and stop.
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
    /// Bucket, from 0, the smallest; the default is that of an ordinary batch.
    #[arg(long, value_name = "N")]
    pub(super) bucket: Option<usize>,
}

/// A config file and the options that override it.
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

/// Options that override a run's config file.
#[derive(Debug, Args)]
pub(super) struct Overrides {
    /// Features and presets to compute, separated by commas; `tapeloop features` lists them.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    features: Vec<String>,
    /// Models to read from each file: first, all.
    #[arg(long, value_name = "WHICH")]
    models: Option<String>,
    /// Reject PDB files that may be cut short: without END, or with fewer atoms than MASTER says.
    #[arg(long)]
    strict: bool,
    /// How batches are launched: graph, stream, auto.
    #[arg(long, value_name = "NAME")]
    mode: Option<String>,
    /// Number of batches in flight.
    #[arg(long, value_name = "N")]
    slots: Option<i64>,
    #[command(flatten)]
    common: CommonOverrides,
}

/// Options that override any config file.
#[derive(Clone, Debug, Args)]
struct CommonOverrides {
    /// What to compute on: auto, cuda, cpu.
    #[arg(long, value_name = "NAME")]
    backend: Option<String>,
    /// GPU among the visible ones: a number, a UUID or its beginning, most_free.
    #[arg(long, value_name = "WHICH")]
    device: Option<String>,
    /// Number of threads; 0 for one for each core.
    #[arg(long, value_name = "N")]
    threads: Option<i64>,
    /// Set any key of the config: --set batch.residues=8192; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Let the config file name code to run: worker, nvrtc, kernel_cache, references.
    #[arg(long)]
    trust_config: bool,
}

#[derive(Debug, Args)]
pub(super) struct BenchArgs {
    /// Config file (TOML; docs/CONFIG.md lists the keys); options override it.
    file: Option<PathBuf>,
    /// Structures for the workload features; without any the workload is skipped.
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
    /// Commands that start other programs to compare with, one a line.
    #[arg(long, value_name = "FILE")]
    references: Option<String>,
    #[command(flatten)]
    common: CommonOverrides,
    /// Measure every combination of the varied settings, which takes long.
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
    /// Structure file; or a directory, glob or @list, with a folder as output.
    #[arg(value_parser = path_text())]
    pub(super) input: String,
    /// Column of residues to write: sasa, ss8, ...; `tapeloop features` lists them.
    #[arg(required_unless_present = "svg")]
    pub(super) column: Option<String>,
    /// File to write, in the input's format, compressed if named .gz; or a folder.
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
    /// Replace existing files.
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
    /// Python with numpy, scipy, pyarrow and the packages to compare with.
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    pub(super) python: String,
    /// Keep the results, the dump of the atoms and the scripts in this folder.
    #[arg(long, value_name = "FOLDER")]
    pub(super) keep: Option<PathBuf>,
    /// Replace the results in the kept folder.
    #[arg(long)]
    pub(super) overwrite: bool,
    /// Config file; options override it.
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    #[command(flatten)]
    pub(super) overrides: Overrides,
    /// Options of the comparing script: -- --only 'hb_*'; -- --help lists them.
    #[arg(last = true, value_name = "SCRIPT OPTIONS")]
    pub(super) script: Vec<String>,
}

/// Reads a path as the text that a config has for it, as its bytes may not be UTF-8.
fn path_text() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new().map(|path| text_of(Path::new(&path)))
}

// Options override `--set`, and both override the file.

impl ConfigArgs {
    /// The config of the file and the options.
    ///
    /// # Errors
    /// What is wrong in the file or the options.
    pub(super) fn resolve(self) -> Result<Config> {
        let mut raw = self.overrides.raw_config(self.file.as_deref())?;
        raw.set_list("--input", "input", self.input);
        raw.set("--output", "output", self.output);
        Config::resolve(raw)
    }
}

impl BenchArgs {
    /// The config of the file and the options.
    ///
    /// # Errors
    /// What is wrong in the file or the options.
    pub(super) fn resolve(&self) -> Result<BenchConfig> {
        let mut raw = self.common.clone().raw_config(self.file.as_deref())?;
        raw.set_list("--input", "input", self.input.clone());
        raw.set("--output", "output", self.output.clone());
        raw.set_list("--workloads", "workloads", self.workloads.clone());
        raw.set_list("--axes", "axes", self.axes.clone());
        raw.set("--references", "references", self.references.clone());
        BenchConfig::resolve(raw)
    }
}

impl Overrides {
    /// The keys of the file with these options over them.
    ///
    /// # Errors
    /// The file cannot be read or is not valid TOML; an assignment has no `=`.
    pub(super) fn raw_config(self, file: Option<&Path>) -> Result<RawConfig> {
        let mut raw = self.common.raw_config(file)?;
        raw.set_list("--features", "features", self.features);
        raw.set("--models", "models", self.models);
        raw.set("--strict", "strict", self.strict.then_some(true));
        raw.set("--mode", "mode", self.mode);
        raw.set("--slots", "slots", self.slots);
        Ok(raw)
    }
}

impl CommonOverrides {
    fn raw_config(self, file: Option<&Path>) -> Result<RawConfig> {
        let mut raw = RawConfig::read(file)?;
        raw.trusts_file = self.trust_config;
        for assignment in &self.set {
            raw.set_assignment(assignment)?;
        }
        raw.set("--backend", "backend", self.backend);
        raw.set("--device", "device", self.device);
        raw.set("--threads", "threads", self.threads);
        Ok(raw)
    }
}
