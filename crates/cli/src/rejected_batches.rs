//! [`RejectedBatches`]: rejected inputs as record batches, with the fields of `rejected.jsonl`.

use super::tables::{TableBatch, send};
use arrow_array::builder::{Int32Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use crossbeam_channel::Sender;
use std::sync::Arc;
use tapeloop::error::{Error, Result};

/// The name of the table.
pub const REJECTED: &str = "rejected";

/// Rows of a record batch: many enough that a batch costs little, few enough to take little memory.
const ROWS: usize = 1024;

/// Collects rejected inputs.
pub struct RejectedBatches {
    batches: Sender<TableBatch>,
    rows: usize,
    source: StringBuilder,
    ordinal: UInt64Builder,
    model: Int32Builder,
    kind: StringBuilder,
    reason: StringBuilder,
    fix: StringBuilder,
}

/// The schema of the table.
pub fn schema() -> SchemaRef {
    let field = |name: &str, data_type, nullable| Field::new(name, data_type, nullable);
    Arc::new(Schema::new(vec![
        field("source", DataType::Utf8, false),
        field("ordinal", DataType::UInt64, false),
        field("model", DataType::Int32, true),
        field("kind", DataType::Utf8, false),
        field("reason", DataType::Utf8, false),
        field("fix", DataType::Utf8, true),
    ]))
}

impl RejectedBatches {
    /// No rows yet; batches go to `batches`.
    pub fn new(batches: Sender<TableBatch>) -> Self {
        RejectedBatches {
            batches,
            rows: 0,
            source: StringBuilder::new(),
            ordinal: UInt64Builder::new(),
            model: Int32Builder::new(),
            kind: StringBuilder::new(),
            reason: StringBuilder::new(),
            fix: StringBuilder::new(),
        }
    }

    /// Adds a rejected input. Waits while the reader of the stream is behind.
    ///
    /// # Errors
    /// [`ErrorKind::Closed`](tapeloop::ErrorKind::Closed) if the reader of the batches has ended.
    pub fn reject(
        &mut self,
        source: &str,
        ordinal: u64,
        model: Option<i32>,
        error: &Error,
    ) -> Result<()> {
        self.source.append_value(source);
        self.ordinal.append_value(ordinal);
        self.model.append_option(model);
        self.kind.append_value(error.kind().name());
        self.reason.append_value(error.reason());
        self.fix.append_option(error.fix_text());
        self.rows += 1;
        match self.rows {
            ROWS => self.send(),
            _ => Ok(()),
        }
    }

    /// Sends the last rows. Waits while the reader of the stream is behind.
    ///
    /// # Errors
    /// [`ErrorKind::Closed`](tapeloop::ErrorKind::Closed) if the reader of the batches has ended.
    pub fn finish(mut self) -> Result<()> {
        match self.rows {
            0 => Ok(()),
            _ => self.send(),
        }
    }

    /// Sends the rows so far as a batch; waits while the reader of the stream is behind.
    fn send(&mut self) -> Result<()> {
        self.rows = 0;
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.source.finish()),
            Arc::new(self.ordinal.finish()),
            Arc::new(self.model.finish()),
            Arc::new(self.kind.finish()),
            Arc::new(self.reason.finish()),
            Arc::new(self.fix.finish()),
        ];
        let batch = RecordBatch::try_new(schema(), columns).expect("the columns are the schema's");
        send(&self.batches, REJECTED, batch)
    }
}
