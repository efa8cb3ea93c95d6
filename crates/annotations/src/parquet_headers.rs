//! Refuses Parquet files whose headers would take unbounded time to read.
//!
//! The footer and the headers of pages are structs in Thrift's compact protocol
//! (<https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>). The crate
//! `parquet` skips fields whose number or type it does not know. When it skips a list of `bool`, it reads
//! no byte for an element, so seven bytes can claim 2^31 elements. Neither kind of header has such a list in
//! the format (<https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>),
//! so a file with one is refused.

use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;

/// Structs, lists and maps within each other. The headers of the format have up to 8, and each takes some of the
/// stack.
const DEPTH_MAX: u32 = 32;
/// The last bytes of a file: the length of the footer in 4 bytes, and `PAR1`.
const TAIL_BYTES: u64 = 8;
/// The field `compressed_page_size` of the struct `PageHeader`.
const COMPRESSED_PAGE_SIZE: i16 = 3;

/// Checks the footer of a file.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] for a footer that is damaged or that would take unbounded time,
/// and errors of reading.
pub(super) fn check_footer(file: &mut (impl Read + Seek)) -> io::Result<()> {
    let end = file.seek(SeekFrom::End(0))?;
    let tail_start = end.checked_sub(TAIL_BYTES);
    let tail_start =
        tail_start.ok_or_else(|| damaged_footer_error("the Parquet file has no footer"))?;
    file.seek(SeekFrom::Start(tail_start))?;
    let mut length = [0; 4];
    file.read_exact(&mut length)?;
    let length = u64::from(u32::from_le_bytes(length));
    let start = tail_start.checked_sub(length);
    let start = start.ok_or_else(|| {
        damaged_footer_error("the footer of the Parquet file is longer than the file")
    })?;
    file.seek(SeekFrom::Start(start))?;
    let mut compact = CompactReader(BufReader::new(file).take(length));
    compact.read_struct(0, |_, _| {})
}

/// Checks the headers of the pages in a range of bytes of a file.
///
/// # Errors
/// The errors of [`check_footer`].
pub(super) fn check_pages(file: impl Read + Seek, pages: Range<u64>) -> io::Result<()> {
    let mut file = BufReader::new(file);
    file.seek(SeekFrom::Start(pages.start))?;
    let mut offset = pages.start;
    while offset < pages.end {
        let mut size = None;
        let left = pages.end - offset;
        let mut compact = CompactReader((&mut file).take(left));
        let read = compact.read_struct(0, |field, value| {
            if field == COMPRESSED_PAGE_SIZE {
                size = Some(value);
            }
        });
        match read {
            // Old writers state too short a chunk, and a damaged one is found when it is read.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            read => read?,
        }
        offset = pages.end - compact.0.limit();
        let size = size.and_then(|size| i32::try_from(size).ok());
        // Nothing is read after a page without a size.
        let Some(size) = size.and_then(|size| u64::try_from(size).ok()) else {
            return Ok(());
        };
        offset = offset.saturating_add(size);
        file.seek_relative(size as i64)?;
    }
    Ok(())
}

