//! The command line program.
//!
//! `config` resolves the config, and `plan` chooses the backend for it. During a run, a thread
//! (`source_thread`) lists the files that the config names (`inputs`), the pool reads them into
//! structures (`reading`) with their `annotations`, the engine computes, and `result_writer` puts
//! the results into the tables (`tables`) of the output folder (`output`). `run_counters` counts,
//! `progress` shows the counts, `summary` describes the run at its end, and `run_json` writes that
//! as JSON. All commands print through `terminal` and end with one of the `exit_codes`.

mod annotations;
mod args;
mod bench;
mod bottleneck;
mod config;
mod core_time;
mod devices;
mod doctor;
mod exit_codes;
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
mod terminal;
mod timeline;
mod trusted_code;
mod validate;

use crate::error::Result;
use args::{Cli, Command, FeaturesArgs, GraphArgs};
use clap::Parser;
use exit_codes::GOOD;
use std::process::ExitCode;
use terminal::{complain, say};

/// Runs the program on the process's arguments.
pub fn main() -> ExitCode {
    memory::set_up_allocator();
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
        exit_codes::of_error(&error)
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
