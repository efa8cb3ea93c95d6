//! Moves the results of a finished run over those of an earlier one.
//!
//! The earlier `run.json` first gets the state `replacing`, and counts no part. The new
//! `run.json` is renamed last. Until then it has its temporary name, so that the folder of the
//! new results does not count parts that have moved. A run that finds the state `replacing`
//! applies the operations that are left. After a kill at any moment, either `run.json` counts one
//! of the two sets of results, or the next run completes the new set.

use super::FINISHED;
use super::{
    NEW, RECORD, is_folder, is_temporary, make_folder, remove_results, results_in, write_record,
};
use crate::config::{OutputTable, TableFormat, TableSet};
use crate::tables::{folders, part_name, part_of_name};
use serde_json::{Value as Json, json};
use std::fs;
use std::io::ErrorKind as IoKind;
use std::path::{Path, PathBuf};
use tapeloop::error::{Context, Result};
use tapeloop_files::shown;
use tapeloop_files::{check_name, open_file, read_all, sync_folder, temporary_name};

const REPLACING: &str = "replacing";

/// A file operation of a replacement.
#[derive(Debug, PartialEq)]
enum FileOperation {
    /// Renames a file, over the one that has the new name.
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
    /// Flushes the names in a folder to the disk.
    Sync(PathBuf),
}

impl FileOperation {
    /// Does the operation. An [`ErrorKind::Io`](tapeloop::ErrorKind::Io) error if the system
    /// refuses it.
    fn apply(&self) -> Result<()> {
        match self {
            FileOperation::Rename(from, to) => fs::rename(from, to).within(|| shown(to)),
            FileOperation::Remove(file) => fs::remove_file(file).within(|| shown(file)),
            FileOperation::Sync(folder) => {
                sync_folder(folder);
                Ok(())
            }
        }
    }
}

/// Replaces the results in the folder `named` by the new ones within it. Their `run.json` is
/// `record`, with the state `finished`.
///
/// # Errors
/// [`ErrorKind::Usage`](tapeloop::ErrorKind::Usage) if a link or a FIFO has the name of a result;
/// nothing has been moved then. [`ErrorKind::Io`](tapeloop::ErrorKind::Io) if a file cannot be
/// moved; [`resume`] does the rest.
pub(super) fn replace(named: &Path, record: &Json) -> Result<()> {
    let parts = Parts::finished(record).expect("a run that replaces results has finished");
    let operations = operations(named, parts)?;
    // A run that was killed here before may have left it; the next line tells of any other error.
    let _ = fs::remove_file(temporary_name(&named.join(RECORD)));
    let mut moving = record.clone();
    moving["state"] = json!(REPLACING);
    moving["written"] = json!({ "parts": 0 });
    write_record(named, &moving)?;
    apply_all(named, &operations)
}

/// Finishes the replacement that a killed run began, if the new results are there.
///
/// # Errors
/// The errors of [`replace`]; `run.json` cannot be read.
pub(super) fn resume(named: &Path) -> Result<()> {
    let new = named.join(NEW);
    let is_replacing =
        read_record(&named.join(RECORD))?.is_some_and(|record| record["state"] == REPLACING);
    if !is_replacing {
        // A run that was killed after it moved everything leaves the folder.
        if is_folder(&new).is_ok_and(|is_there| is_there) && results_in(&new)?.is_empty() {
            remove_empty(&new);
        }
        return Ok(());
    }
    if !is_folder(&new)? {
        return Ok(());
    }
    let record = new.join(RECORD);
    let record = match read_record(&record)? {
        None => read_record(&temporary_name(&record))?,
        record => record,
    };
    let Some(parts) = record.as_ref().and_then(Parts::finished) else {
        return Ok(());
    };
    apply_all(named, &operations(named, parts)?)?;
    tracing::warn!(
        output = shown(named),
        "finished moving the results of an earlier run"
    );
    Ok(())
}

