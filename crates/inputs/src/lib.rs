//! Lists the files that the config names, one at a time.
//!
//! Names alone decide the order: items as the config lists them, the entries of a directory by the
//! bytes of their names, a list file line by line, the members of an archive and the frames of a
//! trajectory as they come. An item that cannot be opened becomes a source with an error, and is
//! rejected like any other input.

mod archive;
mod check;
mod digest;
mod folder;
mod globs;
mod list;
pub mod packed;
mod recent_set;
mod repeated;
mod shard;
mod trajectory_frames;
mod unreadable;

use archive::{Archive, ArchiveKind, Member, Piped, Tar};
pub use archive::{ArchiveOptions, Content, is_packed_name, member_pattern};
pub use check::{PackedSet, check};
use digest::Digester;
pub use digest::{InputDigests, InputRange};
pub use folder::Skipped;
use folder::{EntryKind, FolderEntry, list_of_folder, structures_in};
use globs::{Glob, GlobSegment};
use list::{InputList, ListedInput};
use packed::PackedFile;
use recent_set::RecentSet;
use repeated::files_to_remember;
pub use shard::Shard;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tapeloop_error::{Error, Result};
use tapeloop_files::{kind_of, open_stream};
use tapeloop_files::{path_of, shown};
use tapeloop_structure::Format;
use tapeloop_structure::internal::Compression;
use tapeloop_trajectory::Trajectory;
pub use tapeloop_trajectory::{FrameRange, Trajectories};
pub use unreadable::explained;

/// The name of standard input: `-` is a structure or an archive, and `@-` a list.
pub const STDIN: &str = "-";

/// Names of members of archives that are remembered, to count those that occur again. Twice as many take up to 10 MB.
const MEMBERS_KEPT: usize = 1 << 17;

/// The name of the structure on standard input.
const STDIN_STRUCTURE: &str = "stdin";

/// One input.
#[derive(Debug)]
pub struct Source {
    /// Zero-based index in the list of inputs.
    pub ordinal: u64,
    /// The file, or the archive and its member, or the trajectory and its frame.
    pub path: PathBuf,
    /// The bytes, or the error if the input cannot be opened.
    pub content: Result<Content>,
    /// The only chain that is read, if one is chosen.
    pub chain: Option<String>,
}

/// Iterates over the inputs that the items of a config name.
pub struct Sources {
    items: std::vec::IntoIter<String>,
    archives: Archives,
    trajectories: Trajectories,
    shard: Shard,
    current: CurrentItem,
    /// Open folders, globs, lists, archives and trajectories, innermost last.
    open: Vec<OpenItem>,
    /// Inputs so far, of all shards.
    found: u64,
    next_ordinal: u64,
    skipped: Skipped,
    has_members: bool,
    /// The names of the structures in archives.
    members: RecentSet,
    /// Members with the name of an earlier one.
    names_repeated: u64,
    /// The files so far, each with the chain that is read; `None` if the items cannot name one twice.
    files: Option<RecentSet>,
    /// `None` if no run could go on with these inputs.
    digester: Option<Digester>,
    /// The chain of the item that is being opened.
    chain: Option<String>,
    /// Whether members are read, or only listed.
    reads_members: bool,
}

/// The item that is being listed, and the counts before it.
#[derive(Default)]
struct CurrentItem {
    path: PathBuf,
    /// [`Sources::named`].
    named: u64,
    /// [`Skipped::others`], and how many of them [`Skipped::first_others`] has.
    others: (u64, usize),
}

/// How archives among the inputs are treated.
#[derive(Clone, Debug)]
pub enum Archives {
    /// Archives in folders are skipped; others are taken for structure files.
    Unknown,
    /// Each archive is one source.
    Whole,
    /// Each member of an archive is one source.
    Read(ArchiveOptions),
}

