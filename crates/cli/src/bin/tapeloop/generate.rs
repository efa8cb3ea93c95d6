//! `tapeloop completions` and `tapeloop man`: files that are made from the command line's own
//! description.

use super::args::Cli;
use clap::CommandFactory;
use clap_complete::Shell;
use std::env;
use std::ffi::OsStr;
use std::path::Path;
use tapeloop::error::{Context, Result};
use tapeloop_cli::exit_codes::GOOD;
use tapeloop_cli::terminal::say;
use tapeloop_files::shown;

/// Prints the completions of a shell, and returns the exit code. They are for the name by which the
/// program was called, as the Python package installs it under another one.
pub(super) fn completions(shell: Shell) -> Result<u8> {
    let called = env::args_os().next().unwrap_or_default();
    let name = Path::new(&called).file_name().and_then(OsStr::to_str);
    let name = name.map(|name| name.strip_suffix(env::consts::EXE_SUFFIX).unwrap_or(name));
    // Scripts cannot hold every file name.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let name = name.filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()));
    let name = name.filter(|name| name.chars().all(is_plain));
    let name = name.unwrap_or("tapeloop");
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), name, &mut script);
    say(&String::from_utf8_lossy(&script));
    Ok(GOOD)
}

/// Writes the manual pages into `folder`, and returns the exit code.
///
/// # Errors
/// A page cannot be written.
pub(super) fn manual(folder: &Path) -> Result<u8> {
    clap_mangen::generate_to(Cli::command(), folder).within(|| shown(folder))?;
    Ok(GOOD)
}
