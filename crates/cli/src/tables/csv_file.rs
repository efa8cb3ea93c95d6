//! Tables as CSV: a line of names, and a line for each row.

use super::column::Column;
use super::text_file::{Lines, Values, shortest};
use arrow_array::{Array, ArrayRef};
use csv::Writer;
use tapeloop::error::{Error, ErrorKind, Result};

/// Lines with commas between the values.
pub(super) struct Csv;

impl Lines for Csv {
    fn header(columns: &[Column]) -> Result<Vec<u8>> {
        let mut header = Writer::from_writer(Vec::new());
        let names = columns.iter().map(|column| &column.spec.name);
        header.write_record(names).map_err(from_csv)?;
        text_of(header)
    }

    fn lines(_: &[Column], arrays: &[ArrayRef]) -> Result<Vec<u8>> {
        let columns = arrays.iter().map(|array| (array, Values::new(array)));
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
                    Values::Long(integers) => integer.format(integers.value(row)),
                    Values::Real(reals) => shortest(&mut real, reals.value(row)),
                    Values::Double(reals) => shortest(&mut real, reals.value(row)),
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
}

fn from_csv(error: csv::Error) -> Error {
    Error::new(ErrorKind::Io, error.to_string())
}

fn text_of(writer: Writer<Vec<u8>>) -> Result<Vec<u8>> {
    let text = writer.into_inner();
    text.map_err(|error| Error::new(ErrorKind::Io, error.to_string()))
}
