//! Tables as Arrow record batches in memory, for a program that embeds this one. A row group is a
//! record batch.

use super::arrow_file::{file_schema, one_array};
use super::column::TableColumn;
use super::ipc::from_arrow;
use super::part_file::{EncodeTask, Encoded, FileSpec, RowGroupFormat};
use super::row_group::RowGroup;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use arrow_select::concat::concat;
use crossbeam_channel::Sender;
use std::fs::File;
use std::sync::Arc;
use tapeloop::error::{Error, ErrorKind, Result};

/// A record batch, and the name of its table.
pub type TableBatch = (&'static str, RecordBatch);

/// Sends a record batch of a table to the reader. Waits while the reader is behind.
///
/// # Errors
/// [`ErrorKind::Closed`] if the reader has ended.
pub fn send(batches: &Sender<TableBatch>, table: &'static str, batch: RecordBatch) -> Result<()> {
    let ended = "the reader of the record batches has ended";
    let sent = batches.send((table, batch));
    sent.map_err(|_| Error::new(ErrorKind::Closed, ended))
}

/// Sends the record batches of a table.
pub(super) struct ArrowBatches {
    table: &'static str,
    schema: SchemaRef,
    columns: Arc<[TableColumn]>,
    /// Whether texts are dictionaries, of which each batch has its own.
    shares_texts: bool,
    batches: Sender<TableBatch>,
}

impl ArrowBatches {
    pub(super) fn new(table: &'static str, spec: &FileSpec, batches: Sender<TableBatch>) -> Self {
        ArrowBatches {
            table,
            schema: Arc::new(file_schema(spec)),
            columns: Arc::clone(&spec.columns),
            shares_texts: spec.shares_texts,
            batches,
        }
    }
}

impl RowGroupFormat for ArrowBatches {
    /// A column.
    type Encoded = ArrayRef;

    fn tasks(&mut self, _: &RowGroup) -> Result<Vec<EncodeTask<ArrayRef>>> {
        let task = |index: usize| {
            let (columns, shares_texts) = (Arc::clone(&self.columns), self.shares_texts);
            EncodeTask {
                share: columns[index].place(),
                encode: Box::new(move |group| {
                    let arrays: Vec<ArrayRef> = group.arrays(&columns[index], index).collect();
                    let data = if shares_texts {
                        concat(&arrays.iter().map(AsRef::as_ref).collect::<Vec<_>>())
                    } else {
                        one_array(&arrays)
                    };
                    Ok(Encoded {
                        data: data.map_err(from_arrow)?,
                        statistics: Vec::new(),
                    })
                }),
            }
        };
        Ok((0..self.columns.len()).map(task).collect())
    }

    fn write(&mut self, encoded: Vec<ArrayRef>) -> Result<()> {
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), encoded).map_err(from_arrow)?;
        send(&self.batches, self.table, batch)
    }

    fn finish(self) -> Result<Option<File>> {
        Ok(None)
    }
}
