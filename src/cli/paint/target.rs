//! Where painted files and drawings go.

use super::super::files::{self, FileId, check_name};
use super::super::path_text::shown;
use crate::error::{Context, Error, Result};
use crate::structure::Format;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// All files that a run writes, whatever its targets.
pub(super) struct Outputs {
    overwrite: bool,
    /// The inputs of this run, if files may be replaced.
    inputs: HashSet<FileId>,
    /// What each file holds, by its resolved path.
    given: HashMap<PathBuf, String>,
}

impl Outputs {
    pub(super) fn new(overwrite: bool, inputs: HashSet<FileId>) -> Self {
        Outputs {
            overwrite,
            inputs,
            given: HashMap::new(),
        }
    }

    fn is_given(&self, path: &Path) -> bool {
        self.given.contains_key(&resolved(path))
    }

    /// Takes `path` for the output `what` of the input `source`.
    ///
    /// # Errors
    /// It is another output of the run, an input, or a file that may not be replaced.
    fn give(&mut self, path: &Path, what: &str, source: &Path) -> Result<()> {
        let place = || shown(path);
        let resolved = resolved(path);
        if let Some(other) = self.given.get(&resolved) {
            let error = Error::usage(format!("{what} of {} would replace {other}", shown(source)));
            return Err(error
                .fix("give each output a name or a folder of its own")
                .within(place()));
        }
        check_name(path)?;
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
        let what = format!("{what} of {}, {}", shown(source), shown(path));
        self.given.insert(resolved, what);
        Ok(())
    }
}

/// The path without links and `..` in its folders, which need not be there yet.
fn resolved(path: &Path) -> PathBuf {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return path.to_owned();
    };
    resolved_folder(folder).join(name)
}

fn resolved_folder(folder: &Path) -> PathBuf {
    let here = Path::new(".");
    let folder = Some(folder)
        .filter(|it| !it.as_os_str().is_empty())
        .unwrap_or(here);
    match (folder.canonicalize(), folder.parent(), folder.file_name()) {
        (Ok(folder), ..) => folder,
        (Err(_), Some(parent), Some(name)) => resolved_folder(parent).join(name),
        // A folder that is not there is no link, so `..` leads out of it.
        (Err(_), Some(parent), None) => {
            let mut parent = resolved_folder(parent);
            parent.pop();
            parent
        }
        (Err(_), None, _) => folder.to_owned(),
    }
}

/// A file, or a folder with a file an input.
pub(super) struct Target {
    path: PathBuf,
    is_folder: bool,
    /// What is written there, for messages.
    what: &'static str,
}

impl Target {
    /// A file for a single input file, unless `path` is a folder.
    ///
    /// # Errors
    /// The file may not be written: see [`Outputs::give`].
    pub(super) fn new(
        path: &Path,
        what: &'static str,
        input: &Path,
        outputs: &mut Outputs,
    ) -> Result<Self> {
        let ends_as_folder = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        let is_folder = !input.is_file() || path.is_dir() || ends_as_folder;
        if !is_folder {
            outputs.give(path, what, input)?;
        }
        Ok(Target {
            path: path.to_owned(),
            is_folder,
            what,
        })
    }

    /// Where the result of `source` goes: the file, or in the folder the first of
    /// `names` that no other output of this run has.
    ///
    /// # Errors
    /// The file may not be written: see [`Outputs::give`].
    pub(super) fn place(
        &self,
        source: &Path,
        names: &[OsString],
        outputs: &mut Outputs,
    ) -> Result<PathBuf> {
        if !self.is_folder {
            return Ok(self.path.clone());
        }
        let mut paths = names.iter().map(|name| self.path.join(name));
        let free = paths.find(|path| !outputs.is_given(path));
        let path = free.unwrap_or_else(|| self.path.join(&names[0]));
        outputs.give(&path, self.what, source)?;
        Ok(path)
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
