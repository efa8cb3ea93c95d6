//! Every name at the root of the engine has an example in its documentation that `cargo test` runs.

use crate::sources;

/// The names that a `lib.rs` re-exports.
fn root_names(lib: &str) -> Vec<&str> {
    let uses = lib.split("\npub use ").skip(1);
    let names = uses.filter_map(|rest| rest.split_once("::{")?.1.split_once("};"));
    names
        .flat_map(|(names, _)| names.split(','))
        .map(str::trim)
        // Behind the last comma.
        .filter(|name| !name.is_empty())
        .collect()
}

/// Whether the line defines the item or is where a macro gets its name.
fn defines(line: &str, name: &str) -> bool {
    let line = line.trim_start();
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let line = line.strip_prefix("unsafe ").unwrap_or(line);
    let kinds = ["struct ", "enum ", "trait ", "type "];
    let rest = kinds.iter().find_map(|kind| line.strip_prefix(kind));
    let rest = rest.unwrap_or(line).strip_prefix(name);
    rest.is_some_and(|rest| rest.starts_with(['<', '(', ':', ' ']) && !rest.contains("=>"))
}

/// Whether the documentation in front of the item has an example that runs.
fn has_example(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    let is_doc = |line: &&&str| {
        let line = line.trim_start();
        line.starts_with("///") || line.starts_with("#[")
    };
    let fences = ["/// ```", "#[doc = \"```\"]"];
    lines.iter().enumerate().any(|(at, line)| {
        let docs = lines[..at].iter().rev().take_while(is_doc);
        defines(line, name) && docs.filter(|doc| fences.contains(&doc.trim())).count() >= 2
    })
}

#[test]
fn names_at_the_root_have_examples_that_run() {
    let sources = sources();
    let lib = sources
        .iter()
        .find(|(path, _)| path == "crates/engine/src/lib.rs");
    let names = root_names(&lib.expect("the crate's root").1);
    assert!(names.contains(&"Engine") && names.contains(&"Workload"));
    let missing: Vec<&&str> = names
        .iter()
        .filter(|name| !sources.iter().any(|(_, text)| has_example(text, name)))
        .collect();
    assert!(missing.is_empty(), "without an example: {missing:?}");
}

#[test]
fn an_example_stands_in_front_of_its_item_and_runs() {
    let example =
        "/// A thing.\n///\n/// ```\n/// let x = 1;\n/// ```\n#[derive(Debug)]\npub struct";
    assert!(has_example(&format!("{example} Thing {{}}"), "Thing"));
    assert!(!has_example(
        &format!("{example} Other {{}}\npub struct Thing;"),
        "Thing"
    ));
    let skipped = example.replacen("```", "```no_run", 1);
    assert!(!has_example(&format!("{skipped} Thing {{}}"), "Thing"));
    assert!(!has_example("/// A thing.\npub struct Thing {}", "Thing"));
}
