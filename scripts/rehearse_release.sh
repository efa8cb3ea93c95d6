#!/usr/bin/env bash
# Rehearses the publication of all crates: makes the package of each and builds it from there, with
# the other packages instead of the sources of this repository. Needs no registry once the
# dependencies are in Cargo's cache. The Python package and the crates of tests are not published.
#
#   scripts/rehearse_packages.sh [options of cargo package, such as --allow-dirty]
set -euo pipefail
cd "$(dirname "$0")/.."
export NVCC=none
cargo package --workspace --exclude tapeloop-python --exclude tapeloop-test-support \
    --exclude tapeloop-tests --offline --locked "$@"
