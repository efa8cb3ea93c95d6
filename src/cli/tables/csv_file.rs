//! Tables as text: a line of names, and a line for each row. A task writes some rows of a row
//! group.

use super::column::Column;
use super::part_file::{Encoded, FileSpec, Format, Task};
use super::row_group::RowGroup;
use super::statistics::ValueStatistics;
use crate::error::{Error, ErrorKind, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Int32Type};
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray, StringArray};
use arrow_schema::DataType;
use csv::Writer;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;

/// A CSV file that is being written.
pub(super) struct CsvFile {
    file: File,
    columns: Arc<[Column]>,
}

impl Format for CsvFile {
    /// Lines of text.
    type Encoded = Vec<u8>;

    fn start(mut file: File, spec: &FileSpec) -> Result<Self> {
        let mut header = Writer::from_writer(Vec::new());
        let names = spec.columns().map(|column| &column.name);
        header.write_record(names).map_err(from_csv)?;
        file.write_all(&text_of(header)?)?;
        Ok(CsvFile {
            file,
            columns: Arc::clone(&spec.columns),
        })
    }

    fn tasks(&mut self, group: &RowGroup) -> Result<Vec<Task<Vec<u8>>>> {
        let task = |slice: usize| {
            let columns = Arc::clone(&self.columns);
            Task {
                share: "rows".to_owned(),
                encode: Box::new(move |group| {
                    let arrays = group.slice(slice, &columns);
                    let statistics = arrays.iter().map(ValueStatistics::of);
                    Ok(Encoded {
                        data: lines(&arrays)?,
                        statistics: statistics.enumerate().collect(),
                    })
                }),
            }
        };
        Ok((0..group.slices()).map(task).collect())
    }

    fn write(&mut self, encoded: Vec<Vec<u8>>) -> Result<()> {
        for lines in encoded {
            self.file.write_all(&lines)?;
        }
        Ok(())
    }

    fn finish(self) -> Result<File> {
        Ok(self.file)
    }
}

fn from_csv(error: csv::Error) -> Error {
    Error::new(ErrorKind::Io, error.to_string())
}

fn text_of(writer: Writer<Vec<u8>>) -> Result<Vec<u8>> {
    let text = writer.into_inner();
    text.map_err(|error| Error::new(ErrorKind::Io, error.to_string()))
}

/// A column with the type of its values.
enum Values<'a> {
    Text(&'a PrimitiveArray<Int32Type>, &'a StringArray),
    Integer(&'a PrimitiveArray<Int32Type>),
    Real(&'a PrimitiveArray<Float32Type>),
    Half(&'a PrimitiveArray<Float16Type>),
    Flag(&'a BooleanArray),
}

impl<'a> Values<'a> {
    fn of(array: &'a ArrayRef) -> Self {
        match array.data_type() {
            DataType::Dictionary(..) => {
                let array = array.as_dictionary::<Int32Type>();
                Values::Text(array.keys(), array.values().as_string())
            }
            DataType::Int32 => Values::Integer(array.as_primitive()),
            DataType::Float32 => Values::Real(array.as_primitive()),
            DataType::Float16 => Values::Half(array.as_primitive()),
            DataType::Boolean => Values::Flag(array.as_boolean()),
            other => unreachable!("no column is stored as {other}"),
        }
    }
}

/// The lines of these columns.
fn lines(arrays: &[ArrayRef]) -> Result<Vec<u8>> {
    let columns = arrays.iter().map(|array| (array, Values::of(array)));
    let columns: Vec<(&ArrayRef, Values<'_>)> = columns.collect();
    let rows = arrays.first().map_or(0, |array| array.len());
    let mut writer = Writer::from_writer(Vec::new());
    let mut integer = itoa::Buffer::new();
    let mut real = ryu::Buffer::new();
    for row in 0..rows {
        for (array, values) in &columns {
            let field = match values {
                _ if array.is_null(row) => "",
                Values::Text(keys, texts) => texts.value(keys.value(row) as usize),
                Values::Integer(integers) => integer.format(integers.value(row)),
                Values::Real(reals) => shortest(&mut real, reals.value(row)),
                Values::Half(halves) => shortest(&mut real, halves.value(row).to_f32()),
                Values::Flag(flags) if flags.value(row) => "true",
                Values::Flag(_) => "false",
            };
            writer.write_field(field).map_err(from_csv)?;
        }
        writer.write_record(None::<&[u8]>).map_err(from_csv)?;
    }
    text_of(writer)
}

/// The shortest decimal that gives the same 32 bits.
fn shortest(buffer: &mut ryu::Buffer, value: f32) -> &str {
    let text = buffer.format(value);
    text.strip_suffix(".0").unwrap_or(text)
}
