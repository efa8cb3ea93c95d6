//! Streams of bytes, which may be compressed.

use super::ArchiveOptions;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read, Seek};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tapeloop_error::{Error, Result};
use tapeloop_structure::ReadLimits;
use tapeloop_structure::internal::BudgetShare;
use tapeloop_structure::internal::Compression;
use tar_core::Header;

/// The bytes of a read: so many that the call costs little next to copying them.
const BUFFER_BYTES: usize = 256 << 10;

/// Bytes of a header of a tar archive, and what all parts of such an archive are padded to.
pub(super) const BLOCK_BYTES: u64 = 512;

/// The first bytes of a ZIP archive.
const ZIP_START: &[u8] = b"PK\x03\x04";

/// A stream of plain bytes.
pub(super) enum ByteStream {
    File(BufReader<File>),
    Other(Box<dyn Read + Send>),
}

impl ByteStream {
    /// The bytes of a file, unpacked if it is compressed.
    ///
    /// # Errors
    /// The file cannot be read. That of a ZIP archive, which is no stream, wraps an [`Error`] of kind `Input` for
    /// [`read_error`].
    pub(super) fn of_file(file: File, limits: &ReadLimits) -> io::Result<Self> {
        let mut file = BufReader::with_capacity(BUFFER_BYTES, file);
        let start = file.fill_buf()?;
        if start.starts_with(ZIP_START) {
            let error = Error::input("this is a ZIP archive with the name of a tar archive");
            return Err(io::Error::other(error.fix("rename it to .zip")));
        }
        Ok(match Compression::of_bytes(start) {
            None => ByteStream::File(file),
            Some(compression) => ByteStream::Other(unpacked(file, compression, limits)?),
        })
    }

    /// Skips bytes, without reading them where that is possible.
    ///
    /// # Errors
    /// The stream cannot be read; `UnexpectedEof` if it ends before.
    pub(super) fn skip(&mut self, bytes: u64) -> io::Result<()> {
        let cut_short = || io::Error::from(ErrorKind::UnexpectedEof);
        if let ByteStream::File(file) = self {
            let offset = i64::try_from(bytes).map_err(|_| cut_short())?;
            file.seek_relative(offset)?;
            // Seeking beyond the end is no error.
            let is_beyond = file.stream_position()? > file.get_ref().metadata()?.len();
            return if is_beyond { Err(cut_short()) } else { Ok(()) };
        }
        let skipped = io::copy(&mut self.take(bytes), &mut io::sink())?;
        if skipped < bytes {
            Err(cut_short())
        } else {
            Ok(())
        }
    }
}

impl Read for ByteStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            ByteStream::File(file) => file.read(buffer),
            ByteStream::Other(stream) => stream.read(buffer),
        }
    }
}

/// The stream of a pipe, and its first bytes.
pub(crate) struct Piped {
    pub(super) stream: ByteStream,
    /// The first bytes of the stream, at most [`BLOCK_BYTES`], which show what it is.
    start: Vec<u8>,
}

impl Piped {
    /// Reads the start of `input`, which may be compressed.
    ///
    /// # Errors
    /// Of kind `Io` or `Input`: the input cannot be read, is damaged, or is a ZIP archive. `Capacity`: its start
    /// unpacks to too many times its size.
    pub(crate) fn new(input: impl Read + Send + 'static, limits: &ReadLimits) -> Result<Self> {
        let (mut start, input) = peek(input).map_err(pipe_error)?;
        let mut stream: Box<dyn Read + Send> = Box::new(input);
        if let Some(compression) = Compression::of_bytes(&start) {
            let packed = BufReader::with_capacity(BUFFER_BYTES, stream);
            let text;
            (start, text) = unpacked(packed, compression, limits)
                .and_then(peek)
                .map_err(pipe_error)?;
            stream = Box::new(text);
        }
        if start.starts_with(ZIP_START) {
            let error = Error::input("a ZIP archive cannot be read from a pipe");
            return Err(error.fix("save it in a file; the list of its members is at its end"));
        }
        let stream = BufReader::with_capacity(BUFFER_BYTES, stream);
        Ok(Piped {
            stream: ByteStream::Other(Box::new(stream)),
            start,
        })
    }

    /// Whether the pipe holds a tar archive.
    pub(crate) fn is_tar(&self) -> bool {
        is_tar(&self.start)
    }

    /// All bytes of the pipe, and their share of the budget, which [`BudgetShare::fill`] may wait for.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tapeloop_error::ErrorKind::Io) or [`ErrorKind::Input`](tapeloop_error::ErrorKind::Input): the
    /// pipe cannot be read or is damaged. [`ErrorKind::Capacity`](tapeloop_error::ErrorKind::Capacity): it has more
    /// text than the limit, or unpacks to too many times its size.
    pub(crate) fn read_all(self, options: &ArchiveOptions) -> Result<(Vec<u8>, BudgetShare)> {
        let limits = &options.limits;
        let mut share = BudgetShare::new(Some(Arc::clone(&options.budget)));
        let mut bytes = Vec::new();
        let max = u64::from(limits.text_bytes_max);
        // A pipe states no size.
        if share.fill(&mut bytes, self.stream, 0, max, pipe_error)? {
            Ok((bytes, share))
        } else {
            Err(limits.stream_too_long())
        }
    }
}

