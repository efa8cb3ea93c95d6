//! Detects the format of kernel images.

use crate::error::{Error, ErrorKind, Result};
use std::fmt;

const FATBIN_MAGIC: [u8; 4] = 0xBA55_ED50_u32.to_le_bytes();
const ELF_MAGIC: [u8; 4] = *b"\x7FELF";

/// The format of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ImageFormat {
    FatBinary,
    Cubin,
    Ptx,
}

impl ImageFormat {
    /// The format of `image`. The driver gets an address without a length and trusts the sizes in
    /// the headers of the image, so those are checked here.
    ///
    /// # Errors
    /// [`ErrorKind::Kernel`] for another format, and for an image that is shorter than its headers
    /// say.
    pub(super) fn detect(image: &[u8]) -> Result<ImageFormat> {
        let (format, end) = if image.starts_with(&FATBIN_MAGIC) {
            (ImageFormat::FatBinary, fatbin_end(image))
        } else if image.starts_with(&ELF_MAGIC) {
            (ImageFormat::Cubin, elf_end(image))
        } else if is_ptx(image) {
            (ImageFormat::Ptx, Some(image.len() as u64))
        } else {
            let message = "the kernel image is neither a fat binary, nor a cubin, nor PTX";
            return Err(Error::new(ErrorKind::Kernel, message)
                .fix("give the bytes that nvcc or NVRTC wrote, or give the source"));
        };
        match end {
            Some(end) if end <= image.len() as u64 => Ok(format),
            _ => {
                let message = format!("the {format} is cut short at {} bytes", image.len());
                Err(Error::new(ErrorKind::Kernel, message).fix("build the kernel image again"))
            }
        }
    }
}

impl fmt::Display for ImageFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ImageFormat::FatBinary => "fat binary",
            ImageFormat::Cubin => "cubin",
            ImageFormat::Ptx => "PTX",
        })
    }
}

fn is_ptx(image: &[u8]) -> bool {
    std::str::from_utf8(image).is_ok_and(|text| text.contains(".version"))
}

fn number<const N: usize>(image: &[u8], offset: usize) -> Option<u64> {
    let mut bytes = [0; 8];
    bytes[..N].copy_from_slice(image.get(offset..offset + N)?);
    Some(u64::from_le_bytes(bytes))
}

/// The end of a fat binary: magic number, version (2 bytes), header size (2), size of the rest (8).
/// `None`, here and in [`elf_end`], if even the header is cut short.
fn fatbin_end(image: &[u8]) -> Option<u64> {
    number::<2>(image, 6)?.checked_add(number::<8>(image, 8)?)
}

/// The end of the program and of the section header table, the last parts of a cubin. Its header has
/// their offsets and the sizes and numbers of their entries at these offsets (ELF-64).
fn elf_end(image: &[u8]) -> Option<u64> {
    let table_end = |start, entry, count| {
        let bytes = number::<2>(image, entry)? * number::<2>(image, count)?;
        number::<8>(image, start)?.checked_add(bytes)
    };
    Some(table_end(0x20, 0x36, 0x38)?.max(table_end(0x28, 0x3A, 0x3C)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_short_or_unknown_is_refused() {
        let mut fatbin = FATBIN_MAGIC.to_vec();
        fatbin.extend([1, 0, 16, 0, 8, 0, 0, 0, 0, 0, 0, 0]);
        fatbin.extend([0; 8]);
        assert_eq!(
            ImageFormat::detect(&fatbin).unwrap(),
            ImageFormat::FatBinary
        );
        for len in [4, 15, 23] {
            let error = ImageFormat::detect(&fatbin[..len]).unwrap_err();
            assert!(error.message().contains("cut short"), "{error}");
        }
        assert_eq!(
            ImageFormat::detect(b".version 8.0").unwrap(),
            ImageFormat::Ptx
        );
        for junk in [b"junk".as_slice(), b"", b"\x7FELF", b"\xFF\xFE.version"] {
            assert_eq!(
                ImageFormat::detect(junk).unwrap_err().kind(),
                ErrorKind::Kernel
            );
        }
    }
}
