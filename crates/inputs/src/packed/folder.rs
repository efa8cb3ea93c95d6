//! A packed set on the disk: `structures-00000.arrow` and so on in a folder.

use super::ENDING;
use super::file::PackedFile;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use tapeloop_error::{Error, Result};
use tapeloop_files::shown;

const PREFIX: &str = "structures-";
const SUFFIX: &str = ".arrow";

/// The number of the file of a set that has this name.
pub(super) fn number_of(name: &str) -> Option<u32> {
    let digits = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    // `path_of` writes five digits at least.
    let are_digits = digits.len() >= 5 && digits.bytes().all(|byte| byte.is_ascii_digit());
    are_digits.then(|| digits.parse().ok())?
}

/// The path of the file of a set with this number.
pub(super) fn path_of(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("{PREFIX}{number:05}{SUFFIX}"))
}

/// The packed files at `path`, sorted by name: the file itself, or all packed files in a folder, also those
/// that are not named as files of a set. Opens each candidate to see whether it is one.
///
/// # Errors
/// [`ErrorKind::Io`](tapeloop_error::ErrorKind::Io): the folder cannot be read.
/// [`ErrorKind::Input`](tapeloop_error::ErrorKind::Input): it has no packed file, or a file of the set is missing.
pub fn files_in(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.metadata()?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    check_complete(path)?;
    let mut files = Vec::new();
    for entry in path.read_dir()? {
        let name = entry?.file_name();
        let path = path.join(&name);
        let ending = path.extension().unwrap_or_default();
        // Hidden files are those that `tapeloop pack` has not finished. Other tables of Arrow, such as
        // those of a run, are skipped. A damaged packed file is kept: reading it reports the damage.
        if ending.eq_ignore_ascii_case(ENDING)
            && !name.as_encoded_bytes().starts_with(b".")
            && !path.is_dir()
            && !PackedFile::is_other_table(&path)
        {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        Err(Error::input("the folder has no packed file").fix("make one with `tapeloop pack`"))
    } else {
        Ok(files)
    }
}

/// Checks that no file of the set in a folder is missing.
///
/// # Errors
/// [`ErrorKind::Input`](tapeloop_error::ErrorKind::Input): a file is missing.
/// [`ErrorKind::Io`](tapeloop_error::ErrorKind::Io): the folder cannot be read.
pub fn check_complete(folder: &Path) -> Result<()> {
    let mut names = Vec::new();
    for entry in folder.read_dir()? {
        names.push(entry?.file_name());
    }
    check_names(folder, names.iter().map(OsString::as_os_str))
}

/// Checks that no file of the set in a folder with these `names` is missing: their numbers have no
/// gap, and the last file does not state that another follows. A folder without a set passes.
///
/// # Errors
/// [`ErrorKind::Input`](tapeloop_error::ErrorKind::Input): a file is missing. The message names the first.
pub fn check_names<'a>(folder: &Path, names: impl Iterator<Item = &'a OsStr>) -> Result<()> {
    let numbers = names.filter_map(|name| number_of(name.to_str()?));
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable();
    let gap = (0..)
        .zip(&numbers)
        .find(|(expected, found)| expected != *found);
    let missing = match (gap, numbers.last()) {
        (Some((missing, _)), _) => missing,
        // A file that cannot be read is reported where it is read.
        (None, Some(&last)) => match PackedFile::open(&path_of(folder, last)) {
            Ok(file) if file.is_followed() => last + 1,
            _ => return Ok(()),
        },
        (None, None) => return Ok(()),
    };
    let name = path_of(Path::new(""), missing);
    let message = format!("{} of the packed set is missing", shown(&name));
    let all = shown(&folder.join("*.arrow"));
    Err(Error::input(message).fix(format!(
        "copy the set again, or pack it again if `tapeloop pack` was killed; '{all}' is the files \
         that are there"
    )))
}
