//! Resumes a run that was killed, was interrupted or failed.
//!
//! `run.json` has the key `resume` until a run has finished: what the complete parts hold. Everything
//! else is removed, and the inputs behind those parts are computed again.

use super::FINISHED;
use super::{NEW, OutputFolder, RECORD, REJECTED, is_temporary, replace, results_in};
use crate::config::is_removed;
use crate::run_counters::{FindingCounts, RunCounts, WrittenParts};
use crate::tables::{PartFiles, PartStatistics, part_of_name};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};
use tapeloop::error::{Context, Error, Result};
use tapeloop_annotations::Matches;
use tapeloop_files::shown;
use tapeloop_files::{Existing, LOCK, lock, open_to_write};
use tapeloop_inputs::InputRange;

/// The key of `run.json` with the [`Committed`] parts.
pub const RESUME: &str = "resume";

/// Config keys whose values a resumed run may change: the bytes of the tables do not depend on them.
const FREE_KEYS: [&str; 28] = [
    "output",
    "annotations_unmatched",
    "backend",
    "device",
    "devices",
    "nvrtc",
    "kernel_cache",
    "mode",
    "resident_idle_us",
    "resident_busy_us",
    "fusion",
    "transfer",
    "mapped_bytes_max",
    "fallback",
    "verify",
    "slots",
    "threads",
    "wait",
    "batch.residues",
    "batch.residues_max",
    "memory_bytes_max",
    "limits.reading_bytes_max",
    "limits.annotation_bytes_max",
    "batch.deadline_ms",
    "supervise",
    "worker",
    "restarts_max",
    "timeline",
];

/// Whether the tables of a run have the same bytes whatever the value of a key.
pub fn decides_no_value(key: &str) -> bool {
    FREE_KEYS.contains(&key)
}

/// What the complete parts of a run hold.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Committed {
    pub parts: u64,
    /// The files of these parts: one for each table.
    pub files: PartFiles,
    /// Inputs of these parts, rejected ones included.
    pub inputs: u64,
    /// Bytes of `rejected.jsonl` for these inputs.
    pub rejected_bytes: u64,
    /// The inputs of each part.
    pub ranges: Vec<InputRange>,
    pub counts: RunCounts,
    /// What the annotations matched in these inputs.
    pub annotations: Matches,
    /// The first rejected inputs, each with its reason.
    pub rejected: Vec<String>,
    /// The first structures whose files are likely cut short.
    pub truncated: Vec<String>,
    /// The first file without END.
    pub endless: Option<String>,
    /// What the checks of files found in these inputs.
    #[serde(default)]
    pub findings: FindingCounts,
    pub statistics: PartStatistics,
}

impl Committed {
    /// The parts, with the run's counts at the end of the last one.
    pub fn written(&self) -> WrittenParts {
        WrittenParts {
            parts: self.parts,
            counts: self.counts,
        }
    }

    /// Whether the numbers fit each other.
    fn is_consistent(&self) -> bool {
        let tables = self.statistics.tables() as u64;
        let mut inputs = self.ranges.iter().map(|range| range.inputs);
        let all = inputs.try_fold(0_u64, |sum, inputs| sum.checked_add(inputs));
        all == Some(self.inputs)
            && self.parts.checked_mul(tables) == Some(self.files.len() as u64)
            && self.ranges.len() as u64 == self.parts
    }

    /// Checks that the parts in `folder` are as they were written.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](tapeloop::ErrorKind::Usage): a file is gone or has another size, or
    /// `rejected.jsonl` is too short.
    fn check_files(&self, folder: &Path) -> Result<()> {
        let bytes_of = |file: &Path| file.metadata().ok().map(|meta| meta.len());
        let damaged = |file: &Path, found: Option<u64>, bytes: u64| {
            let message = match found {
                Some(found) => {
                    format!("this file has {found} bytes, and the interrupted run wrote {bytes}")
                }
                None => "this file of the interrupted run is gone".to_owned(),
            };
            let error = Error::usage(message).fix("restore it, or start anew with --overwrite");
            Err(error.within(shown(file)))
        };
        for (name, &bytes) in &self.files {
            let file = folder.join(name);
            let found = bytes_of(&file);
            if found != Some(bytes) {
                return damaged(&file, found, bytes);
            }
        }
        // Lines of later inputs may follow.
        let rejected = folder.join(REJECTED);
        let found = bytes_of(&rejected);
        if found.unwrap_or(0) < self.rejected_bytes {
            return damaged(&rejected, found, self.rejected_bytes);
        }
        Ok(())
    }
}

