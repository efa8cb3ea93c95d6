//! Paths as text, in tables and on the terminal.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use tapeloop_error::internal::printable;

/// The folder from which relative paths start, as text; `None` if it is unknown.
pub fn current_folder() -> Option<String> {
    std::env::current_dir().ok().map(|folder| text_of(&folder))
}

/// The path as text; different paths give different texts. UTF-8 stays as it is. In a path that is
/// not UTF-8, or that contains `\x`, invalid bytes become `\xff` and a backslash `\x5c`.
#[cfg(unix)]
pub fn text_of(path: &Path) -> String {
    use std::fmt::Write;
    use std::os::unix::ffi::OsStrExt;
    let bytes = path.as_os_str().as_bytes();
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains(ESCAPE) => return text.to_owned(),
        _ => {}
    }
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text.push_str(&chunk.valid().replace('\\', r"\x5c"));
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(text, "{ESCAPE}{byte:02x}");
        }
    }
    text
}

/// The inverse of [`text_of`].
#[cfg(unix)]
pub fn path_of(text: &str) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    let mut parts = text.split(ESCAPE);
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let digits = part.get(..2);
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend(&part.as_bytes()[2..]);
            }
            None => {
                bytes.extend(ESCAPE.as_bytes());
                bytes.extend(part.as_bytes());
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// The start of an escaped byte.
#[cfg(unix)]
const ESCAPE: &str = r"\x";

/// The path as text.
#[cfg(not(unix))]
pub fn text_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The inverse of [`text_of`].
#[cfg(not(unix))]
pub fn path_of(text: &str) -> PathBuf {
    PathBuf::from(OsString::from(text))
}

/// The path for a message, with control characters escaped.
pub fn shown(path: &Path) -> String {
    printable(path.as_os_str().as_encoded_bytes()).into_owned()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn paths_and_their_texts_map_one_to_one() {
        let names: [&[u8]; 8] = [
            b"x/1abc.pdb",
            b"a\xff.pdb",
            b"a\xfe.pdb",
            br"a\xff.pdb",
            br"a\x5cxff.pdb",
            b"\\a\xff\\x",
            "\u{e4}\x1b\n".as_bytes(),
            br"a\b",
        ];
        let paths = names.map(|name| Path::new(OsStr::from_bytes(name)));
        let texts = paths.map(text_of);
        assert_eq!(texts[0], "x/1abc.pdb");
        assert_eq!(texts[1], r"a\xff.pdb");
        assert_eq!(texts[7], r"a\b");
        for (path, text) in paths.iter().zip(&texts) {
            assert_eq!(&path_of(text), path);
            assert_eq!(texts.iter().filter(|other| *other == text).count(), 1);
        }
        assert_eq!(path_of(r"a\xg0\x"), Path::new(r"a\xg0\x"));
    }

    #[test]
    fn control_characters_of_a_path_are_escaped() {
        let path = Path::new(OsStr::from_bytes(b"a\x1b[2J\xff"));
        assert_eq!(shown(path), r"a\u{1b}[2J\xff");
    }
}
