//! The values of a column while it is decoded, and after.
//!
//! Errors are [`ErrorKind::Input`](crate::ErrorKind::Input) for what no writer of the format makes,
//! and [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) beyond a limit or without memory.

use super::ints::Ints;
use super::message_pack::FETCH_AGAIN;
use crate::read_limits::reserve;
use crate::{Error, Result};

/// Decoded values of a column.
pub(super) enum ColumnValues<'a> {
    /// Bytes before the first encoding.
    Undecoded(&'a [u8]),
    /// Integers of one, two or four bytes, in little-endian order.
    Packed(IntType, &'a [u8]),
    Ints(Ints),
    /// Integers of 10^-`places`.
    Decimals {
        digits: Ints,
        places: u8,
    },
    Singles(Vec<f32>),
    Doubles(Vec<f64>),
    Texts(Texts<'a>),
}

/// The strings of a column.
pub(super) struct Texts<'a> {
    /// The empty string, which stands for a missing one, and then the strings of the file.
    pub strings: Vec<&'a [u8]>,
    /// For each row, the index of its string in the file; -1 if it is missing.
    pub index: Ints,
}

impl<'a> Texts<'a> {
    #[inline]
    pub(super) fn get(&self, row: usize) -> &'a [u8] {
        self.strings[(self.index.get(row) + 1) as usize]
    }
}

/// The integers of a byte array.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum IntType {
    I8,
    I16,
    I32,
    U8,
    U16,
    U32,
}

impl<'a> ColumnValues<'a> {
    /// The kind of values, for messages.
    pub(super) fn name(&self) -> &'static str {
        match self {
            ColumnValues::Undecoded(_) => "bytes",
            ColumnValues::Packed(..) | ColumnValues::Ints(_) => "integers",
            ColumnValues::Decimals { .. } | ColumnValues::Singles(_) | ColumnValues::Doubles(_) => {
                "floats"
            }
            ColumnValues::Texts(_) => "strings",
        }
    }

    /// The number of values; 0 before they are decoded.
    pub(super) fn len(&self) -> usize {
        match self {
            ColumnValues::Undecoded(_) | ColumnValues::Packed(..) => 0,
            ColumnValues::Ints(values) => values.len(),
            ColumnValues::Decimals { digits, .. } => digits.len(),
            ColumnValues::Singles(values) => values.len(),
            ColumnValues::Doubles(values) => values.len(),
            ColumnValues::Texts(texts) => texts.index.len(),
        }
    }

    /// The values after the last encoding: never undecoded or packed.
    pub(super) fn decoded(self) -> Result<Self> {
        match self {
            ColumnValues::Undecoded(_) => Err(encoding_error("the data", "has no encoding")),
            ColumnValues::Packed(..) => self.into_ints("the data").map(ColumnValues::each),
            other => Ok(other),
        }
    }

    pub(super) fn each(values: Vec<i32>) -> Self {
        ColumnValues::Ints(Ints::Each(values))
    }

    /// The integers that `encoding` is to decode.
    pub(super) fn into_ints(self, encoding: &str) -> Result<Vec<i32>> {
        let (int_type, bytes) = match self {
            ColumnValues::Ints(ints) => return ints.into_vec(),
            ColumnValues::Packed(int_type, bytes) => (int_type, bytes),
            other => {
                return Err(encoding_error(
                    encoding,
                    format!("cannot decode {}", other.name()),
                ));
            }
        };
        Ok(match int_type {
            IntType::I8 => collect(bytes, |b| i32::from(i8::from_le_bytes(b)))?,
            IntType::U8 => collect(bytes, |b| i32::from(u8::from_le_bytes(b)))?,
            IntType::I16 => collect(bytes, |b| i32::from(i16::from_le_bytes(b)))?,
            IntType::U16 => collect(bytes, |b| i32::from(u16::from_le_bytes(b)))?,
            IntType::I32 => collect(bytes, i32::from_le_bytes)?,
            IntType::U32 => {
                let ints = collect(bytes, |b| u32::from_le_bytes(b) as i32)?;
                if ints.iter().any(|&int| int < 0) {
                    return Err(encoding_error("ByteArray", "an integer is over 2147483647"));
                }
                ints
            }
        })
    }
}

/// The values of `N` bytes each.
pub(super) fn collect<T, const N: usize>(
    bytes: &[u8],
    value: impl Fn([u8; N]) -> T,
) -> Result<Vec<T>> {
    let (chunks, rest) = bytes.as_chunks::<N>();
    if !rest.is_empty() {
        let message = format!("{} bytes are not a multiple of {N}", bytes.len());
        return Err(encoding_error("ByteArray", message));
    }
    let mut values = Vec::new();
    reserve(&mut values, chunks.len())?;
    values.extend(chunks.iter().map(|&chunk| value(chunk)));
    Ok(values)
}

/// The error of data that an encoding cannot have made.
#[cold]
pub(super) fn encoding_error(encoding: &str, message: impl std::fmt::Display) -> Error {
    Error::input(format!("{encoding}: {message}")).fix(FETCH_AGAIN)
}
