//! Tables as Arrow IPC files, which other programs can map into memory. A row group is a record
//! batch. A task gathers a column of it; the writer, on one thread, compresses and writes it.

use super::super::config::Compression;
use super::column::Column;
use super::part_file::{Encoded, FileFormat, FileSpec, Format, Task};
use super::row_group::RowGroup;
use super::schema::plain_schema;
use super::statistics::ValueStatistics;
use crate::error::{Error, ErrorKind, Result};
use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use arrow_select::concat::concat;
use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;

/// An Arrow file that is being written.
pub(super) struct ArrowFile {
    writer: FileWriter<File>,
    schema: SchemaRef,
    columns: Arc<[Column]>,
}

pub(super) fn from_arrow(error: ArrowError) -> Error {
    match error {
        // Without Arrow's prefix: `No space left on device`.
        ArrowError::IoError(_, source) => Error::io(source),
        other => Error::new(ErrorKind::Io, other.to_string()),
    }
}

impl FileFormat for ArrowFile {
    fn start(file: File, spec: &FileSpec) -> Result<Self> {
        let (codec, level) = match spec.compression {
            Compression::None => (None, None),
            Compression::Lz4 => (Some(CompressionType::LZ4_FRAME), None),
            Compression::Zstd(level) => (Some(CompressionType::ZSTD), Some(level)),
        };
        let schema = Arc::new(file_schema(spec));
        let options = IpcWriteOptions::default().try_with_compression(codec);
        let writer = options
            .and_then(|options| options.try_with_compression_level(level))
            .and_then(|options| FileWriter::try_new_with_options(file, &schema, options));
        Ok(ArrowFile {
            writer: writer.map_err(from_arrow)?,
            schema,
            columns: Arc::clone(&spec.columns),
        })
    }
}

impl Format for ArrowFile {
    /// A column.
    type Encoded = ArrayRef;

    fn tasks(&mut self, _: &RowGroup) -> Result<Vec<Task<ArrayRef>>> {
        let task = |index: usize| {
            let columns = Arc::clone(&self.columns);
            Task {
                share: columns[index].place(),
                encode: Box::new(move |group| {
                    let arrays: Vec<ArrayRef> = group.arrays(&columns[index], index).collect();
                    let mut statistics = ValueStatistics::default();
                    let of_arrays = arrays.iter().map(ValueStatistics::of);
                    of_arrays.for_each(|of_array| statistics.add(of_array));
                    Ok(Encoded {
                        data: one_array(&arrays).map_err(from_arrow)?,
                        statistics: vec![(index, statistics)],
                    })
                }),
            }
        };
        Ok((0..self.columns.len()).map(task).collect())
    }

    fn write(&mut self, encoded: Vec<ArrayRef>) -> Result<()> {
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), encoded);
        let written = batch.and_then(|batch| self.writer.write(&batch));
        written.map_err(from_arrow)
    }

    fn finish(self) -> Result<Option<File>> {
        self.writer.into_inner().map(Some).map_err(from_arrow)
    }
}

/// The schema of a file, with the file's metadata. A file has one dictionary for all record
/// batches, which is known only at its end, and not every reader takes dictionaries that grow. So
/// texts are plain strings, which every reader maps.
pub(super) fn file_schema(spec: &FileSpec) -> Schema {
    let metadata = spec.metadata.iter();
    let metadata = metadata.map(|(key, value)| ((*key).to_owned(), value.clone()));
    plain_schema(spec.columns()).with_metadata(metadata.collect::<HashMap<_, _>>())
}

/// The arrays of a column one after the other, with plain strings in place of dictionaries.
pub(super) fn one_array(arrays: &[ArrayRef]) -> std::result::Result<ArrayRef, ArrowError> {
    if arrays[0].as_any_dictionary_opt().is_some() {
        return Ok(Arc::new(plain_texts(arrays)));
    }
    let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
    concat(&arrays)
}

fn plain_texts(arrays: &[ArrayRef]) -> StringArray {
    let rows = arrays.iter().map(Array::len).sum();
    let mut texts = StringBuilder::with_capacity(rows, 0);
    for array in arrays {
        let array = array.as_dictionary::<Int32Type>();
        let values = array.values().as_string::<i32>();
        for key in array.keys() {
            texts.append_option(key.map(|key| values.value(key as usize)));
        }
    }
    texts.finish()
}
