//! ZIP archives: a thread lists the members, and each is read where it is parsed.

use super::stream::is_tar;
use super::{ArchiveOptions, Member, MemberPlace, check_name, empty_archive_error, member_path};
use crate::folder::Skipped;
use crossbeam_channel::{Receiver, Sender, bounded};
use flate2::bufread::DeflateDecoder;
use rawzip::{
    CompressionMethod, FileReader, RECOMMENDED_BUFFER_SIZE, ZipArchive, ZipArchiveEntryWayfinder,
    ZipFileHeaderRecord,
};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tapeloop_error::internal::{excerpt, thread, thread_error};
use tapeloop_error::{Error, Result};
use tapeloop_files::{open_file, quietly};
use tapeloop_structure::internal::Compression;
use tapeloop_structure::{Reader, Structure};

/// Members that are listed ahead: the thread that lists waits, so that an archive of millions takes no memory.
const LISTED_AHEAD: usize = 256;

/// The bits of a Unix mode that state the type of a file, and their value for a folder. Some
/// programs write folders without a slash behind the name.
const UNIX_TYPE: u32 = 0o170_000;
const UNIX_FOLDER: u32 = 0o040_000;

type OpenZip = ZipArchive<FileReader>;

/// A ZIP archive whose members are being listed.
pub(crate) struct Zip {
    path: PathBuf,
    listed: Receiver<Result<ListedMember>>,
    options: ArchiveOptions,
    has_ended: bool,
}

/// An entry of the directory of an archive.
struct ListedMember {
    name: Vec<u8>,
    bytes: u64,
    is_folder: bool,
    member: Result<ZipMember>,
}

/// A member that can be read.
pub struct ZipMember {
    archive: Arc<OpenZip>,
    place: ZipArchiveEntryWayfinder,
    method: CompressionMethod,
}

