//! Commands that are nearly right: what to type instead.

use super::args::Cli;
use super::config::did_you_mean;
use super::path_text::path_of;
use crate::error::{Error, Result, printable};
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

/// Options that other programs have, and what to type here.
const OTHER_OPTIONS: [(&str, &str); 12] = [
    ("--gpu", "--backend cuda"),
    ("--cuda", "--backend cuda"),
    ("--cpu", "--backend cpu"),
    ("--jobs", "--threads N"),
    ("-j", "--threads N"),
    ("--csv", "--format csv"),
    ("--parquet", "--format parquet"),
    (
        "--recursive",
        "nothing: folders are read with their subfolders",
    ),
    ("-r", "nothing: folders are read with their subfolders"),
    ("--force", "--overwrite"),
    ("-f", "--overwrite, or --format FORMAT"),
    ("-c", "--config FILE, or the name of the file"),
];

/// Parses the command line.
///
/// # Errors
/// The text of `--help`, or a mistake with what to type instead.
pub(super) fn parse() -> std::result::Result<Cli, clap::Error> {
    Cli::try_parse().map_err(|mut error| {
        if error.kind() == ErrorKind::UnknownArgument
            && let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg)
            && let Some((_, instead)) = OTHER_OPTIONS.iter().find(|(other, _)| other == option)
        {
            let tip = StyledStr::from(format!("type {instead}"));
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
        }
        error
    })
}

/// Checks that the first of the files to print is not a misspelt command.
///
/// # Errors
/// It is a word that names neither a command nor a file.
pub(super) fn check_command(files: &[String]) -> Result<()> {
    let Some(first) = files.first() else {
        return Ok(());
    };
    let is_word = first
        .bytes()
        .all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    if !is_word || path_of(first).exists() {
        return Ok(());
    }
    let cli = Cli::command();
    let commands: Vec<&str> = cli
        .get_subcommands()
        .map(|command| command.get_name())
        .collect();
    let hint = did_you_mean(first, &commands);
    let error = Error::usage(format!(
        "`{}` is neither a command nor a file{hint}",
        printable(first)
    ));
    Err(error.fix("`tapeloop --help` lists the commands"))
}
