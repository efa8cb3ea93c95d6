//! The folders of `src/` see each other along the arrows of
//! `docs/ARCHITECTURE.md`, and no others.

#[cfg(unix)]
mod build_script;
mod imports;
mod install_lines;
mod public_api;
mod root_examples;
mod unsafe_files;

use imports::Imports;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What each top-level module may name with `crate::`.
const ARROWS: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("record", &["error"]),
    ("workload", &["error", "record"]),
    ("backend", &["error", "record", "later_fields"]),
    ("memory", &["error", "record", "backend", "later_fields"]),
    (
        "replay",
        &[
            "error",
            "record",
            "workload",
            "backend",
            "later_fields",
            "svg",
        ],
    ),
    (
        "pipeline",
        &[
            "error",
            "record",
            "workload",
            "backend",
            "replay",
            "later_fields",
            "svg",
        ],
    ),
    ("svg", &[]),
    ("later_fields", &[]),
    ("structure", &["error", "later_fields"]),
    ("features", &["error", "record", "workload", "structure"]),
    (
        "bench",
        &[
            "error",
            "record",
            "workload",
            "backend",
            "replay",
            "pipeline",
            "structure",
            "features",
            "svg",
        ],
    ),
    (
        "cli",
        &[
            "error",
            "record",
            "workload",
            "backend",
            "replay",
            "pipeline",
            "structure",
            "features",
            "bench",
            "later_fields",
            "svg",
        ],
    ),
];

/// The most files that may import each other in a circle.
const CIRCLE_FILES_MAX: usize = 4;

/// The only file that may start pipeline threads.
const DRIVER: &str = "src/pipeline/driver.rs";

const LINES_MAX: usize = 500;

fn source_files(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            source_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

fn sources() -> Vec<(String, String)> {
    texts("src")
}

/// The Rust files under a folder of the crate, by path, with their text.
fn texts(folder: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    source_files(&root.join(folder), &mut files);
    let relative = |path: &PathBuf| path.strip_prefix(root).unwrap().display().to_string();
    files
        .iter()
        .map(|path| (relative(path), fs::read_to_string(path).unwrap()))
        .collect()
}

/// `src/record/check.rs` and `src/record.rs` are both of module `record`.
fn module(path: &str) -> &str {
    let rest = path.strip_prefix("src/").unwrap();
    rest.split('/').next().unwrap().trim_end_matches(".rs")
}

/// What the files name against the table.
fn wrong_arrows(imports: &Imports) -> Vec<String> {
    let arrows: BTreeMap<_, _> = ARROWS.iter().copied().collect();
    let mut wrong = BTreeSet::new();
    for import in imports.all() {
        let (from, to) = (module(import.from), module(import.to));
        match arrows.get(from) {
            None if from == "lib" => continue,
            None => wrong.insert(format!("{}: {from} has no place in ARROWS", import.from)),
            Some(allowed) if from == to || to == "lib" || allowed.contains(&to) => continue,
            Some(_) => wrong.insert(format!(
                "{}: {from} must not see {}",
                import.from, import.to
            )),
        };
    }
    wrong.into_iter().collect()
}

fn imports() -> (Vec<(String, String)>, Imports) {
    let sources = sources();
    let files = sources.iter().map(|(path, text)| (&**path, &**text));
    let imports = Imports::of(files.filter(|(path, _)| !path.starts_with("src/bin/")));
    (sources, imports)
}

#[test]
fn imports_follow_the_arrows() {
    let wrong = wrong_arrows(&imports().1);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_arrow_is_used() {
    let (_, imports) = imports();
    let all = imports.all();
    let folder = |path: &str| module(path).to_owned();
    let is_used = |from: &str, to: &str| {
        let mut found = all.iter();
        found.any(|import| folder(import.from) == from && folder(import.to) == to)
    };
    let pairs = ARROWS
        .iter()
        .flat_map(|(from, to)| to.iter().map(move |to| (*from, *to)));
    let unused: Vec<_> = pairs.filter(|(from, to)| !is_used(from, to)).collect();
    assert!(unused.is_empty(), "allowed and not used: {unused:?}");
}

#[test]
fn files_import_each_other_in_small_circles_at_most() {
    let (_, imports) = imports();
    let circles = imports.circles(CIRCLE_FILES_MAX);
    let lists: Vec<String> = circles.iter().map(|files| files.join("\n  ")).collect();
    assert!(
        lists.is_empty(),
        "circles of files:\n  {}",
        lists.join("\n\n  ")
    );
}

#[test]
fn the_parser_sees_imports_however_they_are_written() {
    let sources = [
        ("src/lib.rs", "pub mod a; pub mod b; pub use a::Thing;"),
        (
            "src/a/mod.rs",
            "mod deep; pub use deep::Thing; mod tests { use crate::b::In; }",
        ),
        (
            "src/a/deep.rs",
            "use super::super::b::{self, In}; // use crate::c::No;\npub struct Thing;",
        ),
        (
            "src/b.rs",
            "use crate::Thing; pub struct In; #[cfg(test)] mod tests { use super::*; use crate::c::C; }",
        ),
        (
            "src/c/mod.rs",
            "mod x; #[cfg(test)] mod checks; fn f() { let s = \"crate::a::Thing\"; x::run() }",
        ),
        (
            "src/c/x.rs",
            "pub fn run() -> crate::b::In { 'a'; b\"//\"; crate::a::Thing::new(); }",
        ),
        ("src/c/checks.rs", "use crate::a::Thing;"),
    ];
    let imports = Imports::of(sources);
    let mut found: Vec<String> = imports
        .all()
        .iter()
        .filter(|import| !import.is_reexport)
        .map(|import| format!("{} {}", import.from, import.to))
        .collect();
    found.sort();
    found.dedup();
    let expected = [
        "src/a/deep.rs src/b.rs",
        "src/a/mod.rs src/b.rs",
        "src/b.rs src/a/deep.rs",
        "src/c/mod.rs src/c/x.rs",
        "src/c/x.rs src/a/deep.rs",
        "src/c/x.rs src/b.rs",
    ];
    assert_eq!(found, expected);
    assert_eq!(imports.circles(1), [["src/a/deep.rs", "src/b.rs"]]);
}

#[test]
fn only_the_driver_starts_threads() {
    for (path, text) in sources() {
        let pipeline = path.starts_with("src/pipeline/") && path != DRIVER;
        let starts = ["thread::spawn", "thread::Builder", "thread::scope"]
            .iter()
            .any(|start| text.contains(start));
        assert!(
            !(pipeline && starts),
            "{path} starts a thread; only {DRIVER} does"
        );
    }
}

#[test]
fn files_stay_readable() {
    let mut files = sources();
    files.extend(texts("tests"));
    for (path, text) in files {
        let lines = text.lines().count();
        let slack = if path.starts_with("src/") { 50 } else { 0 };
        assert!(
            lines <= LINES_MAX + slack,
            "{path} has {lines} lines; split it by what it answers"
        );
    }
}
