//! The encodings of BinaryCIF columns, and their parameters.
//!
//! A column lists the encodings that its writer applied, and is decoded from the last to the
//! first.
//!
//! Errors are [`ErrorKind::Input`](crate::ErrorKind::Input) for what no writer of the format makes,
//! and [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) beyond a limit or without memory.

use super::decoders::{
    FLOAT32, byte_array, delta, fixed_point, floats, integer_packing, run_length,
};
use super::expansion::ExpansionBudget;
use super::ints::Ints;
use super::message_pack::Cursor;
use super::values::{ColumnValues, Texts, encoding_error};
use crate::read_limits::reserve;
use crate::text::quoted;
use crate::{Error, Result};

/// The most encodings of a column. Programs write five at most.
const ENCODINGS_MAX: u32 = 8;

/// Bytes and the encodings that made them.
pub(super) struct EncodedData<'a> {
    encodings: Vec<BinaryCifEncoding<'a>>,
    data: &'a [u8],
}

impl<'a> EncodedData<'a> {
    /// Reads a map of `encoding` and `data`.
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Result<Self> {
        let start = *cursor;
        let (mut encodings, mut data) = (None, None);
        cursor.map(|key, value| {
            match key {
                b"encoding" => encodings = Some(read_encodings(value, Nesting::Column)?),
                b"data" => data = Some(value.bytes()?),
                _ => value.skip()?,
            }
            Ok(())
        })?;
        match (encodings, data) {
            (Some(encodings), Some(data)) => Ok(EncodedData { encodings, data }),
            (None, _) => Err(start.error("this has no \"encoding\"")),
            (_, None) => Err(start.error("this has no \"data\"")),
        }
    }

    /// Decodes the data to values of any kind.
    pub(super) fn decode(&self, expansion: &mut ExpansionBudget) -> Result<ColumnValues<'a>> {
        decode(&self.encodings, self.data, expansion)
    }

    /// Decodes the data to integers.
    pub(super) fn decode_ints(&self, expansion: &mut ExpansionBudget) -> Result<Ints> {
        decode_ints(&self.encodings, self.data, expansion)
    }
}

/// Undoes the encodings of data, the last one first. `expansion` limits how many values may come
/// out.
fn decode<'a>(
    encodings: &[BinaryCifEncoding<'a>],
    data: &'a [u8],
    expansion: &mut ExpansionBudget,
) -> Result<ColumnValues<'a>> {
    let mut values = ColumnValues::Undecoded(data);
    for encoding in encodings.iter().rev() {
        values = encoding.decode(values, expansion)?;
    }
    values.decoded()
}

/// Undoes encodings that must give integers.
fn decode_ints<'a>(
    encodings: &[BinaryCifEncoding<'a>],
    data: &'a [u8],
    expansion: &mut ExpansionBudget,
) -> Result<Ints> {
    match decode(encodings, data, expansion)? {
        ColumnValues::Ints(ints) => Ok(ints),
        other => Err(encoding_error(
            "the encodings",
            format!("make {}, not integers", other.name()),
        )),
    }
}

/// An encoding with its parameters.
enum BinaryCifEncoding<'a> {
    ByteArray {
        data_type: i32,
    },
    FixedPoint {
        factor: f64,
        is_single: bool,
    },
    IntervalQuantization {
        min: f64,
        max: f64,
        steps: u32,
        is_single: bool,
    },
    RunLength {
        size: u32,
    },
    Delta {
        origin: i32,
    },
    IntegerPacking {
        bytes: i32,
        is_unsigned: bool,
        size: u32,
    },
    StringArray(StringArray<'a>),
    /// A StringArray for the integers of a StringArray.
    Nested,
    /// A kind that lacks a parameter.
    Incomplete(&'static str),
    /// A kind that is not known.
    Unknown(&'a [u8]),
}

struct StringArray<'a> {
    strings: &'a [u8],
    indices: Vec<BinaryCifEncoding<'a>>,
    offsets: EncodedData<'a>,
}

/// Whether encodings are those of a column, or nested in another encoding.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nesting {
    Column,
    /// The integers of a StringArray, which is not nested itself.
    StringArray,
}

