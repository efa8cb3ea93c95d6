//! The tokens of CIF text.
//!
//! Errors are [`ErrorKind::Input`](crate::ErrorKind::Input) with the line.

use std::ops::Range;

use memchr::{memchr, memmem};

use crate::text::{at_line, quoted, without_byte_order_mark};
use crate::{Error, Result};

/// A piece of CIF text. Values come without their delimiters; an unquoted `?` or `.` is the empty
/// value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CifToken<'a> {
    /// A value.
    Value(&'a [u8]),
    /// `_category.item`, underscore included.
    Tag(&'a [u8]),
    /// `loop_`.
    Loop,
    /// `data_name`: the name.
    Data(&'a [u8]),
    /// `save_...`, `global_`, `stop_`.
    Other,
    /// The end of the text.
    End,
}

/// Splits CIF text into tokens.
pub(super) struct Lexer<'a> {
    text: &'a [u8],
    pos: usize,
}

impl<'a> Lexer<'a> {
    /// Starts at the beginning of `text`, after a byte order mark.
    pub(super) fn new(text: &'a [u8]) -> Self {
        let pos = text.len() - without_byte_order_mark(text).len();
        Lexer { text, pos }
    }

    /// Starts at `pos`, which must be between tokens.
    pub(super) fn from_pos(text: &'a [u8], pos: usize) -> Self {
        Lexer { text, pos }
    }

    /// Where the last token ended.
    pub(super) fn pos(&self) -> usize {
        self.pos
    }

    /// Continues at `pos`, which must be between tokens.
    pub(super) fn seek(&mut self, pos: usize) {
        self.pos = pos;
    }

    /// The next token and its position in the text, both without the quotes.
    pub(super) fn next(&mut self) -> Result<(Range<usize>, CifToken<'a>)> {
        self.skip_blank();
        let start = self.pos;
        let rest = &self.text[start..];
        let span = match rest.first() {
            None => return Ok((start..start, CifToken::End)),
            Some(b';') if start == 0 || self.text[start - 1] == b'\n' => {
                self.read_text_field(start)?
            }
            Some(&quote @ (b'\'' | b'"')) => self.read_quoted(start, quote)?,
            Some(_) => {
                let len = rest.iter().position(|&byte| is_blank(byte));
                let len = len.unwrap_or(rest.len());
                self.pos = start + len;
                return Ok((start..self.pos, word(&rest[..len])));
            }
        };
        Ok((span.clone(), CifToken::Value(&self.text[span])))
    }

    /// The tags of the loop whose `loop_` is at `start` and was the last token. The next
    /// token is the first value.
    pub(super) fn tags(&mut self, start: usize) -> Result<Vec<&'a [u8]>> {
        let mut tags = Vec::new();
        loop {
            let end = self.pos;
            let (_, CifToken::Tag(tag)) = self.next()? else {
                self.pos = end;
                break;
            };
            if tags.len() == LOOP_TAGS_MAX {
                return Err(self.too_many_tags(start, tag));
            }
            tags.push(tag);
        }
        if tags.is_empty() {
            return Err(at_line(self.text, start, "a loop has no tags"));
        }
        Ok(tags)
    }

    #[cold]
    fn too_many_tags(&self, start: usize, tag: &[u8]) -> Error {
        let category = quoted(tag.split(|&byte| byte == b'.').next().unwrap_or_default());
        let message = format!("the loop of {category} has more than {LOOP_TAGS_MAX} tags");
        at_line(self.text, start, message)
            .fix("correct the file: no category of the PDBx/mmCIF dictionary has as many items")
    }

    /// Skips blanks and comments.
    pub(super) fn skip_blank(&mut self) {
        while let Some(&byte) = self.text.get(self.pos) {
            if byte == b'#' {
                let len = memchr(b'\n', &self.text[self.pos..]);
                self.pos = len.map_or(self.text.len(), |len| self.pos + len);
            } else if is_blank(byte) {
                self.pos += 1;
            } else {
                break;
            }
        }
    }

    /// Reads a text field: the lines from one that starts with a semicolon to the next one that does.
    fn read_text_field(&mut self, start: usize) -> Result<Range<usize>> {
        let body = start + 1;
        let Some(len) = memmem::find(&self.text[body..], b"\n;") else {
            return Err(self.unterminated_error(start, "text field"));
        };
        self.pos = body + len + 2;
        let end = body + len;
        let carriage = len > 0 && self.text[end - 1] == b'\r';
        Ok(body..end - usize::from(carriage))
    }

    /// Reads a quoted value. A quote ends it only before a blank: `"O5'"` and `'a'b'` are each one
    /// value.
    fn read_quoted(&mut self, start: usize, quote: u8) -> Result<Range<usize>> {
        let body = start + 1;
        for (index, &byte) in self.text.iter().enumerate().skip(body) {
            if byte == quote && self.text.get(index + 1).is_none_or(|&next| is_blank(next)) {
                self.pos = index + 1;
                return Ok(body..index);
            }
            if byte == b'\n' {
                break;
            }
        }
        Err(self.unterminated_error(start, "quoted value"))
    }

    fn unterminated_error(&self, start: usize, token: &str) -> Error {
        let message = format!("the {token} that starts here never ends");
        at_line(self.text, start, message).fix(CUT_SHORT)
    }
}

/// The most tags that a loop may have. The largest categories of the PDBx/mmCIF dictionary have a
/// few hundred items.
const LOOP_TAGS_MAX: usize = 1_000;

/// What to do about a file that ends within a value or a row.
pub(super) const CUT_SHORT: &str = "fetch the file again: it seems to be cut short";

fn is_blank(byte: u8) -> bool {
    byte <= b' '
}

/// The token of a word without quotes.
pub(super) fn word(word: &[u8]) -> CifToken<'_> {
    match word[0] {
        b'_' => CifToken::Tag(word),
        b'?' | b'.' if word.len() == 1 => CifToken::Value(b""),
        b'd' | b'D' if strip_prefix(word, b"data_").is_some() => CifToken::Data(&word[5..]),
        b'l' | b'L' if word.eq_ignore_ascii_case(b"loop_") => CifToken::Loop,
        b's' | b'S'
            if strip_prefix(word, b"save_").is_some() || word.eq_ignore_ascii_case(b"stop_") =>
        {
            CifToken::Other
        }
        b'g' | b'G' if word.eq_ignore_ascii_case(b"global_") => CifToken::Other,
        _ => CifToken::Value(word),
    }
}

/// `text` after `prefix`, which matches in either case.
pub(super) fn strip_prefix<'a>(text: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// Whether `text` contains `word`, in either case.
pub(super) fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len())
        .any(|part| part.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<CifToken<'_>> {
        let mut lexer = Lexer::new(text.as_bytes());
        let mut out = Vec::new();
        loop {
            match lexer.next().unwrap().1 {
                CifToken::End => return out,
                token => out.push(token),
            }
        }
    }

    #[test]
    fn every_token_is_recognised() {
        let text =
            "data_X loop_ _a.b save_y STOP_ ? . 'a b' \"c'\" x#y # z\n;one\n two\n;\nd;e '' ";
        let values: [&[u8]; 8] = [b"", b"", b"a b", b"c'", b"x#y", b"one\n two", b"d;e", b""];
        let mut wanted = vec![
            CifToken::Data(b"X"),
            CifToken::Loop,
            CifToken::Tag(b"_a.b"),
            CifToken::Other,
            CifToken::Other,
        ];
        wanted.extend(values.map(CifToken::Value));
        assert_eq!(tokens(text), wanted);
    }
}
