//! Where painted files and drawings go.

use crate::error::{Context, Error, Result};
use crate::structure::Format;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A file, or a folder with a file an input.
pub(super) struct Target {
    path: PathBuf,
    is_folder: bool,
    overwrite: bool,
    /// Names that this run has given out in the folder.
    given: HashSet<PathBuf>,
}

impl Target {
    /// A file for a single input file, unless `path` is a folder.
    ///
    /// # Errors
    /// The file is there, and may not be replaced.
    pub(super) fn new(path: &Path, input: &Path, overwrite: bool) -> Result<Self> {
        let ends_as_folder = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        let target = Target {
            path: path.to_owned(),
            is_folder: !input.is_file() || path.is_dir() || ends_as_folder,
            overwrite,
            given: HashSet::new(),
        };
        if !target.is_folder {
            target.check(path, input)?;
        }
        Ok(target)
    }

    /// Where the result of `source` goes: the file, or in the folder the first of
    /// `names` that no other input of this run has.
    ///
    /// # Errors
    /// A file is there, and may not be replaced.
    pub(super) fn place(&mut self, source: &Path, names: &[String]) -> Result<PathBuf> {
        if !self.is_folder {
            return Ok(self.path.clone());
        }
        let mut paths = names.iter().map(|name| self.path.join(name));
        let Some(path) = paths.find(|path| !self.given.contains(path)) else {
            let error = Error::usage(format!("another input of this run is named {}", names[0]));
            return Err(error.fix("paint them into different folders"));
        };
        self.check(&path, source)?;
        self.given.insert(path.clone());
        Ok(path)
    }

    fn check(&self, path: &Path, source: &Path) -> Result<()> {
        let place = || path.display().to_string();
        let real = |path: &Path| path.canonicalize().ok();
        if real(path).is_some_and(|path| real(source) == Some(path)) {
            let error = Error::usage("this would replace the input");
            return Err(error.fix("name another output").within(place()));
        }
        if path.exists() && !self.overwrite {
            let error = Error::usage("the file is there");
            return Err(error
                .fix("name another output, or replace it with --overwrite")
                .within(place()));
        }
        Ok(())
    }
}

/// Refuses a name that stands for another format than the file's.
///
/// # Errors
/// The name's format, where it is another one.
pub(super) fn check_format(path: &Path, format: Format) -> Result<()> {
    let named = Format::from_name(&path.to_string_lossy());
    if named.is_none_or(|named| named == format) {
        return Ok(());
    }
    let (is, ending) = match format {
        Format::Pdb => ("PDB", ".pdb"),
        Format::Mmcif => ("mmCIF", ".cif"),
    };
    let error = Error::usage(format!("the input is {is}, and painting keeps the format"));
    Err(error
        .fix(format!("name the output {ending}, or {ending}.gz"))
        .within(path.display().to_string()))
}

/// Writes a file, whole or not at all; packed if its name ends in `.gz`.
///
/// # Errors
/// It cannot be written.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let place = || path.display().to_string();
    let packed = path
        .extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("gz"));
    let packed = packed.then(|| pack(bytes)).transpose().within(place)?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).within(place)?;
    }
    let name = path.file_name().unwrap_or(OsStr::new("painted"));
    let temporary = path.with_file_name(format!(".{}.tmp", name.display()));
    let written = fs::write(&temporary, packed.as_deref().unwrap_or(bytes))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The error says what is wrong; what is half written is of no use.
        let _ = fs::remove_file(&temporary);
    }
    written.within(place)
}

fn pack(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish()
}
