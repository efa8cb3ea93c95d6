//! Tables as text, with a line for each row. A task writes some rows of a row group.

use super::column::Column;
use super::part_file::{Encoded, FileFormat, FileSpec, Format, Task};
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
    fn header(columns: &[Column]) -> Result<Vec<u8>>;

    /// The lines of these rows; `arrays` has their values in each column.
    ///
    /// # Errors
    /// The values cannot be written in this format.
    fn lines(columns: &[Column], arrays: &[ArrayRef]) -> Result<Vec<u8>>;
}

/// A text file that is being written.
pub(super) struct TextFile<L> {
    file: File,
    columns: Arc<[Column]>,
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

impl<L: Lines> Format for TextFile<L> {
    /// Lines of text.
    type Encoded = Vec<u8>;

    fn tasks(&mut self, group: &RowGroup) -> Result<Vec<Task<Vec<u8>>>> {
        let task = |slice: usize| {
            let columns = Arc::clone(&self.columns);
            Task {
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
pub(super) enum Values<'a> {
    Text(&'a PrimitiveArray<Int32Type>, &'a StringArray),
    Integer(&'a PrimitiveArray<Int32Type>),
    Long(&'a PrimitiveArray<Int64Type>),
    Real(&'a PrimitiveArray<Float32Type>),
    Double(&'a PrimitiveArray<Float64Type>),
    Half(&'a PrimitiveArray<Float16Type>),
    Flag(&'a BooleanArray),
}

impl<'a> Values<'a> {
    /// The values of an array.
    pub(super) fn new(array: &'a ArrayRef) -> Self {
        match array.data_type() {
            DataType::Dictionary(..) => {
                let array = array.as_dictionary::<Int32Type>();
                Values::Text(array.keys(), array.values().as_string())
            }
            DataType::Int32 => Values::Integer(array.as_primitive()),
            DataType::Int64 => Values::Long(array.as_primitive()),
            DataType::Float32 => Values::Real(array.as_primitive()),
            DataType::Float64 => Values::Double(array.as_primitive()),
            DataType::Float16 => Values::Half(array.as_primitive()),
            DataType::Boolean => Values::Flag(array.as_boolean()),
            other => unreachable!("no column is stored as {other}"),
        }
    }
}

/// The shortest decimal that gives the same bits.
pub(super) fn shortest(buffer: &mut ryu::Buffer, value: impl ryu::Float) -> &str {
    let text = buffer.format(value);
    text.strip_suffix(".0").unwrap_or(text)
}
