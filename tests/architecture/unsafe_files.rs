//! Unsafe code is where `docs/UNSAFE.md` says, and nowhere else.

use crate::sources;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Whether a line of code, its comment aside, has the word.
fn is_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    code.split(|c| !is_word(c)).any(|word| word == "unsafe")
}

#[test]
fn unsafe_code_is_where_the_document_says() {
    let root = Path::new(super::ROOT);
    let found: BTreeSet<String> = sources()
        .into_iter()
        .filter(|(_, text)| text.lines().any(is_unsafe))
        .map(|(path, _)| path)
        .collect();
    let document = fs::read_to_string(root.join("docs/UNSAFE.md")).unwrap();
    let listed: BTreeSet<String> = document
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .map(str::to_owned)
        .collect();
    assert_eq!(found, listed, "left: the sources; right: docs/UNSAFE.md");
}

#[test]
fn the_scan_tells_code_from_comments_and_other_words() {
    assert!(is_unsafe("    let x = unsafe { read() };"));
    assert!(is_unsafe("unsafe impl Send for X {} // why"));
    assert!(!is_unsafe("// unsafe"));
    assert!(!is_unsafe("#![forbid(unsafe_code)]"));
}
