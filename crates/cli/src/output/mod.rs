//! The output folder: `run.json`, `rejected.jsonl` and the folders of the tables.
//!
//! Results that replace earlier ones are written into a folder within the output folder, and moved
//! after the run has finished (`replace`). `run.json` exists from the start. It has the state of
//! the run and the number of parts that are complete, which stay true after a kill.

mod replace;
mod resume;

use super::tables::{folders, part_of_name};
pub use replace::RECORD_BYTES_MAX;
pub use resume::{Committed, Found, Interrupted, RESUME, decides_no_value, find};
use serde_json::{Value as Json, json};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{ErrorKind as IoKind, Write};
use std::path::{Path, PathBuf};
use tapeloop::error::{Context, Error, Result};
use tapeloop_files::{Existing, FileId, LOCK, check_name, lock, open_to_write};
use tapeloop_files::{current_folder, path_of, shown};
use tapeloop_inputs::STDIN;

/// The file in an output folder that describes the run.
pub const RECORD: &str = "run.json";
const REJECTED: &str = "rejected.jsonl";
/// The state in `run.json` of a run that nothing ended early.
pub const FINISHED: &str = "finished";
/// The folder of results that are to replace earlier ones.
const NEW: &str = ".tapeloop-new";

/// The output folder, locked by this run until it ends.
pub struct OutputFolder {
    /// The folder that the user named.
    named: PathBuf,
    /// The folder that this run writes to: the named one, or [`NEW`] in it.
    path: PathBuf,
    /// The results of an earlier run, which this run replaces.
    earlier: HashSet<FileId>,
    rejected: File,
    rejected_bytes: u64,
    // Held until the end of the run.
    _lock: File,
}

impl OutputFolder {
    /// Creates the folder with one for each of the `tables`, finishes a replacement that an earlier
    /// run began, and removes the temporary files of that run. Earlier results stay until
    /// [`OutputFolder::finish`], and files of any other name are never touched. `reads` are files
    /// that the run reads values from, and `config` is the run's config as `run.json` has it.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](tapeloop::ErrorKind::Usage): the folder has results of another config with
    /// at least one structure, and `overwrite` is false; the run reads one of the results, a link or
    /// a FIFO has the name of a result, or another run writes here.
    /// [`ErrorKind::Io`](tapeloop::ErrorKind::Io): the folder cannot be created.
    pub fn claim(
        path: &Path,
        tables: &[&str],
        overwrite: bool,
        reads: &[PathBuf],
        config: &Json,
    ) -> Result<Self> {
        let place = || shown(path);
        // A link to a folder is one, and so is a folder that is made next.
        if path.metadata().is_ok_and(|meta| !meta.is_dir()) {
            is_folder(path)?;
        }
        fs::create_dir_all(path).within(place)?;
        // Before anything is looked at, as another run may be writing.
        let lock = lock(&path.join(LOCK)).within(place)?;
        replace::resume(path)?;
        let found = results_in(path)?;
        let (mut temporary, mut results): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|file| is_temporary(file));
        // A run that is killed before it writes `run.json` leaves an empty `rejected.jsonl`.
        if let [file] = &results[..]
            && file.ends_with(REJECTED)
            && file.metadata().is_ok_and(|meta| meta.len() == 0)
        {
            temporary.append(&mut results);
        }
        if !overwrite && !results.is_empty() && !may_replace(path, config) {
            let error = Error::usage("the folder holds the results of another run");
            return Err(error
                .fix("name another output, or replace them with --overwrite")
                .within(place()));
        }
        let earlier = ids_of(&results);
        let is_replaced =
            |file: &&PathBuf| FileId::from_path(file).is_some_and(|id| earlier.contains(&id));
        if let Some(file) = reads.iter().find(is_replaced) {
            return Err(replaces_input(file));
        }
        // Nothing was changed so far, and no check follows that could refuse the run.
        for file in temporary {
            fs::remove_file(&file).within(|| shown(&file))?;
        }
        let named = path.to_owned();
        let path = if results.is_empty() {
            named.clone()
        } else {
            named.join(NEW)
        };
        make_folder(&path)?;
        if path != named {
            remove_results(&path)?;
        }
        for folder in tables {
            make_folder(&path.join(folder))?;
        }
        let rejected = path.join(REJECTED);
        Ok(OutputFolder {
            named,
            earlier,
            rejected: open_to_write(&rejected, Existing::Refused)?,
            rejected_bytes: 0,
            path,
            _lock: lock,
        })
    }

    /// The folder that the tables are written to.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of `rejected.jsonl` so far.
    pub fn rejected_bytes(&self) -> u64 {
        self.rejected_bytes
    }

    /// The results of an earlier run. None of them may be an input.
    pub fn earlier(&self) -> &HashSet<FileId> {
        &self.earlier
    }

    /// Appends a rejected input to `rejected.jsonl`, without a buffer, so that a kill loses no line.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tapeloop::ErrorKind::Io) if the file cannot be written.
    pub fn reject(
        &mut self,
        source: &str,
        ordinal: u64,
        model: Option<i32>,
        error: &Error,
    ) -> Result<()> {
        let line = json!({
            "source": source,
            "ordinal": ordinal,
            "model": model,
            "kind": error.kind().name(),
            "reason": error.reason(),
            "fix": error.fix_text(),
        });
        let line = format!("{line}\n");
        let written = self.rejected.write_all(line.as_bytes());
        if written.is_err() {
            // On a full disk, half a line may have been written.
            let _ = self.rejected.set_len(self.rejected_bytes);
        }
        written.within(|| self.place(REJECTED))?;
        self.rejected_bytes += line.len() as u64;
        Ok(())
    }

    /// Replaces `run.json`. `rejected.jsonl` is flushed to the disk before, as the parts have been,
    /// so that `run.json` never counts what a power failure loses.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn record(&self, record: &Json) -> Result<()> {
        self.rejected.sync_all().within(|| self.place(REJECTED))?;
        write_record(&self.path, record)
    }

    /// Writes the last `run.json`, and replaces earlier results if `replaces` is true. Returns the
    /// folder of the results, and releases the lock.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tapeloop::ErrorKind::Io) if a file cannot be written or moved.
    pub fn finish(self, record: &Json, replaces: bool) -> Result<PathBuf> {
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

/// Whether a run with this config may replace the results in a folder without being asked to: they
/// have the same config and inputs, or their run has ended and wrote no structure.
fn may_replace(path: &Path, config: &Json) -> bool {
    let record = replace::read_record(&path.join(RECORD));
    record.is_ok_and(|record| {
        let record = record.unwrap_or_default();
        let is_same = record["config"].is_object()
            && record["config"] == *config
            && record["current_folder"] == json!(current_folder())
            && has_lasting_inputs(config);
        let is_empty = record["state"] != "running" && record["written"]["structures"] == json!(0);
        is_same || is_empty
    })
}

/// Whether the inputs of a config are the same files each time: not a pipe, which has other data.
fn has_lasting_inputs(config: &Json) -> bool {
    let items = config["input"].as_array().map_or(&[][..], Vec::as_slice);
    items.iter().filter_map(Json::as_str).all(|item| {
        let name = item.strip_prefix('@').unwrap_or(item);
        let found = path_of(name).metadata();
        name != STDIN && !found.is_ok_and(|meta| !meta.is_file() && !meta.is_dir())
    })
}

fn ids_of(files: &[PathBuf]) -> HashSet<FileId> {
    files
        .iter()
        .filter_map(|file| FileId::from_path(file))
        .collect()
}

/// The error where the results would replace an input of the run.
pub fn replaces_input(path: &Path) -> Error {
    let error = Error::usage("this input is one of the results that the run would replace");
    error.fix("name another output").within(shown(path))
}

fn write_record(folder: &Path, record: &Json) -> Result<()> {
    let path = folder.join(RECORD);
    tapeloop_files::replace_result(&path, format!("{record:#}\n").as_bytes())
}

/// Creates a folder, unless it exists. A link to a folder is an error.
fn make_folder(path: &Path) -> Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == IoKind::AlreadyExists => {}
        made => return made.within(|| shown(path)),
    }
    is_folder(path).map(drop)
}

