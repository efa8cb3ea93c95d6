//! From what the config names to one file after the other, never collected.
//!
//! The order is fixed by the names alone: items as they are listed, the entries
//! of a directory by the bytes of their names, a list file line by line. What
//! cannot be walked is handed on with its error, in its place, so that it is
//! rejected like any other input.

use crate::error::{Error, Result};
use crate::structure::Format;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// The list that comes in through standard input: `@-`.
pub(super) const STDIN: &str = "-";

/// One input, by its place in the stream.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) ordinal: u64,
    pub(super) path: PathBuf,
    /// Why it cannot even be opened, where that is known already.
    pub(super) problem: Option<Error>,
}

/// Walks the items of a config.
pub(super) struct Sources {
    items: std::vec::IntoIter<String>,
    /// The item that is being walked, and the ordinal that it started at.
    current: (String, u64),
    /// What is open, innermost last.
    open: Vec<Level>,
    next_ordinal: u64,
}

enum Level {
    Folder(PathBuf, std::vec::IntoIter<Name>),
    Glob(Box<glob::Paths>),
    List(PathBuf, Box<dyn BufRead + Send>),
}

/// A directory's entry.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    name: OsString,
    is_folder: bool,
}

impl Sources {
    /// Walks `items`: files, directories, globs and `@` list files.
    pub(super) fn new(items: Vec<String>) -> Self {
        Sources {
            items: items.into_iter(),
            current: (String::new(), 0),
            open: Vec::new(),
            next_ordinal: 0,
        }
    }

    /// Whether a second walk would see the same and take nothing from this one,
    /// which a list out of a pipe does not allow.
    pub(super) fn can_walk_twice(items: &[String]) -> bool {
        let mut lists = items.iter().filter_map(|item| item.strip_prefix('@'));
        lists.all(|list| Path::new(list).is_file())
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

    /// Opens an item of the config or a line of a list: yields it if it is a
    /// file, else the next call walks it.
    fn open_item(&mut self, item: &str) -> Option<Source> {
        let path = PathBuf::from(item);
        match path.metadata() {
            Ok(meta) if meta.is_dir() => self.open_folder(path),
            // A name that holds the characters of a glob and is there is a name.
            Ok(_) => Some(self.source(path, None)),
            Err(_) if item.contains(['*', '?', '[']) => match glob::glob(item) {
                Ok(paths) => {
                    self.open.push(Level::Glob(Box::new(paths)));
                    None
                }
                Err(error) => {
                    let problem = Error::input(format!("not a glob: {error}"));
                    Some(self.source(path, Some(problem)))
                }
            },
            Err(error) => Some(self.source(path, Some(error.into()))),
        }
    }

    fn open_folder(&mut self, folder: PathBuf) -> Option<Source> {
        match names_in(&folder) {
            Ok(names) => {
                self.open.push(Level::Folder(folder, names.into_iter()));
                None
            }
            Err(problem) => Some(self.source(folder, Some(problem))),
        }
    }

    fn open_list(&mut self, list: &str) -> Option<Source> {
        let path = PathBuf::from(list);
        if list == STDIN {
            let lines = BufReader::new(std::io::stdin());
            self.open.push(Level::List(PathBuf::new(), Box::new(lines)));
            return None;
        }
        match File::open(&path) {
            Ok(file) => {
                let folder = path.parent().unwrap_or(Path::new("")).to_owned();
                let lines = BufReader::new(file);
                self.open.push(Level::List(folder, Box::new(lines)));
                None
            }
            Err(error) => Some(self.source(path, Some(error.into()))),
        }
    }

    /// One step of the innermost level. `None` asks for another step.
    fn step(&mut self) -> Option<Source> {
        match self.open.last_mut()? {
            Level::Folder(folder, names) => {
                let Some(Name { name, is_folder }) = names.next() else {
                    self.open.pop();
                    return None;
                };
                let path = folder.join(name);
                if is_folder {
                    self.open_folder(path)
                } else {
                    Some(self.source(path, None))
                }
            }
            Level::Glob(paths) => match paths.next() {
                None => {
                    self.open.pop();
                    None
                }
                Some(Ok(path)) if path.is_dir() => self.open_folder(path),
                Some(Ok(path)) => Some(self.source(path, None)),
                Some(Err(error)) => {
                    let path = error.path().to_owned();
                    Some(self.source(path, Some(std::io::Error::from(error).into())))
                }
            },
            Level::List(folder, lines) => {
                let mut line = Vec::new();
                match lines.read_until(b'\n', &mut line) {
                    Ok(0) => {
                        self.open.pop();
                        None
                    }
                    Ok(_) => {
                        let line = String::from_utf8_lossy(&line);
                        let line = line.trim();
                        if line.is_empty() || line.starts_with('#') {
                            return None;
                        }
                        let item = folder.join(line).display().to_string();
                        self.open_item(&item)
                    }
                    Err(error) => {
                        let list = self.current.0.trim_start_matches('@').into();
                        self.open.pop();
                        Some(self.source(list, Some(error.into())))
                    }
                }
            }
        }
    }

    /// Starts the next item of the config.
    fn start(&mut self, item: String) -> Option<Source> {
        let opened = match item.strip_prefix('@') {
            Some(list) => self.open_list(list),
            None => self.open_item(&item),
        };
        let started = self.next_ordinal - u64::from(opened.is_some());
        self.current = (item, started);
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
                    let path = PathBuf::from(&self.current.0);
                    let problem = Error::input("no structure file is found here").fix(
                        "of directories, .pdb, .ent, .cif and .mmcif files are taken, plain \
                         or with .gz",
                    );
                    return Some(self.source(path, Some(problem)));
                }
                continue;
            }
            let item = self.items.next()?;
            if let Some(source) = self.start(item) {
                return Some(source);
            }
        }
    }
}

