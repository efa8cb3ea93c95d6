#!/bin/sh
# Tests a Python wheel without a Rust compiler on the path, also on a local cluster of Ray, with actors
# that are killed. Prints which tests are skipped, and why.
#
#   scripts/test_wheel.sh [WHEEL]
#
# Without WHEEL it builds one that takes little time to build. A given WHEEL has to hold the GPU
# kernels.
set -eu
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
wheel=${1:-}
if [ -n "$wheel" ]; then
    wheel=$(realpath "$wheel")
    export TAPELOOP_KERNELS=required
else
    rm -rf "$target/wheels"
    scripts/build_wheel.sh "$target/wheels" dev
    wheel=$(echo "$target"/wheels/*.whl)
fi
scripts/python_for_tests.sh
environment=$target/python-for-tests
"$environment/bin/pip" install --quiet --force-reinstall --no-deps "$wheel"
PATH=$environment/bin:/usr/bin:/bin
TAPELOOP_WHEEL=$wheel
export PATH TAPELOOP_WHEEL
! command -v cargo || { echo "cargo is on the path" >&2; exit 1; }
# Actors of Ray import what lies in the working directory, which must not be the package's sources.
cd python/tests
pytest -q -r fEs -p no:cacheprovider -W ignore::DeprecationWarning .
