//! CIF syntax: tokens, and the rows of a loop at speed.

use std::ops::Range;

use memchr::{memchr, memmem};

use super::table::{at_line, quoted};
use crate::{Error, Result};

/// A piece of CIF text. Values come without their delimiters; an unquoted `?`
/// or `.` is the empty value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
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

/// Walks over CIF text.
pub(super) struct Lexer<'a> {
    text: &'a [u8],
    pos: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        // A byte order mark is no token.
        let pos = if text.starts_with(b"\xef\xbb\xbf") {
            3
        } else {
            0
        };
        Lexer { text, pos }
    }

    /// Where the last token ended.
    pub(super) fn pos(&self) -> usize {
        self.pos
    }

    /// Goes on from `pos`, which must be between tokens.
    pub(super) fn seek(&mut self, pos: usize) {
        self.pos = pos;
    }

    /// The next token and where it is, without the quotes.
    pub(super) fn next(&mut self) -> Result<(Range<usize>, Token<'a>)> {
        self.skip_blank();
        let start = self.pos;
        let rest = &self.text[start..];
        let span = match rest.first() {
            None => return Ok((start..start, Token::End)),
            Some(b';') if start == 0 || self.text[start - 1] == b'\n' => self.text_field(start)?,
            Some(&quote @ (b'\'' | b'"')) => self.quoted(start, quote)?,
            Some(_) => {
                let len = rest
                    .iter()
                    .position(|&byte| is_blank(byte))
                    .unwrap_or(rest.len());
                self.pos = start + len;
                return Ok((start..self.pos, word(&rest[..len])));
            }
        };
        Ok((span.clone(), Token::Value(&self.text[span])))
    }

    /// The tags of the loop whose `loop_` is at `start` and was the last token. The next
    /// token is the first value.
    pub(super) fn tags(&mut self, start: usize) -> Result<Vec<&'a [u8]>> {
        let mut tags = Vec::new();
        loop {
            let end = self.pos;
            let (_, Token::Tag(tag)) = self.next()? else {
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
        let category = tag.split(|&byte| byte == b'.').next().unwrap_or_default();
        let category = quoted(category);
        let message = format!("the loop of {category} has more than {LOOP_TAGS_MAX} tags");
        let message = at_line(self.text, start, &message);
        message.fix("correct the file: no category of the PDBx/mmCIF dictionary has as many items")
    }

    fn skip_blank(&mut self) {
        while let Some(&byte) = self.text.get(self.pos) {
            if byte == b'#' {
                self.pos = memchr(b'\n', &self.text[self.pos..])
                    .map_or(self.text.len(), |len| self.pos + len);
            } else if is_blank(byte) {
                self.pos += 1;
            } else {
                break;
            }
        }
    }

    /// Lines from one that starts with a semicolon up to the next such.
    fn text_field(&mut self, start: usize) -> Result<Range<usize>> {
        let body = start + 1;
        let Some(len) = memmem::find(&self.text[body..], b"\n;") else {
            return Err(at_line(
                self.text,
                start,
                "the text field that starts here never ends",
            )
            .fix(CUT_SHORT));
        };
        self.pos = body + len + 2;
        let end = body + len;
        let carriage = len > 0 && self.text[end - 1] == b'\r';
        Ok(body..end - usize::from(carriage))
    }

    /// A quote ends a value only before a blank: `"O5'"` and `'a'b'` are whole.
    fn quoted(&mut self, start: usize, quote: u8) -> Result<Range<usize>> {
        let body = start + 1;
        for (at, &byte) in self.text.iter().enumerate().skip(body) {
            if byte == quote && self.text.get(at + 1).is_none_or(|&next| is_blank(next)) {
                self.pos = at + 1;
                return Ok(body..at);
            }
            if byte == b'\n' {
                break;
            }
        }
        Err(at_line(
            self.text,
            start,
            "the quoted value that starts here never ends",
        )
        .fix(CUT_SHORT))
    }
}

