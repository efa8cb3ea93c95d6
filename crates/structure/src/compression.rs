//! Compressed files: how they are recognised and unpacked.

use super::read_budget::BudgetShare;
use super::read_limits::ReadLimits;
use super::{gzip, zstd};
use crate::{Error, Result};
use std::io::{self, BufRead, Read};

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// gzip, of one or several members.
    Gzip,
    /// Zstandard.
    Zstd,
}

impl Compression {
    /// Endings of file names, for messages.
    pub const ENDINGS: &str = ".gz or .zst";

    /// The compression that a file's first bytes show.
    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        match bytes {
            bytes if gzip::is_packed(bytes) => Some(Compression::Gzip),
            bytes if zstd::is_packed(bytes) => Some(Compression::Zstd),
            _ => None,
        }
    }

    /// The compression that a file's name shows by its ending, in either case, and the name
    /// without that ending.
    pub fn of_name(name: &str) -> Option<(Self, &str)> {
        let (stem, ending) = name.rsplit_once('.')?;
        let is = |known: &str| ending.eq_ignore_ascii_case(known);
        match () {
            () if is("gz") => Some((Compression::Gzip, stem)),
            () if is("zst") => Some((Compression::Zstd, stem)),
            () => None,
        }
    }

    /// A file's name without the ending of a compressed file.
    pub fn unpacked_name(name: &str) -> &str {
        Self::of_name(name).map_or(name, |(_, stem)| stem)
    }

    /// Unpacks a whole file into `text`. May wait for the budget of `share`.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) if the data is damaged or cut short,
    /// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if it unpacks to more than a limit allows, or if there
    /// is no memory.
    pub(super) fn unpack(
        self,
        bytes: &[u8],
        limits: &ReadLimits,
        text: &mut Vec<u8>,
        share: &mut BudgetShare,
    ) -> Result<()> {
        let (method, claimed, unpack_error): (_, _, fn(io::Error) -> Error) = match self {
            Compression::Gzip => ("gzip", gzip::claimed_size(bytes), gzip::unpack_error),
            Compression::Zstd => ("zstd", zstd::claimed_size(bytes), zstd::unpack_error),
        };
        let max = limits.unpacked_bytes_max(bytes.len());
        // A size that is corrupt must not reserve gigabytes. Files of structures rarely unpack to
        // sixteen times their size; those that do are read in steps.
        let size = claimed.min(bytes.len() as u64 * 16);
        if self == Compression::Gzip
            && size == claimed
            && size <= max
            && gzip::unpack_only_member(bytes, size, text, share)?
        {
            return Ok(());
        }
        let stream = self.reader(bytes).map_err(unpack_error)?;
        if share.fill(text, stream, size, max, unpack_error)? {
            Ok(())
        } else {
            Err(limits.unpacks_too_far(method, bytes.len()))
        }
    }

    /// A stream of what `packed` unpacks to. It has no limit.
    ///
    /// # Errors
    /// Fails if there is no memory for the decoder.
    pub fn reader<'a>(
        self,
        packed: impl BufRead + Send + 'a,
    ) -> io::Result<Box<dyn Read + Send + 'a>> {
        Ok(match self {
            Compression::Gzip => Box::new(gzip::Members::new(packed)),
            Compression::Zstd => Box::new(zstd::reader(packed)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_first_bytes_show_how_a_file_is_compressed() {
        let of_name = Compression::of_name;
        assert_eq!(
            of_name("1ubi.cif.GZ"),
            Some((Compression::Gzip, "1ubi.cif"))
        );
        assert_eq!(of_name("a.b/x.zst"), Some((Compression::Zstd, "a.b/x")));
        assert_eq!(
            (of_name("x.gzip"), of_name("gz"), of_name("")),
            (None, None, None)
        );
        assert_eq!(Compression::unpacked_name("1ubi.pdb"), "1ubi.pdb");
        let of_bytes = Compression::of_bytes;
        assert_eq!(of_bytes(b"\x1f\x8b"), Some(Compression::Gzip));
        assert_eq!(of_bytes(b"\x28\xb5\x2f\xfd"), Some(Compression::Zstd));
        // The first frame of files that pzstd wrote.
        assert_eq!(of_bytes(b"\x50\x2a\x4d\x18\x04"), Some(Compression::Zstd));
        assert_eq!((of_bytes(b"ATOM"), of_bytes(b"")), (None, None));
    }
}