fn pipe_error(error: io::Error) -> Error {
    read_error("standard input", error, "fetch or make it again")
}

/// The first bytes of `input`, at most [`BLOCK_BYTES`], and all of its bytes.
fn peek<R: Read>(mut input: R) -> io::Result<(Vec<u8>, impl Read + use<R>)> {
    let mut start = Vec::new();
    input.by_ref().take(BLOCK_BYTES).read_to_end(&mut start)?;
    Ok((start.clone(), Cursor::new(start).chain(input)))
}

/// A stream that unpacks `packed`. Reading more than [`ReadLimits::unpack_ratio_max`] allows is an error.
fn unpacked(
    packed: impl BufRead + Send + 'static,
    compression: Compression,
    limits: &ReadLimits,
) -> io::Result<Box<dyn Read + Send>> {
    // Both readers are on one thread: the count is atomic only as they share it and may move to another.
    let count = Arc::new(AtomicU64::new(0));
    let packed = CountingReader {
        inner: packed,
        count: Arc::clone(&count),
    };
    let unpacked = UnpackingReader {
        decoder: compression.reader(packed)?,
        packed: count,
        unpacked: 0,
        limits: *limits,
    };
    Ok(Box::new(ChunkedReader(BufReader::with_capacity(
        BUFFER_BYTES,
        unpacked,
    ))))
}

/// A stream that is read in chunks of one size, whatever its reader asks for, so that an error comes
/// at the same place whether bytes are used or skipped. A `BufReader` alone passes long reads on.
struct ChunkedReader<R>(BufReader<R>);

impl<R: Read> Read for ChunkedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.0.fill_buf()?.read(buffer)?;
        self.0.consume(read);
        Ok(read)
    }
}

/// A stream that counts the bytes that were taken from it.
struct CountingReader<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.count.fetch_add(read as u64, Relaxed);
        Ok(read)
    }
}

impl<R: BufRead> BufRead for CountingReader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.count.fetch_add(bytes as u64, Relaxed);
        self.inner.consume(bytes);
    }
}

struct UnpackingReader {
    decoder: Box<dyn Read + Send>,
    packed: Arc<AtomicU64>,
    unpacked: u64,
    limits: ReadLimits,
}

impl Read for UnpackingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.decoder.read(buffer)?;
        self.unpacked += read as u64;
        let packed = self.packed.load(Relaxed);
        if self.unpacked > self.limits.unpacked_stream_max(packed) {
            Err(io::Error::other(self.limits.stream_unpacks_too_far()))
        } else {
            Ok(read)
        }
    }
}

/// The error of a stream that cannot be read on, which `stream` names: an [`Error`] that was wrapped for the stream,
/// of kind `Io` if the system says so, else of kind `Input`, with this `fix`, as its data are damaged.
pub(super) fn read_error(stream: &str, error: io::Error, fix: &str) -> Error {
    let inner = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<Error>());
    if let Some(inner) = inner {
        return inner.clone();
    }
    let described = match error.kind() {
        ErrorKind::UnexpectedEof => Error::input(format!("{stream} is cut short")),
        _ if error.raw_os_error().is_some() => return Error::io(error),
        _ => Error::input(format!("{stream} is damaged: {error}")),
    };
    described.fix(fix)
}

/// Whether these are the first bytes of a tar archive.
pub(super) fn is_tar(start: &[u8]) -> bool {
    let is_header = |start: &[u8; BLOCK_BYTES as usize]| {
        start[0] != 0 && Header::from_bytes(start).verify_checksum().is_ok()
    };
    start.first_chunk().is_some_and(is_header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_unpacks_too_far_ends_with_the_limit() {
        let limits = ReadLimits::default();
        let zeros = zstd::encode_all(&vec![0; 64 << 20][..], 3).unwrap();
        let mut piped = Piped::new(Cursor::new(zeros), &limits).unwrap();
        assert_eq!(piped.start, [0; 512]);
        let error = piped
            .stream
            .skip(64 << 20)
            .map_err(|error| read_error("it", error, "fetch or make it again"))
            .unwrap_err();
        assert!(
            error.message().contains("limits.unpack_ratio_max"),
            "{error}"
        );
        // Twice the text that is free, from half as many bytes.
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 28) as u8
        };
        let text: Vec<u8> = (0..8 << 20).map(|_| next()).collect();
        let packed = zstd::encode_all(&text[..], 3).unwrap();
        let mut piped = Piped::new(Cursor::new(packed), &limits).unwrap();
        let mut read = Vec::new();
        piped.stream.read_to_end(&mut read).unwrap();
        assert!(read == text);
    }

    #[test]
    fn skipping_beyond_the_end_is_an_error_in_files_and_pipes() {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, &[7; 1000]).unwrap();
        file.rewind().unwrap();
        let limits = ReadLimits::default();
        let piped = Piped::new(Cursor::new([7; 1000]), &limits).unwrap().stream;
        for mut stream in [ByteStream::of_file(file, &limits).unwrap(), piped] {
            stream.skip(999).unwrap();
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).unwrap();
            assert_eq!(rest, [7]);
            let error = stream.skip(1).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        }
    }
}
