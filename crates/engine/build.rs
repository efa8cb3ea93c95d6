//! Checks that at most one version of the CUDA bindings is chosen.

use std::env;

const VERSIONS: [&str; 6] = ["12040", "12050", "12060", "12080", "12090", "13000"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is_chosen =
        |version: &&&str| env::var_os(format!("CARGO_FEATURE_CUDA_{version}")).is_some();
    // With `cuda` alone another crate of the build chooses the version, which cudarc checks.
    let chosen = VERSIONS.iter().filter(is_chosen);
    let chosen: Vec<String> = chosen.map(|version| format!("cuda-{version}")).collect();
    if chosen.len() > 1 {
        println!(
            "cargo::error=the features {} exclude each other; the program chooses one of them, \
             and libraries choose `cuda`",
            chosen.join(" and ")
        );
    }
}
