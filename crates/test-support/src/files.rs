//! Files of the repository.

use std::path::{Path, PathBuf};

/// The path of a file or folder of the repository, such as `samples/1ubi.pdb`.
pub fn repository(relative: &str) -> PathBuf {
    let own_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = own_folder.ancestors().nth(2).unwrap_or(own_folder);
    root.join(relative)
}