/// An item whose inputs are being listed.
enum OpenItem {
    Archive(Box<Archive>),
    Folder(PathBuf, std::vec::IntoIter<FolderEntry>),
    Glob(OpenGlob),
    List(InputList),
    Trajectory(Box<Trajectory>),
}

/// A folder whose entries are matched with the segments of a glob at `depths`.
struct OpenGlob {
    glob: Arc<Glob>,
    depths: Vec<usize>,
    folder: PathBuf,
    /// `None` until the folder is listed.
    entries: Option<std::vec::IntoIter<FolderEntry>>,
}

// Functions that open an item or take a step return the next source, or `None` if this step has none: the
// item was skipped, the input is not in the shard, or `open` has a new level, whose inputs follow in the
// next steps.
impl Sources {
    /// Lists the inputs of `items` that are in `shard`: files, directories, globs, `@` list files
    /// and archives.
    pub fn new(items: Vec<String>, archives: Archives, shard: Shard) -> Self {
        Sources {
            files: files_to_remember(&items),
            items: items.into_iter(),
            archives,
            trajectories: Trajectories::Unknown,
            shard,
            current: CurrentItem::default(),
            open: Vec::new(),
            found: 0,
            next_ordinal: 0,
            skipped: Skipped::default(),
            has_members: false,
            members: RecentSet::new(MEMBERS_KEPT),
            names_repeated: 0,
            digester: None,
            chain: None,
            reads_members: true,
        }
    }

    /// Whether the items can be listed twice: a pipe can be read only once.
    pub fn can_walk_twice(items: &[String]) -> bool {
        items.iter().all(|item| match item.strip_prefix('@') {
            Some(list) => list != STDIN && path_of(list).is_file(),
            None => item != STDIN,
        })
    }

    /// The files that were skipped so far.
    pub fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    /// Members of archives so far that have the structure name of an earlier one.
    pub fn names_repeated(&self) -> u64 {
        self.names_repeated
    }

    /// Whether an archive or a trajectory was found so far, whether or not it is read.
    pub fn has_members(&self) -> bool {
        self.has_members
    }

    /// Counts the next input, and returns whether it is in the shard.
    fn takes_next(&mut self) -> bool {
        let takes = self.shard.contains(self.found);
        self.found += 1;
        takes
    }

    /// Makes the source of a file, or of an input that could not be opened, if it is in the shard.
    fn source(&mut self, path: PathBuf, problem: Option<Error>) -> Option<Source> {
        let takes = self.takes_next();
        takes.then(|| self.new_source(path, None, problem.map_or(Ok(Content::File), Err)))
    }

    /// Makes the next source of this shard. `member_bytes` is the size of an input that has no file of its own;
    /// `None` for a file.
    fn new_source(
        &mut self,
        path: PathBuf,
        member_bytes: Option<u64>,
        content: Result<Content>,
    ) -> Source {
        let ordinal = self.next_ordinal;
        self.next_ordinal += 1;
        if let Some(digester) = &mut self.digester {
            match member_bytes {
                None => digester.add_file(&path),
                Some(bytes) => digester.add_member(&path, bytes),
            }
            digester.end_input(self.chain.as_deref());
        }
        Source {
            ordinal,
            path,
            content,
            chain: self.chain.clone(),
        }
    }

