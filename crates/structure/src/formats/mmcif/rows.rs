//! The rows of a CIF loop.

use std::ops::Range;

use super::lexer::{CUT_SHORT, CifToken, Lexer, word};
use crate::text::at_line;
use crate::{Error, Result};

/// What a word may be other than a plain value, by its first byte.
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
    let mut i = 0;
    while i < letters.len() {
        class[letters[i] as usize] = KEYWORD;
        i += 1;
    }
    class
};

/// The rows of a loop: where each value starts and ends.
///
/// Words are found 64 bytes at a time: the blanks of a chunk become the bits of a mask, and the
/// edges of the mask are the starts and ends of its words. That suffices for rows of plain words
/// and of quoted words without blanks, as atom tables have them. [`Lexer`] reads all other rows.
pub(super) struct LoopRows<'a> {
    text: &'a [u8],
    columns: usize,
    /// Start and end of each value of the row in turn, then an empty range, which items that the file lacks
    /// take: their column is the one behind the last.
    edges: &'a mut Vec<u32>,
    words: WordScanner<'a>,
    /// Where the previous row ends.
    start: usize,
    /// Where the row ends.
    end: usize,
}

impl<'a> LoopRows<'a> {
    /// The rows of `columns` values from `pos` on, which must be between tokens. `edges` is a
    /// buffer for reuse.
    pub(super) fn new(text: &'a [u8], pos: usize, columns: usize, edges: &'a mut Vec<u32>) -> Self {
        // Cleared first: the last range has to be empty whatever the buffer held.
        edges.clear();
        edges.resize(2 * columns + 2, 0);
        LoopRows {
            text,
            columns,
            edges,
            words: WordScanner::new(text, pos),
            start: pos,
            end: pos,
        }
    }

    /// Start and end of each value of the row in turn, then an empty range.
    #[inline]
    pub(super) fn edges(&self) -> &[u32] {
        self.edges
    }

    /// Where the value of a column is.
    pub(super) fn value(&self, column: usize) -> Range<usize> {
        self.edges[2 * column] as usize..self.edges[2 * column + 1] as usize
    }

    /// Where the previous row ends; after the last row, where that ends.
    pub(super) fn pos(&self) -> usize {
        self.start
    }

    /// Where the row ends.
    pub(super) fn row_end(&self) -> usize {
        self.end
    }

    /// Reads the next row; false if there is none. Not inlined: next to the code for a row's atom, the
    /// compiler finds no registers for both.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) if the loop ends within the row, or a quoted
    /// value does not end.
    #[inline(never)]
    pub(super) fn next(&mut self) -> Result<bool> {
        let wanted = 2 * self.columns;
        self.start = self.end;
        if !self.words.take(&mut self.edges[..wanted]) {
            return self.next_slowly();
        }
        // Words that may be more than plain values are rare, so all of a row are looked at
        // together.
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

    /// Strips the quotes of quoted words; false if one contains a blank.
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

    /// Whether a word of the row is a keyword, such as `loop_` or `data_x`.
    fn has_keyword(&self) -> bool {
        self.edges[..2 * self.columns].chunks_exact(2).any(|edge| {
            let text = &self.text[edge[0] as usize..edge[1] as usize];
            CLASS[usize::from(text[0])] == KEYWORD && !matches!(word(text), CifToken::Value(_))
        })
    }

    /// [`LoopRows::next`] token by token. Words are found again from the end of the row on.
    #[cold]
    fn next_slowly(&mut self) -> Result<bool> {
        let mut lexer = Lexer::from_pos(self.text, self.start);
        for column in 0..self.columns {
            let (span, token) = lexer.next()?;
            if !matches!(token, CifToken::Value(_)) {
                return match column {
                    0 => Ok(false),
                    _ => Err(self.cut_short_error()),
                };
            }
            self.edges[2 * column] = span.start as u32;
            self.edges[2 * column + 1] = span.end as u32;
        }
        self.end = lexer.pos();
        self.words = WordScanner::new(self.text, self.end);
        Ok(true)
    }

    /// The [`ErrorKind::Input`](crate::ErrorKind::Input) error of a loop that ends within a row.
    fn cut_short_error(&self) -> Error {
        let mut lexer = Lexer::from_pos(self.text, self.start);
        lexer.skip_blank();
        let message = format!("a row of {} values is cut short", self.columns);
        at_line(self.text, lexer.pos(), message).fix(CUT_SHORT)
    }
}

/// Finds where words start and end.
struct WordScanner<'a> {
    text: &'a [u8],
    /// Where the current chunk of 64 bytes starts.
    chunk: usize,
    /// Edges in the chunk that have not been taken, one bit each.
    pending: u64,
    /// Whether the last byte of the chunk is inside a word (0 or 1).
    inside: u64,
}

