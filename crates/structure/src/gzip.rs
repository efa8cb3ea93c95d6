//! Unpacks gzip data.

use std::io::{self, BufRead, ErrorKind, Read};

use flate2::bufread::GzDecoder;
use memchr::{memchr, memmem};

use super::read_budget::BudgetShare;
use crate::{Error, Result};

/// The first bytes of every member of a gzip file: the two that mark it, and the method.
const MEMBER_START: [u8; 3] = [0x1f, 0x8b, 8];

/// Whether the bytes of a file are gzip data.
pub(super) fn is_packed(bytes: &[u8]) -> bool {
    bytes.starts_with(&MEMBER_START[..2])
}

/// The size that the last four bytes of a file state: that of the last member, usually the only one.
pub(super) fn claimed_size(bytes: &[u8]) -> u64 {
    let size = bytes.last_chunk().map(|size| u32::from_le_bytes(*size));
    u64::from(size.unwrap_or(0))
}

/// The error of gzip data that cannot be unpacked.
pub(super) fn unpack_error(error: io::Error) -> Error {
    let error = match error.kind() {
        ErrorKind::UnexpectedEof => Error::input("the gzip data is cut short"),
        _ => Error::input(format!("the gzip data is damaged: {error}")),
    };
    error.fix("fetch the file again")
}

/// A stream of the text of all members of gzip data, one after the other. Zeros behind the last
/// member are padding, as for gzip(1). Anything else there is an error, since it may be the rest of
/// a damaged member.
pub(super) struct Members<R> {
    /// `None` behind the last member.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Members<R> {
    pub(super) fn new(packed: R) -> Self {
        Members {
            member: Some(GzDecoder::new(packed)),
        }
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, text: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let read = member.read(text)?;
            if read > 0 || text.is_empty() {
                return Ok(read);
            }
            let has_more = has_member(member.get_mut())?;
            let rest = self.member.take().map(GzDecoder::into_inner);
            self.member = rest.filter(|_| has_more).map(GzDecoder::new);
        }
        Ok(0)
    }
}

/// Whether another member follows. Skips zeros up to the end. An `InvalidData` error if anything
/// else follows.
fn has_member(rest: &mut impl BufRead) -> io::Result<bool> {
    let mut is_padded = false;
    loop {
        let bytes = rest.fill_buf()?;
        let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
        is_padded |= zeros > 0;
        match bytes.get(zeros) {
            None if bytes.is_empty() => return Ok(false),
            None => rest.consume(zeros),
            Some(&byte) if byte == MEMBER_START[0] && !is_padded => return Ok(true),
            Some(_) => {
                let message = "bytes that are not gzip data follow it";
                return Err(io::Error::new(ErrorKind::InvalidData, message));
            }
        }
    }
}

/// The longest name in the header of a member that is unpacked in one call: that of a path of
/// Linux. A damaged header is not searched to the end of the file.
const NAME_BYTES_MAX: usize = 4096;

/// Unpacks a file whose only member has `size` bytes in one call, which is 1.6 times as fast as a
/// stream. Returns false if the file may have other members, trailing bytes or a header with more
/// than a name, or is damaged; `text` then holds unspecified bytes, and the stream finds the error.
///
/// # Errors
/// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if there is no memory for the text.
pub(super) fn unpack_only_member(
    bytes: &[u8],
    size: u64,
    text: &mut Vec<u8>,
    share: &mut BudgetShare,
) -> Result<bool> {
    // The header of a member has these bytes, of which the fourth says what follows them.
    const HEADER_BYTES: usize = 10;
    const HAS_NAME: u8 = 8;
    let name_ends = |rest: &[u8]| memchr(0, &rest[..rest.len().min(NAME_BYTES_MAX)]).is_some();
    let is_plain = match bytes.split_at_checked(HEADER_BYTES) {
        Some((header, rest)) => match header[3] {
            0 => true,
            HAS_NAME => name_ends(rest),
            _ => false,
        },
        None => false,
    };
    // A file of several members, which is rare, needs the stream: the call would be in vain.
    if !is_plain || memmem::find(&bytes[1..], &MEMBER_START).is_some() {
        return Ok(false);
    }
    share.make_room(text, size)?;
    Ok(unpack_member(bytes, text) == Some((bytes.len(), text.len())))
}

