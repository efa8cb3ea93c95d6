//! Files that the program writes: never through a link, and whole or not at all.

use super::names::shown;
use crate::error::{Context, Error, Result};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The hidden name that a file has until it is whole.
pub(super) fn temporary_name(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".tmp");
    path.with_file_name(name)
}

/// Makes a new file. A file, link or FIFO of this name is removed, and what a link leads to
/// stays as it is.
pub(super) fn create(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Writes a file under its temporary name and renames it once it is on the disk.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = temporary_name(path);
    let written = create(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    });
    if written.is_err() {
        // The error says what is wrong; half a file is of no use.
        let _ = fs::remove_file(&temporary);
    }
    written?;
    sync_parent(path);
    Ok(())
}

/// Flushes the folder of a file that got its name.
pub(super) fn sync_parent(path: &Path) {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    sync_folder(folder.unwrap_or(Path::new(".")));
}

/// Flushes the names of the files in a folder: without that, they are not safe from a power
/// failure. Some file systems refuse to flush a folder, and have nothing to flush.
pub(super) fn sync_folder(folder: &Path) {
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}

/// Refuses an output name that a link, a FIFO, a device or a folder has.
///
/// # Errors
/// What has the name.
pub(super) fn check_name(path: &Path) -> Result<()> {
    let place = || shown(path);
    let kind = match path.symlink_metadata() {
        Ok(meta) if meta.is_file() => return Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Ok(meta) => kind_of(meta.file_type()),
        Err(error) => return Err(Error::io(error)).within(place),
    };
    let error = Error::usage(format!("this is {kind}, and a file is to be written here"));
    Err(error
        .fix("remove it, or name another output")
        .within(place()))
}

/// What a file is, for a message.
pub(super) fn kind_of(file: fs::FileType) -> &'static str {
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

/// A file by itself, whatever its names and the links to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileId(#[cfg(unix)] (u64, u64), #[cfg(not(unix))] PathBuf);

impl FileId {
    /// The file that the path leads to, if there is one.
    pub(super) fn of(path: &Path) -> Option<Self> {
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

    #[test]
    fn a_file_replaces_a_link_and_leaves_its_target_alone() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("precious"), "precious").unwrap();
        for name in ["out", ".out.tmp", "new"] {
            symlink(at("precious"), at(name)).unwrap();
        }
        replace(&at("out"), b"result").unwrap();
        create(&at("new")).unwrap();
        assert_eq!(fs::read(at("precious")).unwrap(), b"precious");
        assert_eq!(fs::read(at("out")).unwrap(), b"result");
        assert!(!at("out").symlink_metadata().unwrap().is_symlink());
        assert!(!at(".out.tmp").exists());
    }

    #[test]
    fn names_of_links_and_folders_are_refused_and_free_names_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "").unwrap();
        symlink(at("file"), at("link")).unwrap();
        symlink(at("nothing"), at("dangling")).unwrap();
        check_name(&at("file")).unwrap();
        check_name(&at("free")).unwrap();
        let what = |name: &str| check_name(&at(name)).unwrap_err().message().to_owned();
        assert!(what("link").starts_with("this is a link,"));
        assert!(what("dangling").starts_with("this is a link,"));
        assert!(
            check_name(folder.path())
                .unwrap_err()
                .message()
                .starts_with("this is a folder,")
        );
        assert_eq!(FileId::of(&at("file")), FileId::of(&at("link")));
        assert_ne!(FileId::of(&at("file")), FileId::of(folder.path()));
    }
}
