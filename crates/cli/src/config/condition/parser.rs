//! The grammar of conditions, by recursive descent:
//!
//! ```text
//! any  = all { "or" all }
//! all  = part { "and" part }
//! part = "not" part | "(" any ")" | test
//! test = FLAG | COLUMN ( OPERATOR VALUE | "is" ["not"] "null" | ["not"] "contains" VALUE
//!               | ["not"] "in" "(" VALUE {"," VALUE} ")" )
//! ```

use super::super::column_hint::column_hint;
use super::super::features::feature_of_column;
use super::{Condition, ConditionNode, FRAME_KEYS, Literal, OTHER_NAMES, Test, ValueType};
use half::f16;
use tapeloop::error::{Error, Result};
use tapeloop::features::TableName;
use tapeloop_error::internal::excerpt;

/// The most parentheses and `not` inside each other, since each takes a part of the stack.
const DEPTH_MAX: usize = 64;

/// A piece of the text.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ConditionToken<'a> {
    /// A column, or a word such as `and`.
    Word(&'a str),
    Number(&'a str),
    /// A text with its quotes.
    Quoted(&'a str),
    /// An operator, a parenthesis or a comma.
    Sign(&'a str),
    End,
}

/// Operators of two characters come before those that they begin with.
const SIGNS: [&str; 9] = ["==", "!=", "<=", ">=", "<", ">", "(", ")", ","];

/// Parses a condition over these columns.
pub(super) fn parse(text: &str, columns: &[(&str, ValueType)]) -> Result<Condition> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        next: 0,
        depth: 0,
        columns,
        named: Vec::new(),
    };
    let root = parser.parse_any()?;
    if parser.token() != ConditionToken::End {
        return Err(parser.unexpected("`and`, `or` or the end"));
    }
    Ok(Condition {
        text: text.to_owned(),
        columns: parser.named,
        root,
    })
}

/// The tokens, each with the number of its first character, from 1.
fn tokens<'a>(text: &'a str) -> Result<Vec<(usize, ConditionToken<'a>)>> {
    let mut tokens = Vec::new();
    let (mut rest, mut position) = (text, 1);
    loop {
        let spaces = length_while(rest, char::is_whitespace);
        position += rest[..spaces].chars().count();
        rest = &rest[spaces..];
        let Some(first) = rest.chars().next() else {
            tokens.push((position, ConditionToken::End));
            return Ok(tokens);
        };
        let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
        let is_word_char = |char: char| char.is_ascii_alphanumeric() || char == '_';
        let (length, token): (usize, fn(&'a str) -> ConditionToken<'a>) = match first {
            'a'..='z' | 'A'..='Z' | '_' => (length_while(rest, is_word_char), ConditionToken::Word),
            '0'..='9' | '.' | '+' | '-' => (number_length(rest), ConditionToken::Number),
            '\'' | '"' => match quoted_length(rest, first) {
                Some(length) => (length, ConditionToken::Quoted),
                None => {
                    let fix = "end it with the quote that it begins with";
                    return Err(error_at(position, "a text without an end").fix(fix));
                }
            },
            _ => match sign {
                Some(sign) => (sign.len(), ConditionToken::Sign),
                None => {
                    let message = format!("`{}` has no meaning here", excerpt(first.to_string()));
                    let fix = match first {
                        '=' => "write == to compare",
                        '&' => "write and",
                        '|' => "write or",
                        '!' => "write not, or !=",
                        _ => "write a comparison such as plddt >= 70",
                    };
                    return Err(error_at(position, &message).fix(fix));
                }
            },
        };
        tokens.push((position, token(&rest[..length])));
        position += rest[..length].chars().count();
        rest = &rest[length..];
    }
}

fn length_while(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    text.find(|char| !is_part(char)).unwrap_or(text.len())
}

/// The length of a number, or of what looks like one.
fn number_length(text: &str) -> usize {
    let mut last = ' ';
    text.find(|char: char| {
        let is_sign = matches!(char, '+' | '-') && matches!(last, ' ' | 'e' | 'E');
        last = char;
        !(char.is_ascii_alphanumeric() || matches!(char, '.' | '_') || is_sign)
    })
    .unwrap_or(text.len())
}

/// The length of a text in quotes, in which two quotes stand for one; `None` if it has no end.
fn quoted_length(text: &str, quote: char) -> Option<usize> {
    let mut length = 1;
    loop {
        length += text[length..].find(quote)? + 1;
        if !text[length..].starts_with(quote) {
            return Some(length);
        }
        length += 1;
    }
}

/// The text of a [`ConditionToken::Quoted`].
fn unquoted(quoted: &str) -> String {
    let (quote, inner) = (&quoted[..1], &quoted[1..quoted.len() - 1]);
    inner.replace(&quote.repeat(2), quote)
}

fn error_at(position: usize, message: &str) -> Error {
    Error::config(format!("character {position}: {message}"))
}

struct Parser<'a> {
    tokens: Vec<(usize, ConditionToken<'a>)>,
    next: usize,
    /// Parentheses and `not` around the next token.
    depth: usize,
    columns: &'a [(&'a str, ValueType)],
    /// The columns that the condition names.
    named: Vec<String>,
}

