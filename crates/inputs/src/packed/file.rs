//! Reads a packed file, one record batch after the other.
//!
//! The file may be damaged or hostile. What its footer and its messages state is compared with the
//! size of the file before memory is allocated, and Arrow's decoder validates offsets and texts.
//! The file is read and not mapped: a mapped file that shrinks would end the process.

use super::columns::PackedColumns;
use super::schema::{self, CHECKSUMS_KEY, FOLLOWED_KEY};
use super::settings::SetSettings;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, RecordBatch, StringArray, UInt32Array};
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{FileDecoder, read_footer_length};
use arrow_ipc::{
    Block, Footer, MetadataVersion, root_as_footer_with_opts, root_as_message_with_opts,
};
use arrow_schema::{ArrowError, Field, SchemaRef};
use flatbuffers::VerifierOptions;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tapeloop_error::internal::excerpt;
use tapeloop_error::{Context, Error, Result};
use tapeloop_files::quietly;
use tapeloop_files::shown;
use tapeloop_files::{kind_of, open_file};
use tapeloop_structure::internal::BudgetShare;
use tapeloop_structure::{Format, ReadBudget, ReadLimits, Structure};

/// Maximum size of a footer. That of a set of 65,536 rows has up to about 2 MB.
const FOOTER_BYTES_MAX: u64 = 16 << 20;

/// Maximum size of the metadata of a record batch, which has about 5 kB.
const METADATA_BYTES_MAX: i32 = 1 << 20;

/// Tables in the footer or in the metadata of a record batch: fields of the schema, each with its
/// type, and pairs of metadata. A packed file has about 200.
const TABLES_MAX: usize = 100_000;

/// The length of the footer and the magic number at the end of a file.
const TRAILER_BYTES: usize = 10;

/// The start of the metadata of a record batch: a marker and the length.
const PREFIX_BYTES: usize = 8;
const CONTINUATION: [u8; 4] = [0xff; 4];

/// Alignment in bytes of a column in its record batch, which Arrow's decoder needs.
const ALIGNMENT: i64 = 8;

/// The buffers of the columns `source` (validity, offsets, texts) and `input` (validity, values), which come first
/// in files of this program.
const NAME_BUFFERS: usize = 5;

/// An open packed file.
pub struct PackedFile {
    path: PathBuf,
    file: Arc<File>,
    bytes: u64,
    layout: Arc<FileLayout>,
    blocks: Vec<Block>,
    /// The CRC-32 of each block; none in a file of a program that writes none.
    checksums: Option<Vec<u32>>,
    is_followed: bool,
    settings: SetSettings,
}

/// What is needed to decode the record batches of a file.
struct FileLayout {
    schema: SchemaRef,
    version: MetadataVersion,
    /// The columns of a packed file among those that the file has.
    columns: Vec<usize>,
}

/// The inputs of a record batch.
pub struct BatchInputs {
    source: StringArray,
    input: UInt32Array,
}

/// A record batch that was not read yet.
pub struct UnreadBatch {
    file: Arc<File>,
    block: Block,
    layout: Arc<FileLayout>,
    /// `None` in a file without checksums.
    checksum: Option<u32>,
    /// The number of rows that have names.
    rows: usize,
    place: String,
    limits: ReadLimits,
    /// The memory for its bytes.
    share: BudgetShare,
}

/// A record batch in memory.
pub struct PackedBatch {
    columns: PackedColumns,
    /// The file and the record batch in it, for messages.
    place: String,
    limits: ReadLimits,
    _share: BudgetShare,
}

impl BatchInputs {
    /// The first input at or after `row`: its name and its rows.
    pub fn input(&self, row: usize) -> Option<(&str, Range<usize>)> {
        let input = self.input.values().get(row)?;
        let rest = self.input.values()[row..].iter();
        let rows = rest.take_while(|other| *other == input).count();
        Some((self.source.value(row), row..row + rows))
    }
}

impl PackedBatch {
    /// The error of the input whose rows begin at `row`, if it was rejected when it was packed.
    pub fn error(&self, row: usize) -> Option<Error> {
        self.columns.error(row)
    }

