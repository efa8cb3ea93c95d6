//! Splits CUDA C++ text into tokens.

use super::{Result, SignatureError};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    Word(String),
    Sign(char),
    /// The comment `/* updated */`.
    Updated,
}

#[derive(Clone, Debug)]
pub(super) struct SignatureToken {
    pub(super) kind: TokenKind,
    pub(super) line: usize,
}

impl SignatureToken {
    pub(super) fn is(&self, sign: char) -> bool {
        self.kind == TokenKind::Sign(sign)
    }

    pub(super) fn word(&self) -> Option<&str> {
        match &self.kind {
            TokenKind::Word(word) => Some(word),
            _ => None,
        }
    }

    pub(super) fn error<T>(&self, message: impl Into<String>) -> Result<T> {
        let (line, message) = (self.line, message.into());
        Err(SignatureError { line, message })
    }
}

pub(super) enum Lexed {
    Token(SignatureToken),
    /// A preprocessor line without its `#`, continued lines joined.
    Directive(usize, String),
}

/// Splits C++ into tokens and directives. Comments and literals are left out, except `/* updated
/// */`, which marks a parameter.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = Lexed> {
    let bytes = text.as_bytes();
    let (mut offset, mut line, mut line_start) = (0, 1, true);
    std::iter::from_fn(move || {
        loop {
            let rest = &text[offset..];
            let c = rest.chars().next()?;
            // The length of the token that ends with `end`.
            let until = |end: &str| rest.find(end).map_or(rest.len(), |found| found + end.len());
            let (length, found) = if c == '\n' {
                (line, line_start) = (line + 1, true);
                offset += 1;
                continue;
            } else if c.is_whitespace() || c == '\\' {
                offset += c.len_utf8();
                continue;
            } else if rest.starts_with("//") {
                (rest.find('\n').unwrap_or(rest.len()), None)
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let length = 2 + comment.find("*/").map_or(comment.len(), |end| end + 2);
                let is_updated = rest[..length].trim_matches(['/', '*', ' ']) == "updated";
                (length, is_updated.then_some(TokenKind::Updated))
            } else if c == '#' && line_start {
                let mut length = until("\n");
                while rest[..length].trim_end().ends_with('\\') && length < rest.len() {
                    length += rest[length..]
                        .find('\n')
                        .map_or(rest.len() - length, |end| end + 1);
                }
                let directive = Lexed::Directive(line, rest[1..length].replace("\\\n", " "));
                line += rest[..length].matches('\n').count();
                offset += length;
                return Some(directive);
            } else if c == '"' || c == '\'' {
                let mut end = offset + 1;
                while end < bytes.len() && bytes[end] != c as u8 && bytes[end] != b'\n' {
                    end += 1 + usize::from(bytes[end] == b'\\');
                }
                // Do not cut a character of several bytes.
                let mut length = (end + 1).min(bytes.len()) - offset;
                while !rest.is_char_boundary(length) {
                    length += 1;
                }
                (length, None)
            } else if c.is_alphanumeric() || c == '_' {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
                let word = &rest[..end.unwrap_or(rest.len())];
                (word.len(), Some(TokenKind::Word(word.to_owned())))
            } else {
                (c.len_utf8(), Some(TokenKind::Sign(c)))
            };
            let token = found.map(|kind| Lexed::Token(SignatureToken { kind, line }));
            line += rest[..length].matches('\n').count();
            line_start = false;
            offset += length;
            if token.is_some() {
                return token;
            }
        }
    })
}
