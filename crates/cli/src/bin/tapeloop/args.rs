//! The command line.

mod benchmark;
mod options;
mod packing;

pub(super) use benchmark::BenchArgs;
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use options::{DeviceArgs, EngineArgs, FeatureArgs, Overrides, SetArgs, heading};
pub(super) use packing::{InspectArgs, PackArgs};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use tapeloop::error::{Error, Result};
use tapeloop::structure::Format;
use tapeloop_cli::config::{Config, TableFormat};
use tapeloop_cli::feature_list::Listing;
use tapeloop_files::{path_of, shown, text_of};

/// The name of standard input among inputs, and of standard output as `--output`.
const STANDARD: &str = "-";

/// The most structures that `tapeloop FOLDER` prints: tables of more would scroll away.
const STRUCTURES_SHOWN: usize = 3;

/// The format that only standard output has.
const TABLE: &str = "table";

/// The exit codes of a run.
const EXIT_CODES: &str = "\
Exit codes: 0 all good, 1 nothing could run or the run failed, 2 config or usage, \
3 finished with more rejected inputs than --max-rejects, 130 interrupted.";

/// Computes per-residue features of protein structures, on a GPU or the CPU.
#[derive(Debug, Parser)]
#[command(
    name = "tapeloop",
    version,
    arg_required_else_help = true,
    max_term_width = 80
)]
#[command(args_conflicts_with_subcommands = true, infer_subcommands = false)]
#[command(after_help = "\
Examples:
  tapeloop 1ubi.pdb                      print a short table of its residues
  tapeloop 1ubi.pdb --format csv > x.csv all residues and columns
  tapeloop run structures/ -o out        tables of a whole folder, as Parquet
  tapeloop run job.toml                  a run that a config file describes

NO_COLOR turns colours off. TAPELOOP_LOG (else RUST_LOG) sets what is logged: warn, info, debug.")]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Option<CliCommand>,
    #[command(flatten)]
    pub(super) show: ShowArgs,
}

#[derive(Debug, Subcommand)]
pub(super) enum CliCommand {
    /// Compute the features of structures and write them into tables.
    #[command(after_help = EXIT_CODES)]
    Run(Box<RunArgs>),
    /// Pack structures into a set of Arrow files, which runs read without parsing.
    #[command(after_help = packing::EXAMPLES)]
    Pack(Box<PackArgs>),
    /// Show what a packed set holds, or its structures of one name.
    Inspect(InspectArgs),
    /// List the features, with their settings and columns.
    Features(FeaturesArgs),
    /// Print what a publication says of a run: features, sources, settings and references.
    Methods(MethodsArgs),
    /// Write a feature into the B factors of structure files, for molecule viewers.
    Paint(Box<PaintArgs>),
    /// Compare the features of structures with what Python packages compute.
    Validate(Box<ValidateArgs>),
    /// Measure latency and throughput, and write a report.
    Bench(Box<BenchArgs>),
    /// Draw the graph of a batch: tapeloop graph --format svg > graph.svg.
    Graph(Box<GraphArgs>),
    /// Check what a run needs on this machine, and print what is missing.
    Doctor(DoctorArgs),
    /// List the GPUs that a run can use.
    Devices(DevicesArgs),
    /// Kernels of your own, which compute further columns: see docs/config/kernels.md.
    #[command(subcommand)]
    Kernel(KernelCommand),
    /// Print a script that completes commands and options in a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Write the manual pages, tapeloop.1 and one for each command, into a folder.
    Man {
        /// The folder, which must exist.
        folder: PathBuf,
    },
    /// Hold the device for a run with supervise = true; the run starts this command.
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    Worker,
}

#[derive(Debug, Subcommand)]
pub(super) enum KernelCommand {
    /// Write a kernel that works, and a config file that runs it, to start from.
    New {
        /// The name of the kernel: NAME.cu and NAME.toml are written.
        #[arg(value_name = "NAME")]
        path: PathBuf,
    },
}

