//! The values of a column while it is decoded, and after.

use super::ints::Ints;
use super::message_pack::FETCH_AGAIN;
use crate::read_limits::reserve;
use crate::{Error, Result};

/// Decoded values of a column.
pub(super) enum Values<'a> {
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
    /// The string that is missing, which is empty, then those of the file.
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

impl<'a> Values<'a> {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Values::Undecoded(_) => "bytes",
            Values::Packed(..) | Values::Ints(_) => "integers",
            Values::Decimals { .. } | Values::Singles(_) | Values::Doubles(_) => "floats",
            Values::Texts(_) => "strings",
        }
    }

    /// The number of values once decoded.
    pub(super) fn len(&self) -> usize {
        match self {
            Values::Undecoded(_) | Values::Packed(..) => 0,
            Values::Ints(values) => values.len(),
            Values::Decimals { digits, .. } => digits.len(),
            Values::Singles(values) => values.len(),
            Values::Doubles(values) => values.len(),
            Values::Texts(texts) => texts.index.len(),
        }
    }

    /// The values after the last encoding: never undecoded or packed.
    pub(super) fn decoded(self) -> Result<Self> {
        match self {
            Values::Undecoded(_) => Err(wrong("the data", "has no encoding")),
            Values::Packed(..) => self.into_ints("the data").map(Values::each),
            other => Ok(other),
        }
    }

    pub(super) fn each(values: Vec<i32>) -> Self {
        Values::Ints(Ints::Each(values))
    }

    /// The integers that `encoding` is to decode.
    pub(super) fn into_ints(self, encoding: &str) -> Result<Vec<i32>> {
        let (int_type, bytes) = match self {
            Values::Ints(ints) => return ints.into_vec(),
            Values::Packed(int_type, bytes) => (int_type, bytes),
            other => return Err(wrong(encoding, format!("cannot decode {}", other.name()))),
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
                    return Err(wrong("ByteArray", "an integer is over 2147483647"));
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
        return Err(wrong("ByteArray", message));
    }
    let mut values = Vec::new();
    reserve(&mut values, chunks.len())?;
    values.extend(chunks.iter().map(|&chunk| value(chunk)));
    Ok(values)
}

/// The error of data that an encoding cannot have made.
#[cold]
pub(super) fn wrong(encoding: &str, message: impl std::fmt::Display) -> Error {
    Error::input(format!("{encoding}: {message}")).fix(FETCH_AGAIN)
}
