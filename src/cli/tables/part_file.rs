//! One Parquet file: row groups in, renamed when it and the other tables' part are whole.

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

/// A part on its way to disk. Dropped before [`WholePart::publish`] it leaves nothing.
pub(super) struct Part {
    path: PathBuf,
    temporary: Temporary,
    schema: SchemaRef,
    writer: SerializedFileWriter<File>,
    columns: ArrowRowGroupWriterFactory,
    row_groups: usize,
    pending: Option<Pending>,
}

/// A part that is whole and on the disk, under its temporary name.
pub(super) struct WholePart {
    path: PathBuf,
    temporary: Temporary,
}

/// A row group that the pool encodes: chunks by column, in any order.
struct Pending {
    columns: usize,
    chunks: Receiver<(usize, Result<ArrowColumnChunk>)>,
}

fn from_parquet(error: ParquetError) -> Error {
    match error {
        // The operating system's words alone: `No space left on device`.
        ParquetError::External(source) => Error::new(ErrorKind::Io, source.to_string()),
        other => Error::new(ErrorKind::Io, other.to_string()),
    }
}

impl Part {
    /// Starts the part that will be `path`.
    ///
    /// # Errors
    /// The file cannot be made.
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
        Ok(Part {
            path,
            temporary,
            schema,
            writer,
            columns,
            row_groups: 0,
            pending: None,
        })
    }

    /// Hands a row group to the pool, a task for each column, once the one
    /// before is in the file; so at most one is being encoded.
    ///
    /// # Errors
    /// The one before cannot be written.
    pub(super) fn write_group(&mut self, arrays: Vec<ArrayRef>, pool: &ThreadPool) -> Result<()> {
        self.settle()?;
        let writers = self
            .columns
            .create_column_writers(self.row_groups)
            .map_err(from_parquet)?;
        let (sender, chunks) = bounded(arrays.len());
        self.pending = Some(Pending {
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
                // The part may have been dropped, and the receiver with it.
                let _ = sender.send((index, chunk));
            });
        }
        Ok(())
    }

    /// Writes the row group that the pool has encoded, if there is one.
    fn settle(&mut self) -> Result<()> {
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
                let chunk = chunk.expect("every task sends once");
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

    /// Ends the file.
    ///
    /// # Errors
    /// It cannot be written, or flushed to the disk.
    pub(super) fn finish(mut self) -> Result<WholePart> {
        self.settle()?;
        let Part {
            path,
            temporary,
            writer,
            ..
        } = self;
        let place = || shown(temporary.path());
        let file = writer.into_inner().map_err(from_parquet).within(place)?;
        file.sync_all().within(place)?;
        Ok(WholePart { path, temporary })
    }
}

impl WholePart {
    /// Gives the part its name.
    ///
    /// # Errors
    /// It cannot be renamed.
    pub(super) fn publish(self) -> Result<()> {
        let WholePart { path, temporary } = self;
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