/// `tapeloop FILE`: `tapeloop run FILE -o - --format table`, of the first structures if a folder has more.
#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// Structure files to print, as the inputs of `tapeloop run`, whose other options are taken too.
    #[arg(value_name = "FILE", value_parser = path_text())]
    pub(super) files: Vec<String>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    overrides: Overrides,
    #[command(flatten)]
    shown: ShownArgs,
}

/// The options of `tapeloop FILE` that its help lists; `tapeloop run --help` lists all of them.
const SHORT_FORM: [&str; 10] = [
    "files",
    "output",
    "format",
    "condition",
    "features",
    "threads",
    "set",
    "verbose",
    "help",
    "version",
];

impl Cli {
    /// The command line as it is parsed. Of the options of `tapeloop FILE` its help lists
    /// [`SHORT_FORM`] alone.
    pub(super) fn shortened() -> clap::Command {
        Cli::command().mut_args(|arg| {
            let is_listed = SHORT_FORM.contains(&arg.get_id().as_str());
            arg.hide(!is_listed)
        })
    }
}

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// Structure files, folders, globs, @lists of them, or - for standard input; a name that ends
    /// in .toml is the config file.
    #[arg(value_name = "INPUT", value_parser = path_text())]
    paths: Vec<String>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    overrides: Overrides,
    /// More inputs: -i FILE FOLDER is the same as FILE FOLDER. May be repeated.
    #[arg(help_heading = heading::INPUTS, short, long, value_name = "INPUT", num_args = 1.., value_parser = path_text())]
    input: Vec<String>,
    /// Members of archives to read, by their names: "*.cif.gz".
    #[arg(help_heading = heading::INPUTS, long, value_name = "GLOB")]
    members: Option<String>,
    /// Structure whose atoms are those of the trajectories (.xtc, .dcd) among the inputs.
    #[arg(help_heading = heading::INPUTS, long, value_name = "FILE")]
    topology: Option<String>,
    /// Frames of each trajectory to read: "100:200:10", start:stop:step.
    #[arg(help_heading = heading::INPUTS, long, value_name = "RANGE", allow_hyphen_values = true)]
    frames: Option<String>,
    /// Read a part of the inputs: "3/16" is the third of sixteen.
    #[arg(help_heading = heading::INPUTS, long, value_name = "K/N")]
    shard: Option<String>,
    /// Config file, whatever its name (TOML; docs/CONFIG.md lists the keys); options override it.
    #[arg(help_heading = heading::SETTINGS, long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    pub(super) shown: ShownArgs,
    /// The most structures that are read.
    #[arg(skip)]
    structures_max: Option<usize>,
}

/// How a run treats its output folder and rejected inputs, and what it prints.
#[derive(Debug, Default, Args)]
pub(super) struct ShownArgs {
    /// Replace the results of another run in the output folder.
    #[arg(help_heading = heading::OUTPUT, long)]
    pub(super) overwrite: bool,
    /// Go on with a run that was killed or interrupted: the results have the same bytes.
    #[arg(help_heading = heading::OUTPUT, long, conflicts_with = "overwrite")]
    pub(super) resume: bool,
    /// Print what the run would do, its memory and the settings that are not the default, and stop.
    #[arg(help_heading = heading::PRINTED, long)]
    pub(super) dry_run: bool,
    /// End with exit code 0 although up to N inputs were rejected; with more it is 3.
    #[arg(help_heading = heading::OUTPUT, long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(super) max_rejects: u64,
    /// Print no progress and no summary; errors, and why nothing was computed, are printed.
    #[arg(help_heading = heading::PRINTED, short, long)]
    pub(super) quiet: bool,
    /// Print the summary where standard error is no terminal too, with the time of each stage.
    #[arg(help_heading = heading::PRINTED, short, long, conflicts_with = "quiet")]
    pub(super) verbose: bool,
    /// Print the summary as JSON to standard output, as run.json has it.
    #[arg(help_heading = heading::PRINTED, long, conflicts_with = "dry_run")]
    pub(super) json: bool,
    /// Print the counts so far twice a second to standard error, as JSON, in place of progress.
    #[arg(help_heading = heading::PRINTED, long, conflicts_with_all = ["dry_run", "quiet"])]
    pub(super) progress_json: bool,
}