    /// Opens a file. Returns its source; `None` if it is an archive or a trajectory, whose members or frames
    /// follow in the next steps, if it was an input before, or if it is not in the shard.
    fn open_file(&mut self, path: PathBuf) -> Option<Source> {
        if self.skip_repeated(&path) {
            return None;
        }
        match self.open_trajectory(&path) {
            Some(Ok(())) => return None,
            Some(Err(error)) => return self.source(path, Some(error)),
            None => {}
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let Some(kind) = ArchiveKind::of_name(&name) else {
            return self.source(path, None);
        };
        self.has_members = true;
        let Archives::Read(options) = &self.archives else {
            return self.source(path, None);
        };
        match Archive::open(&path, kind, options) {
            Ok(archive) => {
                if let Some(digester) = &mut self.digester {
                    digester.add_file(&path);
                }
                self.open.push(OpenItem::Archive(Box::new(archive)));
                None
            }
            Err(error) => self.source(path, Some(error)),
        }
    }

    /// Opens standard input, which holds a structure or an archive. Reads all of a structure.
    fn open_stdin(&mut self) -> Option<Source> {
        let path = PathBuf::from(STDIN);
        let Archives::Read(options) = &self.archives else {
            return self.source(path, None);
        };
        let piped = match Piped::new(io::stdin(), &options.limits) {
            Ok(piped) => piped,
            Err(error) => return self.source(path, Some(error)),
        };
        if piped.is_tar() {
            let tar = Tar::of_pipe(&path, piped, options);
            self.open
                .push(OpenItem::Archive(Box::new(Archive::Tar(tar))));
            return None;
        }
        match piped.read_all(options) {
            Ok((bytes, _share)) => {
                let size = bytes.len() as u64;
                let content = Content::Bytes { bytes, _share };
                let takes = self.takes_next();
                takes.then(|| self.new_source(path, Some(size), Ok(content)))
            }
            Err(error) => self.source(path, Some(error)),
        }
    }

    /// Goes to the next member of the innermost level, which is an archive.
    fn step_archive(&mut self) -> Option<Source> {
        let Some(OpenItem::Archive(archive)) = self.open.last_mut() else {
            return None;
        };
        match archive.next(&mut self.skipped) {
            None => {
                self.open.pop();
                None
            }
            Some(Err(error)) => {
                let path = archive.path().to_owned();
                self.open.pop();
                self.source(path, Some(error))
            }
            Some(Ok(Member { path, bytes, place })) => {
                if !self.takes_next() {
                    return None;
                }
                let is_new = self.members.insert(structure_name(&path.to_string_lossy()));
                self.names_repeated += u64::from(!is_new);
                let Some(OpenItem::Archive(archive)) = self.open.last_mut() else {
                    return None;
                };
                let content = if self.reads_members {
                    archive.content(place)
                } else {
                    Err(Error::input("the member is only listed"))
                };
                Some(self.new_source(path, Some(bytes), content))
            }
        }
    }

    /// Opens an item of the config or a line of a list. Returns it if it is a file; the entries of
    /// a folder, a glob or a list follow in the next steps.
    fn open_item(&mut self, path: PathBuf) -> Option<Source> {
        match path.metadata() {
            Ok(meta) if meta.is_dir() => self.open_folder(path),
            // A file that exists is a file, even if its name has the characters of a glob.
            Ok(meta) if meta.is_file() => self.open_file(path),
            Ok(meta) => {
                let kind = kind_of(meta.file_type());
                let problem = Error::input(format!("{kind} cannot be read as a structure file"));
                let fix = "write it into a file; only a @list is read from a pipe";
                self.source(path, Some(problem.fix(fix)))
            }
            Err(_) if Glob::is_in(&path) => match Glob::parse(&path) {
                Ok((start, glob)) => self.open_glob(Arc::new(glob), vec![0], start),
                Err(problem) => self.source(path, Some(problem)),
            },
            Err(error) => self.source(path, Some(error.into())),
        }
    }

    /// Opens the segments of a glob at `depths`. The segments before each have matched `path`. A
    /// folder that matches the whole glob is listed, and not matched again.
    fn open_glob(&mut self, glob: Arc<Glob>, depths: Vec<usize>, path: PathBuf) -> Option<Source> {
        if depths.iter().any(|&depth| glob.segment(depth).is_none()) {
            return self.open_match(&glob, path);
        }
        if depths.iter().any(|&depth| glob.takes_all(depth)) {
            // A glob without a leading folder starts in the current one.
            let is_current = path.as_os_str().is_empty();
            let path = if is_current { PathBuf::from(".") } else { path };
            return path.is_dir().then(|| self.open_folder(path)).flatten();
        }
        if let [depth] = depths[..]
            && let Some(GlobSegment::Name(name)) = glob.segment(depth)
        {
            let path = path.join(name);
            let is_there = path.symlink_metadata().is_ok();
            return is_there.then(|| self.open_glob(glob, vec![depth + 1], path))?;
        }
        if !depths.is_empty() {
            self.open.push(OpenItem::Glob(OpenGlob {
                glob,
                depths,
                folder: path,
                entries: None,
            }));
        }
        None
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
            _ => self.open_file(path),
        }
    }

