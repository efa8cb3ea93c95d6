//! From what the config names to one file after the other, never collected.
//!
//! The order is fixed by the names alone: items as they are listed, the entries
//! of a directory by the bytes of their names, a list file line by line. What
//! cannot be walked is handed on with its error, in its place, so that it is
//! rejected like any other input.

use super::files::kind_of;
use super::globs::{Glob, Part};
use super::names::path_of;
use crate::error::{Error, Result};
use crate::structure::Format;
use std::ffi::{OsStr, OsString};
use std::fs::{DirEntry, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The list that comes in through standard input: `@-`.
pub(super) const STDIN: &str = "-";

/// The longest line of a list. Linux's longest path has 4,096 bytes.
const LIST_LINE_BYTES_MAX: u64 = 64 << 10;

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
    current: (PathBuf, u64),
    /// What is open, innermost last.
    open: Vec<Level>,
    next_ordinal: u64,
    specials_skipped: u64,
}

enum Level {
    Folder(PathBuf, std::vec::IntoIter<Entry>),
    Glob(GlobLevel),
    List(List),
}

/// A folder whose entries are matched with the part of a glob at `depth`.
struct GlobLevel {
    glob: Arc<Glob>,
    depth: usize,
    folder: PathBuf,
    /// `None` until the folder is listed.
    entries: Option<std::vec::IntoIter<Entry>>,
}

/// A list that is being read.
struct List {
    path: PathBuf,
    /// Where relative lines start from.
    folder: PathBuf,
    lines: Box<dyn BufRead + Send>,
    is_at_start: bool,
}

/// A directory's entry.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    name: OsString,
    kind: EntryKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum EntryKind {
    Folder,
    LinkedFolder,
    /// A regular file, a link to one, or a link that leads nowhere.
    File,
    /// A FIFO, a socket or a device.
    Special,
}

impl Sources {
    /// Walks `items`: files, directories, globs and `@` list files.
    pub(super) fn new(items: Vec<String>) -> Self {
        Sources {
            items: items.into_iter(),
            current: (PathBuf::new(), 0),
            open: Vec::new(),
            next_ordinal: 0,
            specials_skipped: 0,
        }
    }

    /// Whether a second walk would see the same and take nothing from this one,
    /// which a list out of a pipe does not allow.
    pub(super) fn can_walk_twice(items: &[String]) -> bool {
        let mut lists = items.iter().filter_map(|item| item.strip_prefix('@'));
        lists.all(|list| list != STDIN && path_of(list).is_file())
    }

