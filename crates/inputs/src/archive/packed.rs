//! Packed sets, whose files are read as archives: a member is an input that was packed.

use super::{ArchiveOptions, Member, MemberPlace};
use crate::folder::Skipped;
use crate::packed::{BatchInputs, PackedBatch, PackedFile, UnreadBatch};
use parking_lot::Mutex;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use tapeloop_error::{Error, Result};
use tapeloop_files::path_of;
use tapeloop_structure::Structure;

/// A packed file whose members are being listed.
pub(crate) struct PackedArchive {
    file: PackedFile,
    options: ArchiveOptions,
    /// The names of the record batch `batch`, of which the rows before `row` were listed.
    names: Option<BatchInputs>,
    batch: usize,
    row: usize,
    /// The record batch `batch`, or why it cannot be read, if one of its members is to be read: with
    /// `--members` or `--shard` that may be none.
    shared: Option<Result<Arc<SharedBatch>>>,
}

/// A member that can be read.
pub struct PackedMember {
    batch: Arc<SharedBatch>,
    rows: Range<usize>,
}

/// A record batch that is read by the first of the threads that read its members: the thread that
/// lists the members of a set would be the slowest stage of a run. The thread that lists waits for the
/// memory, though, as the others may only wait for work that is under way.
struct SharedBatch {
    unread: Mutex<Option<UnreadBatch>>,
    read: OnceLock<Result<PackedBatch>>,
}

impl SharedBatch {
    fn new(unread: UnreadBatch) -> Self {
        SharedBatch {
            unread: Mutex::new(Some(unread)),
            read: OnceLock::new(),
        }
    }

    /// The record batch, or why it cannot be read. The first caller reads it, and others wait.
    fn get(&self) -> Result<&PackedBatch> {
        let read = || {
            let unread = self.unread.lock().take();
            unread.expect("the batch is read once").read()
        };
        self.read.get_or_init(read).as_ref().map_err(Error::clone)
    }
}

impl PackedArchive {
    /// Opens the packed file at `path`.
    ///
    /// # Errors
    /// Of kind `Io` or `Input`: the file cannot be read, or is damaged. `Config`: its structures were read with
    /// other settings.
    pub(super) fn open(path: &Path, options: &ArchiveOptions) -> Result<Self> {
        let file = PackedFile::open(path)?;
        file.settings().check_run(&options.reader)?;
        Ok(PackedArchive {
            file,
            options: options.clone(),
            names: None,
            batch: 0,
            row: 0,
            shared: None,
        })
    }

    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// The next member that is to be read; `None` at the end.
    ///
    /// # Errors
    /// Of kind `Io`, `Input` or `Capacity`: the names of a record batch cannot be read, are damaged, or are over a
    /// limit.
    pub(super) fn next(&mut self, skipped: &mut Skipped) -> Result<Option<Member>> {
        while self.batch < self.file.batches() {
            if self.names.is_none() {
                self.names = Some(self.file.names(self.batch, &self.options.limits)?);
            }
            let listed = self.names.as_ref();
            let Some((name, rows)) = listed.and_then(|names| names.input(self.row)) else {
                (self.names, self.shared) = (None, None);
                (self.batch, self.row) = (self.batch + 1, 0);
                continue;
            };
            self.row = rows.end;
            let path = path_of(name);
            let archive = self.file.path();
            // Without a pattern all inputs are read, whatever their names are.
            if self.options.members.is_none() || self.options.wants(archive, &path, skipped) {
                return Ok(Some(Member {
                    bytes: rows.len() as u64,
                    place: Ok(MemberPlace::Packed(rows)),
                    path,
                }));
            }
        }
        Ok(None)
    }

    /// The member in `rows` of the current record batch.
    ///
    /// # Errors
    /// Of kind `Capacity`: the record batch is over a limit.
    pub(super) fn content(&mut self, rows: Range<usize>) -> Result<PackedMember> {
        let ArchiveOptions { limits, budget, .. } = &self.options;
        let names = self.names.as_ref();
        let names = names.ok_or_else(|| Error::input("no record batch is open"))?;
        let open = || {
            let unread = self.file.batch(self.batch, names, limits, budget);
            unread.map(|unread| Arc::new(SharedBatch::new(unread)))
        };
        let batch = self.shared.get_or_insert_with(open).clone()?;
        Ok(PackedMember { batch, rows })
    }
}

impl PackedMember {
    pub(crate) fn shares_record_batch(&self, other: &PackedMember) -> bool {
        Arc::ptr_eq(&self.batch, &other.batch)
    }

    /// The structures.
    ///
    /// # Errors
    /// Of kind `Input`: the record batch or a structure is damaged. `Capacity`: the input is over a limit. Or the
    /// error with which it was rejected when it was packed.
    pub(super) fn read(&self) -> Result<Vec<Structure>> {
        let batch = self.batch.get()?;
        match batch.error(self.rows.start) {
            Some(error) => Err(error),
            None => batch.structures(self.rows.clone()),
        }
    }
}
