//! The values of a column of annotations.

use super::dictionary::DictionaryRows;
use super::schema::Kind;
use super::structure_rows::{RowRange, StructureRows};
use arrow_array::types::{Float32Type, Float64Type, Int32Type, Int64Type};
use arrow_array::{ArrayRef, BooleanArray, PrimitiveArray};
use std::sync::Arc;
use tapeloop::features::NULL_COUNT;
use tapeloop_annotations::{JoinedValues, Level};

/// The values of the rows in these ranges, of the column at `index` of its level. Structures without annotations
/// have nulls.
pub(super) fn gather(ranges: &[RowRange], level: Level, index: usize, kind: Kind) -> ArrayRef {
    let column = |record| column_of(record, level, index);
    match kind {
        Kind::Text | Kind::Word => {
            DictionaryRows::gather(ranges, |keys, RowRange { record, rows }| {
                match column(record) {
                    Some(JoinedValues::Texts(values, texts)) => {
                        let key = |row: usize| Some(values.get(row).copied()?? as i32);
                        let keys_of_rows: Vec<i32> = rows
                            .clone()
                            .map(|row| key(row).unwrap_or(NULL_COUNT))
                            .collect();
                        keys.extend_indices(&keys_of_rows, |text| &*texts[text]);
                    }
                    _ => keys.extend_indices(&vec![NULL_COUNT; rows.len()], |_| ""),
                }
            })
        }
        Kind::Flag => {
            let flag = |values: &JoinedValues, row: usize| match values {
                JoinedValues::Flags(flags) => *flags.get(row)?,
                _ => None,
            };
            let flags: Vec<Option<bool>> = values(ranges, column, flag).collect();
            Arc::new(BooleanArray::from(flags))
        }
        Kind::Integer | Kind::Ascending | Kind::Repeating => {
            let integers = values(ranges, column, integer);
            let integers = integers.map(|value| Some(value? as i32));
            Arc::new(integers.collect::<PrimitiveArray<Int32Type>>())
        }
        Kind::Long => {
            let integers = values(ranges, column, integer);
            Arc::new(integers.collect::<PrimitiveArray<Int64Type>>())
        }
        Kind::Real | Kind::Half => {
            let reals = values(ranges, column, real).map(|value| Some(value? as f32));
            Arc::new(reals.collect::<PrimitiveArray<Float32Type>>())
        }
        Kind::Double => {
            let reals = values(ranges, column, real);
            Arc::new(reals.collect::<PrimitiveArray<Float64Type>>())
        }
    }
}

/// The column of a structure, if it has annotations.
fn column_of(record: &StructureRows, level: Level, index: usize) -> Option<&JoinedValues> {
    let columns = match level {
        Level::Structures => &record.joined.structures,
        Level::Residues => &record.joined.residues,
        Level::Variants => &record.joined.variants.columns,
    };
    columns.get(index)
}

/// The value of each row, which `value` takes from its column.
fn values<'a, T>(
    ranges: &'a [RowRange],
    column: impl Fn(&'a StructureRows) -> Option<&'a JoinedValues> + 'a,
    value: impl Fn(&JoinedValues, usize) -> Option<T> + Copy + 'a,
) -> impl Iterator<Item = Option<T>> + 'a {
    ranges.iter().flat_map(move |RowRange { record, rows }| {
        let column = column(record);
        rows.clone().map(move |row| value(column?, row))
    })
}

fn integer(values: &JoinedValues, row: usize) -> Option<i64> {
    match values {
        JoinedValues::Integers(integers) => *integers.get(row)?,
        _ => None,
    }
}

fn real(values: &JoinedValues, row: usize) -> Option<f64> {
    match values {
        JoinedValues::Reals(reals) => *reals.get(row)?,
        _ => None,
    }
}
