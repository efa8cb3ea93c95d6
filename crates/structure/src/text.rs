//! Quotes from a file's text and where they are, for messages.

use std::fmt;

use crate::Error;
use tapeloop_error::internal::excerpt;

/// The text after the byte order mark of UTF-8, which programs of Windows write.
pub(super) fn without_byte_order_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}

/// Text of the file in quotes.
pub(super) fn quoted(text: &[u8]) -> String {
    format!("\"{}\"", excerpt(text))
}

/// The number, from 1, of the line that holds the byte at `offset`.
fn line_of(text: &[u8], offset: usize) -> usize {
    memchr::memchr_iter(b'\n', &text[..offset.min(text.len())]).count() + 1
}

/// An input error whose message starts with the line that holds the byte at `offset`.
pub(super) fn at_line(text: &[u8], offset: usize, message: impl std::fmt::Display) -> Error {
    Error::input(format!("line {}: {message}", line_of(text, offset)))
}

/// Adds the line that holds the byte at `offset` to an error.
pub(super) fn on_line(text: &[u8], offset: usize, error: Error) -> Error {
    error.within(format!("line {}", line_of(text, offset)))
}

/// A position in a file, for messages.
#[derive(Clone, Copy)]
pub(super) enum FilePlace<'a> {
    /// The line of text that holds the byte at an offset.
    Line(&'a [u8], u32),
    /// A row of an mmCIF category in a binary file, from 0.
    Row(&'static str, u32),
}

impl FilePlace<'_> {
    /// The offset into the text, or the row.
    pub(super) fn start(self) -> u32 {
        match self {
            FilePlace::Line(_, start) | FilePlace::Row(_, start) => start,
        }
    }

    /// An input error whose message starts with this place.
    pub(super) fn error(self, message: impl fmt::Display) -> Error {
        Error::input(format!("{self}: {message}"))
    }

    /// Adds this place to an error.
    pub(super) fn locate(self, error: Error) -> Error {
        error.within(self.to_string())
    }
}

impl fmt::Display for FilePlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilePlace::Line(text, offset) => write!(f, "line {}", line_of(text, *offset as usize)),
            FilePlace::Row(category, row) => {
                write!(f, "row {} of _{category}", u64::from(*row) + 1)
            }
        }
    }
}
