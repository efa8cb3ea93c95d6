//! Makes text from files and names safe to print.

use std::borrow::Cow;
use std::fmt::Write;

/// Characters of an excerpt: a line of a terminal.
const EXCERPT_CHARS_MAX: usize = 80;

/// Bytes of a message, of a fix, and of each place of an error, so that a text of a file or a compiler cannot fill
/// memory or a log. Compilers write the longest ones.
const MESSAGE_BYTES_MAX: usize = 16_384;

/// An excerpt of a file for a message: the first 80 characters of [`printable`] text, followed by
/// `...` if there are more.
pub fn excerpt(text: impl AsRef<[u8]>) -> String {
    let text = text.as_ref();
    // A character has at most 4 bytes, and one more shows that there is more.
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

/// Text of several lines for the terminal: as [`printable`], but line breaks and tabs stay. Escapes are
/// those of JSON and TOML, `\u001b`, so that a document in one of the two keeps its meaning.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    let is_unsafe = |char| is_unsafe(char) && !matches!(char, '\n' | '\t');
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        if is_unsafe(char) {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "\\u{:04x}", u32::from(char));
        } else {
            escaped.push(char)
        }
    }
    Cow::Owned(escaped)
}

/// The text of an error: [`printable_lines`], of which a long text loses its end.
pub(crate) fn message(text: String) -> String {
    let text = cut(text, MESSAGE_BYTES_MAX);
    match printable_lines(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(escaped) => escaped,
    }
}

/// Of a text of more than `bytes_max` bytes the start, followed by `...`.
pub fn cut(mut text: String, bytes_max: usize) -> String {
    if text.len() > bytes_max {
        let is_boundary = |&end: &usize| text.is_char_boundary(end);
        let end = (0..=bytes_max).rev().find(is_boundary).unwrap_or(0);
        text.truncate(end);
        text.push_str("...");
    }
    text
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
    fn lines_stay_and_documents_keep_their_meaning() {
        assert!(matches!(printable_lines("a\tb\n\u{e4}"), Cow::Borrowed(_)));
        let name = "\u{9b}31m\u{202e}\u{7f}\r";
        let json = printable_lines("[\"\u{9b}31m\u{202e}\u{7f}\\r\"]\n");
        assert_eq!(json, "[\"\\u009b31m\\u202e\\u007f\\r\"]\n");
        assert_eq!(printable_lines(name), r"\u009b31m\u202e\u007f\u000d");
    }

    #[test]
    fn an_error_has_no_control_characters_and_a_length() {
        let hostile = format!("\x1b[2J\u{202e}\n{}", "\u{e4}".repeat(20_000));
        let error = crate::Error::config(hostile.clone()).fix(hostile.clone());
        let error = error.within(hostile);
        let shown = error.to_string();
        assert!(shown.starts_with("\\u001b[2J\\u202e\n"), "{shown:.20}");
        assert!(!shown.contains(['\x1b', '\u{202e}']));
        assert!(shown.len() < 3 * MESSAGE_BYTES_MAX + 100, "{}", shown.len());
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
