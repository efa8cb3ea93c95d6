//! tar archives, read as a stream.

use super::stream::{BLOCK_BYTES, ByteStream, Piped, read_error};
use super::{
    ArchiveOptions, Content, Member, MemberPlace, check_name, empty_archive_error, member_path,
};
use crate::folder::Skipped;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tapeloop_error::internal::excerpt;
use tapeloop_error::{Error, Result};
use tapeloop_files::open_file;
use tapeloop_structure::internal::BudgetShare;
use tar_core::EntryType;
use tar_core::parse::{Limits, ParseEvent, ParsedEntry, Parser};

/// The most bytes of a member's extended headers, which are in memory: its name, owner and attributes. Linux has
/// attributes of up to 64 KiB.
const METADATA_BYTES_MAX: u32 = 256 << 10;

/// A folder in an incremental archive of GNU tar. Its content lists the names in the folder.
const GNU_FOLDER: EntryType = EntryType::Other(b'D');
/// The name that an archive of GNU tar has.
const GNU_LABEL: EntryType = EntryType::Other(b'V');

/// The stream, in messages.
const ARCHIVE: &str = "the archive";

/// A tar archive that is being read.
pub(crate) struct Tar {
    path: PathBuf,
    stream: ByteStream,
    parser: Parser,
    /// The next bytes of the stream: headers that were not parsed yet.
    ahead: Vec<u8>,
    /// Bytes of the current member that were not read yet, and the bytes that pad it.
    member: u64,
    padding: u64,
    has_ended: bool,
    /// Whether a file was found.
    has_files: bool,
    /// Why the current member could not be read to its end.
    broken: Option<Error>,
    options: ArchiveOptions,
}

/// What the next bytes of the stream are.
enum HeaderStep {
    /// The start of a header, of which this many bytes are needed.
    More(usize),
    /// A header that is no member to be read.
    Skip,
    Member(Member),
    End,
}

impl Tar {
    /// Opens the archive at `path`.
    ///
    /// # Errors
    /// Of kind `Io` or `Input`: the file cannot be read, is damaged, or is a ZIP archive.
    pub(super) fn open(path: &Path, options: &ArchiveOptions) -> Result<Self> {
        let stream =
            ByteStream::of_file(open_file(path)?, &options.limits).map_err(unreadable_error)?;
        Ok(Self::new(path, stream, options))
    }

    fn new(path: &Path, stream: ByteStream, options: &ArchiveOptions) -> Self {
        Tar {
            path: path.to_owned(),
            stream,
            parser: parser(),
            ahead: Vec::new(),
            member: 0,
            padding: 0,
            has_ended: false,
            has_files: false,
            broken: None,
            options: options.clone(),
        }
    }