    /// Opens a list file, whose lines follow in the next steps.
    fn open_list(&mut self, path: PathBuf) -> Option<Source> {
        if path == Path::new(STDIN) {
            return self.push_list(PathBuf::from("@-"), PathBuf::new(), io::stdin());
        }
        // A list may be a FIFO, such as the shell's <(...); its folder has no inputs.
        let is_file = path.is_file();
        match open_stream(&path) {
            Ok(file) => {
                let folder = path.parent().filter(|_| is_file);
                let folder = folder.unwrap_or(Path::new("")).to_owned();
                self.push_list(path, folder, file)
            }
            Err(error) => self.source(path, Some(error.into())),
        }
    }

    /// Makes a list the innermost level.
    fn push_list(
        &mut self,
        path: PathBuf,
        folder: PathBuf,
        lines: impl Read + Send + 'static,
    ) -> Option<Source> {
        self.open
            .push(OpenItem::List(InputList::new(path, folder, lines)));
        None
    }

    /// Advances the innermost level. `None` asks for another step.
    fn step(&mut self) -> Option<Source> {
        match self.open.last_mut()? {
            OpenItem::Archive(_) => self.step_archive(),
            OpenItem::Trajectory(_) => self.step_trajectory(),
            OpenItem::Folder(folder, entries) => {
                let Some(FolderEntry { name, kind }) = entries.next() else {
                    self.open.pop();
                    return None;
                };
                let path = folder.join(name);
                match kind {
                    EntryKind::Folder => self.open_folder(path),
                    // The folder may hold the tables of a run.
                    _ if is_packed_name(&path) && PackedFile::is_other_table(&path) => {
                        self.skipped.add_other(path);
                        None
                    }
                    _ => self.open_file(path),
                }
            }
            OpenItem::Glob(_) => self.step_glob(),
            OpenItem::List(list) => match list.next() {
                Ok(None) => {
                    self.open.pop();
                    None
                }
                Ok(Some(item)) => {
                    // A comment asks for another step.
                    let ListedInput { path, chain } = item?;
                    let (depth, has_chain) = (self.open.len(), chain.is_some());
                    self.chain = chain;
                    let source = self.open_item(path.clone());
                    self.chain = None;
                    if !has_chain || self.open.len() == depth {
                        return source;
                    }
                    // Closes the archive or the trajectory that the line has opened.
                    self.open.truncate(depth);
                    let message = "a chain of an archive or a trajectory cannot be chosen";
                    let fix = "list files, or write the chain alone";
                    self.source(path, Some(Error::input(message).fix(fix)))
                }
                Err(problem) => {
                    let path = list.path.clone();
                    self.open.pop();
                    self.source(path, Some(problem))
                }
            },
        }
    }

    /// Opens the next entry of the innermost level, which is a folder of a glob, if the glob matches the
    /// entry. The first step lists the folder.
    fn step_glob(&mut self) -> Option<Source> {
        let Some(OpenItem::Glob(level)) = self.open.last_mut() else {
            return None;
        };
        let Some(entries) = &mut level.entries else {
            match list_of_folder(&level.folder) {
                Ok(entries) => level.entries = Some(entries.into_iter()),
                Err(error) => {
                    let folder = std::mem::take(&mut level.folder);
                    self.open.pop();
                    return self.source(folder, Some(error.into()));
                }
            }
            return None;
        };
        let Some(entry) = entries.next() else {
            self.open.pop();
            return None;
        };
        let (glob, path) = (Arc::clone(&level.glob), level.folder.join(&entry.name));
        let is_folder = entry.kind == EntryKind::Folder;
        let within = glob.depths_within(&level.depths, &entry.name, is_folder);
        self.open_glob(glob, within, path)
    }

