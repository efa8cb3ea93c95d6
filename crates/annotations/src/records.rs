//! Splits a table in text into records, one at a time.

use memchr::{memchr, memchr_iter};
use std::io::{BufRead, Read};
use tapeloop_error::{Error, Result};

/// The most bytes of a record, which may span lines: a quote that is not closed, or a file without line breaks, would
/// be read to its end.
const RECORD_BYTES_MAX: usize = 1 << 20;

/// The records of a table. Fields are trimmed; one in double quotes may hold separators, line
/// breaks and doubled quotes. Empty lines and lines that start with `#` are skipped.
pub(super) struct TextRecords<R> {
    reader: R,
    separator: u8,
    /// Lines that were read.
    lines: u64,
    /// The bytes of the record.
    record: Vec<u8>,
    /// The fields, one after the other, and the end of each.
    text: String,
    ends: Vec<usize>,
}

/// The fields of a record.
#[derive(Clone, Copy)]
pub(super) struct RecordFields<'a> {
    text: &'a str,
    ends: &'a [usize],
}

impl<'a> RecordFields<'a> {
    pub(super) fn iter(self) -> impl Iterator<Item = &'a str> {
        (0..self.ends.len()).map(move |index| {
            let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
            &self.text[start..self.ends[index]]
        })
    }

    pub(super) fn len(self) -> usize {
        self.ends.len()
    }
}

impl<R: BufRead> TextRecords<R> {
    pub(super) fn new(reader: R, separator: u8) -> Self {
        TextRecords {
            reader,
            separator,
            lines: 0,
            record: Vec::new(),
            text: String::new(),
            ends: Vec::new(),
        }
    }

    /// The next record with a field that is not empty, and its first line, from 1.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](tapeloop_error::ErrorKind::Config): the table cannot be read, or the record is too long
    /// or not UTF-8; the line comes with the error.
    pub(super) fn next(&mut self) -> Result<Option<(u64, RecordFields<'_>)>> {
        loop {
            self.record.clear();
            let line = self.lines + 1;
            let at_line = |error: Error| error.within(format!("line {line}"));
            if !self.add_line().map_err(at_line)? {
                return Ok(None);
            }
            if line == 1 && self.record.starts_with("\u{feff}".as_bytes()) {
                self.record.drain(..3);
            }
            if self.record.starts_with(b"#") || self.record.trim_ascii().is_empty() {
                continue;
            }
            let mut quotes = QuoteState::default();
            let mut start = 0;
            while quotes.are_open_after(&self.record[start..], self.separator) {
                start = self.record.len();
                if !self.add_line().map_err(at_line)? {
                    let error = Error::config("a quoted field does not end");
                    return Err(at_line(
                        error.fix("close the quotes, and double those inside of a field"),
                    ));
                }
            }
            self.split().map_err(at_line)?;
            if !self.text.is_empty() {
                let (text, ends) = (&*self.text, &*self.ends);
                return Ok(Some((line, RecordFields { text, ends })));
            }
        }
    }

    /// Appends a line to the record, with its end. Returns whether there was one.
    fn add_line(&mut self) -> Result<bool> {
        // One byte more than a record may have shows that it is too long.
        let room = RECORD_BYTES_MAX + 1 - self.record.len();
        let mut reader = (&mut self.reader).take(room as u64);
        let read = reader.read_until(b'\n', &mut self.record);
        let read = read.map_err(|error| {
            let fix = "give a table that can be read, packed with gzip if its name ends in .gz";
            Error::config(error.to_string()).fix(fix)
        })?;
        if self.record.len() > RECORD_BYTES_MAX {
            let text = format!("the row has more than {RECORD_BYTES_MAX} bytes");
            return Err(
                Error::config(text).fix("a table has one row a line, and quotes are closed")
            );
        }
        self.lines += u64::from(read > 0);
        Ok(read > 0)
    }

    /// Splits the record into its fields. An error of kind `Config` for bytes that are not UTF-8, text behind a
    /// closing quote, and a bare carriage return, which would join two lines.
    fn split(&mut self) -> Result<()> {
        self.text.clear();
        self.ends.clear();
        let record = std::str::from_utf8(&self.record)
            .map_err(|_| Error::config("the text is not UTF-8").fix("write the table as UTF-8"))?;
        let separator = char::from(self.separator);
        let mut rest = record;
        loop {
            let trimmed = rest.trim_start_matches([' ', '\r']);
            let quoted = trimmed.strip_prefix('"');
            let plain = match quoted {
                Some(quoted) => {
                    let (inner, behind) = split_quoted(quoted);
                    let start = self.text.len();
                    inner.for_each(|piece| self.text.push_str(piece));
                    trim(&mut self.text, start);
                    behind
                }
                None => rest,
            };
            let end = memchr(self.separator, plain.as_bytes());
            let field = plain[..end.unwrap_or(plain.len())].trim();
            if quoted.is_none() {
                if memchr(b'\r', field.as_bytes()).is_some() {
                    let error = Error::config("a field holds a carriage return");
                    return Err(error.fix("end lines with \\n or \\r\\n, or quote the field"));
                }
                self.text.push_str(field);
            } else if !field.is_empty() {
                let number = self.ends.len() + 1;
                let text = format!("in field {number} text follows the quote that closes it");
                return Err(
                    Error::config(text).fix("close the quotes, and double those inside of a field")
                );
            }
            self.ends.push(self.text.len());
            match end {
                Some(end) => rest = &plain[end + separator.len_utf8()..],
                None => return Ok(()),
            }
        }
    }
}