    /// FIFOs, sockets and devices that were skipped in directories and globs so far.
    pub(super) fn specials_skipped(&self) -> u64 {
        self.specials_skipped
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
    fn open_item(&mut self, path: PathBuf) -> Option<Source> {
        match path.metadata() {
            Ok(meta) if meta.is_dir() => self.open_folder(path),
            // A name that holds the characters of a glob and is there is a name.
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
        match structures_in(&folder) {
            Ok((entries, specials)) => {
                self.specials_skipped += specials;
                self.open.push(Level::Folder(folder, entries.into_iter()));
                None
            }
            Err(error) => Some(self.source(folder, Some(error.into()))),
        }
    }

    /// Goes on with the part of a glob at `depth`; what is in front of it leads to `path`.
    fn open_glob(&mut self, glob: Arc<Glob>, depth: usize, path: PathBuf) -> Option<Source> {
        match glob.part(depth) {
            None => self.open_match(&glob, path),
            Some(Part::Folders) if glob.part(depth + 1).is_none() => {
                // Without a folder in front of it the glob starts here.
                let here = path.as_os_str().is_empty();
                let path = if here { PathBuf::from(".") } else { path };
                path.is_dir().then(|| self.open_folder(path)).flatten()
            }
            Some(Part::Name(name)) => {
                let path = path.join(name);
                let is_there = path.symlink_metadata().is_ok();
                is_there.then(|| self.open_glob(glob, depth + 1, path))?
            }
            Some(Part::Pattern(_) | Part::Folders) => {
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

    /// Takes what a whole glob matches.
    fn open_match(&mut self, glob: &Glob, path: PathBuf) -> Option<Source> {
        match path.metadata() {
            Ok(meta) if meta.is_dir() => self.open_folder(path),
            _ if glob.folders_only() => None,
            Ok(meta) if !meta.is_file() => {
                self.specials_skipped += 1;
                None
            }
            _ => Some(self.source(path, None)),
        }
    }

    fn open_list(&mut self, path: PathBuf) -> Option<Source> {
        if path == Path::new(STDIN) {
            return self.push_list(PathBuf::from("@-"), PathBuf::new(), io::stdin());
        }
        // A list may be a FIFO, such as the shell's <(...), in whose folder no inputs lie.
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
        self.open.push(Level::List(List {
            path,
            folder,
            lines: Box::new(BufReader::new(lines)),
            is_at_start: true,
        }));
        None
    }

    /// One step of the innermost level. `None` asks for another step.
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
        let is_any_depth = matches!(glob.part(depth), Some(Part::Folders));
        // `**` may also stand for no folder: then the part behind it matches.
        let next = depth + usize::from(is_any_depth);
        let matches = glob
            .part(next)
            .is_some_and(|part| part.matches(&entry.name));
        // A folder that the whole glob matches is walked, and not matched once more.
        let is_walked = matches && glob.part(next + 1).is_none();
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
    /// The item that is being walked, without any file.
    fn nothing_found(&mut self) -> Source {
        let path = self.current.0.clone();
        let problem = Error::input("no structure file is found here")
            .fix("of directories, .pdb, .ent, .cif and .mmcif files are taken, plain or with .gz");
        self.source(path, Some(problem))
    }
}

impl List {
    /// The next line as an item, nothing of an empty line or a comment; `None` behind the
    /// last line.
    ///
    /// # Errors
    /// The list cannot be read, or it is no list.
    fn next(&mut self) -> Result<Option<Option<PathBuf>>> {
        let mut line = Vec::new();
        let limit = LIST_LINE_BYTES_MAX + 1;
        self.lines
            .by_ref()
            .take(limit)
            .read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        if line.len() as u64 == limit {
            let error = Error::input(format!(
                "a line of the list has more than {LIST_LINE_BYTES_MAX} bytes"
            ));
            return Err(error.fix("a list has one path a line"));
        }
        let mut line = line.as_slice();
        if std::mem::take(&mut self.is_at_start) {
            if line.starts_with(b"\xff\xfe") || line.starts_with(b"\xfe\xff") {
                let error = Error::input("the list is in UTF-16");
                return Err(error.fix("save it as UTF-8"));
            }
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let text = line.trim_ascii();
        if text.is_empty() || text.starts_with(b"#") {
            return Ok(Some(None));
        }
        Ok(Some(Some(self.item(line, text))))
    }

    /// The path that a line names: without blanks around it, unless a file has them in its
    /// name, and without quotes around it, unless a file has those.
    fn item(&self, line: &[u8], text: &[u8]) -> PathBuf {
        let path = |bytes: &[u8]| self.folder.join(path_of_bytes(bytes));
        let is_there = |path: &Path| path.symlink_metadata().is_ok();
        if line.len() != text.len() && is_there(&path(line)) {
            return path(line);
        }
        let whole = path(text);
        let quoted = [b'"', b'\''].into_iter().find_map(|quote| {
            let inner = text.strip_prefix(&[quote])?.strip_suffix(&[quote])?;
            (!inner.is_empty()).then_some(inner)
        });
        match quoted {
            Some(inner) if !is_there(&whole) => path(inner),
            _ => whole,
        }
    }
}

#[cfg(unix)]
fn path_of_bytes(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(OsStr::from_bytes(bytes))
}

#[cfg(not(unix))]
fn path_of_bytes(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}

/// What a walk takes out of a directory, by name, and the number of FIFOs, sockets and devices
/// that it skips. Names that begin with a dot are left out, and linked directories, which may
/// lead back up.
fn structures_in(folder: &Path) -> io::Result<(Vec<Entry>, u64)> {
    let mut entries = list_of_folder(folder)?;
    let mut specials = 0;
    entries.retain(|Entry { name, kind }| {
        if name.as_encoded_bytes().starts_with(b".") {
            return false;
        }
        let is_structure = || Format::from_name(&name.to_string_lossy()).is_some();
        match kind {
            EntryKind::Folder => true,
            EntryKind::LinkedFolder => false,
            EntryKind::File => is_structure(),
            EntryKind::Special => {
                specials += u64::from(is_structure());
                false
            }
        }
    });
    Ok((entries, specials))
}

/// The entries of a directory, by name; none of what is no directory.
fn list_of_folder(folder: &Path) -> io::Result<Vec<Entry>> {
    let here = Path::new(".");
    let entries = match folder.as_os_str().is_empty() {
        true => here.read_dir(),
        false => folder.read_dir(),
    };
    let entries = match entries {
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut entries = entries
        .map(|entry| Entry::of(&entry?))
        .collect::<io::Result<Vec<Entry>>>()?;
    entries.sort_unstable();
    Ok(entries)
}

impl Entry {
    fn of(entry: &DirEntry) -> io::Result<Self> {
        let kind = entry.file_type()?;
        let kind = if kind.is_symlink() {
            // A link that leads nowhere fails as a file does that is not there.
            let target = entry.path().metadata().map(|meta| meta.file_type());
            target.map_or(EntryKind::File, |kind| match kind.is_dir() {
                true => EntryKind::LinkedFolder,
                false => EntryKind::of(kind),
            })
        } else {
            EntryKind::of(kind)
        };
        Ok(Entry {
            name: entry.file_name(),
            kind,
        })
    }
}

impl EntryKind {
    fn of(kind: std::fs::FileType) -> Self {
        match (kind.is_dir(), kind.is_file()) {
            (true, _) => EntryKind::Folder,
            (_, true) => EntryKind::File,
            _ => EntryKind::Special,
        }
    }
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
    fn a_glob_of_any_depth_takes_each_file_once_in_the_order_of_names() {
        let names = ["a.pdb", "x/b.pdb", "x/y/a.pdb", "x/y/c.cif", "z/a.pdb"];
        let folder = folder_with(&names);
        let found = |glob: &str| -> Vec<String> {
            let sources = walked(&[&folder.path().join(glob)]);
            let paths = sources.into_iter().map(|(path, _)| path);
            let names = paths.map(|path| path.strip_prefix(folder.path()).unwrap().to_owned());
            names
                .map(|name| name.to_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(found("**/a.pdb"), ["a.pdb", "x/y/a.pdb", "z/a.pdb"]);
        assert_eq!(found("**/**/a.pdb"), ["a.pdb", "x/y/a.pdb", "z/a.pdb"]);
        assert_eq!(found("**/*"), names);
        assert_eq!(found("**"), names);
        assert_eq!(found("x/**/*.pdb"), ["x/b.pdb", "x/y/a.pdb"]);
        assert_eq!(found("*/y/?.cif"), ["x/y/c.cif"]);
        assert_eq!(
            found("[xz]"),
            ["x/b.pdb", "x/y/a.pdb", "x/y/c.cif", "z/a.pdb"]
        );
    }

    #[test]
    fn a_pattern_that_is_none_is_a_problem() {
        for glob in ["a**b.pdb", "[.pdb"] {
            let source = Sources::new(vec![glob.to_owned()]).next().unwrap();
            assert!(source.problem.unwrap().message().starts_with("not a glob"));
        }
    }

    #[test]
    #[cfg(unix)]
    fn no_glob_of_any_depth_and_no_directory_follows_linked_folders() {
        let folder = folder_with(&["sets/1.pdb", "far/2.pdb"]);
        let at = |name: &str| folder.path().join(name);
        std::os::unix::fs::symlink(folder.path(), at("sets/up")).unwrap();
        std::os::unix::fs::symlink(at("far"), at("near")).unwrap();
        let one = [(at("sets/1.pdb"), true)];
        assert_eq!(walked(&[&at("sets/**/*.pdb")]), one);
        assert_eq!(walked(&[&at("sets")]), one);
        // A folder that one pattern names is the user's choice.
        assert_eq!(walked(&[&at("nea?/*.pdb")]), [(at("near/2.pdb"), true)]);
    }

    #[test]
    #[cfg(unix)]
    fn fifos_are_skipped_in_walks_and_refused_by_name() {
        let folder = folder_with(&["1.pdb"]);
        let at = |name: &str| folder.path().join(name);
        let made = std::process::Command::new("mkfifo")
            .arg(at("2.pdb"))
            .status();
        assert!(made.unwrap().success());
        for item in [folder.path().to_owned(), at("*.pdb")] {
            let mut sources = Sources::new(vec![item.to_str().unwrap().to_owned()]);
            let paths: Vec<PathBuf> = sources.by_ref().map(|source| source.path).collect();
            assert_eq!(paths, [at("1.pdb")]);
            assert_eq!(sources.specials_skipped(), 1);
        }
        let item = at("2.pdb").to_str().unwrap().to_owned();
        let problem = Sources::new(vec![item]).next().unwrap().problem.unwrap();
        assert_eq!(problem.message(), "a FIFO is no structure file");
    }

    /// The paths that the lines of a list give, from a folder with `names`.
    fn listed(text: &[u8], names: &[&str]) -> Vec<String> {
        let folder = folder_with(names);
        let list = folder.path().join("list.txt");
        fs::write(&list, text).unwrap();
        let sources = walked(&[Path::new(&format!("@{}", list.display()))]);
        let names = sources.iter().map(|(path, _)| path.file_name().unwrap());
        names
            .map(|name| name.to_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn a_list_may_have_a_byte_order_mark_blanks_and_quotes() {
        let text = b"\xef\xbb\xbf1.pdb \t\r\n \"2 3.pdb\"\n'4.pdb'\n'5'\n6.pdb \n";
        let names = ["1.pdb", "2 3.pdb", "4.pdb", "'5'", "6.pdb "];
        assert_eq!(listed(text, &names), names);
    }

    #[test]
    fn a_list_that_is_none_is_a_problem() {
        let folder = folder_with(&[]);
        let list = folder.path().join("list.txt");
        let problem = |text: &[u8]| {
            fs::write(&list, text).unwrap();
            let item = format!("@{}", list.display());
            let sources: Vec<Source> = Sources::new(vec![item]).collect();
            assert_eq!(sources.len(), 1);
            assert_eq!(sources[0].path, list);
            sources[0].problem.clone().unwrap().to_string()
        };
        let utf16: Vec<u8> = [0xff, 0xfe, b'1', 0].into();
        assert!(problem(&utf16).contains("UTF-16 (fix: save it as UTF-8)"));
        let long = vec![b'x'; 1 << 20];
        assert!(problem(&long).contains("more than 65536 bytes"));
    }

    #[test]
    #[cfg(unix)]
    fn names_that_are_not_utf_8_are_found_in_folders_globs_lists_and_items() {
        use super::super::names::text_of;
        use std::os::unix::ffi::OsStrExt;
        let folder = folder_with(&[]);
        let [a, b] =
            [b"a\xff.pdb", b"a\xfe.pdb"].map(|name| folder.path().join(OsStr::from_bytes(name)));
        fs::write(&a, "").unwrap();
        fs::write(&b, "").unwrap();
        let list = folder.path().join("list.txt");
        fs::write(&list, [b"a\xfe.pdb\n".as_slice(), b"a\xff.pdb"].concat()).unwrap();
        let both = [(b.clone(), true), (a.clone(), true)];
        let list = PathBuf::from(format!("@{}", list.display()));
        for item in [folder.path(), &folder.path().join("a?.pdb"), &list] {
            assert_eq!(walked(&[item]), both);
        }
        let sources = Sources::new([&b, &a].map(|path| text_of(path)).into());
        let found: Vec<_> = sources
            .map(|source| (source.path, source.problem.is_none()))
            .collect();
        assert_eq!(found, both);
    }

    #[test]
    fn structures_are_named_by_the_stem() {
        assert_eq!(structure_name("x/1abc.pdb.gz"), "1abc");
        assert_eq!(structure_name("pdb1abc.ent"), "pdb1abc");
        assert_eq!(structure_name("AF-P1.model.v4.cif"), "AF-P1.model.v4");
        assert_eq!(structure_name("x/frame.txt"), "frame");
    }
}
