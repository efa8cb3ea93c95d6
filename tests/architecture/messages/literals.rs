//! The string literals of a source in Rust or Python, with the calls that they are arguments of. Comments,
//! attributes, docstrings and what is compiled for tests alone are left out.

/// A string literal.
pub(super) struct Literal {
    /// The text, with its escapes resolved and continued lines joined.
    pub(super) text: String,
    /// The functions and macros whose arguments the literal is a part of, outermost first, and the name of the
    /// field that it is the value of.
    pub(super) calls: Vec<String>,
}

/// What a source holds.
#[derive(Default)]
pub(super) struct Literals {
    /// The literals in their order.
    pub(super) all: Vec<Literal>,
    /// The modules of other files that are compiled for tests alone.
    pub(super) test_modules: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Sign(char),
    Text(String),
}

/// Reads a source in Rust.
pub(super) fn rust_literals(source: &str) -> Literals {
    let tokens = tokens(source);
    let mut found = Literals::default();
    // The names before the open brackets.
    let mut calls: Vec<String> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            Token::Sign('#') if is_attribute(&tokens, at) => {
                let start = at;
                at = group_end(
                    &tokens,
                    at + 1 + usize::from(tokens[at + 1] == Token::Sign('!')),
                );
                if is_for_tests(&tokens[start..at]) {
                    at = item_end(&tokens, at, &mut found.test_modules);
                }
                continue;
            }
            Token::Sign('(' | '[' | '{') => calls.push(name_before(&tokens, at)),
            Token::Sign(')' | ']' | '}') => drop(calls.pop()),
            Token::Text(text) => {
                let mut calls: Vec<String> =
                    calls.iter().filter(|it| !it.is_empty()).cloned().collect();
                if let [Token::Word(field), Token::Sign(':')] = &tokens[at.saturating_sub(2)..at] {
                    calls.push(field.clone());
                }
                found.all.push(Literal {
                    text: text.clone(),
                    calls,
                });
            }
            _ => {}
        }
        at += 1;
    }
    found
}

fn is_attribute(tokens: &[Token], at: usize) -> bool {
    match tokens.get(at + 1) {
        Some(Token::Sign('[')) => true,
        Some(Token::Sign('!')) => tokens.get(at + 2) == Some(&Token::Sign('[')),
        _ => false,
    }
}

/// Whether an attribute is `#[cfg(test)]`, `#[cfg(all(test, ...))]` or `#[test]`.
fn is_for_tests(attribute: &[Token]) -> bool {
    let word = |at: usize| match attribute.get(at) {
        Some(Token::Word(word)) => &**word,
        _ => "",
    };
    word(2) == "test"
        || word(2) == "cfg" && (word(4) == "test" || word(4) == "all" && word(6) == "test")
}

/// The name of the function or macro whose arguments begin at `at`.
fn name_before(tokens: &[Token], at: usize) -> String {
    let before = at.checked_sub(1).map(|before| &tokens[before]);
    let before = match before {
        Some(Token::Sign('!')) => at.checked_sub(2).map(|before| &tokens[before]),
        before => before,
    };
    match before {
        Some(Token::Word(word)) if tokens[at] == Token::Sign('(') => word.clone(),
        _ => String::new(),
    }
}

/// The end of the group that begins at `at` with a bracket, behind its last token.
fn group_end(tokens: &[Token], at: usize) -> usize {
    let mut depth = 0;
    for (index, token) in tokens.iter().enumerate().skip(at) {
        match token {
            Token::Sign('(' | '[' | '{') => depth += 1,
            Token::Sign(')' | ']' | '}') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return index + 1;
        }
    }
    tokens.len()
}

/// The end of the item, field or statement that begins at `at`; a module of another file is added.
fn item_end(tokens: &[Token], at: usize, modules: &mut Vec<String>) -> usize {
    let mut at = at;
    while let Some(token) = tokens.get(at) {
        match (token, tokens.get(at + 1), tokens.get(at + 2)) {
            (Token::Sign('#'), ..) if is_attribute(tokens, at) => at = group_end(tokens, at + 1),
            (Token::Word(word), Some(Token::Word(name)), Some(Token::Sign(';')))
                if word == "mod" =>
            {
                modules.push(name.clone());
                return at + 3;
            }
            (Token::Sign(';' | ','), ..) => return at + 1,
            (Token::Sign('{'), ..) => return group_end(tokens, at),
            (Token::Sign('(' | '['), ..) => at = group_end(tokens, at),
            _ => at += 1,
        }
    }
    at
}