/// Splits `after_quote`, which begins behind the opening quote of a field, at the closing one. Returns the
/// field's text in pieces that follow each other, with single quotes for doubled ones, and the text after
/// the closing quote. Without a closing quote all of it is the field; [`TextRecords::next`] refuses that.
fn split_quoted(after_quote: &str) -> (impl Iterator<Item = &str>, &str) {
    let bytes = after_quote.as_bytes();
    let mut quotes = memchr_iter(b'"', bytes);
    let mut end = bytes.len();
    while let Some(index) = quotes.next() {
        if bytes.get(index + 1) != Some(&b'"') {
            end = index;
            break;
        }
        quotes.next();
    }
    // A doubled quote stands for one quote, which is put back before each piece but the first.
    let rest = after_quote.get(end + 1..).unwrap_or_default();
    let pieces = after_quote[..end].split("\"\"").enumerate();
    let pieces = pieces.flat_map(|(index, piece)| [if index > 0 { "\"" } else { "" }, piece]);
    (pieces, rest)
}

/// Removes blanks around the end of `text` from `start` on.
fn trim(text: &mut String, start: usize) {
    text.truncate(start + text[start..].trim_end().len());
    let blanks = text.len() - start - text[start..].trim_start().len();
    text.replace_range(start..start + blanks, "");
}

/// Whether a quoted field is open at the end of a line.
#[derive(Default)]
struct QuoteState {
    is_open: bool,
}

impl QuoteState {
    /// Whether a quoted field goes on behind this line of the record, which the state keeps for the next line.
    fn are_open_after(&mut self, line: &[u8], separator: u8) -> bool {
        let mut rest = line;
        loop {
            if self.is_open {
                // Two quotes stand for one in the field.
                let Some(index) = memchr(b'"', rest) else {
                    return true;
                };
                let is_doubled = rest.get(index + 1) == Some(&b'"');
                rest = &rest[index + 1 + usize::from(is_doubled)..];
                self.is_open = is_doubled;
                continue;
            }
            let blanks = rest
                .iter()
                .take_while(|byte| matches!(byte, b' ' | b'\r'))
                .count();
            // Text after a closing quote does not begin a field.
            let begins = rest.len() == line.len() || line[line.len() - rest.len() - 1] == separator;
            if begins && rest.get(blanks) == Some(&b'"') {
                self.is_open = true;
                rest = &rest[blanks + 1..];
                continue;
            }
            match memchr(separator, rest) {
                Some(index) => rest = &rest[index + 1..],
                None => return false,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str, separator: u8) -> Vec<(u64, Vec<String>)> {
        let mut records = TextRecords::new(text.as_bytes(), separator);
        let mut all = Vec::new();
        while let Some((line, fields)) = records.next().unwrap() {
            all.push((line, fields.iter().map(str::to_owned).collect()));
        }
        all
    }

    #[test]
    fn records_are_split_as_spreadsheets_write_them() {
        let text = "\u{feff}a,b , c\r\n\n# note, \"\r\n\"x, y\",\"two\nlines\",\"he said \"\"no\"\"\"\n\
                    ,,\n 5\" rule, \"q\" ,\n\"\",last,\" inner \"";
        let expected: [(u64, [&str; 3]); 4] = [
            (1, ["a", "b", "c"]),
            (4, ["x, y", "two\nlines", "he said \"no\""]),
            (7, ["5\" rule", "q", ""]),
            (8, ["", "last", "inner"]),
        ];
        let expected: Vec<(u64, Vec<String>)> = expected
            .map(|(line, fields)| (line, fields.map(str::to_owned).to_vec()))
            .to_vec();
        assert_eq!(all(text, b','), expected);
        let tabs = text.replace("x, y", "x\t y").replace(',', "\t");
        assert_eq!(all(&tabs, b'\t')[0], expected[0]);
        assert!(all("", b',').is_empty());
        assert_eq!(all("\"\"\"\"", b','), [(1, vec!["\"".to_owned()])]);
    }

    #[test]
    fn a_record_that_does_not_end_is_refused_at_its_line_in_bounded_memory() {
        let fails = |text: &[u8], expected: &str| {
            let mut records = TextRecords::new(text, b',');
            let error = loop {
                match records.next() {
                    Ok(Some(_)) => (),
                    Ok(None) => panic!("{expected}"),
                    Err(error) => break error.to_string(),
                }
            };
            assert!(
                error.contains(expected) && error.contains("fix: "),
                "{error}"
            );
        };
        fails(b"a,b\n1,\"2\n3,4\n", "line 2: a quoted field");
        fails(b"a\n\xff\n", "UTF-8");
        fails(b"a,b\n1,\"2\"x\n", "field 2");
        // A quote that is not closed, and another one some lines on.
        fails(b"a,b\n1,\"2\n3,\"4\n", "field 2");
        fails(b"a,b\r1,2\r", "line 1: a field");
        let long = [b"a,b\n".to_vec(), vec![b'x'; 1 << 21]].concat();
        fails(&long, "1048576 bytes");
        let open = format!("a,b\n\"{}", "\n".repeat(1 << 21));
        fails(open.as_bytes(), "1048576 bytes");
    }
}
