//! What holds for all crates and no compiler checks: which folders of a crate see each other, the
//! public names, the texts of messages, the files with unsafe code, the length of files, and the version.

#[cfg(unix)]
mod build_script;
mod imports;
mod install_lines;
mod messages;
mod opened_files;
mod public_api;
mod root_examples;
mod threads;
mod type_names;
mod unsafe_files;
mod versions;
mod walks;

use imports::Imports;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// For each folder of a crate the others that it may name.
type Arrows = &'static [(&'static str, &'static [&'static str])];

/// What the folders of a crate may name of each other, where a crate has an order of its own. Cargo keeps
/// crates apart.
const ARROWS: &[(&str, Arrows)] = &[(
    "crates/engine/src",
    &[
        ("record", &[]),
        ("backend", &["record"]),
        ("memory", &["record", "backend"]),
        ("workload", &["record", "backend", "memory"]),
        ("replay", &["record", "workload", "backend"]),
        (
            "pipeline",
            &["record", "workload", "backend", "memory", "replay"],
        ),
    ],
)];

/// The most files that may import each other in a circle.
const CIRCLE_FILES_MAX: usize = 4;

/// The only file that may start pipeline threads.
const DRIVER: &str = "crates/engine/src/pipeline/driver.rs";

const LINES_MAX: usize = 600;

/// Adds the files under a folder whose paths `keeps` is true for, sorted. Leaves out build folders and hidden ones.
fn files_under(folder: &Path, keeps: &dyn Fn(&Path) -> bool, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            files_under(&path, keeps, files);
        } else if keeps(&path) {
            files.push(path);
        }
    }
}

/// The folders of sources: those of all crates but the program, the package and the crate of tests.
fn source_folders() -> Vec<String> {
    let root = Path::new(ROOT);
    let crates = fs::read_dir(root.join("crates")).unwrap();
    let names = crates.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut folders: Vec<String> = names.map(|name| format!("crates/{name}/src")).collect();
    folders.push("src".to_owned());
    folders.sort();
    folders
}

/// The sources of all crates, by path, with their text.
fn sources() -> Vec<(String, String)> {
    source_folders().iter().flat_map(|it| texts(it)).collect()
}

/// The Rust files under a folder of the repository, by path, with their text.
fn texts(folder: &str) -> Vec<(String, String)> {
    let root = Path::new(ROOT);
    let mut files = Vec::new();
    let is_rust = |path: &Path| path.extension().is_some_and(|extension| extension == "rs");
    files_under(&root.join(folder), &is_rust, &mut files);
    let relative = |path: &PathBuf| path.strip_prefix(root).unwrap().display().to_string();
    files
        .iter()
        .map(|path| (relative(path), fs::read_to_string(path).unwrap()))
        .collect()
}

/// The files of a source folder import these of each other.
fn imports(folder: &str) -> Imports {
    let sources = texts(folder);
    let inside = |path: &str| path.strip_prefix(folder).map(|rest| format!("src{rest}"));
    let files: Vec<(String, &str)> = sources
        .iter()
        .filter_map(|(path, text)| Some((inside(path)?, &**text)))
        .filter(|(path, _)| !path.starts_with("src/bin/"))
        .collect();
    Imports::of(files.iter().map(|(path, text)| (&**path, *text)))
}

/// `src/record/check.rs` and `src/record.rs` are both of module `record`.
fn module(path: &str) -> &str {
    let rest = path.strip_prefix("src/").unwrap();
    rest.split('/').next().unwrap().trim_end_matches(".rs")
}

/// What the files of a crate name against its table.
fn wrong_arrows(imports: &Imports, arrows: Arrows) -> Vec<String> {
    let arrows: BTreeMap<_, _> = arrows.iter().copied().collect();
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

#[test]
fn imports_follow_the_arrows() {
    for (folder, arrows) in ARROWS {
        let wrong = wrong_arrows(&imports(folder), arrows);
        assert!(wrong.is_empty(), "{folder}:\n{}", wrong.join("\n"));
    }
}

#[test]
fn every_arrow_is_used() {
    for (folder, arrows) in ARROWS {
        let imports = imports(folder);
        let all = imports.all();
        let is_used = |from: &str, to: &str| {
            let mut found = all.iter();
            found.any(|import| module(import.from) == from && module(import.to) == to)
        };
        let pairs = arrows
            .iter()
            .flat_map(|(from, to)| to.iter().map(move |to| (*from, *to)));
        let unused: Vec<_> = pairs.filter(|(from, to)| !is_used(from, to)).collect();
        assert!(
            unused.is_empty(),
            "{folder}: allowed and not used: {unused:?}"
        );
    }
}

#[test]
fn files_import_each_other_in_small_circles_at_most() {
    for folder in source_folders() {
        let imports = imports(&folder);
        let circles = imports.circles(CIRCLE_FILES_MAX);
        let lists: Vec<String> = circles.iter().map(|files| files.join("\n  ")).collect();
        assert!(
            lists.is_empty(),
            "circles of files of {folder}:\n  {}",
            lists.join("\n\n  ")
        );
    }
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
        let pipeline = path.starts_with("crates/engine/src/pipeline/") && path != DRIVER;
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
    let tests = source_folders().into_iter();
    let tests = tests.filter_map(|it| Some(format!("{}/tests", it.strip_suffix("/src")?)));
    let root = Path::new(ROOT);
    let tests = tests.filter(|folder| root.join(folder).is_dir());
    files.extend(tests.flat_map(|folder| texts(&folder)));
    for (path, text) in files {
        let lines = text.lines().count();
        assert!(
            lines <= LINES_MAX,
            "{path} has {lines} lines; split it by what it answers"
        );
    }
}
