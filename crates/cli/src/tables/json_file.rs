//! Tables as JSON: an object in each line, for each row.

use super::column::TableColumn;
use super::text_file::{Lines, TypedColumn, shortest};
use arrow_array::{Array, ArrayRef};
use std::io::Write;
use tapeloop::error::{Error, ErrorKind, Result};

/// Lines with an object that has every column by name. JSON has no infinities; they are null.
pub(super) struct JsonLines;

impl Lines for JsonLines {
    fn header(_: &[TableColumn]) -> Result<Vec<u8>> {
        Ok(Vec::new())
    }

    fn lines(columns: &[TableColumn], arrays: &[ArrayRef]) -> Result<Vec<u8>> {
        let names: Vec<Vec<u8>> = columns
            .iter()
            .map(|column| quoted(&column.spec.name))
            .collect::<Result<_>>()?;
        let values: Vec<TypedColumn<'_>> = arrays.iter().map(TypedColumn::new).collect();
        let rows = arrays.first().map_or(0, |array| array.len());
        let mut text = Vec::new();
        let mut real = ryu::Buffer::new();
        for row in 0..rows {
            for (index, (array, values)) in arrays.iter().zip(&values).enumerate() {
                text.push(if index == 0 { b'{' } else { b',' });
                text.extend(&names[index]);
                text.push(b':');
                match values {
                    _ if array.is_null(row) => text.extend(b"null"),
                    TypedColumn::Text(keys, texts) => {
                        text.extend(quoted(texts.value(keys.value(row) as usize))?);
                    }
                    TypedColumn::Integer(integers) => write!(text, "{}", integers.value(row))?,
                    TypedColumn::Long(integers) => write!(text, "{}", integers.value(row))?,
                    TypedColumn::Real(reals) => number(&mut text, &mut real, reals.value(row)),
                    TypedColumn::Double(reals) => number(&mut text, &mut real, reals.value(row)),
                    TypedColumn::Half(halves) => {
                        number(&mut text, &mut real, halves.value(row).to_f32())
                    }
                    TypedColumn::Flag(flags) => write!(text, "{}", flags.value(row))?,
                }
            }
            text.extend(b"}\n");
        }
        Ok(text)
    }
}

fn quoted(text: &str) -> Result<Vec<u8>> {
    serde_json::to_vec(text).map_err(|error| Error::new(ErrorKind::Io, error.to_string()))
}

/// Appends a number; JSON has no NaN and no infinity, which are null.
fn number<T>(text: &mut Vec<u8>, buffer: &mut ryu::Buffer, value: T)
where
    T: ryu::Float + Into<f64>,
{
    if value.into().is_finite() {
        text.extend(shortest(buffer, value).as_bytes())
    } else {
        text.extend(b"null")
    }
}