/// Tags of a loop at most. The largest categories of the PDBx/mmCIF dictionary have a few
/// hundred items.
const LOOP_TAGS_MAX: usize = 1_000;

const CUT_SHORT: &str = "fetch the file again: it seems to be cut short";

fn is_blank(byte: u8) -> bool {
    byte <= b' '
}

fn word(word: &[u8]) -> Token<'_> {
    match word[0] {
        b'_' => Token::Tag(word),
        b'?' | b'.' if word.len() == 1 => Token::Value(b""),
        b'd' | b'D' if has_prefix(word, b"data_") => Token::Data(&word[5..]),
        b'l' | b'L' if word.eq_ignore_ascii_case(b"loop_") => Token::Loop,
        b's' | b'S' if has_prefix(word, b"save_") || word.eq_ignore_ascii_case(b"stop_") => {
            Token::Other
        }
        b'g' | b'G' if word.eq_ignore_ascii_case(b"global_") => Token::Other,
        _ => Token::Value(word),
    }
}

fn has_prefix(word: &[u8], prefix: &[u8]) -> bool {
    word.get(..prefix.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// What a word may be besides a plain value, by its first byte.
const QUOTE: u8 = 1;
const SYNTAX: u8 = 2;
const KEYWORD: u8 = 4;
static CLASS: [u8; 256] = {
    let mut class = [0; 256];
    class[b'\'' as usize] = QUOTE;
    class[b'"' as usize] = QUOTE;
    class[b'#' as usize] = SYNTAX;
    class[b';' as usize] = SYNTAX;
    class[b'_' as usize] = SYNTAX;
    let letters = b"dDgGlLsS";
    let mut at = 0;
    while at < letters.len() {
        class[letters[at] as usize] = KEYWORD;
        at += 1;
    }
    class
};

/// The rows of a loop: where each value starts and ends.
///
/// Words are found 64 bytes at a time: the blanks of a block become the bits of
/// a mask, and the edges of the mask are the starts and ends of its words. Rows
/// of plain words and of quoted ones without blanks, which is what atom tables
/// are made of, need nothing else; any other row goes through [`Lexer`].
pub(super) struct Rows<'a> {
    text: &'a [u8],
    columns: usize,
    /// Start and end of each value of the row in turn, and an empty range.
    edges: &'a mut Vec<u32>,
    words: Words<'a>,
    /// Where the row before ends, and where the row ends.
    start: usize,
    end: usize,
}

impl<'a> Rows<'a> {
    /// The rows of `columns` values, from `pos` on, which must be between
    /// tokens. `edges` is scratch.
    pub(super) fn new(text: &'a [u8], pos: usize, columns: usize, edges: &'a mut Vec<u32>) -> Self {
        edges.clear();
        edges.resize(2 * columns + 2, 0);
        let words = Words::new(text, pos);
        Rows {
            text,
            columns,
            edges,
            words,
            start: pos,
            end: pos,
        }
    }

    /// Start and end of each value of the row in turn, and then once 0, 0.
    #[inline]
    pub(super) fn edges(&self) -> &[u32] {
        self.edges
    }

    /// Where the row before ends; once there are no more, where the last does.
    pub(super) fn pos(&self) -> usize {
        self.start
    }

    /// Where the row ends.
    pub(super) fn end(&self) -> usize {
        self.end
    }

    /// Goes to the next row; false when the loop ends.
    #[inline]
    pub(super) fn next(&mut self) -> Result<bool> {
        let wanted = 2 * self.columns;
        self.start = self.end;
        if !self.words.take(&mut self.edges[..wanted]) {
            return self.next_slowly();
        }
        let edges = &self.edges[..wanted];
        let mut class = 0;
        for edge in edges.chunks_exact(2) {
            class |= CLASS[usize::from(self.text[edge[0] as usize])];
        }
        let end = edges[wanted - 1] as usize;
        if class & SYNTAX != 0
            || (class & KEYWORD != 0 && self.has_keyword())
            || (class & QUOTE != 0 && !self.strip_quotes())
        {
            return self.next_slowly();
        }
        self.end = end;
        Ok(true)
    }

    /// Takes the quotes off quoted words; false where one goes on past a blank.
    fn strip_quotes(&mut self) -> bool {
        for edge in self.edges[..2 * self.columns].chunks_exact_mut(2) {
            let word = &self.text[edge[0] as usize..edge[1] as usize];
            if CLASS[usize::from(word[0])] == QUOTE {
                if word.len() < 2 || word[word.len() - 1] != word[0] {
                    return false;
                }
                edge[0] += 1;
                edge[1] -= 1;
            }
        }
        true
    }

    /// Whether a word of the row is `loop_`, `data_x` or the like.
    fn has_keyword(&self) -> bool {
        self.edges[..2 * self.columns].chunks_exact(2).any(|edge| {
            let text = &self.text[edge[0] as usize..edge[1] as usize];
            CLASS[usize::from(text[0])] == KEYWORD && !matches!(word(text), Token::Value(_))
        })
    }

    /// Reads the row token by token.
    #[cold]
    fn next_slowly(&mut self) -> Result<bool> {
        let mut lexer = Lexer {
            text: self.text,
            pos: self.start,
        };
        for column in 0..self.columns {
            let (span, token) = lexer.next()?;
            if !matches!(token, Token::Value(_)) {
                return if column == 0 {
                    Ok(false)
                } else {
                    Err(self.row_cut())
                };
            }
            self.edges[2 * column] = span.start as u32;
            self.edges[2 * column + 1] = span.end as u32;
        }
        self.end = lexer.pos;
        self.words = Words::new(self.text, self.end);
        Ok(true)
    }

    fn row_cut(&self) -> Error {
        let mut lexer = Lexer {
            text: self.text,
            pos: self.start,
        };
        lexer.skip_blank();
        let message = format!("a row of {} values is cut short", self.columns);
        at_line(self.text, lexer.pos, &message).fix(CUT_SHORT)
    }
}

/// Finds where words start and end.
struct Words<'a> {
    text: &'a [u8],
    /// Where the current block starts.
    block: usize,
    /// Edges in the block that are not taken yet, as bits.
    pending: u64,
    /// Whether the last byte of the block is inside a word (0 or 1).
    inside: u64,
}

