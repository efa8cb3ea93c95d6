//! Lists the files that the config names, one at a time.
//!
//! Names alone decide the order: items as the config lists them, the entries of a directory by the
//! bytes of their names, a list file line by line. An item that cannot be opened becomes a source
//! with an error, and is rejected like any other input.

mod folder;
mod globs;
mod list;
mod unreadable;

use super::config::did_you_mean;
use super::files::kind_of;
use super::path_text::{path_of, shown};
use crate::error::{Error, ErrorKind, Result, printable};
use crate::structure::{Format, gzip};
pub(super) use folder::Skipped;
use folder::{Entry, EntryKind, list_of_folder, structures_in};
use globs::{Glob, Segment};
use list::List;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
pub(super) use unreadable::explained;

/// The name of standard input: `-` is a structure, and `@-` a list.
pub(super) const STDIN: &str = "-";

/// The name of the structure on standard input.
const STDIN_STRUCTURE: &str = "stdin";

/// One input.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) ordinal: u64,
    pub(super) path: PathBuf,
    /// The error, if the input cannot be opened.
    pub(super) problem: Option<Error>,
}

/// Iterates over the inputs that the items of a config name.
pub(super) struct Sources {
    items: std::vec::IntoIter<String>,
    /// The current item, and the ordinal of its first input.
    current: (PathBuf, u64),
    /// Open folders, globs and lists, innermost last.
    open: Vec<Level>,
    next_ordinal: u64,
    skipped: Skipped,
}

enum Level {
    Folder(PathBuf, std::vec::IntoIter<Entry>),
    Glob(GlobLevel),
    List(List),
}

/// A folder whose entries are matched with the segment of a glob at `depth`.
struct GlobLevel {
    glob: Arc<Glob>,
    depth: usize,
    folder: PathBuf,
    /// `None` until the folder is listed.
    entries: Option<std::vec::IntoIter<Entry>>,
}

impl Sources {
    /// Lists the inputs of `items`: files, directories, globs and `@` list files.
    pub(super) fn new(items: Vec<String>) -> Self {
        Sources {
            items: items.into_iter(),
            current: (PathBuf::new(), 0),
            open: Vec::new(),
            next_ordinal: 0,
            skipped: Skipped::default(),
        }
    }

    /// Whether the items can be listed twice. A list from a pipe can be read only once.
    pub(super) fn can_walk_twice(items: &[String]) -> bool {
        let mut lists = items.iter().filter_map(|item| item.strip_prefix('@'));
        lists.all(|list| list != STDIN && path_of(list).is_file())
    }

    /// What was skipped in directories and globs so far.
    pub(super) fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    fn source(&mut self, path: PathBuf, problem: Option<Error>) -> Source {
        let ordinal = self.next_ordinal;
        self.next_ordinal += 1;
        Source {
            ordinal,
            path,
            problem,
        }
    }

    /// Opens an item of the config or a line of a list. Returns it if it is a file; the entries of
    /// a folder, a glob or a list follow in the next steps.
    fn open_item(&mut self, path: PathBuf) -> Option<Source> {
        match path.metadata() {
            Ok(meta) if meta.is_dir() => self.open_folder(path),
            // A file that exists is a file, even if its name has the characters of a glob.
            Ok(meta) if meta.is_file() => Some(self.source(path, None)),
            Ok(meta) => {
                let kind = kind_of(meta.file_type());
                let problem = Error::input(format!("{kind} is no structure file"));
                let fix = "write it into a file; only a @list is read from a pipe";
                Some(self.source(path, Some(problem.fix(fix))))
            }
            Err(_) if Glob::is_in(&path) => match Glob::parse(&path) {
                Ok((start, glob)) => self.open_glob(Arc::new(glob), 0, start),
                Err(problem) => Some(self.source(path, Some(problem))),
            },
            Err(error) => Some(self.source(path, Some(error.into()))),
        }
    }

