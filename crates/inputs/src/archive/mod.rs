//! Archives of structure files, which are read member by member and never written to a disk.

mod packed;
mod stream;
mod tar;
mod zip;

use super::Skipped;
use crate::packed::ENDING;
use packed::{PackedArchive, PackedMember};
use serde_json::{Map, Value as Json};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
pub(super) use stream::Piped;
use tapeloop_error::{Error, Result};
use tapeloop_structure::internal::BudgetShare;
use tapeloop_structure::internal::Compression;
use tapeloop_structure::{Format, ReadBudget, ReadLimits, Reader, Structure};
use tapeloop_trajectory::{FrameBytes, is_trajectory_name};
pub(super) use tar::Tar;
use zip::{Zip, ZipMember};

/// Which members of archives are read, and how.
#[derive(Clone, Debug)]
pub struct ArchiveOptions {
    /// Members whose names match are read; `None` reads those with the ending of a structure file.
    pub members: Option<glob::Pattern>,
    /// The limits for the contents of members.
    pub limits: ReadLimits,
    /// The memory of the members that were read from archives and not parsed yet.
    pub budget: Arc<ReadBudget>,
    /// Whether trajectories are inputs. Those in archives are rejected, and not skipped.
    pub has_topology: bool,
    /// The settings that packed sets must have been made with.
    pub reader: Map<String, Json>,
}

impl ArchiveOptions {
    /// Whether the member at `path`, which begins with that of `archive`, is read; those that are not are added
    /// to `skipped`. Hidden files are not counted: among them are the files `._name` that macOS adds.
    fn wants(&self, archive: &Path, path: &Path, skipped: &mut Skipped) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') {
            return false;
        }
        let wants = match &self.members {
            None => {
                Format::from_name(&name).is_some() || self.has_topology && is_trajectory_name(&name)
            }
            // A pattern without a folder is for the names of files.
            Some(pattern) if !pattern.as_str().contains('/') => pattern.matches(&name),
            Some(pattern) => pattern.matches_path(path.strip_prefix(archive).unwrap_or(path)),
        };
        if !wants {
            skipped.add_other(path.to_owned());
        }
        wants
    }
}

/// Parses a pattern for members' names.
///
/// # Errors
/// [`ErrorKind::Config`](tapeloop_error::ErrorKind::Config) if the text is no glob.
pub fn member_pattern(text: &str) -> Result<glob::Pattern> {
    glob::Pattern::new(text).map_err(|error| {
        let error = Error::config(format!("\"{text}\" is not a glob: {error}"));
        error.fix("write it like \"*.cif.gz\"")
    })
}

/// The kinds of archives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArchiveKind {
    Tar,
    Zip,
    /// A file of a packed set.
    Packed,
}

impl ArchiveKind {
    /// Endings of file names, for messages.
    pub(super) const ENDINGS: &str = ".tar, .tar.gz, .tar.zst, .zip or .arrow (a packed set)";

    /// The kind that a file's name shows by its ending, in either case.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        let has_ending = |name: &str, endings: &[&str]| {
            let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
            endings
                .iter()
                .any(|known| known.eq_ignore_ascii_case(ending))
        };
        let is_tar = has_ending(name, &["tgz", "tzst"])
            || has_ending(Compression::unpacked_name(name), &["tar"]);
        if is_tar {
            return Some(ArchiveKind::Tar);
        }
        let kinds = [("zip", ArchiveKind::Zip), (ENDING, ArchiveKind::Packed)];
        let kind = kinds.iter().find(|(ending, _)| has_ending(name, &[ending]));
        kind.map(|(_, kind)| *kind)
    }
}

/// Whether a file has the name of a packed file.
pub fn is_packed_name(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    ArchiveKind::of_name(&name) == Some(ArchiveKind::Packed)
}

/// An open archive.
pub(super) enum Archive {
    Tar(Tar),
    Zip(Zip),
    Packed(Box<PackedArchive>),
}

/// A member of an archive that is to be read.
pub(super) struct Member {
    /// The path of the archive followed by that of the member; in a packed set, the path of the
    /// original input.
    pub(super) path: PathBuf,
    /// The member's size as the archive states it; in a packed set, the number of its rows.
    pub(super) bytes: u64,
    pub(super) place: Result<MemberPlace>,
}

/// Where a member's bytes are.
pub(super) enum MemberPlace {
    /// The next bytes of the tar stream.
    Next,
    Zip(ZipMember),
    /// Rows of the current record batch.
    Packed(Range<usize>),
}

/// The bytes of an input.
pub enum Content {
    /// The file at the input's path.
    File,
    /// Bytes that were read from a tar archive or from standard input.
    Bytes {
        /// The bytes, still compressed if they were.
        bytes: Vec<u8>,
        #[doc(hidden)]
        _share: BudgetShare,
    },
    /// A member of a ZIP archive, which is read where it is parsed.
    Zip(ZipMember),
    /// A frame of a trajectory, which is read where it is unpacked.
    Frame(FrameBytes),
    /// An input of a packed set.
    Packed(PackedMember),
}