impl<'a> Words<'a> {
    /// From `pos` on, which must be between words.
    fn new(text: &'a [u8], pos: usize) -> Self {
        let mut words = Words {
            text,
            block: 0,
            pending: 0,
            inside: 0,
        };
        words.load(pos);
        words
    }

    /// Fills `edges` with where words start and end, in turn; false when the
    /// text has no more.
    #[inline]
    fn take(&mut self, edges: &mut [u32]) -> bool {
        let mut pending = self.pending;
        for edge in edges {
            while pending == 0 {
                if self.block + 64 > self.text.len() {
                    self.pending = 0;
                    return false;
                }
                self.load(self.block + 64);
                pending = self.pending;
            }
            *edge = self.block as u32 + pending.trailing_zeros();
            pending &= pending - 1;
        }
        self.pending = pending;
        true
    }

    #[inline]
    fn load(&mut self, block: usize) {
        let rest = &self.text[block..];
        let words = match rest.first_chunk::<64>() {
            Some(bytes) => word_mask(bytes),
            None => {
                let mut bytes = [b' '; 64];
                bytes[..rest.len()].copy_from_slice(rest);
                word_mask(&bytes)
            }
        };
        self.pending = words ^ (words << 1 | self.inside);
        self.inside = words >> 63;
        self.block = block;
    }
}