    /// The structures in the rows of an input that was not rejected.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](tapeloop_error::ErrorKind::Input): a structure is damaged.
    /// [`ErrorKind::Capacity`](tapeloop_error::ErrorKind::Capacity): the input is over a limit.
    pub fn structures(&self, rows: Range<usize>) -> Result<Vec<Structure>> {
        let row = rows.start;
        let structures = self.columns.structures(rows, &self.limits);
        structures.within(|| format!("{}, row {row}", self.place))
    }
}

fn damaged_error(defect: &str) -> Error {
    let message = format!("the packed file is damaged: {defect}");
    Error::input(message).fix("fetch it again, or pack its structures again")
}

fn from_arrow(error: ArrowError) -> Error {
    damaged_error(&excerpt(error.to_string()))
}

/// Runs a part of Arrow's decoder. The decoder should return an error for a damaged file; if it panics, that
/// is an error too.
fn decoding<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    quietly(work).unwrap_or_else(|panic| {
        Err(damaged_error(&format!(
            "decoding it panicked: {}",
            excerpt(panic)
        )))
    })
}

impl PackedFile {
    /// Opens a packed file.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tapeloop_error::ErrorKind::Io): the file cannot be read.
    /// [`ErrorKind::Input`](tapeloop_error::ErrorKind::Input): it is no packed file, or is damaged.
    pub fn open(path: &Path) -> Result<Self> {
        let (file, bytes, footer) = read_footer(path)?;
        decoding(|| {
            let (schema, version) = schema_of(&footer)?;
            let settings = schema::check(&schema)?;
            let columns = schema::columns();
            // The columns that `schema::check` allows to be missing have no index.
            let index = |column: &Arc<Field>| schema.index_of(column.name()).ok();
            let columns = columns.iter().filter_map(index).collect();
            let footer = footer_of(&footer)?;
            let blocks = footer.recordBatches();
            let blocks: Vec<Block> = blocks.into_iter().flatten().copied().collect();
            check_blocks(&blocks, bytes)?;
            let metadata = |key: &str| {
                let mut pairs = footer.custom_metadata().into_iter().flatten();
                pairs.find(|pair| pair.key() == Some(key))?.value()
            };
            let checksums = metadata(CHECKSUMS_KEY).map(checksums_in).transpose()?;
            let is_followed = metadata(FOLLOWED_KEY) == Some("true");
            if checksums
                .as_ref()
                .is_some_and(|all| all.len() != blocks.len())
            {
                return Err(damaged_error("it lacks the checksum of a record batch"));
            }
            Ok(PackedFile {
                path: path.to_owned(),
                file: Arc::new(file),
                bytes,
                layout: Arc::new(FileLayout {
                    schema,
                    version,
                    columns,
                }),
                blocks,
                checksums,
                is_followed,
                settings,
            })
        })
    }

