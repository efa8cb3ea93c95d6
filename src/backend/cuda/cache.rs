//! A folder of compiled kernels. It only ever saves time: what cannot be read
//! is compiled again, and what cannot be written is left out.

use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Names the folder, before the ones that the desktop's rules give.
pub(super) const DIR_VARIABLE: &str = "TAPELOOP_CACHE_DIR";

/// A digest in front of each file tells whether it is whole.
const DIGEST_BYTES: usize = 32;

/// The folder, if there is one to use.
pub(super) struct Cache {
    dir: Option<PathBuf>,
}

impl Cache {
    /// The cache in `dir`, else where the environment says.
    pub(super) fn new(dir: Option<&Path>) -> Cache {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let within = |dir: &OsStr, below: &str| Path::new(dir).join(below);
        let dir = dir
            .map(Path::to_owned)
            .or_else(|| variable(DIR_VARIABLE).map(PathBuf::from))
            .or_else(|| variable("XDG_CACHE_HOME").map(|dir| within(&dir, "tapeloop")))
            .or_else(|| variable("HOME").map(|dir| within(&dir, ".cache/tapeloop")));
        Cache { dir }
    }

    pub(super) fn dir(&self) -> Option<&Path> {
        self.dir.as_deref()
    }

    /// The name of what depends on all of `parts`.
    pub(super) fn key<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        let digest = hasher.finalize();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// What was put under `key`, if it is there and whole.
    pub(super) fn get(&self, key: &str) -> Option<Vec<u8>> {
        let mut file = std::fs::read(self.dir.as_ref()?.join(key)).ok()?;
        let (digest, content) = file.split_at_checked(DIGEST_BYTES)?;
        if Sha256::digest(content)[..] != *digest {
            tracing::warn!(key, "a file of the kernel cache is broken, and made anew");
            return None;
        }
        file.drain(..DIGEST_BYTES);
        Some(file)
    }

    /// Puts `content` under `key`, in one step for whoever reads meanwhile.
    pub(super) fn put(&self, key: &str, content: &[u8]) {
        if let Some(dir) = &self.dir
            && let Err(error) = write(dir, key, content)
        {
            tracing::debug!(%error, dir = %dir.display(), "the kernel cache cannot be written");
        }
    }

    /// Tries to write a file.
    pub(super) fn probe(&self) -> io::Result<()> {
        let dir = self.dir.as_ref().ok_or(io::ErrorKind::NotFound)?;
        write(dir, "probe", b"")?;
        std::fs::remove_file(dir.join("probe"))
    }
}

fn write(dir: &Path, key: &str, content: &[u8]) -> io::Result<()> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    std::fs::create_dir_all(dir)?;
    let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let temporary = dir.join(format!("{key}.{process}.{count}"));
    let file = [&Sha256::digest(content)[..], content].concat();
    let written =
        std::fs::write(&temporary, file).and_then(|()| std::fs::rename(&temporary, dir.join(key)));
    if written.is_err() {
        // It may not even be there.
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
}
