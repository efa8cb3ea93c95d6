//! Writes Arrow IPC files whose columns are encoded one by one, and whose dictionaries come last.
//!
//! The readers of files find all dictionaries by the footer, before they read a record batch
//! ("Dictionary Messages" of the Arrow columnar format, version 1.5). So a file may end with the
//! dictionaries, which are complete only then. The writer of the crate `arrow-ipc` writes them first.

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_ipc::convert::IpcSchemaEncoder;
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use arrow_ipc::{
    Block, BodyCompressionBuilder, BodyCompressionMethod, Buffer, CompressionType, FieldNode,
    FooterBuilder, MessageBuilder, MessageHeader, MetadataVersion, RecordBatchBuilder,
    root_as_message,
};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use flatbuffers::FlatBufferBuilder;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use tapeloop::error::{Error, ErrorKind, Result};

const MAGIC: &[u8] = b"ARROW1";

/// Messages and the buffers in them start at multiples of this, as programs that map files prefer.
const ALIGNMENT: usize = 64;

pub(super) fn from_arrow(error: ArrowError) -> Error {
    match error {
        // Arrow's prefix is left out, so that the message is `No space left on device`.
        ArrowError::IoError(_, source) => Error::io(source),
        other => Error::new(ErrorKind::Io, other.to_string()),
    }
}

/// A column of a record batch as bytes.
pub(super) struct EncodedColumn {
    rows: usize,
    /// The record batch message of this column alone.
    message: Vec<u8>,
    /// Its buffers, each padded.
    body: Vec<u8>,
}

/// How columns are encoded.
#[derive(Clone)]
pub(super) struct Encoding {
    codec: Option<CompressionType>,
    options: IpcWriteOptions,
}

impl Encoding {
    /// Buffers are compressed with `codec`, at `level` if it has levels.
    pub(super) fn new(codec: Option<CompressionType>, level: Option<i32>) -> Result<Self> {
        let options = IpcWriteOptions::try_new(ALIGNMENT, false, MetadataVersion::V5);
        let options = options
            .and_then(|options| options.try_with_compression(codec))
            .and_then(|options| options.try_with_compression_level(level));
        Ok(Encoding {
            codec,
            options: options.map_err(from_arrow)?,
        })
    }

    /// Encodes the column of a field, or the keys if that is a dictionary.
    ///
    /// # Errors
    /// The column has nulls, and the field may have none.
    pub(super) fn column(&self, field: &Field, array: ArrayRef) -> Result<EncodedColumn> {
        let rows = array.len();
        let field = Field::new(field.name(), array.data_type().clone(), field.is_nullable());
        let schema = Arc::new(Schema::new(vec![field]));
        let batch = RecordBatch::try_new(schema, vec![array]).map_err(from_arrow)?;
        let mut tracker = DictionaryTracker::new(true);
        let encoded = IpcDataGenerator::default().encode(
            &batch,
            &mut tracker,
            &self.options,
            &mut Default::default(),
        );
        let (_, encoded) = encoded.map_err(from_arrow)?;
        Ok(EncodedColumn {
            rows,
            message: encoded.ipc_message,
            body: encoded.arrow_data,
        })
    }

    /// The message of a record batch with these columns.
    fn message(&self, columns: &[EncodedColumn]) -> Result<Vec<u8>> {
        let (mut nodes, mut buffers) = (Vec::new(), Vec::new());
        let mut offset = 0;
        for column in columns {
            let message = root_as_message(&column.message);
            let message = message.map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?;
            let batch = message.header_as_record_batch();
            let batch = batch.expect("a record batch was encoded");
            nodes.extend(batch.nodes().into_iter().flatten().copied());
            let declared = batch.buffers().into_iter().flatten();
            buffers.extend(
                declared.map(|buffer| Buffer::new(offset + buffer.offset(), buffer.length())),
            );
            offset += column.body.len() as i64;
        }
        let mut builder = FlatBufferBuilder::new();
        let compression = self.codec.map(|codec| {
            let mut compression = BodyCompressionBuilder::new(&mut builder);
            compression.add_codec(codec);
            compression.add_method(BodyCompressionMethod::BUFFER);
            compression.finish()
        });
        let nodes = builder.create_vector::<FieldNode>(&nodes);
        let buffers = builder.create_vector::<Buffer>(&buffers);
        let mut batch = RecordBatchBuilder::new(&mut builder);
        batch.add_length(columns.first().map_or(0, |column| column.rows as i64));
        batch.add_nodes(nodes);
        batch.add_buffers(buffers);
        if let Some(compression) = compression {
            batch.add_compression(compression);
        }
        let batch = batch.finish().as_union_value();
        let mut message = MessageBuilder::new(&mut builder);
        message.add_version(MetadataVersion::V5);
        message.add_header_type(MessageHeader::RecordBatch);
        message.add_header(batch);
        message.add_bodyLength(offset);
        let message = message.finish();
        builder.finish(message, None);
        Ok(builder.finished_data().to_vec())
    }
}