impl Content {
    /// Whether both are in the same record batch of a packed set, which is read once for all of its
    /// structures.
    pub fn shares_record_batch(&self, other: &Content) -> bool {
        match (self, other) {
            (Content::Packed(member), Content::Packed(other)) => member.shares_record_batch(other),
            _ => false,
        }
    }

    /// Reads the structures in the input at `path`.
    ///
    /// # Errors
    /// The errors of [`Reader`].
    pub fn read(&self, path: &Path, reader: &mut Reader) -> Result<Vec<Structure>> {
        match self {
            Content::File => reader.read_path(path),
            Content::Bytes { bytes, .. } => reader.read_auto(&path.to_string_lossy(), bytes),
            Content::Zip(member) => member.read(path, reader),
            Content::Frame(frame) => frame.read(reader).map(|structure| vec![structure]),
            Content::Packed(member) => member.read(),
        }
    }
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Content::File => f.write_str("File"),
            Content::Bytes { bytes, .. } => write!(f, "Bytes({})", bytes.len()),
            Content::Zip(_) => f.write_str("Zip"),
            Content::Frame(_) => f.write_str("Frame"),
            Content::Packed(_) => f.write_str("Packed"),
        }
    }
}

impl Archive {
    /// Opens the archive at `path`.
    ///
    /// # Errors
    /// Of kind `Io`: the file cannot be read. `Input`: it is no archive of this kind. `Config`: a packed set has
    /// other settings than the run.
    pub(super) fn open(path: &Path, kind: ArchiveKind, options: &ArchiveOptions) -> Result<Self> {
        Ok(match kind {
            ArchiveKind::Tar => Archive::Tar(Tar::open(path, options)?),
            ArchiveKind::Zip => Archive::Zip(Zip::open(path, options)?),
            ArchiveKind::Packed => Archive::Packed(Box::new(PackedArchive::open(path, options)?)),
        })
    }

    /// The path of the archive.
    pub(super) fn path(&self) -> &Path {
        match self {
            Archive::Tar(tar) => tar.path(),
            Archive::Zip(zip) => zip.path(),
            Archive::Packed(packed) => packed.path(),
        }
    }

    /// Goes to the next member that is to be read. Others are added to `skipped`. `None` is the end.
    ///
    /// # Errors
    /// Of kind `Input`, or `Io` if the file cannot be read: the archive is damaged. `Capacity`: it unpacks to too
    /// many times its size, or the names of a record batch are over a limit. The rest of it is not read.
    pub(super) fn next(&mut self, skipped: &mut Skipped) -> Option<Result<Member>> {
        match self {
            Archive::Tar(tar) => tar.next(skipped).transpose(),
            Archive::Zip(zip) => zip.next(skipped).transpose(),
            Archive::Packed(packed) => packed.next(skipped).transpose(),
        }
    }

    /// The content of the member that [`Archive::next`] returned last, which is at `place`. Waits for memory of the
    /// budget.
    ///
    /// # Errors
    /// Of kind `Input`, or `Capacity` for a member or a record batch over a limit: the member cannot be read; the
    /// next ones may be.
    pub(super) fn content(&mut self, place: Result<MemberPlace>) -> Result<Content> {
        match (place?, self) {
            (MemberPlace::Zip(member), _) => Ok(Content::Zip(member)),
            (MemberPlace::Next, Archive::Tar(tar)) => tar.content(),
            (MemberPlace::Packed(rows), Archive::Packed(packed)) => {
                packed.content(rows).map(Content::Packed)
            }
            (MemberPlace::Next | MemberPlace::Packed(_), _) => {
                unreachable!("a place is in its own archive")
            }
        }
    }
}

/// The error of an archive without a file.
fn empty_archive_error() -> Error {
    Error::input("the archive has no file in it").fix("fetch or make it again")
}

/// The path of a member in an archive at `archive`.
fn member_path(archive: &Path, name: &[u8]) -> PathBuf {
    let mut name = name;
    while let Some(rest) = name.strip_prefix(b"./") {
        name = rest;
    }
    // An absolute name would replace the archive's path.
    let name = &name[name.iter().take_while(|&&byte| byte == b'/').count()..];
    archive.join(super::list::path_of_bytes(name))
}

/// An error of kind `Input` for a name that leads out of the folder that the archive would be unpacked into.
/// Nothing is unpacked here, but such an archive is damaged or hostile.
fn check_name(name: &[u8]) -> Result<()> {
    let mut parts = name.split(|&byte| byte == b'/');
    if name.starts_with(b"/") || parts.any(|part| part == b"..") {
        let error = Error::input("the member's name leads out of the archive");
        return Err(error.fix("make the archive with relative names"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