/// What a folder has of an earlier run.
pub enum Found {
    /// Nothing that a run could go on with.
    Nothing,
    /// The results of a run with the same config that has finished, and its `run.json`.
    Finished(Json),
    Interrupted(Box<Interrupted>),
}

/// An interrupted run, whose folder is locked. Nothing has been changed.
pub struct Interrupted {
    named: PathBuf,
    path: PathBuf,
    lock: File,
    pub committed: Committed,
}

/// Looks for an interrupted run in the folder `named`. `header` is `run.json` of the run that is to
/// go on.
///
/// # Errors
/// [`ErrorKind::Usage`](tapeloop::ErrorKind::Usage): the folder has the results of another config, a
/// complete part was changed or is gone, or another run writes here. [`ErrorKind::Io`](tapeloop::ErrorKind::Io):
/// results of an earlier run, which were to be moved, cannot be.
pub fn find(named: &Path, header: &Json) -> Result<Found> {
    let place = || shown(named);
    if !named.is_dir() {
        return Ok(Found::Nothing);
    }
    let lock = lock(&named.join(LOCK)).within(place)?;
    replace::resume(named)?;
    // Results that are to replace others are in a folder of their own.
    let folders = [named.join(NEW), named.to_owned()];
    for path in folders {
        let Some(record) = record_in(&path) else {
            continue;
        };
        let changed = changes(&record, header);
        if !changed.is_empty() {
            let differ = if changed.len() == 1 {
                "differs"
            } else {
                "differ"
            };
            let changed = changed.join(", ");
            let message =
                format!("the folder holds the results of another run: {changed} {differ}");
            return Err(Error::usage(message)
                .fix("run with the same config, or start anew with --overwrite")
                .within(shown(&path)));
        }
        if record["state"] == FINISHED {
            // A run that is killed after it finishes may leave its results in a folder of their own, not yet
            // moved over the earlier ones.
            let has_results = record["written"]["structures"].as_u64() > Some(0);
            let is_moved = path != named && has_results;
            if is_moved {
                replace::replace(named, &record)?;
            }
            let results = if is_moved { named } else { &path };
            if let Some(file) = replace::missing_part(results, &record) {
                let error = Error::usage("this file of the finished run is gone");
                let error = error.fix("restore it, or start anew with --overwrite");
                return Err(error.within(shown(&file)));
            }
            return Ok(Found::Finished(record));
        }
        let committed = Committed::deserialize(&record[RESUME]).map_err(|error| {
            let message = format!("{RECORD} does not say what is complete: {error}");
            let fix = "start anew with --overwrite";
            Error::usage(message).fix(fix).within(shown(&path))
        })?;
        if !committed.is_consistent() {
            let error = Error::usage(format!(
                "{RECORD} states parts and inputs that do not agree"
            ));
            return Err(error
                .fix("start anew with --overwrite")
                .within(shown(&path)));
        }
        committed.check_files(&path)?;
        return Ok(Found::Interrupted(Box::new(Interrupted {
            named: named.to_owned(),
            path,
            lock,
            committed,
        })));
    }
    Ok(Found::Nothing)
}

fn record_in(folder: &Path) -> Option<Json> {
    replace::read_record(&folder.join(RECORD)).ok()?
}

