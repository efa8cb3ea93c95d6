//! [`Cell`]: a single value of a table, for a reader.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type, Int32Type, Int64Type, UInt64Type};
use arrow_schema::DataType;

/// A value of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    Null,
    Text(&'a str),
    Integer(i64),
    /// The ordinal of an input, which the table of rejected inputs has.
    Unsigned(u64),
    Real(f64),
    Flag(bool),
}

impl<'a> Cell<'a> {
    /// The value in a row of a column.
    ///
    /// # Panics
    /// If the array has no such row, or is of a type that no table has.
    pub fn new(array: &'a dyn Array, row: usize) -> Self {
        if array.is_null(row) {
            return Cell::Null;
        }
        match array.data_type() {
            DataType::Dictionary(..) => {
                let texts = array.as_dictionary::<Int32Type>();
                let key = texts.keys().value(row) as usize;
                Cell::Text(texts.values().as_string::<i32>().value(key))
            }
            DataType::Utf8 => Cell::Text(array.as_string::<i32>().value(row)),
            DataType::Int32 => Cell::Integer(array.as_primitive::<Int32Type>().value(row).into()),
            DataType::Int64 => Cell::Integer(array.as_primitive::<Int64Type>().value(row)),
            DataType::UInt64 => Cell::Unsigned(array.as_primitive::<UInt64Type>().value(row)),
            DataType::Float16 => {
                Cell::Real(array.as_primitive::<Float16Type>().value(row).to_f64())
            }
            DataType::Float32 => Cell::Real(array.as_primitive::<Float32Type>().value(row).into()),
            DataType::Float64 => Cell::Real(array.as_primitive::<Float64Type>().value(row)),
            DataType::Boolean => Cell::Flag(array.as_boolean().value(row)),
            other => unreachable!("no column is stored as {other}"),
        }
    }

    /// Whether the value is a number, which stands at the right of its column.
    pub fn is_number(&self) -> bool {
        matches!(self, Cell::Integer(_) | Cell::Unsigned(_) | Cell::Real(_))
    }
}

/// The decimals with which all reals of a column are printed, so that the largest one has about four digits.
pub fn decimals(cells: &[Cell<'_>]) -> usize {
    let sizes = cells.iter().filter_map(|cell| match cell {
        Cell::Real(real) if real.is_finite() => Some(real.abs()),
        _ => None,
    });
    match sizes.fold(0.0, f64::max) {
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    }
}
