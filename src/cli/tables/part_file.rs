//! One Parquet file of a table. It gets its name once the files of all tables are on the disk.

use super::super::files::Temporary;
use super::super::path_text::shown;
use super::column::Column;
use super::row_group::RowGroup;
use super::schema::arrow_schema;
use super::statistics::ValueStatistics;
use crate::error::{Context, Error, ErrorKind, Result, catch};
use arrow_array::ArrayRef;
use arrow_schema::{Field, SchemaRef};
use crossbeam_channel::{Receiver, bounded};
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use rayon::ThreadPool;
use std::collections::VecDeque;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

/// The most row groups of a table that are encoded at the same time, while another one is filled.
/// Each holds its rows until they are encoded; more made no run faster.
pub(super) const GROUPS_ENCODING_MAX: usize = 2;

/// A file that is being written. Dropping it before [`CompletePart::publish`] removes it.
pub(super) struct PartFile {
    path: PathBuf,
    temporary: Temporary,
    schema: SchemaRef,
    writer: SerializedFileWriter<File>,
    writers: ArrowRowGroupWriterFactory,
    columns: Arc<[Column]>,
    /// The row groups that the pool is encoding, the oldest first.
    encoding: VecDeque<EncodingGroup>,
    row_groups: usize,
    statistics: Vec<ValueStatistics>,
}

/// A complete file, flushed to the disk under its temporary name.
pub(super) struct CompletePart {
    path: PathBuf,
    temporary: Temporary,
    /// The statistics of each column.
    pub(super) statistics: Vec<ValueStatistics>,
}

/// A row group that the pool is encoding. Columns arrive in any order.
struct EncodingGroup {
    columns: Receiver<(usize, Result<EncodedColumn>)>,
}

struct EncodedColumn {
    chunk: ArrowColumnChunk,
    statistics: ValueStatistics,
}

fn from_parquet(error: ParquetError) -> Error {
    match error {
        // Without Parquet's prefix: `No space left on device`.
        ParquetError::External(source) => Error::new(ErrorKind::Io, source.to_string()),
        other => Error::new(ErrorKind::Io, other.to_string()),
    }
}

impl PartFile {
    /// Creates the file, which will be renamed to `path`.
    ///
    /// # Errors
    /// The file cannot be created.
    pub(super) fn create(
        path: PathBuf,
        columns: Arc<[Column]>,
        properties: Arc<WriterProperties>,
    ) -> Result<Self> {
        let (temporary, file) = Temporary::fixed(&path)?;
        let schema = arrow_schema(columns.iter().map(|column| &column.spec));
        let parquet_schema = ArrowSchemaConverter::new()
            .convert(&schema)
            .map_err(from_parquet)?;
        let writer = SerializedFileWriter::new(file, parquet_schema.root_schema_ptr(), properties)
            .map_err(from_parquet)
            .within(|| shown(temporary.path()))?;
        let writers = ArrowRowGroupWriterFactory::new(&writer, Arc::clone(&schema));
        Ok(PartFile {
            path,
            temporary,
            schema,
            writer,
            writers,
            statistics: vec![ValueStatistics::default(); columns.len()],
            columns,
            encoding: VecDeque::new(),
            row_groups: 0,
        })
    }

    /// Has the pool gather and encode a row group, with a task for each column, and writes the
    /// earlier row groups that are encoded. If the pool encodes [`GROUPS_ENCODING_MAX`] already, it
    /// waits for the oldest.
    ///
    /// # Errors
    /// An earlier row group cannot be encoded or written.
    pub(super) fn write_group(&mut self, group: RowGroup, pool: &ThreadPool) -> Result<()> {
        while self.encoding.len() >= GROUPS_ENCODING_MAX || self.is_oldest_encoded() {
            self.write_oldest()?;
        }
        let index = self.row_groups + self.encoding.len();
        let writers = self.writers.create_column_writers(index);
        let writers = writers.map_err(from_parquet)?;
        let (sender, columns) = bounded(writers.len());
        self.encoding.push_back(EncodingGroup { columns });
        let group = Arc::new(group);
        for (index, writer) in writers.into_iter().enumerate() {
            let (schema, sender) = (Arc::clone(&self.schema), sender.clone());
            let (columns, group) = (Arc::clone(&self.columns), Arc::clone(&group));
            pool.spawn(move || {
                let encoded = catch(|| {
                    let arrays = group.arrays(&columns[index], index);
                    encode(writer, schema.field(index), arrays)
                });
                // The last column's task frees the rows.
                drop(group);
                let encoded = encoded.unwrap_or_else(|panic| {
                    let message = format!("encoding panicked: {panic}");
                    Err(Error::new(ErrorKind::Io, message))
                });
                // Dropping the part drops the receiver.
                let _ = sender.send((index, encoded));
            });
        }
        Ok(())
    }

    fn is_oldest_encoded(&self) -> bool {
        let oldest = self.encoding.front();
        oldest.is_some_and(|group| group.columns.len() == self.columns.len())
    }

    /// Writes the oldest row group, once the pool has encoded it.
    fn write_oldest(&mut self) -> Result<()> {
        let Some(group) = self.encoding.pop_front() else {
            return Ok(());
        };
        let mut chunks: Vec<Option<ArrowColumnChunk>> = Vec::new();
        chunks.resize_with(self.columns.len(), || None);
        for (index, encoded) in group.columns {
            let encoded = encoded.within(|| format!("column {}", self.columns[index].spec.name))?;
            self.statistics[index].add(encoded.statistics);
            chunks[index] = Some(encoded.chunk);
        }
        let writer = &mut self.writer;
        let write = || -> parquet::errors::Result<()> {
            let mut group = writer.next_row_group()?;
            for chunk in chunks {
                let chunk = chunk.expect("every task sends one chunk");
                chunk.append_to_row_group(&mut group)?;
            }
            group.close()?;
            Ok(())
        };
        let written = write().map_err(from_parquet);
        written.within(|| shown(self.temporary.path()))?;
        self.row_groups += 1;
        Ok(())
    }

    /// Writes the last row groups and the footer, and flushes the file.
    ///
    /// # Errors
    /// It cannot be encoded, written, or flushed to the disk.
    pub(super) fn finish(mut self) -> Result<CompletePart> {
        while !self.encoding.is_empty() {
            self.write_oldest()?;
        }
        let PartFile {
            path,
            temporary,
            writer,
            statistics,
            ..
        } = self;
        let place = || shown(temporary.path());
        let file = writer.into_inner().map_err(from_parquet).within(place)?;
        file.sync_all().within(place)?;
        Ok(CompletePart {
            path,
            temporary,
            statistics,
        })
    }
}

impl CompletePart {
    /// Renames the file to its name.
    ///
    /// # Errors
    /// It cannot be renamed.
    pub(super) fn publish(self) -> Result<()> {
        let CompletePart {
            path, temporary, ..
        } = self;
        temporary.rename(&path).within(|| shown(&path))
    }
}

fn encode(
    mut writer: ArrowColumnWriter,
    field: &Field,
    arrays: impl Iterator<Item = ArrayRef>,
) -> Result<EncodedColumn> {
    let mut statistics = ValueStatistics::default();
    for array in arrays {
        for leaf in compute_leaves(field, &array).map_err(from_parquet)? {
            writer.write(&leaf).map_err(from_parquet)?;
        }
        statistics.add(ValueStatistics::of(&array));
    }
    Ok(EncodedColumn {
        chunk: writer.close().map_err(from_parquet)?,
        statistics,
    })
}
