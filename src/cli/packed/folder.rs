//! A packed set on the disk: `structures-00000.arrow` and so on in a folder.

use super::file::PackedFile;
use super::file_writer::{Complete, PackedFileWriter};
use super::rows::check_size;
use super::settings::SetSettings;
use crate::cli::files::temporary_name;
use crate::cli::output::{LOCK, lock};
use crate::cli::path_text::shown;
use crate::error::{Context, Error, Result};
use crate::features::Input;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// A file ends at the first input boundary after so many rows.
const FILE_ROWS: usize = 65_536;

const PREFIX: &str = "structures-";
const SUFFIX: &str = ".arrow";

/// A set that inputs are appended to. Its new files get their names together in
/// [`SetWriter::finish`]; a set that is dropped before stays as it was.
pub(in crate::cli) struct SetWriter {
    folder: PathBuf,
    settings: SetSettings,
    /// The number of the next file.
    next: u32,
    complete: Vec<Complete>,
    open: Option<PackedFileWriter>,
    // Held until the set is dropped.
    _lock: File,
}

/// The number of the file of a set that has this name.
fn number_of(name: &str) -> Option<u32> {
    let digits = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    let are_digits = digits.len() >= 5 && digits.bytes().all(|byte| byte.is_ascii_digit());
    are_digits.then(|| digits.parse().ok())?
}

fn path_of(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("{PREFIX}{number:05}{SUFFIX}"))
}

/// The packed files at `path`: the file itself, or those of the set in a folder.
///
/// # Errors
/// The folder cannot be read, or has none.
pub(in crate::cli) fn files_in(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.metadata()?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in path.read_dir()? {
        let name = entry?.file_name();
        let has_ending = name.to_string_lossy().ends_with(SUFFIX);
        let path = path.join(&name);
        if has_ending
            && !name.as_encoded_bytes().starts_with(b".")
            && !PackedFile::is_other_table(&path)
        {
            files.push(path);
        }
    }
    files.sort();
    match files.is_empty() {
        true => {
            Err(Error::input("the folder has no packed file").fix("make one with `tapeloop pack`"))
        }
        false => Ok(files),
    }
}

impl SetWriter {
    /// Opens the set at `folder`, which is made if it does not exist.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config): the set has other settings.
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the folder holds something else, or another
    /// program writes to it. [`ErrorKind::Io`](crate::ErrorKind::Io): it cannot be made or read.
    pub(in crate::cli) fn open(folder: &Path, settings: SetSettings) -> Result<Self> {
        let place = || shown(folder);
        fs::create_dir_all(folder).within(place)?;
        let numbers = numbers_in(folder).within(place)?;
        let lock = lock(&folder.join(LOCK)).within(place)?;
        for &number in &numbers {
            let path = path_of(folder, number);
            let file = PackedFile::open(&path).within(|| shown(&path))?;
            settings
                .check_append(file.settings())
                .within(|| shown(&path))?;
        }
        Ok(SetWriter {
            folder: folder.to_owned(),
            settings,
            next: numbers.last().map_or(0, |last| last + 1),
            complete: Vec::new(),
            open: None,
            _lock: lock,
        })
    }

    /// Adds an input: its models in their order, or its error. Models that are too large together
    /// become an error.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(in crate::cli) fn add(&mut self, models: &mut Vec<Input>) -> Result<()> {
        let structures = models
            .iter()
            .filter_map(|model| model.structure.as_ref().ok());
        if let Err(error) = check_size(structures) {
            models.truncate(1);
            models[0].structure = Err(error);
        }
        let file = match &mut self.open {
            Some(file) => file,
            open => {
                let path = path_of(&self.folder, self.next);
                self.next += 1;
                // A killed process leaves the file, and this one holds the lock.
                let _ = fs::remove_file(temporary_name(&path));
                let place = shown(&path);
                let file = PackedFileWriter::create(path, &self.settings).within(|| place)?;
                open.insert(file)
            }
        };
        file.add(models).within(|| shown(&self.folder))?;
        match file.rows() >= FILE_ROWS {
            true => self.end_file(),
            false => Ok(()),
        }
    }

    fn end_file(&mut self) -> Result<()> {
        if let Some(file) = self.open.take() {
            let complete = file.finish().within(|| shown(&self.folder))?;
            self.complete.push(complete);
        }
        Ok(())
    }

    /// Completes the files and gives them their names.
    ///
    /// # Errors
    /// A file cannot be written or renamed.
    pub(in crate::cli) fn finish(mut self) -> Result<()> {
        self.end_file()?;
        for file in self.complete {
            let place = shown(file.path());
            file.publish().within(|| place)?;
        }
        Ok(())
    }
}

/// The numbers of the files of a set, in order.
///
/// # Errors
/// The folder cannot be read, or holds something else.
fn numbers_in(folder: &Path) -> Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in folder.read_dir()? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        let temporary = name
            .strip_prefix('.')
            .and_then(|it| it.strip_suffix(".tmp"));
        let is_own = name == LOCK || temporary.and_then(number_of).is_some();
        match number_of(&name) {
            Some(number) => numbers.push(number),
            None if is_own => {}
            None => {
                let message = format!("the folder holds {name}, which is no file of a packed set");
                return Err(Error::usage(message).fix("name another folder for the set"));
            }
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
}