    /// The archive in a pipe for which [`Piped::is_tar`] is true.
    pub(crate) fn of_pipe(path: &Path, piped: Piped, options: &ArchiveOptions) -> Self {
        Self::new(path, piped.stream, options)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Goes to the next member that is to be read; `None` at the end.
    ///
    /// # Errors
    /// Of kind `Input`, or `Io` if the file cannot be read: the archive is damaged. `Capacity`: it unpacks to too
    /// many times its size.
    pub(super) fn next(&mut self, skipped: &mut Skipped) -> Result<Option<Member>> {
        if self.has_ended {
            return Ok(None);
        }
        let found = self.find_next(skipped);
        // The rest cannot be found after an error.
        self.has_ended = !matches!(found, Ok(Some(_)));
        found
    }

    /// Reads headers until the next member that is read; `None` at the end of the archive. Reads
    /// ahead as far as the parser asks for.
    fn find_next(&mut self, skipped: &mut Skipped) -> Result<Option<Member>> {
        loop {
            self.end_member()?;
            let step = self.step(skipped)?;
            match step {
                HeaderStep::Skip => {}
                HeaderStep::Member(member) => return Ok(Some(member)),
                HeaderStep::End if self.is_at_end()? => {
                    return if self.has_files {
                        Ok(None)
                    } else {
                        Err(empty_archive_error())
                    };
                }
                // Another archive follows, as in the output of cat(1).
                HeaderStep::End => self.parser = parser(),
                HeaderStep::More(bytes) => {
                    // A byte at least, or the same bytes would be parsed for ever.
                    let missing = bytes.saturating_sub(self.ahead.len()).max(1);
                    let read = self.read_ahead(missing)?;
                    if read < missing {
                        let message = if self.ahead.is_empty() {
                            "the archive lacks the two empty blocks at its end, and may be cut short"
                        } else {
                            "the archive is cut short"
                        };
                        return Err(Error::input(message)
                            .fix("fetch or make it again; the members before are read"));
                    }
                }
            }
        }
    }

    /// Reads the next `bytes` bytes of the stream behind those ahead.
    fn read_ahead(&mut self, bytes: usize) -> Result<usize> {
        let mut stream = self.stream.by_ref().take(bytes as u64);
        stream.read_to_end(&mut self.ahead).map_err(damaged_error)
    }

    /// Skips what is left of the current member.
    fn end_member(&mut self) -> Result<()> {
        if let Some(error) = self.broken.take() {
            return Err(error);
        }
        let bytes = std::mem::take(&mut self.member) + std::mem::take(&mut self.padding);
        match bytes {
            0 => Ok(()),
            bytes => self.stream.skip(bytes).map_err(damaged_error),
        }
    }

    /// Skips the zeros behind the end, and reads the first header behind them, if there is one.
    fn is_at_end(&mut self) -> Result<bool> {
        loop {
            self.ahead.clear();
            if self.read_ahead(BLOCK_BYTES as usize)? == 0 {
                return Ok(true);
            }
            if self.ahead.iter().any(|&byte| byte != 0) {
                return Ok(false);
            }
        }
    }

    /// Parses the headers of the next member from the bytes ahead, and notes how many bytes of it follow.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](tapeloop_error::ErrorKind::Input): the archive is damaged. What is wrong with the
    /// member alone is in its place.
    fn step(&mut self, skipped: &mut Skipped) -> Result<HeaderStep> {
        let event = self.parser.parse(&self.ahead).map_err(|error| {
            let message = format!("the archive is damaged: {}", excerpt(error.to_string()));
            Error::input(message).fix("fetch or make it again; the members before are read")
        })?;
        let (consumed, entry, is_sparse) = match event {
            ParseEvent::NeedData { min_bytes } => return Ok(HeaderStep::More(min_bytes)),
            ParseEvent::End { .. } => return Ok(HeaderStep::End),
            ParseEvent::GlobalExtensions { consumed, .. } => {
                self.ahead.drain(..consumed);
                return Ok(HeaderStep::Skip);
            }
            ParseEvent::Entry { consumed, entry } => (consumed, entry, false),
            ParseEvent::SparseEntry {
                consumed, entry, ..
            } => (consumed, entry, true),
        };
        let size = entry.size;
        let path = member_path(&self.path, &entry.path);
        let is_file = !is_no_input(&entry);
        let is_wanted = is_file && self.options.wants(&self.path, &path, skipped);
        let place = if is_sparse {
            Err(Error::input("the member is a sparse file").fix("archive it without -S"))
        } else {
            check_entry(&entry)
                .and_then(|()| self.options.limits.check_text(size))
                .map(|()| MemberPlace::Next)
        };
        // Only what the parser asked for was read ahead, which is the headers.
        let is_more = consumed < self.ahead.len();
        self.ahead.clear();
        // The largest offset that a file can have; no sum with the padding overflows.
        if is_more || size > i64::MAX as u64 - BLOCK_BYTES {
            return Err(Error::input("the archive is damaged").fix("fetch or make it again"));
        }
        self.has_files |= is_file;
        self.member = size;
        // Up to the next multiple of a block, which divides 2^64.
        self.padding = size.wrapping_neg() % BLOCK_BYTES;
        Ok(if is_wanted {
            HeaderStep::Member(Member {
                path,
                bytes: size,
                place,
            })
        } else {
            HeaderStep::Skip
        })
    }

    /// Reads the current member. Waits for memory of the budget.
    ///
    /// # Errors
    /// Of kind `Input`: the archive cannot be read on. [`Tar::next`] returns why.
    pub(super) fn content(&mut self) -> Result<Content> {
        let size = std::mem::take(&mut self.member);
        let mut share = BudgetShare::new(Some(Arc::clone(&self.options.budget)));
        let mut bytes = Vec::new();
        let stream = self.stream.by_ref().take(size);
        let filled = share.fill(&mut bytes, stream, size, size, damaged_error);
        let broken = match filled {
            Ok(_) if bytes.len() as u64 == size => None,
            Ok(_) => Some(damaged_error(std::io::ErrorKind::UnexpectedEof.into())),
            Err(error) => Some(error),
        };
        if let Some(error) = broken {
            // As if the member had been skipped: the number of inputs may not depend on whether it
            // is read.
            self.broken = Some(error);
            let error = Error::input("the archive is damaged or cut short within this member");
            return Err(error.fix("fetch or make it again"));
        }
        Ok(Content::Bytes {
            bytes,
            _share: share,
        })
    }
}

/// The error of an archive of which no member was read.
fn unreadable_error(error: std::io::Error) -> Error {
    read_error(ARCHIVE, error, "fetch or make it again")
}

/// The error of an archive within or behind a member.
fn damaged_error(error: std::io::Error) -> Error {
    let fix = "fetch or make it again; what comes before is read";
    read_error(ARCHIVE, error, fix)
}

fn parser() -> Parser {
    Parser::new(Limits {
        max_metadata_size: METADATA_BYTES_MAX,
        ..Limits::default()
    })
}

/// Whether an entry is a folder, or the archive's label. Folders of the format before POSIX are files
/// without content whose names end with a slash.
fn is_no_input(entry: &ParsedEntry<'_>) -> bool {
    match entry.entry_type {
        EntryType::Regular => entry.path.ends_with(b"/"),
        kind => entry.is_dir() || kind == GNU_FOLDER || kind == GNU_LABEL,
    }
}

/// An error of kind `Input` for a member that is no file of its own, or whose name leads out of the archive.
fn check_entry(entry: &ParsedEntry<'_>) -> Result<()> {
    let kind = match entry.entry_type {
        EntryType::Regular | EntryType::Continuous => return check_name(&entry.path),
        EntryType::Link | EntryType::Symlink => {
            let target = entry.link_target_lossy().unwrap_or_default();
            let error = Error::input(format!(
                "the member is a link to {}",
                excerpt(target.as_bytes())
            ));
            return Err(error.fix(
                "links are not followed; archive the file itself (tar -h --hard-dereference)",
            ));
        }
        EntryType::Char | EntryType::Block => "a device",
        EntryType::Fifo => "a FIFO",
        _ => "of a kind that is not known",
    };
    Err(Error::input(format!("the member is {kind}, not a file")))
}
