//! Text files that a config names.

use std::path::Path;
use tapeloop_files::{open_file, text_of};

/// The largest size of a file in bytes.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// The text of a file. The message of an error names it.
pub(super) fn read_text(path: &Path) -> Result<String, String> {
    let read = |file| tapeloop_files::read_text(file, TEXT_BYTES_MAX);
    open_file(path)
        .and_then(read)
        .map_err(|error| format!("{}: {error}", text_of(path)))
}