    /// Whether the file at `path` is a complete Arrow file that does not state that it is a packed
    /// file. A packed file that is cut short is none: it must be reported and not be skipped.
    pub fn is_other_table(path: &Path) -> bool {
        let found = read_footer(path).and_then(|(_, _, footer)| decoding(|| schema_of(&footer)));
        found.is_ok_and(|(schema, _)| !schema::is_packed(&schema))
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The size of the file.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The settings that the structures were read with.
    pub fn settings(&self) -> &SetSettings {
        &self.settings
    }

    /// Whether the record batches have checksums.
    pub fn has_checksums(&self) -> bool {
        self.checksums.is_some()
    }

    /// Whether the set goes on in the file with the next number.
    pub(super) fn is_followed(&self) -> bool {
        self.is_followed
    }

    /// Number of record batches.
    pub fn batches(&self) -> usize {
        self.blocks.len()
    }

    /// Reads the names of the inputs of a record batch, and nothing else of it if they come first.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tapeloop_error::ErrorKind::Io): the file cannot be read.
    /// [`ErrorKind::Input`](tapeloop_error::ErrorKind::Input): the record batch is damaged.
    /// [`ErrorKind::Capacity`](tapeloop_error::ErrorKind::Capacity): it is over a limit.
    pub fn names(&self, batch: usize, limits: &ReadLimits) -> Result<BatchInputs> {
        let block = self.blocks[batch];
        let body = block.bodyLength() as u64;
        limits.check_text(body)?;
        let metadata = block.metaDataLength() as u64;
        let mut bytes = Vec::with_capacity(metadata as usize);
        append(&mut bytes, &self.file, block.offset() as u64, metadata)?;
        let index = |name: &str| self.layout.schema.index_of(name).map_err(from_arrow);
        let projection = vec![index("source")?, index("input")?];
        let are_first = projection == [0, 1];
        let needed = decoding(|| {
            if are_first {
                check_message(&bytes, body, NAME_BUFFERS)
            } else {
                check_message(&bytes, body, usize::MAX).map(|_| body)
            }
        })?;
        let offset = block.offset() as u64 + metadata;
        bytes.reserve_exact(needed as usize);
        append(&mut bytes, &self.file, offset, needed)?;
        let names = decoding(|| self.layout.decode(&block, bytes, &projection))?;
        let names = BatchInputs {
            source: names.column(0).as_string().clone(),
            input: names.column(1).as_primitive::<UInt32Type>().clone(),
        };
        match names.source.null_count() + names.input.null_count() {
            0 => Ok(names),
            _ => Err(damaged_error("an input has no name")),
        }
    }

    /// The record batch with these `names`, to be read. Waits for memory from `budget` now, so that the
    /// thread which reads it does not: others may hold memory until it is read.
    ///
    /// # Errors
    /// [`ErrorKind::Capacity`](tapeloop_error::ErrorKind::Capacity) if the batch exceeds a limit.
    pub fn batch(
        &self,
        batch: usize,
        names: &BatchInputs,
        limits: &ReadLimits,
        budget: &Arc<ReadBudget>,
    ) -> Result<UnreadBatch> {
        let block = self.blocks[batch];
        let place = format!("{}: record batch {batch}", shown(&self.path));
        let body = block.bodyLength() as u64;
        limits.check_text(body).within(|| place.clone())?;
        let bytes = block.metaDataLength() as u64 + body;
        Ok(UnreadBatch {
            file: Arc::clone(&self.file),
            block,
            layout: Arc::clone(&self.layout),
            checksum: self.checksums.as_ref().map(|all| all[batch]),
            rows: names.input.len(),
            place,
            limits: *limits,
            share: BudgetShare::taking(Arc::clone(budget), bytes),
        })
    }
}

/// Appends `count` bytes at `offset` of the file, for which `bytes` has room.
fn append(bytes: &mut Vec<u8>, file: &File, mut offset: u64, count: u64) -> Result<()> {
    let end = bytes.len() + count as usize;
    while bytes.len() < end {
        match read_some(file, offset, bytes) {
            Ok(0) => return Err(damaged_error("it is cut short")),
            Ok(read) => offset += read as u64,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io(error)),
        }
    }
    bytes.truncate(end);
    Ok(())
}

/// Appends bytes from `offset` on, up to the capacity of `bytes`, and returns their number.
#[cfg(unix)]
fn read_some(file: &File, offset: u64, bytes: &mut Vec<u8>) -> std::io::Result<usize> {
    // Into memory that was not set to zero before, which would cost a tenth of the reading.
    Ok(rustix::io::pread(
        file,
        rustix::buffer::spare_capacity(bytes),
        offset,
    )?)
}

#[cfg(windows)]
fn read_some(file: &File, offset: u64, bytes: &mut Vec<u8>) -> std::io::Result<usize> {
    use std::os::windows::fs::FileExt;
    let start = bytes.len();
    bytes.resize(bytes.capacity(), 0);
    let read = file.seek_read(&mut bytes[start..], offset);
    bytes.truncate(start + read.as_ref().map_or(0, |read| *read));
    read
}

