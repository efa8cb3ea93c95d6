//! MessagePack, as far as BinaryCIF uses it: values are read in place, one after the other.
//!
//! A cursor never recurses, and every length that the data claims is compared with the bytes that
//! are left, so that reading takes time in proportion to the data and no memory. Errors are
//! [`ErrorKind::Input`](crate::ErrorKind::Input) with the byte at which a value is not what it should be.

use std::fmt::Display;

use crate::{Error, Result};

/// What to do about a file that is not as its format requires.
pub(super) const FETCH_AGAIN: &str = "fetch the file again, or write it again with another program";

/// The start of a value. The items of arrays and maps come after it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Head<'a> {
    Nil,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(&'a [u8]),
    Bytes(&'a [u8]),
    Extension,
    /// The number of values.
    Array(u32),
    /// The number of pairs of keys and values.
    Map(u32),
}

impl Head<'_> {
    /// The kind of value, for messages.
    fn name(self) -> &'static str {
        match self {
            Head::Nil => "nil",
            Head::Bool(_) => "a boolean",
            Head::Integer(_) => "an integer",
            Head::Float(_) => "a float",
            Head::Text(_) => "a string",
            Head::Bytes(_) => "binary data",
            Head::Extension => "an extension",
            Head::Array(_) => "an array",
            Head::Map(_) => "a map",
        }
    }
}