fn tokens(source: &str) -> Vec<Token> {
    let chars: Vec<char> = source.chars().collect();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let starts = |at: usize, what: &str| {
        what.chars()
            .eq(chars[at..].iter().copied().take(what.len()))
    };
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let c = chars[at];
        if starts(at, "//") {
            at += chars[at..].iter().take_while(|c| **c != '\n').count();
        } else if starts(at, "/*") {
            at += 2;
            while at < chars.len() && !starts(at, "*/") {
                at += 1;
            }
            at += 2;
        } else if c == '"' {
            let (text, length) = escaped(&chars[at + 1..], '"');
            tokens.push(Token::Text(text));
            at += length + 1;
        } else if c == '\'' && chars.get(at + 1) == Some(&'\\') {
            at += 3;
            at += chars[at..].iter().take_while(|c| **c != '\'').count() + 1;
        } else if c == '\'' {
            at += if chars.get(at + 2) == Some(&'\'') {
                3
            } else {
                1
            };
        } else if is_word(c) {
            let word: String = chars[at..].iter().take_while(|c| is_word(**c)).collect();
            at += word.chars().count();
            let hashes = chars[at..].iter().take_while(|c| **c == '#').count();
            if ["r", "br", "cr"].contains(&&*word) && chars.get(at + hashes) == Some(&'"') {
                let end = format!("\"{}", "#".repeat(hashes));
                at += hashes + 1;
                let start = at;
                while !starts(at, &end) {
                    at += 1;
                }
                tokens.push(Token::Text(chars[start..at].iter().collect()));
                at += end.len();
            } else if !(["b", "c"].contains(&&*word) && chars.get(at) == Some(&'"')) {
                tokens.push(Token::Word(word));
            }
        } else {
            if !c.is_whitespace() {
                tokens.push(Token::Sign(c));
            }
            at += 1;
        }
    }
    tokens
}

/// The text of a literal that begins after its quote, and its length in the source with the closing quote.
fn escaped(chars: &[char], quote: char) -> (String, usize) {
    let (mut text, mut at) = (String::new(), 0);
    while chars[at] != quote {
        if chars[at] != '\\' {
            text.push(chars[at]);
            at += 1;
            continue;
        }
        match chars[at + 1] {
            'n' => text.push('\n'),
            '\n' => {
                at += 1;
                at += chars[at..].iter().take_while(|c| c.is_whitespace()).count();
                continue;
            }
            c @ ('"' | '\'' | '\\') => text.push(c),
            other => text.extend(['\\', other]),
        }
        at += 2;
    }
    (text, at + 1)
}

/// Reads a source in Python. Literals that follow each other are one.
pub(super) fn python_literals(source: &str) -> Literals {
    let chars: Vec<char> = source.chars().collect();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Literals::default();
    let (mut calls, mut word): (Vec<String>, String) = (Vec::new(), String::new());
    let (mut at, mut joins) = (0, false);
    while at < chars.len() {
        let c = chars[at];
        let is_triple = chars[at..].starts_with(&[c, c, c]);
        if c == '#' {
            at += chars[at..].iter().take_while(|c| **c != '\n').count();
        } else if "\"'".contains(c) && is_triple {
            at += 3;
            while !chars[at..].starts_with(&[c, c, c]) {
                at += 1;
            }
            at += 3;
        } else if "\"'".contains(c) {
            let (text, length) = escaped(&chars[at + 1..], c);
            match found.all.last_mut().filter(|_| joins) {
                Some(last) => last.text += &text,
                None => found.all.push(Literal {
                    text,
                    calls: calls.iter().filter(|it| !it.is_empty()).cloned().collect(),
                }),
            }
            (at, joins, word) = (at + 1 + length, true, String::new());
        } else if is_word(c) {
            word = chars[at..].iter().take_while(|c| is_word(**c)).collect();
            at += word.chars().count();
            // The prefix of a literal, as in f"...".
            let is_prefix = chars.get(at).is_some_and(|c| "\"'".contains(*c));
            joins &= is_prefix;
        } else {
            match c {
                '(' => calls.push(std::mem::take(&mut word)),
                '[' | '{' => calls.push(String::new()),
                ')' | ']' | '}' => drop(calls.pop()),
                _ => {}
            }
            if !c.is_whitespace() {
                (joins, word) = (false, String::new());
            }
            at += 1;
        }
    }
    found
}
