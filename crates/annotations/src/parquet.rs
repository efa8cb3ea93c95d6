//! Tables in Parquet: a run's own table of residues, or any other.

use super::loader::Loader;
use super::parquet_headers::{check_footer, check_pages};
use super::values::{AnnotationCell, Type};
use arrow_array::temporal_conversions::{
    date32_to_datetime, timestamp_ms_to_datetime, timestamp_ns_to_datetime,
    timestamp_us_to_datetime,
};
use arrow_schema::{DataType, Field as ArrowField, TimeUnit};
use parquet::arrow::parquet_to_arrow_schema;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::schema::types::Type as ParquetType;
use std::path::Path;
use tapeloop_error::{Context, Error, Result};
use tapeloop_files::open_file;

/// How the values of a column are converted to cells.
#[derive(Clone, Copy, Debug)]
enum ParquetColumnKind {
    Plain(Type),
    /// Dates and times, which become texts. The unit applies to integers: the reader of rows returns times in
    /// nanoseconds as integers.
    Time(TimeUnit),
    /// Values that no column of a table can hold.
    Other,
}

/// Adds the rows of a file. `file_name` is the structure of rows that do not name one.
///
/// # Errors
/// [`ErrorKind::Config`](tapeloop_error::ErrorKind::Config): the file cannot be read, or a column or a row is wrong.
pub(super) fn read(path: &Path, file_name: &str, all: &mut Loader<'_>) -> Result<()> {
    let unreadable = |error: parquet::errors::ParquetError| {
        Error::config(error.to_string())
            .fix("write it as Parquet, unpacked or packed with snappy, lz4 or zstd")
    };
    let unread = |error: std::io::Error| {
        Error::config(error.to_string()).fix("write the table anew, and give one that can be read")
    };
    let mut file = open_file(path).map_err(unread)?;
    // Before the reader, which a hostile footer would hold for an unbounded time.
    check_footer(&mut file).map_err(unread)?;
    let pages = file.try_clone().map_err(unread)?;
    let reader = SerializedFileReader::new(file).map_err(unreadable)?;
    let metadata = reader.metadata().file_metadata();
    let schema = metadata.schema();
    let arrow = parquet_to_arrow_schema(metadata.schema_descr(), None).map_err(unreadable)?;
    let kinds: Vec<ParquetColumnKind> = arrow.fields().iter().map(|field| kind_of(field)).collect();
    let names: Vec<&str> = schema
        .get_fields()
        .iter()
        .map(|field| field.name())
        .collect();
    let stated: Vec<Option<Type>> = kinds.iter().map(|kind| kind.stated()).collect();
    let Some(mut table) = all.begin(&names, &stated)? else {
        return Ok(());
    };
    // Only the columns that are needed are unpacked.
    let needed = table.cells();
    if let Some(&column) = needed
        .iter()
        .find(|&&column| matches!(kinds[column], ParquetColumnKind::Other))
    {
        let (name, kind) = (names[column], arrow.field(column).data_type());
        let error = Error::config(format!("column {name:?} holds values of type {kind}"));
        return Err(error.fix(
            "write it as numbers, text or true and false, or leave it out of tables.annotations",
        ));
    }
    let chunks = reader.metadata().row_groups().iter();
    for chunk in chunks.flat_map(|group| group.columns()) {
        let name = chunk.column_path().parts().first();
        let is_needed = needed
            .iter()
            .any(|&column| name.is_some_and(|name| name == names[column]));
        // The reader refuses negative sizes, which `byte_range` would panic at.
        let is_range = chunk.compressed_size() >= 0 && chunk.data_page_offset() >= 0;
        if is_needed && is_range {
            let (start, bytes) = chunk.byte_range();
            check_pages(&pages, start..start.saturating_add(bytes)).map_err(unread)?;
        }
    }
    let fields = needed
        .iter()
        .map(|&column| schema.get_fields()[column].clone());
    let projection = ParquetType::group_type_builder(schema.name()).with_fields(fields.collect());
    let projection = projection.build().map_err(unreadable)?;
    let rows = reader.get_row_iter(Some(projection)).map_err(unreadable)?;
    // The texts of a row's times, which its cells borrow.
    let mut times = vec![String::new(); needed.len()];
    for (number, row) in (1..).zip(rows) {
        let place = || format!("row {number}");
        let row = row.map_err(unreadable).within(place)?;
        let values = row.get_column_iter().zip(&needed).zip(&mut times);
        for (((name, field), &column), time) in values {
            if let ParquetColumnKind::Time(unit) = kinds[column]
                && *field != Field::Null
            {
                *time = time_of(field, unit).ok_or_else(|| {
                    let error = Error::config(format!("column {name:?}: the time has no date"));
                    error
                        .fix("write a time that a calendar has")
                        .within(place())
                })?;
            }
        }
        let mut cells = vec![AnnotationCell::Null; names.len()];
        let values = row.get_column_iter().zip(&needed).zip(&times);
        for (((name, field), &column), time) in values {
            let cell = match (field, kinds[column]) {
                (Field::Null, _) => AnnotationCell::Null,
                (_, ParquetColumnKind::Time(_)) => AnnotationCell::Text(time),
                (field, _) => cell(name, field).within(place)?,
            };
            cells[column] = cell;
        }
        all.add(&mut table, &cells, file_name, number)
            .within(place)?;
    }
    Ok(())
}

