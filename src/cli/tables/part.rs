//! One Parquet file: row groups in, renamed when it is whole.

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
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A part on its way to disk. Dropped before [`Part::finish`] it leaves nothing.
pub(super) struct Part {
    path: PathBuf,
    temporary: PathBuf,
    schema: SchemaRef,
    // Both `None` only while `finish` takes the part apart.
    writer: Option<SerializedFileWriter<File>>,
    columns: ArrowRowGroupWriterFactory,
    row_groups: usize,
    pending: Option<Pending>,
}

/// A row group that the pool encodes: chunks by column, in any order.
struct Pending {
    columns: usize,
    chunks: Receiver<(usize, Result<ArrowColumnChunk>)>,
}

/// The temporary name of the part that will be `path`.
pub(super) fn temporary_name(path: &Path) -> PathBuf {
    let name = path.file_name().expect("a part has a name");
    path.with_file_name(format!(".{}.tmp", name.display()))
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
        let temporary = temporary_name(&path);
        let place = || temporary.display().to_string();
        let schema = arrow_schema(columns);
        let file = File::create(&temporary).within(place)?;
        let parquet_schema = ArrowSchemaConverter::new()
            .convert(&schema)
            .map_err(from_parquet)?;
        let writer = SerializedFileWriter::new(file, parquet_schema.root_schema_ptr(), properties)
            .map_err(from_parquet)
            .within(place)?;
        let columns = ArrowRowGroupWriterFactory::new(&writer, Arc::clone(&schema));
        Ok(Part {
            path,
            temporary,
            schema,
            writer: Some(writer),
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
        let writer = self.writer.as_mut().expect("taken by finish only");
        let write = || -> parquet::errors::Result<()> {
            let mut group = writer.next_row_group()?;
            for chunk in chunks {
                let chunk = chunk.expect("every task sends once");
                chunk.append_to_row_group(&mut group)?;
            }
            group.close()?;
            Ok(())
        };
        write()
            .map_err(from_parquet)
            .within(|| self.temporary.display().to_string())?;
        self.row_groups += 1;
        Ok(())
    }

    /// Ends the file and gives it its name.
    ///
    /// # Errors
    /// It cannot be written, flushed to the disk or renamed.
    pub(super) fn finish(mut self) -> Result<()> {
        self.settle()?;
        let writer = self.writer.take().expect("taken here only");
        let place = || self.temporary.display().to_string();
        let file = writer.into_inner().map_err(from_parquet).within(place)?;
        file.sync_all().within(place)?;
        fs::rename(&self.temporary, &self.path).within(|| self.path.display().to_string())?;
        // The new name is safe only with the directory; some file systems refuse
        // to flush one, and have nothing to flush.
        if let Some(folder) = self.path.parent()
            && let Ok(folder) = File::open(folder)
        {
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // After `finish` the temporary name is gone, and that is no error.
        let _ = fs::remove_file(&self.temporary);
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
