//! Whether the items of a config lead to files.

use super::folder::list_of_folder;
use super::globs::Glob;
use super::{Archives, STDIN, Shard, Source, Sources, Trajectories, is_packed_name};
use crate::packed::{PackedFile, SetSettings, check_complete};
use serde_json::{Map, Value as Json};
use std::io;
use std::path::{Path, PathBuf};
use tapeloop_error::internal::printable;
use tapeloop_error::{Context, Error, ErrorKind, Result};
use tapeloop_files::did_you_mean;
use tapeloop_files::{path_of, shown};
use tapeloop_structure::Format;

/// A packed set among the inputs: one of its files, and the settings of all of them.
pub type PackedSet = (PathBuf, SetSettings);

/// Checks that each item leads to a file, before a run makes anything, and that no file of a packed
/// set is missing and the set was made with the settings `reader`. Returns the sets, each with
/// settings that no set before has: the first of each item, or with `all_sets` those of nested
/// folders and of lists too, for which everything is listed once. The lines of a list that is a pipe
/// are not looked at.
///
/// # Errors
/// [`ErrorKind::Io`] or [`ErrorKind::Input`] for an item that names nothing, a directory or a glob
/// without structure files, or what is no file, and for a set of which a file is missing.
/// [`ErrorKind::Config`] for a set with another setting.
pub fn check(
    items: &[String],
    trajectories: &Trajectories,
    reader: &Map<String, Json>,
    all_sets: bool,
) -> Result<Vec<PackedSet>> {
    let mut sets = Vec::new();
    let sources_of = |item: &String| {
        Sources::new(vec![item.clone()], Archives::Whole, Shard::WHOLE)
            .with_trajectories(trajectories.whole())
    };
    for item in items {
        let (path, problem) = match item.strip_prefix('@') {
            Some(STDIN) => continue,
            Some(list) => {
                let path = path_of(list);
                if all_sets && path.is_file() {
                    add_sets(sources_of(item), reader, all_sets, &mut sets)?;
                }
                (path, None)
            }
            // An entry that cannot be read is rejected by the run, unless there is nothing else.
            None => {
                let path = path_of(item);
                if path.is_dir() {
                    check_complete(&path).within(|| shown(&path))?;
                }
                let mut sources = sources_of(item);
                match sources.next() {
                    Some(source) if source.content.is_ok() => {
                        let files = std::iter::once(source).chain(sources);
                        add_sets(files, reader, all_sets, &mut sets)?;
                        continue;
                    }
                    Some(source) => match sources.find(|source| source.content.is_ok()) {
                        Some(other) => {
                            let files = std::iter::once(other).chain(sources);
                            add_sets(files, reader, all_sets, &mut sets)?;
                            continue;
                        }
                        None => (source.path, source.content.err()),
                    },
                    None => continue,
                }
            }
        };
        let is_missing = || {
            let found = path.symlink_metadata();
            found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        };
        let problem = match (item.as_str(), problem) {
            (STDIN, _) => None,
            (_, _) if !Glob::is_in(&path) && is_missing() => Some(not_found_error(&path)),
            (_, problem) => problem,
        };
        if let Some(problem) = problem {
            return Err(problem.within(shown(&path)));
        }
    }
    Ok(sets)
}

/// Adds the packed files with settings that `sets` lacks: the first file that can be opened of those
/// that come before any other file, or all with `all_sets`.
fn add_sets(
    files: impl Iterator<Item = Source>,
    reader: &Map<String, Json>,
    all_sets: bool,
    sets: &mut Vec<PackedSet>,
) -> Result<()> {
    let packed = files
        .take_while(|file| all_sets || is_packed_name(&file.path))
        .filter(|file| is_packed_name(&file.path));
    for Source { path, .. } in packed {
        // One that cannot be read is rejected later.
        let Ok(file) = PackedFile::open(&path) else {
            continue;
        };
        let settings = file.settings();
        settings.check_run(reader).within(|| shown(&path))?;
        if sets.iter().all(|(_, known)| known != settings) {
            sets.push((path, settings.clone()));
        }
        if !all_sets {
            break;
        }
    }
    Ok(())
}

/// The error of a path that does not exist, with the most similar name in its folder.
fn not_found_error(path: &Path) -> Error {
    let error = Error::new(ErrorKind::Io, "no such file or folder");
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let parent = path.parent().unwrap_or(Path::new(""));
    let entries = list_of_folder(parent).unwrap_or_default();
    let names: Vec<String> = entries
        .into_iter()
        .map(|entry| entry.name.to_string_lossy().into_owned())
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let has_this_stem = |other: &&&str| {
        let rest = other.strip_prefix(&*name);
        rest.is_some_and(|rest| rest.starts_with('.')) && Format::from_name(other).is_some()
    };
    let near = match names.iter().find(has_this_stem) {
        Some(file) => format!("did you mean `{file}`?"),
        None => did_you_mean(&name, &names),
    };
    let near = near.trim().trim_matches(['(', ')']);
    if !near.is_empty() {
        return error.fix(printable(near).into_owned());
    }
    // The path has one slash of the two.
    let text = path.to_string_lossy();
    let address = ["http:/", "https:/", "ftp:/"]
        .iter()
        .find_map(|start| Some((start, text.strip_prefix(start)?)));
    if let Some((start, rest)) = address {
        let rest = rest.trim_start_matches('/');
        let fix = format!("nothing is downloaded; fetch the file: curl -O {start}/{rest}");
        return error.fix(printable(&fix).into_owned());
    }
    let is_entry_id = name.len() == 4
        && name.starts_with(|first: char| first.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_entry_id {
        let fix = format!(
            "nothing is downloaded; fetch the entry: curl -O https://files.rcsb.org/download/{name}.cif.gz"
        );
        return error.fix(fix);
    }
    error
}
