//! The Python scripts that come with the program, and the Python that runs them.

use std::fs;
use std::path::Path;
use std::process::Command;
use tapeloop::error::{Context, Error, ErrorKind, Result};
use tapeloop_files::{replace, shown};

/// The script that compares; the others are its modules.
const ENTRY: &str = "make_tables.py";

macro_rules! scripts {
    ($($name:literal)*) => {
        /// The scripts of `oracles`, by name.
        const SCRIPTS: &[(&str, &str)] = &[
            $(($name, include_str!(concat!("../../../../oracles/", $name))),)*
        ];
    };
}

scripts! {
    "make_tables.py" "agreement.py" "b_factors.py" "chain_pairs.py" "contacts.py" "coordinates.py"
    "depths.py" "golden.py" "half_spheres.py" "headers.py" "interfaces.py" "ligands.py"
    "networks.py" "reference.py" "secondary.py" "sequences.py" "sheets.py" "side_chains.py"
    "summaries.py" "surface.py" "tables.py" "torsions.py"
}

/// Packages that every script needs. The scripts skip, and list, comparisons whose package is
/// missing.
const NEEDED: [&str; 3] = ["numpy", "scipy", "pyarrow"];

/// A Python that can run the scripts.
pub(super) struct Python {
    name: String,
}

impl Python {
    /// Finds the Python `name`, and checks that it has the packages.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] if it cannot be started or lacks a package.
    pub(super) fn find(name: &str) -> Result<Self> {
        // What begins the answer of a Python, and not the output of another program.
        const ANSWER: &str = "missing:";
        let ask = "import importlib.util, sys\n\
                   missing = [n for n in sys.argv[2:] if not importlib.util.find_spec(n)]\n\
                   print(sys.argv[1], *missing)";
        let output = Command::new(name)
            .args(["-c", ask, ANSWER])
            .args(NEEDED)
            .output();
        let output = output.map_err(|error| {
            let text = format!("`{name}` cannot be started: {error}");
            Error::new(ErrorKind::Unavailable, text)
                .fix("install Python 3.11 or later, or name one with --python")
        })?;
        let answer = String::from_utf8_lossy(&output.stdout);
        let Some(missing) = answer.trim().strip_prefix(ANSWER).map(str::trim) else {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.trim().lines().last().unwrap_or("it prints nothing");
            let text = format!("`{name}` is not a working Python: {last}");
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

    /// Writes the scripts into `folder`, and runs them on the results in `run` and the atoms in
    /// `dump`; `more` are options for them. They print the agreement table. Returns whether all
    /// columns agree.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tapeloop::ErrorKind::Io) if the scripts cannot be written or started.
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
            replace(&folder.join(name), text.as_bytes())?;
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
    fn the_program_has_every_script() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/oracles");
        let files = fs::read_dir(folder).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name.ends_with(".py")).collect();
        names.sort();
        let mut known: Vec<&str> = SCRIPTS.iter().map(|(name, _)| *name).collect();
        known.sort_unstable();
        assert_eq!(names, known);
    }
}
