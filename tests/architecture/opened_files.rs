//! Which files of the sources open files and print, and how.

use super::{sources, texts};
use std::collections::BTreeMap;

/// Ways to create a file or to open one for writing. `open_to_write` of crates/files refuses links and FIFOs.
const WRITES: &[&str] = &[
    "File::create",
    "fs::write(",
    "OpenOptions",
    "File::options(",
    "fs::copy(",
    "generate_to(",
];

/// Where they may be, and why.
const WRITERS: &[(&str, &str)] = &[
    ("crates/files/src/files.rs", "`open_to_write` itself"),
    ("crates/files/src/reading.rs", "opens for reading alone"),
    (
        "crates/engine/src/backend/cuda/cache.rs",
        "a new file in a folder that only the user may write to",
    ),
    ("crates/cli/src/fuzzing.rs", "fuzzing"),
];

/// Who calls `open_to_write`.
const CALLERS: &[&str] = &[
    "crates/bench/src/record.rs",
    "crates/cli/src/bin/tapeloop/new_kernel.rs",
    "crates/cli/src/bin/tapeloop/validate/dump.rs",
    "crates/cli/src/output/mod.rs",
    "crates/cli/src/output/resume.rs",
    "crates/files/src/files.rs",
    "crates/files/src/lock.rs",
];

/// Ways to read a file that wait for a FIFO, or that have no limit.
const READS: &[&str] = &["File::open(", "fs::read(", "fs::read_to_string("];

/// Where they may be, and why.
const READERS: &[(&str, &str)] = &[
    ("crates/files/src/files.rs", "opens a folder"),
    ("crates/structure/src/reader.rs", "an input may be a stream"),
    ("crates/structure/src/topology.rs", "of a library's caller"),
    ("crates/engine/src/backend/cuda/cache.rs", "has a limit"),
    ("crates/engine/src/backend/worker/serve.rs", "/dev/null"),
    (
        "crates/engine/src/backend/cuda/devices.rs",
        "the system's files",
    ),
    ("crates/engine/src/backend/cpu/mod.rs", "the system's files"),
    ("crates/cli/src/core_time.rs", "the system's files"),
    (
        "crates/cli/src/bin/tapeloop/run_end.rs",
        "the system's files",
    ),
    ("crates/bench/src/machine.rs", "the system's files"),
];

/// The files of the program and its libraries that use one of these `ways` outside of tests.
pub(super) fn users(ways: &[&str]) -> Vec<String> {
    let is_test = |path: &str| {
        let is_of_tests = ["crates/test-support/", "crates/conformance/"];
        is_of_tests.iter().any(|start| path.starts_with(start))
            || path.ends_with("tests.rs")
            || path.contains("/tests/")
    };
    let mut sources: BTreeMap<String, String> = sources().into_iter().collect();
    sources.extend(texts("python/src"));
    let uses = |text: &str| {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let code = code.split("#[cfg(all(test").next().unwrap_or_default();
        let mut lines = code.lines().map(str::trim);
        lines.any(|line| !line.starts_with("//") && ways.iter().any(|way| has_word(line, way)))
    };
    let found = sources
        .iter()
        .filter(|(path, text)| !is_test(path) && uses(text));
    found.map(|(path, _)| path.clone()).collect()
}

/// Whether `word` is in the line, and not as the end of a longer word.
fn has_word(line: &str, word: &str) -> bool {
    let is_inside = |c: char| c.is_alphanumeric() || c == '_';
    let mut places = line.match_indices(word);
    places.any(|(place, _)| !line[..place].ends_with(is_inside))
}

pub(super) fn check(ways: &[&str], allowed: &[(&str, &str)], instead: &str) {
    let allowed: Vec<&str> = allowed.iter().map(|(path, _)| *path).collect();
    let users = users(ways);
    let wrong: Vec<_> = users
        .iter()
        .filter(|path| !allowed.contains(&&***path))
        .collect();
    assert!(
        wrong.is_empty(),
        "{wrong:#?} use one of {ways:?}; {instead}"
    );
    let unused: Vec<_> = allowed
        .iter()
        .filter(|path| !users.iter().any(|user| user == **path))
        .collect();
    assert!(unused.is_empty(), "{unused:#?} use none of {ways:?}");
}

#[test]
fn files_are_written_through_one_function() {
    check(
        WRITES,
        WRITERS,
        "call tapeloop_files::open_to_write or replace",
    );
    assert_eq!(users(&["open_to_write("]), CALLERS);
}

#[test]
fn files_are_read_with_a_limit_and_without_waiting() {
    check(
        READS,
        READERS,
        "call tapeloop_files::open_file or open_stream",
    );
}

/// Ways to print.
const PRINTS: &[&str] = &[
    "println!(",
    "print!(",
    "eprintln!(",
    "eprint!(",
    "stdout().lock()",
    "stderr().lock()",
    "stderr().write",
    "stdout().write",
    "std::io::stdout();",
    "stdout().as_fd()",
    "stderr().as_fd()",
];

/// Where they may be, and why.
const PRINTERS: &[(&str, &str)] = &[
    (
        "crates/cli/src/terminal.rs",
        "escapes control characters of all that the program prints",
    ),
    (
        "crates/cli/src/bin/tapeloop/log.rs",
        "escapes those of the log, but for its colours",
    ),
    (
        "crates/cli/src/bin/tapeloop/paint/target.rs",
        "a painted file, through `for_terminal`",
    ),
    (
        "crates/cli/src/tables/part_file.rs",
        "tables, through `for_terminal` if they are text",
    ),
    (
        "crates/cli/src/tables/terminal_table.rs",
        "cells, which are escaped one by one",
    ),
    (
        "crates/engine/src/backend/worker/supervisor.rs",
        "the standard error of a worker process, which is this program",
    ),
];

#[test]
fn texts_reach_the_terminal_through_the_functions_that_escape_them() {
    check(
        PRINTS,
        PRINTERS,
        "call `say` or `complain` of crates/cli/src/terminal.rs",
    );
}