impl<'a> Parser<'a> {
    fn token(&self) -> ConditionToken<'a> {
        self.tokens[self.next].1
    }

    fn position(&self) -> usize {
        self.tokens[self.next].0
    }

    /// Goes to the next token. The last one, [`ConditionToken::End`], stays.
    fn advance(&mut self) {
        self.next = (self.next + 1).min(self.tokens.len() - 1);
    }

    /// Takes the token if it is this word, in upper or lower case. Returns whether it is.
    fn takes_word(&mut self, word: &str) -> bool {
        let is_word =
            matches!(self.token(), ConditionToken::Word(found) if found.eq_ignore_ascii_case(word));
        if is_word {
            self.advance();
        }
        is_word
    }

    /// Takes the token if it is this sign. Returns whether it is.
    fn takes_sign(&mut self, sign: &str) -> bool {
        let is_sign = self.token() == ConditionToken::Sign(sign);
        if is_sign {
            self.advance();
        }
        is_sign
    }

    fn expect_sign(&mut self, sign: &str) -> Result<()> {
        if self.takes_sign(sign) {
            Ok(())
        } else {
            Err(self.unexpected(&format!("`{sign}`")))
        }
    }

    fn unexpected(&self, expected: &str) -> Error {
        let message = format!("expected {expected}, not {}", self.found());
        error_at(self.position(), &message).fix("write a comparison such as plddt >= 70")
    }

    /// The token, for messages.
    fn found(&self) -> String {
        match self.token() {
            ConditionToken::Word(text)
            | ConditionToken::Number(text)
            | ConditionToken::Quoted(text)
            | ConditionToken::Sign(text) => {
                format!("`{}`", excerpt(text))
            }
            ConditionToken::End => "the end".to_owned(),
        }
    }

    fn parse_any(&mut self) -> Result<ConditionNode> {
        let mut parts = vec![self.parse_all()?];
        while self.takes_word("or") {
            parts.push(self.parse_all()?);
        }
        Ok(one_or(parts, ConditionNode::Any))
    }

    fn parse_all(&mut self) -> Result<ConditionNode> {
        let mut parts = vec![self.parse_part()?];
        while self.takes_word("and") {
            parts.push(self.parse_part()?);
        }
        Ok(one_or(parts, ConditionNode::All))
    }

    /// Parses a test, a negation, or a condition in parentheses. The depth is limited, as each
    /// level is a call on the stack.
    fn parse_part(&mut self) -> Result<ConditionNode> {
        let position = self.position();
        let is_not = self.takes_word("not");
        if !is_not && !self.takes_sign("(") {
            return self.parse_test();
        }
        if self.depth == DEPTH_MAX {
            let message = format!("more than {DEPTH_MAX} parentheses and `not` inside each other");
            return Err(error_at(position, &message).fix("write fewer"));
        }
        self.depth += 1;
        let inner = if is_not {
            not(self.parse_part()?)
        } else {
            self.parse_any()?
        };
        self.depth -= 1;
        if !is_not {
            self.expect_sign(")")?;
        }
        Ok(inner)
    }

    /// Parses a test of one column.
    fn parse_test(&mut self) -> Result<ConditionNode> {
        let (name, value_type) = self.parse_column()?;
        let index = self.named.iter().position(|known| known == name);
        let index = index.unwrap_or_else(|| {
            self.named.push(name.to_owned());
            self.named.len() - 1
        });
        let test = |test| ConditionNode::Test(index, test);
        if self.takes_word("is") {
            let is_not = self.takes_word("not");
            if !self.takes_word("null") {
                return Err(self.unexpected("`null`"));
            }
            let is_null = test(Test::IsNull);
            return Ok(if is_not { not(is_null) } else { is_null });
        }
        let is_not = self.takes_word("not");
        if self.takes_word("in") {
            self.expect_sign("(")?;
            let mut literals = vec![self.parse_literal(name, value_type)?];
            while self.takes_sign(",") {
                literals.push(self.parse_literal(name, value_type)?);
            }
            self.expect_sign(")")?;
            let is_one = test(Test::OneOf(literals));
            return Ok(if is_not { not(is_one) } else { is_one });
        }
        let position = self.position();
        if self.takes_word("contains") {
            if value_type != ValueType::Text {
                let message = format!("`contains` needs a column of texts, and {name} holds none");
                return Err(error_at(position, &message).fix("write a comparison"));
            }
            let Literal::Text(part) = self.parse_literal(name, value_type)? else {
                unreachable!("a text column has texts");
            };
            let contains = test(Test::Contains(part));
            return Ok(if is_not { not(contains) } else { contains });
        }
        if is_not {
            return Err(self.unexpected("`in` or `contains`"));
        }
        let position = self.position();
        let sign = match self.token() {
            ConditionToken::Sign(sign @ ("==" | "!=" | "<" | "<=" | ">" | ">=")) => sign,
            _ if value_type == ValueType::Flag => {
                return Ok(test(Test::OneOf(vec![Literal::Flag(true)])));
            }
            _ => return Err(self.unexpected(&format!("a comparison of {name}"))),
        };
        self.advance();
        if sign.starts_with(['<', '>']) && value_type == ValueType::Flag {
            let message = format!("{name} is true or false, which have no order");
            return Err(error_at(position, &message).fix(format!("write {name}, or not {name}")));
        }
        let literal = self.parse_literal(name, value_type)?;
        Ok(match sign {
            "==" => test(Test::OneOf(vec![literal])),
            "<" => test(Test::Less(literal)),
            ">" => test(Test::Greater(literal)),
            "<=" => not(test(Test::Greater(literal))),
            ">=" => not(test(Test::Less(literal))),
            _ => not(test(Test::OneOf(vec![literal]))),
        })
    }

    /// The column that the token names, and the type of its values.
    fn parse_column(&mut self) -> Result<(&'a str, ValueType)> {
        let ConditionToken::Word(word) = self.token() else {
            return Err(self.unexpected("a column"));
        };
        let other = OTHER_NAMES.iter().find(|(other, _)| *other == word);
        let name = other.map_or(word, |(_, name)| name);
        let Some(&column) = self.columns.iter().find(|(known, _)| *known == name) else {
            let known: Vec<&str> = self.columns.iter().map(|(known, _)| *known).collect();
            // The table of atoms has other columns.
            let is_of_residues = known.contains(&"break_before");
            let feature = feature_of_column(name)
                .filter(|place| is_of_residues && place.is_of(TableName::Residues));
            let hint = match feature {
                Some(_) => String::new(),
                None => column_hint(word, &known),
            };
            let message = format!("no column `{}` is computed{hint}", excerpt(word));
            let is_of_frames = FRAME_KEYS.iter().any(|(known, _)| *known == name);
            let fix = match feature {
                _ if is_of_frames => {
                    "give the structure of the trajectories as `topology`".to_owned()
                }
                Some(feature) => feature.how_to_compute(),
                None => "`tapeloop features` lists the columns; `features` chooses them".to_owned(),
            };
            return Err(error_at(self.position(), &message).fix(fix));
        };
        self.advance();
        Ok(column)
    }

    /// A value for the column `name`.
    fn parse_literal(&mut self, name: &str, value_type: ValueType) -> Result<Literal> {
        let literal = match (value_type, self.token()) {
            (ValueType::Text, ConditionToken::Quoted(text)) => Some(Literal::Text(unquoted(text))),
            (ValueType::Flag, ConditionToken::Word(word)) => {
                match word.to_ascii_lowercase().as_str() {
                    "true" => Some(Literal::Flag(true)),
                    "false" => Some(Literal::Flag(false)),
                    _ => None,
                }
            }
            (
                ValueType::Integer | ValueType::Real | ValueType::Half,
                ConditionToken::Number(text),
            ) => {
                let exact = text.parse::<f64>().ok().filter(|number| number.is_finite());
                let single = text.parse::<f32>().unwrap_or(f32::NAN);
                exact.map(|exact| {
                    Literal::Number(match value_type {
                        ValueType::Half => f16::from_f32(single).to_f64(),
                        ValueType::Real => f64::from(single),
                        _ => exact,
                    })
                })
            }
            _ => None,
        };
        let Some(literal) = literal else {
            let (holds, fix) = match value_type {
                ValueType::Text => ("texts", "write the text in quotes: 'A'"),
                ValueType::Flag => ("true and false", "write true or false"),
                _ => ("numbers", "write a number"),
            };
            let message = format!("{name} holds {holds}, not {}", self.found());
            return Err(error_at(self.position(), &message).fix(fix));
        };
        self.advance();
        Ok(literal)
    }
}

fn not(node: ConditionNode) -> ConditionNode {
    ConditionNode::Not(Box::new(node))
}

/// The only one of the parts, or all of them as one node.
fn one_or(
    mut parts: Vec<ConditionNode>,
    many: fn(Vec<ConditionNode>) -> ConditionNode,
) -> ConditionNode {
    match parts.len() {
        1 => parts.remove(0),
        _ => many(parts),
    }
}
