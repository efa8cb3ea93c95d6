//! Unpacks zstd data.

use std::io::{self, BufRead, ErrorKind};

use zstd::stream::read::Decoder;

use crate::Error;

/// The first bytes of a frame.
const FRAME_START: [u8; 4] = 0xfd2f_b528_u32.to_le_bytes();

/// The first bytes of a frame without data, whose lowest four bits are free.
const SKIPPABLE_START: [u8; 4] = 0x184d_2a50_u32.to_le_bytes();

/// Whether the bytes of a file are zstd data.
pub(super) fn is_packed(bytes: &[u8]) -> bool {
    let is_skippable =
        |start: &[u8; 4]| [start[0] & 0xf0, start[1], start[2], start[3]] == SKIPPABLE_START;
    let start = bytes.first_chunk();
    start.is_some_and(|start| *start == FRAME_START || is_skippable(start))
}

/// The size that the first frame of a file states, usually the only one.
pub(super) fn claimed_size(bytes: &[u8]) -> u64 {
    let size = zstd::zstd_safe::get_frame_content_size(bytes);
    size.ok().flatten().unwrap_or(0)
}

/// A stream of what all frames of `packed` unpack to. The decoder refuses windows over 128 MiB, as
/// zstd(1) does by default.
pub(super) fn reader<R: BufRead>(packed: R) -> io::Result<Decoder<'static, R>> {
    Decoder::with_buffer(packed)
}

/// The error of zstd data that cannot be unpacked.
pub(super) fn unpack_error(error: io::Error) -> Error {
    let error = match error.kind() {
        ErrorKind::UnexpectedEof => Error::input("the zstd data is cut short"),
        _ => Error::input(format!(
            "the zstd data is damaged, or needs a window over 128 MiB: {error}"
        )),
    };
    error.fix("fetch the file again, or compress it without --long and --ultra")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind::Capacity;
    use crate::ReadLimits;
    use crate::Result;
    use crate::compression::Compression::Zstd;
    use crate::read_budget::BudgetShare;

    fn packed(text: &[u8]) -> Vec<u8> {
        zstd::encode_all(text, 3).unwrap()
    }

    fn unpacked(bytes: &[u8]) -> Result<Vec<u8>> {
        let mut text = b"left by the file before".to_vec();
        let mut share = BudgetShare::new(None);
        Zstd.unpack(bytes, &ReadLimits::default(), &mut text, &mut share)?;
        Ok(text)
    }

    #[test]
    fn frames_with_and_without_a_size_follow_each_other() {
        let text = b"ATOM      1  N   MET A   1\n".repeat(100);
        let one = packed(&text);
        assert!(is_packed(&one));
        assert_eq!(unpacked(&one).unwrap(), text);
        let mut sized = zstd::bulk::compress(&text, 3).unwrap();
        assert_eq!(unpacked(&sized).unwrap(), text);
        // A frame without data.
        sized.extend([&SKIPPABLE_START[..], &3_u32.to_le_bytes(), b"abc"].concat());
        sized.extend(&one);
        assert_eq!(unpacked(&sized).unwrap(), text.repeat(2));
    }

    #[test]
    fn damaged_and_cut_files_are_errors() {
        let text = b"ATOM      1  N   MET A   1\n".repeat(100);
        let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
        encoder.include_checksum(true).unwrap();
        io::Write::write_all(&mut encoder, &text).unwrap();
        let one = encoder.finish().unwrap();
        for cut in 4..one.len() {
            let error = unpacked(&one[..cut]).unwrap_err();
            assert!(error.message().contains("cut short"), "{cut}: {error}");
        }
        for place in 4..one.len() {
            let mut damaged = one.clone();
            damaged[place] ^= 0x10;
            let found = unpacked(&damaged);
            assert!(found.map_or(true, |found| found == text), "{place}");
        }
        let trailing = [&one[..], b"more text"].concat();
        let error = unpacked(&trailing).unwrap_err();
        assert!(error.message().contains("damaged"), "{error}");
    }

    #[test]
    fn text_that_unpacks_too_far_is_refused_whatever_size_is_claimed() {
        let zeros = vec![0; 64 << 20];
        for bomb in [packed(&zeros), zstd::bulk::compress(&zeros, 3).unwrap()] {
            let error = unpacked(&bomb).unwrap_err();
            assert_eq!(error.kind(), Capacity);
            assert!(
                error.message().contains("limits.unpack_ratio_max"),
                "{error}"
            );
        }
    }
}
