//! The options of `tapeloop bench`.

use super::options::{DeviceArgs, SetArgs};
use super::{config_and_inputs, path_text};
use clap::Args;
use std::path::PathBuf;
use tapeloop::error::Result;
use tapeloop_cli::config::BenchConfig;

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// A config file, whose name ends in .toml; options override it. Other names are inputs.
    #[arg(value_name = "FILE", value_parser = path_text())]
    paths: Vec<String>,
    /// Structure files, folders, globs, packed sets or @lists for the workloads features and files,
    /// which are skipped without any. May be repeated.
    #[arg(short, long, value_name = "INPUT", num_args = 1.., value_parser = path_text())]
    input: Vec<String>,
    /// Folder for the history, bench.jsonl, and the report, report.html.
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<String>,
    /// Workloads, separated by commas: launch, copy, compute, features, files. The default is all.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    workloads: Vec<String>,
    /// Settings to vary, separated by commas: mode, slots, batch and others.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    axes: Vec<String>,
    /// TOML file that names other programs to compare with and the commands that start them;
    /// scripts/build_references.sh writes one.
    #[arg(long, value_name = "FILE")]
    references: Option<String>,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    set: SetArgs,
    /// Measure every combination of the varied settings, which takes long.
    #[arg(long)]
    pub(crate) full: bool,
    /// Print the points and stop.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print no progress and no summary.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Measure nothing: compare the latest runs of two histories.
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"])]
    pub(crate) compare: Vec<PathBuf>,
    /// Compare runs of different machines too.
    #[arg(long, requires = "compare")]
    pub(crate) any_machine: bool,
}

impl BenchArgs {
    /// The config of the file and the options.
    ///
    /// # Errors
    /// A key of the file or an option is not valid.
    pub(crate) fn resolve(&self) -> Result<BenchConfig> {
        let (config, mut inputs) = config_and_inputs(None, self.paths.clone())?;
        inputs.extend(self.input.clone());
        let mut raw = self.set.clone().raw_config(config.as_deref())?;
        self.device.clone().set(&mut raw);
        raw.set_list("--input", "input", inputs);
        raw.set("--output", "output", self.output.clone());
        raw.set_list("--workloads", "workloads", self.workloads.clone());
        raw.set_list("--axes", "axes", self.axes.clone());
        raw.set("--references", "references", self.references.clone());
        BenchConfig::resolve(raw)
    }
}