/// The first part that a finished run has written into the folder and that is gone.
pub(super) fn missing_part(folder: &Path, record: &Json) -> Option<PathBuf> {
    let parts = Parts::finished(record)?;
    let mut files = parts.tables.iter().flat_map(|table| {
        let table = folder.join(table.name());
        (0..parts.count).map(move |part| table.join(part_name(part, parts.format)))
    });
    files.find(|file| !file.is_file())
}

/// The parts that each table of a finished run has.
#[derive(Clone, Copy)]
struct Parts {
    count: u64,
    format: TableFormat,
    /// The tables that the run wrote.
    tables: TableSet,
}

impl Parts {
    /// Reads them from a `run.json`, if its state is `finished`.
    fn finished(record: &Json) -> Option<Self> {
        let is_finished = record["state"] == FINISHED;
        let count = is_finished.then(|| record["written"]["parts"].as_u64())??;
        // Earlier versions wrote no other format, and no key.
        let name = record["config"]["tables.format"].as_str();
        let is_named = |format: &TableFormat| name.is_none_or(|name| name == format.name());
        let format = TableFormat::ALL.into_iter().find(is_named)?;
        // Each table has columns. Records that have none are of earlier versions.
        let columns = &record["columns"];
        let has_columns = |table: OutputTable| columns[table.name()].is_object();
        let tables = TableSet::new(|table| columns.is_null() || has_columns(table));
        Some(Parts {
            count,
            format,
            tables,
        })
    }

    /// Whether this file is one of the parts.
    fn has(self, file: &Path) -> bool {
        let folder = file.parent().and_then(Path::file_name);
        let table = folder.and_then(|name| OutputTable::of_name(name.to_str()?));
        let is_written = table.is_some_and(|table| self.tables.contains(table));
        let name = file.file_name().and_then(|name| name.to_str());
        let part = name.and_then(part_of_name);
        let is_one = |(number, format)| number < self.count && format == self.format;
        is_written && part.is_some_and(is_one)
    }
}

/// The file operations that are left of a replacement. The new results have these `parts`.
///
/// # Errors
/// [`ErrorKind::Usage`](tapeloop::ErrorKind::Usage) if a link, a FIFO or a folder has the name of a
/// result.
fn operations(named: &Path, parts: Parts) -> Result<Vec<FileOperation>> {
    let new = named.join(NEW);
    let record = new.join(RECORD);
    let waiting = temporary_name(&record);
    let (earlier, moved) = (results_in(named)?, results_in(&new)?);
    let mut operations = Vec::new();
    if moved.contains(&record) {
        operations.push(FileOperation::Rename(record.clone(), waiting.clone()));
        operations.push(FileOperation::Sync(new.clone()));
    }
    for from in moved {
        if from != record && !is_temporary(&from) {
            let name = from
                .strip_prefix(&new)
                .expect("the file was listed in this folder");
            let to = named.join(name);
            operations.push(FileOperation::Rename(from, to));
        }
    }
    // Files of the earlier results that no new one has replaced.
    let is_left_over = |file: &PathBuf| {
        let name = file.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| part_of_name(name).is_some() && !parts.has(file))
    };
    operations.extend(
        earlier
            .into_iter()
            .filter(is_left_over)
            .map(FileOperation::Remove),
    );
    operations.extend(folders_of(named).map(|folder| FileOperation::Sync(named.join(folder))));
    operations.push(FileOperation::Sync(named.to_owned()));
    operations.push(FileOperation::Rename(waiting, named.join(RECORD)));
    operations.push(FileOperation::Sync(named.to_owned()));
    Ok(operations)
}

/// The folders of tables that the earlier or the new results have.
fn folders_of(named: &Path) -> impl Iterator<Item = &'static str> + '_ {
    let new = named.join(NEW);
    folders().filter(move |folder| named.join(folder).is_dir() || new.join(folder).is_dir())
}

