//! Where painted files and drawings go.

use super::super::files::{self, FileId, check_name};
use super::super::names::shown;
use crate::error::{Context, Error, Result};
use crate::structure::Format;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file, or a folder with a file an input.
pub(super) struct Target {
    path: PathBuf,
    is_folder: bool,
    overwrite: bool,
    /// The inputs of this run, if files may be replaced.
    inputs: Arc<HashSet<FileId>>,
    /// Names that this run has given out in the folder.
    given: HashSet<PathBuf>,
}

impl Target {
    /// A file for a single input file, unless `path` is a folder.
    ///
    /// # Errors
    /// The file is there, and may not be replaced.
    pub(super) fn new(
        path: &Path,
        input: &Path,
        overwrite: bool,
        inputs: &Arc<HashSet<FileId>>,
    ) -> Result<Self> {
        let ends_as_folder = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        let target = Target {
            path: path.to_owned(),
            is_folder: !input.is_file() || path.is_dir() || ends_as_folder,
            overwrite,
            inputs: Arc::clone(inputs),
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
    pub(super) fn place(&mut self, source: &Path, names: &[OsString]) -> Result<PathBuf> {
        if !self.is_folder {
            return Ok(self.path.clone());
        }
        let mut paths = names.iter().map(|name| self.path.join(name));
        let Some(path) = paths.find(|path| !self.given.contains(path)) else {
            let error = Error::usage(format!(
                "another input of this run is named {}",
                shown(Path::new(&names[0]))
            ));
            return Err(error.fix("paint them into different folders"));
        };
        self.check(&path, source)?;
        self.given.insert(path.clone());
        Ok(path)
    }

    fn check(&self, path: &Path, source: &Path) -> Result<()> {
        check_name(path)?;
        let place = || shown(path);
        let is_input = |id: FileId| self.inputs.contains(&id) || FileId::of(source) == Some(id);
        if FileId::of(path).is_some_and(is_input) {
            let error = Error::usage("this would replace an input");
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
        .within(shown(path)))
}

/// Writes a file, whole or not at all; packed if its name ends in `.gz`.
///
/// # Errors
/// It cannot be written.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let place = || shown(path);
    let packed = path
        .extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("gz"));
    let packed = packed.then(|| pack(bytes)).transpose().within(place)?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).within(place)?;
    }
    files::replace(path, packed.as_deref().unwrap_or(bytes)).within(place)
}

fn pack(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish()
}
