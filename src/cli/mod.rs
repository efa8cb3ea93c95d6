//! The command line program.
//!
//! `config` resolves the config, and `plan` chooses the backend for it. During a run, a thread
//! (`source_thread`) lists the files that the config names (`inputs`), the pool reads them into
//! structures (`reading`) with their `annotations`, the engine computes, and `result_writer` puts
//! the results into the tables (`tables`) of the output folder (`output`) or to standard output. `run_counters` counts,
//! `progress` shows the counts, `summary` describes the run at its end, and `run_json` writes that
//! as JSON. `pack` writes structures into a packed set (`packed`), which is an input like any other,
//! and `inspect` shows it. All commands print through `terminal` and end with one of the `exit_codes`.

mod args;
mod bench;
mod bottleneck;
mod config;
mod core_time;
mod devices;
mod doctor;
mod dry_run;
mod exit_codes;
mod feature_engine;
mod feature_list;
#[cfg(any(fuzzing, test))]
pub mod fuzzing;
mod generate;
mod graph;
mod inspect;
mod interrupt;
mod log;
mod memory;
mod misuse;
mod new_kernel;
mod output;
mod oversized;
mod own_kernels;
mod pack;
mod paint;
mod plan;
mod progress;
mod reading;
mod rejected_batches;
mod result_writer;
mod run;
mod run_counters;
mod run_json;
mod run_notes;
mod selection;
mod source_thread;
mod summary;
mod tables;
mod terminal;
mod timeline;
mod trusted_code;
mod validate;

use crate::error::Result;
use args::{Cli, Command, FeaturesArgs, GraphArgs, KernelCommand};
use exit_codes::GOOD;
pub use feature_engine::{FeatureEngine, FeatureStream, Inputs, Next, StreamCounts};
use std::io::Write;
use std::process::ExitCode;
use terminal::{complain, final_code, note, say};
/// The crates of the record batches that [`FeatureStream`] gives.
pub use {arrow_array, arrow_schema};

/// Runs the program on the process's arguments.
pub fn main() -> ExitCode {
    memory::set_up_allocator();
    let cli = match misuse::parse() {
        Ok(cli) => cli,
        Err(help_or_mistake) => return print(&help_or_mistake),
    };
    log::start();
    let outcome = command(cli);
    let code = outcome.unwrap_or_else(|error| {
        complain(&format!("error: {error}"));
        exit_codes::of_error(&error)
    });
    ExitCode::from(final_code(code))
}

/// Prints the help or the version to standard output, or a mistake of the command line to standard
/// error.
fn print(text: &clap::Error) -> ExitCode {
    let printed = text.print();
    if !text.use_stderr() {
        note(printed.and_then(|()| std::io::stdout().flush()));
    }
    ExitCode::from(final_code(text.exit_code() as u8))
}

fn command(cli: Cli) -> Result<u8> {
    let Some(command) = cli.command else {
        misuse::check_command(&cli.show.files)?;
        return run::run(cli.show.into_run());
    };
    match command {
        Command::Run(args) => run::run(*args),
        Command::Pack(args) => pack::pack(*args),
        Command::Inspect(args) => inspect::inspect(&args),
        Command::Features(args) => features(args),
        Command::Paint(args) => paint::paint(*args),
        Command::Validate(args) => validate::validate(*args),
        Command::Bench(args) => bench::bench(&args),
        Command::Graph(args) => graph(*args),
        Command::Doctor(args) => {
            let (as_json, warm) = (args.json, args.warm);
            doctor::doctor(&args.resolve()?, as_json, warm)
        }
        Command::Kernel(KernelCommand::New { path }) => new_kernel::new_kernel(&path),
        Command::Devices(args) => devices::devices(args.json),
        Command::Completions { shell } => generate::completions(shell),
        Command::Man { folder } => generate::manual(&folder),
        #[cfg(target_os = "linux")]
        Command::Worker => worker(),
    }
}

/// `tapeloop graph`.
fn graph(args: GraphArgs) -> Result<u8> {
    let (bucket, format) = (args.bucket, args.format);
    graph::graph(&args.resolve()?, bucket, format)
}

/// `tapeloop features`.
fn features(args: FeaturesArgs) -> Result<u8> {
    let (as_json, as_markdown) = (args.json, args.markdown);
    let config = args.resolve()?;
    say(&match (as_json, as_markdown) {
        (true, _) => format!("{:#}\n", feature_list::json(&config)),
        (_, true) => feature_list::markdown(&config),
        _ => feature_list::text(&config),
    });
    Ok(GOOD)
}

/// `tapeloop worker`.
#[cfg(target_os = "linux")]
fn worker() -> Result<u8> {
    let twins = crate::features::twins();
    trusted_code::serve(&twins)?;
    Ok(GOOD)
}