    fn open_folder(&mut self, folder: PathBuf) -> Option<Source> {
        match structures_in(&folder, &mut self.skipped) {
            Ok(entries) => {
                self.open.push(Level::Folder(folder, entries.into_iter()));
                None
            }
            Err(error) => Some(self.source(folder, Some(error.into()))),
        }
    }

    /// Opens the segment of a glob at `depth`. The segments before it have matched `path`.
    fn open_glob(&mut self, glob: Arc<Glob>, depth: usize, path: PathBuf) -> Option<Source> {
        match glob.segment(depth) {
            None => self.open_match(&glob, path),
            Some(Segment::Folders) if glob.segment(depth + 1).is_none() => {
                // A glob without a leading folder starts in the current one.
                let here = path.as_os_str().is_empty();
                let path = if here { PathBuf::from(".") } else { path };
                path.is_dir().then(|| self.open_folder(path)).flatten()
            }
            Some(Segment::Name(name)) => {
                let path = path.join(name);
                let is_there = path.symlink_metadata().is_ok();
                is_there.then(|| self.open_glob(glob, depth + 1, path))?
            }
            Some(Segment::Pattern(_) | Segment::Folders) => {
                self.open.push(Level::Glob(GlobLevel {
                    glob,
                    depth,
                    folder: path,
                    entries: None,
                }));
                None
            }
        }
    }

    /// Opens a path that matches the whole glob.
    fn open_match(&mut self, glob: &Glob, path: PathBuf) -> Option<Source> {
        match path.metadata() {
            Ok(meta) if meta.is_dir() => self.open_folder(path),
            _ if glob.folders_only() => None,
            Ok(meta) if !meta.is_file() => {
                self.skipped.specials += 1;
                None
            }
            _ => Some(self.source(path, None)),
        }
    }

    fn open_list(&mut self, path: PathBuf) -> Option<Source> {
        if path == Path::new(STDIN) {
            return self.push_list(PathBuf::from("@-"), PathBuf::new(), io::stdin());
        }
        // A list may be a FIFO, such as the shell's <(...); its folder has no inputs.
        let is_file = path.is_file();
        match File::open(&path) {
            Ok(file) => {
                let folder = path.parent().filter(|_| is_file);
                let folder = folder.unwrap_or(Path::new("")).to_owned();
                self.push_list(path, folder, file)
            }
            Err(error) => Some(self.source(path, Some(error.into()))),
        }
    }

    fn push_list(
        &mut self,
        path: PathBuf,
        folder: PathBuf,
        lines: impl Read + Send + 'static,
    ) -> Option<Source> {
        self.open.push(Level::List(List::new(path, folder, lines)));
        None
    }

    /// Advances the innermost level. `None` asks for another step.
    fn step(&mut self) -> Option<Source> {
        match self.open.last_mut()? {
            Level::Folder(folder, entries) => {
                let Some(Entry { name, kind }) = entries.next() else {
                    self.open.pop();
                    return None;
                };
                let path = folder.join(name);
                match kind {
                    EntryKind::Folder => self.open_folder(path),
                    _ => Some(self.source(path, None)),
                }
            }
            Level::Glob(_) => self.step_glob(),
            Level::List(list) => match list.next() {
                Ok(None) => {
                    self.open.pop();
                    None
                }
                Ok(Some(item)) => item.and_then(|item| self.open_item(item)),
                Err(problem) => {
                    let path = list.path.clone();
                    self.open.pop();
                    Some(self.source(path, Some(problem)))
                }
            },
        }
    }

