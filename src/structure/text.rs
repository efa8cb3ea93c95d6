//! Quotes from a file's text and line numbers, for messages.

use crate::Error;
use crate::error::excerpt;

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
