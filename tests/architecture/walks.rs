//! The tables of READMEs that lead through the code name files that exist, and functions and types of them.

use crate::{ROOT, files_under};
use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// The texts between backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// The words of a text that can be part of a name.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !(letter.is_alphanumeric() || letter == '_'))
        .filter(|word| !word.is_empty())
}

/// What is wrong in a row `| what happens | files | names |`; `read` returns the text of a file.
fn mistakes(row: &str, read: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
    let [_, files, names] = cells[..] else {
        return Vec::new();
    };
    let mut mistakes = Vec::new();
    let mut known = HashSet::new();
    let files: Vec<&str> = quoted(files)
        .into_iter()
        .filter(|file| file.ends_with(".rs"))
        .collect();
    for file in &files {
        match read(file) {
            Some(text) => known.extend(words(&text).map(str::to_owned)),
            None => mistakes.push(format!("there is no file {file}")),
        }
    }
    if !files.is_empty() {
        let named = quoted(names).into_iter().flat_map(words);
        let unknown = named.filter(|word| !known.contains(*word));
        mistakes.extend(unknown.map(|word| format!("{word} is not in {}", files.join(", "))));
    }
    mistakes
}

#[test]
fn tables_of_readmes_name_what_exists() {
    let mut paths = Vec::new();
    files_under(
        Path::new(ROOT),
        &|path| path.ends_with("README.md"),
        &mut paths,
    );
    let mut wrong = Vec::new();
    for path in paths {
        let folder = path.parent().unwrap();
        let read = |file: &str| {
            let inside = fs::read_to_string(folder.join("src").join(file));
            inside
                .or_else(|_| fs::read_to_string(folder.join(file)))
                .ok()
        };
        let text = fs::read_to_string(&path).unwrap();
        for (line, row) in text.lines().enumerate() {
            let mistakes = mistakes(row, &read).into_iter();
            wrong.extend(mistakes.map(|it| format!("{}:{}: {it}", path.display(), line + 1)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_name_that_is_gone_is_noticed() {
    let read = |file: &str| (file == "a.rs").then(|| "impl List { fn next() {} }".to_owned());
    let mistakes = |row: &str| mistakes(row, &read);
    assert_eq!(mistakes("| listed | `a.rs` | `List::next` |"), [""; 0]);
    assert_eq!(
        mistakes("| listed | `a.rs` | `List::advance` |"),
        ["advance is not in a.rs"]
    );
    assert_eq!(
        mistakes("| listed | `a.rs`, `b.rs` | `List` |"),
        ["there is no file b.rs"]
    );
}
