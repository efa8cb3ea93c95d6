//! Undoes encodings of numbers. Errors are [`ErrorKind::Input`](crate::ErrorKind::Input) with the
//! name of the encoding that cannot have made the data, or
//! [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if there is no memory for the values.

use std::cell::Cell;

use super::expansion::ExpansionBudget;
use super::ints::Ints;
use super::values::{ColumnValues, IntType, collect, encoding_error};
use crate::Result;
use crate::read_limits::reserve;

/// Factors for which FixedPoint yields decimals instead of floats. With larger ones integers of 32
/// bits stay below 3.
const POWERS_OF_TEN: [f64; 9] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8];

/// Type codes of the specification.
pub(super) const FLOAT32: i32 = 32;
const FLOAT64: i32 = 33;

/// Decodes the last encoding, which is of bytes. Integers stay packed, as the next encoding may not
/// need them one by one.
pub(super) fn byte_array(values: ColumnValues<'_>, data_type: i32) -> Result<ColumnValues<'_>> {
    let ColumnValues::Undecoded(bytes) = values else {
        let message = format!("cannot decode {}: it is not a last encoding", values.name());
        return Err(encoding_error("ByteArray", message));
    };
    let int_type = match data_type {
        1 => IntType::I8,
        2 => IntType::I16,
        3 => IntType::I32,
        4 => IntType::U8,
        5 => IntType::U16,
        6 => IntType::U32,
        FLOAT32 => return collect(bytes, f32::from_le_bytes).map(ColumnValues::Singles),
        FLOAT64 => return collect(bytes, f64::from_le_bytes).map(ColumnValues::Doubles),
        other => {
            return Err(encoding_error(
                "ByteArray",
                format!("{other} is not a data type"),
            ));
        }
    };
    Ok(ColumnValues::Packed(int_type, bytes))
}

/// Decodes integers that are to be divided by a factor. With a power of ten they stay decimals,
/// which are exact.
pub(super) fn fixed_point<'a>(
    digits: Ints,
    factor: f64,
    is_single: bool,
) -> Result<ColumnValues<'a>> {
    if let Some(places) = POWERS_OF_TEN.iter().position(|&power| power == factor) {
        let places = places as u8;
        return Ok(ColumnValues::Decimals { digits, places });
    }
    if !factor.is_finite() || factor == 0.0 {
        return Err(encoding_error(
            "FixedPoint",
            format!("the factor is {factor}"),
        ));
    }
    floats(&digits.each()?, is_single, |int| f64::from(int) / factor)
}

/// The floats of integers, rounded to 32 bits if the source was.
pub(super) fn floats<'a>(
    ints: &[i32],
    is_single: bool,
    value: impl Fn(i32) -> f64,
) -> Result<ColumnValues<'a>> {
    if is_single {
        let mut values = Vec::new();
        reserve(&mut values, ints.len())?;
        values.extend(ints.iter().map(|&int| value(int) as f32));
        return Ok(ColumnValues::Singles(values));
    }
    let mut values = Vec::new();
    reserve(&mut values, ints.len())?;
    values.extend(ints.iter().map(|&int| value(int)));
    Ok(ColumnValues::Doubles(values))
}

/// Decodes pairs of a value and its count.
pub(super) fn run_length(
    pairs: Vec<i32>,
    size: u32,
    expansion: &mut ExpansionBudget,
) -> Result<Ints> {
    let (runs, rest) = pairs.as_chunks::<2>();
    let negative = runs.iter().any(|&[_, count]| count < 0);
    if !rest.is_empty() || negative {
        return Err(encoding_error(
            "RunLength",
            "the data is not pairs of a value and a count",
        ));
    }
    let total: u64 = runs.iter().map(|&[_, count]| count as u64).sum();
    if total != u64::from(size) {
        let message = format!("the counts add up to {total}, but srcSize is {size}");
        return Err(encoding_error("RunLength", message));
    }
    expansion.take(total * size_of::<i32>() as u64)?;
    Ok(Ints::from_pairs(pairs, size as usize))
}

/// Decodes differences between a value and the one before.
pub(super) fn delta(mut values: Vec<i32>, origin: i32) -> Result<Vec<i32>> {
    // No overflow of 64 bits, as there are less than 2^32 values. `lost` gets the bits that sums
    // lose.
    let (mut sum, mut lost) = (i64::from(origin), 0);
    for value in &mut values {
        sum += i64::from(*value);
        *value = sum as i32;
        lost |= sum ^ i64::from(*value);
    }
    if lost == 0 {
        Ok(values)
    } else {
        Err(encoding_error("Delta", "a sum does not fit in 32 bits"))
    }
}

/// IntegerPacking compares this many values at once: a few vectors of any processor.
const CHUNK: usize = 16;

/// Decodes sums of values of one or two bytes: a value at an end of its range is added to the next one.
pub(super) fn integer_packing(
    values: ColumnValues,
    bytes: i32,
    is_unsigned: bool,
    size: u32,
) -> Result<Vec<i32>> {
    // The ends of the range, without one that is zero: that is a value of its own.
    let (least, most) = match (bytes, is_unsigned) {
        (1, true) => (0xff, 0xff),
        (1, false) => (-0x80, 0x7f),
        (2, true) => (0xffff, 0xffff),
        (2, false) => (-0x8000, 0x7fff),
        _ => {
            return Err(encoding_error(
                "IntegerPacking",
                format!("byteCount is {bytes}"),
            ));
        }
    };
    let goes_on = |value: i32| (value == most) | (value == least);
    let mut packed = values.into_ints("IntegerPacking")?;
    let (mut sum, mut pending, mut overflows, mut len) = (0i32, false, false, 0);
    // Sums are written over the values, of which there are as many at least.
    let cells = Cell::from_mut(&mut packed[..]).as_slice_of_cells();
    for chunk in cells.chunks(CHUNK) {
        if !pending && let Some(chunk) = chunk.first_chunk::<CHUNK>() {
            let values = chunk.each_ref().map(Cell::get);
            let any = values
                .iter()
                .fold(0, |any, &value| any | i32::from(goes_on(value)));
            if any == 0 {
                let to = cells[len..len + CHUNK].iter();
                to.zip(values).for_each(|(to, value)| to.set(value));
                len += CHUNK;
                continue;
            }
        }
        // There is no branch, as which codes go on is hard to predict.
        for value in chunk {
            let (next, over) = sum.overflowing_add(value.get());
            pending = goes_on(value.get());
            overflows |= over;
            cells[len].set(next);
            len += usize::from(!pending);
            sum = next & -i32::from(pending);
        }
    }
    if overflows {
        return Err(encoding_error(
            "IntegerPacking",
            "a sum does not fit in 32 bits",
        ));
    }
    if pending {
        return Err(encoding_error(
            "IntegerPacking",
            "the last value does not end",
        ));
    }
    packed.truncate(len);
    if packed.len() != size as usize {
        let message = format!(
            "the data has {} values, but srcSize is {size}",
            packed.len()
        );
        return Err(encoding_error("IntegerPacking", message));
    }
    Ok(packed)
}
