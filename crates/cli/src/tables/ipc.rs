//! Writes Arrow IPC files whose columns are encoded one by one, and whose dictionaries come last.
//!
//! The readers of files find all dictionaries by the footer, before they read a record batch
//! ("Dictionary Messages" of the Arrow columnar format, version 1.5). So a file may end with the
//! dictionaries, which are complete only then. The writer of the crate `arrow-ipc` writes them first.

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_buffer::{Buffer as Bytes, NullBuffer, NullBufferBuilder};
use arrow_ipc::convert::IpcSchemaEncoder;
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use arrow_ipc::{
    Block, BodyCompressionBuilder, BodyCompressionMethod, Buffer, CompressionType, FieldNode,
    FooterBuilder, MessageBuilder, MessageHeader, MetadataVersion, RecordBatchBuilder,
    root_as_message,
};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use arrow_select::concat::concat;
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
    node: FieldNode,
    buffers: Vec<BodyBuffer>,
}

/// A buffer of a message's body, in parts that follow each other.
struct BodyBuffer(Vec<Bytes>);

impl BodyBuffer {
    fn bytes(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    fn padded_bytes(&self) -> usize {
        self.bytes().next_multiple_of(ALIGNMENT)
    }
}

impl EncodedColumn {
    /// The column of arrays of numbers, whose values are not copied.
    fn of_numbers(arrays: &[ArrayRef]) -> Self {
        let rows = arrays.iter().map(|array| array.len()).sum();
        let mut nulls = NullBufferBuilder::new(rows);
        for array in arrays {
            match array.nulls() {
                None => nulls.append_n_non_nulls(array.len()),
                Some(of_array) => nulls.append_buffer(of_array),
            }
        }
        let nulls = nulls.finish();
        let null_count = nulls.as_ref().map_or(0, NullBuffer::null_count);
        let validity = nulls.filter(|_| null_count > 0);
        let validity = validity.map(|nulls| nulls.inner().sliced());
        let values = arrays.iter().map(|array| {
            let data = array.to_data();
            let width = data.data_type().primitive_width().unwrap_or_default();
            data.buffers()[0].slice_with_length(data.offset() * width, data.len() * width)
        });
        EncodedColumn {
            node: FieldNode::new(rows as i64, null_count as i64),
            buffers: vec![
                BodyBuffer(validity.into_iter().collect()),
                BodyBuffer(values.collect()),
            ],
        }
    }
}

/// How columns are encoded.
#[derive(Clone)]
pub(super) struct Encoding {
    codec: Option<CompressionType>,
    options: IpcWriteOptions,
}

impl Encoding {
    /// Buffers are compressed with `codec`. `level` is that of zstd: `None` for LZ4, which has no levels, and
    /// ignored without a codec.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] for a level that zstd does not have, or any with LZ4.
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

    /// Encodes the column of a field, or the keys if that is a dictionary: the rows of these arrays, at
    /// least one array, one after the other.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the column has nulls, and the field may have none.
    pub(super) fn column(&self, field: &Field, arrays: &[ArrayRef]) -> Result<EncodedColumn> {
        let kind = arrays[0].data_type();
        let schema = Field::new(field.name(), kind.clone(), field.is_nullable());
        let schema = Arc::new(Schema::new(vec![schema]));
        let batch = |array: &ArrayRef| {
            let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::clone(array)]);
            batch.map_err(from_arrow)
        };
        if self.codec.is_none() && kind.is_numeric() {
            arrays.iter().try_for_each(|array| batch(array).map(drop))?;
            return Ok(EncodedColumn::of_numbers(arrays));
        }
        let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
        let array = concat(&arrays).map_err(from_arrow)?;
        self.encode(&batch(&array)?)
    }

    /// Encodes a record batch of one column. The encoded message is parsed again to find the
    /// column's node and buffers; an [`ErrorKind::Io`] error if Arrow cannot encode it.
    fn encode(&self, batch: &RecordBatch) -> Result<EncodedColumn> {
        let mut tracker = DictionaryTracker::new(true);
        let encoded = IpcDataGenerator::default().encode(
            batch,
            &mut tracker,
            &self.options,
            &mut Default::default(),
        );
        let (_, encoded) = encoded.map_err(from_arrow)?;
        let message = root_as_message(&encoded.ipc_message);
        let message = message.map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?;
        let batch = message.header_as_record_batch();
        let batch = batch.expect("a record batch was encoded");
        let node = batch.nodes().and_then(|nodes| nodes.iter().next().copied());
        let body = Bytes::from_vec(encoded.arrow_data);
        let buffers = batch.buffers().into_iter().flatten().map(|buffer| {
            let (offset, length) = (buffer.offset() as usize, buffer.length() as usize);
            BodyBuffer(vec![body.slice_with_length(offset, length)])
        });
        Ok(EncodedColumn {
            node: node.expect("the batch has a column"),
            buffers: buffers.collect(),
        })
    }

    /// The message of a record batch with these columns.
    fn message(&self, columns: &[EncodedColumn]) -> Vec<u8> {
        let nodes: Vec<FieldNode> = columns.iter().map(|column| column.node).collect();
        let mut buffers = Vec::new();
        let mut offset = 0;
        for buffer in columns.iter().flat_map(|column| &column.buffers) {
            buffers.push(Buffer::new(offset, buffer.bytes() as i64));
            offset += buffer.padded_bytes() as i64;
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
        batch.add_length(columns.first().map_or(0, |column| column.node.length()));
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
        builder.finished_data().to_vec()
    }
}