/// One bit for each byte that is no blank, the first byte lowest.
#[inline]
fn word_mask(bytes: &[u8; 64]) -> u64 {
    const LOW7: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let mut mask = 0;
    for (at, chunk) in bytes.as_chunks::<8>().0.iter().enumerate() {
        let chunk = u64::from_le_bytes(*chunk);
        // Adding 0x5f carries into the high bit from 0x21 on.
        let high = (((chunk & LOW7) + 0x5f5f_5f5f_5f5f_5f5f) | chunk) & HIGH;
        // Each product term moves one high bit to its place in the top byte.
        let bits = (high >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        mask |= bits << (8 * at);
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Token<'_>> {
        let mut lexer = Lexer::new(text.as_bytes());
        let mut out = Vec::new();
        loop {
            match lexer.next().unwrap().1 {
                Token::End => return out,
                token => out.push(token),
            }
        }
    }

    #[test]
    fn words_are_told_apart() {
        let text =
            "data_X loop_ _a.b save_y STOP_ ? . 'a b' \"c'\" x#y # z\n;one\n two\n;\nd;e '' ";
        let values: [&[u8]; 8] = [b"", b"", b"a b", b"c'", b"x#y", b"one\n two", b"d;e", b""];
        let mut wanted = vec![
            Token::Data(b"X"),
            Token::Loop,
            Token::Tag(b"_a.b"),
            Token::Other,
            Token::Other,
        ];
        wanted.extend(values.map(Token::Value));
        assert_eq!(tokens(text), wanted);
    }

    /// The rows of a loop as the token reader has them, and where it ends; an
    /// error as `None`.
    fn rows_by_token(text: &str, columns: usize) -> Option<(Vec<Vec<&[u8]>>, usize)> {
        let mut lexer = Lexer::new(text.as_bytes());
        let mut rows = Vec::new();
        loop {
            let end = lexer.pos();
            let mut row = Vec::new();
            while row.len() < columns {
                match lexer.next().ok()?.1 {
                    Token::Value(value) => row.push(value),
                    _ if row.is_empty() => return Some((rows, end)),
                    _ => return None,
                }
            }
            rows.push(row);
        }
    }

    fn rows_by_word(text: &str, columns: usize) -> Option<(Vec<Vec<&[u8]>>, usize)> {
        let text = text.as_bytes();
        let mut edges = Vec::new();
        let mut rows = Rows::new(text, 0, columns, &mut edges);
        let mut out = Vec::new();
        while rows.next().ok()? {
            let spans = rows.edges()[..2 * columns].chunks_exact(2);
            let value = |span: &[u32]| match &text[span[0] as usize..span[1] as usize] {
                b"?" | b"." => b"",
                value => value,
            };
            out.push(spans.map(value).collect());
        }
        Some((out, rows.pos()))
    }

    #[test]
    fn rows_by_word_are_those_by_token() {
        const PIECES: [&str; 24] = [
            "A",
            "CA",
            "12.345",
            "?",
            ".",
            "'a b'",
            "\"O5'\"",
            "'q'",
            "loopy",
            "data",
            "x'y",
            "a;b",
            "averyveryverylongwordindeed",
            "\n;text\nfield\n;\n",
            "# comment\n",
            "_a.b",
            "loop_",
            "data_x",
            "'",
            "\"",
            ";",
            "#",
            "global_",
            "s",
        ];
        const BLANKS: [&str; 6] = [" ", "  ", "\n", "\r\n", "\t", "          "];
        let mut seed = 0x2545_f491_4f6c_dd1du64;
        let mut below = |bound: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed % bound as u64) as usize
        };
        for round in 0..20_000 {
            // Mostly plain values, so that the loop goes on for a while.
            let plain = 8 + 16 * usize::from(round % 4 == 0);
            let text: String = (0..below(60))
                .flat_map(|_| [PIECES[below(plain)], BLANKS[below(BLANKS.len())]])
                .collect();
            let columns = 1 + below(5);
            assert_eq!(
                rows_by_word(&text, columns),
                rows_by_token(&text, columns),
                "{columns} columns: {text:?}"
            );
        }
    }
}
