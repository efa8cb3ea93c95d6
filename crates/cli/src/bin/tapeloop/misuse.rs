//! Commands that are nearly right: what to type instead.

use super::args::Cli;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, FromArgMatches};
use tapeloop::error::{Error, Result};
use tapeloop_cli::config::are_features;
use tapeloop_error::internal::printable;
use tapeloop_files::path_of;
use tapeloop_files::{did_you_mean, nearest};

/// Options that other programs have, and what to type here.
const OTHER_OPTIONS: [(&str, &str); 21] = [
    ("--gpu", "--backend cuda"),
    ("--cuda", "--backend cuda"),
    ("--cpu", "--backend cpu"),
    ("--jobs", "--threads N"),
    ("-j", "--threads N"),
    ("-t", "--threads N"),
    ("--csv", "--format csv"),
    ("--json", "--format json"),
    ("--parquet", "--format parquet"),
    (
        "--recursive",
        "nothing: folders are read with their subfolders",
    ),
    ("-r", "nothing: folders are read with their subfolders"),
    ("--force", "--overwrite"),
    (
        "-f",
        "--features NAMES, --format FORMAT or --overwrite, which have no short form",
    ),
    ("--chain", "--where \"chain == 'A'\""),
    ("--chains", "--where \"chain in ('A', 'B')\""),
    ("--model", "--models first or --models all"),
    ("--outdir", "--output FOLDER"),
    ("-c", "--config FILE, or the name of the file"),
    // Options that users try on commands that only print.
    ("-o", "> FILE: this command prints to standard output"),
    ("--output", "> FILE: this command prints to standard output"),
    ("--features", "--set features=[\"NAME\"]"),
];

/// Parses the command line.
///
/// # Errors
/// The text of `--help`, or a mistake with what to type instead.
pub(super) fn parse() -> std::result::Result<Cli, clap::Error> {
    let matches = Cli::shortened().try_get_matches();
    let parsed = matches.and_then(|matches| Cli::from_arg_matches(&matches));
    parsed.map_err(|mut error| {
        if error.kind() == ErrorKind::UnknownArgument
            && let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg)
        {
            let other = OTHER_OPTIONS.iter().find(|(other, _)| other == option);
            let instead = match other {
                Some((_, instead)) => Some((*instead).to_owned()),
                None => tip_of_paint(option),
            };
            let tips = match (instead, error.get(ContextKind::Suggested)) {
                (Some(instead), _) => vec![StyledStr::from(format!("type {instead}"))],
                (None, Some(ContextValue::StyledStrs(tips))) => {
                    let tips = tips.iter().cloned();
                    tips.filter(|tip| !is_about_values(tip)).collect()
                }
                _ => return error,
            };
            if tips.is_empty() {
                error.remove(ContextKind::Suggested)
            } else {
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips))
            };
        }
        if error.kind() == ErrorKind::InvalidSubcommand
            && let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
            && let Some(command) = nearest(word, &command_names(&Cli::command()))
        {
            let tip = StyledStr::from(format!("did you mean `{command}`?"));
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
        }
        error
    })
}

/// The names of the commands that the help lists.
fn command_names(cli: &Command) -> Vec<&str> {
    let commands = cli.get_subcommands();
    let listed = commands.filter(|command| !command.is_hide_set());
    listed.map(Command::get_name).collect()
}

/// Whether a tip of clap says to type `-- --json`, which would be the name of a file.
fn is_about_values(tip: &StyledStr) -> bool {
    tip.to_string().contains("as a value")
}

/// What to type in place of an argument of `paint` that is one too many: its output, which other programs take
/// without an option, or with an output a second column.
fn tip_of_paint(argument: &str) -> Option<String> {
    let mut arguments = std::env::args().skip(1);
    if argument.starts_with('-') || arguments.next()? != "paint" {
        return None;
    }
    let is_output =
        |argument: String| argument.starts_with("-o") || argument.starts_with("--output");
    Some(if arguments.any(is_output) {
        "one column; --svg FILE draws all columns".to_owned()
    } else {
        format!("-o {argument}")
    })
}

/// Checks that the first of the files to print is not a misspelt command.
///
/// # Errors
/// [`ErrorKind::Usage`](tapeloop::ErrorKind::Usage) if the first file is a word that names neither
/// a command nor a file.
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
    let commands = command_names(&cli);
    if commands.contains(&first.as_str()) {
        let error = Error::usage(format!("the command `{first}` stands behind an option"));
        return Err(error.fix(format!("begin with it: tapeloop {first} ...")));
    }
    let hint = match first.as_str() {
        "version" => " (type --version)".to_owned(),
        word if are_features(word) => format!(" (type --features {word} after the files)"),
        word => did_you_mean(word, &commands),
    };
    let error = Error::usage(format!(
        "`{}` is neither a command nor a file{hint}",
        printable(first)
    ));
    Err(error.fix("`tapeloop --help` lists the commands"))
}
