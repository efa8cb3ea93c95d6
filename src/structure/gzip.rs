//! gzip: how packed files are recognised and unpacked.

use std::io::ErrorKind;

use flate2::bufread::MultiGzDecoder;
use libdeflater::{Decompressor, crc32};
use memchr::memmem;

use super::read_budget::BudgetShare;
use super::read_limits::{ReadLimits, exceeded};
use crate::{Error, Result};

/// The first bytes of every member of a gzip file: the two that mark it, and the method.
const MEMBER_START: [u8; 3] = [0x1f, 0x8b, 8];

/// Whether the bytes of a file are gzip data.
pub(super) fn is_packed(bytes: &[u8]) -> bool {
    bytes.starts_with(&MEMBER_START[..2])
}

/// A file name without the ending `.gz`, in either case; `None` if the name does not have it.
pub(crate) fn unpacked_name(name: &str) -> Option<&str> {
    let (stem, ending) = name.split_at_checked(name.len().checked_sub(3)?)?;
    ending.eq_ignore_ascii_case(".gz").then_some(stem)
}

/// Unpacks all members of a gzip file into `text`.
pub(super) fn unpack(
    bytes: &[u8],
    limits: &ReadLimits,
    text: &mut Vec<u8>,
    share: &mut BudgetShare,
) -> Result<()> {
    let max = limits.unpacked_bytes_max(bytes.len());
    // The last four bytes are the size of the last member, usually the only one. If they are
    // corrupt, they must not reserve gigabytes.
    let claimed = bytes
        .last_chunk()
        .map_or(0, |size| u32::from_le_bytes(*size));
    let size = u64::from(claimed).min(bytes.len() as u64 * 16);
    if size == u64::from(claimed) && size <= max && unpack_only_member(bytes, size, text, share)? {
        return Ok(());
    }
    let refused = |error: std::io::Error| {
        let error = match error.kind() {
            ErrorKind::UnexpectedEof => Error::input("the gzip data is cut short"),
            _ => Error::input(format!("the gzip data is damaged: {error}")),
        };
        error.fix("fetch the file again")
    };
    if share.fill(text, MultiGzDecoder::new(bytes), size, max, refused)? {
        return Ok(());
    }
    let what = format!("{} bytes of gzip data unpack to over {max}", bytes.len());
    let (field, limit) = match max < u64::from(limits.text_bytes_max) {
        true => ("unpack_ratio_max", limits.unpack_ratio_max),
        false => ("text_bytes_max", limits.text_bytes_max),
    };
    Err(exceeded(field, limit, what))
}

/// Unpacks a file whose only member has `size` bytes in one call, which is 1.6 times as fast as a
/// stream. Returns false, with anything in `text`, if the file is not certainly of this kind.
fn unpack_only_member(
    bytes: &[u8],
    size: u64,
    text: &mut Vec<u8>,
    share: &mut BudgetShare,
) -> Result<bool> {
    let Some((rest, trailer)) = bytes.split_last_chunk::<8>() else {
        return Ok(false);
    };
    // Bytes of the member that look like the start of another one cost speed and nothing else.
    if memmem::find(rest.get(1..).unwrap_or_default(), &MEMBER_START).is_some() {
        return Ok(false);
    }
    share.make_room(text, size)?;
    let unpacked = Decompressor::new().gzip_decompress(bytes, text);
    // The trailer is that of the member, and so nothing follows the member.
    let [crc, _] = [&trailer[..4], &trailer[4..]];
    Ok(unpacked.is_ok_and(|len| len == text.len()) && crc32(text).to_le_bytes() == crc)
}

#[cfg(test)]
mod tests {
    use super::*;
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
        unpack(bytes, &ReadLimits::default(), &mut text, &mut share)?;
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
        let trailing = [&one[..], b"more text after the member"].concat();
        assert!(!is_only_member(&trailing, text.len()));
        assert!(unpacked(&trailing).is_err());
    }
}