impl UnreadBatch {
    /// Reads the record batch, compares the checksum and decodes the columns.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tapeloop_error::ErrorKind::Io): the file cannot be read.
    /// [`ErrorKind::Input`](tapeloop_error::ErrorKind::Input): the record batch is damaged, or the checksum
    /// differs.
    pub fn read(self) -> Result<PackedBatch> {
        let (layout, block) = (&self.layout, &self.block);
        let decode = || {
            let body = block.bodyLength() as u64;
            let size = block.metaDataLength() as u64 + body;
            let mut bytes = self.share.buffer()?;
            append(&mut bytes, &self.file, block.offset() as u64, size)?;
            let expected = self.checksum;
            if expected.is_some_and(|expected| crc32fast::hash(&bytes) != expected) {
                return Err(damaged_error("the checksum of a record batch differs"));
            }
            let columns = decoding(|| {
                check_message(&bytes, body, usize::MAX)?;
                PackedColumns::new(layout.decode(block, bytes, &layout.columns)?)
            })?;
            if columns.rows() == self.rows {
                Ok(columns)
            } else {
                Err(damaged_error("it was changed while it was read"))
            }
        };
        let columns = decode().within(|| self.place.clone())?;
        Ok(PackedBatch {
            columns,
            place: self.place,
            limits: self.limits,
            _share: self.share,
        })
    }
}

impl FileLayout {
    /// Decodes some columns of a record batch whose message has been checked. Others may be of any
    /// type, also of one that needs more than the record batch.
    fn decode(&self, block: &Block, bytes: Vec<u8>, columns: &[usize]) -> Result<RecordBatch> {
        let decoder = FileDecoder::new(Arc::clone(&self.schema), self.version);
        let decoder = decoder.with_projection(columns.to_vec());
        let decoded = decoder.read_record_batch(block, &Buffer::from(bytes));
        let decoded = decoded.map_err(from_arrow)?;
        decoded.ok_or_else(|| damaged_error("a record batch has no rows"))
    }
}

/// The open file, its size and its footer.
fn read_footer(path: &Path) -> Result<(File, u64, Vec<u8>)> {
    // Opening a FIFO would wait for a program that writes to it.
    let kind = path.metadata()?.file_type();
    if !kind.is_file() {
        let error = Error::input(format!(
            "{} cannot be a file of a packed set",
            kind_of(kind)
        ));
        return Err(error.fix("name a file, or the folder of a set"));
    }
    let mut file = open_file(path)?;
    let bytes = file.metadata()?.len();
    let not_arrow = || {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if Format::from_name(&name).is_some() {
            let error = Error::input("this is a structure file, and no packed set");
            return error.fix("give the folder that `tapeloop pack` wrote");
        }
        let error = Error::input("this is not a complete Arrow file");
        error.fix("fetch or make it again; packed sets are made with `tapeloop pack`")
    };
    let mut trailer = [0; TRAILER_BYTES];
    let Some(end) = bytes.checked_sub(TRAILER_BYTES as u64) else {
        return Err(not_arrow());
    };
    file.seek(SeekFrom::Start(end))?;
    file.read_exact(&mut trailer)?;
    let length = read_footer_length(trailer).map_err(|_| not_arrow())? as u64;
    if length > end || length > FOOTER_BYTES_MAX {
        return Err(damaged_error("its footer is too large"));
    }
    let mut footer = Vec::new();
    file.seek(SeekFrom::Start(end - length))?;
    (&file).take(length).read_to_end(&mut footer)?;
    Ok((file, bytes, footer))
}

/// What the verifier of a footer or of metadata allows. Flatbuffers may refer to one table or text
/// any number of times, and each time it is decoded anew: without a limit 60 kB take a gigabyte. Writers share
/// little, so four times the bytes and 64 KiB are enough.
fn verifier_options(bytes: &[u8]) -> VerifierOptions {
    VerifierOptions {
        max_tables: TABLES_MAX,
        max_apparent_size: 4 * bytes.len() + (64 << 10),
        ..VerifierOptions::default()
    }
}

