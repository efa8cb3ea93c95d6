//! Whether the items of a config lead to files.

use super::folder::list_of_folder;
use super::globs::Glob;
use super::{Archives, STDIN, Shard, Source, Sources, Trajectories, is_packed_name};
use crate::cli::config::did_you_mean;
use crate::cli::packed::{PackedFile, SetSettings};
use crate::cli::path_text::{path_of, shown};
use crate::error::{Context, Error, ErrorKind, Result, printable};
use crate::structure::Format;
use serde_json::{Map, Value as Json};
use std::io;
use std::path::Path;

/// Checks that each item leads to a file, before a run makes anything, and that the first file of
/// each packed set that can be opened was read with the settings `reader`. Returns the settings of the first packed
/// set. The lines of lists are not looked at, as a list may be a pipe.
///
/// # Errors
/// [`ErrorKind::Io`] or [`ErrorKind::Input`] for an item that names nothing, a directory or a glob
/// without structure files, or what is no file. [`ErrorKind::Config`] for a set with another
/// setting.
pub(in crate::cli) fn check(
    items: &[String],
    trajectories: &Trajectories,
    reader: &Map<String, Json>,
) -> Result<Option<SetSettings>> {
    let mut packed = None;
    for item in items {
        let (path, problem) = match item.strip_prefix('@') {
            Some(STDIN) => continue,
            Some(list) => (path_of(list), None),
            // An entry that cannot be read is rejected by the run, unless there is nothing else.
            None => {
                let mut sources = Sources::new(vec![item.clone()], Archives::Whole, Shard::WHOLE)
                    .with_trajectories(trajectories.whole());
                match sources.next() {
                    Some(source) if source.content.is_ok() => {
                        let files = std::iter::once(source).chain(sources);
                        let mut files = files.take_while(|file| is_packed_name(&file.path));
                        let settings =
                            files.find_map(|file| check_packed(&file, reader).transpose());
                        packed = packed.or(settings.transpose()?);
                        continue;
                    }
                    Some(_) if sources.any(|source| source.content.is_ok()) => continue,
                    Some(source) => (source.path, source.content.err()),
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
            (_, _) if !Glob::is_in(&path) && is_missing() => Some(not_found(&path)),
            (_, problem) => problem,
        };
        if let Some(problem) = problem {
            return Err(problem.within(shown(&path)));
        }
    }
    Ok(packed)
}

/// The settings of a packed file; `None` if it cannot be read, which rejects it later.
fn check_packed(source: &Source, reader: &Map<String, Json>) -> Result<Option<SetSettings>> {
    let path = &source.path;
    let Ok(file) = PackedFile::open(path) else {
        return Ok(None);
    };
    file.settings().check_run(reader).within(|| shown(path))?;
    Ok(Some(file.settings().clone()))
}

/// The error of a path that does not exist, with the most similar name in its folder.
fn not_found(path: &Path) -> Error {
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