/// Reads an array of encodings.
fn read_encodings<'a>(
    cursor: &mut Cursor<'a>,
    nesting: Nesting,
) -> Result<Vec<BinaryCifEncoding<'a>>> {
    let start = *cursor;
    let count = cursor.array()?;
    if count > ENCODINGS_MAX {
        let message = format!("{count} encodings of one column, over {ENCODINGS_MAX}");
        return Err(start.error(message));
    }
    let mut encodings = Vec::with_capacity(count as usize);
    for _ in 0..count {
        encodings.push(BinaryCifEncoding::read(cursor, nesting)?);
    }
    Ok(encodings)
}

/// The parameters of any encoding, as far as they are given.
#[derive(Default)]
struct Parameters<'a> {
    kind: Option<&'a [u8]>,
    data_type: Option<i32>,
    source_type: Option<i32>,
    factor: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    steps: Option<u32>,
    size: Option<u32>,
    origin: Option<i32>,
    bytes: Option<i32>,
    is_unsigned: Option<bool>,
    indices: Option<Vec<BinaryCifEncoding<'a>>>,
    strings: Option<&'a [u8]>,
    offset_encodings: Option<Vec<BinaryCifEncoding<'a>>>,
    offsets: Option<&'a [u8]>,
}

impl<'a> BinaryCifEncoding<'a> {
    /// Reads an encoding's map. A kind that is not known, or that lacks one of its parameters, is
    /// an error only if its column is decoded.
    fn read(cursor: &mut Cursor<'a>, nesting: Nesting) -> Result<Self> {
        let start = *cursor;
        let mut found = Parameters::default();
        cursor.map(|key, value| {
            match key {
                b"kind" => found.kind = Some(value.text()?),
                b"type" => found.data_type = Some(value.int()?),
                b"srcType" => found.source_type = Some(value.int()?),
                b"factor" => found.factor = Some(value.number()?),
                b"min" => found.min = Some(value.number()?),
                b"max" => found.max = Some(value.number()?),
                b"numSteps" => found.steps = Some(value.size()?),
                b"srcSize" => found.size = Some(value.size()?),
                b"origin" => found.origin = Some(value.int()?),
                b"byteCount" => found.bytes = Some(value.int()?),
                b"isUnsigned" => found.is_unsigned = Some(value.boolean()?),
                b"stringData" => found.strings = Some(value.text()?),
                b"offsets" => found.offsets = Some(value.bytes()?),
                b"dataEncoding" if nesting == Nesting::Column => {
                    found.indices = Some(read_encodings(value, Nesting::StringArray)?);
                }
                b"offsetEncoding" if nesting == Nesting::Column => {
                    found.offset_encodings = Some(read_encodings(value, Nesting::StringArray)?);
                }
                _ => value.skip()?,
            }
            Ok(())
        })?;
        let Some(kind) = found.kind else {
            return Err(start.error("an encoding has no \"kind\""));
        };
        Ok(
            match KINDS.iter().find(|(name, _)| name.as_bytes() == kind) {
                Some(("StringArray", _)) if nesting == Nesting::StringArray => {
                    BinaryCifEncoding::Nested
                }
                Some((name, build)) => {
                    build(&mut found).unwrap_or(BinaryCifEncoding::Incomplete(name))
                }
                None => BinaryCifEncoding::Unknown(kind),
            },
        )
    }
}

type Build = for<'a> fn(&mut Parameters<'a>) -> Option<BinaryCifEncoding<'a>>;

/// The kinds of encodings, and how each is made of its parameters; `None` if one is missing.
const KINDS: [(&str, Build); 7] = [
    ("ByteArray", |p| {
        Some(BinaryCifEncoding::ByteArray {
            data_type: p.data_type?,
        })
    }),
    ("FixedPoint", |p| {
        Some(BinaryCifEncoding::FixedPoint {
            factor: p.factor?,
            is_single: is_single(p),
        })
    }),
    ("IntervalQuantization", |p| {
        Some(BinaryCifEncoding::IntervalQuantization {
            min: p.min?,
            max: p.max?,
            steps: p.steps?,
            is_single: is_single(p),
        })
    }),
    ("RunLength", |p| {
        Some(BinaryCifEncoding::RunLength { size: p.size? })
    }),
    ("Delta", |p| {
        Some(BinaryCifEncoding::Delta { origin: p.origin? })
    }),
    ("IntegerPacking", |p| {
        Some(BinaryCifEncoding::IntegerPacking {
            bytes: p.bytes?,
            is_unsigned: p.is_unsigned?,
            size: p.size?,
        })
    }),
    ("StringArray", |p| {
        Some(BinaryCifEncoding::StringArray(StringArray {
            strings: p.strings?,
            indices: p.indices.take()?,
            offsets: EncodedData {
                encodings: p.offset_encodings.take()?,
                data: p.offsets?,
            },
        }))
    }),
];