fn damaged_footer_error(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// Reads Thrift's compact protocol, and skips all values but integers.
struct CompactReader<R>(R);

impl<R: Read> CompactReader<R> {
    fn read_byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.0.read_exact(&mut byte)?;
        Ok(byte[0])
    }

    /// Reads a number of 7 bits per byte, the lowest first, of which the last byte has no high bit.
    fn read_varint(&mut self) -> io::Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.read_byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(damaged_footer_error(
            "a header of the Parquet file has a number of more than 64 bits",
        ))
    }

    fn read_signed(&mut self) -> io::Result<i64> {
        let value = self.read_varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Skips bytes; an error if the input ends before.
    fn pass(&mut self, bytes: u64) -> io::Result<()> {
        if io::copy(&mut (&mut self.0).take(bytes), &mut io::sink())? == bytes {
            Ok(())
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }

    /// Calls `take` with the number and the value of each integer field.
    fn read_struct(&mut self, depth: u32, mut take: impl FnMut(i16, i64)) -> io::Result<()> {
        if depth > DEPTH_MAX {
            return Err(damaged_footer_error(
                "a header of the Parquet file is nested too deeply",
            ));
        }
        let mut field = 0_i16;
        loop {
            let header = self.read_byte()?;
            let (delta, kind) = (header >> 4, header & 0xf);
            match (kind, delta) {
                (0, _) => return Ok(()),
                (_, 0) => field = self.read_signed()? as i16,
                (_, delta) => field = field.wrapping_add(delta.into()),
            }
            match kind {
                // A `bool`: the type of the field is its value.
                1 | 2 => {}
                4..=6 => {
                    let value = self.read_signed()?;
                    take(field, value);
                }
                _ => self.skip_value(kind, depth)?,
            }
        }
    }

    /// Skips an element of a list or a map, or the value of a field that is no `bool`. Kinds are the protocol's: 1 and 2
    /// `bool`, 3 a byte, 4 to 6 integers, 7 a double, 8 bytes, 9 a list, 10 a set, 11 a map, 12 a struct, 13 a UUID. A
    /// list of up to 14 elements has their number in its first byte.
    fn skip_value(&mut self, kind: u8, depth: u32) -> io::Result<()> {
        match kind {
            1 | 2 => Err(damaged_footer_error(
                "a header of the Parquet file has a list of flags, which no Parquet header has",
            )),
            3 => self.pass(1),
            4..=6 => self.read_varint().map(drop),
            7 => self.pass(8),
            8 => {
                let bytes = self.read_varint()?;
                self.pass(bytes)
            }
            9 | 10 => {
                let header = self.read_byte()?;
                let count = match header >> 4 {
                    15 => self.read_varint()?,
                    few => few.into(),
                };
                self.skip_elements(count, &[header & 0xf], depth)
            }
            11 => match self.read_varint()? {
                0 => Ok(()),
                count => {
                    let kinds = self.read_byte()?;
                    self.skip_elements(count, &[kinds >> 4, kinds & 0xf], depth)
                }
            },
            12 => self.read_struct(depth + 1, |_, _| {}),
            13 => self.pass(16),
            _ => Err(damaged_footer_error(
                "a header of the Parquet file has a value of an unknown type",
            )),
        }
    }

    /// Skips `count` elements, each with a value of each of `kinds`: one for a list, key and value for a map. Each
    /// value takes at least a byte, so the input's end bounds their number.
    fn skip_elements(&mut self, count: u64, kinds: &[u8], depth: u32) -> io::Result<()> {
        if depth > DEPTH_MAX {
            return Err(damaged_footer_error(
                "a header of the Parquet file is nested too deeply",
            ));
        }
        for _ in 0..count {
            for &kind in kinds {
                self.skip_value(kind, depth + 1)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn footer(bytes: &[u8]) -> String {
        let mut file = bytes.to_vec();
        file.extend((bytes.len() as u32).to_le_bytes());
        file.extend(b"PAR1");
        match check_footer(&mut Cursor::new(file)) {
            Ok(()) => "ok".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn values_of_all_types_are_passed_by() {
        // Flags, a byte, integers, a real, text, a list and a set of integers, a map, a struct with
        // a field whose number is written out, a UUID.
        let mut bytes = vec![0x11, 0x12, 0x13, 7, 0x14, 1, 0x15, 0x80, 1, 0x16, 3, 0x17];
        bytes.extend([0; 8]);
        bytes.extend([0x18, 2, b'a', b'b', 0x19, 0x25, 2, 4, 0x1a, 0xf5, 1, 6]);
        bytes.extend([
            0x1b, 1, 0x85, 1, b'k', 9, 0x1b, 0, 0x1c, 0x05, 40, 2, 0, 0x1d,
        ]);
        bytes.extend([0; 16]);
        bytes.push(0);
        assert_eq!(footer(&bytes), "ok");
        for length in 0..bytes.len() {
            assert_ne!(footer(&bytes[..length]), "ok", "{length} bytes");
        }
    }

    #[test]
    fn what_takes_unbounded_time_is_refused() {
        let billions = [0xff, 0xff, 0xff, 0xff, 7];
        for start in [&[0x19, 0xf1][..], &[0x1a, 0xf2], &[0x19, 0x19, 0xf1]] {
            let bytes = [start, &billions, &[0]].concat();
            assert!(footer(&bytes).contains("list of flags"));
        }
        let map = [&[0x1b][..], &billions, &[0x12, 0]].concat();
        assert!(footer(&map).contains("list of flags"));
        assert!(footer(&[0x1c; 100]).contains("deep"));
        let lists = [&[0x19][..], &[0x19; 100]].concat();
        assert!(footer(&lists).contains("deep"));
        // As many bytes as there are elements have to follow.
        let bytes = [&[0x19, 0xf3][..], &billions].concat();
        assert_eq!(footer(&bytes), "unexpected end of file");
    }

    #[test]
    fn pages_are_checked_one_after_the_other() {
        let page = |size: u8| {
            let mut page = vec![0x15, 0, 0x15, 2 * size, 0x15, 2 * size, 0];
            page.resize(page.len() + usize::from(size), 0xff);
            page
        };
        let two = [page(5), page(0)].concat();
        let end = two.len() as u64;
        check_pages(Cursor::new(&two), 0..end).unwrap();
        let hostile = [page(5), vec![0x19, 0xf1, 0xff, 0xff, 7, 0]].concat();
        let error = check_pages(Cursor::new(&hostile), 0..hostile.len() as u64).unwrap_err();
        assert!(error.to_string().contains("list of flags"), "{error}");
        // A page without a size, and a chunk that ends in a header: reading them fails at once.
        check_pages(Cursor::new(&[0x15, 0, 0]), 0..3).unwrap();
        check_pages(Cursor::new(&two), 0..end - 2).unwrap();
    }
}
