//! A cache of compiled kernels in a folder. A file that cannot be read is compiled again, and one
//! that cannot be written is skipped.
//!
//! The code in the folder runs on the device. So the folder and its files must belong to the user
//! of the process, and no other user may be able to write to them.

use sha2::{Digest, Sha256};
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The variable that names the folder, in preference to the XDG cache folder.
pub(super) const DIR_VARIABLE: &str = "TAPELOOP_CACHE_DIR";

/// Each file starts with a digest of its content, which detects damage.
const DIGEST_BYTES: usize = 32;

/// The folder; `None` if there is none.
pub(super) struct Cache {
    dir: Option<PathBuf>,
    /// Whether the folder exists and is safe. Checked at the first use.
    is_safe: OnceLock<bool>,
}

impl Cache {
    /// The cache in `dir`, or in the folder that the environment names.
    pub(super) fn new(dir: Option<&Path>) -> Cache {
        let dir = dir.map(Path::to_owned).or_else(|| {
            let variables = [
                (DIR_VARIABLE, ""),
                ("XDG_CACHE_HOME", "tapeloop"),
                ("HOME", ".cache/tapeloop"),
            ];
            variables.iter().find_map(|(name, below)| {
                let dir = PathBuf::from(std::env::var_os(name)?);
                absolute(name, dir).map(|dir| dir.join(below))
            })
        });
        Cache {
            dir,
            is_safe: OnceLock::new(),
        }
    }

    pub(super) fn dir(&self) -> Option<&Path> {
        self.dir.as_deref()
    }

    /// The folder, if it is safe to use. Warns once if it is not.
    fn safe_dir(&self) -> Option<&Path> {
        let dir = self.dir()?;
        let is_safe = self.is_safe.get_or_init(|| {
            let made = make_safe(dir);
            if let Err(error) = &made {
                tracing::warn!(%error, dir = %dir.display(), "the kernel cache is not used");
            }
            made.is_ok()
        });
        is_safe.then_some(dir)
    }

    /// A key from all of `parts`.
    pub(super) fn key<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
        let mut hasher = Sha256::new();
        for part in parts {
            // The length, so that no other cut of the same text gives the same key.
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        let digest = hasher.finalize();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The content under `key`, if the file is complete and safe.
    pub(super) fn get(&self, key: &str) -> Option<Vec<u8>> {
        let path = self.safe_dir()?.join(key);
        let mut file = match read(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(
                    %error,
                    file = %path.display(),
                    "a file of the kernel cache cannot be used; the kernel is compiled again"
                );
                return None;
            }
        };
        let (digest, content) = file.split_at_checked(DIGEST_BYTES)?;
        if Sha256::digest(content)[..] != *digest {
            tracing::warn!(
                key,
                "a file of the kernel cache is damaged; the kernel is compiled again"
            );
            return None;
        }
        file.drain(..DIGEST_BYTES);
        Some(file)
    }

    /// Stores `content` under `key` atomically, as other processes may read it.
    pub(super) fn put(&self, key: &str, content: &[u8]) {
        if let Some(dir) = self.safe_dir()
            && let Err(error) = write(dir, key, content)
        {
            tracing::debug!(%error, dir = %dir.display(), "the kernel cache cannot be written");
        }
    }

    /// Tries to write a file.
    pub(super) fn probe(&self) -> io::Result<()> {
        let dir = self.dir.as_ref().ok_or(io::ErrorKind::NotFound)?;
        make_safe(dir)?;
        write(dir, "probe", b"")?;
        std::fs::remove_file(dir.join("probe"))
    }
}

/// The folder that an environment variable names. A relative path is ignored, as the XDG base
/// directory specification demands: it would depend on the current folder.
fn absolute(variable: &str, dir: PathBuf) -> Option<PathBuf> {
    if !dir.is_absolute() && !dir.as_os_str().is_empty() {
        let dir = dir.display();
        tracing::warn!(%dir, "{variable} is not an absolute path, and is ignored");
    }
    dir.is_absolute().then_some(dir)
}

/// Creates the folder if it is missing, accessible to its user only.
///
/// # Errors
/// A folder that cannot be made, or that another user may write to.
fn make_safe(dir: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)?;
    check_rights(&std::fs::metadata(dir)?)
}

