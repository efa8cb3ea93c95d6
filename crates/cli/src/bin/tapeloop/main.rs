//! The `tapeloop` program.
//!
//! `args` are the command line, and `misuse` explains mistakes in it. `run` computes the features of all
//! inputs with the library of the program ([`tapeloop_cli`]): `progress` shows how far it is, `summary`
//! says at the end how it went, `bottleneck`, `waits` and `run_notes` say what that means, and `run_end`
//! writes it into `run.json`. The other commands have a file each.

mod args;
mod bench;
mod bottleneck;
mod devices;
mod doctor;
mod dry_run;
mod generate;
mod graph;
mod inspect;
mod log;
mod memory;
mod methods;
mod misuse;
mod new_kernel;
mod pack;
mod paint;
mod progress;
mod run;
mod run_end;
mod run_notes;
mod signals;
mod stack;
mod summary;
mod timeline;
mod validate;
mod waits;

use args::{Cli, CliCommand, FeaturesArgs, GraphArgs, KernelCommand};
use std::borrow::Cow;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use tapeloop::error::{Error, Result};
use tapeloop_cli::exit_codes::{self, GOOD};
use tapeloop_cli::feature_list::{self, Listing};
use tapeloop_cli::terminal::{complain, final_code, note, say};
use tapeloop_error::internal::printable;

/// Parses the command line, runs the command, and returns its exit code.
fn main() -> ExitCode {
    // Before anything allocates much or writes, and before calls nest deeply.
    memory::set_up_allocator();
    signals::ignore_size_limit();
    if let Err(error) = stack::check() {
        return failed(&error);
    }
    let cli = match misuse::parse() {
        Ok(cli) => cli,
        Err(help_or_mistake) => return print(&help_or_mistake),
    };
    log::start();
    match command(cli) {
        Ok(code) => ExitCode::from(final_code(code)),
        Err(error) => failed(&error),
    }
}

/// Prints an error, and returns its exit code.
fn failed(error: &Error) -> ExitCode {
    complain(&format!("error: {error}"));
    ExitCode::from(final_code(exit_codes::of_error(error)))
}

/// Prints the help or the version to standard output, or a mistake of the command line to standard
/// error.
fn print(text: &clap::Error) -> ExitCode {
    let is_printable =
        |arg: OsString| matches!(printable(arg.as_encoded_bytes()), Cow::Borrowed(_));
    // clap leaves some control characters of the arguments as they are.
    if !std::env::args_os().all(is_printable) {
        let plain = text.render().to_string();
        if text.use_stderr() {
            complain(plain.trim_end());
        } else {
            say(&plain);
        }
    } else {
        let printed = text.print();
        if !text.use_stderr() {
            note(printed.and_then(|()| std::io::stdout().flush()));
        }
    }
    ExitCode::from(final_code(text.exit_code() as u8))
}

/// Runs a command; without one, `tapeloop FILE` prints tables of the files.
fn command(cli: Cli) -> Result<u8> {
    let Some(command) = cli.command else {
        misuse::check_command(&cli.show.files)?;
        return run::run(cli.show.into_run());
    };
    match command {
        CliCommand::Run(args) => run::run(*args),
        CliCommand::Pack(args) => pack::pack(*args),
        CliCommand::Inspect(args) => inspect::inspect(&args),
        CliCommand::Features(args) => features(args),
        CliCommand::Methods(args) => methods::methods(&args),
        CliCommand::Paint(args) => paint::paint(*args),
        CliCommand::Validate(args) => validate::validate(*args),
        CliCommand::Bench(args) => bench::bench(&args),
        CliCommand::Graph(args) => graph(*args),
        CliCommand::Doctor(args) => {
            let (as_json, warm) = (args.json, args.warm);
            doctor::doctor(&args.resolve()?, as_json, warm)
        }
        CliCommand::Kernel(KernelCommand::New { path }) => new_kernel::new_kernel(&path),
        CliCommand::Devices(args) => devices::devices(args.json),
        CliCommand::Completions { shell } => generate::completions(shell),
        CliCommand::Man { folder } => generate::manual(&folder),
        #[cfg(target_os = "linux")]
        CliCommand::Worker => worker(),
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
    let (config, listing) = args.resolve()?;
    let text = || feature_list::text(&config, &listing);
    say(&match (as_json, as_markdown, &listing) {
        (true, ..) => format!("{:#}\n", feature_list::json(&config, &listing)),
        (_, true, _) => feature_list::markdown(&config),
        (.., Listing::Index) => {
            text() + "\n`tapeloop features NAME` explains a feature or a column.\n"
        }
        (.., Listing::Details(_)) => text(),
    });
    Ok(GOOD)
}

/// `tapeloop worker`.
#[cfg(target_os = "linux")]
fn worker() -> Result<u8> {
    let twins = tapeloop::features::twins();
    // SAFETY: nothing has changed standard input, and only the user who runs this program can start
    // the command from a process that is no tapeloop.
    unsafe { tapeloop::backend::worker::serve(&twins) }?;
    Ok(GOOD)
}
