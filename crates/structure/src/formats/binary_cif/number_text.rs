//! Numbers as text.

use std::fmt::Write;
use std::ops::Deref;

/// The text of a value.
pub(super) enum CellText<'a> {
    Borrowed(&'a [u8]),
    Number(NumberText),
}

impl Deref for CellText<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            CellText::Borrowed(text) => text,
            CellText::Number(number) => number.text(),
        }
    }
}

/// The text of a number: for floats the shortest that is read as the same float.
pub(super) struct NumberText {
    bytes: [u8; 32],
    start: usize,
    end: usize,
}

impl NumberText {
    pub(super) const fn new() -> Self {
        NumberText {
            bytes: [0; 32],
            start: 0,
            end: 0,
        }
    }

    fn text(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Writes `digits` divided by 10^`places`, without zeros at the end.
    pub(super) fn set_decimal(&mut self, digits: i32, places: u8) -> &[u8] {
        let (mut rest, mut places) = (digits.unsigned_abs(), usize::from(places));
        while places > 0 && rest.is_multiple_of(10) {
            (rest, places) = (rest / 10, places - 1);
        }
        // From the last digit to the first.
        let mut start = self.bytes.len();
        let mut count = 0;
        while count <= places || rest > 0 {
            if count == places && places > 0 {
                start -= 1;
                self.bytes[start] = b'.';
            }
            start -= 1;
            self.bytes[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            count += 1;
        }
        if digits < 0 {
            start -= 1;
            self.bytes[start] = b'-';
        }
        (self.start, self.end) = (start, self.bytes.len());
        self.text()
    }

    /// Writes the shortest text that gives the same 32-bit float.
    pub(super) fn set_single(&mut self, value: f32) -> &[u8] {
        (self.start, self.end) = (0, 0);
        // The text has room for both forms, so writing does not fail.
        let _ = if is_plain(f64::from(value)) {
            write!(self, "{value}")
        } else {
            write!(self, "{value:e}")
        };
        self.text()
    }

    /// Writes the shortest text that gives the same 64-bit float.
    pub(super) fn set_double(&mut self, value: f64) -> &[u8] {
        (self.start, self.end) = (0, 0);
        let _ = if is_plain(value) {
            write!(self, "{value}")
        } else {
            write!(self, "{value:e}")
        };
        self.text()
    }
}

/// Whether a number is written without an exponent. Within these bounds, as with an exponent, its
/// text has 24 bytes at most.
fn is_plain(value: f64) -> bool {
    value == 0.0 || (1e-5..1e15).contains(&value.abs())
}

impl Write for NumberText {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.end + text.len();
        let room = self.bytes.get_mut(self.end..end).ok_or(std::fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.end = end;
        Ok(())
    }
}
