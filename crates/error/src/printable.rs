//! Makes text from files and names safe to print.

use std::borrow::Cow;
use std::fmt::Write;

/// Characters of an excerpt.
const EXCERPT_CHARS_MAX: usize = 80;

/// An excerpt of a file for a message: the first 80 characters of [`printable`] text, followed by
/// `...` if there are more.
pub fn excerpt(text: impl AsRef<[u8]>) -> String {
    let text = text.as_ref();
    // A character has at most 4 bytes.
    let start = &text[..text.len().min(4 * EXCERPT_CHARS_MAX + 4)];
    let start = printable(start);
    match start.char_indices().nth(EXCERPT_CHARS_MAX) {
        Some((end, _)) => format!("{}...", &start[..end]),
        None => start.into_owned(),
    }
}

/// A name for a message or the terminal: control characters, which a terminal would execute, as
/// escapes, and bytes that are not UTF-8 as `\x..`.
pub fn printable<T: AsRef<[u8]> + ?Sized>(text: &T) -> Cow<'_, str> {
    let bytes = text.as_ref();
    if let Ok(text) = std::str::from_utf8(bytes)
        && !text.contains(is_unsafe)
    {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            if is_unsafe(char) {
                escaped.extend(char.escape_default())
            } else {
                escaped.push(char)
            }
        }
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "\\x{byte:02x}");
        }
    }
    Cow::Owned(escaped)
}

/// Control characters, and those that change the direction of the text around them.
fn is_unsafe(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_and_foreign_bytes_are_escaped_and_all_else_stays() {
        assert!(matches!(
            printable("1abc \u{e4}.cif"),
            Cow::Borrowed("1abc \u{e4}.cif")
        ));
        assert_eq!(
            printable("a\x1b[2Jb\n\u{202e}c"),
            "a\\u{1b}[2Jb\\n\\u{202e}c"
        );
        assert_eq!(printable(b"x\xffy\0"), "x\\xffy\\u{0}");
    }

    #[test]
    fn an_excerpt_has_at_most_80_characters() {
        assert_eq!(excerpt("CA\t"), "CA\\t");
        assert_eq!(excerpt("x".repeat(80)), "x".repeat(80));
        assert_eq!(excerpt("\u{e4}".repeat(81)), "\u{e4}".repeat(80) + "...");
        assert_eq!(excerpt(vec![0xff; 1 << 20]).len(), 83);
        assert_eq!(excerpt("\u{10ffff}".repeat(90)).chars().count(), 83);
    }
}
