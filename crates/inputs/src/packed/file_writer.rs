//! Writes a packed file.

use super::rows::RowBuilders;
use super::schema::{CHECKSUMS_KEY, FOLLOWED_KEY, schema};
use super::settings::SetSettings;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, SchemaRef};
use crc32fast::Hasher;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tapeloop_error::{Error, ErrorKind, Result};
use tapeloop_files::Temporary;
use tapeloop_structure::Input;

/// A record batch ends at the first input boundary after this many rows or bytes. Such a batch stays in
/// the cache of a core, and its memory is small enough for the allocator to keep for the next.
const BATCH_ROWS: usize = 1024;
const BATCH_BYTES: usize = 512 << 10;

/// A packed file under its temporary name.
pub(super) struct PackedFileWriter {
    path: PathBuf,
    temporary: Temporary,
    schema: SchemaRef,
    writer: FileWriter<BufWriter<ChecksummedFile>>,
    rows: RowBuilders,
    /// Inputs so far.
    inputs: u32,
    /// Rows in record batches that were written.
    written: usize,
    checksums: Vec<String>,
}

/// A file, and the checksum of what was written since the last record batch.
struct ChecksummedFile {
    file: File,
    hasher: Hasher,
}

impl Write for ChecksummedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The error of kind `Io` of a file that cannot be written.
fn from_arrow(error: ArrowError) -> Error {
    match error {
        // Arrow's prefix is left out, so that the message is `No space left on device`.
        ArrowError::IoError(_, source) => Error::io(source),
        other => Error::new(ErrorKind::Io, other.to_string()),
    }
}

impl PackedFileWriter {
    /// Creates the file that is to be called `path`, for a set with these settings.
    ///
    /// # Errors
    /// Of kind `Io` if the file cannot be created.
    pub(super) fn create(path: PathBuf, settings: &SetSettings) -> Result<Self> {
        let (temporary, file) = Temporary::fixed(&path)?;
        let schema = Arc::new(schema(settings));
        let checked = ChecksummedFile {
            file,
            hasher: Hasher::new(),
        };
        Ok(PackedFileWriter {
            path,
            temporary,
            writer: FileWriter::try_new(BufWriter::new(checked), &schema).map_err(from_arrow)?,
            schema,
            rows: RowBuilders::default(),
            inputs: 0,
            written: 0,
            checksums: Vec::new(),
        })
    }

    /// Adds an input: its models, or its error.
    ///
    /// # Errors
    /// Of kind `Io`: the file cannot be written.
    pub(super) fn add(&mut self, models: &[Input]) -> Result<()> {
        for Input {
            source, structure, ..
        } in models
        {
            self.rows.add(self.inputs, source, structure.as_deref());
        }
        self.inputs += 1;
        if self.rows.count >= BATCH_ROWS || self.rows.bytes >= BATCH_BYTES {
            self.end_batch()
        } else {
            Ok(())
        }
    }

    /// Number of rows so far.
    pub(super) fn rows(&self) -> usize {
        self.written + self.rows.count
    }

    /// Writes the rows so far as a record batch, and keeps its checksum for the footer.
    fn end_batch(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        if rows.count == 0 {
            return Ok(());
        }
        self.written += rows.count;
        // What was written before, such as the schema, is in the buffer, and not part of the checksum.
        self.writer.flush().map_err(from_arrow)?;
        self.writer.get_mut().get_mut().hasher = Hasher::new();
        let batch = rows.finish(&self.schema).map_err(from_arrow)?;
        self.writer.write(&batch).map_err(from_arrow)?;
        self.writer.flush().map_err(from_arrow)?;
        let hasher = self.writer.get_ref().get_ref().hasher.clone();
        self.checksums.push(format!("{:08x}", hasher.finalize()));
        Ok(())
    }

    /// Completes the file, and flushes it to the disk. `is_followed` is whether the set goes on in
    /// another file.
    ///
    /// # Errors
    /// Of kind `Io` if the file cannot be written.
    pub(super) fn finish(mut self, is_followed: bool) -> Result<CompleteFile> {
        self.end_batch()?;
        let checksums = self.checksums.join(" ");
        self.writer.write_metadata(CHECKSUMS_KEY, checksums);
        if is_followed {
            self.writer.write_metadata(FOLLOWED_KEY, "true");
        }
        let buffered = self.writer.into_inner().map_err(from_arrow)?;
        let checked = buffered.into_inner().map_err(|error| error.into_error())?;
        checked.file.sync_all()?;
        Ok(CompleteFile {
            path: self.path,
            temporary: self.temporary,
        })
    }
}

/// A complete file, which still has its temporary name.
pub(super) struct CompleteFile {
    path: PathBuf,
    temporary: Temporary,
}

impl CompleteFile {
    /// Gives the file its name.
    ///
    /// # Errors
    /// Of kind `Usage`: a file has the name. `Io`: it cannot be renamed.
    pub(super) fn publish(self) -> Result<()> {
        // Some network file systems have no locks.
        if self.path.symlink_metadata().is_ok() {
            let error = Error::usage("another process has made this file");
            return Err(error.fix("pack into a set from one process at a time"));
        }
        Ok(self.temporary.rename(&self.path)?)
    }

    /// The name that the file is to have.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}
