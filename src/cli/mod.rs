//! The command line program.
//!
//! `config` resolves the config, and `plan` chooses the backend for it. During a run, a thread
//! (`source_thread`) lists the files that the config names (`inputs`), the pool reads them into
//! structures (`reading`) with their `annotations`, the engine computes, and `result_writer` puts
//! the results into the tables (`tables`) of the output folder (`output`). `run_counters` counts,
//! `progress` shows the counts, `summary` describes the run at its end, and `run_json` writes that
//! as JSON.

mod annotations;
mod args;
mod bench;
mod config;
mod devices;
mod doctor;
mod feature_list;
mod files;
mod graph;
mod inputs;
mod interrupt;
mod log;
mod memory;
mod output;
mod paint;
mod path_text;
mod plan;
mod progress;
mod reading;
mod result_writer;
mod run;
mod run_counters;
mod run_json;
mod source_thread;
mod summary;
mod tables;
mod timeline;
mod trusted_code;
mod validate;

use crate::error::{Error, ErrorKind, Result};
use args::{Cli, Command, FeaturesArgs, GraphArgs};
use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

const GOOD: u8 = 0;
/// Exit code: nothing could run, or the run failed.
const FAILED: u8 = 1;
/// Exit code: the config or the command line is wrong.
const MISUSED: u8 = 2;
/// Exit code: the run finished, and rejected some inputs.
const REJECTED: u8 = 3;

/// Runs the program on the process's arguments.
pub fn main() -> ExitCode {
    memory::return_large_allocations();
    let cli = Cli::parse();
    log::start();
    let outcome = match cli.command {
        Command::Run(args) => run::run(*args),
        Command::Features(args) => features(args),
        Command::Paint(args) => paint::paint(*args),
        Command::Validate(args) => validate::validate(*args),
        Command::Bench(args) => bench::bench(&args),
        Command::Graph(args) => {
            let GraphArgs { config, bucket } = args;
            config
                .resolve()
                .and_then(|config| graph::graph(&config, bucket))
        }
        Command::Doctor(args) => args.resolve().and_then(|config| doctor::doctor(&config)),
        #[cfg(target_os = "linux")]
        Command::Worker => worker(),
        Command::Devices(args) => devices::devices(args.json),
    };
    let code = outcome.unwrap_or_else(|error| {
        complain(&format!("error: {error}"));
        error_code(&error)
    });
    ExitCode::from(code)
}

/// `tapeloop features`.
fn features(args: FeaturesArgs) -> Result<u8> {
    let config = args.config.resolve()?;
    say(&if args.markdown {
        feature_list::markdown(&config)
    } else {
        feature_list::text(&config)
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

/// Prints to standard output. An error of printing is ignored: `| head` closes the pipe early.
fn say(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Prints a line to standard error, which may be closed; an error of printing is ignored.
fn complain(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

fn error_code(error: &Error) -> u8 {
    match error.kind() {
        ErrorKind::Config | ErrorKind::Usage => MISUSED,
        _ => FAILED,
    }
}
