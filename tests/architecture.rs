//! The folders of `src/` see each other along the arrows of
//! `docs/ARCHITECTURE.md`, and no others.

use std::fs;
use std::path::{Path, PathBuf};

/// What each top-level module may name with `crate::`.
const ARROWS: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("svg", &[]),
    ("record", &["error"]),
    ("workload", &["error", "record"]),
    ("backend", &["error", "record", "workload"]),
    ("memory", &["error", "record", "backend"]),
    ("replay", &["error", "record", "workload", "backend"]),
    (
        "pipeline",
        &[
            "error", "svg", "record", "workload", "backend", "memory", "replay",
        ],
    ),
    ("structure", &["error", "record", "workload"]),
    ("features", &["error", "record", "workload", "structure"]),
    (
        "bench",
        &[
            "error",
            "svg",
            "record",
            "workload",
            "backend",
            "replay",
            "pipeline",
            "structure",
            "features",
        ],
    ),
    (
        "cli",
        &[
            "error",
            "svg",
            "record",
            "workload",
            "backend",
            "replay",
            "pipeline",
            "structure",
            "features",
            "bench",
        ],
    ),
    ("bin", &[]),
    ("lib", &[]),
];

/// Names at the crate's root that every module may use.
const ROOT: &[&str] = &["Error", "ErrorKind", "ErrorScope", "Result"];

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
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    source_files(&root.join("src"), &mut files);
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

/// The modules that a line names: `crate::a::b` and `crate::{a, b::c}`.
fn named(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, _) in text.match_indices("crate::") {
        let rest = &text[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let mut depth = 1;
            let mut start = true;
            for (i, c) in group.char_indices() {
                match c {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    ',' if depth == 1 => start = true,
                    c if start && !c.is_whitespace() => {
                        names.push(identifier(&group[i..]));
                        start = false;
                    }
                    _ => {}
                }
                if depth == 0 {
                    break;
                }
            }
        } else {
            names.push(identifier(rest));
        }
    }
    names
}

fn identifier(text: &str) -> String {
    text.chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}

/// What a file names against the table.
fn wrong_arrows(path: &str, text: &str) -> Vec<String> {
    let own = module(path);
    let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == own) else {
        return vec![format!(
            "{path}: module {own} has no place in the table of arrows"
        )];
    };
    // `super` that leaves the module's own folder is another way to name others.
    let depth = path.matches('/').count() - usize::from(path.ends_with("/mod.rs"));
    let climb = format!("{}::", vec!["super"; depth].join("::"));
    let climbs = text
        .match_indices(&climb)
        .map(|(at, _)| identifier(&text[at + climb.len()..]));
    let names = named(text).into_iter().chain(climbs);
    names
        .filter(|name| {
            let macros = text.contains(&format!("macro_rules! {name}"));
            let fine = name.is_empty()
                || name == own
                || allowed.contains(&name.as_str())
                || ROOT.contains(&&**name);
            !macros && !fine
        })
        .map(|name| format!("{path}: {own} must not see {name}"))
        .collect()
}

#[test]
fn imports_follow_the_arrows() {
    let wrong: Vec<_> = sources()
        .iter()
        .flat_map(|(path, text)| wrong_arrows(path, text))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_wrong_arrow_is_seen() {
    let wrong = |path: &str, text: &str| wrong_arrows(path, text).len();
    assert_eq!(
        wrong("src/structure/pdb.rs", "use crate::pipeline::Engine;"),
        1
    );
    assert_eq!(
        wrong(
            "src/record/mod.rs",
            "use crate::{error::Error, backend::{Op, DeviceSlot}};"
        ),
        1
    );
    assert_eq!(wrong("src/structure/mod.rs", "use super::pipeline;"), 1);
    assert_eq!(
        wrong(
            "src/features/cpu/near.rs",
            "use super::super::super::backend::Op;"
        ),
        1
    );
    assert_eq!(
        wrong(
            "src/features/cpu/near.rs",
            "use super::super::layout::Tile;"
        ),
        0
    );
    assert_eq!(wrong("src/elsewhere/mod.rs", ""), 1);
    assert_eq!(
        wrong(
            "src/pipeline/slot.rs",
            "use crate::backend::DeviceSlot;\nuse super::ring;"
        ),
        0
    );
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

/// The twins of these are with the benches.
const BENCH_KERNELS: &str = "bench";

#[test]
fn every_twin_mirrors_a_kernel_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut kernels = 0;
    for entry in fs::read_dir(root.join("kernels")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "cu") {
            let stem = path.file_stem().unwrap().to_str().unwrap();
            if stem == BENCH_KERNELS {
                continue;
            }
            let twin = root.join(format!("src/features/cpu/{stem}.rs"));
            let text = fs::read_to_string(&twin).unwrap_or_default();
            assert!(
                text.contains(&format!("fn {stem}(")),
                "{} lacks fn {stem}",
                twin.display()
            );
            kernels += 1;
        }
    }
    assert!(kernels > 0);
}

#[test]
fn files_stay_readable() {
    for (path, text) in sources() {
        let lines = text.lines().count();
        assert!(
            lines <= LINES_MAX + 50,
            "{path} has {lines} lines; split it by what it answers"
        );
    }
}