/// Where the tables go.
#[derive(Debug, Default, Args)]
struct OutputArgs {
    /// Folder for the tables, or - for the residues on standard output. [default: tapeloop-out]
    #[arg(help_heading = heading::OUTPUT, short, long, value_name = "FOLDER")]
    output: Option<String>,
    /// Format of the tables: parquet, arrow, csv, json (an object in each line), or, on standard
    /// output, table. [default: parquet; on standard output csv]
    #[arg(help_heading = heading::OUTPUT, long, value_name = "FORMAT", hide_possible_values = true)]
    #[arg(value_parser = ["parquet", "arrow", "csv", "json", TABLE], ignore_case = true)]
    format: Option<String>,
    /// Write only the residues that meet a condition: "plddt >= 70 and chain in ('A', 'B')".
    #[arg(help_heading = heading::OUTPUT, long = "where", value_name = "CONDITION")]
    condition: Option<String>,
}

/// Where a run writes.
pub(super) enum OutputTarget {
    Folder(PathBuf),
    /// The residues, to standard output, in the config's format.
    Stdout,
    /// A short table for a reader, to standard output, with the most structures that it lists.
    Table(Option<usize>),
}

#[derive(Debug, Args)]
pub(super) struct DevicesArgs {
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// Config file (TOML; docs/CONFIG.md lists the keys); options override it.
    file: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    set: SetArgs,
    /// Compile all kernels now, for every run to come on this kind of GPU; the fused one only if the
    /// config asks for it.
    #[arg(long)]
    pub(super) warm: bool,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct FeaturesArgs {
    /// Features, presets and columns to explain, or a config file, whose name ends in .toml. Without a
    /// name a line for each feature.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    features: FeatureArgs,
    #[command(flatten)]
    set: SetArgs,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
    /// Print Markdown, the generated part of docs/config/feature-reference.md.
    #[arg(long, conflicts_with = "json")]
    pub(super) markdown: bool,
}

#[derive(Debug, Args)]
pub(super) struct MethodsArgs {
    /// Folder that `tapeloop run` wrote.
    #[arg(value_name = "FOLDER")]
    pub(super) folder: PathBuf,
}

/// How `tapeloop graph` draws.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum GraphFormat {
    Dot,
    Svg,
}

#[derive(Debug, Args)]
pub(super) struct GraphArgs {
    /// Config file (TOML; docs/CONFIG.md lists the keys); options override it.
    file: Option<PathBuf>,
    /// Bucket, from 0, the smallest; the default is that of an ordinary batch.
    #[arg(long, value_name = "N")]
    pub(super) bucket: Option<usize>,
    /// Format to print: svg, by stages; or dot, with every edge, for Graphviz.
    #[arg(
        long,
        value_name = "NAME",
        value_enum,
        default_value = "dot",
        hide_possible_values = true
    )]
    pub(super) format: GraphFormat,
    #[command(flatten)]
    features: FeatureArgs,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    set: SetArgs,
}