impl<'a> WordScanner<'a> {
    /// Starts at `pos`, which must be between words.
    fn new(text: &'a [u8], pos: usize) -> Self {
        let mut words = WordScanner {
            text,
            chunk: 0,
            pending: 0,
            inside: 0,
        };
        words.load(pos);
        words
    }

    /// Fills `edges` with the starts and ends of words in turn; false if the text ends before.
    #[inline]
    fn take(&mut self, edges: &mut [u32]) -> bool {
        let mut pending = self.pending;
        for edge in edges {
            while pending == 0 {
                if self.chunk + 64 > self.text.len() {
                    self.pending = 0;
                    return false;
                }
                self.load(self.chunk + 64);
                pending = self.pending;
            }
            *edge = self.chunk as u32 + pending.trailing_zeros();
            pending &= pending - 1;
        }
        self.pending = pending;
        true
    }

    /// Finds where words begin and end in the 64 bytes from `chunk` on, or in the rest of the text: a bit is
    /// set where a word and a blank meet, also at the border to the bytes before. `chunk` is at most the end
    /// of the text.
    #[inline]
    fn load(&mut self, chunk: usize) {
        let rest = &self.text[chunk..];
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
        self.chunk = chunk;
    }
}

/// One bit for each byte, set if the byte is not a blank; the lowest bit is the first byte's.
#[inline]
fn word_mask(bytes: &[u8; 64]) -> u64 {
    const LOW7: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let mut mask = 0;
    for (index, chunk) in bytes.as_chunks::<8>().0.iter().enumerate() {
        let chunk = u64::from_le_bytes(*chunk);
        // Adding 0x5f carries into the high bit from 0x21 on, the first byte that is no blank.
        let high = (((chunk & LOW7) + 0x5f5f_5f5f_5f5f_5f5f) | chunk) & HIGH;
        // Each term of the product moves one high bit to its position in the top byte.
        let bits = (high >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        mask |= bits << (8 * index);
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::mmcif::not_null;

    /// The rows of a loop as [`Lexer`] reads them, and where the loop ends; `None` for an error.
    fn rows_of_lexer(text: &str, columns: usize) -> Option<(Vec<Vec<&[u8]>>, usize)> {
        let mut lexer = Lexer::new(text.as_bytes());
        let mut rows = Vec::new();
        loop {
            let end = lexer.pos();
            let mut row = Vec::new();
            while row.len() < columns {
                match lexer.next().ok()?.1 {
                    CifToken::Value(value) => row.push(value),
                    _ if row.is_empty() => return Some((rows, end)),
                    _ => return None,
                }
            }
            rows.push(row);
        }
    }

    fn rows(text: &str, columns: usize) -> Option<(Vec<Vec<&[u8]>>, usize)> {
        let text = text.as_bytes();
        let mut edges = Vec::new();
        let mut rows = LoopRows::new(text, 0, columns, &mut edges);
        let mut out = Vec::new();
        while rows.next().ok()? {
            let spans = rows.edges()[..2 * columns].chunks_exact(2);
            let value = |span: &[u32]| not_null(&text[span[0] as usize..span[1] as usize]);
            out.push(spans.map(value).collect());
        }
        Some((out, rows.pos()))
    }

    #[test]
    fn rows_are_those_of_the_lexer() {
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
            // Mostly plain values, so that loops have several rows.
            let plain = 8 + 16 * usize::from(round % 4 == 0);
            let text: String = (0..below(60))
                .flat_map(|_| [PIECES[below(plain)], BLANKS[below(BLANKS.len())]])
                .collect();
            let columns = 1 + below(5);
            assert_eq!(
                rows(&text, columns),
                rows_of_lexer(&text, columns),
                "{columns} columns: {text:?}"
            );
        }
    }
}
