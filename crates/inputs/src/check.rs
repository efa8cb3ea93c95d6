//! Whether the items of a config lead to files.

use super::archive::ArchiveKind;
use super::folder::{EntryKind, list_of_folder};
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
use tapeloop_trajectory::is_trajectory_name;

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
        // One that cannot be read is rejected by the run, as any input is.
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

/// The error of a path that does not exist, with the most similar name in its folder, or else, where the path is
/// an address, the id of an entry or an accession, where to fetch it.
fn not_found_error(path: &Path) -> Error {
    let error = Error::new(ErrorKind::Io, "no such file or folder");
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let parent = path.parent().unwrap_or(Path::new(""));
    let entries = list_of_folder(parent).unwrap_or_default().into_iter();
    let names = entries.filter_map(|entry| {
        let name = entry.name.to_string_lossy();
        let is_folder = matches!(entry.kind, EntryKind::Folder | EntryKind::LinkedFolder);
        (is_folder || is_input_name(&name)).then(|| name.into_owned())
    });
    let names: Vec<String> = names.collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let has_this_stem = |other: &&&str| {
        let rest = other.strip_prefix(&*name);
        rest.is_some_and(|rest| rest.starts_with('.')) && Format::from_name(other).is_some()
    };
    let near = match names.iter().find(has_this_stem) {
        Some(file) => format!("did you mean `{file}`?"),
        None => did_you_mean(&name, &names),
    };
    // A fix has brackets of its own.
    let near = near.trim().trim_matches(['(', ')']);
    if !near.is_empty() {
        return error.fix(printable(near).into_owned());
    }
    // A path that was cleaned has one slash where the address has two.
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
    match uniprot_accession(&name) {
        Some(accession) => error.fix(format!(
            "nothing is downloaded; fetch the model from https://alphafold.ebi.ac.uk/entry/{accession}"
        )),
        None => error,
    }
}

/// Whether a file of this name may be an input: a structure, an archive, a packed set, a trajectory, a list
/// or a config file.
fn is_input_name(name: &str) -> bool {
    let others = [".txt", ".lst", ".list", ".toml"];
    Format::from_name(name).is_some()
        || ArchiveKind::of_name(name).is_some()
        || is_trajectory_name(name)
        || others.iter().any(|ending| name.ends_with(ending))
}

/// The accession in `P12345`, `AF-P12345-F1` or `AF-P12345-F1-model_v4.cif`, by UniProt's rule
/// (<https://www.uniprot.org/help/accession_numbers>).
fn uniprot_accession(name: &str) -> Option<&str> {
    let name = name.strip_prefix("AF-").unwrap_or(name);
    let accession = name.split(['-', '.']).next()?;
    let is_sign = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    let is_block = |block: &[u8]| {
        block.iter().all(is_sign) && block[0].is_ascii_uppercase() && block[3].is_ascii_digit()
    };
    let [first, second, rest @ ..] = accession.as_bytes() else {
        return None;
    };
    let has_rest = match (first, rest) {
        (b'O' | b'P' | b'Q', [middle @ .., last]) => {
            rest.len() == 4 && middle.iter().all(is_sign) && last.is_ascii_digit()
        }
        _ => matches!(rest.len(), 4 | 8) && rest.chunks(4).all(is_block),
    };
    let is_accession = first.is_ascii_uppercase() && second.is_ascii_digit() && has_rest;
    is_accession.then_some(accession)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accessions_of_uniprot_are_recognized_alone_and_in_names_of_models() {
        for name in [
            "P12345",
            "AF-P12345-F1",
            "AF-P12345-F1-model_v4.cif",
            "Q9Y6K9.pdb",
        ] {
            assert!(uniprot_accession(name).is_some(), "{name}");
        }
        assert_eq!(uniprot_accession("AF-A0A023GPI8-F1"), Some("A0A023GPI8"));
        for name in [
            "",
            "P1234",
            "P123456",
            "p12345",
            "12345P",
            "structure",
            "AF-",
            "A0A023GPIX",
        ] {
            assert_eq!(uniprot_accession(name), None, "{name}");
        }
    }
}
