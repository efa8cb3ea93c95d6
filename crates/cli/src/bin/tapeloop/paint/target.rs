//! The output files of painting.

use flate2::write::GzEncoder;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tapeloop::error::{Context, Error, Result};
use tapeloop::structure::Format;
use tapeloop_cli::terminal::{for_terminal, note};
use tapeloop_files::shown;
use tapeloop_files::{FileId, check_name};
use tapeloop_structure::internal::Compression;

/// The name of standard output.
pub(super) const STDOUT: &str = "-";

/// All files that a run writes.
pub(super) struct Outputs {
    overwrite: bool,
    /// The inputs of this run, if files may be replaced.
    inputs: HashSet<FileId>,
    /// A description of each output, by its resolved path.
    reserved: HashMap<PathBuf, String>,
}

impl Outputs {
    pub(super) fn new(overwrite: bool, inputs: HashSet<FileId>) -> Self {
        Outputs {
            overwrite,
            inputs,
            reserved: HashMap::new(),
        }
    }

    fn is_reserved(&self, path: &Path) -> bool {
        self.reserved.contains_key(&resolved(path))
    }

    /// Reserves `path` for the output `output` of the input `source`.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](tapeloop::ErrorKind::Usage) if the path is another output of the run,
    /// an input, or a file that may not be replaced.
    fn reserve(&mut self, path: &Path, output: &str, source: &Path) -> Result<()> {
        let place = || shown(path);
        let resolved = resolved(path);
        if let Some(other) = self.reserved.get(&resolved) {
            let error = Error::usage(format!(
                "{output} of {} would replace {other}",
                shown(source)
            ));
            return Err(error
                .fix("give each output a name or a folder of its own")
                .within(place()));
        }
        check_name(path)?;
        let is_input =
            |id: FileId| self.inputs.contains(&id) || FileId::from_path(source) == Some(id);
        if FileId::from_path(path).is_some_and(is_input) {
            let error = Error::usage("this would replace an input");
            return Err(error.fix("name another output").within(place()));
        }
        if path.exists() && !self.overwrite {
            let error = Error::usage("the file exists");
            return Err(error
                .fix("name another output, or replace it with --overwrite")
                .within(place()));
        }
        let owner = format!("{output} of {}, {}", shown(source), shown(path));
        self.reserved.insert(resolved, owner);
        Ok(())
    }
}

/// The path without links and `..` in its folders, which need not exist yet.
fn resolved(path: &Path) -> PathBuf {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return path.to_owned();
    };
    resolved_folder(folder).join(name)
}

/// A folder without links and `..`, also if its last parts do not exist.
fn resolved_folder(folder: &Path) -> PathBuf {
    let current = Path::new(".");
    let folder = Some(folder)
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(current);
    match (folder.canonicalize(), folder.parent(), folder.file_name()) {
        (Ok(folder), ..) => folder,
        (Err(_), Some(parent), Some(name)) => resolved_folder(parent).join(name),
        // A folder that does not exist is no link, so `..` cancels it.
        (Err(_), Some(parent), None) => {
            let mut parent = resolved_folder(parent);
            parent.pop();
            parent
        }
        (Err(_), None, _) => folder.to_owned(),
    }
}

/// A file for one input, or a folder with a file for each input.
pub(super) struct PaintTarget {
    path: PathBuf,
    is_folder: bool,
    /// The name of the output, for messages.
    output: &'static str,
}

impl PaintTarget {
    /// A file for a single input file, unless `path` is a folder.
    ///
    /// # Errors
    /// The file may not be written: see [`Outputs::reserve`].
    pub(super) fn new(
        path: &Path,
        output: &'static str,
        input: &Path,
        outputs: &mut Outputs,
    ) -> Result<Self> {
        if path == Path::new(STDOUT) {
            if !input.is_file() {
                let error = Error::usage("standard output holds one file");
                return Err(error.fix("paint one file, or name a folder"));
            }
            return Ok(PaintTarget {
                path: path.to_owned(),
                is_folder: false,
                output,
            });
        }
        let ends_as_folder = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        let is_folder = !input.is_file() || path.is_dir() || ends_as_folder;
        if !is_folder {
            outputs.reserve(path, output, input)?;
        }
        Ok(PaintTarget {
            path: path.to_owned(),
            is_folder,
            output,
        })
    }

    /// The output path of `source`: the file, or the first of `names`, at least one, in the folder that no
    /// other output of this run has.
    ///
    /// # Errors
    /// The file may not be written: see [`Outputs::reserve`].
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
        let free = paths.find(|path| !outputs.is_reserved(path));
        let path = free.unwrap_or_else(|| self.path.join(&names[0]));
        outputs.reserve(&path, self.output, source)?;
        Ok(path)
    }
}

/// Checks that the ending of an output's name does not name another format.
///
/// # Errors
/// [`ErrorKind::Usage`](tapeloop::ErrorKind::Usage) if the name is that of another format.
pub(super) fn check_format(path: &Path, format: Format) -> Result<()> {
    let named = Format::from_name(&path.to_string_lossy());
    if named.is_none_or(|named| named == format) {
        return Ok(());
    }
    let (is, ending) = (format.name(), format.endings()[0]);
    let error = Error::usage(format!("the input is {is}, and painting keeps the format"));
    Err(error
        .fix(format!("name the output .{ending}, or .{ending}.gz"))
        .within(shown(path)))
}

/// Writes a file atomically, compressed if its name says so; or to standard output.
///
/// # Errors
/// [`ErrorKind::Io`](tapeloop::ErrorKind::Io) if the file cannot be written.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if path == Path::new(STDOUT) {
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(&for_terminal(&stdout, bytes));
        note(written.and_then(|()| stdout.flush()));
        return Ok(());
    }
    let place = || shown(path);
    let name = path.to_string_lossy();
    let compression = Compression::of_name(&name).map(|(compression, _)| compression);
    let packed = compression
        .map(|compression| pack(compression, bytes))
        .transpose();
    let packed = packed.within(place)?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).within(place)?;
    }
    tapeloop_files::replace(path, packed.as_deref().unwrap_or(bytes))
}

/// Compresses bytes in the format that the name of the output states.
fn pack(compression: Compression, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    match compression {
        Compression::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(bytes)?;
            encoder.finish()
        }
        Compression::Zstd => zstd::encode_all(bytes, 0),
    }
}
