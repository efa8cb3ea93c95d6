//! Tables as CSV: a line of names, and a line for each row.

use super::column::TableColumn;
use super::text_file::{Lines, TypedColumn, shortest};
use arrow_array::{Array, ArrayRef};
use csv::Writer;
use tapeloop::error::{Error, ErrorKind, Result};

/// Lines with commas between the values.
pub(super) struct Csv;

impl Lines for Csv {
    fn header(columns: &[TableColumn]) -> Result<Vec<u8>> {
        let mut header = Writer::from_writer(Vec::new());
        let names = columns.iter().map(|column| &column.spec.name);
        header.write_record(names).map_err(from_csv)?;
        text_of(header)
    }

    fn lines(_: &[TableColumn], arrays: &[ArrayRef]) -> Result<Vec<u8>> {
        let columns = arrays.iter().map(|array| (array, TypedColumn::new(array)));
        let columns: Vec<(&ArrayRef, TypedColumn<'_>)> = columns.collect();
        let rows = arrays.first().map_or(0, |array| array.len());
        let mut writer = Writer::from_writer(Vec::new());
        let mut integer = itoa::Buffer::new();
        let mut real = ryu::Buffer::new();
        for row in 0..rows {
            for (array, values) in &columns {
                let field = match values {
                    _ if array.is_null(row) => "",
                    TypedColumn::Text(keys, texts) => texts.value(keys.value(row) as usize),
                    TypedColumn::Integer(integers) => integer.format(integers.value(row)),
                    TypedColumn::Long(integers) => integer.format(integers.value(row)),
                    TypedColumn::Real(reals) => shortest(&mut real, reals.value(row)),
                    TypedColumn::Double(reals) => shortest(&mut real, reals.value(row)),
                    TypedColumn::Half(halves) => shortest(&mut real, halves.value(row).to_f32()),
                    TypedColumn::Flag(flags) if flags.value(row) => "true",
                    TypedColumn::Flag(_) => "false",
                };
                writer.write_field(field).map_err(from_csv)?;
            }
            writer.write_record(None::<&[u8]>).map_err(from_csv)?;
        }
        text_of(writer)
    }
}

fn from_csv(error: csv::Error) -> Error {
    Error::new(ErrorKind::Io, error.to_string())
}

fn text_of(writer: Writer<Vec<u8>>) -> Result<Vec<u8>> {
    let text = writer.into_inner();
    text.map_err(|error| Error::new(ErrorKind::Io, error.to_string()))
}
