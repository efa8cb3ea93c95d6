//! The file of a trajectory, and its errors.

use rawzip::{FileReader, ReaderAt};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use tapeloop_error::{Error, Result};
use tapeloop_files::open_file;

/// Where the bytes of a frame are.
pub(super) struct FramePlace {
    pub(super) file: TrajectoryFile,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

/// An open file, which several threads read.
#[derive(Clone, Debug)]
pub(super) struct TrajectoryFile {
    file: Arc<FileReader>,
    pub(super) bytes: u64,
}

impl TrajectoryFile {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// Of kind `Io` if the file cannot be opened.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = open_file(path)?;
        let bytes = file.metadata()?.len();
        Ok(TrajectoryFile {
            file: Arc::new(file.into()),
            bytes,
        })
    }

    /// Reads the bytes at `offset`.
    ///
    /// # Errors
    /// Of kind `Input` if the file ends before, else `Io`. The message calls the bytes `part`.
    pub(super) fn read(&self, bytes: &mut [u8], offset: u64, part: &str) -> Result<()> {
        let read = self.file.read_exact_at(bytes, offset);
        read.map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => cut_short_error(part, offset, self.bytes),
            _ => Error::io(error),
        })
    }
}

/// An error of kind `Input` for frames of another number of atoms than the topology has.
pub(super) fn check_atoms(atoms: u64, topology: u32) -> Result<()> {
    if atoms == u64::from(topology) {
        return Ok(());
    }
    let message = format!("the trajectory has {atoms} atoms, and the topology has {topology}");
    Err(Error::input(message).fix(
        "give as topology the structure that was written with the trajectory: the same atoms in \
         the same order, with water, ligands and hydrogens if the trajectory has them",
    ))
}

/// The error of a file that ends within `part`.
pub(super) fn cut_short_error(part: &str, offset: u64, bytes: u64) -> Error {
    let message = format!("{part} at byte {offset} is cut short: the file ends at byte {bytes}");
    Error::input(message).fix("copy or write the trajectory again; the frames before are read")
}

/// The error of a file in which `part` does not have the form that the format requires.
pub(super) fn damaged_error(part: &str, offset: u64, defect: &str) -> Error {
    let message = format!("the trajectory is damaged: {part} at byte {offset} {defect}");
    Error::input(message).fix("copy or write the trajectory again")
}
