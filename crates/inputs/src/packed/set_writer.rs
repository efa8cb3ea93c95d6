//! Appends structures to a packed set.

use super::file::PackedFile;
use super::file_writer::{CompleteFile, PackedFileWriter};
use super::folder::{check_complete, number_of, path_of};
use super::rows::check_size;
use super::settings::SetSettings;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use tapeloop_error::internal::excerpt;
use tapeloop_error::{Context, Error, Result};
use tapeloop_files::{LOCK, lock};
use tapeloop_files::{path_of as as_path, shown};
use tapeloop_structure::{Input, Structure};

/// A file ends at the first input boundary after this many rows, so that its footer stays small: some 2 MB.
const FILE_ROWS: usize = 65_536;

/// A set that inputs are appended to. Its new files get their names together in
/// [`SetWriter::finish`]; a set that is dropped before stays as it was.
pub struct SetWriter {
    folder: PathBuf,
    settings: SetSettings,
    /// The names of the annotations.
    channels: Vec<String>,
    /// The number of the next file.
    next: u32,
    complete: Vec<CompleteFile>,
    open: Option<PackedFileWriter>,
    // Held until the set is dropped.
    _lock: File,
}

impl SetWriter {
    /// Opens the set at `folder`, which is made if it does not exist.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](tapeloop_error::ErrorKind::Config): the set has other settings.
    /// [`ErrorKind::Usage`](tapeloop_error::ErrorKind::Usage): the folder holds something else, or another
    /// program writes to it. [`ErrorKind::Input`](tapeloop_error::ErrorKind::Input): a file of the set is
    /// missing or damaged. [`ErrorKind::Io`](tapeloop_error::ErrorKind::Io): it cannot be made or read.
    pub fn open(folder: &Path, settings: SetSettings) -> Result<Self> {
        let place = || shown(folder);
        fs::create_dir_all(folder).within(place)?;
        // A folder that holds something else gets no lock file.
        numbers_in(folder).within(place)?;
        let lock = lock(&folder.join(LOCK)).within(place)?;
        // Another process may have appended files before this one had the lock.
        let numbers = numbers_in(folder).within(place)?;
        remove_temporaries(folder).within(place)?;
        check_complete(folder).within(place)?;
        for &number in &numbers {
            let path = path_of(folder, number);
            let file = PackedFile::open(&path).within(|| shown(&path))?;
            settings
                .check_append(file.settings())
                .within(|| shown(&path))?;
        }
        Ok(SetWriter {
            folder: folder.to_owned(),
            channels: settings.channels(),
            settings,
            next: numbers.last().map_or(0, |last| last + 1),
            complete: Vec::new(),
            open: None,
            _lock: lock,
        })
    }

    /// Adds an input: its models in their order, or its error. Models that are too large together
    /// become an error, and so do those of which one is refused: a set has one error for an input.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tapeloop_error::ErrorKind::Io): a file cannot be written.
    /// [`ErrorKind::Config`](tapeloop_error::ErrorKind::Config): a structure has other annotations than the set.
    pub fn add(&mut self, models: &mut Vec<Input>) -> Result<()> {
        self.check_channels(models)?;
        let structures = models.iter().map(|model| model.structure.as_deref());
        let structures: Result<Vec<&Structure>, &Error> = structures.collect();
        let checked = structures.map_err(Error::clone).and_then(check_size);
        if let Err(error) = checked {
            models.truncate(1);
            models[0].structure = Err(error);
        }
        // A full file is ended only when another input arrives: its footer states whether a file follows.
        if self
            .open
            .as_ref()
            .is_some_and(|file| file.rows() >= FILE_ROWS)
        {
            self.end_file(true)?;
        }
        let file = match &mut self.open {
            Some(file) => file,
            open => {
                let path = path_of(&self.folder, self.next);
                self.next += 1;
                let place = shown(&path);
                let file = PackedFileWriter::create(path, &self.settings).within(|| place)?;
                open.insert(file)
            }
        };
        file.add(models).within(|| shown(&self.folder))
    }

    /// An error of kind `Config` for structures with annotations that the set does not have, such as those of a
    /// set that a piped list names. Structures without any are those that no row of the annotations is for.
    fn check_channels(&self, models: &[Input]) -> Result<()> {
        for Input {
            source, structure, ..
        } in models
        {
            let channels = structure.iter().flat_map(|structure| &structure.channels);
            let names: Vec<&String> = channels.map(|channel| &channel.name).collect();
            if !names.is_empty() && !names.iter().copied().eq(&self.channels) {
                let message = format!(
                    "its annotations are {names:?}, and those of the set {:?}",
                    self.channels
                );
                let error = Error::config(excerpt(message));
                let error =
                    error.fix("name the packed set that it is in, and pack no other into this set");
                return Err(error.within(shown(&as_path(source))));
            }
        }
        Ok(())
    }

    /// Completes the open file, if there is one, under its temporary name.
    fn end_file(&mut self, is_followed: bool) -> Result<()> {
        if let Some(file) = self.open.take() {
            let complete = file.finish(is_followed).within(|| shown(&self.folder))?;
            self.complete.push(complete);
        }
        Ok(())
    }

    /// Completes the files and gives them their names.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tapeloop_error::ErrorKind::Io): a file cannot be written or renamed.
    /// [`ErrorKind::Usage`](tapeloop_error::ErrorKind::Usage): another process has made a file of its name.
    pub fn finish(mut self) -> Result<()> {
        self.end_file(false)?;
        // In order, so that a kill in between leaves a set whose last file says that another is missing.
        for file in self.complete {
            let place = shown(file.path());
            file.publish().within(|| place)?;
        }
        Ok(())
    }
}

/// Removes the files that a killed process left in the folder of a set, which is locked.
fn remove_temporaries(folder: &Path) -> Result<()> {
    for entry in folder.read_dir()? {
        let name = entry?.file_name();
        if temporary_number(&name.to_string_lossy()).is_some() {
            fs::remove_file(folder.join(name))?;
        }
    }
    Ok(())
}

/// The number of the file of a set whose temporary name this is.
fn temporary_number(name: &str) -> Option<u32> {
    number_of(name.strip_prefix('.')?.strip_suffix(".tmp")?)
}

/// The numbers of the files of a set, in order.
///
/// # Errors
/// Of kind `Io`: the folder cannot be read. `Usage`: it holds something else.
fn numbers_in(folder: &Path) -> Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in folder.read_dir()? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        let is_own = name == LOCK || temporary_number(&name).is_some();
        match number_of(&name) {
            Some(number) => numbers.push(number),
            None if is_own => {}
            None => {
                let message =
                    format!("the folder holds {name}, which is not a file of a packed set");
                return Err(Error::usage(message).fix("name another folder for the set"));
            }
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
}