/// Bytes that no file of the cache has: kernels for one device take some megabytes.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Reads a file that only this user may have written. Refuses, as [`io::ErrorKind::Other`], what is
/// no file of that kind or too large.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    check_rights(&found)?;
    let mut content = Vec::new();
    let read = (&file).take(FILE_BYTES_MAX).read_to_end(&mut content)?;
    if read as u64 == FILE_BYTES_MAX {
        return Err(io::Error::other("it is too large"));
    }
    Ok(content)
}

/// Checks that only this user may write to the file or folder.
///
/// # Errors
/// It belongs to another user than that of this process, or others may write to it.
#[cfg(target_os = "linux")]
fn check_rights(found: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let user = rustix::process::geteuid().as_raw();
    let refuse = |text: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    if found.uid() != user {
        let owner = found.uid();
        return refuse(format!(
            "it belongs to user {owner}, and not to user {user}"
        ));
    }
    let mode = found.mode() & 0o7777;
    match mode & 0o022 {
        0 => Ok(()),
        _ => refuse(format!(
            "others may write to it (mode {mode:o}): chmod go-w it"
        )),
    }
}

#[cfg(not(target_os = "linux"))]
fn check_rights(_: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Writes a file in a folder that is safe.
fn write(dir: &Path, key: &str, content: &[u8]) -> io::Result<()> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let temporary = dir.join(format!("{key}.{process}.{count}"));
    // Not synced to the disk: if a crash cuts the file off, its digest shows that.
    let content = [&Sha256::digest(content)[..], content].concat();
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options
        .open(&temporary)
        .and_then(|mut file| file.write_all(&content))
        .and_then(|()| std::fs::rename(&temporary, dir.join(key)));
    if written.is_err() {
        // The file may not exist.
        std::fs::remove_file(&temporary).ok();
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_comes_back_and_broken_content_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::new(Some(&dir.path().join("below")));
        let key = Cache::key(["a", "b"]);
        assert_ne!(key, Cache::key(["ab", ""]));
        assert_eq!(cache.get(&key), None);
        cache.put(&key, b"code");
        assert_eq!(cache.get(&key).as_deref(), Some(b"code".as_slice()));
        let path = cache.dir().unwrap().join(&key);
        for broken in [b"".as_slice(), b"short", &[7; 40]] {
            std::fs::write(&path, broken).unwrap();
            assert_eq!(cache.get(&key), None);
        }
        cache.put(&key, b"code");
        assert_eq!(cache.get(&key).as_deref(), Some(b"code".as_slice()));
        let files = std::fs::read_dir(cache.dir().unwrap()).unwrap().count();
        assert_eq!(files, 1, "no temporary file stays");
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_only_a_miss() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let cache = Cache::new(Some(&file.path().join("below")));
        cache.put("key", b"code");
        assert_eq!(cache.get("key"), None);
        assert!(cache.probe().is_err());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_another_user_may_have_written_is_not_used() {
        use std::fs::{Permissions, set_permissions};
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let set = |path: &Path, mode| set_permissions(path, Permissions::from_mode(mode)).unwrap();
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("below");
        // A process checks the folder once.
        let cache = || Cache::new(Some(&dir));
        cache().put("key", b"code");
        assert_eq!((mode(&dir), mode(&dir.join("key"))), (0o700, 0o600));
        for (path, kept) in [(dir.join("key"), 0o600), (dir.clone(), 0o700)] {
            for writable in [0o020, 0o002] {
                set(&path, kept | writable);
                assert_eq!(cache().get("key"), None, "{}", path.display());
            }
            let probed = cache().probe();
            assert_eq!(probed.is_err(), path == dir, "{probed:?}");
            set(&path, kept | 0o044);
            assert_eq!(cache().get("key").as_deref(), Some(b"code".as_slice()));
        }
        // Only root may change the owner of a file, and only other users see root's files as
        // foreign.
        let key = dir.join("key");
        let foreign = match std::os::unix::fs::chown(&key, Some(65_534), None) {
            Ok(()) => key,
            Err(_) => PathBuf::from("/proc/1"),
        };
        let error = check_rights(&std::fs::metadata(foreign).unwrap()).unwrap_err();
        assert!(error.to_string().contains("belongs to user"), "{error}");
    }

    #[test]
    fn a_relative_folder_of_the_environment_is_ignored() {
        assert_eq!(absolute("HOME", PathBuf::from("relative/folder")), None);
        assert_eq!(absolute("HOME", PathBuf::new()), None);
        let dir = std::env::temp_dir();
        assert_eq!(absolute("HOME", dir.clone()), Some(dir));
    }
}
