//! The programs that a file names: `scripts/build_references.sh` writes one.

use super::super::path_text::shown;
use crate::bench::reference::{Answer, ReferenceProgram};
use crate::error::{Context, Error, Result};
use std::fs;
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// What runs beside, by what it does.
#[derive(Default)]
pub(super) struct References {
    /// They do batches as the engine does.
    pub(super) programs: Vec<ReferenceProgram>,
    /// They compute on files.
    pub(super) tools: Vec<ReferenceProgram>,
}

impl References {
    /// Starts all programs of a file: tables `[[reference]]`, each with a `command`, a
    /// list of words. One that does not start is left out, and said.
    ///
    /// # Errors
    /// A file that cannot be read or has something else in it.
    pub(super) fn start(path: Option<&Path>) -> Result<Self> {
        let mut references = References::default();
        let Some(path) = path else {
            return Ok(references);
        };
        let place = || shown(path);
        let text = fs::read_to_string(path)
            .map_err(|error| Error::config(error.to_string()))
            .within(place)?;
        for command in commands(&text).within(place)? {
            match ReferenceProgram::start(&command) {
                Ok(mut program) => match program.ask("tools") {
                    Answer::Done(_) => references.tools.push(program),
                    Answer::Not(_) => references.programs.push(program),
                },
                Err(error) => tracing::warn!(%error, "left out"),
            }
        }
        Ok(references)
    }
}

/// The commands of a file.
fn commands(text: &str) -> Result<Vec<Vec<String>>> {
    let table =
        DeTable::parse(text).map_err(|error| Error::config(error.message().trim().to_owned()))?;
    let wrong = || {
        Error::config("it is no list of references").fix(
            "write [[reference]] and command = [\"program\", \"argument\"] for each, as \
             scripts/build_references.sh does",
        )
    };
    let Some(references) = table.get_ref().get("reference") else {
        return Err(wrong());
    };
    let DeValue::Array(references) = references.get_ref() else {
        return Err(wrong());
    };
    let command = |reference: &DeValue<'_>| {
        let DeValue::Table(reference) = reference else {
            return None;
        };
        let DeValue::Array(words) = reference.get("command")?.get_ref() else {
            return None;
        };
        let words = words.iter().map(|word| match word.get_ref() {
            DeValue::String(word) => Some(word.to_string()),
            _ => None,
        });
        words.collect()
    };
    let commands = references.iter();
    commands
        .map(|reference| command(reference.get_ref()).ok_or_else(wrong))
        .collect()
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