    fn step_glob(&mut self) -> Option<Source> {
        let Some(Level::Glob(level)) = self.open.last_mut() else {
            return None;
        };
        let Some(entries) = &mut level.entries else {
            match list_of_folder(&level.folder) {
                Ok(entries) => level.entries = Some(entries.into_iter()),
                Err(error) => {
                    let folder = std::mem::take(&mut level.folder);
                    self.open.pop();
                    return Some(self.source(folder, Some(error.into())));
                }
            }
            return None;
        };
        let Some(entry) = entries.next() else {
            self.open.pop();
            return None;
        };
        let (glob, depth) = (Arc::clone(&level.glob), level.depth);
        let path = level.folder.join(&entry.name);
        let is_any_depth = matches!(glob.segment(depth), Some(Segment::Folders));
        // `**` may stand for no folder; then the next segment matches.
        let next = depth + usize::from(is_any_depth);
        let matches = glob
            .segment(next)
            .is_some_and(|segment| segment.matches(&entry.name));
        // A folder that matches the whole glob is listed, and not matched again.
        let is_walked = matches && glob.segment(next + 1).is_none();
        if is_any_depth && entry.kind == EntryKind::Folder && !is_walked {
            self.open_glob(Arc::clone(&glob), depth, path.clone());
        }
        if matches {
            return self.open_glob(glob, next + 1, path);
        }
        None
    }

    /// Starts the next item of the config.
    fn start(&mut self, item: &str) -> Option<Source> {
        let started = self.next_ordinal;
        let opened = match item.strip_prefix('@') {
            Some(list) => self.open_list(path_of(list)),
            None if item == STDIN => Some(self.source(PathBuf::from(STDIN), None)),
            None => self.open_item(path_of(item)),
        };
        self.current = (path_of(item), started);
        opened
    }
}

impl Iterator for Sources {
    type Item = Source;

    fn next(&mut self) -> Option<Source> {
        loop {
            if !self.open.is_empty() {
                if let Some(source) = self.step() {
                    return Some(source);
                }
                if self.open.is_empty() && self.current.1 == self.next_ordinal {
                    return Some(self.nothing_found());
                }
                continue;
            }
            let item = self.items.next()?;
            if let Some(source) = self.start(&item) {
                return Some(source);
            }
            if self.open.is_empty() {
                return Some(self.nothing_found());
            }
        }
    }
}

impl Sources {
    /// The error of an item that names no file.
    fn nothing_found(&mut self) -> Source {
        let path = self.current.0.clone();
        let endings = Format::all_endings();
        let others = match &self.skipped.first_others[..] {
            [first, ..] => format!(
                " among {} files, such as {}",
                self.skipped.others,
                shown(first)
            ),
            [] => String::new(),
        };
        let problem = Error::input(format!("no structure file is found here{others}")).fix(
            format!("name files, or directories with {endings} files, plain or with .gz"),
        );
        self.source(path, Some(problem))
    }
}

/// Checks that each item leads to a file, before a run makes anything. The lines of lists are
/// not looked at, as a list may be a pipe.
///
/// # Errors
/// [`ErrorKind::Io`] or [`ErrorKind::Input`] for an item that names nothing, a directory or a glob
/// without structure files, or what is no file.
pub(super) fn check(items: &[String]) -> Result<()> {
    for item in items {
        let (path, problem) = match item.strip_prefix('@') {
            Some(STDIN) => continue,
            Some(list) => (path_of(list), None),
            // An entry that cannot be read is rejected by the run, unless there is nothing else.
            None => {
                let mut sources = Sources::new(vec![item.clone()]);
                match sources.next() {
                    Some(source) if source.problem.is_none() => continue,
                    Some(_) if sources.any(|source| source.problem.is_none()) => continue,
                    Some(source) => (source.path, source.problem),
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
    Ok(())
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

/// The name of the structure in a source: the file's name without `.gz` and without the ending
/// before it.
pub(super) fn structure_name(source: &str) -> &str {
    if source == STDIN {
        return STDIN_STRUCTURE;
    }
    let plain = gzip::unpacked_name(source).unwrap_or(source);
    let stem = Path::new(plain).file_stem();
    stem.and_then(OsStr::to_str).unwrap_or(source)
}

#[cfg(test)]
mod tests;