/// An Arrow IPC file that is being written.
pub(super) struct IpcFile {
    file: File,
    schema: SchemaRef,
    encoding: Encoding,
    tracker: DictionaryTracker,
    bytes: usize,
    batches: Vec<Block>,
}

impl IpcFile {
    /// Begins a file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn start(file: File, schema: SchemaRef, encoding: Encoding) -> Result<Self> {
        let mut tracker = DictionaryTracker::new(true);
        let message = IpcDataGenerator::default().schema_to_bytes_with_dictionary_tracker(
            &schema,
            &mut tracker,
            &encoding.options,
        );
        let mut file = IpcFile {
            file,
            schema,
            encoding,
            tracker,
            bytes: 0,
            batches: Vec::new(),
        };
        let mut start = MAGIC.to_vec();
        start.resize(ALIGNMENT, 0);
        file.write(&start)?;
        file.message(&message.ipc_message, &[])?;
        Ok(file)
    }

    /// Writes a record batch. Of a column that is a dictionary in the schema it has the keys.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn batch(&mut self, columns: &[EncodedColumn]) -> Result<()> {
        let message = self.encoding.message(columns)?;
        let bodies: Vec<&[u8]> = columns.iter().map(|column| &*column.body).collect();
        let block = self.message(&message, &bodies)?;
        self.batches.push(block);
        Ok(())
    }

    /// Writes the end of the file. `columns` are of no rows, and the dictionaries among them have
    /// all values that keys refer to.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn finish(mut self, columns: Vec<ArrayRef>) -> Result<File> {
        let options = RecordBatchOptions::new().with_row_count(Some(0));
        let schema = Arc::clone(&self.schema);
        let empty = RecordBatch::try_new_with_options(schema, columns, &options);
        let encoded = IpcDataGenerator::default().encode(
            &empty.map_err(from_arrow)?,
            &mut self.tracker,
            &self.encoding.options,
            &mut Default::default(),
        );
        let (dictionaries, _) = encoded.map_err(from_arrow)?;
        let dictionaries = dictionaries
            .into_iter()
            .map(|encoded| self.message(&encoded.ipc_message, &[&encoded.arrow_data]));
        let dictionaries = dictionaries.collect::<Result<Vec<Block>>>()?;
        // The end of a stream: a message without a length.
        self.write(&[255, 255, 255, 255, 0, 0, 0, 0])?;
        let mut builder = FlatBufferBuilder::new();
        let dictionaries = builder.create_vector(&dictionaries);
        let batches = builder.create_vector(&self.batches);
        // The ids of dictionaries are those of the first schema message.
        self.tracker = DictionaryTracker::new(true);
        let schema = IpcSchemaEncoder::new()
            .with_dictionary_tracker(&mut self.tracker)
            .schema_to_fb_offset(&mut builder, &self.schema);
        let mut footer = FooterBuilder::new(&mut builder);
        footer.add_version(MetadataVersion::V5);
        footer.add_schema(schema);
        footer.add_dictionaries(dictionaries);
        footer.add_recordBatches(batches);
        let footer = footer.finish();
        builder.finish(footer, None);
        let footer = builder.finished_data();
        let length = (footer.len() as u32).to_le_bytes();
        self.write(&[footer, &length, MAGIC].concat())?;
        Ok(self.file)
    }

    /// Writes a message and its bodies, and returns where it is.
    fn message(&mut self, message: &[u8], bodies: &[&[u8]]) -> Result<Block> {
        const PREFIX: usize = 8;
        let length = (PREFIX + message.len()).next_multiple_of(ALIGNMENT);
        let mut head = Vec::with_capacity(length);
        head.extend_from_slice(&[255; 4]);
        head.extend_from_slice(&((length - PREFIX) as u32).to_le_bytes());
        head.extend_from_slice(message);
        head.resize(length, 0);
        let start = self.bytes;
        self.write(&head)?;
        bodies.iter().try_for_each(|body| self.write(body))?;
        let body: usize = bodies.iter().map(|body| body.len()).sum();
        let padding = body.next_multiple_of(ALIGNMENT) - body;
        self.write(&[0; ALIGNMENT][..padding])?;
        Ok(Block::new(start as i64, length as i32, body as i64))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes += bytes.len();
        Ok(self.file.write_all(bytes)?)
    }
}
