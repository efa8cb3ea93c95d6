//! The version stands in `[workspace.package]` of `Cargo.toml`. The crates, the wheel, the archive and the
//! Debian package take it from there; the places that cannot are compared here.

use crate::{ROOT, source_folders};
use std::fs;
use std::path::Path;

/// The workspace's, as this crate has it.
const VERSION: &str = env!("CARGO_PKG_VERSION");

fn read(name: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(name)).unwrap()
}

/// The crates of this workspace among its dependencies whose lines require another version.
fn other_versions<'a>(manifest: &'a str, version: &str) -> Vec<&'a str> {
    let lines = manifest.lines().filter(|line| line.starts_with("tapeloop"));
    let required = format!("version = \"{version}\"");
    lines
        .filter(|line| line.contains("version = ") && !line.contains(&required))
        .collect()
}

/// The newest version that a changelog describes; `None` if it is not released yet.
fn newest_release(changelog: &str) -> Option<&str> {
    let heading = changelog.lines().find_map(|line| line.strip_prefix("## "));
    let heading = heading.expect("a heading");
    (heading != "Unreleased").then(|| heading.split(' ').next().unwrap())
}

#[test]
fn every_crate_has_the_version_of_the_workspace() {
    let folders = source_folders();
    let crates = folders.iter().map(|folder| folder.trim_end_matches("src"));
    for folder in crates.chain(["python/", "tests/"]) {
        let manifest = read(&format!("{folder}Cargo.toml"));
        let inherits = manifest.contains("\nversion.workspace = true\n");
        assert!(inherits, "{folder}Cargo.toml: version.workspace = true");
    }
}

#[test]
fn places_that_state_the_version_state_that_of_the_workspace() {
    // Cargo takes 0.1.0 for 0.1.1, and the packages would then accept each other's old versions.
    let manifest = read("Cargo.toml");
    let others = other_versions(&manifest, VERSION);
    assert!(others.is_empty(), "Cargo.toml: not {VERSION}: {others:?}");
    let citation = format!("\nversion: {VERSION}\n");
    assert!(read("CITATION.cff").contains(&citation), "CITATION.cff");
    let newest = newest_release(&read("CHANGELOG.md")).map(str::to_owned);
    assert!(
        newest.is_none_or(|newest| newest == VERSION),
        "CHANGELOG.md"
    );
    let wheel = read("python/pyproject.toml");
    assert!(
        wheel.contains("\ndynamic = [\"version\"]\n"),
        "pyproject.toml"
    );
}

#[test]
fn an_old_version_is_found() {
    let manifest = "version = \"0.2.0\"\ntapeloop = { path = \".\", version = \"0.1.0\" }\n";
    assert_eq!(other_versions(manifest, "0.2.0").len(), 1);
    assert!(other_versions(manifest, "0.1.0").is_empty());
    let changelog = "# Changelog\n\n## 0.2.0 (2026-12-01)\n\n## 0.1.0\n";
    assert_eq!(newest_release(changelog), Some("0.2.0"));
    assert_eq!(newest_release("## Unreleased\n\n## 0.1.0\n"), None);
}
