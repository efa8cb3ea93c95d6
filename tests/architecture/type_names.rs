//! A name stands for one type: no two have it, unless both are the same idea.

use crate::sources;
use std::collections::BTreeMap;

/// Names that several types have, with the reason.
const SHARED: &[(&str, &str)] = &[
    ("Capture", "each backend's capture of a stream"),
    ("DeviceLoop", "each backend's resident loop"),
    (
        "Finding",
        "the result of a check, of a machine or of a structure",
    ),
    ("Graph", "each backend's graph"),
];

/// Crates of tests, which may define types as they need.
const OF_TESTS: [&str; 2] = ["crates/conformance/", "crates/test-support/"];

/// The name of the type or trait that a line of code defines.
fn defined(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().peekable();
    words.next_if(|word| word.starts_with("pub"));
    words.next_if(|word| *word == "unsafe");
    let keyword = words.next()?;
    let name = words.next()?;
    let end = name.find(|c: char| !(c.is_alphanumeric() || c == '_'));
    let is_definition = ["struct", "enum", "trait", "union"].contains(&keyword);
    is_definition.then(|| &name[..end.unwrap_or(name.len())])
}

/// Whether a file is of tests.
fn is_of_tests(path: &str) -> bool {
    let is_module = |part: &str| part.trim_end_matches(".rs").ends_with("tests");
    path.split('/').any(is_module) || OF_TESTS.iter().any(|folder| path.starts_with(folder))
}

/// The names of types that several files define, each with the files. What stands behind the first
/// attribute for tests does not count.
fn repeated<'a>(
    sources: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> BTreeMap<&'a str, Vec<&'a str>> {
    let mut files: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (path, text) in sources.into_iter().filter(|(path, _)| !is_of_tests(path)) {
        let is_test =
            |line: &&str| line.contains("#[cfg(test)]") || line.contains("#[cfg(all(test");
        let code = text.lines().take_while(|line| !is_test(line));
        for name in code.filter_map(defined) {
            let files = files.entry(name).or_default();
            if files.last() != Some(&path) {
                files.push(path);
            }
        }
    }
    files.retain(|_, files| files.len() > 1);
    files
}

#[test]
fn a_name_stands_for_one_type() {
    let sources = sources();
    let mut repeated = repeated(sources.iter().map(|(path, text)| (&**path, &**text)));
    for (name, _) in SHARED {
        let is_shared = repeated.remove(name).is_some();
        assert!(
            is_shared,
            "{name} is one type's by now: take it off the list"
        );
    }
    assert!(
        repeated.is_empty(),
        "give these types names of their own: {repeated:#?}"
    );
}

#[test]
fn types_of_one_name_are_found() {
    let text = "pub(super) struct Row<T> {\n}\n#[cfg(test)]\nmod tests { struct Fake; }";
    let sources = [
        ("a/src/one.rs", text),
        ("a/src/two.rs", "enum Row { A }\nfn struct_of() {}"),
        ("b/src/three.rs", "struct Fake;"),
        ("b/src/tests.rs", "struct Row;"),
    ];
    let found = repeated(sources);
    assert_eq!(found.len(), 1);
    assert_eq!(found["Row"], ["a/src/one.rs", "a/src/two.rs"]);
}
