//! Every text that the program and the libraries may print, as `messages.txt` lists them by file: errors
//! and their fixes, warnings, notes, progress, summaries and reports. A person can read all of them in one
//! go, and a change of a text shows as a change of that file. So the other tests check the kind, the place
//! and the cause of an error, and leave its wording to the list.
//!
//! A message is a string literal of at least two words, outside of tests, attributes and comments. Not
//! listed are texts that only a bug prints ([`BUGS`]), descriptions of features and columns, which a test
//! compares with `docs/config/feature-reference.md`, the help of the command line, and literals in
//! another language, such as style sheets.

mod literals;

use crate::{sources, texts};
use literals::{Literal, Literals, python_literals, rust_literals};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Calls and macros whose text appears only if tapeloop has a bug.
const BUGS: &[&str] = &[
    "assert",
    "assert_eq",
    "assert_ne",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "expect",
    "expect_err",
    "panic",
    "todo",
    "unimplemented",
    "unreachable",
];

/// The fields of a feature's description.
const DESCRIPTIONS: &[&str] = &["summary", "formula", "source"];

/// Folders with descriptions of features and columns, which are sentences; messages begin with a small
/// letter.
const DESCRIBED: &[&str] = &["src/features/", "crates/cli/src/tables/"];

/// Files without a message: parts of tests, generated code and drawings.
const WITHOUT: &[&str] = &["build.rs", "crates/svg/", "crates/test-support/"];

/// CSS classes of the drawings.
const CLASSES: &[&str] = &[
    "bar", "break", "chain", "dashed", "end", "headline", "mark", "middle", "name", "other",
    "quiet", "second", "section", "shade", "small", "strong", "text", "thick",
];

/// Calls whose text is a part of a message, and what the list shows before that text.
const PARTS: &[(&str, &str)] = &[("fix", "    fix: "), ("within", "    in: ")];

/// The entry of the list for a literal of a file, if it is a message.
fn entry(path: &str, literal: &Literal) -> Option<String> {
    let (text, calls) = (&*literal.text, &literal.calls);
    let is_in = |names: &[&str]| calls.iter().any(|call| names.contains(&&**call));
    let described = DESCRIBED.iter().any(|folder| path.starts_with(folder));
    let is_sentence = text.starts_with(char::is_uppercase) && text.ends_with('.');
    let is_description = described && (is_sentence || is_in(DESCRIPTIONS));
    if is_in(BUGS) || is_description || is_code(text) || !is_prose(text) {
        return None;
    }
    let part = calls.iter().rev().find_map(|call| {
        let mut parts = PARTS.iter();
        parts.find(|(name, _)| name == call)
    });
    let start = part.map_or("  ", |(_, start)| *start);
    let next_line = format!("\n{}| ", " ".repeat(start.len()));
    let text = text.trim_end_matches('\n');
    Some(format!("{start}{}", text.replace('\n', &next_line)))
}

/// Whether a text is a style sheet, markup, or code.
fn is_code(text: &str) -> bool {
    let ends_statement = |line: &str| line.ends_with([';', '{']) || line.ends_with(" }");
    text.starts_with('<')
        || text.contains(": ") && text.lines().any(ends_statement)
        || text.contains("import ")
        || text.contains("\n_atom_site.")
        || text.starts_with("cargo::rerun")
        || text
            .split_whitespace()
            .all(|word| CLASSES.contains(&word) || word == "{}" || word == "{ink}")
}

/// Whether a text has two words or more, counting placeholders, and one that is no placeholder.
fn is_prose(text: &str) -> bool {
    const PLACEHOLDER: char = '\u{0}';
    let (mut shown, mut depth) = (String::new(), 0_u32);
    for c in text.chars() {
        match c {
            '{' => {
                depth += 1;
                shown.push(PLACEHOLDER);
            }
            '}' => depth = depth.saturating_sub(1),
            _ if depth == 0 => shown.push(c),
            _ => {}
        }
    }
    let counts = |word: &&str| word.contains(|c: char| c == PLACEHOLDER || c.is_alphabetic());
    let is_word = |word: &str| {
        let word = word.trim_matches(|c: char| c.is_ascii_punctuation());
        let mut chars = word.chars();
        word.chars().count() > 1 && chars.all(|c| c.is_alphabetic() || "-'".contains(c))
    };
    shown.split_whitespace().filter(counts).count() > 1 && shown.split_whitespace().any(is_word)
}

/// Whether a file belongs to a module that is compiled for tests alone; `modules` are paths without
/// extensions.
fn is_for_tests(path: &str, modules: &BTreeSet<String>) -> bool {
    let module = path.trim_end_matches(".rs").trim_end_matches("/mod");
    let mut parents = module.match_indices('/').map(|(at, _)| &module[..at]);
    modules.contains(module) || parents.any(|parent| modules.contains(parent))
}