impl Zip {
    /// Opens the archive at `path`.
    ///
    /// # Errors
    /// Of kind `Io`: the file cannot be opened, or the thread cannot be started. `Input`: it is no ZIP archive.
    pub(super) fn open(path: &Path, options: &ArchiveOptions) -> Result<Self> {
        let mut file = open_file(path)?;
        let bytes = file.metadata()?.len();
        let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
        let read = file.read(&mut buffer)?;
        refuse_tar(&buffer[..read])?;
        let archive = Arc::new(ZipArchive::from_file(file, &mut buffer).map_err(damaged_error)?);
        let (sender, listed) = bounded(LISTED_AHEAD);
        // The iterator over the directory borrows the archive, which the members share.
        thread("tapeloop-zip")
            .spawn(move || send_panic(&sender, |to| list(&archive, bytes, &mut buffer, to)))
            .map_err(thread_error)?;
        Ok(Zip {
            path: path.to_owned(),
            listed,
            options: options.clone(),
            has_ended: false,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The next member that is to be read; `None` at the end. Waits for the thread that lists.
    ///
    /// # Errors
    /// Of kind `Input`, or `Io` if the file cannot be read: the directory of the archive is damaged.
    pub(super) fn next(&mut self, skipped: &mut Skipped) -> Result<Option<Member>> {
        while !self.has_ended {
            let Ok(listed) = self.listed.recv() else {
                break;
            };
            self.has_ended = listed.is_err();
            let ListedMember {
                name,
                bytes,
                is_folder,
                member,
            } = listed?;
            let path = member_path(&self.path, &name);
            if !is_folder && self.options.wants(&self.path, &path, skipped) {
                let place = check_name(&name).and(member).map(MemberPlace::Zip);
                return Ok(Some(Member { path, bytes, place }));
            }
        }
        Ok(None)
    }
}

/// An error of kind `Input` for the first bytes of a tar archive, and of data that such an archive may be packed in.
fn refuse_tar(start: &[u8]) -> Result<()> {
    let content = match Compression::of_bytes(start) {
        Some(_) => "compressed data",
        None if is_tar(start) => "a tar archive",
        None => return Ok(()),
    };
    let error = Error::input(format!("this is {content} with the name of a ZIP archive"));
    Err(error.fix("rename it to what it is, such as .tar, .tar.gz or .tar.zst"))
}

/// Runs `list`, and sends a panic of it, which a damaged archive may cause, as an error: a channel that only
/// closed would look like the end of the archive.
fn send_panic<T>(to: &Sender<Result<T>>, list: impl FnOnce(&Sender<Result<T>>)) {
    if let Err(panic) = quietly(|| list(to)) {
        let text = format!(
            "the archive is damaged: listing it panicked: {}",
            excerpt(panic)
        );
        // The receiver was dropped if the run has ended.
        let _ = to.send(Err(Error::input(text).fix("fetch or make it again")));
    }
}

/// Lists the members of an archive of `bytes` bytes.
fn list(archive: &Arc<OpenZip>, bytes: u64, buffer: &mut [u8], to: &Sender<Result<ListedMember>>) {
    let mut entries = archive.entries(buffer);
    let (mut claimed, mut count) = (0_u64, 0_u64);
    loop {
        let entry = match entries.next_entry() {
            Ok(Some(entry)) => entry,
            Ok(None) => {
                // Without ZIP64 the archive counts up to 65,535.
                let expected = archive.entries_hint();
                let error = match count {
                    0 => empty_archive_error(),
                    _ if count as u16 == expected as u16 => return,
                    _ => Error::input(format!(
                        "the archive is damaged: it lists {count} members, and should have {expected}"
                    ))
                    .fix("fetch or make it again"),
                };
                let _ = to.send(Err(error));
                return;
            }
            Err(error) => {
                // The receiver was dropped if the run has ended.
                let _ = to.send(Err(damaged_error(error)));
                return;
            }
        };
        count += 1;
        // Members that share bytes would unpack them any number of times.
        claimed = claimed.saturating_add(entry.compressed_size_hint());
        if claimed > bytes {
            let error = Error::input("the archive is damaged: its members are larger than it");
            let _ = to.send(Err(error.fix("make it again; the members before are read")));
            return;
        }
        let listed = ListedMember {
            name: entry.file_path().as_bytes().to_vec(),
            bytes: entry.uncompressed_size_hint(),
            is_folder: entry.is_dir() || entry.mode().value() & UNIX_TYPE == UNIX_FOLDER,
            member: member(archive, &entry),
        };
        if to.send(Ok(listed)).is_err() {
            return;
        }
    }
}

/// The member of an entry, or an error of kind `Input` that says why it cannot be read.
fn member(archive: &Arc<OpenZip>, entry: &ZipFileHeaderRecord<'_>) -> Result<ZipMember> {
    let (method, mode) = (entry.compression_method(), entry.mode());
    if entry.flags().is_encrypted() {
        return Err(
            Error::input("the member is encrypted").fix("make the archive without a password")
        );
    }
    if mode.is_symlink() {
        return Err(Error::input("the member is a link")
            .fix("links are not followed; archive the file itself"));
    }
    let known = [
        CompressionMethod::STORE,
        CompressionMethod::DEFLATE,
        CompressionMethod::ZSTD,
    ];
    if !known.contains(&method) {
        let error = Error::input(format!("the member is compressed with {method}"));
        return Err(error.fix("make the archive with deflate or zstd"));
    }
    Ok(ZipMember {
        archive: Arc::clone(archive),
        place: entry.wayfinder(),
        method,
    })
}

impl ZipMember {
    /// Reads the structures in the member at `path`.
    ///
    /// # Errors
    /// Of kind `Input` if the member is damaged, `Io` if the file cannot be read, and the errors of [`Reader`].
    pub(super) fn read(&self, path: &Path, reader: &mut Reader) -> Result<Vec<Structure>> {
        let entry = self.archive.get_entry(self.place).map_err(damaged_error)?;
        let packed = self.place.compressed_size_hint();
        let is_stored = self.method == CompressionMethod::STORE;
        let bytes = BufReader::new(entry.reader());
        let text: Box<dyn Read + '_> = match self.method {
            CompressionMethod::STORE => Box::new(bytes),
            CompressionMethod::DEFLATE => Box::new(DeflateDecoder::new(bytes)),
            _ => Compression::Zstd.reader(bytes)?,
        };
        let name = path.to_string_lossy();
        let size = self.place.uncompressed_size_hint();
        let member_error = |error: io::Error| match error.raw_os_error() {
            Some(_) => Error::io(error),
            None => Error::input(format!("the member is damaged: {error}"))
                .fix("fetch or make the archive again"),
        };
        let packed = (!is_stored).then_some(packed);
        reader.read_stream(
            &name,
            entry.verifying_reader(text),
            size,
            packed,
            member_error,
        )
    }
}

/// The error of an archive: of kind `Io` if the system says so, else `Input`.
fn damaged_error(error: rawzip::Error) -> Error {
    match error.into_kind() {
        rawzip::ErrorKind::IO(error) if error.raw_os_error().is_some() => Error::io(error),
        kind => {
            Error::input(format!("the archive is damaged: {kind}")).fix("fetch or make it again")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_fails_is_no_damage_of_the_archive() {
        let failed = io::Error::from_raw_os_error(5);
        let error = damaged_error(rawzip::ErrorKind::IO(failed).into());
        assert_eq!(error.kind(), tapeloop_error::ErrorKind::Io, "{error}");
        let ended = io::ErrorKind::UnexpectedEof.into();
        let error = damaged_error(rawzip::ErrorKind::IO(ended).into());
        assert_eq!(error.kind(), tapeloop_error::ErrorKind::Input, "{error}");
    }

    #[test]
    fn a_panic_while_an_archive_is_listed_is_an_error() {
        let (sender, listed) = bounded::<Result<u32>>(2);
        send_panic(&sender, |to| {
            to.send(Ok(1)).unwrap();
            panic!("an offset of 7");
        });
        drop(sender);
        let found: Vec<_> = listed.iter().collect();
        assert_eq!(found.len(), 2);
        let error = found[1].as_ref().unwrap_err().to_string();
        assert!(error.contains("an offset of 7"), "{error}");
    }
}