#[derive(Debug, Args)]
pub(super) struct PaintArgs {
    /// Structure file; or a directory, glob or @list, with a folder as output.
    #[arg(value_parser = path_text())]
    pub(super) input: String,
    /// Column of residues to write: sasa, ss8, ...; `tapeloop features` lists them.
    #[arg(required_unless_present = "svg")]
    pub(super) column: Option<String>,
    /// File to write, in the input's format, compressed if named .gz; or a folder; or - for
    /// standard output.
    #[arg(short, long, value_name = "PATH", requires = "column")]
    #[arg(required_unless_present = "svg")]
    pub(super) output: Option<PathBuf>,
    /// Also draw the features along the sequence, into this file or folder.
    #[arg(long, value_name = "PATH")]
    pub(super) svg: Option<PathBuf>,
    /// Print neither a line about each file that is written nor what colours it in viewers; errors
    /// are printed.
    #[arg(short, long)]
    pub(super) quiet: bool,
    /// Print those lines where standard error is no terminal too.
    #[arg(short, long, conflicts_with = "quiet")]
    pub(super) verbose: bool,
    /// B factor of atoms without a value [default: of each column its own, as -1 for counts and 13
    /// for distances that end at 12 A].
    #[arg(long, value_name = "VALUE", allow_negative_numbers = true)]
    pub(super) null: Option<f64>,
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

fn is_config(path: &str) -> bool {
    let ending = Path::new(path).extension().and_then(OsStr::to_str);
    !path.starts_with('@') && ending.is_some_and(|ending| ending.eq_ignore_ascii_case("toml"))
}

/// The config file, which `paths` may name if `config` does not, and the inputs among `paths`. An
/// error of kind `Config` if there are two config files.
fn config_and_inputs(
    config: Option<PathBuf>,
    paths: Vec<String>,
) -> Result<(Option<PathBuf>, Vec<String>)> {
    let (configs, inputs): (Vec<String>, Vec<String>) =
        paths.into_iter().partition(|path| is_config(path));
    let configs = configs.iter().map(|path| path_of(path));
    let mut configs: Vec<PathBuf> = config.into_iter().chain(configs).collect();
    if let [first, second, ..] = &configs[..] {
        let (first, second) = (first.display(), second.display());
        let error = Error::config(format!("{first} and {second} are both config files"));
        return Err(error.fix("give one, or run them one after the other"));
    }
    Ok((configs.pop(), inputs))
}

/// The config file of a command that reads no structures.
///
/// # Errors
/// `ErrorKind::Usage`: `file` is a folder, or has the name of a structure file.
fn only_config(file: Option<&Path>) -> Result<Option<&Path>> {
    let name = |file: &Path| {
        file.file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    match file {
        Some(file) if file.is_dir() || Format::from_name(&name(file)).is_some() => {
            let error =
                Error::usage("this is not a config file, and the command takes no structures");
            Err(error.fix("leave it out").within(shown(file)))
        }
        file => Ok(file),
    }
}

impl ShowArgs {
    /// The arguments of the run that prints the files. A config file decides for itself where its
    /// run writes. As many structures are printed as files are named, of a folder the first ones.
    pub(super) fn into_run(self) -> RunArgs {
        let mut output = self.output;
        let mut structures_max = None;
        if output.output.is_none() && !self.files.iter().any(|path| is_config(path)) {
            output.output = Some(STANDARD.to_owned());
            if output.format.is_none() {
                output.format = Some(TABLE.to_owned());
                structures_max = Some(self.files.len().max(STRUCTURES_SHOWN));
            }
        }
        RunArgs {
            paths: self.files,
            input: Vec::new(),
            members: None,
            topology: None,
            frames: None,
            shard: None,
            output,
            config: None,
            overrides: self.overrides,
            shown: self.shown,
            structures_max,
        }
    }
}

// Options override `--set`, and both override the file.

impl RunArgs {
    /// The config of the file and the options, where the run writes, and what it prints.
    ///
    /// # Errors
    /// A key of the file or an option is not valid.
    pub(super) fn resolve(mut self) -> Result<(Config, OutputTarget, ShownArgs)> {
        let (config, mut inputs) = config_and_inputs(self.config, self.paths)?;
        self.overrides.take_feature_names(&mut inputs);
        inputs.extend(self.input);
        let mut raw = self.overrides.raw_config(config.as_deref())?;
        raw.set("--members", "members", self.members);
        raw.set("--topology", "topology", self.topology);
        raw.set("--frames", "frames", self.frames);
        raw.set("--shard", "shard", self.shard);
        raw.set_list("INPUT", "input", inputs);
        raw.set("--output", "output", self.output.output);
        raw.set("--where", "tables.where", self.output.condition);
        let is_stdout = raw.text("output") == Some(STANDARD);
        let format = self.output.format.map(|name| name.to_ascii_lowercase());
        let is_table = format.as_deref() == Some(TABLE);
        match format {
            Some(_) if is_table && !is_stdout => {
                let error = Error::config("--format table is for standard output");
                return Err(error.fix("add -o -, or give parquet, arrow, csv or json"));
            }
            Some(_) if is_table => {}
            Some(format) => raw.set("--format", "tables.format", Some(format)),
            None if is_stdout && raw.set_default("tables.format", TableFormat::Csv.name()) => {
                // The file names no format, so its compression is meant for the default format, not for CSV.
                raw.remove("tables.compression");
                raw.remove("tables.compression_level");
            }
            None => {}
        }
        let config = Config::resolve(raw)?;
        let target = match (is_stdout, is_table) {
            (true, true) => OutputTarget::Table(self.structures_max),
            (true, false) => OutputTarget::Stdout,
            (false, _) => OutputTarget::Folder(folder(&config)?),
        };
        Ok((config, target, self.shown))
    }
}

/// The output folder of a config.
///
/// # Errors
/// [`ErrorKind::Config`](tapeloop::ErrorKind::Config) if the folder does not exist, and its name
/// ends like that of a table, such as `out.csv`.
fn folder(config: &Config) -> Result<PathBuf> {
    let path = &config.output;
    let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    let formats = TableFormat::ALL.map(TableFormat::name);
    let known = formats
        .iter()
        .find(|name| ending.eq_ignore_ascii_case(name));
    match known {
        Some(format) if !path.is_dir() => {
            let name = path.display();
            let error = Error::config(format!(
                "{name} is the name of a file, and a run writes a folder of tables"
            ));
            Err(error.fix(format!(
                "-o - --format {format} > {name} writes one file; -o FOLDER --format {format} a folder"
            )))
        }
        _ => Ok(path.clone()),
    }
}

impl FeaturesArgs {
    /// The config of the file and the options.
    ///
    /// # Errors
    /// A key of the file or an option is not valid.
    pub(super) fn resolve(self) -> Result<(Config, Listing)> {
        let (config, names) = config_and_inputs(None, self.names)?;
        let mut raw = self.set.raw_config(config.as_deref())?;
        self.features.set(&mut raw);
        raw.set_list("NAME", "features", names.clone());
        // What a file, an option or an argument names is explained; else all is listed.
        let listing = if raw.keys().any(|(key, _)| key == "features") {
            Listing::Details(names)
        } else {
            Listing::Index
        };
        Ok((Config::resolve(raw)?, listing))
    }
}

impl DoctorArgs {
    /// The config of the file and the options.
    ///
    /// # Errors
    /// A key of the file or an option is not valid.
    pub(super) fn resolve(self) -> Result<Config> {
        let mut raw = self.set.raw_config(only_config(self.file.as_deref())?)?;
        self.device.set(&mut raw);
        Config::resolve(raw)
    }
}

impl GraphArgs {
    /// The config of the file and the options.
    ///
    /// # Errors
    /// A key of the file or an option is not valid.
    pub(super) fn resolve(self) -> Result<Config> {
        let mut raw = self.set.raw_config(only_config(self.file.as_deref())?)?;
        self.features.set(&mut raw);
        self.engine.set(&mut raw);
        self.device.set(&mut raw);
        Config::resolve(raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_form_lists_arguments_that_exist() {
        let mut command = Cli::command();
        command.build();
        for id in SHORT_FORM {
            let mut arguments = command.get_arguments();
            assert!(arguments.any(|arg| arg.get_id() == id), "{id}");
        }
    }
}
