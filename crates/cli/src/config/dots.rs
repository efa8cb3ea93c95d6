//! `..` in the paths of a config.

use std::path::Component::{Normal, ParentDir};
use std::path::{Path, PathBuf};

/// Removes `folder/..` from a path: the folder of the config file may add it, and the table's
/// `source` would show it. Where `folder` is a symbolic link, `..` leads elsewhere and stays.
pub(super) fn resolve_dots(path: PathBuf) -> PathBuf {
    let mut resolved = PathBuf::new();
    for component in path.components() {
        let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        let cancels = component == ParentDir
            && matches!(resolved.components().next_back(), Some(Normal(_)))
            && is_folder(&resolved);
        if cancels {
            resolved.pop();
        } else {
            resolved.push(component);
        }
    }
    if resolved.as_os_str().is_empty() {
        resolved.push(".");
    }
    resolved
}