/// The footer in its bytes, or the error of a damaged file.
fn footer_of(bytes: &[u8]) -> Result<Footer<'_>> {
    let footer = root_as_footer_with_opts(&verifier_options(bytes), bytes);
    footer.map_err(|error| damaged_error(&excerpt(error.to_string())))
}

/// The schema and the version of Arrow's format in a footer.
fn schema_of(footer: &[u8]) -> Result<(SchemaRef, MetadataVersion)> {
    let footer = footer_of(footer)?;
    let schema = footer.schema();
    let schema = schema.ok_or_else(|| damaged_error("it has no schema"))?;
    if !schema.endianness().equals_to_target_endianness() {
        return Err(damaged_error("its numbers have another byte order"));
    }
    let schema = try_fb_to_schema(schema).map_err(from_arrow)?;
    Ok((Arc::new(schema), footer.version()))
}

/// Checks that record batches lie in the file, one after the other: if they shared bytes, a short
/// file could hold any number of structures.
fn check_blocks(blocks: &[Block], bytes: u64) -> Result<()> {
    let mut end = 0;
    for block in blocks {
        let (offset, body) = (block.offset(), block.bodyLength());
        let metadata = block.metaDataLength();
        let is_sound = offset >= end
            && body >= 0
            && (PREFIX_BYTES as i32..=METADATA_BYTES_MAX).contains(&metadata)
            && i64::from(metadata) % ALIGNMENT == 0;
        let after = offset.checked_add(i64::from(metadata));
        let after = after.and_then(|after| after.checked_add(body));
        match after.filter(|&after| is_sound && after as u64 <= bytes) {
            Some(after) => end = after,
            None => return Err(damaged_error("a record batch is not within it")),
        }
    }
    Ok(())
}

/// Checks the metadata of a record batch with a body of `body` bytes: that its first `count` buffers
/// lie within the body, and that no column has more values than the body has bits. Returns where
/// these buffers end.
fn check_message(bytes: &[u8], body: u64, count: usize) -> Result<u64> {
    let invalid = || damaged_error("the metadata of a record batch is invalid");
    if bytes.get(..4) != Some(&CONTINUATION) || bytes.len() < PREFIX_BYTES {
        return Err(invalid());
    }
    let message = &bytes[PREFIX_BYTES..];
    let message = root_as_message_with_opts(&verifier_options(message), message);
    let message = message.map_err(|_| invalid())?;
    let batch = message.header_as_record_batch().ok_or_else(invalid)?;
    if batch.compression().is_some() {
        let error = Error::input("the record batches of the packed file are compressed");
        return Err(error.fix("write the file without compression"));
    }
    let is_count = |count: i64| u64::try_from(count).is_ok_and(|count| count <= 8 * body);
    let mut nodes = batch.nodes().into_iter().flatten();
    if !is_count(batch.length())
        || !nodes.all(|node| is_count(node.length()) && is_count(node.null_count()))
    {
        return Err(damaged_error("a record batch has more values than bytes"));
    }
    let mut last = 0;
    for buffer in batch.buffers().into_iter().flatten().take(count) {
        let (offset, length) = (buffer.offset(), buffer.length());
        let end = u64::try_from(offset).ok().zip(u64::try_from(length).ok());
        let end = end.and_then(|(offset, length)| offset.checked_add(length));
        let end = end.filter(|&end| end <= body);
        last =
            last.max(end.ok_or_else(|| damaged_error("a column is not within its record batch"))?);
        if length > 0 && offset % ALIGNMENT != 0 {
            return Err(damaged_error(
                "a column does not start at a multiple of 8 bytes",
            ));
        }
    }
    Ok(last)
}

/// The checksums in a footer.
fn checksums_in(text: &str) -> Result<Vec<u32>> {
    let parse = |digits: &str| u32::from_str_radix(digits, 16);
    let all = text.split_ascii_whitespace().map(parse);
    let all: std::result::Result<Vec<u32>, _> = all.collect();
    all.map_err(|_| damaged_error("its checksums are not numbers"))
}
