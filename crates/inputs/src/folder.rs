//! The entries of a directory.

use std::ffi::{OsStr, OsString};
use std::fs::DirEntry;
use std::io;
use std::path::{Path, PathBuf};
use tapeloop_structure::Format;

/// Skipped files that messages name.
const FIRST_OTHERS_MAX: usize = 3;

/// Counts files that are no inputs: files in directories, globs and archives that are no structure files,
/// and files that were inputs before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// FIFOs, sockets and devices.
    pub specials: u64,
    /// Files whose names have the ending of no structure file.
    pub others: u64,
    /// The first of these files.
    pub first_others: Vec<PathBuf>,
    /// Files that were inputs before, with the same chain.
    pub repeated: u64,
    /// The first of these files.
    pub first_repeated: Option<PathBuf>,
}

impl Skipped {
    /// Counts a file whose name is not that of a structure file.
    pub(super) fn add_other(&mut self, path: PathBuf) {
        self.others += 1;
        if self.first_others.len() < FIRST_OTHERS_MAX {
            self.first_others.push(path);
        }
    }

    /// Counts a file that was an input before.
    pub(super) fn add_repeated(&mut self, path: &Path) {
        self.repeated += 1;
        self.first_repeated.get_or_insert_with(|| path.to_owned());
    }
}

/// A directory's entry.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FolderEntry {
    pub(super) name: OsString,
    pub(super) kind: EntryKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EntryKind {
    Folder,
    LinkedFolder,
    /// A regular file, a link to one, or a link that leads nowhere.
    File,
    /// A FIFO, a socket or a device.
    Special,
}

/// The structure files and subdirectories of a directory, and the files for whose names `is_other`
/// is true, sorted by name. Counts other files in `skipped`. Hidden names are left out, and so are
/// linked directories, which may lead back up. Special files count only if they are named as inputs are.
pub(super) fn structures_in(
    folder: &Path,
    is_other: impl Fn(&OsStr) -> bool,
    skipped: &mut Skipped,
) -> io::Result<Vec<FolderEntry>> {
    let mut entries = list_of_folder(folder)?;
    entries.retain(|FolderEntry { name, kind }| {
        if name.as_encoded_bytes().starts_with(b".") {
            return false;
        }
        let is_structure =
            || Format::from_name(&name.to_string_lossy()).is_some() || is_other(name);
        match kind {
            EntryKind::Folder => true,
            EntryKind::LinkedFolder => false,
            EntryKind::File if is_structure() => true,
            EntryKind::File => {
                skipped.add_other(folder.join(name));
                false
            }
            EntryKind::Special => {
                skipped.specials += u64::from(is_structure());
                false
            }
        }
    });
    Ok(entries)
}

/// The entries of a directory, sorted by name; none if `folder` is not a directory.
pub(super) fn list_of_folder(folder: &Path) -> io::Result<Vec<FolderEntry>> {
    let current = Path::new(".");
    let entries = if folder.as_os_str().is_empty() {
        current.read_dir()
    } else {
        folder.read_dir()
    };
    let entries = match entries {
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut entries = entries
        .map(|entry| FolderEntry::from_dir_entry(&entry?))
        .collect::<io::Result<Vec<FolderEntry>>>()?;
    entries.sort_unstable();
    Ok(entries)
}

impl FolderEntry {
    /// An entry with its kind, for which a link is followed.
    fn from_dir_entry(entry: &DirEntry) -> io::Result<Self> {
        let kind = entry.file_type()?;
        let kind = if kind.is_symlink() {
            // A dangling link fails later, as a missing file does.
            let target = entry.path().metadata().map(|meta| meta.file_type());
            target.map_or(EntryKind::File, |kind| {
                if kind.is_dir() {
                    EntryKind::LinkedFolder
                } else {
                    EntryKind::from_file_type(kind)
                }
            })
        } else {
            EntryKind::from_file_type(kind)
        };
        Ok(FolderEntry {
            name: entry.file_name(),
            kind,
        })
    }
}

impl EntryKind {
    fn from_file_type(kind: std::fs::FileType) -> Self {
        match (kind.is_dir(), kind.is_file()) {
            (true, _) => EntryKind::Folder,
            (_, true) => EntryKind::File,
            _ => EntryKind::Special,
        }
    }
}