/// Whether the source was of 32-bit floats.
fn is_single(parameters: &Parameters) -> bool {
    parameters.source_type == Some(FLOAT32)
}

impl<'a> BinaryCifEncoding<'a> {
    /// Undoes the encoding. An [`ErrorKind::Input`](crate::ErrorKind::Input) error for one that is
    /// not known or lacks a parameter, and for data that it cannot have made.
    fn decode(
        &self,
        values: ColumnValues<'a>,
        expansion: &mut ExpansionBudget,
    ) -> Result<ColumnValues<'a>> {
        match *self {
            BinaryCifEncoding::ByteArray { data_type } => byte_array(values, data_type),
            BinaryCifEncoding::FixedPoint { factor, is_single } => {
                let digits = match values {
                    ColumnValues::Ints(ints) => ints,
                    other => Ints::Each(other.into_ints("FixedPoint")?),
                };
                fixed_point(digits, factor, is_single)
            }
            BinaryCifEncoding::IntervalQuantization {
                min,
                max,
                steps,
                is_single,
            } => {
                let ints = values.into_ints("IntervalQuantization")?;
                if steps < 2 || !min.is_finite() || !max.is_finite() {
                    let message = format!("{steps} steps from {min} to {max} are not an interval");
                    return Err(encoding_error("IntervalQuantization", message));
                }
                let step = (max - min) / f64::from(steps - 1);
                floats(&ints, is_single, |int| min + step * f64::from(int))
            }
            BinaryCifEncoding::RunLength { size } => {
                let ints = values.into_ints("RunLength")?;
                run_length(ints, size, expansion).map(ColumnValues::Ints)
            }
            BinaryCifEncoding::Delta { origin } => {
                let ints = values.into_ints("Delta")?;
                delta(ints, origin).map(ColumnValues::each)
            }
            BinaryCifEncoding::IntegerPacking {
                bytes,
                is_unsigned,
                size,
            } => integer_packing(values, bytes, is_unsigned, size).map(ColumnValues::each),
            BinaryCifEncoding::StringArray(ref array) => {
                array.decode(values, expansion).map(ColumnValues::Texts)
            }
            BinaryCifEncoding::Nested => Err(encoding_error("StringArray", "makes no integers")),
            BinaryCifEncoding::Incomplete(kind) => Err(encoding_error(kind, "lacks a parameter")),
            BinaryCifEncoding::Unknown(kind) => {
                let known: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
                let message = format!("{} is not an encoding of BinaryCIF", quoted(kind));
                Err(Error::input(message).fix(format!("write the file with {}", known.join(", "))))
            }
        }
    }
}

impl<'a> StringArray<'a> {
    /// Decodes strings: `values` are the bytes of their indices, where -1 stands for no string. An
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) error for an index without a string, or a
    /// string outside of the text.
    fn decode(
        &self,
        values: ColumnValues<'a>,
        expansion: &mut ExpansionBudget,
    ) -> Result<Texts<'a>> {
        let ColumnValues::Undecoded(data) = values else {
            return Err(encoding_error("StringArray", "is not the only encoding"));
        };
        let offsets = self.offsets.decode_ints(expansion)?.into_vec()?;
        let mut strings = Vec::new();
        reserve(&mut strings, offsets.len().max(1))?;
        strings.push(&b""[..]);
        for ends in offsets.windows(2) {
            let string = match *ends {
                [start @ 0..=i32::MAX, end @ 0..=i32::MAX] => {
                    self.strings.get(start as usize..end as usize)
                }
                _ => None,
            };
            strings.push(string.ok_or_else(|| {
                let message = format!("no string from {} to {} in stringData", ends[0], ends[1]);
                encoding_error("StringArray", message)
            })?);
        }
        let index = decode_ints(&self.indices, data, expansion)?;
        // -1 becomes the least and other negative numbers the largest.
        let place = |string: i32| string.wrapping_add(1) as u32;
        let last = index.fold(0, |last, string| place(string).max(last));
        if last as usize >= strings.len() {
            let (string, count) = (last.wrapping_sub(1) as i32, strings.len() - 1);
            return Err(encoding_error(
                "StringArray",
                format!("there is no string {string} of {count}"),
            ));
        }
        Ok(Texts { strings, index })
    }
}