/// A place in MessagePack data, before a value.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    data: &'a [u8],
    offset: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(data: &'a [u8]) -> Self {
        Cursor { data, offset: 0 }
    }

    /// Reads the keys and values of a map. `field` gets each key and must read its value, or
    /// [skip](Cursor::skip) it.
    pub(super) fn map(
        &mut self,
        mut field: impl FnMut(&'a [u8], &mut Self) -> Result<()>,
    ) -> Result<()> {
        let count = self.expect("a map", |head| match head {
            Head::Map(count) => Some(count),
            _ => None,
        })?;
        for _ in 0..count {
            let key = self.text()?;
            field(key, self)?;
        }
        Ok(())
    }

    /// The number of items of an array, which come next.
    pub(super) fn array(&mut self) -> Result<u32> {
        self.expect("an array", |head| match head {
            Head::Array(count) => Some(count),
            _ => None,
        })
    }

    /// A string, which may not be UTF-8.
    #[inline]
    pub(super) fn text(&mut self) -> Result<&'a [u8]> {
        // Keys, nearly always.
        if let Some(&marker @ 0xa0..=0xbf) = self.data.get(self.offset) {
            let start = self.offset + 1;
            let end = start + usize::from(marker & 0x1f);
            if let Some(text) = self.data.get(start..end) {
                self.offset = end;
                return Ok(text);
            }
        }
        self.other_text()
    }

    fn other_text(&mut self) -> Result<&'a [u8]> {
        self.expect("a string", |head| match head {
            Head::Text(text) => Some(text),
            _ => None,
        })
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8]> {
        self.expect("binary data", |head| match head {
            Head::Bytes(bytes) => Some(bytes),
            _ => None,
        })
    }

    pub(super) fn boolean(&mut self) -> Result<bool> {
        self.expect("a boolean", |head| match head {
            Head::Bool(value) => Some(value),
            _ => None,
        })
    }

    pub(super) fn number(&mut self) -> Result<f64> {
        self.expect("a number", |head| match head {
            Head::Integer(value) => Some(value as f64),
            Head::Float(value) => Some(value),
            _ => None,
        })
    }

    /// An integer of 32 bits, which some programs write as a float.
    #[inline]
    pub(super) fn int(&mut self) -> Result<i32> {
        if let Some(&marker @ 0x00..=0x7f) = self.data.get(self.offset) {
            self.offset += 1;
            return Ok(i32::from(marker));
        }
        self.other_int()
    }

    fn other_int(&mut self) -> Result<i32> {
        self.expect("an integer of 32 bits", |head| match head {
            Head::Integer(value) => i32::try_from(value).ok(),
            Head::Float(value) if value == f64::from(value as i32) => Some(value as i32),
            _ => None,
        })
    }

    /// A size or a count below 2^31.
    pub(super) fn size(&mut self) -> Result<u32> {
        let start = *self;
        let size = self.int()?;
        u32::try_from(size).map_err(|_| start.error(format!("{size} is not a size")))
    }

    /// Whether the value is nil, which is then taken.
    pub(super) fn take_nil(&mut self) -> bool {
        let is_nil = self.data.get(self.offset) == Some(&0xc0);
        self.offset += usize::from(is_nil);
        is_nil
    }

    /// Passes over a value.
    pub(super) fn skip(&mut self) -> Result<()> {
        let mut left = 1u64;
        while left > 0 {
            left -= 1;
            match self.data.get(self.offset) {
                // Nearly all values of a file are these. The end of the data is checked after the
                // loop.
                Some(&marker @ 0xa0..=0xbf) => self.offset += 1 + usize::from(marker & 0x1f),
                Some(0x00..=0x7f | 0xc0 | 0xc2 | 0xc3 | 0xe0..=0xff) => self.offset += 1,
                _ => {
                    let start = *self;
                    left += match self.head().ok_or_else(|| start.no_value())? {
                        Head::Array(count) => u64::from(count),
                        Head::Map(count) => 2 * u64::from(count),
                        _ => 0,
                    };
                }
            }
        }
        if self.offset <= self.data.len() {
            Ok(())
        } else {
            Err(self.no_value())
        }
    }

    /// An input error whose message starts with this place.
    pub(super) fn error(&self, message: impl Display) -> Error {
        Error::input(format!("byte {}: {message}", self.offset)).fix(FETCH_AGAIN)
    }

    #[inline]
    fn expect<T>(&mut self, wanted: &str, value: impl FnOnce(Head<'a>) -> Option<T>) -> Result<T> {
        let start = *self;
        let head = self.head();
        head.and_then(value).ok_or_else(|| start.unexpected(wanted))
    }

    /// The error of a value that is not `wanted`, or of none.
    #[cold]
    fn unexpected(mut self, wanted: &str) -> Error {
        let start = self;
        match self.head() {
            Some(head) => start.error(format!("expected {wanted}, found {}", head.name())),
            None => start.no_value(),
        }
    }

    /// The error where [`Self::head`] finds no value.
    #[cold]
    fn no_value(&self) -> Error {
        self.error(match self.data.get(self.offset) {
            Some(0xc1) => "0xc1 starts no value of MessagePack",
            _ => "the MessagePack data is cut short here",
        })
    }

    /// Reads a head; `None` if the data ends before, or has no value here.
    #[inline]
    fn head(&mut self) -> Option<Head<'a>> {
        let [marker] = self.take()?;
        match marker {
            0x00..=0x7f => Some(Head::Integer(i64::from(marker))),
            0xa0..=0xbf => Some(Head::Text(self.slice(u32::from(marker & 0x1f))?)),
            0x80..=0x8f => self.items(Head::Map, u32::from(marker & 0xf), 2),
            0x90..=0x9f => self.items(Head::Array, u32::from(marker & 0xf), 1),
            _ => self.other_head(marker),
        }
    }

    /// Reads the rest of a head whose marker is none of the frequent ones; `None` for a marker that
    /// MessagePack does not have, or data that are cut short.
    fn other_head(&mut self, marker: u8) -> Option<Head<'a>> {
        Some(match marker {
            0xc2 => Head::Bool(false),
            0xc3 => Head::Bool(true),
            0xc4..=0xc6 => {
                let len = self.length(marker - 0xc4)?;
                Head::Bytes(self.slice(len)?)
            }
            0xc7..=0xc9 => {
                let len = self.length(marker - 0xc7)?;
                self.take::<1>()?;
                self.slice(len)?;
                Head::Extension
            }
            0xca => Head::Float(f64::from(f32::from_be_bytes(self.take()?))),
            0xcb => Head::Float(f64::from_be_bytes(self.take()?)),
            0xcc => Head::Integer(i64::from(u8::from_be_bytes(self.take()?))),
            0xcd => Head::Integer(i64::from(u16::from_be_bytes(self.take()?))),
            0xce => Head::Integer(i64::from(u32::from_be_bytes(self.take()?))),
            0xcf => {
                let value = u64::from_be_bytes(self.take()?);
                i64::try_from(value).map_or(Head::Float(value as f64), Head::Integer)
            }
            0xd0 => Head::Integer(i64::from(i8::from_be_bytes(self.take()?))),
            0xd1 => Head::Integer(i64::from(i16::from_be_bytes(self.take()?))),
            0xd2 => Head::Integer(i64::from(i32::from_be_bytes(self.take()?))),
            0xd3 => Head::Integer(i64::from_be_bytes(self.take()?)),
            0xd4..=0xd8 => {
                self.slice(1 + (1 << (marker - 0xd4)))?;
                Head::Extension
            }
            0xd9..=0xdb => {
                let len = self.length(marker - 0xd9)?;
                Head::Text(self.slice(len)?)
            }
            0xdc | 0xdd => {
                let count = self.length(marker - 0xdb)?;
                return self.items(Head::Array, count, 1);
            }
            0xde | 0xdf => {
                let count = self.length(marker - 0xdd)?;
                return self.items(Head::Map, count, 2);
            }
            0xe0..=0xff => Head::Integer(i64::from(marker as i8)),
            0xc0 => Head::Nil,
            _ => return None,
        })
    }

    /// The head of `count` items of `values` values each; `None` if the data have fewer bytes than
    /// values, each of which takes one at least.
    #[inline]
    fn items(&self, head: fn(u32) -> Head<'a>, count: u32, values: u64) -> Option<Head<'a>> {
        let left = (self.data.len() - self.offset) as u64;
        (values * u64::from(count) <= left).then(|| head(count))
    }

    /// A length of 2^`size` bytes.
    fn length(&mut self, size: u8) -> Option<u32> {
        Some(match size {
            0 => u32::from(u8::from_be_bytes(self.take()?)),
            1 => u32::from(u16::from_be_bytes(self.take()?)),
            _ => u32::from_be_bytes(self.take()?),
        })
    }

    #[inline]
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let bytes = *self.data.get(self.offset..)?.first_chunk()?;
        self.offset += N;
        Some(bytes)
    }

    #[inline]
    fn slice(&mut self, len: u32) -> Option<&'a [u8]> {
        let bytes = self.data.get(self.offset..)?.get(..len as usize)?;
        self.offset += bytes.len();
        Some(bytes)
    }
}

