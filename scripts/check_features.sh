#!/usr/bin/env bash
# Lints the feature sets that the crates promise, warnings denied. The CUDA versions exclude each
# other, so `--all-features` is not among them. Each crate is built alone, as a set that works only
# because another crate of the build selects more is wrong.
set -euo pipefail
cd "$(dirname "$0")/.."

# Lints need no kernels, which take minutes to compile; the tests do.
export NVCC=none

lint() {
    echo "== $*"
    cargo clippy --quiet --locked "$@" -- -D warnings
}

for crate in error signature svg structure files trajectory inputs annotations bench sim; do
    lint --package "tapeloop-$crate" --lib
done

engine_sets=(
    ""
    "cuda-12040"
    "supervise"                 # a device in a worker process
    "supervise,nvtx,cuda-13000" # and ranges for Nsight Systems
    "cuda,cudarc/cuda-13010"    # as a library selects it, next to a crate that selects a version
)
for set in "${engine_sets[@]}"; do
    lint --package tapeloop-engine --lib --features "$set"
done
for version in 12050 12060 12080 12090; do
    echo "== cuda-$version"
    cargo check --quiet --locked --package tapeloop-engine --features "cuda-$version"
done

# The tests of a crate find what they need without the features that others select.
for crate in structure inputs bench sim; do
    lint --package "tapeloop-$crate" --tests
done
lint --package tapeloop-engine --tests --features supervise

lint --package tapeloop --lib --no-default-features
lint --package tapeloop --lib --bins --no-default-features --features cli # without CUDA
lint --package tapeloop --lib --bins --features nvtx

echo "== all targets of all crates"
lint --workspace --exclude tapeloop-python --all-targets
lint --package tapeloop-python --all-targets
# The one test that no default feature compiles.
lint --package tapeloop-engine --test nvtx --features nvtx,cuda-12040
