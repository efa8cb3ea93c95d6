//! Writes files atomically: never through a link, and complete or not at all.

use crate::paths::shown;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use tapeloop_error::{self as error, Context, Error, Result};

/// What becomes of a file that exists and is opened for writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Opening fails.
    Refused,
    /// It loses its contents.
    Emptied,
    /// What is written comes after its contents.
    Appended,
    /// It keeps its contents; writing starts at its beginning.
    Kept,
}

/// Opens a file for writing, and creates it if it does not exist. All files that the program writes are
/// opened here.
///
/// # Errors
/// [`ErrorKind::Usage`](error::ErrorKind::Usage): a link, a FIFO, a device or a folder has the name.
/// [`ErrorKind::Io`](error::ErrorKind::Io): the file cannot be opened.
pub fn open_to_write(path: &Path, existing: Existing) -> Result<File> {
    let place = || shown(path);
    if existing != Existing::Refused {
        check_name(path)?;
    }
    // Nothing may take the name in between: no link is followed, and a FIFO does not wait.
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    }
    match existing {
        Existing::Refused => options.write(true).create_new(true),
        Existing::Emptied => options.write(true).create(true).truncate(true),
        Existing::Appended => options.append(true).create(true),
        Existing::Kept => options.write(true).create(true).truncate(false),
    };
    let file = options.open(path).within(place)?;
    check_kind(&file.metadata().within(place)?).within(place)?;
    Ok(file)
}

/// A file under a temporary name in its final folder. Dropping it before [`Temporary::rename`]
/// removes it.
#[derive(Debug)]
pub struct Temporary {
    path: PathBuf,
    is_renamed: bool,
}

impl Temporary {
    /// Creates a file next to `path`, under the first name `.tapeloop-N.tmp` that is free.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tapeloop_error::ErrorKind::Io): the file cannot be created.
    pub fn unused(path: &Path) -> Result<(Self, File)> {
        let mut number = 0u32;
        loop {
            match Self::create(path.with_file_name(format!(".tapeloop-{number}.tmp"))) {
                Err(error) if error.io_kind() == Some(ErrorKind::AlreadyExists) => number += 1,
                made => return made,
            }
        }
    }

    /// Creates the file [`temporary_name`], which a later run finds after a kill. For output
    /// folders, which a run has locked and cleared.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tapeloop_error::ErrorKind::Io): a file has the name already, or the file cannot be
    /// created.
    pub fn fixed(path: &Path) -> Result<(Self, File)> {
        let temporary = temporary_name(path);
        let is_there = |error: &Error| error.io_kind() == Some(ErrorKind::AlreadyExists);
        Self::create(temporary.clone()).map_err(|error| match error {
            error if is_there(&error) => Error::new(
                error::ErrorKind::Io,
                "a file has the temporary name of this result",
            )
            .fix("remove it, if no other run writes here")
            .within(shown(&temporary)),
            error => error,
        })
    }

    fn create(path: PathBuf) -> Result<(Self, File)> {
        let file = open_to_write(&path, Existing::Refused)?;
        let is_renamed = false;
        Ok((Temporary { path, is_renamed }, file))
    }

    /// The temporary path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `bytes`, flushes them to the disk and renames the file to `path`.
    fn write(self, mut file: File, bytes: &[u8], path: &Path) -> io::Result<()> {
        file.write_all(bytes)?;
        file.sync_all()?;
        self.rename(path)
    }

    /// Renames the file to its final name, and replaces the file that had the name.
    ///
    /// # Errors
    /// Fails if the file cannot be renamed.
    pub fn rename(mut self, path: &Path) -> io::Result<()> {
        fs::rename(&self.path, path)?;
        self.is_renamed = true;
        sync_parent(path);
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After a rename the temporary name may belong to another program's file.
        if !self.is_renamed {
            // A file that stays is in the way of nothing: `unused` takes another name, and a run clears its folder.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The temporary name of a result, which depends on `path` alone.
pub fn temporary_name(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".tmp");
    path.with_file_name(name)
}

/// Writes a file under a temporary name, flushes it to the disk and renames it.
///
/// # Errors
/// [`ErrorKind::Usage`](tapeloop_error::ErrorKind::Usage): a link, a FIFO, a device or a folder has the name.
/// [`ErrorKind::Io`](tapeloop_error::ErrorKind::Io): the file cannot be written.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    check_name(path)?;
    let (temporary, file) = Temporary::unused(path)?;
    temporary.write(file, bytes, path).within(|| shown(path))
}

/// [`replace`] for a result in an output folder.
///
/// # Errors
/// [`ErrorKind::Io`](tapeloop_error::ErrorKind::Io): a file has the temporary name already, or the file cannot be
/// written.
pub fn replace_result(path: &Path, bytes: &[u8]) -> Result<()> {
    let (temporary, file) = Temporary::fixed(path)?;
    let written = temporary.write(file, bytes, path);
    written.within(|| shown(path))
}

/// Flushes the folder of a renamed file.
fn sync_parent(path: &Path) {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    sync_folder(folder.unwrap_or(Path::new(".")));
}

/// Flushes the names of the files in a folder, so that they survive a power failure. Some file
/// systems refuse to flush a folder, and need not.
pub fn sync_folder(folder: &Path) {
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}

/// Checks that `path` is a file or does not exist.
///
/// # Errors
/// [`ErrorKind::Usage`](tapeloop_error::ErrorKind::Usage): a link, a FIFO, a device or a folder has the name.
/// [`ErrorKind::Io`](tapeloop_error::ErrorKind::Io): the path cannot be looked up.
pub fn check_name(path: &Path) -> Result<()> {
    let place = || shown(path);
    let checked = match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Ok(meta) => check_kind(&meta),
        Err(error) => Err(Error::io(error)),
    };
    checked.within(place)
}

