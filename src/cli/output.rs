//! The folder of a run's results, and what else lies there.

use super::tables::{folders, is_part_name};
use crate::error::{Context, Error, Result};
use serde_json::{Value as Json, json};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{BufWriter, ErrorKind as IoKind, Write};
use std::path::{Path, PathBuf};

const RECORD: &str = "run.json";
const REJECTED: &str = "rejected.jsonl";

/// The folder, claimed by this run until it ends.
pub(super) struct OutputFolder {
    path: PathBuf,
    // Locked, so that no second run writes here meanwhile.
    rejected: BufWriter<File>,
}

impl OutputFolder {
    /// Makes the folder, and clears away what an earlier run left: unfinished
    /// parts always, its results only if they may be overwritten. Files of any
    /// other name are never touched.
    ///
    /// # Errors
    /// It holds results, another run is writing here, or it cannot be made.
    pub(super) fn claim(path: &Path, overwrite: bool) -> Result<Self> {
        let place = || path.display().to_string();
        fs::create_dir_all(path).within(place)?;
        let found = results_in(path).within(place)?;
        if !overwrite && found.iter().any(|file| !is_temporary(file)) {
            let error = Error::usage("the folder holds the results of a run");
            return Err(error
                .fix("name another output, or replace them with --overwrite")
                .within(place()));
        }
        let rejected = lock(&path.join(REJECTED)).within(place)?;
        for file in found {
            fs::remove_file(&file).within(|| file.display().to_string())?;
        }
        rejected.set_len(0).within(place)?;
        for folder in folders() {
            fs::create_dir_all(path.join(folder)).within(place)?;
        }
        Ok(OutputFolder {
            path: path.to_owned(),
            rejected: BufWriter::new(rejected),
        })
    }

    /// The folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends an input that was rejected to `rejected.jsonl`.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn reject(
        &mut self,
        source: &str,
        ordinal: u64,
        model: Option<i32>,
        error: &Error,
    ) -> Result<()> {
        let mut reason: Vec<&str> = error.places().collect();
        reason.push(error.message());
        let line = json!({
            "source": source,
            "ordinal": ordinal,
            "model": model,
            "kind": format!("{:?}", error.kind()).to_lowercase(),
            "reason": reason.join(": "),
            "fix": error.fix_text(),
        });
        writeln!(self.rejected, "{line}").within(|| self.place(REJECTED))
    }

    /// Writes `run.json`, whole or not at all, and gives the folder up.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn finish(mut self, record: &Json) -> Result<()> {
        self.rejected.flush().within(|| self.place(REJECTED))?;
        let path = self.path.join(RECORD);
        let temporary = self.path.join(format!(".{RECORD}.tmp"));
        let text = format!("{record:#}\n");
        fs::write(&temporary, text)
            .and_then(|()| fs::rename(&temporary, &path))
            .within(|| path.display().to_string())
    }

    fn place(&self, name: &str) -> String {
        self.path.join(name).display().to_string()
    }
}

/// Opens a file and locks it against other runs.
fn lock(path: &Path) -> Result<File> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(Error::usage("another run is writing here").fix("name another output"))
        }
        // Some network file systems have no locks; then two runs at one place
        // are the user's own business.
        Err(TryLockError::Error(error)) => {
            tracing::debug!(%error, path = %path.display(), "no lock on the output folder");
            Ok(file)
        }
    }
}

fn is_temporary(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(b".")
}

/// Files here that runs have made, but for `rejected.jsonl`, which every run
/// begins anew.
fn results_in(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for name in [RECORD.to_owned(), format!(".{RECORD}.tmp")] {
        let file = path.join(name);
        if file.exists() {
            found.push(file);
        }
    }
    for folder in folders() {
        let entries = match path.join(folder).read_dir() {
            Err(error) if error.kind() == IoKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            if entry.file_name().to_str().is_some_and(is_part_name) {
                found.push(entry.path());
            }
        }
    }
    Ok(found)
}
