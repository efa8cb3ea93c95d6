//! The reference programs that a file lists; `scripts/build_references.sh` writes one.

use serde::Deserialize;
use std::path::Path;
use tapeloop::error::{Context, Error, Result};
use tapeloop_bench::reference::{Answer, ReferenceProgram};
use tapeloop_files::{open_file, read_text, shown};

/// The running reference programs, by what they do.
#[derive(Default)]
pub(super) struct References {
    /// Programs that run batches as the engine does.
    pub(super) programs: Vec<ReferenceProgram>,
    /// Programs that compute features from files.
    pub(super) tools: Vec<ReferenceProgram>,
}

/// The contents of the file.
#[derive(Deserialize)]
struct ReferencesFile {
    reference: Vec<ReferenceCommand>,
}

#[derive(Deserialize)]
struct ReferenceCommand {
    /// The program and its arguments.
    command: Vec<String>,
}

/// The largest list of references in bytes.
const LIST_BYTES_MAX: u64 = 1 << 20;

impl References {
    /// Starts all programs of a file. A program that does not start is skipped with a warning.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](tapeloop::ErrorKind::Config): the file cannot be read, or is not a list
    /// of references.
    pub(super) fn start(path: Option<&Path>) -> Result<Self> {
        let mut references = References::default();
        let Some(path) = path else {
            return Ok(references);
        };
        let place = || shown(path);
        let text = open_file(path)
            .and_then(|file| read_text(file, LIST_BYTES_MAX))
            .map_err(|error| Error::config(error.to_string()))
            .within(place)?;
        for command in commands(&text).within(place)? {
            match ReferenceProgram::start(&command) {
                Ok(mut program) => match program.ask("tools") {
                    Answer::Done(_) => references.tools.push(program),
                    Answer::Not(_) => references.programs.push(program),
                },
                Err(error) => tracing::warn!(%error, "skipped a reference program"),
            }
        }
        Ok(references)
    }
}

/// The commands of a file. An [`ErrorKind::Config`](tapeloop::ErrorKind::Config) error unless it is
/// the TOML that `scripts/build_references.sh` writes.
fn commands(text: &str) -> Result<Vec<Vec<String>>> {
    let file: ReferencesFile = toml::from_str(text).map_err(|error| {
        Error::config(error.message().trim().to_owned()).fix(
            "write [[reference]] and command = [\"program\", \"argument\"] for each, as \
             scripts/build_references.sh does",
        )
    })?;
    Ok(file
        .reference
        .into_iter()
        .map(|line| line.command)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_lists_of_words() {
        let text = "[[reference]]\nname = \"a\"\ncommand = [\"/a b/c\", \"--serve\"]\n\
                    [[reference]]\ncommand = [\"python3\"]\n";
        let expected = [vec!["/a b/c", "--serve"], vec!["python3"]];
        assert_eq!(commands(text).unwrap(), expected);
        for wrong in [
            "",
            "reference = 3",
            "[[reference]]\nname = \"a\"",
            "[[reference]]\ncommand = [1]",
            "not toml",
        ] {
            assert!(commands(wrong).is_err(), "{wrong}");
        }
    }
}
