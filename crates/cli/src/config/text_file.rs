//! Text files that a config names.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use tapeloop_files::text_of;

/// The largest size of a file in bytes.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// The text of a file. The message of an error names it.
pub(super) fn read_text(path: &Path) -> Result<String, String> {
    let file = text_of(path);
    let unreadable = |error: std::io::Error| format!("{file}: {error}");
    // Opening a FIFO would wait for a program that writes to it.
    if !path.metadata().map_err(unreadable)?.is_file() {
        return Err(format!("{file}: it is not a file"));
    }
    let source = File::open(path).map_err(unreadable)?;
    let mut text = String::new();
    let read = source.take(TEXT_BYTES_MAX + 1).read_to_string(&mut text);
    if read.map_err(unreadable)? as u64 > TEXT_BYTES_MAX {
        return Err(format!("{file}: it has over {TEXT_BYTES_MAX} bytes"));
    }
    Ok(text)
}