/// What decides the bytes of the results and differs between two records of runs: all keys of the config, or
/// if these are the same, the first other thing.
fn changes(record: &Json, header: &Json) -> Vec<String> {
    let mut changed = Vec::new();
    let (before, now) = (record["config"].as_object(), header["config"].as_object());
    let keys: HashSet<&String> = before
        .into_iter()
        .chain(now)
        .flat_map(|config| config.keys())
        .collect();
    let mut keys: Vec<&String> = keys.into_iter().collect();
    keys.sort();
    for key in keys {
        let is_free = decides_no_value(key) || is_removed(key);
        if !is_free && record["config"][key] != header["config"][key] {
            changed.push(format!("`{key}`"));
        }
    }
    let named = [
        (
            "the backend",
            &record["backend"]["name"],
            &header["backend"]["name"],
        ),
        (
            "the current folder",
            &record["current_folder"],
            &header["current_folder"],
        ),
        (
            "what the annotations hold",
            &record["values_follow_from"]["tapeloop.annotations"],
            &header["values_follow_from"]["tapeloop.annotations"],
        ),
        (
            "the file of `sasa.radii` or of `interaction.components`",
            &record["values_follow_from"]["tapeloop.features"],
            &header["values_follow_from"]["tapeloop.features"],
        ),
        (
            "the program, its kernels or what they read",
            &record["values_follow_from"],
            &header["values_follow_from"],
        ),
    ];
    if changed.is_empty() {
        // The last one includes those before it, so only the first that differs is named.
        let mut differ = named.into_iter().filter(|(_, before, now)| before != now);
        changed.extend(differ.next().map(|(what, ..)| what.to_owned()));
    }
    changed
}

impl Interrupted {
    /// Removes everything behind the complete parts, and returns the folder.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tapeloop::ErrorKind::Io) if a file cannot be changed.
    pub fn open(self) -> Result<OutputFolder> {
        let Interrupted {
            named,
            path,
            lock,
            committed,
        } = self;
        for file in results_in(&path)? {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let part = part_of_name(&name).map(|(part, _)| part);
            if is_temporary(&file) || part.is_some_and(|part| part >= committed.parts) {
                fs::remove_file(&file).within(|| shown(&file))?;
            }
        }
        // Lines of inputs behind the complete parts will be written again.
        let rejected = path.join(REJECTED);
        let mut file = open_to_write(&rejected, Existing::Kept)?;
        let cut = file.set_len(committed.rejected_bytes);
        cut.and_then(|()| file.seek(SeekFrom::End(0)))
            .within(|| shown(&rejected))?;
        let earlier = if path == named {
            HashSet::new()
        } else {
            super::ids_of(&results_in(&named)?)
        };
        Ok(OutputFolder {
            named,
            earlier,
            rejected: file,
            rejected_bytes: committed.rejected_bytes,
            path,
            _lock: lock,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_that_decide_the_bytes_must_be_the_same() {
        let record = |threads: u32, models: &str, backend: &str| {
            json!({
                "config": { "threads": threads, "models": models },
                "backend": { "name": backend },
                "current_folder": "/",
                "values_follow_from": {},
            })
        };
        let first = record(1, "first", "cpu");
        assert_eq!(changes(&first, &record(8, "first", "cpu")), [""; 0]);
        assert_eq!(changes(&first, &record(1, "all", "cuda")), ["`models`"]);
        // A key that the version which began the run had, and that no table depends on.
        let mut older = first.clone();
        older["config"]["scope"] = json!("batch");
        assert_eq!(changes(&older, &first), [""; 0]);
        older["config"]["other"] = json!(1);
        assert_eq!(changes(&older, &first), ["`other`"]);
        assert_eq!(
            changes(&first, &record(1, "first", "cuda")),
            ["the backend"]
        );
        // The config has the names of these files, and the features what is in them.
        let mut other_file = first.clone();
        other_file["values_follow_from"]["tapeloop.features"] = json!("other");
        assert_eq!(
            changes(&first, &other_file),
            ["the file of `sasa.radii` or of `interaction.components`"]
        );
    }

    #[test]
    fn the_manual_lists_the_keys_that_may_change() {
        let manual = include_str!("../../../../docs/config/running.md");
        let (_, list) = manual.split_once("which may change:").unwrap();
        let (list, _) = list.split_once(".\n").unwrap();
        let listed: Vec<&str> = list.split('`').skip(1).step_by(2).collect();
        assert_eq!(
            listed, FREE_KEYS,
            "left: docs/config/running.md, right: FREE_KEYS"
        );
    }
}