/// An error of kind `Usage` for what is no regular file: writing to it would destroy or feed something else.
fn check_kind(found: &fs::Metadata) -> Result<()> {
    if found.is_file() {
        return Ok(());
    }
    let kind = kind_of(found.file_type());
    let error = Error::usage(format!(
        "this path is {kind}, so no file can be written here"
    ));
    Err(error.fix("remove it, or name another output"))
}

/// The type of a file, with its article, for a message.
pub fn kind_of(file: fs::FileType) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if file.is_fifo() {
            return "a FIFO";
        } else if file.is_socket() {
            return "a socket";
        } else if file.is_block_device() || file.is_char_device() {
            return "a device";
        }
    }
    if file.is_dir() {
        "a folder"
    } else if file.is_symlink() {
        "a link"
    } else {
        "a file"
    }
}

/// The identity of a file. All names of the file and all links to it have the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileId(#[cfg(unix)] (u64, u64), #[cfg(not(unix))] PathBuf);

impl FileId {
    /// The file that `path` leads to, if it exists.
    pub fn from_path(path: &Path) -> Option<Self> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let meta = path.metadata().ok()?;
            Some(FileId((meta.dev(), meta.ino())))
        }
        #[cfg(not(unix))]
        path.canonicalize().ok().map(FileId)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    #[test]
    fn links_and_fifos_are_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("precious"), "precious").unwrap();
        for name in ["out", ".tapeloop-0.tmp", ".out.tmp"] {
            symlink(path("precious"), path(name)).unwrap();
        }
        let fifo = Command::new("mkfifo").arg(path("fifo")).status();
        assert!(fifo.unwrap().success());
        let all = [
            Existing::Refused,
            Existing::Emptied,
            Existing::Appended,
            Existing::Kept,
        ];
        for name in ["out", "fifo"] {
            replace(&path(name), b"result").unwrap_err();
            for existing in all {
                open_to_write(&path(name), existing).unwrap_err();
            }
        }
        replace(&path("new"), b"result").unwrap();
        assert_eq!(fs::read(path("new")).unwrap(), b"result");
        assert_eq!(fs::read(path("precious")).unwrap(), b"precious");
        for name in [".tapeloop-0.tmp", ".out.tmp"] {
            assert!(
                path(name).symlink_metadata().unwrap().is_symlink(),
                "{name}"
            );
        }
        assert!(!path(".tapeloop-1.tmp").exists());
    }

    #[test]
    fn a_name_of_255_bytes_is_written_and_a_longer_one_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let longest = folder.path().join("x".repeat(255));
        replace(&longest, b"result").unwrap();
        assert_eq!(fs::read(&longest).unwrap(), b"result");
        replace(&folder.path().join("x".repeat(256)), b"result").unwrap_err();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_temporary_file_is_removed_unless_it_was_renamed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let (first, _) = Temporary::unused(&path("out")).unwrap();
        let (second, _) = Temporary::unused(&path("out")).unwrap();
        assert_eq!(first.path(), path(".tapeloop-0.tmp"));
        assert_eq!(second.path(), path(".tapeloop-1.tmp"));
        drop(first);
        second.rename(&path("out")).unwrap();
        let left = fs::read_dir(folder.path()).unwrap();
        let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["out"]);
    }

    #[test]
    fn a_file_with_the_temporary_name_of_a_result_stays_and_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path(".run.json.tmp"), "mine").unwrap();
        let error = replace_result(&path("run.json"), b"{}").unwrap_err();
        let said = error.to_string();
        assert!(
            said.contains(".run.json.tmp: a file has the temporary name of this result"),
            "{said}"
        );
        assert!(said.contains("fix: remove it"), "{said}");
        assert_eq!(fs::read(path(".run.json.tmp")).unwrap(), b"mine");
        fs::remove_file(path(".run.json.tmp")).unwrap();
        replace_result(&path("run.json"), b"{}").unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn names_of_links_and_folders_are_refused_and_free_names_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("file"), "").unwrap();
        symlink(path("file"), path("link")).unwrap();
        symlink(path("nothing"), path("dangling")).unwrap();
        check_name(&path("file")).unwrap();
        check_name(&path("free")).unwrap();
        let what = |name: &str| check_name(&path(name)).unwrap_err().message().to_owned();
        assert!(what("link").contains("a link"));
        assert!(what("dangling").contains("a link"));
        assert!(
            check_name(folder.path())
                .unwrap_err()
                .message()
                .contains("a folder")
        );
        assert_eq!(
            FileId::from_path(&path("file")),
            FileId::from_path(&path("link"))
        );
        assert_ne!(
            FileId::from_path(&path("file")),
            FileId::from_path(folder.path())
        );
    }
}