/// Unpacks the first member of `packed`. Returns how many bytes it takes, and how many were
/// written; `None` if it is damaged, or longer than `unpacked`.
fn unpack_member(packed: &[u8], unpacked: &mut [u8]) -> Option<(usize, usize)> {
    use libdeflate_sys::{
        libdeflate_alloc_decompressor, libdeflate_free_decompressor, libdeflate_gzip_decompress_ex,
        libdeflate_result_LIBDEFLATE_SUCCESS,
    };
    let (mut taken, mut written) = (0, 0);
    // SAFETY: the call reads `packed` and writes `unpacked` within their lengths, and the two
    // counts; the decompressor is checked, used by this thread alone, and freed once.
    let result = unsafe {
        let decompressor = libdeflate_alloc_decompressor();
        if decompressor.is_null() {
            return None;
        }
        let result = libdeflate_gzip_decompress_ex(
            decompressor,
            packed.as_ptr().cast(),
            packed.len(),
            unpacked.as_mut_ptr().cast(),
            unpacked.len(),
            &raw mut taken,
            &raw mut written,
        );
        libdeflate_free_decompressor(decompressor);
        result
    };
    (result == libdeflate_result_LIBDEFLATE_SUCCESS).then_some((taken, written))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReadLimits;
    use crate::compression::Compression::Gzip;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn unpacked(bytes: &[u8]) -> Result<Vec<u8>> {
        let mut text = b"left by the file before".to_vec();
        let mut share = BudgetShare::new(None);
        Gzip.unpack(bytes, &ReadLimits::default(), &mut text, &mut share)?;
        Ok(text)
    }

    fn is_only_member(bytes: &[u8], size: usize) -> bool {
        let mut text = Vec::new();
        let mut share = BudgetShare::new(None);
        unpack_only_member(bytes, size as u64, &mut text, &mut share).unwrap()
    }

    #[test]
    fn a_file_of_one_member_takes_one_call_and_others_the_stream() {
        let text = b"ATOM      1  N   MET A   1\n".repeat(100);
        let one = packed(&text);
        assert!(is_only_member(&one, text.len()));
        assert_eq!(unpacked(&one).unwrap(), text);
        assert_eq!(unpacked(&packed(b"")).unwrap(), b"");
        // Members of the same content have the same trailer.
        let two = [&one[..], &one].concat();
        assert!(!is_only_member(&two, text.len()));
        assert_eq!(unpacked(&two).unwrap(), text.repeat(2));
        let with_empty = [&one[..], &packed(b"")].concat();
        assert!(!is_only_member(&with_empty, 0));
        assert_eq!(unpacked(&with_empty).unwrap(), text);
        // Stored text that has the start of a member in it.
        let mut encoder = GzEncoder::new(Vec::new(), Compression::none());
        encoder.write_all(&MEMBER_START).unwrap();
        let stored = encoder.finish().unwrap();
        assert!(!is_only_member(&stored, 3));
        assert_eq!(unpacked(&stored).unwrap(), MEMBER_START);
    }

    #[test]
    fn a_header_with_a_name_takes_one_call_and_one_with_more_the_stream() {
        let text = b"END\n".repeat(50);
        let plain = packed(&text);
        let with = |flag: u8, more: &[u8]| {
            let mut file = plain[..10].to_vec();
            file[3] = flag;
            [&file[..], more, &plain[10..]].concat()
        };
        let named = with(8, b"1ubi.pdb\0");
        assert!(is_only_member(&named, text.len()));
        assert_eq!(unpacked(&named).unwrap(), text);
        let long = with(8, &[&b"x".repeat(70_000)[..], b"\0"].concat());
        assert!(!is_only_member(&long, text.len()));
        // A wrong checksum of the header.
        let checked = with(2, &[1, 2]);
        assert!(!is_only_member(&checked, text.len()));
        assert!(unpacked(&checked).is_err());
    }

    #[test]
    fn damaged_and_cut_files_have_the_error_of_the_stream() {
        let text = b"ATOM      1  N   MET A   1\n".repeat(100);
        let one = packed(&text);
        for cut in 3..one.len() {
            let error = unpacked(&one[..cut]).unwrap_err();
            let said = error.to_string();
            assert!(
                said.contains("cut short") || said.contains("damaged"),
                "{cut}: {said}"
            );
        }
        for place in 10..one.len() {
            let mut damaged = one.clone();
            damaged[place] ^= 0x10;
            assert!(
                unpacked(&damaged).map_or(true, |found| found == text),
                "{place}"
            );
        }
    }

    #[test]
    fn zeros_behind_the_last_member_are_padding_and_other_bytes_an_error() {
        let text = b"ATOM      1  N   MET A   1\n".repeat(100);
        let one = packed(&text);
        for zeros in [1, 4, 512, 100_000] {
            let padded = [&one[..], &vec![0; zeros]].concat();
            assert!(!is_only_member(&padded, 0));
            assert_eq!(unpacked(&padded).unwrap(), text, "{zeros}");
            let two = [&one[..], &padded].concat();
            assert_eq!(unpacked(&two).unwrap(), text.repeat(2), "{zeros}");
        }
        // The last one has the trailer of the member at its end.
        let others: [&[u8]; 5] = [
            b"x",
            b"\0\0x",
            b"more text",
            &[&[0; 8], &one[..]].concat(),
            &one[one.len() - 8..],
        ];
        for more in others {
            let trailing = [&one[..], more].concat();
            assert!(!is_only_member(&trailing, text.len()));
            let error = unpacked(&trailing).unwrap_err().to_string();
            let said = "follow it";
            assert!(error.contains(said), "{error}");
        }
        // The start of another member.
        let cut = unpacked(&[&one[..], &one[..9]].concat()).unwrap_err();
        assert!(cut.message().contains("cut short"), "{cut}");
    }

    #[test]
    fn members_and_padding_may_be_split_between_reads_of_the_stream() {
        let text = b"ATOM      1  N   MET A   1\n".repeat(100);
        let one = packed(&text);
        let padded = [&one[..], &one, &[0; 700]].concat();
        let trailing = [&padded[..], b"x"].concat();
        for bytes in [1, 2, 3, 100, 1000] {
            let read = |packed: &[u8]| {
                let mut found = Vec::new();
                let stream = io::BufReader::with_capacity(bytes, packed);
                Members::new(stream).read_to_end(&mut found).map(|_| found)
            };
            assert_eq!(read(&padded).unwrap(), text.repeat(2), "{bytes}");
            let error = read(&trailing).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidData, "{bytes}");
        }
    }
}
