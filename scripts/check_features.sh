#!/usr/bin/env bash
# Lints all targets of all crates, warnings denied, and the feature sets that the crates promise. The
# CUDA versions exclude each other, so `--all-features` is not among them. Crates that programs use alone
# are built alone, as a set that works only because another crate of the build selects more is wrong;
# scripts/rehearse_release.sh builds each of the other crates alone.
#
#   scripts/check_features.sh [sets]
#
# With `sets` it lints only what the tests of all crates do not compile: .ci/run lints the rest as it
# compiles the tests.
set -euo pipefail
cd "$(dirname "$0")/.."

# Lints need no kernels, which take minutes to compile; the tests do.
export NVCC=none

lint() {
    echo "== clippy $*"
    cargo clippy --quiet --locked "$@" -- -D warnings
}

case ${1:-} in
    # First, so that what follows finds most dependencies compiled.
    '') lint --workspace --all-targets ;;
    sets) lint --package tapeloop --benches ;;
    *)
        echo "usage: scripts/check_features.sh [sets]" >&2
        exit 2
        ;;
esac

lint --package tapeloop-structure --lib
lint --package tapeloop --lib --no-default-features
lint --package tapeloop-cli --lib --bins --no-default-features # without CUDA

engine_sets=(
    ""
    "cuda-12040"
    "supervise"                 # a device in a worker process
    "cuda,cudarc/cuda-13010"    # as a library selects it, next to a crate that selects the latest version
)
for set in "${engine_sets[@]}"; do
    lint --package tapeloop-engine --lib --features "$set"
done
# Ranges for Nsight Systems, and the one test that no default feature compiles.
lint --package tapeloop-engine --lib --test nvtx --features supervise,nvtx,cuda-12040