/// Whether a folder of this name exists. A file or a link of the name is an error.
fn is_folder(path: &Path) -> Result<bool> {
    match path.symlink_metadata() {
        Ok(meta) if meta.is_dir() => Ok(true),
        Err(error) if error.kind() == IoKind::NotFound => Ok(false),
        Err(error) => Err(Error::io(error)).within(|| shown(path)),
        Ok(meta) => {
            let kind = tapeloop_files::kind_of(meta.file_type());
            let error = Error::usage(format!(
                "this path is {kind}, so no folder can be made here"
            ));
            Err(error
                .fix("remove it, or name another output")
                .within(shown(path)))
        }
    }
}

fn is_temporary(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(b".")
}

/// Removes the files in a folder that have the names of results. An
/// [`ErrorKind::Io`](tapeloop::ErrorKind::Io) error if one cannot be removed; the others stay.
fn remove_results(path: &Path) -> Result<()> {
    for file in results_in(path)? {
        fs::remove_file(&file).within(|| shown(&file))?;
    }
    Ok(())
}

/// The files in a folder that have the names of results, temporary ones included.
///
/// # Errors
/// [`ErrorKind::Io`](tapeloop::ErrorKind::Io) if the folder cannot be read,
/// [`ErrorKind::Usage`](tapeloop::ErrorKind::Usage) if a link, a FIFO or a folder has the name of a
/// result.
fn results_in(path: &Path) -> Result<Vec<PathBuf>> {
    let record = path.join(RECORD);
    let mut found = vec![
        tapeloop_files::temporary_name(&record),
        record,
        path.join(REJECTED),
    ];
    found.retain(|file| file.symlink_metadata().is_ok());
    for folder in folders() {
        let folder = path.join(folder);
        if !is_folder(&folder)? {
            continue;
        }
        for entry in folder.read_dir().within(|| shown(&folder))? {
            let entry = entry.within(|| shown(&folder))?;
            if entry.file_name().to_str().and_then(part_of_name).is_some() {
                found.push(entry.path());
            }
        }
    }
    found.iter().try_for_each(|file| check_name(file))?;
    found.sort();
    Ok(found)
}