/// Applies all operations and removes the folder of the new results. Makes the folders of tables
/// that the earlier results did not have first.
fn apply_all(named: &Path, operations: &[FileOperation]) -> Result<()> {
    for folder in folders_of(named) {
        make_folder(&named.join(folder))?;
    }
    operations.iter().try_for_each(FileOperation::apply)?;
    let new = named.join(NEW);
    remove_results(&new)?;
    remove_empty(&new);
    Ok(())
}

/// Removes the folder of the new results. A folder in which the user has put something stays.
fn remove_empty(new: &Path) {
    let left = folders().map(|folder| new.join(folder));
    for folder in left.chain([new.to_owned()]) {
        let _ = fs::remove_dir(folder);
    }
}

/// The largest `run.json` in bytes.
pub const RECORD_BYTES_MAX: u64 = 1 << 28;

/// Reads a `run.json`. Returns `None` if there is no file, or if it is not JSON.
///
/// # Errors
/// [`ErrorKind::Usage`](tapeloop::ErrorKind::Usage) if a link or a FIFO has the name,
/// [`ErrorKind::Io`](tapeloop::ErrorKind::Io) if the file cannot be read.
pub(super) fn read_record(path: &Path) -> Result<Option<Json>> {
    check_name(path)?;
    let read = open_file(path).and_then(|file| read_all(file, RECORD_BYTES_MAX));
    match read {
        Ok(text) => Ok(serde_json::from_slice(&text).ok()),
        Err(error) if error.kind() == IoKind::NotFound => Ok(None),
        Err(error) => Err(error).within(|| shown(path)),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::{OutputFolder, REJECTED};
    use super::*;
    use std::collections::BTreeMap;

    /// Parts of the default format.
    fn parquet(count: u64) -> Parts {
        let format = TableFormat::Parquet;
        let tables = TableSet::ALL;
        Parts {
            count,
            format,
            tables,
        }
    }

    /// Puts results of these parts into a folder; each file holds `run`.
    fn put_results(folder: &Path, run: &str, parts: Parts) -> Json {
        let format = parts.format.name();
        for table in folders() {
            fs::create_dir_all(folder.join(table)).unwrap();
            for part in 0..parts.count {
                fs::write(folder.join(format!("{table}/part-{part:05}.{format}")), run).unwrap();
            }
        }
        fs::write(folder.join(REJECTED), run).unwrap();
        let mut record = json!({
            "run": run,
            "state": "finished",
            "written": { "parts": parts.count },
        });
        // Earlier versions did not have the key.
        if parts.format != TableFormat::Parquet {
            record["config"] = json!({ "tables.format": format });
        }
        fs::write(folder.join(RECORD), record.to_string()).unwrap();
        record
    }

    /// A folder with the results of a run, those of a finished run within it, and the record of
    /// the latter.
    fn two_results(earlier: Parts, new: Parts) -> (tempfile::TempDir, Json) {
        let folder = tempfile::tempdir().unwrap();
        put_results(folder.path(), "earlier", earlier);
        let record = put_results(&folder.path().join(NEW), "new", new);
        (folder, record)
    }

    fn contents(folder: &Path) -> BTreeMap<PathBuf, String> {
        let results = results_in(folder).unwrap();
        let file = |path: PathBuf| {
            let text = fs::read_to_string(&path).unwrap();
            (path.strip_prefix(folder).unwrap().to_owned(), text)
        };
        results.into_iter().map(file).collect()
    }

    /// Checks that whatever `run.json` counts is there and of the run that it is the record of.
    fn check_counted(folder: &Path) {
        let Some(record) = read_record(&folder.join(RECORD)).unwrap() else {
            return;
        };
        let format = record["config"]["tables.format"].as_str();
        let format = format.unwrap_or("parquet");
        for part in 0..record["written"]["parts"].as_u64().unwrap() {
            for table in folders() {
                let path = folder.join(format!("{table}/part-{part:05}.{format}"));
                assert_eq!(fs::read_to_string(path).unwrap(), record["run"]);
            }
        }
        assert!(record["state"] != REPLACING || record["written"]["parts"] == 0);
    }

    /// Begins a replacement, runs `count` of its operations, and returns those that are left.
    fn kill_after(count: usize, folder: &Path, record: &Json) -> Vec<FileOperation> {
        let mut left = operations(folder, Parts::finished(record).unwrap()).unwrap();
        let mut moving = record.clone();
        moving["state"] = json!(REPLACING);
        moving["written"] = json!({ "parts": 0 });
        fs::write(folder.join(RECORD), moving.to_string()).unwrap();
        let taken = left.drain(..count);
        taken.into_iter().for_each(|step| step.apply().unwrap());
        left.retain(|step| !matches!(step, FileOperation::Sync(_)));
        left
    }

    #[test]
    fn a_replacement_killed_after_any_operation_is_finished_by_the_next_run() {
        let csv = |count| Parts {
            format: TableFormat::Csv,
            ..parquet(count)
        };
        for (earlier, new) in [
            (parquet(3), parquet(2)),
            (parquet(1), parquet(2)),
            (parquet(1), parquet(0)),
            (parquet(2), csv(2)),
            (csv(3), parquet(1)),
        ] {
            let (folder, record) = two_results(earlier, new);
            let whole = contents(&folder.path().join(NEW));
            let count = operations(folder.path(), new).unwrap().len();
            assert!(
                count > folders().count() * new.count as usize,
                "{count} operations"
            );
            for kill in 0..=count {
                let (folder, _) = two_results(earlier, new);
                let folder = folder.path();
                let left = kill_after(kill, folder, &record);
                check_counted(folder);
                check_counted(&folder.join(NEW));
                // A run that finishes the replacement does the same operations, so killing it there is like killing
                // this run later.
                if !left.is_empty() {
                    let mut again = operations(folder, new).unwrap();
                    again.retain(|step| !matches!(step, FileOperation::Sync(_)));
                    assert_eq!(again, left);
                }
                resume(folder).unwrap();
                assert!(!folder.join(NEW).exists(), "killed after {kill} operations");
                drop(OutputFolder::claim(folder, &[], true, &[], &Json::Null).unwrap());
                let found = contents(folder);
                assert_eq!(found[Path::new(REJECTED)], "new");
                assert_eq!(found, whole, "killed after {kill} operations");
            }
        }
    }

    #[test]
    fn a_replacement_without_its_new_results_is_overwritten_when_asked() {
        let (folder, mut record) = two_results(parquet(2), parquet(1));
        let folder = folder.path();
        record["state"] = json!(REPLACING);
        write_record(folder, &record).unwrap();
        write_record(&folder.join(NEW), &record).unwrap();
        let before = contents(folder);
        let error = OutputFolder::claim(folder, &[], false, &[], &Json::Null)
            .err()
            .unwrap();
        assert!(error.fix_text().unwrap().contains("--overwrite"));
        assert_eq!(contents(folder), before);
        drop(OutputFolder::claim(folder, &[], true, &[], &Json::Null).unwrap());
        assert_eq!(contents(folder), before);
    }

    #[test]
    fn a_link_among_the_results_ends_a_replacement_before_anything_is_lost() {
        let (folder, record) = two_results(parquet(2), parquet(2));
        let folder = folder.path();
        let part = folder.join("chains/part-00001.parquet");
        fs::remove_file(&part).unwrap();
        std::os::unix::fs::symlink(folder.join(RECORD), &part).unwrap();
        let before = fs::read(folder.join(RECORD)).unwrap();
        let error = replace(folder, &record).unwrap_err();
        assert!(error.message().contains("link"), "{error}");
        assert_eq!(fs::read(folder.join(RECORD)).unwrap(), before);
        assert_eq!(contents(&folder.join(NEW)).len(), 2 * folders().count() + 2);
    }
}