/// What a walk takes out of a directory, by name. Names that begin with a dot
/// are left out, and linked directories, which may lead back up.
fn names_in(folder: &Path) -> Result<Vec<Name>> {
    let mut names = Vec::new();
    for entry in folder.read_dir()? {
        let entry = entry?;
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let is_folder = entry.file_type()?.is_dir();
        let is_linked_folder = !is_folder && entry.path().is_dir();
        if is_folder || (!is_linked_folder && Format::from_name(&name.to_string_lossy()).is_some())
        {
            names.push(Name { name, is_folder });
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// The name of the structure that a source holds: the file's, without `.gz` and
/// without the ending before it.
pub(super) fn structure_name(source: &str) -> &str {
    let gz = source.len().saturating_sub(".gz".len());
    let packed = source
        .get(gz..)
        .is_some_and(|end| end.eq_ignore_ascii_case(".gz"));
    let plain = if packed { &source[..gz] } else { source };
    let stem = Path::new(plain).file_stem();
    stem.and_then(OsStr::to_str).unwrap_or(source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn walked(items: &[&Path]) -> Vec<(PathBuf, bool)> {
        let items = items.iter().map(|item| item.display().to_string());
        let sources: Vec<Source> = Sources::new(items.collect()).collect();
        for (source, ordinal) in sources.iter().zip(0..) {
            assert_eq!(source.ordinal, ordinal);
        }
        let seen = |source: Source| (source.path, source.problem.is_none());
        sources.into_iter().map(seen).collect()
    }

    fn folder_with(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        folder
    }

    #[test]
    fn a_directory_is_walked_by_name_and_gives_structure_files_only() {
        let names = [
            "b.cif.gz",
            "a.PDB",
            "c/d.ent",
            "readme.md",
            ".hidden.pdb",
            "z.gz",
        ];
        let folder = folder_with(&names);
        let expected = ["a.PDB", "b.cif.gz", "c/d.ent"];
        let expected: Vec<_> = expected.map(|name| (folder.path().join(name), true)).into();
        assert_eq!(walked(&[folder.path()]), expected);
    }

    #[test]
    fn a_list_gives_its_lines_from_its_own_folder_and_a_named_file_needs_no_ending() {
        let folder = folder_with(&["odd", "x/1.pdb", "x/2.pdb"]);
        let list = folder.path().join("list.txt");
        fs::write(&list, "# which\nodd\r\n\nx\nmissing.pdb\n").unwrap();
        let item = PathBuf::from(format!("@{}", list.display()));
        let at = |name: &str| folder.path().join(name);
        assert_eq!(
            walked(&[&item]),
            [
                (at("odd"), true),
                (at("x/1.pdb"), true),
                (at("x/2.pdb"), true),
                (at("missing.pdb"), false)
            ]
        );
    }

    #[test]
    fn globs_expand_and_what_gives_nothing_is_a_problem_in_its_place() {
        let folder = folder_with(&["1.pdb", "2.pdb", "empty/x.txt", "a[b].pdb"]);
        let at = |name: &str| folder.path().join(name);
        let items = ["?.pdb", "*.cif", "empty", "a[b].pdb"].map(at);
        let items: Vec<&Path> = items.iter().map(PathBuf::as_path).collect();
        assert_eq!(
            walked(&items),
            [
                (at("1.pdb"), true),
                (at("2.pdb"), true),
                (at("*.cif"), false),
                (at("empty"), false),
                (at("a[b].pdb"), true)
            ]
        );
    }

    #[test]
    fn structures_are_named_by_the_stem() {
        assert_eq!(structure_name("x/1abc.pdb.gz"), "1abc");
        assert_eq!(structure_name("pdb1abc.ent"), "pdb1abc");
        assert_eq!(structure_name("AF-P1.model.v4.cif"), "AF-P1.model.v4");
        assert_eq!(structure_name("x/frame.txt"), "frame");
    }
}
