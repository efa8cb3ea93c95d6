//! Tables as text, with a line for each row. A task writes some rows of a row group.

use super::column::TableColumn;
use super::part_file::{EncodeTask, Encoded, FileFormat, FileSpec, RowGroupFormat};
use super::row_group::RowGroup;
use super::statistics::ValueStatistics;
use crate::terminal::for_terminal;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray, StringArray};
use arrow_schema::DataType;
use std::fs::File;
use std::io::Write;
use std::marker::PhantomData;
use std::sync::Arc;
use tapeloop::error::Result;

/// How a text format writes rows.
pub(super) trait Lines: Send + 'static {
    /// What precedes the rows.
    ///
    /// # Errors
    /// The names cannot be written in this format.
    fn header(columns: &[TableColumn]) -> Result<Vec<u8>>;

    /// The lines of these rows; `arrays` has their values in each column.
    ///
    /// # Errors
    /// The values cannot be written in this format.
    fn lines(columns: &[TableColumn], arrays: &[ArrayRef]) -> Result<Vec<u8>>;
}

/// A text file that is being written.
pub(super) struct TextFile<L> {
    file: File,
    columns: Arc<[TableColumn]>,
    lines: PhantomData<L>,
}

impl<L: Lines> FileFormat for TextFile<L> {
    fn start(mut file: File, spec: &FileSpec) -> Result<Self> {
        file.write_all(&for_terminal(&file, &L::header(&spec.columns)?))?;
        Ok(TextFile {
            file,
            columns: Arc::clone(&spec.columns),
            lines: PhantomData,
        })
    }
}

impl<L: Lines> RowGroupFormat for TextFile<L> {
    /// Lines of text.
    type Encoded = Vec<u8>;

    fn tasks(&mut self, group: &RowGroup) -> Result<Vec<EncodeTask<Vec<u8>>>> {
        let task = |slice: usize| {
            let columns = Arc::clone(&self.columns);
            EncodeTask {
                share: "rows".to_owned(),
                encode: Box::new(move |group| {
                    let arrays = group.slice(slice, &columns);
                    let statistics = arrays.iter().map(ValueStatistics::from_array);
                    Ok(Encoded {
                        data: L::lines(&columns, &arrays)?,
                        statistics: statistics.enumerate().collect(),
                    })
                }),
            }
        };
        Ok((0..group.slices()).map(task).collect())
    }

    fn write(&mut self, encoded: Vec<Vec<u8>>) -> Result<()> {
        for lines in encoded {
            self.file.write_all(&for_terminal(&self.file, &lines))?;
        }
        Ok(())
    }

    fn finish(self) -> Result<Option<File>> {
        Ok(Some(self.file))
    }
}

/// A column with the type of its values.
pub(super) enum TypedColumn<'a> {
    Text(&'a PrimitiveArray<Int32Type>, &'a StringArray),
    Integer(&'a PrimitiveArray<Int32Type>),
    Long(&'a PrimitiveArray<Int64Type>),
    Real(&'a PrimitiveArray<Float32Type>),
    Double(&'a PrimitiveArray<Float64Type>),
    Half(&'a PrimitiveArray<Float16Type>),
    Flag(&'a BooleanArray),
}

impl<'a> TypedColumn<'a> {
    /// The values of an array.
    pub(super) fn new(array: &'a ArrayRef) -> Self {
        match array.data_type() {
            DataType::Dictionary(..) => {
                let array = array.as_dictionary::<Int32Type>();
                TypedColumn::Text(array.keys(), array.values().as_string())
            }
            DataType::Int32 => TypedColumn::Integer(array.as_primitive()),
            DataType::Int64 => TypedColumn::Long(array.as_primitive()),
            DataType::Float32 => TypedColumn::Real(array.as_primitive()),
            DataType::Float64 => TypedColumn::Double(array.as_primitive()),
            DataType::Float16 => TypedColumn::Half(array.as_primitive()),
            DataType::Boolean => TypedColumn::Flag(array.as_boolean()),
            other => unreachable!("no column is stored as {other}"),
        }
    }
}

/// The shortest decimal that gives the same bits.
pub(super) fn shortest(buffer: &mut ryu::Buffer, value: impl ryu::Float) -> &str {
    let text = buffer.format(value);
    text.strip_suffix(".0").unwrap_or(text)
}
