//! `tapeloop completions` and `tapeloop man`: files that are made from the command line's own
//! description.

use super::args::Cli;
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use std::env;
use std::ffi::OsStr;
use std::path::Path;
use tapeloop::error::{Context, Result};
use tapeloop::features::FeatureName;
use tapeloop_cli::config::{Config, RawConfig, SettingValues, column_names};
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
    let mut command = with_values(Cli::command(), &values()?);
    clap_complete::generate(shell, &mut command, name, &mut script);
    say(&String::from_utf8_lossy(&script));
    Ok(GOOD)
}

/// What a shell completes after an argument, by the argument's id.
fn values() -> Result<Vec<(&'static str, Vec<String>)>> {
    let config = Config::resolve(RawConfig::default())?;
    let mut values = Vec::new();
    let mut assignments = Vec::new();
    for (key, _) in &config.settings {
        let words = config.values.get(*key).map_or(&[][..], choices);
        assignments.push(format!("{key}="));
        assignments.extend(words.iter().map(|word| format!("{key}={word}")));
        if !words.is_empty() {
            // The option of a key has its name as its id.
            let words = words.iter().map(|word| (*word).to_owned());
            values.push((*key, words.collect::<Vec<String>>()));
        }
    }
    let columns = column_names();
    let mut names = columns.clone();
    names.extend(
        FeatureName::ALL
            .iter()
            .map(|feature| feature.name().to_owned()),
    );
    names.extend(
        FeatureName::PRESETS
            .iter()
            .map(|(preset, _)| (*preset).to_owned()),
    );
    names.sort();
    names.dedup();
    values.push(("features", names.clone()));
    values.push(("names", names));
    values.push(("column", columns));
    values.push(("set", assignments));
    Ok(values)
}

/// The words of which a key takes one; none if it takes something else.
fn choices(values: &SettingValues) -> &[&'static str] {
    match values {
        SettingValues::Choice(words) => words,
        _ => &[],
    }
}

/// The command with the values that its arguments may have. Parsing takes others too, such as lists of
/// names, so it does not use this.
fn with_values(command: Command, values: &[(&str, Vec<String>)]) -> Command {
    let with_values_of = |arg: Arg| match values.iter().find(|(id, _)| arg.get_id() == id) {
        Some((_, words)) => arg.value_parser(PossibleValuesParser::new(words.clone())),
        None => arg,
    };
    command
        .mut_args(with_values_of)
        .mut_subcommands(|command| with_values(command, values))
}

/// Writes the manual pages into `folder`, and returns the exit code.
///
/// # Errors
/// A page cannot be written, or a link or a FIFO has its name.
pub(super) fn manual(folder: &Path) -> Result<u8> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    write_pages(command, folder)?;
    Ok(GOOD)
}

/// Writes the page of a command, and those of its subcommands.
fn write_pages(command: Command, folder: &Path) -> Result<()> {
    let listed = command.get_subcommands();
    for subcommand in listed.filter(|command| !command.is_hide_set()) {
        write_pages(subcommand.clone(), folder)?;
    }
    let page = Man::new(command);
    let path = folder.join(page.get_filename());
    let mut text = Vec::new();
    page.render(&mut text).within(|| shown(&path))?;
    tapeloop_files::replace(&path, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_complete_features_columns_and_keys() {
        let mut script = Vec::new();
        let mut command = with_values(Cli::command(), &values().unwrap());
        clap_complete::generate(Shell::Bash, &mut command, "tapeloop", &mut script);
        let script = String::from_utf8(script).unwrap();
        for word in [
            "ligand_dmin",
            "torsions",
            "exposure",
            "sasa.points=",
            "sasa.chains=own",
            "resident",
        ] {
            assert!(script.contains(word), "{word}");
        }
    }
}