impl ParquetColumnKind {
    /// The type that cells of the column have; `None` if they can be no cells.
    fn stated(self) -> Option<Type> {
        match self {
            ParquetColumnKind::Plain(plain) => Some(plain),
            ParquetColumnKind::Time(_) => Some(Type::Text),
            ParquetColumnKind::Other => None,
        }
    }
}

/// The kind of a column by its Arrow type. Small integers are read as larger ones, and times as
/// texts.
fn kind_of(field: &ArrowField) -> ParquetColumnKind {
    match field.data_type() {
        DataType::Boolean => ParquetColumnKind::Plain(Type::Flag),
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::UInt8 | DataType::UInt16 => {
            ParquetColumnKind::Plain(Type::Integer)
        }
        DataType::Int64 | DataType::UInt32 | DataType::UInt64 => {
            ParquetColumnKind::Plain(Type::Long)
        }
        DataType::Float16 | DataType::Float32 => ParquetColumnKind::Plain(Type::Real),
        DataType::Float64 => ParquetColumnKind::Plain(Type::Double),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            ParquetColumnKind::Plain(Type::Text)
        }
        DataType::Timestamp(unit, _) => ParquetColumnKind::Time(*unit),
        DataType::Date32 => ParquetColumnKind::Time(TimeUnit::Second),
        _ => ParquetColumnKind::Other,
    }
}

/// A date or a time as ISO 8601 has it; `None` if it is beyond the calendar.
fn time_of(field: &Field, unit: TimeUnit) -> Option<String> {
    let time = match (field, unit) {
        (Field::Date(days), _) => {
            let date = date32_to_datetime(*days)?;
            return Some(format!("{:?}", date.date()));
        }
        // INT96 is read so, whatever its unit.
        (Field::TimestampMillis(time), _) | (Field::Long(time), TimeUnit::Millisecond) => {
            timestamp_ms_to_datetime(*time)
        }
        (Field::TimestampMicros(time), _) | (Field::Long(time), TimeUnit::Microsecond) => {
            timestamp_us_to_datetime(*time)
        }
        (Field::Long(time), TimeUnit::Nanosecond) => timestamp_ns_to_datetime(*time),
        _ => None,
    };
    time.map(|time| format!("{time:?}"))
}

/// A value of a row as a cell; an error of kind `Config` for one that no cell holds.
fn cell<'a>(name: &str, field: &'a Field) -> Result<AnnotationCell<'a>> {
    Ok(match field {
        Field::Null => AnnotationCell::Null,
        Field::Str(text) => AnnotationCell::Text(text),
        Field::Bool(flag) => AnnotationCell::Flag(*flag),
        Field::Byte(number) => AnnotationCell::Integer((*number).into()),
        Field::Short(number) => AnnotationCell::Integer((*number).into()),
        Field::Int(number) => AnnotationCell::Integer((*number).into()),
        Field::Long(number) => AnnotationCell::Integer(*number),
        Field::UByte(number) => AnnotationCell::Integer((*number).into()),
        Field::UShort(number) => AnnotationCell::Integer((*number).into()),
        Field::UInt(number) => AnnotationCell::Integer((*number).into()),
        Field::ULong(number) => AnnotationCell::Integer(i64::try_from(*number).map_err(|_| {
            Error::config(format!(
                "column {name:?}: {number} is over 9223372036854775807"
            ))
            .fix("write it as a real or as text")
        })?),
        Field::Float16(number) => AnnotationCell::Real((*number).into()),
        Field::Float(number) => AnnotationCell::Real((*number).into()),
        Field::Double(number) => AnnotationCell::Real(*number),
        other => {
            let error = Error::config(format!("column {name:?} holds {other}"));
            return Err(error.fix("write the column as numbers or text"));
        }
    })
}
