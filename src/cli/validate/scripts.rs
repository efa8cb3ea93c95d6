//! The oracle scripts that come with the program, and the Python that runs them.

use super::super::path_text::shown;
use crate::error::{Context, Error, ErrorKind, Result};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The script that compares; the others are its modules.
const ENTRY: &str = "make_tables.py";

macro_rules! scripts {
    ($($name:literal)*) => {
        /// The scripts of `tests/oracles`, by name.
        const SCRIPTS: &[(&str, &str)] = &[
            $(($name, include_str!(concat!("../../../tests/oracles/", $name))),)*
        ];
    };
}

scripts! {
    "make_tables.py" "agreement.py" "b_factors.py" "contacts.py" "golden.py" "half_spheres.py"
    "interfaces.py" "networks.py" "reference.py" "secondary.py" "summaries.py" "surface.py"
    "tables.py" "torsions.py"
}

/// What the scripts cannot do without. Oracles of any other package that is
/// missing are skipped, which the scripts say.
const NEEDED: [&str; 3] = ["numpy", "scipy", "pyarrow"];

/// A Python that can run the scripts.
pub(super) struct Python {
    name: String,
}

impl Python {
    /// Makes sure that `name` is one.
    ///
    /// # Errors
    /// It is not there, or it lacks a package that the scripts need.
    pub(super) fn find(name: &str) -> Result<Self> {
        const ANSWER: &str = "missing:";
        let ask = "import importlib.util, sys\n\
                   missing = [n for n in sys.argv[2:] if not importlib.util.find_spec(n)]\n\
                   print(sys.argv[1], *missing)";
        let output = Command::new(name)
            .args(["-c", ask, ANSWER])
            .args(NEEDED)
            .output();
        let output = output.map_err(|error| {
            let text = format!("no Python at `{name}`: {error}");
            Error::new(ErrorKind::Unavailable, text)
                .fix("install Python 3.11 or later, or name one with --python")
        })?;
        let answer = String::from_utf8_lossy(&output.stdout);
        let Some(missing) = answer.trim().strip_prefix(ANSWER).map(str::trim) else {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.trim().lines().last().unwrap_or("it says nothing");
            let text = format!("`{name}` is no Python that works: {last}");
            return Err(Error::new(ErrorKind::Unavailable, text)
                .fix("name a Python 3.11 or later with --python"));
        };
        if !missing.is_empty() {
            let text = format!("`{name}` lacks {}", missing.replace(' ', ", "));
            return Err(Error::new(ErrorKind::Unavailable, text)
                .fix(format!("{name} -m pip install {missing}")));
        }
        Ok(Python {
            name: name.to_owned(),
        })
    }

    /// Writes the scripts into `folder` and compares `run` with what they make of
    /// `dump`. They print what they find. Returns whether all agrees.
    ///
    /// # Errors
    /// The scripts cannot be written or started.
    pub(super) fn compare(
        &self,
        folder: &Path,
        dump: &Path,
        run: &Path,
        more: &[String],
    ) -> Result<bool> {
        let place = || shown(folder);
        fs::create_dir_all(folder).within(place)?;
        for (name, text) in SCRIPTS {
            fs::write(folder.join(name), text).within(place)?;
        }
        let mut command = Command::new(&self.name);
        command.arg(folder.join(ENTRY)).arg(dump);
        command.arg("--check").arg(run).args(more);
        let status = command.status().within(|| self.name.clone())?;
        Ok(status.success())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_that_another_imports_is_in_the_program() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracles");
        let mut imported = 0;
        for entry in fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let Some(module) = name.strip_suffix(".py") else {
                continue;
            };
            let [from, import, listed] = [
                format!("from {module} import"),
                format!("import {module}\n"),
                format!("\"{module}\""),
            ];
            let imports = |(_, text): &(&str, &str)| {
                text.contains(&from) || text.contains(&import) || text.contains(&listed)
            };
            if SCRIPTS.iter().any(imports) {
                let is_known = SCRIPTS.iter().any(|(known, _)| *known == name);
                assert!(is_known, "{name} is not among the scripts");
                imported += 1;
            }
        }
        assert_eq!(
            imported + 1,
            SCRIPTS.len(),
            "all but the one that is started"
        );
    }
}
