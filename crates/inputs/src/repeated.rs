//! Files that several items name, which are read once.

use super::Sources;
use super::recent_set::RecentSet;
use std::path::Path;

/// Files that are remembered, to read none of them twice. Twice as many take up to 300 MB.
const FILES_KEPT: usize = 1 << 22;

/// A set for the files that `items` name; `None` if they cannot name one twice, as a folder, a glob or
/// an archive alone.
pub(super) fn files_to_remember(items: &[String]) -> Option<RecentSet> {
    let may_repeat = items.len() > 1 || items.iter().any(|item| item.starts_with('@'));
    may_repeat.then(|| RecentSet::new(FILES_KEPT))
}

impl Sources {
    /// Inputs so far, of all shards, with those that were skipped because they were named again.
    pub(super) fn named(&self) -> u64 {
        self.found + self.skipped.repeated
    }

    /// Remembers a file, and returns whether it was an input before, with the same chain, and is to be
    /// skipped. Links are not followed: a link and its target are two files.
    pub(super) fn skip_repeated(&mut self, path: &Path) -> bool {
        let Some(files) = &mut self.files else {
            return false;
        };
        // This fails only without a current folder, where no other name leads to the file.
        let file = std::path::absolute(path);
        let file = file.as_deref().unwrap_or(path);
        let is_new = files.insert((file.as_os_str().as_encoded_bytes(), &self.chain));
        if !is_new {
            self.skipped.add_repeated(path);
        }
        !is_new
    }
}
