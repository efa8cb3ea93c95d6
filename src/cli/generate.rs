//! `tapeloop completions` and `tapeloop man`: files that are made from the command line's own
//! description.

use super::args::Cli;
use super::exit_codes::GOOD;
use super::path_text::shown;
use super::terminal::say;
use crate::error::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;
use std::path::Path;

/// Prints the completions of a shell, and returns the exit code.
pub(super) fn completions(shell: Shell) -> Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tapeloop", &mut script);
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
