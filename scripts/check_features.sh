#!/usr/bin/env bash
# Lints every feature set that the crate promises, warnings denied: the library of each set, and
# all targets of the default set. The CUDA versions exclude each other, so `--all-features` is not
# among them.
set -euo pipefail
cd "$(dirname "$0")/.."

# Lints need no kernels, which take minutes to compile; the tests do.
export NVCC=none

sets=(
    ""                          # the engine alone
    "cuda-12040"                # the engine with CUDA
    "supervise,cuda-12040"      # with the device in a worker process
    "nvtx,cuda-12040"           # with ranges for Nsight Systems
    "structure"                 # the readers
    "features"                  # the built-in workload, without Arrow
    "features,cuda-13000"
    "bench,cuda-12040"          # benchmarks, without the program
    "cli"                       # the program, without CUDA
    "cli,nvtx,cuda-12040"
    "cuda,cudarc/cuda-13010"    # as a library selects it, next to a crate that selects a version
)
for set in "${sets[@]}"; do
    echo "== features: ${set:-none}"
    cargo clippy --quiet --locked --lib --no-default-features --features "$set" -- -D warnings
done

echo "== all targets of the default set"
cargo clippy --quiet --locked --all-targets -- -D warnings
cargo clippy --quiet --locked --package tapeloop-python --all-targets -- -D warnings
# The one test that no default feature compiles.
cargo clippy --quiet --locked --test nvtx --features nvtx -- -D warnings

# The first and the last version are in the sets.
versions=(12050 12060 12080 12090)
for version in "${versions[@]}"; do
    echo "== cuda-$version"
    cargo check --quiet --locked --no-default-features --features "cuda-$version"
done
