//! The folder of a run's results, and what else lies there.
//!
//! Results that replace earlier ones are written into a folder next to them, and moved once
//! the run has finished (`replace`). `run.json` is there from the start: it says how far the
//! run is and which parts count, after a kill too.

mod replace;

use super::files::{self, FileId, check_name};
use super::path_text::shown;
use super::tables::{folders, part_number};
use crate::error::{Context, Error, Result};
use serde_json::{Value as Json, json};
use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind as IoKind, Write};
use std::path::{Path, PathBuf};

const RECORD: &str = "run.json";
const REJECTED: &str = "rejected.jsonl";
/// Locked by the run that writes here.
const LOCK: &str = ".tapeloop.lock";
/// Where results lie until they replace earlier ones.
const NEW: &str = ".tapeloop-new";

/// The folder, claimed by this run until it ends.
pub(super) struct OutputFolder {
    /// The folder that the user named.
    named: PathBuf,
    /// Where this run writes: the named folder, or one within it.
    path: PathBuf,
    /// The results of an earlier run, which this one replaces.
    earlier: HashSet<FileId>,
    rejected: File,
    rejected_bytes: u64,
    // Keeps a second run from writing here.
    _lock: File,
}

impl OutputFolder {
    /// Makes the folder, finishes a replacement that an earlier run began, and clears away
    /// what that run left unfinished. Results that are there stay until
    /// [`OutputFolder::finish`], and files of any other name are never touched. `reads` are
    /// files that the run takes values from.
    ///
    /// # Errors
    /// It holds results that may not be overwritten or that the run reads, a link or a FIFO
    /// has the name of a result, another run is writing here, or it cannot be made.
    pub(super) fn claim(path: &Path, overwrite: bool, reads: &[PathBuf]) -> Result<Self> {
        let place = || shown(path);
        fs::create_dir_all(path).within(place)?;
        let lock = lock(&path.join(LOCK)).within(place)?;
        replace::resume(path)?;
        let found = results_in(path)?;
        let (temporary, results): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|file| is_temporary(file));
        if !overwrite && !results.is_empty() {
            let error = Error::usage("the folder holds the results of a run");
            return Err(error
                .fix("name another output, or replace them with --overwrite")
                .within(place()));
        }
        let earlier: HashSet<FileId> = results.iter().filter_map(|file| FileId::of(file)).collect();
        let is_replaced =
            |file: &&PathBuf| FileId::of(file).is_some_and(|id| earlier.contains(&id));
        if let Some(file) = reads.iter().find(is_replaced) {
            return Err(replaces_input(file));
        }
        for file in temporary {
            fs::remove_file(&file).within(|| shown(&file))?;
        }
        let named = path.to_owned();
        let path = match results.is_empty() {
            true => named.clone(),
            false => named.join(NEW),
        };
        make_folder(&path)?;
        if path != named {
            remove_results(&path)?;
        }
        for folder in folders() {
            make_folder(&path.join(folder))?;
        }
        let rejected = path.join(REJECTED);
        Ok(OutputFolder {
            named,
            earlier,
            rejected: File::create_new(&rejected).within(|| shown(&rejected))?,
            rejected_bytes: 0,
            path,
            _lock: lock,
        })
    }

    /// Where the tables go.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Results of an earlier run, which no input may be.
    pub(super) fn earlier(&self) -> &HashSet<FileId> {
        &self.earlier
    }

    /// Appends an input that was rejected to `rejected.jsonl`, at once, so that a kill leaves
    /// the line there.
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
        let line = format!("{line}\n");
        let written = self.rejected.write_all(line.as_bytes());
        if written.is_err() {
            // A full disk may have taken half a line.
            let _ = self.rejected.set_len(self.rejected_bytes);
        }
        written.within(|| self.place(REJECTED))?;
        self.rejected_bytes += line.len() as u64;
        Ok(())
    }

    /// Puts `run.json` in place, behind all that it counts: what was rejected is flushed to
    /// the disk before, as the parts are.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn record(&self, record: &Json) -> Result<()> {
        self.rejected.sync_all().within(|| self.place(REJECTED))?;
        write_record(&self.path, record)
    }

    /// Writes the last `run.json` and gives the folder up. Earlier results are replaced
    /// if `replaces`, else they stay. Returns where the results lie.
    ///
    /// # Errors
    /// A file cannot be written or moved.
    pub(super) fn finish(self, record: &Json, replaces: bool) -> Result<PathBuf> {
        self.record(record)?;
        if self.path != self.named && replaces {
            replace::replace(&self.named, record)?;
            return Ok(self.named);
        }
        Ok(self.path)
    }

    fn place(&self, name: &str) -> String {
        shown(&self.path.join(name))
    }
}

/// An input of the run would be replaced by its results.
pub(super) fn replaces_input(path: &Path) -> Error {
    let error = Error::usage("this input is one of the results that --overwrite would replace");
    error.fix("name another output").within(shown(path))
}

fn write_record(folder: &Path, record: &Json) -> Result<()> {
    let path = folder.join(RECORD);
    files::replace_result(&path, format!("{record:#}\n").as_bytes())
}

/// Makes a folder, unless it is there. A link to one is refused.
fn make_folder(path: &Path) -> Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == IoKind::AlreadyExists => {}
        made => return made.within(|| shown(path)),
    }
    is_folder(path).map(drop)
}

/// Whether there is a folder of this name, which no file and no link may have.
fn is_folder(path: &Path) -> Result<bool> {
    match path.symlink_metadata() {
        Ok(meta) if meta.is_dir() => Ok(true),
        Err(error) if error.kind() == IoKind::NotFound => Ok(false),
        Err(error) => Err(Error::io(error)).within(|| shown(path)),
        Ok(meta) => {
            let kind = files::kind_of(meta.file_type());
            let error = Error::usage(format!("this is {kind}, and a folder is to be made here"));
            Err(error
                .fix("remove it, or name another output")
                .within(shown(path)))
        }
    }
}

/// Opens the lock file, in which nothing is written, and locks it against other runs.
fn lock(path: &Path) -> Result<File> {
    check_name(path)?;
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    }
    let file = options.open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(Error::usage("another run is writing here").fix("name another output"))
        }
        // Some network file systems have no locks; then two runs at one place
        // are the user's own business.
        Err(TryLockError::Error(error)) => {
            tracing::debug!(%error, path = shown(path), "no lock on the output folder");
            Ok(file)
        }
    }
}

fn is_temporary(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(b".")
}

/// Removes what runs have made in a folder.
fn remove_results(path: &Path) -> Result<()> {
    for file in results_in(path)? {
        fs::remove_file(&file).within(|| shown(&file))?;
    }
    Ok(())
}

/// Files here that runs have made, or whose names are those of such files.
///
/// # Errors
/// The folder cannot be read, or something else has the name of such a file.
fn results_in(path: &Path) -> Result<Vec<PathBuf>> {
    let record = path.join(RECORD);
    let mut found = vec![files::temporary_name(&record), record, path.join(REJECTED)];
    found.retain(|file| file.symlink_metadata().is_ok());
    for folder in folders() {
        let folder = path.join(folder);
        if !is_folder(&folder)? {
            continue;
        }
        for entry in folder.read_dir().within(|| shown(&folder))? {
            let entry = entry.within(|| shown(&folder))?;
            if entry.file_name().to_str().and_then(part_number).is_some() {
                found.push(entry.path());
            }
        }
    }
    found.iter().try_for_each(|file| check_name(file))?;
    found.sort();
    Ok(found)
}
