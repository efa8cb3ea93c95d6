//! Tables as Parquet. A task encodes a column of a row group.

use super::super::config::TableCompression;
use super::column::TableColumn;
use super::part_file::{EncodeTask, Encoded, FileFormat, FileSpec, RowGroupFormat};
use super::row_group::RowGroup;
use super::schema::{ColumnSpec, Kind, arrow_schema, plain_schema};
use super::statistics::ValueStatistics;
use arrow_array::ArrayRef;
use arrow_schema::{Field, SchemaRef};
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
};
use parquet::arrow::{ArrowSchemaConverter, add_encoded_arrow_schema_to_metadata};
use parquet::basic::{Compression as Codec, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;
use std::fs::File;
use std::sync::Arc;
use tapeloop::error::{Error, ErrorKind, Result};

/// A Parquet file that is being written.
pub(super) struct ParquetFile {
    schema: SchemaRef,
    writer: SerializedFileWriter<File>,
    writers: ArrowRowGroupWriterFactory,
    columns: Arc<[TableColumn]>,
    /// The row groups that have been started.
    row_groups: usize,
}

/// An [`ErrorKind::Io`] error: that of the file below Parquet's writer, if it is one.
fn from_parquet(error: ParquetError) -> Error {
    match error {
        // Parquet's prefix is left out, so that the message is `No space left on device`.
        ParquetError::External(source) => match source.downcast() {
            Ok(source) => Error::io(*source),
            Err(source) => Error::new(ErrorKind::Io, source.to_string()),
        },
        other => Error::new(ErrorKind::Io, other.to_string()),
    }
}

impl FileFormat for ParquetFile {
    fn start(file: File, spec: &FileSpec) -> Result<Self> {
        let schema = Arc::new(arrow_schema(spec.columns()));
        let parquet_schema = ArrowSchemaConverter::new()
            .convert(&schema)
            .map_err(from_parquet)?;
        let mut properties = properties(spec);
        // Parquet has no place for the description and the unit of a column. Readers that know
        // Arrow find them in its schema, which is an entry of the file's metadata.
        add_encoded_arrow_schema_to_metadata(&plain_schema(spec.columns()), &mut properties);
        let schema_ptr = parquet_schema.root_schema_ptr();
        let writer = SerializedFileWriter::new(file, schema_ptr, Arc::new(properties))
            .map_err(from_parquet)?;
        Ok(ParquetFile {
            writers: ArrowRowGroupWriterFactory::new(&writer, Arc::clone(&schema)),
            schema,
            writer,
            columns: Arc::clone(&spec.columns),
            row_groups: 0,
        })
    }
}

impl RowGroupFormat for ParquetFile {
    type Encoded = ArrowColumnChunk;

    fn tasks(&mut self, _: &RowGroup) -> Result<Vec<EncodeTask<ArrowColumnChunk>>> {
        let writers = self.writers.create_column_writers(self.row_groups);
        let writers = writers.map_err(from_parquet)?;
        self.row_groups += 1;
        let task = |(index, writer): (usize, ArrowColumnWriter)| {
            let (schema, columns) = (Arc::clone(&self.schema), Arc::clone(&self.columns));
            EncodeTask {
                share: columns[index].place(),
                encode: Box::new(move |group| {
                    let arrays = group.arrays(&columns[index], index);
                    let (data, statistics) = encode(writer, schema.field(index), arrays)?;
                    Ok(Encoded {
                        data,
                        statistics: vec![(index, statistics)],
                    })
                }),
            }
        };
        Ok(writers.into_iter().enumerate().map(task).collect())
    }

    fn write(&mut self, encoded: Vec<ArrowColumnChunk>) -> Result<()> {
        let write = || -> parquet::errors::Result<()> {
            let mut group = self.writer.next_row_group()?;
            for chunk in encoded {
                chunk.append_to_row_group(&mut group)?;
            }
            group.close()?;
            Ok(())
        };
        write().map_err(from_parquet)
    }

    fn finish(mut self) -> Result<Option<File>> {
        // An error of `into_inner` has the system's error only as a part of its text.
        self.writer.finish().map_err(from_parquet)?;
        Ok(Some(self.writer.inner().try_clone()?))
    }
}

/// Encodes a column of a row group, and adds up its statistics. An [`ErrorKind::Io`] error if
/// Parquet cannot.
fn encode(
    mut writer: ArrowColumnWriter,
    field: &Field,
    arrays: impl Iterator<Item = ArrayRef>,
) -> Result<(ArrowColumnChunk, ValueStatistics)> {
    let mut statistics = ValueStatistics::default();
    for array in arrays {
        for leaf in compute_leaves(field, &array).map_err(from_parquet)? {
            writer.write(&leaf).map_err(from_parquet)?;
        }
        statistics.add(ValueStatistics::from_array(&array));
    }
    Ok((writer.close().map_err(from_parquet)?, statistics))
}

/// The codec. For zstd, the level is `change` added to the configured one, within its range.
fn codec(compression: TableCompression, change: i32) -> Codec {
    match compression {
        TableCompression::None => Codec::UNCOMPRESSED,
        TableCompression::Lz4 => Codec::LZ4_RAW,
        TableCompression::Zstd(level) => {
            let level = ZstdLevel::try_new((level + change).clamp(1, 22));
            Codec::ZSTD(level.expect("the config checks the range"))
        }
    }
}

/// How a file is written. The metadata becomes the file's key-value metadata. The name of the
/// writer is fixed, so that the same values give the same bytes.
fn properties(spec: &FileSpec) -> WriterProperties {
    let pair = |(key, value): &(&'static str, String)| {
        KeyValue::new((*key).to_owned(), Some(value.clone()))
    };
    let properties = WriterProperties::builder()
        .set_created_by(concat!("tapeloop ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(codec(spec.compression, 0))
        // A page of a megabyte compresses better than one of 20,000 rows.
        .set_data_page_row_count_limit(usize::MAX)
        // The table writer cuts row groups itself.
        .set_max_row_group_row_count(None)
        .set_key_value_metadata(Some(spec.metadata.iter().map(pair).collect()));
    let store = |properties, column| store(properties, column, spec.compression);
    spec.columns().fold(properties, store).build()
}

/// How the level of zstd for reals differs from that for texts: at the default level, the lower one saves a
/// third of the time and costs 1% of the size.
const REALS_LEVEL: i32 = -2;

/// The same for repeating integers: at the default level, the higher one takes 1.8 times as long and saves 17% of
/// their size.
const REPEATING_LEVEL: i32 = 2;

/// How a column is encoded. The first bytes of reals differ little, so these are stored apart from
/// the others, byte stream split. Integers are stored as differences of few bits, which codecs
/// hardly compress, unless most are 0. (Byte stream split is better for integers too, but older readers, such as
/// DuckDB 1, refuse it there.)
fn store(
    properties: WriterPropertiesBuilder,
    column: &ColumnSpec,
    compression: TableCompression,
) -> WriterPropertiesBuilder {
    let path = ColumnPath::from(column.name.as_str());
    match column.kind {
        Kind::Text | Kind::Flag => properties,
        Kind::Word => properties.set_column_statistics_enabled(path, EnabledStatistics::None),
        Kind::Integer | Kind::Long => properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED)
            .set_column_compression(path, Codec::UNCOMPRESSED),
        Kind::Ascending => properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
        // The codec finds the sequences, which differences would hide.
        Kind::Repeating => properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path.clone(), Encoding::PLAIN)
            .set_column_compression(path, codec(compression, REPEATING_LEVEL)),
        Kind::Real | Kind::Half | Kind::Double => properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path.clone(), Encoding::BYTE_STREAM_SPLIT)
            .set_column_compression(path, codec(compression, REALS_LEVEL)),
    }
}