/// The list of the messages of sources, given by path and text.
fn list<'a>(sources: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let read: Vec<(&str, Literals)> = sources
        .into_iter()
        .filter(|(path, _)| !WITHOUT.iter().any(|start| path.starts_with(start)))
        .map(|(path, text)| {
            if path.ends_with(".py") {
                (path, python_literals(text))
            } else {
                (path, rust_literals(text))
            }
        })
        .collect();
    let mut tests = BTreeSet::new();
    for (path, found) in &read {
        let module = path.trim_end_matches(".rs");
        let mut names = ["/mod", "/lib", "/main"].iter();
        let folder = names
            .find_map(|name| module.strip_suffix(name))
            .unwrap_or(module);
        let modules = found.test_modules.iter();
        tests.extend(modules.map(|name| format!("{folder}/{name}")));
    }
    let mut list = String::new();
    for (path, found) in read.iter().filter(|(path, _)| !is_for_tests(path, &tests)) {
        let entries: Vec<String> = found.all.iter().filter_map(|it| entry(path, it)).collect();
        if !entries.is_empty() {
            list += &format!("{path}\n{}\n\n", entries.join("\n"));
        }
    }
    list.truncate(list.trim_end().len());
    list + "\n"
}

/// The lines of a list, each with the file that it belongs to.
fn lines(list: &str) -> Vec<(&str, &str)> {
    let mut path = "";
    let mut lines = Vec::new();
    for line in list.lines().filter(|line| !line.is_empty()) {
        if line.starts_with(' ') {
            lines.push((path, line))
        } else {
            path = line
        }
    }
    lines
}

/// The lines that only one of two lists has, or has more often, by file.
fn differences(listed: &str, found: &str) -> String {
    let (listed, found) = (lines(listed), lines(found));
    let missing = |from: &[(&str, &str)], of: &[(&str, &str)], sign: char| -> Vec<String> {
        let mut rest = from.to_vec();
        let mut missing = Vec::new();
        for line in of {
            match rest.iter().position(|other| other == line) {
                Some(at) => drop(rest.remove(at)),
                None => missing.push(format!("{sign} {}: {}", line.0, line.1.trim_start())),
            }
        }
        missing
    };
    let mut differences = missing(&found, &listed, '-');
    differences.extend(missing(&listed, &found, '+'));
    differences.join("\n")
}

#[test]
fn the_messages_are_the_listed_ones() {
    let root = Path::new(super::ROOT);
    let mut files = sources();
    for folder in ["build", "python/src"] {
        files.extend(texts(folder));
    }
    for entry in fs::read_dir(root.join("python/pytapeloop")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "py") {
            let relative = path.strip_prefix(root).unwrap().display().to_string();
            files.push((relative, fs::read_to_string(&path).unwrap()));
        }
    }
    files.sort();
    let found = list(files.iter().map(|(path, text)| (&**path, &**text)));
    let file = root.join("tests/architecture/messages.txt");
    if std::env::var_os("TAPELOOP_BLESS").is_some() {
        fs::write(&file, &found).unwrap();
    }
    let listed = fs::read_to_string(&file).unwrap();
    assert!(
        listed == found,
        "messages have changed:\n{}\nRead the new ones as a user who sees no more than that line. Then write \
         the list anew:\nTAPELOOP_BLESS=1 cargo test --test architecture messages",
        differences(&listed, &found)
    );
}

#[test]
fn a_message_is_listed_with_its_fix_and_without_tests_and_descriptions() {
    let source = r##"
        //! A comment with words.
        #![doc = "An attribute with words"]
        #[command(about = "the help of a command")]
        mod helpers;
        #[cfg(test)] mod checks;
        fn refuse(name: &str) -> Error {
            let (class, one, letter) = ("text small", "word", '"');
            let about = About { summary: "What is described.", formula: "of the field" };
            debug_assert!(true, "a bug of ours"); map.get(0).expect("the map has it");
            Error::input(format!("{name} has \"no\" \
                chain")).fix(match one { _ => r#"name the "chain""#, }).within(|| format!("line {line}"))
        }
        #[cfg(test)] mod tests { #[test] fn a() { fails("in a test"); } }
        fn last<'a>() { println!("two\nlines here"); style("a { color: red;\n b: c }") }
    "##;
    let python = "
def f():
    \"\"\"Words of documentation.\"\"\"
    # A comment with \"some words\".
    raise ValueError(f\"{name!r} is no \" 'number' )
";
    let found = list([
        ("python/a.py", python),
        ("src/features/a/checks.rs", "fn f() { say(\"of a test\") }"),
        (
            "src/features/a/helpers.rs",
            "fn f() { say(\"no\", \"of a helper\") }",
        ),
        ("src/features/a/mod.rs", source),
    ]);
    let expected = r#"python/a.py
  {name!r} is no number

src/features/a/helpers.rs
  of a helper

src/features/a/mod.rs
  {name} has "no" chain
    fix: name the "chain"
    in: line {line}
  two
  | lines here
"#;
    assert_eq!(found, expected);
    let changed = differences(&found, &expected.replace("of a helper", "of helpers"));
    assert_eq!(
        changed,
        "- src/features/a/helpers.rs: of a helper\n+ src/features/a/helpers.rs: of helpers"
    );
}
