//! Makes archives, for tests.

use flate2::write::DeflateEncoder;
use rawzip::{CompressionMethod, ZipArchiveWriter};
use std::io::Write;
use tar_core::EntryType;
use tar_core::builder::EntryBuilder;

/// A tar archive that is being made.
#[derive(Default)]
pub struct TarMaker(pub Vec<u8>);

impl TarMaker {
    /// Appends an entry of this kind; a link points to `target.pdb`.
    pub fn entry(mut self, name: &str, kind: EntryType, bytes: &[u8]) -> Self {
        let mut entry = EntryBuilder::new_gnu();
        entry.path(name).entry_type(kind).link_name("target.pdb");
        self.0
            .extend(entry.size(bytes.len() as u64).unwrap().finish_bytes());
        self.0.extend(bytes);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    pub fn file(self, name: &str, bytes: &[u8]) -> Self {
        self.entry(name, EntryType::Regular, bytes)
    }

    pub fn finish(mut self) -> Vec<u8> {
        self.0.extend([0; 1024]);
        self.0
    }
}

/// A ZIP archive that is being made. Its files are compressed with deflate, or not at all.
pub struct ZipMaker {
    archive: ZipArchiveWriter<Vec<u8>>,
    method: CompressionMethod,
}

impl ZipMaker {
    pub fn new(method: CompressionMethod) -> Self {
        ZipMaker {
            archive: ZipArchiveWriter::new(Vec::new()),
            method,
        }
    }

    /// Adds a file, or another entry, whose Unix mode is `mode`.
    pub fn entry(mut self, name: &str, mode: u32, bytes: &[u8]) -> Self {
        let file = self.archive.new_file(name).compression_method(self.method);
        let (mut entry, config) = file.unix_permissions(mode).start().unwrap();
        let packed: Box<dyn Write> = match self.method {
            CompressionMethod::DEFLATE => {
                let level = flate2::Compression::default();
                Box::new(DeflateEncoder::new(&mut entry, level))
            }
            _ => Box::new(&mut entry),
        };
        let mut writer = config.wrap(packed);
        writer.write_all(bytes).unwrap();
        let (packed, descriptor) = writer.finish().unwrap();
        // The encoder writes its last bytes when it is dropped.
        drop(packed);
        entry.finish(descriptor).unwrap();
        self
    }

    pub fn file(self, name: &str, bytes: &[u8]) -> Self {
        self.entry(name, 0o100_644, bytes)
    }

    pub fn finish(self) -> Vec<u8> {
        self.archive.finish().unwrap()
    }
}
