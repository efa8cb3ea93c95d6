//! gzip: how packed files are recognised and unpacked.

use std::io::ErrorKind;

use flate2::bufread::MultiGzDecoder;

use super::read_budget::BudgetShare;
use super::read_limits::{ReadLimits, exceeded};
use crate::{Error, Result};

/// Whether the bytes of a file are gzip data.
pub(super) fn is_packed(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
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
