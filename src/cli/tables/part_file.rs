//! One Parquet file of a table. It gets its name once the files of all tables are on the disk.

use super::super::files::Temporary;
use super::super::path_text::shown;
use super::schema::{ColumnSpec, arrow_schema};
use crate::error::{Context, Error, ErrorKind, Result, catch};
use arrow_array::ArrayRef;
use arrow_schema::SchemaRef;
use crossbeam_channel::{Receiver, bounded};
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use rayon::ThreadPool;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

/// A file that is being written. Dropping it before [`CompletePart::publish`] removes it.
pub(super) struct PartFile {
    path: PathBuf,
    temporary: Temporary,
    schema: SchemaRef,
    writer: SerializedFileWriter<File>,
    columns: ArrowRowGroupWriterFactory,
    row_groups: usize,
    pending: Option<EncodingGroup>,
}

/// A complete file, flushed to the disk under its temporary name.
pub(super) struct CompletePart {
    path: PathBuf,
    temporary: Temporary,
}

/// A row group that the pool is encoding. Column chunks arrive in any order.
struct EncodingGroup {
    columns: usize,
    chunks: Receiver<(usize, Result<ArrowColumnChunk>)>,
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
        columns: &[ColumnSpec],
        properties: Arc<WriterProperties>,
    ) -> Result<Self> {
        let (temporary, file) = Temporary::fixed(&path)?;
        let schema = arrow_schema(columns);
        let parquet_schema = ArrowSchemaConverter::new()
            .convert(&schema)
            .map_err(from_parquet)?;
        let writer = SerializedFileWriter::new(file, parquet_schema.root_schema_ptr(), properties)
            .map_err(from_parquet)
            .within(|| shown(temporary.path()))?;
        let columns = ArrowRowGroupWriterFactory::new(&writer, Arc::clone(&schema));
        Ok(PartFile {
            path,
            temporary,
            schema,
            writer,
            columns,
            row_groups: 0,
            pending: None,
        })
    }

    /// Writes the previous row group to the file, then has the pool encode this one, with a task
    /// for each column. At most one row group is being encoded.
    ///
    /// # Errors
    /// The previous row group cannot be written.
    pub(super) fn write_group(&mut self, arrays: Vec<ArrayRef>, pool: &ThreadPool) -> Result<()> {
        self.write_pending()?;
        let writers = self
            .columns
            .create_column_writers(self.row_groups)
            .map_err(from_parquet)?;
        let (sender, chunks) = bounded(arrays.len());
        self.pending = Some(EncodingGroup {
            columns: arrays.len(),
            chunks,
        });
        for (index, (writer, array)) in writers.into_iter().zip(arrays).enumerate() {
            let (schema, sender) = (Arc::clone(&self.schema), sender.clone());
            pool.spawn(move || {
                let chunk = catch(|| encode(writer, &schema, index, &array));
                let chunk = chunk.unwrap_or_else(|panic| {
                    let message = format!("encoding panicked: {panic}");
                    Err(Error::new(ErrorKind::Io, message))
                });
                // Dropping the part drops the receiver.
                let _ = sender.send((index, chunk));
            });
        }
        Ok(())
    }

    /// Writes the row group that the pool has encoded, if there is one.
    fn write_pending(&mut self) -> Result<()> {
        let Some(pending) = self.pending.take() else {
            return Ok(());
        };
        let mut chunks: Vec<Option<ArrowColumnChunk>> = Vec::new();
        chunks.resize_with(pending.columns, || None);
        for (index, chunk) in pending.chunks {
            let name = self.schema.field(index).name();
            chunks[index] = Some(chunk.within(|| format!("column {name}"))?);
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

    /// Writes the last row group and the footer, and flushes the file.
    ///
    /// # Errors
    /// It cannot be written, or flushed to the disk.
    pub(super) fn finish(mut self) -> Result<CompletePart> {
        self.write_pending()?;
        let PartFile {
            path,
            temporary,
            writer,
            ..
        } = self;
        let place = || shown(temporary.path());
        let file = writer.into_inner().map_err(from_parquet).within(place)?;
        file.sync_all().within(place)?;
        Ok(CompletePart { path, temporary })
    }
}

impl CompletePart {
    /// Renames the file to its name.
    ///
    /// # Errors
    /// It cannot be renamed.
    pub(super) fn publish(self) -> Result<()> {
        let CompletePart { path, temporary } = self;
        temporary.rename(&path).within(|| shown(&path))
    }
}

fn encode(
    mut writer: ArrowColumnWriter,
    schema: &SchemaRef,
    index: usize,
    array: &ArrayRef,
) -> Result<ArrowColumnChunk> {
    for leaf in compute_leaves(schema.field(index), array).map_err(from_parquet)? {
        writer.write(&leaf).map_err(from_parquet)?;
    }
    writer.close().map_err(from_parquet)
}