/// Whether bytes start a map with one of `keys` first.
pub(super) fn starts_map(bytes: &[u8], keys: &[&[u8]]) -> bool {
    // The map may go on after these bytes.
    let rest = match bytes {
        [0x80..=0x8f, rest @ ..] | [0xde, _, _, rest @ ..] | [0xdf, _, _, _, _, rest @ ..] => rest,
        _ => return false,
    };
    Cursor::new(rest)
        .text()
        .is_ok_and(|key| keys.contains(&key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_every_width() {
        let ints: [(&[u8], i32); 8] = [
            (b"\x07", 7),
            (b"\xff", -1),
            (b"\xcc\xff", 255),
            (b"\xcd\x01\x00", 256),
            (b"\xd1\xff\x00", -256),
            (b"\xd2\x80\x00\x00\x00", i32::MIN),
            (b"\xd3\xff\xff\xff\xff\xff\xff\xff\xfe", -2),
            (b"\xcb\x40\x8f\x40\x00\x00\x00\x00\x00", 1000),
        ];
        for (bytes, value) in ints {
            assert_eq!(Cursor::new(bytes).int().unwrap(), value, "{bytes:x?}");
        }
        for text in [
            &b"\xa2ab"[..],
            b"\xd9\x02ab",
            b"\xda\0\x02ab",
            b"\xdb\0\0\0\x02ab",
        ] {
            assert_eq!(Cursor::new(text).text().unwrap(), b"ab");
        }
        for bytes in [&b"\xc4\x01z"[..], b"\xc5\0\x01z", b"\xc6\0\0\0\x01z"] {
            assert_eq!(Cursor::new(bytes).bytes().unwrap(), b"z");
        }
        assert!(Cursor::new(b"\xc3").boolean().unwrap());
        assert_eq!(Cursor::new(b"\xca\x3f\x80\0\0").number().unwrap(), 1.0);
        assert_eq!(Cursor::new(b"\xdc\0\x01\x07").array().unwrap(), 1);
    }

    #[test]
    fn a_value_is_skipped_whatever_is_in_it() {
        let nested = [&[0x91; 100_000][..], b"\xc0\x2a"].concat();
        let mut cursor = Cursor::new(&nested);
        cursor.skip().unwrap();
        assert_eq!(cursor.int().unwrap(), 42);
        let mut cursor = Cursor::new(b"\x82\xa1a\xd6abcde\xa1b\xc7\x02xab\x2a");
        cursor.skip().unwrap();
        assert_eq!(cursor.int().unwrap(), 42);
    }

    #[test]
    fn what_is_claimed_beyond_the_end_is_refused() {
        for bytes in [
            &b""[..],
            b"\xa5ab",
            b"\xc6\xff\xff\xff\xff",
            b"\xdd\xff\xff\xff\xff\0",
            b"\xdf\x80\0\0\0\0",
            b"\x82\xa1a",
            b"\xcb\0",
        ] {
            let error = Cursor::new(bytes).skip().unwrap_err().to_string();
            assert!(error.contains("cut short"), "{bytes:x?}: {error}");
        }
        let error = Cursor::new(b"\x90").text().unwrap_err().to_string();
        assert!(
            error.starts_with("byte 0: ") && error.contains("a string, found an array"),
            "{error}"
        );
    }
}