/// An Arrow IPC file that is being written.
pub(super) struct IpcFile {
    file: File,
    schema: SchemaRef,
    encoding: Encoding,
    tracker: DictionaryTracker,
    /// Bytes that were written.
    bytes: usize,
    /// Where the record batches are, for the footer.
    batches: Vec<Block>,
}

impl IpcFile {
    /// Begins a file.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the file cannot be written.
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
        file.write_message(&message.ipc_message, [])?;
        Ok(file)
    }

    /// Writes a record batch. Of a column that is a dictionary in the schema it has the keys.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn write_batch(&mut self, columns: &[EncodedColumn]) -> Result<()> {
        let message = self.encoding.message(columns);
        let buffers = columns.iter().flat_map(|column| &column.buffers);
        let block = self.write_message(&message, buffers)?;
        self.batches.push(block);
        Ok(())
    }

    /// Writes the end of the file. `columns` are of no rows, and the dictionaries among them have
    /// all values that keys refer to.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the file cannot be written.
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
        let dictionaries = dictionaries.into_iter().map(|encoded| {
            // Its buffers are padded.
            let body = BodyBuffer(vec![Bytes::from_vec(encoded.arrow_data)]);
            self.write_message(&encoded.ipc_message, [&body])
        });
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

    /// Writes a message and the buffers of its body, and returns where it is.
    fn write_message<'a>(
        &mut self,
        message: &[u8],
        buffers: impl IntoIterator<Item = &'a BodyBuffer>,
    ) -> Result<Block> {
        // Four bytes of ones that begin a message, and its length.
        const PREFIX: usize = 8;
        let length = (PREFIX + message.len()).next_multiple_of(ALIGNMENT);
        let mut head = Vec::with_capacity(length);
        head.extend_from_slice(&[255; 4]);
        head.extend_from_slice(&((length - PREFIX) as u32).to_le_bytes());
        head.extend_from_slice(message);
        head.resize(length, 0);
        let start = self.bytes;
        self.write(&head)?;
        for buffer in buffers {
            buffer.0.iter().try_for_each(|part| self.write(part))?;
            let padding = buffer.padded_bytes() - buffer.bytes();
            self.write(&[0; ALIGNMENT][..padding])?;
        }
        let body = self.bytes - start - length;
        Ok(Block::new(start as i64, length as i32, body as i64))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes += bytes.len();
        Ok(self.file.write_all(bytes)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Float32Array, Int32Array};

    #[test]
    fn numbers_in_parts_have_the_bytes_of_one_array() {
        let encoding = Encoding::new(None, None).unwrap();
        let of_parts = |arrays: &[ArrayRef]| {
            let field = Field::new("n", arrays[0].data_type().clone(), true);
            let parts = encoding.column(&field, arrays).unwrap();
            let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
            let schema = Arc::new(Schema::new(vec![field]));
            let whole = RecordBatch::try_new(schema, vec![concat(&arrays).unwrap()]).unwrap();
            let whole = encoding.encode(&whole).unwrap();
            let bytes = |column: &EncodedColumn| -> Vec<Vec<u8>> {
                let all =
                    |buffer: &BodyBuffer| buffer.0.iter().flat_map(|part| part.to_vec()).collect();
                column.buffers.iter().map(all).collect()
            };
            assert_eq!((parts.node, bytes(&parts)), (whole.node, bytes(&whole)));
        };
        let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..70));
        let nulls: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3), None]));
        of_parts(&[Arc::clone(&numbers)]);
        of_parts(&[numbers.slice(3, 13), nulls.slice(1, 3), numbers]);
        of_parts(&[nulls.slice(0, 1)]);
        of_parts(&[Arc::new(Float32Array::from(vec![0.5, f32::NAN]))]);
    }

    #[test]
    fn numbers_that_may_not_be_null_are_refused_if_one_is() {
        let encoding = Encoding::new(None, None).unwrap();
        let field = Field::new("n", arrow_schema::DataType::Int32, false);
        let arrays = [vec![Some(1)], vec![None]]
            .map(|values| -> ArrayRef { Arc::new(Int32Array::from(values)) });
        assert!(encoding.column(&field, &arrays[..1]).is_ok());
        assert!(encoding.column(&field, &arrays).is_err());
    }
}