    /// Starts the next item of the config.
    fn start(&mut self, item: &str) -> Option<Source> {
        let Skipped {
            others,
            first_others,
            ..
        } = &self.skipped;
        self.current = CurrentItem {
            path: path_of(item),
            named: self.named(),
            others: (*others, first_others.len()),
        };
        match item.strip_prefix('@') {
            Some(list) => self.open_list(path_of(list)),
            None if item == STDIN => self.open_stdin(),
            None => self.open_item(path_of(item)),
        }
    }
}

impl Iterator for Sources {
    type Item = Source;

    fn next(&mut self) -> Option<Source> {
        loop {
            let source = if self.open.is_empty() {
                let item = self.items.next()?;
                self.start(&item)
            } else {
                self.step()
            };
            if source.is_some() {
                return source;
            }
            // At the end of an item that named no input, not even one that an earlier item had named.
            if self.open.is_empty()
                && self.current.named == self.named()
                && let Some(source) = self.nothing_found()
            {
                return Some(source);
            }
        }
    }
}

impl Sources {
    /// The source of an item that names no file, with the error, if it is in the shard.
    fn nothing_found(&mut self) -> Option<Source> {
        let CurrentItem { path, others, .. } = &self.current;
        let path = path.clone();
        let endings = Format::all_endings();
        let (others_before, names_before) = *others;
        let others = match self.skipped.others - others_before {
            0 => String::new(),
            1 => " among 1 file".to_owned(),
            others => format!(" among {others} files"),
        };
        // Files of earlier items may have taken all the room for names.
        let first = self.skipped.first_others.get(names_before);
        let first = first.map_or(String::new(), |first| format!(", such as {}", shown(first)));
        let problem = Error::input(format!("no structure file was found here{others}{first}")).fix(
            format!(
                "name files, or directories with {endings} files, plain or with {}, or archives: {}",
                Compression::ENDINGS,
                ArchiveKind::ENDINGS,
            ),
        );
        self.source(path, Some(problem))
    }

    /// Opens a directory, whose entries follow in the next steps. Returns a source with an error if it
    /// cannot be listed, or if a file of the packed set in it is missing.
    fn open_folder(&mut self, folder: PathBuf) -> Option<Source> {
        let has_archives = !matches!(self.archives, Archives::Unknown);
        let is_other = |name: &OsStr| {
            let is_archive = || ArchiveKind::of_name(&name.to_string_lossy()).is_some();
            has_archives && is_archive() || self.trajectories.include(name)
        };
        match structures_in(&folder, is_other, &mut self.skipped) {
            Ok(entries) => {
                let names = entries.iter().map(|entry| &*entry.name);
                let complete = if has_archives {
                    packed::check_names(&folder, names)
                } else {
                    Ok(())
                };
                let entries = entries.into_iter();
                self.open.push(OpenItem::Folder(folder.clone(), entries));
                match complete {
                    Ok(()) => None,
                    Err(error) => self.source(folder, Some(error)),
                }
            }
            Err(error) => self.source(folder, Some(error.into())),
        }
    }
}

/// The name of the structure in a source: the file's name without the ending of a compressed file and
/// without the ending before it.
pub fn structure_name(source: &str) -> &str {
    if source == STDIN {
        return STDIN_STRUCTURE;
    }
    let plain = Compression::unpacked_name(source);
    let stem = Path::new(plain).file_stem();
    stem.and_then(OsStr::to_str).unwrap_or(source)
}

#[cfg(test)]
mod tests;
