//! Tables in Parquet: a run's own table of residues, or any other.

use super::Annotations;
use super::columns::{Cell, Columns};
use crate::error::{Context, Error, Result};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::schema::types::Type;
use std::fs::File;
use std::path::Path;

/// Adds the rows of a file, and returns the names of its columns. `file_name` is the structure
/// of rows that do not name one.
///
/// # Errors
/// The file cannot be read; a column or a row is wrong.
pub(super) fn read(path: &Path, file_name: &str, all: &mut Annotations) -> Result<Vec<String>> {
    let unreadable = |error: parquet::errors::ParquetError| {
        Error::config(error.to_string())
            .fix("write it as Parquet, unpacked or packed with snappy, lz4 or zstd")
    };
    let file = File::open(path)
        .map_err(|error| Error::config(error.to_string()).fix("give a table that can be read"))?;
    let reader = SerializedFileReader::new(file).map_err(unreadable)?;
    let schema = reader.metadata().file_metadata().schema();
    let names: Vec<&str> = schema
        .get_fields()
        .iter()
        .map(|field| field.name())
        .collect();
    let columns = Columns::find(&names, &all.channels)?;
    let all_names = names.iter().map(|name| (*name).to_owned()).collect();
    if columns.have_no_channel() {
        return Ok(all_names);
    }
    // Only the columns that are needed are unpacked, so they have other indices in a row.
    let fields = columns.indices().into_iter();
    let fields: Vec<_> = fields.map(|at| schema.get_fields()[at].clone()).collect();
    let names: Vec<&str> = fields.iter().map(|field| field.name()).collect();
    let columns = Columns::find(&names, &all.channels)?;
    let projection = Type::group_type_builder(schema.name()).with_fields(fields.clone());
    let projection = projection.build().map_err(unreadable)?;
    let rows = reader.get_row_iter(Some(projection)).map_err(unreadable)?;
    for (number, row) in (1..).zip(rows) {
        let place = || format!("row {number}");
        let row = row.map_err(unreadable).within(place)?;
        let cells = row.get_column_iter().map(|(name, field)| cell(name, field));
        let cells: Vec<Cell<'_>> = cells.collect::<Result<_>>().within(place)?;
        all.add(&columns, &cells, file_name, number).within(place)?;
    }
    Ok(all_names)
}

fn cell<'a>(name: &str, field: &'a Field) -> Result<Cell<'a>> {
    Ok(Cell::Number(match field {
        Field::Null => return Ok(Cell::Null),
        Field::Str(text) => return Ok(Cell::Text(text)),
        Field::Bool(flag) => f64::from(u8::from(*flag)),
        Field::Byte(number) => (*number).into(),
        Field::Short(number) => (*number).into(),
        Field::Int(number) => (*number).into(),
        Field::Long(number) => *number as f64,
        Field::UByte(number) => (*number).into(),
        Field::UShort(number) => (*number).into(),
        Field::UInt(number) => (*number).into(),
        Field::ULong(number) => *number as f64,
        Field::Float16(number) => (*number).into(),
        Field::Float(number) => (*number).into(),
        Field::Double(number) => *number,
        other => {
            let error = Error::config(format!("column {name:?} holds {other}"));
            return Err(error.fix("write the column as numbers or text"));
        }
    }))
}
