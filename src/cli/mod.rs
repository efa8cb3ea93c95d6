//! The command line program: a config to a run, and a run to its tables.
//!
//! A config (`config`) is resolved into a plan (`plan`). `walk` lists what it names
//! (`inputs`) on a thread of its own, `read` turns files into structures on the pool,
//! `annotations` adds to them, and the engine computes. `sink` puts the results into the
//! tables (`tables`) of the output folder (`output`). `tally` counts meanwhile, `progress`
//! shows the counts, and `report` describes the run at its end.

mod annotations;
mod args;
mod bench;
mod config;
mod devices;
mod doctor;
mod files;
mod graph;
mod heading;
mod inputs;
mod interrupt;
mod listing;
mod log;
mod memory;
mod output;
mod paint;
mod path_text;
mod plan;
mod progress;
mod read;
mod report;
mod run;
mod sink;
mod tables;
mod tally;
mod timeline;
mod trusted_code;
mod validate;
mod walk;

use crate::error::{Error, ErrorKind, Result};
use args::{Cli, Command, FeaturesArgs, GraphArgs};
use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

const GOOD: u8 = 0;
/// Nothing could run, or the run failed.
const FAILED: u8 = 1;
/// The config or the command line is wrong.
const MISUSED: u8 = 2;
/// The run ended, without some of its inputs.
const REJECTED: u8 = 3;

/// Runs the program on the process's arguments.
pub fn main() -> ExitCode {
    memory::give_back_large_blocks();
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
        listing::markdown(&config)
    } else {
        listing::text(&config)
    });
    Ok(GOOD)
}

/// `tapeloop worker`.
#[cfg(target_os = "linux")]
fn worker() -> Result<u8> {
    let twins = crate::features::twins()?;
    trusted_code::serve(&twins)?;
    Ok(GOOD)
}

/// Prints to standard output. Whoever closed it (`| head`) wants no more.
fn say(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Prints a line to standard error, which may be closed: an error of printing goes nowhere.
fn complain(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

fn error_code(error: &Error) -> u8 {
    match error.kind() {
        ErrorKind::Config | ErrorKind::Usage => MISUSED,
        _ => FAILED,
    }
}
